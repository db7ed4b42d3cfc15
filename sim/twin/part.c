/* What parts can do (part.h), and the list of their kinds (parts.def). */
#include "sim/twin/part.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/policy.h"
#include "sim/twin/run.h"

#define TWIN_PART(name) extern const struct twin_part_ops name;
#include "sim/twin/parts.def"
#undef TWIN_PART

static const struct twin_part_ops *const kinds[] = {
#define TWIN_PART(name) &name,
#include "sim/twin/parts.def"
#undef TWIN_PART
};

const struct twin_part_ops *twin_part_at(size_t index)
{
    return index < AR_COUNT(kinds) ? kinds[index] : NULL;
}

const struct twin_part_ops *twin_part_find(const char *kind)
{
    for (size_t i = 0; i < AR_COUNT(kinds); i++)
        if (strcmp(kinds[i]->kind, kind) == 0)
            return kinds[i];
    return NULL;
}

/* The process, on its card; NULL: the run is over. */
static struct twin_process *ready(struct twin_part *self)
{
    struct twin_process *process = self->process;
    if (!process->begun)
        twin_process_begin(process);
    if (!process->run->over && process->ended)
        (void)twin_run_error(process->run, AR_INVALID, "%s: process %s has ended",
                             process->run->call ? process->run->call->text : self->name,
                             process->setup->name);
    return process->run->over ? NULL : process;
}

/* The same with everything replayed. */
static struct twin_process *settled(struct twin_part *self)
{
    struct twin_process *process = ready(self);
    if (process)
        twin_process_settle(process);
    return process && !process->run->over ? process : NULL;
}

/* The feed with room for one more event; NULL: the run is over. */
static struct feed *room(struct twin_part *self)
{
    struct twin_process *process = ready(self);
    if (process && feed_full(&process->feed))
        twin_process_settle(process);
    return process && !process->run->over ? &process->feed : NULL;
}

static void check(struct twin_part *self, enum ar_status status, const struct ar_error *error)
{
    if (status != AR_OK)
        (void)twin_run_error(self->process->run, status, "part %s: %s", self->name, error->text);
}

uint32_t twin_owner(struct twin_part *self, const char *purpose)
{
    const struct twin_owner_key key = {self->process->number, self->index, TWIN_OWNER_PART, 0};
    return twin_process_account(self->process, &key, purpose);
}

/* ---- requests -------------------------------------------------------------------------------- */

static uint8_t pool_bits(const struct twin_process *process, uint32_t pool)
{
    return pool < process->pool_room ? process->pool_bits[pool] : 0;
}

void twin_alloc(struct twin_part *self, const struct twin_request *request, struct twin_block *out)
{
    *out = (struct twin_block){
        .bytes = request->bytes, .stream = request->stream, .pinned = request->pinned};
    struct feed *feed = request->bytes ? room(self) : NULL;
    if (!feed)
        return;
    struct twin_process *process = self->process;
    uint32_t pool = request->pool || request->pinned ? request->pool : process->region_pool;
    const struct feed_block block = {.bytes = request->bytes,
                                     .tag = request->tag,
                                     .account = request->owner,
                                     .born = (uint32_t)process->run->number,
                                     .pinned = request->pinned};
    const struct feed_keys keys = {.pool = pool,
                                   .alignment = request->alignment,
                                   .pinned = request->pinned,
                                   .bits = pool_bits(process, pool)};
    struct ar_error error;
    enum ar_status status =
        feed_request(feed, &block, &keys, request->stream, request->may_fail, &out->slot, &error);
    check(self, status, &error);
    out->held = status == AR_OK;
    if (out->held && request->pinned)
        twin_process_pin(process, request->owner, request->bytes, 0);
}

void twin_alloc_for(struct twin_part *self, uint64_t bytes, const char *purpose,
                    struct twin_block *out)
{
    const struct twin_request request = {.bytes = bytes, .owner = twin_owner(self, purpose)};
    twin_alloc(self, &request, out);
}

static void free_block(struct twin_part *self, struct twin_block *block, uint32_t stream)
{
    if (!block->held)
        return;
    block->held = false;
    struct feed *feed = room(self);
    if (!feed)
        return;
    struct ar_error error;
    if (block->pinned)
        twin_process_pin(self->process, feed->blocks[block->slot].account, 0, block->bytes);
    check(self, feed_free(feed, block->slot, stream, stream == block->stream, &error), &error);
}

void twin_free(struct twin_part *self, struct twin_block *block)
{
    free_block(self, block, block->stream);
}

void twin_free_on(struct twin_part *self, struct twin_block *block, uint32_t stream)
{
    free_block(self, block, stream);
}

static struct trace_event *add(struct twin_part *self, unsigned kind)
{
    struct feed *feed = room(self);
    return feed ? feed_add(feed, kind) : NULL;
}

void twin_use(struct twin_part *self, const struct twin_block *block, uint32_t stream)
{
    struct trace_event *event = block->held ? add(self, TRACE_USE) : NULL;
    if (event) {
        event->slot = block->slot;
        event->stream = stream;
    }
}

