#include "sim/twin/parts/player.h"

#include "allocators/base/array.h"
#include "allocators/policy.h"

const char *const player_purpose_names[PLAYER_PURPOSES] = {
    "activations", "weights", "gradients", "optimizer", "state", "blocks",
};

/* ---- open ------------------------------------------------------------------------------------ */

/* If all blocks of the workload are on one stream, that is stream 0 of the process. */
static enum ar_status open_streams(struct player *self, struct ar_error *error)
{
    const struct trace_info *info = &self->source->info;
    bool one = info->counted && info->one_block_stream;
    for (uint32_t i = 0; i < info->streams; i++) {
        AR_TRY_MEMORY(AR_ARRAY_REACH(self->streams, self->stream_count, i), error, "a workload");
        if (!self->one_stream && i != (one ? self->block_stream : 0))
            self->streams[i] = one ? twin_kernel_stream(self->part) : twin_stream(self->part);
    }
    return AR_OK;
}

enum ar_status player_open(struct player *self, struct twin_part *part, struct trace_source *source,
                           uint64_t repeat, bool one_stream, struct ar_error *error)
{
    *self =
        (struct player){.part = part, .source = source, .repeat = repeat, .one_stream = one_stream};
    AR_TRY(purposes_find(self, error));
    AR_TRY(trace_rewind(source, error));
    for (unsigned i = 0; i < PLAYER_PURPOSES; i++)
        self->owners[i] = twin_owner(part, player_purpose_names[i]);
    self->outside_owner = twin_owner(part, "outside");
    return open_streams(self, error);
}

void player_close(struct player *self)
{
    trace_close(self->source);
    free(self->blocks);
    free(self->purposes);
    free(self->streams);
    free(self->pools);
    *self = (struct player){0};
}

/* ---- one event ------------------------------------------------------------------------------- */

static uint32_t stream_of(const struct player *self, uint32_t stream)
{
    return stream < self->stream_count ? self->streams[stream] : 0;
}

static uint32_t pool_of(struct player *self, const struct trace_attributes *keys)
{
    if (!keys->pool || (keys->pool < 64 && self->region_pools >> keys->pool & 1))
        return 0;
    if (!AR_ARRAY_REACH(self->pools, self->pool_count, keys->pool))
        return 0;
    if (!self->pools[keys->pool])
        self->pools[keys->pool] = twin_pool(self->part, keys->mempool);
    return self->pools[keys->pool];
}

static struct player_block *block_at(struct player *self, uint32_t slot)
{
    return AR_ARRAY_REACH(self->blocks, self->block_count, slot) ? &self->blocks[slot] : NULL;
}

static const struct trace_attributes *keys_of(struct player *self, const struct trace_event *event)
{
    return trace_attributes_of(self->source, event->attributes);
}

static uint8_t purpose_of(const struct player *self, uint64_t id, const char *tag)
{
    uint8_t purpose = PLAYER_BLOCK;
    if (id < self->purpose_count)
        return self->purposes[id];
    (void)purposes_of_tag(tag, &purpose);
    return purpose;
}

/* What the program has asked for, without the request. */
static struct player_block *note_request(struct player *self, const struct trace_event *event)
{
    struct player_block *block = block_at(self, event->slot);
    if (!block)
        return NULL;
    const struct trace_attributes *keys = keys_of(self, event);
    *block = (struct player_block){
        .block = {.bytes = event->value, .pinned = keys->space == TRACE_SPACE_PINNED},
        .id = event->id,
        .stream = stream_of(self, event->stream),
        .pool = pool_of(self, keys),
        .tag = keys->tag,
        .purpose = purpose_of(self, event->id, keys->tag),
        .known = true,
    };
    return block;
}

static void ask(struct player *self, struct player_block *block, uint64_t alignment, bool may_fail)
{
    const struct twin_request request = {
        .bytes = block->block.bytes,
        .owner = self->owner_of ? self->owner_of[block->id] : self->owners[block->purpose],
        .tag = block->tag,
        .stream = block->stream,
        .pool = block->pool,
        .alignment = alignment,
        .may_fail = may_fail,
        .pinned = block->block.pinned,
    };
    twin_alloc(self->part, &request, &block->block);
}

static enum ar_status on_request(struct player *self, const struct trace_event *event,
                                 struct ar_error *error)
{
    struct player_block *block = note_request(self, event);
    AR_TRY_MEMORY(block, error, "a workload");
    ask(self, block, keys_of(self, event)->align, event->kind == TRACE_PROBE);
    struct trace_source *source = self->source;
    if (source->info.adaptive) {
        struct trace_served served = {.served = twin_served(self->part, &block->block)};
        served.granted_bytes = twin_granted_bytes(self->part, &block->block);
        served.address = twin_address(self->part, &block->block);
        trace_answer(source, event, &served);
    }
    return AR_OK;
}

