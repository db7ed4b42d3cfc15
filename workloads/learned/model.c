/* Makes a model: compiles the recorded steps. */
#include "workloads/learned/model.h"

enum memory { OF_ACTIONS, OF_BYTES, OF_FIXED, OF_ROLES, OF_LIST_BYTES, OF_OUT };

const char *learned_order_name(enum learned_order order)
{
    static const char *const names[] = {"repeat", "period", "follow", "replay"};
    return names[order];
}

/* The last step in which the block exists; a free that is never completed completes at once. */
static uint32_t end_of(const struct learned_block *block)
{
    return block->completed == LEARNED_NEVER ? block->freed : block->completed;
}

/* A carried block in the list at the end of a step; sorted by role, then by age. */
struct entry {
    struct learned_role role;
    uint32_t block;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    int order = memcmp(&one->role, &other->role, sizeof one->role);
    return order ? order : (one->block > other->block) - (one->block < other->block);
}

/* The blocks that exist after step `step`, of the candidates `carried`. */
static size_t list_blocks(const struct learned_model *model, uint32_t step, struct entry *carried,
                          size_t count)
{
    const struct learned_recording *recording = &model->recording;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct learned_block *block = &recording->blocks[carried[i].block];
        if (end_of(block) != LEARNED_NEVER && end_of(block) <= step)
            continue;
        carried[kept] = carried[i];
        carried[kept++].role =
            (struct learned_role){block->attributes, block->stream, block->freed <= step, 0,
                                  model->sized ? block->bytes : 0};
    }
    qsort(carried, kept, sizeof *carried, compare_entries);
    return kept;
}

/* The number of entries of all lists together, which bounds their memory. */
static size_t count_entries(const struct learned_model *model)
{
    const struct learned_recording *recording = &model->recording;
    size_t count = 1;
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        uint32_t end = end_of(block);
        if (model->fates[i] == LEARNED_CARRIED)
            count += (end == LEARNED_NEVER ? recording->step_count : end) - block->born;
    }
    return count;
}

/* Where each block is found by the events of the present step. */
struct where {
    uint8_t reference;
    uint32_t number;
};

/* Fills the lists, and the references of blocks as needed, step by step. */
struct compiler {
    struct learned_model *model;
    struct where *where; /* of each block */
    struct entry *carried;
    size_t carried_count, list_used, byte_used, action_used;
    struct texts states; /* the roles of a list as bytes */
    uint64_t begun_ns, now_ns;
    uint32_t permanent;
};

static struct learned_action action_of(struct compiler *self, const struct learned_event *kept)
{
    const struct learned_recording *recording = &self->model->recording;
    const struct trace_event *event = &kept->event;
    struct learned_action action = {.kind = event->kind,
                                    .flags = event->flags,
                                    .stream = event->stream,
                                    .attributes = event->attributes,
                                    .value = event->value};
    if (trace_kind_has_block(event->kind)) {
        action.reference = self->where[kept->block].reference;
        action.number = self->where[kept->block].number;
        if (event->kind == TRACE_FREE_REQUESTED && !recording->free_requested_final &&
            recording->blocks[kept->block].completed == LEARNED_NEVER) {
            action.kind = TRACE_FREE_COMPLETED;
            action.flags = TRACE_WHOLE;
        }
    }
    if (event->kind == TRACE_TIME) {
        self->now_ns = event->value;
        action.value = event->value - self->begun_ns;
    }
    return action;
}

static bool compile_actions(struct compiler *self, size_t number)
{
    struct learned_model *model = self->model;
    const struct learned_recording *recording = &model->recording;
    struct learned_step *step = &model->steps[number];
    struct learned_action *actions =
        (struct learned_action *)model->memory[OF_ACTIONS] + self->action_used;
    uint64_t *bytes = (uint64_t *)model->memory[OF_BYTES] + self->byte_used;
    step->actions = actions;
    step->bytes = bytes;
    for (size_t i = number ? recording->step_ends[number - 1] : 0; i < recording->step_ends[number];
         i++) {
        const struct learned_event *kept = &recording->events[i];
        if (kept->event.kind == TRACE_ALLOC || kept->event.kind == TRACE_PROBE) {
            bool once = model->fates[kept->block] == LEARNED_PERMANENT;
            self->where[kept->block] =
                once ? (struct where){LEARNED_OF_ALL, self->permanent++}
                     : (struct where){LEARNED_OF_STEP, (uint32_t)step->request_count};
            if (!once)
                bytes[step->request_count++] = kept->event.value;
            if (model->fates[kept->block] == LEARNED_CARRIED)
                self->carried[self->carried_count++].block = kept->block;
        } else if (kept->event.kind == TRACE_USE && model->fates[kept->block] == LEARNED_LEAKED &&
                   recording->blocks[kept->block].born != number) {
            continue;
        }
        actions[step->action_count++] = action_of(self, kept);
    }
    self->action_used += step->action_count;
    self->byte_used += step->request_count;
    self->begun_ns = self->now_ns;
    return true;
}

