#include "workloads/learned/learned.h"

#define LOOSE_GRAIN 512u /* the most that sizes of loose steps are multiples of */

/* ---- order ---- */

/* One of the `count` steps in `choice`, by the weights that this seed gave to the recorded steps.
 */
static size_t draw(struct learned_plan *self, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += self->weights[self->choice[i]];
    double left = ar_rng_unit(&self->rng) * sum;
    for (size_t i = 0; i + 1 < count; i++)
        if ((left -= self->weights[self->choice[i]]) < 0)
            return self->choice[i];
    return self->choice[count - 1];
}

/* The number of blocks in which the lists differ. */
static size_t distance(const struct learned_list *a, const struct learned_list *b)
{
    size_t i = 0, j = 0, apart = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : memcmp(&a->roles[i], &b->roles[j], sizeof *a->roles);
        i += order <= 0;
        j += order >= 0;
        apart += order != 0;
    }
    return apart;
}

/* Of all steady steps those whose list is nearest to the present one. */
static size_t nearest(struct learned_plan *self)
{
    const struct learned_model *model = self->model;
    const struct learned_list *now = model->steps[self->last].after;
    size_t least = SIZE_MAX, count = 0;
    for (size_t i = model->warmup; i < model->step_count; i++) {
        size_t apart =
            model->steps[i].before->state == now->state ? 0 : distance(model->steps[i].before, now);
        if (apart < least) {
            least = apart;
            count = 0;
        }
        if (apart == least)
            self->choice[count++] = (uint32_t)i;
    }
    return draw(self, count);
}

/* A step that followed one of the group of the last step. */
static size_t follow(struct learned_plan *self)
{
    const struct learned_model *model = self->model;
    size_t last = self->last, count = 0;
    if (model->run_length > 1 && last + 1 < model->step_count &&
        ar_rng_unit(&self->rng) * model->run_length >= 1)
        return last + 1;
    self->above = 0;
    for (size_t i = model->warmup; i < model->step_count; i++)
        if (model->steps[i].before->state == model->steps[last].after->state && i &&
            (model->groups[i - 1] == model->groups[last] || i == model->warmup))
            self->choice[count++] = (uint32_t)i;
    return count ? draw(self, count) : nearest(self);
}

static size_t of_phase(struct learned_plan *self)
{
    const struct learned_model *model = self->model;
    size_t phase = (size_t)((self->step - model->warmup) % model->period), count = 0;
    if (model->order == LEARNED_REPEAT)
        return model->warmup + phase;
    for (size_t i = model->warmup + phase; i < model->step_count; i += model->period)
        self->choice[count++] = (uint32_t)i;
    return draw(self, count);
}

static size_t choose(struct learned_plan *self)
{
    const struct learned_model *model = self->model;
    if (self->step < model->step_count)
        return (size_t)self->step;
    switch (model->order) {
    case LEARNED_REPEAT:
    case LEARNED_PERIOD:
        return of_phase(self);
    case LEARNED_REPLAY:
        return self->last + 1 < model->step_count ? self->last + 1 : model->warmup;
    case LEARNED_FOLLOW:
    default:
        return follow(self);
    }
}

/* ---- sizes ---- */

/* Moves a size from the recorded one towards another, in multiples of its grain. */
static uint64_t move_size(uint64_t bytes, double towards, double part, uint64_t grain)
{
    double moved = (towards - (double)bytes) * part / (double)grain;
    double whole = (double)(int64_t)(moved < 0 ? moved - 0.5 : moved + 0.5) * (double)grain;
    /* A size that shrinks stays above half of what was recorded. */
    if (whole < -0.5 * (double)bytes)
        return bytes;
    return bytes + (uint64_t)(int64_t)whole;
}

/* The sizes of a loose step when it has `total` bytes: those that vary grow or shrink together. */
static void scale_sizes(struct learned_plan *self, const struct learned_step *step, double total)
{
    const uint8_t *fixed = self->model->fixed + (step->bytes - self->model->bytes);
    double varying = 0;
    for (size_t i = 0; i < step->request_count; i++)
        varying += fixed[i] ? 0 : (double)step->bytes[i];
    double part = varying > 0 ? (total - learned_total(step)) / varying : 0;
    for (size_t i = 0; i < step->request_count; i++) {
        uint64_t bytes = step->bytes[i], grain = bytes & -bytes;
        self->bytes[i] = fixed[i] || !bytes ? bytes
                                            : move_size(bytes, 2 * (double)bytes, part,
                                                        grain < LOOSE_GRAIN ? grain : LOOSE_GRAIN);
    }
}

/* Sizes beyond the recorded ones: those of a step of the tail, moved away from the mean so that the
 * step has as many bytes as a draw from the tail says. The draw is from the part of the tail that
 * belongs to the step's rank, together with the ranks beside it: a step with so many bytes looks
 * like recorded ones with about as many, and what else varies in a step does not grow. Steps that
 * stay together have one draw: their bytes are correlated, and extremes come once in such a run. */
