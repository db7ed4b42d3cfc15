/* How the sizes of steps of one class vary: learned.md, "Sizes". */
#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/size.h"
#include "workloads/learned/model.h"

#define UNSEEN_LEAST 0.25 /* below it, sizes are of a list that the recording has */
#define WINDOW       32   /* members with fewer, and with more bytes, that may be neighbours */

double learned_total(const struct learned_step *step)
{
    double sum = 0;
    for (size_t i = 0; i < step->request_count; i++)
        sum += (double)step->bytes[i];
    return sum;
}

/* ---- classes ---- */

struct member {
    double value; /* bytes of all requests, or the latent */
    uint32_t step;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *one = a, *other = b;
    AR_ORDER(one->value, other->value);
    return (one->step > other->step) - (one->step < other->step);
}

/* Fills grain and mean. */
static void measure_requests(const struct learned_model *model, struct learned_class *class_,
                             const struct member *members, size_t count)
{
    const struct learned_step *first = &model->steps[members[0].step];
    for (size_t request = 0; request < first->request_count; request++)
        for (size_t i = 0; i < count; i++) {
            uint64_t bytes = model->steps[members[i].step].bytes[request],
                     base = first->bytes[request];
            class_->grain[request] = ar_size_common_divisor(
                class_->grain[request], bytes > base ? bytes - base : base - bytes);
            class_->mean[request] += (double)bytes / (double)count;
        }
}

/* How much two steps differ: the sum of the relative differences of their sizes. */
static double differ(const struct learned_step *a, const struct learned_step *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->request_count; i++) {
        double one = (double)a->bytes[i], other = (double)b->bytes[i];
        sum += one == other ? 0 : fabs(one - other) / (one + other);
    }
    return sum;
}

/* Adds a neighbour to the sorted list of the nearest. */
static void add_neighbour(uint32_t *nearest, double *apart, uint32_t place, double far)
{
    size_t at = LEARNED_NEIGHBOURS;
    while (at && apart[at - 1] > far) {
        at--;
        if (at + 1 < LEARNED_NEIGHBOURS) {
            apart[at + 1] = apart[at];
            nearest[at + 1] = nearest[at];
        }
    }
    if (at < LEARNED_NEIGHBOURS) {
        apart[at] = far;
        nearest[at] = place;
    }
}

/* The nearest members among those with about as many bytes. Loose steps: the nearest by bytes, if
 * within a tenth. */
static void find_neighbours(const struct learned_model *model, struct learned_class *class_,
                            const struct member *members)
{
    for (size_t i = 0; i < class_->member_count; i++) {
        uint32_t *nearest = class_->neighbours + i * LEARNED_NEIGHBOURS;
        double apart[LEARNED_NEIGHBOURS];
        for (size_t j = 0; j < LEARNED_NEIGHBOURS; j++) {
            apart[j] = INFINITY;
            nearest[j] = (uint32_t)i;
        }
        size_t from = i > WINDOW ? i - WINDOW : 0;
        for (size_t j = from; j < class_->member_count && j <= i + WINDOW; j++) {
            double far = class_->grain ? differ(&model->steps[members[i].step],
                                                &model->steps[members[j].step])
                                       : fabs(members[i].value - members[j].value);
            if (far > 0 && (class_->grain || far < 0.1 * members[i].value))
                add_neighbour(nearest, apart, (uint32_t)j, far);
        }
    }
}

/* The part of the members whose value no other has: by Good and Turing, the probability that the
 * next step has a value that was not recorded. The largest of it over the requests, so that one
 * that varies is enough. */
static double find_unseen(const struct learned_model *model, const struct learned_class *class_,
                          struct member *members, size_t count)
{
    size_t requests = class_->grain ? model->steps[members[0].step].request_count : 0;
    double most = 0;
    for (size_t request = 0; request <= requests; request++) {
        size_t once = 0;
        for (size_t i = 0; i < count; i++)
            members[i].value = request == requests
                                   ? learned_total(&model->steps[members[i].step])
                                   : (double)model->steps[members[i].step].bytes[request];
        if (request < requests && !class_->grain[request])
            continue;
        qsort(members, count, sizeof *members, compare_members);
        for (size_t i = 0; i < count; i++)
            once += (i == 0 || members[i].value > members[i - 1].value) &&
                    (i + 1 == count || members[i].value < members[i + 1].value);
        most = fmax(most, (double)once / (double)count);
    }
    return most; /* and the members are in the order of their bytes */
}