/* The list after step `number`, and where its entries were before. */
static bool compile_list(struct compiler *self, size_t number, struct ar_error *error)
{
    struct learned_model *model = self->model;
    struct learned_list *list = &model->lists[number + 1];
    struct learned_out *out = (struct learned_out *)model->memory[OF_OUT] + self->list_used;
    list->roles = (struct learned_role *)model->memory[OF_ROLES] + self->list_used;
    list->bytes = (uint64_t *)model->memory[OF_LIST_BYTES] + self->list_used;
    model->steps[number].out = out;
    self->carried_count = list_blocks(model, (uint32_t)number, self->carried, self->carried_count);
    list->count = self->carried_count;
    self->list_used += list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct where *where = &self->where[self->carried[i].block];
        out[i] = (struct learned_out){where->reference == LEARNED_OF_STEP, where->number};
        *where = (struct where){LEARNED_OF_LIST, (uint32_t)i};
        list->roles[i] = self->carried[i].role;
        list->bytes[i] = model->recording.blocks[self->carried[i].block].bytes;
    }
    return texts_intern(&self->states, (const char *)list->roles, list->count * sizeof *list->roles,
                        &list->state, error) == AR_OK;
}

static void free_compiled(struct learned_model *model)
{
    for (size_t i = 0; i < AR_COUNT(model->memory); i++)
        free(model->memory[i]);
    free(model->lists);
    free(model->steps);
}

static bool compile(struct learned_model *model, struct ar_error *error)
{
    const struct learned_recording *recording = &model->recording;
    size_t entries = count_entries(model), blocks = recording->block_count + 1;
    struct compiler self = {.model = model,
                            .where = calloc(blocks, sizeof *self.where),
                            .carried = calloc(blocks, sizeof *self.carried)};
    void **memory = model->memory;
    free_compiled(model);
    model->lists = calloc(model->step_count + 1, sizeof *model->lists);
    model->steps = calloc(model->step_count, sizeof *model->steps);
    memory[OF_ACTIONS] = calloc(recording->event_count + 1, sizeof(struct learned_action));
    memory[OF_BYTES] = calloc(blocks, sizeof(uint64_t));
    memory[OF_FIXED] = calloc(blocks, 1);
    memory[OF_ROLES] = calloc(entries, sizeof(struct learned_role));
    memory[OF_LIST_BYTES] = calloc(entries, sizeof(uint64_t));
    memory[OF_OUT] = calloc(entries, sizeof(struct learned_out));
    bool done = self.where && self.carried && model->lists && model->steps;
    for (int i = OF_ACTIONS; i <= OF_OUT; i++)
        done = done && memory[i];
    model->bytes = memory[OF_BYTES];
    model->fixed = memory[OF_FIXED];
    done = done && texts_intern(&self.states, "", 0, &model->lists[0].state, error) == AR_OK;
    for (size_t i = 0; done && i < model->step_count; i++) {
        model->steps[i].before = &model->lists[i];
        model->steps[i].after = &model->lists[i + 1];
        model->steps[i].duration_ns = recording->step_ns[i];
        done = compile_actions(&self, i) && compile_list(&self, i, error);
    }
    free(self.where);
    free(self.carried);
    texts_close(&self.states);
    return done;
}

/* The number of different lists in the steady part. They are numbered in the order of first use. */
static size_t count_lists(const struct learned_model *model)
{
    uint32_t seen = 0;
    size_t count = 1;
    for (size_t i = 0; i <= model->step_count; i++) {
        count += i > model->warmup && model->lists[i].state > seen;
        AR_RAISE(seen, model->lists[i].state);
    }
    return count;
}

/* Sizes count in lists if at most half of the steady steps then leave a list that is new, so that a
 * block is not replaced by one of another size. They do not if carried blocks have a new size in
 * nearly each step. */
static bool compile_lists(struct learned_model *model, struct ar_error *error)
{
    model->sized = true;
    if (!compile(model, error))
        return false;
    model->sized = 2 * count_lists(model) <= model->step_count - model->warmup + 1;
    return model->sized || compile(model, error);
}

/* A replay in the recorded order keeps each block at its size, and no block that the steady part
 * makes outlives the return to its first step. */
static bool compile_replay(struct learned_model *model, struct ar_error *error)
{
    if (model->order != LEARNED_REPLAY)
        return true;
    for (size_t i = 0; i < model->recording.block_count; i++)
        if (model->fates[i] == LEARNED_PERMANENT &&
            model->recording.blocks[i].born >= model->warmup) {
            model->fates[i] = LEARNED_CARRIED;
            model->permanent_count--;
        }
    model->sized = true;
    return compile(model, error);
}

enum ar_status learned_model_make(struct trace_source *source, const struct learned_watch *watch,
                                  struct learned_model **out, struct ar_error *error)
{
    struct learned_model *model = calloc(1, sizeof *model);
    AR_TRY_MEMORY(model, error, "a model of a recording");
    enum ar_status status = learned_recording_read(source, watch, &model->recording, error);
    if (status) {
        learned_model_close(model);
        return status;
    }
    model->step_count = model->recording.step_count;
    model->fates = calloc(model->recording.block_count + 1, 1);
    if (!model->fates || !learned_find_fates(model) || !compile_lists(model, error) ||
        !learned_find_order(model) || !learned_find_sizes(model) || !compile_replay(model, error)) {
        learned_model_close(model);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to learn from %s",
                            source->info.name);
    }
    *out = model;
    return AR_OK;
}

void learned_model_close(struct learned_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; model->classes && i <= model->class_count; i++) {
        free(model->classes[i].neighbours);
        free(model->classes[i].members);
        free(model->classes[i].grain);
        free(model->classes[i].mean);
    }
    free(model->classes);
    free(model->groups);
    free(model->fates);
    free_compiled(model);
    learned_recording_close(&model->recording);
    free(model);
}