/* The block as it is after the replay; NULL: it is not live. */
static const struct feed_block *live(struct twin_part *self, const struct twin_block *block)
{
    struct twin_process *process = block->held ? settled(self) : NULL;
    if (!process)
        return NULL;
    const struct feed_block *known = &process->feed.blocks[block->slot];
    return known->state == FEED_LIVE ? known : NULL;
}

bool twin_served(struct twin_part *self, struct twin_block *block)
{
    if (live(self, block))
        return true;
    twin_free(self, block);
    return false;
}

uint64_t twin_granted_bytes(struct twin_part *self, const struct twin_block *block)
{
    const struct feed_block *known = live(self, block);
    return known ? known->granted_bytes : 0;
}

uint64_t twin_address(struct twin_part *self, const struct twin_block *block)
{
    const struct feed_block *known = live(self, block);
    return known ? known->address : 0;
}

/* ---- streams, pools, outside ----------------------------------------------------------------- */

uint32_t twin_stream(struct twin_part *self)
{
    self->process->several_block_streams = true;
    return self->process->streams++;
}

uint32_t twin_kernel_stream(struct twin_part *self)
{
    return self->process->streams++;
}

void twin_kernel(struct twin_part *self, uint32_t stream, uint64_t ns)
{
    struct trace_event *event = add(self, TRACE_KERNEL);
    if (event) {
        event->stream = stream;
        event->value = ns;
    }
}

static void at_event(struct twin_part *self, unsigned kind, uint32_t stream, uint64_t number)
{
    struct trace_event *event = add(self, kind);
    if (event) {
        event->stream = stream;
        event->value = number;
    }
}

void twin_record(struct twin_part *self, uint64_t number, uint32_t stream)
{
    at_event(self, TRACE_RECORD, stream, number);
}

void twin_wait(struct twin_part *self, uint32_t stream, uint64_t number)
{
    at_event(self, TRACE_WAIT, stream, number);
}

void twin_sync(struct twin_part *self)
{
    struct trace_event *event = add(self, TRACE_SYNC);
    if (event)
        event->stream = TRACE_NO_STREAM;
}

/* Inside of use_mem_pool, empty_cache releases nothing of the common pool before 2.13. */
void twin_trim(struct twin_part *self)
{
    if (!self->process->region_pool || twin_trims_in_pool(self->process))
        (void)add(self, TRACE_TRIM);
}

void twin_step(struct twin_part *self)
{
    struct trace_event *event = add(self, TRACE_MARK);
    if (event)
        event->flags = TRACE_STEP;
}

uint32_t twin_pool(struct twin_part *self, uint8_t mempool)
{
    struct twin_process *process = self->process;
    uint32_t pool = ++process->pools;
    size_t count = process->pool_room;
    uint8_t *bits = ar_array_reach(process->pool_bits, &count, pool, sizeof *bits);
    if (!bits) {
        (void)twin_no_memory(process->run);
        return 0;
    }
    process->pool_bits = bits;
    process->pool_room = count;
    bits[pool] = mempool;
    return pool;
}

void twin_pool_end(struct twin_part *self, uint32_t pool)
{
    /* In a trace, the end of a graph's pool releases the cache too. Here only empty_cache does. */
    if (!pool_bits(self->process, pool)) {
        const struct twin_process *process = settled(self);
        if (process)
            ar_policy_end_pool(process->policy, pool);
        if (process && process->pinned)
            ar_policy_end_pool(process->pinned, pool);
        return;
    }
    struct feed *feed = room(self);
    if (!feed)
        return;
    const struct feed_keys keys = {.pool = pool, .bits = pool_bits(self->process, pool)};
    struct ar_error error;
    uint32_t index;
    enum ar_status status = feed_keys_index(feed, &keys, &index, &error);
    check(self, status, &error);
    if (status == AR_OK)
        feed_add(feed, TRACE_TRIM)->attributes = index;
}

void twin_outside(struct twin_part *self, uint32_t owner, uint64_t bytes)
{
    struct twin_process *process = ready(self);
    if (process)
        twin_process_outside(process, owner, bytes);
}

void twin_blocks_alloc(struct twin_part *self, struct twin_blocks *list,
                       const struct twin_request *request)
{
    if (!ar_array_make_room(&list->items, list->count, &list->room, sizeof *list->items)) {
        (void)twin_no_memory(self->process->run);
        return;
    }
    twin_alloc(self, request, &list->items[list->count++]);
}

void twin_blocks_free(struct twin_part *self, struct twin_blocks *list)
{
    while (list->count)
        twin_free(self, &list->items[--list->count]);
}

void twin_blocks_close(struct twin_blocks *list)
{
    free(list->items);
    *list = (struct twin_blocks){0};
}

/* ---- questions ------------------------------------------------------------------------------- */

void twin_card(struct twin_part *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct twin_process *process = settled(self);
    *free_bytes = 0;
    *total_bytes = self->process->run->total_bytes;
    if (!process)
        return;
    twin_process_tell(process);
    ar_backing_memory(process->device->backing, free_bytes, total_bytes);
}

const char *twin_card_name(struct twin_part *self)
{
    return self->process->run->card_name;
}