static void find_tail(struct learned_class *class_, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        class_->mean_total += members[i].value / (double)count;
    size_t tail = count / 4;
    class_->threshold = members[count - tail - 1].value;
    if (class_->unseen >= UNSEEN_LEAST && class_->threshold > class_->mean_total &&
        members[count - 1].value > class_->threshold)
        class_->tail_count = tail;
}

static bool fill_class(struct learned_model *model, struct learned_class *class_,
                       struct member *members, size_t count, bool loose)
{
    size_t requests = model->steps[members[0].step].request_count;
    class_->members = malloc(count * sizeof *class_->members);
    class_->grain = loose ? NULL : calloc(requests + 1, sizeof *class_->grain);
    class_->mean = loose ? NULL : calloc(requests + 1, sizeof *class_->mean);
    class_->neighbours = malloc(count * LEARNED_NEIGHBOURS * sizeof *class_->neighbours);
    if (!class_->members || (!loose && (!class_->grain || !class_->mean)) || !class_->neighbours)
        return false;
    class_->member_count = count;
    if (!loose)
        measure_requests(model, class_, members, count);
    class_->unseen = find_unseen(model, class_, members, count);
    for (size_t i = 0; i < count; i++) {
        class_->members[i] = members[i].step;
        model->steps[members[i].step].varies_as = (uint32_t)(class_ - model->classes);
        model->steps[members[i].step].member = (uint32_t)i;
    }
    find_neighbours(model, class_, members);
    find_tail(class_, members, count);
    return true;
}

/* Marks the requests whose size is the same in all other steps of the class of loose[at]. */
static void fix_common(const struct learned_model *model, const uint32_t *loose, size_t count,
                       size_t at, uint8_t *fixed)
{
    const struct learned_step *step = &model->steps[loose[at]];
    for (size_t j = 0; j < step->request_count; j++) {
        size_t others = 0, same = 0;
        for (size_t i = 0; i < count; i++)
            if (i != at && model->steps[loose[i]].class_ == step->class_) {
                others++;
                same += model->steps[loose[i]].bytes[j] == step->bytes[j];
            }
        fixed[j] |= others && same == others;
    }
}

/* Of a loose step: a size is fixed if each other step of its class has it at the same request, or
 * if nine tenths of the steady steps have it. */
static bool find_fixed(struct learned_model *model, const uint32_t *loose, size_t count)
{
    struct ar_map steps_of = {.more_words = 1}; /* of a size: the number of steps, the last one */
    double steady = (double)(model->step_count - model->warmup);
    bool done = true;
    for (size_t i = model->warmup; done && i < model->step_count; i++)
        for (size_t j = 0; done && j < model->steps[i].request_count; j++) {
            uint64_t *value = ar_map_add(&steps_of, model->steps[i].bytes[j]);
            done = value != NULL;
            if (value && value[1] != i + 1) {
                value[0]++;
                value[1] = i + 1;
            }
        }
    for (size_t i = 0; done && i < count; i++) {
        const struct learned_step *step = &model->steps[loose[i]];
        uint8_t *fixed = model->fixed + (step->bytes - model->bytes);
        for (size_t j = 0; j < step->request_count; j++) {
            const uint64_t *value = ar_map_find(&steps_of, step->bytes[j]);
            fixed[j] = value && (double)value[0] >= 0.9 * steady;
        }
        fix_common(model, loose, count, i, fixed);
    }
    ar_map_close(&steps_of);
    return done;
}

