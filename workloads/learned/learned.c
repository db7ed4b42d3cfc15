/* The source of `learned`: draws the next step and gives its blocks their ids and slots. */
#include "workloads/learned/learned.h"

#include "allocators/base/array.h"
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
    uint64_t steps;
    bool lean, one_stream; /* one_stream: streams and kernels do not matter */
    struct trace_tables tables;
    uint32_t *keys;  /* 1 + the new index of each of the recording's sets of keys; 0: not yet used;
                       in a lean source, the index itself */
    uint64_t *texts; /* the same of labels */
    struct trace_check check;
    struct learned_plan plan;

    struct learned_action *actions; /* of all steps, those that this source has events of */
    size_t *action_ends;            /* the place after the last one of each step */

    struct trace_event *span;
    size_t count, room;
    uint64_t step; /* the next one to generate */
    size_t last;   /* the recorded step that was generated last */
    size_t before; /* the same, or skipped */
    uint64_t next_id, begun_ns, now_ns, misfits;
    struct slot *slots;
    size_t slot_count, slot_room;
    uint32_t *free_slots;
    size_t free_count, free_room;
    struct made *request, *list, *next_list, *permanent;
    size_t list_count;
    uint32_t *list_slots;
    /* Of a lean source: the step of the request of each block carried out of the step `before`,
     * also if that was skipped. */
    uint32_t *births, *next_births;
    size_t birth_count;
    bool given; /* the span of a lean source was */
    enum ar_status failed;
};

/* ---- events ---- */

static void emit(struct learned *self, struct trace_event event)
{
    if (!AR_ARRAY_ADD(self->span, self->count, self->room, event))
        self->failed = AR_HOST_MEMORY;
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
        touch(self, action->kind, action->flags, action->stream, action->attributes,
              made_of(self, action));
        return;
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

/* As fit_list, for the births alone. */
static void fit_births(struct learned *self, const struct learned_step *step)
{
    const struct learned_list *now = self->model->steps[self->before].after, *then = step->before;
    size_t i = 0;
    if (!self->step || now->state == then->state)
        return;
    for (size_t j = 0; j < then->count;) {
        const struct learned_role *role = &then->roles[j];
        size_t have = 0, want = 0;
        while (i < self->birth_count && memcmp(&now->roles[i], role, sizeof *role) < 0)
            i++;
        while (i + have < self->birth_count && !memcmp(&now->roles[i + have], role, sizeof *role))
            have++;
        while (j + want < then->count && !memcmp(&then->roles[j + want], role, sizeof *role))
            want++;
        for (; have > want; have--)
            i++;
        for (; have; have--, want--)
            self->next_births[j++] = self->births[i++];
        for (; want; want--)
            self->next_births[j++] = (uint32_t)self->step;
    }
    uint32_t *births = self->births;
    self->births = self->next_births;
    self->next_births = births;
}

static void follow_births(struct learned *self, const struct learned_step *step)
{
    fit_births(self, step);
    for (size_t i = 0; i < step->after->count; i++)
        self->next_births[i] =
            step->out[i].from_step ? (uint32_t)self->step : self->births[step->out[i].number];
    uint32_t *births = self->births;
    self->births = self->next_births;
    self->next_births = births;
    self->birth_count = step->after->count;
}

static struct learned_planned take_step(struct learned *self)
{
    const struct learned_planned planned = learned_plan_take(&self->plan);
    const struct learned_step *steps = self->model->steps;
    self->misfits +=
        self->step && steps[self->before].after->state != steps[planned.step].before->state;
    if (self->lean)
        follow_births(self, &steps[planned.step]);
    self->before = planned.step;
    return planned;
}

static void make_step(struct learned *self)
{
    const struct learned_planned planned = take_step(self);
    const struct learned_step *step = &self->model->steps[planned.step];
    fit_list(self, step);
    const uint64_t *bytes = planned.new_sizes ? self->plan.bytes : step->bytes;
    for (size_t i = planned.step ? self->action_ends[planned.step - 1] : 0;
         i < self->action_ends[planned.step]; i++)
        act(self, &self->actions[i], bytes);
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
    struct learned *self = (struct learned *)source;
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
    return ar_error_prefix(error, status, "%s", source->info.name);
}

/* ---- opening ---- */

static void restart(struct learned *self)
{
    const struct learned_model *model = self->model;
    self->step = self->next_id = self->begun_ns = self->now_ns = self->misfits = 0;
    self->before = self->last = self->slot_count = self->free_count = self->list_count = 0;
    self->birth_count = 0;
    self->given = false;
    learned_plan_restart(&self->plan);
    if (self->lean || self->source.info.counted)
        return;
    trace_check_close(&self->check);
    trace_check_start(&self->check, &self->tables, true, model->recording.free_requested_final);
}

static enum ar_status rewind_source(struct trace_source *source, struct ar_error *error AR_UNUSED)
{
    restart((struct learned *)source);
    return AR_OK;
}

static void close_source(struct trace_source *source)
{
    struct learned *self = (struct learned *)source;
    trace_check_close(&self->check);
    trace_tables_close(&self->tables);
    void *const memory[] = {self->actions, self->action_ends, self->keys,       self->texts,
                            self->span,    self->slots,       self->free_slots, self->request,
                            self->list,    self->next_list,   self->permanent,  self->list_slots,
                            self->births,  self->next_births};
    for (size_t i = 0; i < AR_COUNT(memory); i++)
        free(memory[i]);
    learned_plan_close(&self->plan);
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
        AR_RAISE(*requests, model->steps[i].request_count);
        AR_RAISE(*list, model->steps[i].after->count);
    }
}

