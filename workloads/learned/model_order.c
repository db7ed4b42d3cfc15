/* Which recorded steps may follow which: learned.md, "Order". */
#include <math.h>

#include "allocators/base/map.h"
#include "workloads/learned/model.h"

/* ---- classes ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Times, kernels and marks do not make a class. */
static bool matters(const struct learned_action *action)
{
    return action->kind != TRACE_TIME && action->kind != TRACE_KERNEL && action->kind != TRACE_MARK;
}

/* Of the structure of a step, and of its sizes too. */
static void hash_step(const struct learned_step *step, uint64_t *structure, uint64_t *all)
{
    uint64_t hash = mix(mix(1, step->before->state), step->after->state), sizes = 1;
    for (size_t i = 0; i < step->action_count; i++) {
        const struct learned_action *action = &step->actions[i];
        if (!matters(action))
            continue;
        hash = mix(hash, (uint64_t)action->kind << 8 | action->reference);
        hash = mix(hash, (uint64_t)action->number << 32 | action->stream);
        hash = mix(hash, action->attributes);
        sizes = mix(sizes, action->value);
    }
    *structure = hash;
    *all = mix(hash, sizes);
}

/* The class of each hash, in the order of first use. */
static bool number_classes(struct learned_model *model, const uint64_t *structure)
{
    struct ar_map class_of = {0};
    bool done = true;
    for (size_t i = 0; done && i < model->step_count; i++) {
        uint64_t class_ = model->class_count;
        if (!ar_map_get(&class_of, structure[i], &class_)) {
            done = ar_map_put(&class_of, structure[i], class_) == AR_OK;
            model->class_count++;
        }
        model->steps[i].class_ = (uint32_t)class_;
    }
    ar_map_close(&class_of);
    model->classes = done ? calloc(model->class_count + 1, sizeof *model->classes) : NULL;
    return model->classes != NULL;
}

/* ---- order ---- */

/* Fills border[n] for each n: the most of the last n values, below n, with which they begin too. So
 * their shortest period is n - border[n]. (The failure function of Knuth, Morris and Pratt, from
 * the end.) */
static void find_borders(const uint64_t *values, size_t count, uint32_t *border)
{
    const uint64_t *end = values + count - 1;
    size_t length = 0;
    border[0] = 0;
    if (count)
        border[1] = 0;
    for (size_t i = 1; i < count; i++) {
        while (length && end[-(ptrdiff_t)i] != end[-(ptrdiff_t)length])
            length = border[length];
        length += end[-(ptrdiff_t)i] == end[-(ptrdiff_t)length];
        border[i + 1] = (uint32_t)length;
    }
}

/* The shortest period that the values have at least twice, from the first of the later beginnings
 * up to the middle that has one; 0: none. */
static size_t settle_period(const struct learned_model *model, const uint64_t *values,
                            uint32_t *border, size_t *warmup)
{
    find_borders(values, model->step_count, border);
    for (size_t from = model->warmup; from <= model->step_count / 2; from++) {
        size_t count = model->step_count - from, period = count - border[count];
        if (2 * period <= count) {
            *warmup = from;
            return period;
        }
    }
    return 0;
}

/* Steps stay together as long as the bytes that they request are correlated: 1 + twice the sum of
 * the autocorrelations up to the first one within the noise of independent values, 2 / sqrt(n).
 * 0: they are still correlated at a quarter of the recording, which is a trend. */
static double find_run_length(const struct learned_model *model, double *bytes)
{
    size_t first = model->warmup, count = model->step_count - first;
    double mean = 0, variance = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        bytes[i] = learned_total(&model->steps[first + i]);
        mean += bytes[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        bytes[i] -= mean;
        variance += pow(bytes[i], 2);
    }
    if (count < 8 || variance <= 0)
        return 1;
    for (size_t lag = 1; lag <= count / 4; lag++) {
        double product = 0;
        for (size_t i = 0; i + lag < count; i++)
            product += bytes[i] * bytes[i + lag];
        if (product / variance <= 2 / sqrt((double)count))
            return 1 + 2 * sum;
        sum += product / variance;
    }
    return 0;
}

static double list_bytes(const struct learned_list *list)
{
    double sum = 0;
    for (size_t i = 0; i < list->count; i++)
        sum += (double)list->bytes[i];
    return sum;
}