bool learned_find_sizes(struct learned_model *model)
{
    struct member *members = malloc(model->step_count * sizeof *members);
    uint32_t *loose = malloc(model->step_count * sizeof *loose);
    size_t loose_count = 0;
    bool done = members && loose,
         vary = model->order == LEARNED_PERIOD || model->order == LEARNED_FOLLOW;
    for (size_t i = 0; i < model->step_count; i++)
        model->steps[i].varies_as = (uint32_t)model->class_count; /* without members so far */
    for (size_t class_ = 0; done && vary && class_ < model->class_count; class_++) {
        size_t count = 0;
        for (size_t i = model->warmup; i < model->step_count; i++)
            if (model->steps[i].class_ == class_)
                members[count++] = (struct member){0, (uint32_t)i};
        if (count >= LEARNED_MEMBERS_LEAST)
            done = fill_class(model, &model->classes[class_], members, count, false);
        for (size_t i = 0; count < LEARNED_MEMBERS_LEAST && i < count; i++)
            loose[loose_count++] = members[i].step;
    }
    if (done && vary && loose_count >= LEARNED_MEMBERS_LEAST) {
        for (size_t i = 0; i < loose_count; i++)
            members[i] = (struct member){0, loose[i]};
        done = find_fixed(model, loose, loose_count) &&
               fill_class(model, &model->classes[model->class_count], members, loose_count, true);
    }
    free(members);
    free(loose);
    return done;
}

/* ---- tails ---- */

#define SHAPES 6
#define GRID   64

static double excess_of(const struct learned_model *model, const struct learned_class *class_,
                        size_t i)
{
    uint32_t step = class_->members[class_->member_count - class_->tail_count + i];
    return learned_total(&model->steps[step]) - class_->threshold;
}

/* The logarithm, to the base 2, of the likelihood of the excesses. */
static double judge_tail(const struct learned_model *model, const struct learned_class *class_,
                         struct learned_tail tail)
{
    double sum = 0;
    for (size_t i = 0; i < class_->tail_count; i++) {
        double excess = excess_of(model, class_, i) / tail.scale;
        sum -= ar_rng_log2(tail.scale);
        sum -= tail.shape == 0 ? excess / log(2)
                               : (1 + 1 / tail.shape) * ar_rng_log2(1 + tail.shape * excess);
    }
    return sum;
}

/* The tail number `at` of a shape, and the logarithm of its weight before the recording: equal for
 * equal factors of the scale. A tail with an end is given by how far the end is beyond the greatest
 * excess, from a millionth of it to four times it; one without by its scale, from a quarter of the
 * mean excess to eight times it. */
static struct learned_tail tail_at(double shape, size_t at, double mean, double greatest,
                                   double *weight)
{
    double part = (double)at / (GRID - 1);
    if (shape >= 0) {
        *weight = ar_rng_log2(5.0 / GRID);
        return (struct learned_tail){shape, mean * ar_rng_exp2(-2 + 5 * part)};
    }
    double beyond = ar_rng_exp2(-20 + 22 * part);
    *weight = ar_rng_log2(22.0 / GRID * beyond / (1 + beyond));
    return (struct learned_tail){shape, -shape * greatest * (1 + beyond)};
}

struct learned_tail learned_tail_draw(const struct learned_model *model,
                                      const struct learned_class *class_, struct ar_rng *rng)
{
    static const double shapes[SHAPES] = {-1, -0.75, -0.5, -0.25, 0, 0.25};
    double weights[SHAPES * GRID], best = -1e300, sum = 0, mean = 0, greatest = 0;
    struct learned_tail tails[SHAPES * GRID];
    if (!class_->tail_count)
        return (struct learned_tail){0, 0};
    for (size_t i = 0; i < class_->tail_count; i++) {
        mean += excess_of(model, class_, i) / (double)class_->tail_count;
        greatest = fmax(greatest, excess_of(model, class_, i));
    }
    for (size_t i = 0; i < SHAPES * GRID; i++) {
        tails[i] = tail_at(shapes[i / GRID], i % GRID, mean, greatest, &weights[i]);
        weights[i] += judge_tail(model, class_, tails[i]);
        best = fmax(best, weights[i]);
    }
    for (size_t i = 0; i < SHAPES * GRID; i++) {
        weights[i] = weights[i] - best < -100 ? 0 : ar_rng_exp2(weights[i] - best);
        sum += weights[i];
    }
    double left = ar_rng_unit(rng) * sum;
    size_t at = 0;
    while (at + 1 < SHAPES * GRID && (left -= weights[at]) >= 0)
        at++;
    return tails[at];
}