struct twin_pool_state twin_pool_state(struct twin_part *self)
{
    const struct twin_process *process = settled(self);
    if (!process)
        return (struct twin_pool_state){0};
    const struct ar_policy_totals *totals = &process->policy->totals;
    return (struct twin_pool_state){
        .live_bytes = totals->live_bytes,
        .allocated_bytes = totals->granted_bytes,
        .reserved_bytes = totals->reserved_bytes,
        .peak_allocated_bytes = process->watch.allocated_bytes,
        .peak_reserved_bytes = process->watch.reserved_bytes,
    };
}

void twin_reset_peaks(struct twin_part *self)
{
    struct twin_process *process = settled(self);
    if (!process)
        return;
    process->watch.allocated_bytes = process->policy->totals.granted_bytes;
    process->watch.reserved_bytes = process->policy->totals.reserved_bytes;
}

bool twin_over(struct twin_part *self)
{
    return self->process->run->over;
}

/* ---- other parts ----------------------------------------------------------------------------- */

static struct twin_part *part_of(const struct twin_process *process, const char *name)
{
    for (struct twin_part *part = process->parts; part; part = part->next)
        if (strcmp(part->name, name) == 0)
            return part;
    return NULL;
}

struct twin_part *twin_peer(struct twin_part *self, const char *name, struct ar_error *error)
{
    struct twin_run *run = self->process->run;
    struct twin_part *found = part_of(self->process, name), *same_card = NULL, *other = NULL;
    for (size_t i = 0; i < run->process_count && !found; i++) {
        struct twin_part *part = part_of(&run->processes[i], name);
        if (part && !same_card && run->processes[i].card == self->card)
            same_card = part;
        if (part && (!other || part->rank == self->rank % part->ranks))
            other = part;
    }
    if (!found)
        found = same_card ? same_card : other;
    if (!found)
        (void)ar_invalid(error, "part %s: there is no part \"%.60s\"", self->name, name);
    return found;
}

enum ar_status twin_send(struct twin_part *self, struct twin_part *peer, uint64_t bytes, bool last,
                         bool ipc, struct ar_error *error)
{
    bool same = peer->process == self->process;
    if (!peer->ops->receive)
        return ar_error_set(error, AR_UNSUPPORTED, "part %s: a part of kind %s receives no weights",
                            self->name, peer->ops->kind);
    if (ipc && peer->card != self->card)
        return ar_invalid(error,
                          "part %s: %s is on another card, which cannot map this one's memory",
                          self->name, peer->name);
    if (peer->card != self->card && self->rank >= peer->ranks)
        return AR_OK;
    if (!same)
        twin_process_settle(self->process);
    enum ar_status status = peer->ops->receive(peer, bytes, same || ipc, last, error);
    if (!same)
        twin_process_settle(peer->process);
    return status;
}

/* ---- reports --------------------------------------------------------------------------------- */

void twin_figure(struct twin_part *self, const char *name, double value)
{
    struct twin_run *run = self->process->run;
    const struct twin_figure figure = {
        .part = self->index, .rank = self->rank, .name = name, .value = value, .phase = run->phase};
    for (size_t i = run->figure_count; i-- > 0;) {
        struct twin_figure *known = &run->figures[i];
        if (known->part != figure.part || known->rank != figure.rank || known->name != figure.name)
            continue;
        if (known->phase == figure.phase)
            known->value = value;
        if (known->value == value)
            return;
        break;
    }
    if (!AR_ARRAY_ADD(run->figures, run->figure_count, run->figure_room, figure))
        (void)twin_no_memory(run);
}

void twin_say(struct twin_part *self, const char *format, ...)
{
    struct twin_run *run = self->process->run;
    char text[512];
    AR_PRINT(text, sizeof text, format);
    const struct twin_line line = {run->phase, self->index, self->rank, twin_text(run, text)};
    if (!line.text)
        return;
    if (!AR_ARRAY_ADD(run->lines, run->line_count, run->line_room, line))
        (void)twin_no_memory(run);
}

enum ar_status twin_repeats(const struct twin_call *call, uint64_t *times, struct ar_error *error)
{
    static const uint64_t most = 1000000;
    if (!call->argument_count)
        return AR_OK;
    enum ar_status status = ar_count_parse(call->arguments[0], times, error);
    return status || *times <= most
               ? status
               : ar_invalid(error, "\"%s\": write 0 to %" PRIu64, call->arguments[0], most);
}

enum ar_status twin_refuse(struct twin_part *self AR_UNUSED, struct ar_error *error,
                           const char *format, ...)
{
    char text[900];
    AR_PRINT(text, sizeof text, format);
    return ar_error_set(error, AR_NEGATIVE, "%s", text);
}

uint64_t twin_seed(const struct twin_part *self)
{
    uint64_t seed = self->process->run->scenario->seed;
    return seed ? seed : 1;
}

bool twin_offer_at(const struct twin_offer *list, size_t count, size_t index,
                   struct twin_what_if *out)
{
    for (size_t i = 0; i < count; i++) {
        if (!list[i].applies || index--)
            continue;
        *out = list[i].what;
        return true;
    }
    return false;
}