/* The pairs of values that rise less those that fall; sorts the values. */
static double count_rises(double *values, double *room, size_t count)
{
    size_t half = count / 2, below = 0, up_to = 0;
    if (count < 2)
        return 0;
    double sum = count_rises(values, room, half) + count_rises(values + half, room, count - half);
    for (size_t i = half; i < count; i++) {
        while (below < half && values[below] < values[i])
            below++;
        while (up_to < half && values[up_to] <= values[i])
            up_to++;
        sum += (double)below - (double)(half - up_to);
    }
    memcpy(room, values, half * sizeof *values);
    for (size_t at = 0, i = 0, j = half; i < half; at++)
        values[at] = j < count && values[j] < room[i] ? values[j++] : room[i++];
    return sum;
}

/* Whether the bytes carried from step to step rise or fall over the recording: Kendall's tau of
 * more than a half, and a twentieth between the least and the most. `bytes`: twice the steps. */
static bool has_live_trend(const struct learned_model *model, double *bytes)
{
    size_t count = model->step_count - model->warmup;
    double pairs = (double)count * ((double)count - 1) / 2, least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        bytes[i] = list_bytes(model->steps[model->warmup + i].after);
        least = fmin(least, bytes[i]);
        most = fmax(most, bytes[i]);
    }
    double sum = count_rises(bytes, bytes + count, count);
    return pairs >= 15 && fabs(sum) > pairs / 2 && most > 1.05 * least;
}

/* Groups for LEARNED_FOLLOW: the class and the list after the step; the list alone if nearly each
 * step has a class of its own. */
static void group_steps(struct learned_model *model)
{
    bool by_class = model->class_count * 4 <= model->step_count;
    for (size_t i = 0; i < model->step_count; i++)
        model->groups[i] = by_class ? model->steps[i].class_ : model->steps[i].after->state;
    for (size_t i = 0; i < model->step_count; i++)
        if (model->groups[i] >= model->group_count)
            model->group_count = model->groups[i] + 1u;
}

static bool choose_order(struct learned_model *model, const uint64_t *structure,
                         const uint64_t *all)
{
    size_t warmup;
    double *room = malloc((2 * model->step_count + 1) * sizeof *room);
    uint32_t *border = (uint32_t *)(void *)room; /* its room comes first */
    model->groups = calloc(model->step_count, sizeof *model->groups);
    bool done = room && model->groups;
    if (done && (model->period = settle_period(model, all, border, &warmup)) != 0) {
        model->order = LEARNED_REPEAT;
        model->warmup = warmup;
    } else if (done && (model->period = settle_period(model, structure, border, &warmup)) > 1) {
        model->order = LEARNED_PERIOD;
        model->warmup = warmup;
    } else if (done) {
        /* A first step that is unlike all others belongs to the start-up. */
        if (model->period == 1)
            model->warmup = warmup;
        group_steps(model);
        model->run_length = find_run_length(model, room);
        model->order =
            model->run_length > 0 && !has_live_trend(model, room) ? LEARNED_FOLLOW : LEARNED_REPLAY;
    }
    free(room);
    return done;
}

/* Means of the steady steps; of whole periods only, because the steps of a period differ. */
static void find_rates(struct learned_model *model)
{
    const struct learned_recording *recording = &model->recording;
    bool periodic = model->order == LEARNED_REPEAT || model->order == LEARNED_PERIOD;
    size_t first = model->warmup, count = model->step_count - first;
    count -= periodic ? count % model->period : 0;
    for (size_t i = first; i < first + count; i++)
        model->step_ns += (double)model->steps[i].duration_ns;
    for (size_t i = 0; i < recording->block_count; i++)
        if (model->fates[i] == LEARNED_LEAKED && recording->blocks[i].born >= first &&
            recording->blocks[i].born < first + count)
            model->leaked_bytes += (double)recording->blocks[i].bytes;
    model->step_ns /= (double)count;
    model->leaked_bytes /= (double)count;
}

bool learned_find_order(struct learned_model *model)
{
    uint64_t *structure = malloc(model->step_count * sizeof *structure),
             *all = malloc(model->step_count * sizeof *all);
    bool done = structure && all;
    for (size_t i = 0; done && i < model->step_count; i++)
        hash_step(&model->steps[i], &structure[i], &all[i]);
    done = done && number_classes(model, structure) && choose_order(model, structure, all);
    free(structure);
    free(all);
    if (done)
        find_rates(model);
    return done;
}