static void on_free(struct player *self, const struct trace_event *event)
{
    struct player_block *block = block_at(self, event->slot);
    if (!block || !block->known)
        return;
    if (event->kind == TRACE_FREE_REQUESTED && event->stream != TRACE_NO_STREAM)
        twin_free_on(self->part, &block->block, stream_of(self, event->stream));
    else
        twin_free(self->part, &block->block);
    twin_free(self->part, &block->copy);
    block->known = block->away = false;
}

static void on_trim(struct player *self, const struct trace_event *event)
{
    const struct trace_attributes *keys = keys_of(self, event);
    uint32_t pool = pool_of(self, keys);
    if (!pool) {
        twin_trim(self->part);
        return;
    }
    twin_pool_end(self->part, pool);
    self->pools[keys->pool] = 0; /* a later pass has a pool of its own */
}

static uint64_t event_number(const struct player *self, uint64_t number)
{
    return ((uint64_t)self->part->index + 1) << 40 | number;
}

static void on_other(struct player *self, const struct trace_event *event)
{
    struct twin_part *part = self->part;
    uint32_t stream = stream_of(self, event->stream);
    const struct player_block *block;
    switch (event->kind) {
    case TRACE_USE:
        block = block_at(self, event->slot);
        if (block && block->known)
            twin_use(part, &block->block, stream);
        break;
    case TRACE_KERNEL:
        twin_kernel(part, stream, event->value);
        break;
    case TRACE_RECORD:
        twin_record(part, event_number(self, event->value), stream);
        break;
    case TRACE_WAIT:
        twin_wait(part, stream, event_number(self, event->value));
        break;
    case TRACE_SYNC:
        twin_sync(part);
        break;
    case TRACE_TRIM:
        on_trim(self, event);
        break;
    case TRACE_OUTSIDE:
        twin_outside(part, self->outside_owner, event->value);
        break;
    default:
        break;
    }
}

enum ar_status player_play(struct player *self, const struct trace_event *event,
                           struct ar_error *error)
{
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        return on_request(self, event, error);
    case TRACE_FREE_REQUESTED:
        on_free(self, event);
        return AR_OK;
    case TRACE_FREE_COMPLETED:
        if (event->flags & TRACE_WHOLE)
            on_free(self, event);
        return AR_OK;
    default:
        on_other(self, event);
        return AR_OK;
    }
}

/* ---- passes ---------------------------------------------------------------------------------- */

static enum ar_status next_event(struct player *self, const struct trace_event **event,
                                 struct ar_error *error)
{
    *event = NULL;
    if (!self->count)
        AR_TRY(trace_next(self->source, &self->events, &self->count, error));
    self->ended = !self->count;
    if (self->ended)
        return AR_OK;
    *event = self->events++;
    self->count--;
    self->played++;
    return AR_OK;
}

/* A step ends when the optimizer has stepped; what the program frees then, before it does anything
 * else, is of that step too: gradients and what the loop's variables held. What outlives steps is
 * freed when the program ends, which a trainer does not. `play`: not only noted. */
static enum ar_status finish_step(struct player *self, bool play, struct ar_error *error)
{
    if (self->source->info.adaptive) /* the next event depends on what follows */
        return AR_OK;
    for (;;) {
        enum ar_status status = AR_OK;
        if (!self->count)
            status = trace_next(self->source, &self->events, &self->count, error);
        if (status != AR_OK || !self->count)
            return status;
        const struct trace_event *event = self->events;
        if (trace_frees(event)) {
            uint8_t purpose =
                event->id < self->purpose_count ? self->purposes[event->id] : (uint8_t)PLAYER_BLOCK;
            if (purpose != PLAYER_GRADIENT && purpose != PLAYER_ACTIVATION)
                return AR_OK;
            if (play)
                on_free(self, event);
            else
                self->blocks[event->slot].known = false;
        } else if (event->kind < TRACE_TIME && event->kind != TRACE_FREE_COMPLETED) {
            return AR_OK;
        }
        self->events++;
        self->count--;
        self->played++;
    }
}

/* The blocks of the program at the begin of the step `repeat`, without any request. */
static enum ar_status skip_steps(struct player *self, struct ar_error *error)
{
    enum ar_status status = trace_rewind(self->source, error);
    self->count = 0;
    self->played = self->step = 0;
    self->ended = false;
    while (status == AR_OK && self->step + 1 < self->repeat) {
        const struct trace_event *event;
        status = next_event(self, &event, error);
        if (status != AR_OK || !event)
            return status;
        if (trace_requests(event)) {
            AR_TRY_MEMORY(note_request(self, event), error, "a workload");
        } else if (trace_frees(event)) {
            self->blocks[event->slot].known = false;
        }
        if (trace_ends_step(event)) {
            self->step++;
            status = finish_step(self, false, error);
        }
    }
    return status;
}

