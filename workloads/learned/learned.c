/* The source of `learned`: draws the next step and gives its blocks their ids and slots. */
#include "workloads/learned/learned.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "allocators/base/rng.h"
#include "workloads/trace/check.h"

const struct ar_option learned_options[] = {
    {"trace", AR_OPTION_TEXT, offsetof(struct learned_values, trace), NULL, 0, 0, NULL,
     "the recording: a trace file"},
    {"steps", AR_OPTION_COUNT, offsetof(struct learned_values, steps), "1000000", 1, 1e12, NULL,
     "steps in all; the recorded ones come first"},
    {"seed", AR_OPTION_COUNT, offsetof(struct learned_values, seed), "1", 0, 0, NULL,
     "of the random numbers; the same seed gives the same events"},
    {.name = NULL},
};

#define LOOSE_GRAIN 512u /* the most that sizes of loose steps are multiples of */

/* A block of the generated trace. */
struct made {
    uint64_t id;
    uint32_t slot, stream;
};

/* By slot; `attributes` are those of the recording. */
struct slot {
    uint64_t bytes, id;
    uint32_t attributes, born;
    bool live;
};

struct learned {
    struct trace_source source;
    const struct learned_model *model;
    struct learned_model *owned;
    uint64_t steps, seed;
    bool lean, one_stream; /* one_stream: streams and kernels do not matter */
    struct trace_tables tables;
    uint32_t *keys;  /* 1 + the new index of each of the recording's sets of keys; 0: not yet used;
                       in a lean source, the index itself */
    uint64_t *texts; /* the same of labels */
    struct trace_check check;
    struct ar_rng rng;
    double *weights; /* of each step: sums of random weights within its kind of choice */

    struct learned_tail *tails; /* of each class, as this seed draws them */

    struct trace_event *span;
    size_t count, room;
    uint64_t step; /* the next one to generate */
    size_t last;   /* the recorded step that was generated last */
    uint64_t next_id, begun_ns, now_ns, misfits;
    struct slot *slots;
    size_t slot_count, slot_room;
    uint32_t *free_slots;
    size_t free_count, free_room;
    struct made *request, *list, *next_list, *permanent;
    size_t list_count;
    uint32_t *choice; /* room for the steps to choose from */
    uint64_t *bytes;  /* sizes between two recorded steps */
    uint32_t *list_slots;
    bool given; /* the span of a lean source was */
    /* Steps that are chosen and not yet made, the first at `ahead_first` modulo the room; after one
     * with new sizes, which are in `bytes`, no more are chosen. */
    struct planned {
        size_t step;
        bool new_sizes;
    } ahead[LEARNED_AHEAD];
    size_t ahead_first, ahead_count;
    uint64_t plan_step; /* the number of the next one to choose, and the step chosen before it */
    size_t plan_last;
    enum ar_status failed;
};

static struct learned *learned_of(struct trace_source *source)
{
    return (struct learned *)source;
}

/* ---- events ---- */

static void emit(struct learned *self, struct trace_event event)
{
    if (self->count == self->room &&
        !ar_array_make_room(&self->span, self->count, &self->room, sizeof *self->span)) {
        self->failed = AR_HOST_MEMORY;
        return;
    }
    self->span[self->count++] = event;
}

/* The keys of an event by the tables of this source. */
static uint32_t keys_of(struct learned *self, uint32_t attributes)
{
    if (!attributes || self->lean)
        return attributes ? self->keys[attributes] : 0;
    if (!self->keys[attributes]) {
        uint32_t index = 0;
        if (trace_tables_attributes(&self->tables,
                                    trace_tables_at(&self->model->recording.tables, attributes),
                                    &index, NULL))
            self->failed = AR_HOST_MEMORY;
        self->keys[attributes] = index + 1;
    }
    return self->keys[attributes] - 1;
}

static uint64_t text_of(struct learned *self, uint64_t text)
{
    if (!self->texts[text]) {
        const char *label = trace_tables_text(&self->model->recording.tables, text);
        uint64_t index = 0;
        if (trace_tables_add_text(&self->tables, label, strlen(label), &index, NULL))
            self->failed = AR_HOST_MEMORY;
        self->texts[text] = index + 1;
    }
    return self->texts[text] - 1;
}

