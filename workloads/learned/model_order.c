/* Which recorded steps may follow which: learned.md, "Order". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    size_t count = model->step_count;
    uint64_t *first = malloc(count * sizeof *first);
    if (!first)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t class_ = 0;
        while (class_ < model->class_count && first[class_] != structure[i])
            class_++;
        if (class_ == model->class_count)
            first[model->class_count++] = structure[i];
        model->steps[i].class_ = (uint32_t)class_;
    }
    free(first);
    model->classes = calloc(model->class_count + 1, sizeof *model->classes);
    return model->classes != NULL;
}

/* ---- order ---- */

/* The shortest period of values[from..count), at least `repeats` times in it; 0: none. */
static size_t find_period(const uint64_t *values, size_t from, size_t count, size_t repeats)
{
    for (size_t period = 1; period * repeats <= count - from; period++) {
        size_t i = from;
        while (i + period < count && values[i] == values[i + period])
            i++;
        if (i + period == count)
            return period;
    }
    return 0;
}

/* The same, from the first of the later beginnings up to the middle that has one. */
static size_t settle_period(const struct learned_model *model, const uint64_t *values,
                            size_t *warmup)
{
    for (size_t from = model->warmup; from <= model->step_count / 2; from++) {
        size_t period = find_period(values, from, model->step_count, 2);
        if (period) {
            *warmup = from;
            return period;
        }
    }
    return 0;
}

/* Steps stay together as long as the bytes that they request are correlated: 1 + twice the sum of
 * the autocorrelations up to the first one within the noise of independent values, 2 / sqrt(n).
 * 0: they are still correlated at a quarter of the recording, which is a trend. */
static double find_run_length(const struct learned_model *model)
{
    size_t first = model->warmup, count = model->step_count - first;
    double mean = 0, variance = 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        mean += learned_total(&model->steps[first + i]) / (double)count;
    for (size_t i = 0; i < count; i++)
        variance += pow(learned_total(&model->steps[first + i]) - mean, 2);
    if (count < 8 || variance <= 0)
        return 1;
    for (size_t lag = 1; lag <= count / 4; lag++) {
        double product = 0;
        for (size_t i = 0; i + lag < count; i++)
            product += (learned_total(&model->steps[first + i]) - mean) *
                       (learned_total(&model->steps[first + i + lag]) - mean);
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

/* Whether the bytes carried from step to step rise or fall over the recording: Kendall's tau of
 * more than a half, and a twentieth between the least and the most. */
static bool has_live_trend(const struct learned_model *model, double *bytes)
{
    double sum = 0, pairs = 0, least = INFINITY, most = 0;
    for (size_t i = model->warmup; i < model->step_count; i++) {
        bytes[i] = list_bytes(model->steps[i].after);
        least = fmin(least, bytes[i]);
        most = fmax(most, bytes[i]);
        for (size_t j = model->warmup; j < i; j++, pairs++)
            sum += (bytes[i] > bytes[j]) - (bytes[i] < bytes[j]);
    }
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
    model->groups = calloc(model->step_count, sizeof *model->groups);
    if (!model->groups)
        return false;
    if ((model->period = settle_period(model, all, &warmup)) != 0) {
        model->order = LEARNED_REPEAT;
        model->warmup = warmup;
        return true;
    }
    if ((model->period = settle_period(model, structure, &warmup)) > 1) {
        model->order = LEARNED_PERIOD;
        model->warmup = warmup;
        return true;
    }
    /* A first step that is unlike all others belongs to the start-up. */
    if (model->period == 1)
        model->warmup = warmup;
    double *bytes = malloc(model->step_count * sizeof *bytes);
    if (!bytes)
        return false;
    group_steps(model);
    model->run_length = find_run_length(model);
    model->order =
        model->run_length > 0 && !has_live_trend(model, bytes) ? LEARNED_FOLLOW : LEARNED_REPLAY;
    free(bytes);
    return true;
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
    for (size_t i = model->warmup; done && i < model->step_count; i++)
        model->step_ns +=
            (double)model->steps[i].duration_ns / (double)(model->step_count - model->warmup);
    return done;
}