/* Whether the held block `old` can be the block that the program has at the begin of the step. */
static bool matches(const struct player_block *old, const struct player_block *wanted, bool same_id)
{
    if (!old->known || !wanted->known || wanted->block.held || wanted->away)
        return false;
    if (same_id)
        return old->id == wanted->id;
    return old->block.bytes == wanted->block.bytes && old->stream == wanted->stream &&
           old->pool == wanted->pool && old->block.pinned == wanted->block.pinned;
}

static void take_over(struct player_block *old, struct player_block *wanted)
{
    wanted->block = old->block;
    wanted->copy = old->copy;
    wanted->away = old->away;
    *old = (struct player_block){0};
}

/* By sizes: both lists are in the order of bytes, then of ids. */
static int by_bytes(const void *a, const void *b)
{
    const struct player_block *const *left = a, *const *right = b;
    uint64_t left_bytes = (*left)->block.bytes, right_bytes = (*right)->block.bytes;
    AR_ORDER(left_bytes, right_bytes);
    return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

static size_t list_known(struct player_block *blocks, size_t count, struct player_block **list)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (blocks[i].known && !blocks[i].away)
            list[found++] = &blocks[i];
    qsort(list, found, sizeof *list, by_bytes);
    return found;
}

static void match_sizes(struct player_block **olds, size_t old_count, struct player_block **wanted,
                        size_t wanted_count)
{
    for (size_t i = 0, j = 0; i < wanted_count && j < old_count;) {
        uint64_t wanted_bytes = wanted[i]->block.bytes, old_bytes = olds[j]->block.bytes;
        if (wanted[i]->block.held || wanted[i]->away || wanted_bytes < old_bytes) {
            i++;
        } else if (old_bytes < wanted_bytes || !olds[j]->known) {
            j++;
        } else {
            if (matches(olds[j], wanted[i], false))
                take_over(olds[j], wanted[i++]);
            j++;
        }
    }
}

/* Frees what the program has too much, and allocates what it lacks. */
static enum ar_status exchange(struct player *self, struct player_block *olds, size_t old_count,
                               struct ar_error *error)
{
    size_t room = old_count + self->block_count + 1;
    AR_FREED struct player_block **lists = malloc(2 * room * sizeof(struct player_block *));
    AR_TRY_MEMORY(lists, error, "a workload");
    for (size_t i = 0; i < old_count && i < self->block_count; i++)
        if (matches(&olds[i], &self->blocks[i], true))
            take_over(&olds[i], &self->blocks[i]);
    size_t old_known = list_known(olds, old_count, lists);
    size_t wanted = list_known(self->blocks, self->block_count, lists + room);
    match_sizes(lists, old_known, lists + room, wanted);
    for (size_t i = 0; i < old_count; i++) {
        twin_free(self->part, &olds[i].block);
        twin_free(self->part, &olds[i].copy);
    }
    for (size_t i = 0; i < wanted; i++) {
        struct player_block *block = lists[room + i];
        if (!block->block.held && !block->away)
            ask(self, block, 0, false);
    }
    return AR_OK;
}

/* Begins a pass at the step `repeat`. */
static enum ar_status begin_again(struct player *self, struct ar_error *error)
{
    size_t old_count = self->block_count;
    AR_FREED struct player_block *olds = self->blocks;
    self->blocks = NULL;
    self->block_count = 0;
    AR_TRY(skip_steps(self, error));
    return exchange(self, olds, old_count, error);
}

enum ar_status player_load(struct player *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    bool more;
    if (self->source->info.adaptive && !self->step)
        return player_step(self, UINT64_MAX, &more, error);
    while (status == AR_OK && self->played < self->load_end && !twin_over(self->part)) {
        const struct trace_event *event;
        status = next_event(self, &event, error);
        if (status != AR_OK || !event)
            break;
        self->in_step = true;
        status = player_play(self, event, error);
    }
    return status;
}

/* Begins a step: the one that follows, or that of a new pass. */
static enum ar_status begin_step(struct player *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    if (self->ended || (self->steps && self->step >= self->steps))
        status = begin_again(self, error);
    if (status == AR_OK && !self->count)
        status = trace_next(self->source, &self->events, &self->count, error);
    if (status != AR_OK || self->count)
        return status;
    /* The workload ended with its last step. */
    status = begin_again(self, error);
    return status == AR_OK && !self->count
               ? trace_next(self->source, &self->events, &self->count, error)
               : status;
}

