/* Whether blocks keep their contents, on a device that has memory.
 *
 * 1. A block is filled with a pattern on its stream when it is served, after the stream's wait for
 *    earlier uses.
 * 2. When it is freed, before the policy's free, the pattern is read again: on its own stream, on
 *    that of the free, and in `ordered` on each stream that uses the block. A stream other than the
 *    block's own first waits for that one, as a program must that reads data of another stream.
 * 3. If several streams have requests, uses or frees, a kernel of DELAY_NS precedes each
 *    reading. If a policy gives the bytes to another stream too early, that stream fills them
 *    before the reading, which then finds the pattern of the other block.
 * 4. In the modes at-once and recorded, frees are not ordered by streams: the program is assumed to
 *    have waited, so the host waits for the reading.
 * 5. Blocks that are live at the end are read at the end. Then the device reports the first wrong
 *    byte. The latest blocks are remembered, to report which block got the same bytes. */

#include "sim/replay/run.h"
#include "workloads/trace/check.h"

#define REMEMBERED 65536u            /* the latest blocks; a power of two */
#define DELAY_NS   UINT64_C(200000)  /* much longer than a launch or a policy's call */
#define OWN_EVENT  TRACE_EVENT_LIMIT /* not used by any trace */

struct given {
    uint64_t id, event, address, bytes;
    uint32_t stream;
};

struct verify {
    bool several;
    uint64_t count; /* served so far; the next goes to count % REMEMBERED */
    struct given given[REMEMBERED];
};

enum ar_status verify_open(struct verify **out, bool several, struct ar_error *error)
{
    *out = calloc(1, sizeof **out);
    AR_TRY_MEMORY(*out, error, "blocks");
    (*out)->several = several;
    return AR_OK;
}

void verify_close(struct verify *verify)
{
    free(verify);
}

enum ar_status verify_given(struct replay *run, const struct trace_event *event,
                            const struct replay_slot *slot)
{
    struct verify *verify = run->verify;
    const struct ar_policy_block *block = &slot->block;
    verify->given[verify->count++ % REMEMBERED] = (struct given){
        .id = event->id,
        .event = replay_event_number(run, event),
        .address = block->address,
        .bytes = block->requested_bytes,
        .stream = slot->stream,
    };
    return run->device->ops->fill(run->device, block->address, block->requested_bytes, event->id,
                                  slot->stream);
}

/* Reads the block on a stream (rules 2 and 3). */
static enum ar_status read_on(struct replay *run, const struct replay_slot *slot, uint64_t id,
                              uint32_t stream)
{
    struct ar_device *device = run->device;
    if (stream != slot->stream) {
        device->ops->event_record(device, OWN_EVENT, slot->stream);
        device->ops->stream_wait(device, stream, OWN_EVENT);
    }
    if (run->verify->several)
        device->ops->kernel(device, stream, DELAY_NS);
    return device->ops->verify(device, slot->block.address, slot->block.requested_bytes, id,
                               stream);
}

/* On the streams that use it, then on its own, whose delay then holds up no other stream. */
static enum ar_status read_everywhere(struct replay *run, const struct replay_slot *slot,
                                      uint64_t id, uint32_t stream)
{
    enum ar_status status = AR_OK;
    bool seen = stream == slot->stream;
    for (uint32_t i = slot->uses; i && status == AR_OK; i = run->uses[i - 1].next) {
        status = read_on(run, slot, id, run->uses[i - 1].stream);
        seen |= run->uses[i - 1].stream == stream;
    }
    if (status == AR_OK && !seen)
        status = read_on(run, slot, id, stream);
    return status == AR_OK ? read_on(run, slot, id, slot->stream) : status;
}

enum ar_status verify_freed(struct replay *run, const struct replay_slot *slot, uint64_t id,
                            uint32_t stream)
{
    AR_TRY(read_everywhere(run, slot, id, stream));
    if (run->verify->several && run->config->frees != REPLAY_ORDERED)
        run->device->ops->sync(run->device, TRACE_NO_STREAM);
    return AR_OK;
}

static const struct given *find_given(const struct verify *verify, uint64_t id)
{
    uint64_t count = verify->count < REMEMBERED ? verify->count : REMEMBERED;
    for (uint64_t i = 1; i <= count; i++) {
        const struct given *given = &verify->given[(verify->count - i) % REMEMBERED];
        if (given->id == id)
            return given;
    }
    return NULL;
}

/* The first block that got the byte after `block`. */
static const struct given *find_other(const struct verify *verify, const struct given *block,
                                      uint64_t address)
{
    const struct given *found = NULL;
    for (uint64_t i = 1; i <= verify->count && i <= REMEMBERED; i++) {
        const struct given *given = &verify->given[(verify->count - i) % REMEMBERED];
        if (given == block)
            break;
        if (address - given->address < given->bytes) /* also false below it: the difference wraps */
            found = given;
    }
    return found;
}

/* Blocks that are live at the end, by slot. Their ids are remembered or, for old blocks, in the
 * trace. */
static enum ar_status read_left(struct replay *run, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = run->config->source};
    const struct trace_event *event;
    enum ar_status status = trace_rewind(run->config->source, error);
    AR_FREED uint64_t *ids = calloc(run->slot_count + 1, sizeof *ids);
    AR_TRY_MEMORY(ids, error, "the blocks left");
    while (cursor.next < run->span_first && (event = trace_read(&cursor, &status, error)) != NULL)
        if (trace_requests(event))
            ids[event->slot] = event->id;
    AR_TRY(status);
    for (uint64_t i = 0; i < run->slot_count; i++) {
        const struct replay_slot *slot = &run->slots[i];
        if (slot->state != SLOT_LIVE && (slot->state != SLOT_FREE_REQUESTED || !run->at_completion))
            continue;
        status = read_everywhere(run, slot, ids[i], slot->stream);
        if (status)
            return ar_error_set(error, status, "%s: block %" PRIu64 " could not be read: %s",
                                run->config->source->info.name, ids[i],
                                run->device->ops->problem(run->device));
    }
    return AR_OK;
}

static enum ar_status report(const struct replay *run, const struct ar_device_wrong *wrong,
                             struct ar_error *error)
{
    char where[64] = "", who[160] = "";
    const struct given *block = find_given(run->verify, wrong->block);
    const struct given *other = block ? find_other(run->verify, block, wrong->address) : NULL;
    if (block)
        (void)snprintf(where, sizeof where, " of event %" PRIu64 ", stream %" PRIu32, block->event,
                       block->stream);
    if (other)
        (void)snprintf(who, sizeof who,
                       ". Block %" PRIu64 " of event %" PRIu64 ", stream %" PRIu32
                       ", was given that byte before the first was done with",
                       other->id, other->event, other->stream);
    return ar_error_set(error, AR_CORRUPT,
                        "%s: policy %s: block %" PRIu64 "%s: byte %" PRIu64
                        " is 0x%02x, where 0x%02x was written (%" PRIu64 " wrong bytes in all)%s",
                        run->config->source->info.name, run->policy->ops->name, wrong->block, where,
                        wrong->offset, wrong->found, wrong->expected, wrong->count, who);
}

enum ar_status verify_end(struct replay *run, struct ar_error *error)
{
    struct ar_device_wrong wrong = {.count = 0};
    AR_TRY(read_left(run, error));
    enum ar_status status = run->device->ops->wrong(run->device, &wrong);
    if (status != AR_OK)
        return ar_error_set(error, status, "%s: the device cannot tell whether bytes are wrong: %s",
                            run->config->source->info.name, run->device->ops->problem(run->device));
    return wrong.count ? report(run, &wrong, error) : AR_OK;
}