static struct made make(struct learned *self, uint8_t kind, uint64_t bytes, uint32_t stream,
                        uint32_t attributes)
{
    struct made made = {.id = self->next_id++, .stream = stream};
    if (self->free_count) {
        made.slot = self->free_slots[--self->free_count];
    } else {
        const struct slot none = {0};
        made.slot = (uint32_t)self->slot_count;
        if (!AR_ARRAY_ADD(self->slots, self->slot_count, self->slot_room, none) ||
            !ar_array_make_room(&self->free_slots, self->slot_count, &self->free_room,
                                sizeof *self->free_slots)) {
            self->failed = AR_HOST_MEMORY;
            return made;
        }
    }
    self->slots[made.slot] = (struct slot){bytes, made.id, attributes, (uint32_t)self->step, true};
    emit(self, (struct trace_event){.kind = kind,
                                    .stream = stream,
                                    .slot = made.slot,
                                    .attributes = keys_of(self, attributes),
                                    .value = bytes,
                                    .id = made.id});
    return made;
}

/* Any other event of a block. */
static void touch(struct learned *self, uint8_t kind, uint8_t flags, uint32_t stream,
                  uint32_t attributes, const struct made *made)
{
    bool final = self->model->recording.free_requested_final;
    if (self->one_stream && kind == TRACE_FREE_REQUESTED && final) {
        kind = TRACE_FREE_COMPLETED; /* the same on one stream, and the engine is faster */
        flags = TRACE_WHOLE;
    }
    if (kind == TRACE_FREE_COMPLETED || (kind == TRACE_FREE_REQUESTED && final)) {
        self->slots[made->slot].live = false;
        self->free_slots[self->free_count++] = made->slot;
    }
    emit(self, (struct trace_event){.kind = kind,
                                    .flags = flags,
                                    .stream = kind == TRACE_FREE_COMPLETED ? made->stream : stream,
                                    .slot = made->slot,
                                    .attributes = keys_of(self, attributes),
                                    .id = made->id});
}

/* ---- the choice of the next step ---- */

/* One of the `count` steps in `choice`, by the weights that this seed gave to the recorded steps.
 */