static void choose_tail(struct learned_plan *self, const struct learned_class *class_,
                        const struct learned_step *step, const struct learned_tail *tail)
{
    if (self->model->run_length <= 1 || self->above <= 0)
        self->above = 1 - ar_rng_unit(&self->rng);
    /* The part of the tail above, with the largest step first. */
    size_t rank = class_->member_count - 1 - step->member, first = rank - rank % LEARNED_NEIGHBOURS;
    double left = ((double)first + LEARNED_NEIGHBOURS * self->above) / (double)class_->tail_count;
    double total = learned_total(step);
    left = left < 1 ? left : 1;
    double power = tail->shape == 0 ? 0 : ar_rng_exp2(-tail->shape * ar_rng_log2(left));
    double excess = tail->scale * (tail->shape == 0 ? -ar_rng_log2(left) * 0.6931471805599453
                                                    : (power - 1) / tail->shape);
    double part =
        (class_->threshold + excess - class_->mean_total) / (total - class_->mean_total) - 1;
    if (!class_->grain)
        scale_sizes(self, step, class_->threshold + excess);
    for (size_t i = 0; class_->grain && i < step->request_count; i++)
        self->bytes[i] = class_->grain[i] ? move_size(step->bytes[i],
                                                      2 * (double)step->bytes[i] - class_->mean[i],
                                                      part, class_->grain[i])
                                          : step->bytes[i];
}

/* Whether the step gets sizes that were not recorded; they are in `bytes`. */
static bool choose_sizes(struct learned_plan *self, size_t chosen)
{
    const struct learned_model *model = self->model;
    const struct learned_step *step = &model->steps[chosen];
    const struct learned_class *class_ = &model->classes[step->varies_as];
    const struct learned_tail *tail = &self->tails[step->varies_as];
    if (self->step < model->step_count || !class_->member_count)
        return false;
    if (step->member >= class_->member_count - class_->tail_count && tail->scale > 0) {
        choose_tail(self, class_, step, tail);
        return true;
    }
    if (ar_rng_unit(&self->rng) >= class_->unseen)
        return false;
    size_t beside = class_->neighbours[step->member * LEARNED_NEIGHBOURS +
                                       ar_rng_below(&self->rng, LEARNED_NEIGHBOURS)];
    const struct learned_step *other = &model->steps[class_->members[beside]];
    double part = ar_rng_unit(&self->rng) / 2;
    if (!class_->grain)
        scale_sizes(self, step,
                    learned_total(step) + part * (learned_total(other) - learned_total(step)));
    for (size_t i = 0; class_->grain && i < step->request_count; i++)
        self->bytes[i] = class_->grain[i] ? move_size(step->bytes[i], (double)other->bytes[i], part,
                                                      class_->grain[i])
                                          : step->bytes[i];
    return true;
}

/* ---- the plan ---- */

/* Chooses a further step. False: the last one has new sizes, or there is no room. */
static bool plan(struct learned_plan *self)
{
    const size_t count = self->count;
    if (count == LEARNED_AHEAD ||
        (count && self->ahead[(self->first + count - 1) % LEARNED_AHEAD].new_sizes))
        return false;
    struct learned_planned *planned = &self->ahead[(self->first + count) % LEARNED_AHEAD];
    planned->step = choose(self);
    planned->new_sizes = choose_sizes(self, planned->step);
    self->last = planned->step;
    self->step++;
    self->count++;
    return true;
}

struct learned_planned learned_plan_take(struct learned_plan *self)
{
    if (!self->count)
        (void)plan(self);
    struct learned_planned planned = self->ahead[self->first];
    self->first = (self->first + 1) % LEARNED_AHEAD;
    self->count--;
    return planned;
}

const struct learned_planned *learned_plan_peek(struct learned_plan *self, size_t ahead)
{
    while (self->count <= ahead)
        if (!plan(self))
            return NULL;
    return &self->ahead[(self->first + ahead) % LEARNED_AHEAD];
}

bool learned_plan_open(struct learned_plan *self, const struct learned_model *model, uint64_t seed)
{
    size_t requests = 0;
    for (size_t i = 0; i < model->step_count; i++)
        AR_RAISE(requests, model->steps[i].request_count);
    *self = (struct learned_plan){
        .model = model,
        .seed = seed,
        .weights = calloc(model->step_count, sizeof *self->weights),
        .choice = calloc(model->step_count, sizeof *self->choice),
        .tails = calloc(model->class_count + 1, sizeof *self->tails),
        .bytes = calloc(requests + 1, sizeof *self->bytes),
    };
    return self->weights && self->choice && self->tails && self->bytes;
}

void learned_plan_restart(struct learned_plan *self)
{
    self->first = self->count = self->last = 0;
    self->step = 0;
    self->above = 0;
    ar_rng_seed(&self->rng, self->seed);
    for (size_t i = 0; i < self->model->step_count; i++)
        self->weights[i] = -ar_rng_log2(1 - ar_rng_unit(&self->rng));
    for (size_t i = 0; i <= self->model->class_count; i++)
        self->tails[i] = learned_tail_draw(self->model, &self->model->classes[i], &self->rng);
}

void learned_plan_close(struct learned_plan *self)
{
    free(self->weights);
    free(self->choice);
    free(self->tails);
    free(self->bytes);
}