/* Whether the source has events of an action. */
static bool has_events_of(const struct learned *self, const struct learned_action *action)
{
    switch (action->kind) {
    case TRACE_TIME:
    case TRACE_MARK:
        return !self->lean;
    case TRACE_USE:
    case TRACE_KERNEL:
    case TRACE_RECORD:
    case TRACE_WAIT:
    case TRACE_SYNC:
        return !self->one_stream;
    default:
        return true;
    }
}

static bool choose_actions(struct learned *self)
{
    const struct learned_model *model = self->model;
    size_t count = 0;
    self->actions = malloc((model->recording.event_count + 1) * sizeof *self->actions);
    self->action_ends = malloc(model->step_count * sizeof *self->action_ends);
    if (!self->actions || !self->action_ends)
        return false;
    for (size_t step = 0; step < model->step_count; step++) {
        for (size_t i = 0; i < model->steps[step].action_count; i++)
            if (has_events_of(self, &model->steps[step].actions[i]))
                self->actions[count++] = model->steps[step].actions[i];
        self->action_ends[step] = count;
    }
    return true;
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
    AR_TRY_MEMORY(self, error, "%s", LEARNED_NAME);
    size_t keys = recording->tables.keys.count, requests = 0, list = 0;
    find_rooms(model, &requests, &list);
    self->source.ops = &source_ops;
    self->source.tables = lean ? &recording->tables : &self->tables;
    self->model = model;
    self->steps = steps;
    self->lean = lean;
    self->one_stream = lean && (recording->info.one_block_stream || recording->info.streams < 2);
    self->keys = calloc(keys + 1, sizeof *self->keys);
    self->texts = calloc(recording->tables.texts.count + 1, sizeof *self->texts);
    self->request = calloc(requests + 1, sizeof *self->request);
    self->list = calloc(list + 1, sizeof *self->list);
    self->next_list = calloc(list + 1, sizeof *self->next_list);
    self->list_slots = calloc(list + 1, sizeof *self->list_slots);
    self->births = calloc(list + 1, sizeof *self->births);
    self->next_births = calloc(list + 1, sizeof *self->next_births);
    self->permanent = calloc(model->permanent_count + 1, sizeof *self->permanent);
    bool planned = learned_plan_open(&self->plan, model, seed);
    if (!planned || !choose_actions(self) || !self->keys || !self->texts || !self->request ||
        !self->list || !self->next_list || !self->list_slots || !self->births ||
        !self->next_births || !self->permanent) {
        close_source(&self->source);
        return ar_no_memory(error, "%s", LEARNED_NAME);
    }
    struct trace_info *info = &self->source.info;
    if (lean) /* a generator has the name of its spec */
        memcpy(info->name, recording->info.name, sizeof info->name);
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
        info->steps = steps;
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
    AR_TRY(make_source(model, steps, seed, true, &self, error));
    *out = &self->source;
    return AR_OK;
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
    const struct learned_planned *planned =
        learned_plan_peek(&((struct learned *)source)->plan, ahead);
    return planned && !planned->new_sizes ? planned->step : LEARNED_NEW_SIZES;
}

void learned_skip(struct trace_source *source, size_t count)
{
    struct learned *self = (struct learned *)source;
    for (; count; count--, self->step++)
        (void)take_step(self);
}

void learned_settle(struct trace_source *source)
{
    struct learned *self = (struct learned *)source;
    for (size_t i = 0; i < self->list_count && i < self->birth_count; i++)
        self->slots[self->list[i].slot].born = self->births[i];
}

size_t learned_carried(struct trace_source *source, const uint32_t **slots, uint64_t *hash)
{
    struct learned *self = (struct learned *)source;
    for (size_t i = 0; i < self->list_count; i++)
        self->list_slots[i] = self->list[i].slot;
    *slots = self->list_slots;
    *hash = (*hash ^ self->model->steps[self->last].after->state) * 0x9e3779b97f4a7c15u;
    return self->list_count;
}