static size_t draw(struct learned *self, size_t count)
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
static size_t nearest(struct learned *self)
{
    const struct learned_model *model = self->model;
    const struct learned_list *now = model->steps[self->plan_last].after;
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
static size_t follow(struct learned *self)
{
    const struct learned_model *model = self->model;
    size_t last = self->plan_last, count = 0;
    if (model->run_length > 1 && last + 1 < model->step_count &&
        ar_rng_unit(&self->rng) * model->run_length >= 1)
        return last + 1;
    for (size_t i = model->warmup; i < model->step_count; i++)
        if (model->steps[i].before->state == model->steps[last].after->state && i &&
            (model->groups[i - 1] == model->groups[last] || i == model->warmup))
            self->choice[count++] = (uint32_t)i;
    return count ? draw(self, count) : nearest(self);
}

static size_t of_phase(struct learned *self)
{
    const struct learned_model *model = self->model;
    size_t phase = (size_t)((self->plan_step - model->warmup) % model->period), count = 0;
    if (model->order == LEARNED_REPEAT)
        return model->warmup + phase;
    for (size_t i = model->warmup + phase; i < model->step_count; i += model->period)
        self->choice[count++] = (uint32_t)i;
    return draw(self, count);
}

static size_t choose(struct learned *self)
{
    const struct learned_model *model = self->model;
    if (self->plan_step < model->step_count)
        return (size_t)self->plan_step;
    switch (model->order) {
    case LEARNED_REPEAT:
    case LEARNED_PERIOD:
        return of_phase(self);
    case LEARNED_REPLAY:
        return self->plan_last + 1 < model->step_count ? self->plan_last + 1 : model->warmup;
    case LEARNED_FOLLOW:
    default:
        return follow(self);
    }
}

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
static void scale_sizes(struct learned *self, const struct learned_step *step, double total)
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
 * step has as many bytes as a draw from the tail says. */
static void choose_tail(struct learned *self, const struct learned_class *class_,
                        const struct learned_step *step, const struct learned_tail *tail)
{
    double left = 1 - ar_rng_unit(&self->rng), total = learned_total(step);
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
static bool choose_sizes(struct learned *self, size_t chosen)
{
    const struct learned_model *model = self->model;
    const struct learned_step *step = &model->steps[chosen];
    const struct learned_class *class_ = &model->classes[step->varies_as];
    const struct learned_tail *tail = &self->tails[step->varies_as];
    if (self->plan_step < model->step_count || !class_->member_count)
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

/* Chooses a further step. False: the last one has new sizes, or there is no room. */
static bool plan(struct learned *self)
{
    const size_t count = self->ahead_count;
    if (count == LEARNED_AHEAD ||
        (count && self->ahead[(self->ahead_first + count - 1) % LEARNED_AHEAD].new_sizes))
        return false;
    struct planned *planned = &self->ahead[(self->ahead_first + count) % LEARNED_AHEAD];
    planned->step = choose(self);
    planned->new_sizes = choose_sizes(self, planned->step);
    self->plan_last = planned->step;
    self->plan_step++;
    self->ahead_count++;
    return true;
}

static struct planned take_planned(struct learned *self)
{
    if (!self->ahead_count)
        (void)plan(self);
    struct planned planned = self->ahead[self->ahead_first];
    self->ahead_first = (self->ahead_first + 1) % LEARNED_AHEAD;
    self->ahead_count--;
    return planned;
}

/* ---- a step ---- */

/* Makes the present list fit the one before `step`: of each role that has too many blocks, the
 * oldest are freed; blocks that are missing are requested. */
static void fit_list(struct learned *self, const struct learned_step *step)
{
    const struct learned_list *now = self->model->steps[self->last].after, *then = step->before;
    const struct learned_role *roles = now->roles;
    size_t count = 0, i = 0;
    if (!self->step || now->state == then->state)
        return;
    self->misfits++;
    for (size_t j = 0; j < then->count || i < self->list_count;) {
        int order = j == then->count        ? -1
                    : i == self->list_count ? 1
                                            : memcmp(&roles[i], &then->roles[j], sizeof *roles);
        size_t have = 0, want = 0;
        const struct learned_role role = order <= 0 ? roles[i] : then->roles[j];
        while (order <= 0 && i + have < self->list_count &&
               !memcmp(&roles[i + have], &role, sizeof role))
            have++;
        while (order >= 0 && j + want < then->count &&
               !memcmp(&then->roles[j + want], &role, sizeof role))
            want++;
        for (; have > want; have--, i++)
            touch(self, TRACE_FREE_COMPLETED, (uint8_t)(role.pending ? 0 : TRACE_WHOLE),
                  role.stream, 0, &self->list[i]);
        for (; have; have--, want--, j++)
            self->next_list[count++] = self->list[i++];
        for (; want; want--, j++) {
            struct made made =
                make(self, TRACE_ALLOC, then->bytes[j], role.stream, role.attributes);
            if (role.pending)
                touch(self, TRACE_FREE_REQUESTED, 0, role.stream, 0, &made);
            self->next_list[count++] = made;
        }
    }
    struct made *list = self->list;
    self->list = self->next_list;
    self->next_list = list;
    self->list_count = count;
}

static const struct made *made_of(const struct learned *self, const struct learned_action *action)
{
    return action->reference == LEARNED_OF_STEP   ? &self->request[action->number]
           : action->reference == LEARNED_OF_LIST ? &self->list[action->number]
                                                  : &self->permanent[action->number];
}

static void act(struct learned *self, const struct learned_action *action, const uint64_t *bytes)
{
    switch (action->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        if (action->reference == LEARNED_OF_STEP)
            self->request[action->number] =
                make(self, action->kind, bytes[action->number], action->stream, action->attributes);
        else if (self->step < self->model->step_count)
            self->permanent[action->number] =
                make(self, action->kind, action->value, action->stream, action->attributes);
        return;
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED:
        touch(self, action->kind, action->flags, action->stream, action->attributes,
              made_of(self, action));
        return;
    case TRACE_USE:
        if (!self->one_stream)
            touch(self, action->kind, action->flags, action->stream, action->attributes,
                  made_of(self, action));
        return;
    case TRACE_KERNEL:
    case TRACE_RECORD:
    case TRACE_WAIT:
    case TRACE_SYNC:
        if (self->one_stream)
            return;
        break;
    case TRACE_TIME:
    case TRACE_MARK:
        if (self->lean)
            return;
        break;
    default:
        break;
    }
    struct trace_event event = {.kind = action->kind,
                                .flags = action->flags,
                                .stream = action->stream,
                                .attributes = keys_of(self, action->attributes),
                                .value = action->value};
    if (action->kind == TRACE_TIME)
        event.value = self->now_ns = self->begun_ns + action->value;
    if (action->kind == TRACE_MARK)
        event.value = text_of(self, action->value);
    emit(self, event);
}

/* The end of a step of a recording without such marks. */
static void mark_step(struct learned *self)
{
    struct trace_event mark = {.kind = TRACE_MARK, .flags = TRACE_STEP};
    if (trace_tables_add_text(&self->tables, "step", 4, &mark.value, NULL))
        self->failed = AR_HOST_MEMORY;
    emit(self, mark);
}

static void make_step(struct learned *self)
{
    const struct planned planned = take_planned(self);
    const struct learned_step *step = &self->model->steps[planned.step];
    fit_list(self, step);
    for (size_t i = 0; i < step->action_count; i++)
        act(self, &step->actions[i], planned.new_sizes ? self->bytes : step->bytes);
    if (!self->model->recording.marked && !self->lean)
        mark_step(self);
    for (size_t i = 0; i < step->after->count; i++)
        self->next_list[i] = step->out[i].from_step ? self->request[step->out[i].number]
                                                    : self->list[step->out[i].number];
    struct made *list = self->list;
    self->list = self->next_list;
    self->next_list = list;
    self->list_count = step->after->count;
    self->begun_ns = self->now_ns;
    self->last = planned.step;
    self->step++;
}

static enum ar_status next(struct trace_source *source, const struct trace_event **events,
                           size_t *count, struct ar_error *error)
{
    struct learned *self = learned_of(source);
    size_t at;
    enum ar_status status = AR_OK;
    if (self->lean && self->given) {
        self->given = false;
        *count = 0;
        return AR_OK;
    }
    self->count = 0;
    if (self->step < self->steps)
        make_step(self);
    self->given = self->count > 0;
    if (self->failed)
        return ar_error_set(error, self->failed, "%s: no host memory", source->info.name);
    *events = self->span;
    *count = self->count;
    if (self->lean || source->info.counted)
        return AR_OK;
    if (self->count)
        status = trace_check_span(&self->check, self->span, self->count, &at, error);
    else
        trace_check_finish(&self->check, &source->info);
    return status ? ar_error_prefix(error, status, "%s", source->info.name) : AR_OK;
}

/* ---- opening ---- */

static void restart(struct learned *self)
{
    const struct learned_model *model = self->model;
    self->step = self->next_id = self->begun_ns = self->now_ns = self->misfits = 0;
    self->last = self->slot_count = self->free_count = self->list_count = 0;
    self->plan_last = self->ahead_first = self->ahead_count = 0;
    self->plan_step = 0;
    self->given = false;
    ar_rng_seed(&self->rng, self->seed);
    for (size_t i = 0; i < model->step_count; i++)
        self->weights[i] = -ar_rng_log2(1 - ar_rng_unit(&self->rng));
    for (size_t i = 0; i <= model->class_count; i++)
        self->tails[i] = learned_tail_draw(model, &model->classes[i], &self->rng);
    if (self->lean || self->source.info.counted)
        return;
    trace_check_close(&self->check);
    trace_check_start(&self->check, &self->tables, true, model->recording.free_requested_final);
}

static enum ar_status rewind_source(struct trace_source *source, struct ar_error *error)
{
    (void)error;
    restart(learned_of(source));
    return AR_OK;
}

static void close_source(struct trace_source *source)
{
    struct learned *self = learned_of(source);
    trace_check_close(&self->check);
    trace_tables_close(&self->tables);
    void *const memory[] = {self->keys,       self->texts,      self->weights, self->span,
                            self->slots,      self->free_slots, self->request, self->list,
                            self->next_list,  self->permanent,  self->choice,  self->bytes,
                            self->list_slots, self->tails};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
    learned_model_close(self->owned);
    free(self);
}

static const struct trace_source_ops source_ops = {
    .next = next,
    .rewind = rewind_source,
    .close = close_source,
};

/* The most requests of a step, and the longest list. */
static void find_rooms(const struct learned_model *model, size_t *requests, size_t *list)
{
    for (size_t i = 0; i < model->step_count; i++) {
        if (model->steps[i].request_count > *requests)
            *requests = model->steps[i].request_count;
        if (model->steps[i].after->count > *list)
            *list = model->steps[i].after->count;
    }
}

/* Of a lean source: keys that only have a tag mean nothing to a policy. */
static void drop_tags(struct learned *self, size_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        const struct trace_attributes *keys = trace_tables_at(&self->model->recording.tables, i);
        self->keys[i] = keys->given & ~TRACE_GIVEN_TAG ? i : 0;
    }
}

static enum ar_status make_source(const struct learned_model *model, uint64_t steps, uint64_t seed,
                                  bool lean, struct learned **out, struct ar_error *error)
{
    const struct learned_recording *recording = &model->recording;
    struct learned *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %s", LEARNED_NAME);
    size_t keys = recording->tables.keys.count, requests = 0, list = 0;
    find_rooms(model, &requests, &list);
    self->source.ops = &source_ops;
    self->source.tables = lean ? &recording->tables : &self->tables;
    self->model = model;
    self->steps = steps;
    self->seed = seed;
    self->lean = lean;
    self->one_stream = lean && (recording->info.one_block_stream || recording->info.streams < 2);
    self->keys = calloc(keys + 1, sizeof *self->keys);
    self->texts = calloc(recording->tables.texts.count + 1, sizeof *self->texts);
    self->weights = calloc(model->step_count, sizeof *self->weights);
    self->choice = calloc(model->step_count, sizeof *self->choice);
    self->request = calloc(requests + 1, sizeof *self->request);
    self->bytes = calloc(requests + 1, sizeof *self->bytes);
    self->list = calloc(list + 1, sizeof *self->list);
    self->next_list = calloc(list + 1, sizeof *self->next_list);
    self->tails = calloc(model->class_count + 1, sizeof *self->tails);
    self->list_slots = calloc(list + 1, sizeof *self->list_slots);
    self->permanent = calloc(model->permanent_count + 1, sizeof *self->permanent);
    if (!self->keys || !self->texts || !self->weights || !self->choice || !self->request ||
        !self->bytes || !self->list || !self->next_list || !self->tails || !self->list_slots ||
        !self->permanent) {
        close_source(&self->source);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %s", LEARNED_NAME);
    }
    struct trace_info *info = &self->source.info;
    info->complete = true;
    info->streams = recording->info.streams;
    info->capacity_bytes = recording->info.capacity_bytes;
    memcpy(info->card, recording->info.card, sizeof info->card);
    memcpy(info->format, "generator", sizeof "generator");
    if (lean) {
        drop_tags(self, keys);
        info->counted = true;
        info->one_block_stream = self->one_stream;
        info->has_uses = recording->has_uses;
        info->has_split_frees = recording->info.has_split_frees;
        info->gpus = recording->info.gpus;
    } else {
        info->has_times = recording->timed;
    }
    restart(self);
    *out = self;
    return AR_OK;
}

enum ar_status learned_open(struct learned_model *model, const struct learned_values *values,
                            struct trace_source **out, struct ar_error *error)
{
    struct learned *self;
    enum ar_status status = make_source(model, values->steps, values->seed, false, &self, error);
    if (status) {
        learned_model_close(model);
        return status;
    }
    self->owned = model;
    *out = &self->source;
    return AR_OK;
}

enum ar_status learned_open_lean(const struct learned_model *model, uint64_t steps, uint64_t seed,
                                 struct trace_source **out, struct ar_error *error)
{
    struct learned *self;
    enum ar_status status = make_source(model, steps, seed, true, &self, error);
    if (!status)
        *out = &self->source;
    return status;
}

/* ---- what a lean source knows ---- */

size_t learned_slots(const struct trace_source *source)
{
    return ((const struct learned *)source)->slot_count;
}

bool learned_slot(const struct trace_source *source, size_t slot, struct learned_live *out)
{
    const struct learned *self = (const struct learned *)source;
    const struct slot *at = &self->slots[slot];
    *out =
        (struct learned_live){at->bytes, at->id, at->born,
                              trace_tables_at(&self->model->recording.tables, at->attributes)->tag};
    return at->live;
}

uint64_t learned_misfits(const struct trace_source *source)
{
    return ((const struct learned *)source)->misfits;
}

size_t learned_span(const struct trace_source *source)
{
    return ((const struct learned *)source)->count;
}

size_t learned_peek(struct trace_source *source, size_t ahead)
{
    struct learned *self = learned_of(source);
    while (self->ahead_count <= ahead)
        if (!plan(self))
            return LEARNED_NEW_SIZES;
    const struct planned *planned = &self->ahead[(self->ahead_first + ahead) % LEARNED_AHEAD];
    return planned->new_sizes ? LEARNED_NEW_SIZES : planned->step;
}

void learned_skip(struct trace_source *source, size_t count)
{
    struct learned *self = learned_of(source);
    for (; count; count--, self->step++)
        self->last = take_planned(self).step;
}

size_t learned_carried(struct trace_source *source, const uint32_t **slots, uint64_t *hash)
{
    struct learned *self = learned_of(source);
    for (size_t i = 0; i < self->list_count; i++)
        self->list_slots[i] = self->list[i].slot;
    *slots = self->list_slots;
    *hash = (*hash ^ self->model->steps[self->last].after->state) * 0x9e3779b97f4a7c15u;
    return self->list_count;
}