/* Plays up to `most` of the events that were pulled, and the end of the step. */
static enum ar_status play_span(struct player *self, size_t most, bool *more,
                                struct ar_error *error)
{
    const struct trace_event *event = self->events, *end = event + most;
    enum ar_status status = AR_OK;
    for (; event != end && *more && status == AR_OK; event++) {
        bool completes = event->kind == TRACE_FREE_COMPLETED && !(event->flags & TRACE_WHOLE);
        if (completes || event->kind >= TRACE_TIME)
            continue;
        if (trace_ends_step(event))
            *more = false;
        else
            status = player_play(self, event, error);
    }
    size_t played = (size_t)(event - self->events);
    self->events = event;
    self->count -= played;
    self->played += played;
    return status;
}

enum ar_status player_step(struct player *self, uint64_t events, bool *more, struct ar_error *error)
{
    enum ar_status status = self->in_step ? AR_OK : begin_step(self, error);
    *more = true;
    while (status == AR_OK && *more && events && !twin_over(self->part)) {
        if (!self->count)
            status = trace_next(self->source, &self->events, &self->count, error);
        if (status != AR_OK)
            break;
        self->ended = !self->count;
        *more = !self->ended;
        size_t most = self->count < events ? self->count : (size_t)events;
        events -= most;
        status = play_span(self, most, more, error);
    }
    self->in_step = *more;
    if (status == AR_OK && !*more && !self->ended)
        status = finish_step(self, true, error);
    if (status != AR_OK || *more)
        return status;
    self->step += !self->ended;
    twin_step(self->part);
    return AR_OK;
}

enum ar_status player_to_mark(struct player *self, const char *label, uint64_t events, bool *more,
                              struct ar_error *error)
{
    *more = true;
    for (uint64_t i = 0; i < events && *more && !twin_over(self->part); i++) {
        const struct trace_event *event;
        AR_TRY(next_event(self, &event, error));
        if (!event)
            return ar_invalid(error, "the rest of the workload has no mark \"%.60s\"", label);
        if (trace_ends_step(event)) {
            self->step++;
            twin_step(self->part);
        }
        if (event->kind == TRACE_MARK)
            *more = strcmp(trace_text_of(self->source, event->value), label) != 0;
        else
            AR_TRY(player_play(self, event, error));
    }
    self->in_step = false;
    return AR_OK;
}

enum ar_status player_reset(struct player *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->block_count; i++) {
        twin_free(self->part, &self->blocks[i].block);
        twin_free(self->part, &self->blocks[i].copy);
    }
    free(self->blocks);
    self->blocks = NULL;
    self->block_count = self->count = 0;
    self->played = self->step = 0;
    self->ended = self->in_step = false;
    return trace_rewind(self->source, error);
}

/* ---- offload --------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct player_block *const *left = a, *const *right = b;
    return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

void player_each(struct player *self, unsigned purposes,
                 void (*take)(void *argument, struct player_block *block), void *argument)
{
    struct player_block **list = malloc((self->block_count + 1) * sizeof(struct player_block *));
    size_t count = 0;
    if (!list)
        return;
    for (size_t i = 0; i < self->block_count; i++)
        if (self->blocks[i].known && purposes >> self->blocks[i].purpose & 1)
            list[count++] = &self->blocks[i];
    qsort(list, count, sizeof *list, by_id);
    for (size_t i = 0; i < count; i++)
        take(argument, list[i]);
    free(list);
}

struct moving {
    struct player *player;
    bool pinned;
    uint32_t owner;
    size_t count;
};

static void move_off(void *argument, struct player_block *block)
{
    struct moving *moving = argument;
    struct twin_part *part = moving->player->part;
    if (!block->block.held || block->block.pinned)
        return;
    moving->count++;
    if (moving->pinned) {
        const struct twin_request request = {
            .bytes = block->block.bytes, .owner = moving->owner, .tag = block->tag, .pinned = true};
        twin_alloc(part, &request, &block->copy);
    }
    twin_free(part, &block->block);
    block->away = true;
}

static void move_on(void *argument, struct player_block *block)
{
    struct moving *moving = argument;
    if (!block->away)
        return;
    moving->count++;
    block->away = false;
    ask(moving->player, block, 0, false);
    twin_free(moving->player->part, &block->copy);
}

size_t player_offload(struct player *self, unsigned purposes, bool pinned)
{
    struct moving moving = {self, pinned, twin_owner(self->part, "offloaded copies"), 0};
    player_each(self, purposes, move_off, &moving);
    return moving.count;
}

size_t player_onload(struct player *self, unsigned purposes)
{
    struct moving moving = {self, false, 0, 0};
    player_each(self, purposes, move_on, &moving);
    return moving.count;
}

bool player_is_away(const struct player *self, unsigned purposes)
{
    for (size_t i = 0; i < self->block_count; i++)
        if (self->blocks[i].known && self->blocks[i].away &&
            purposes >> self->blocks[i].purpose & 1)
            return true;
    return false;
}
