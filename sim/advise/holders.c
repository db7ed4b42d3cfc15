/* Two passes: the first finds the event of the peak, the second stops there and groups what is
 * live. */
#include "sim/advise/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live_block {
    uint64_t bytes;      /* 0: none */
    uint32_t attributes; /* of its request */
};

struct pass {
    struct trace_source *source;
    struct live_block *slots;
    size_t slot_count;
    uint64_t number, step, live_bytes, late_bytes;
};

static enum ar_status reach(struct pass *pass, uint32_t slot, struct ar_error *error)
{
    if (slot < pass->slot_count)
        return AR_OK;
    size_t count = pass->slot_count ? pass->slot_count : 256;
    while (count <= slot)
        count *= 2;
    struct live_block *slots = realloc(pass->slots, count * sizeof *slots);
    if (!slots)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %zu blocks", count);
    memset(slots + pass->slot_count, 0, (count - pass->slot_count) * sizeof *slots);
    pass->slots = slots;
    pass->slot_count = count;
    return AR_OK;
}

static bool counts(const struct pass *pass, const struct trace_event *event)
{
    return event->kind == TRACE_ALLOC &&
           (!event->attributes ||
            trace_attributes_of(pass->source, event->attributes)->space != TRACE_SPACE_PINNED);
}

static enum ar_status take(struct pass *pass, const struct trace_event *event,
                           struct ar_error *error)
{
    if (event->kind == TRACE_MARK && (event->flags & TRACE_STEP))
        pass->step++;
    if (!trace_kind_has_block(event->kind) || event->kind == TRACE_USE)
        return AR_OK;
    enum ar_status status = reach(pass, event->slot, error);
    if (status)
        return status;
    struct live_block *block = &pass->slots[event->slot];
    if (event->kind == TRACE_FREE_REQUESTED && block->bytes > pass->late_bytes)
        pass->late_bytes = block->bytes;
    pass->live_bytes -= block->bytes;
    *block = (struct live_block){0};
    if (counts(pass, event))
        *block = (struct live_block){event->value, event->attributes};
    pass->live_bytes += block->bytes;
    return AR_OK;
}

/* Runs over events [0, end) and notes the peak where `peak` is not NULL. */
static enum ar_status run(struct pass *pass, uint64_t end, struct holders *peak,
                          struct ar_error *error)
{
    const struct trace_event *events;
    size_t count = 1;
    pass->number = 0;
    pass->step = 1;
    enum ar_status status = trace_rewind(pass->source, error);
    while (!status && count && pass->number < end) {
        status = trace_next(pass->source, &events, &count, error);
        for (size_t i = 0; !status && i < count && pass->number < end; i++, pass->number++) {
            status = take(pass, &events[i], error);
            if (peak && pass->live_bytes > peak->bytes) {
                peak->bytes = pass->live_bytes;
                peak->event = pass->number;
                peak->step = pass->step;
            }
        }
    }
    return status;
}

static const char *tag_of(const struct pass *pass, const struct live_block *block)
{
    const char *tag =
        block->attributes ? trace_attributes_of(pass->source, block->attributes)->tag : NULL;
    return tag ? tag : "";
}

/* Sorts blocks that belong together next to each other. */
struct named_block {
    const char *tag;
    uint64_t bytes;
};

static int compare_blocks(const void *left, const void *right)
{
    const struct named_block *a = left, *b = right;
    int order = strcmp(a->tag, b->tag);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static void insert(struct holders *out, const struct holder *holder)
{
    size_t at = out->count;
    while (at > 0 && out->at[at - 1].bytes < holder->bytes)
        at--;
    if (at == HOLDERS_MOST)
        return;
    if (out->count < HOLDERS_MOST)
        out->count++;
    memmove(&out->at[at + 1], &out->at[at], (out->count - 1 - at) * sizeof *out->at);
    out->at[at] = *holder;
}

static void group(const struct named_block *blocks, size_t count, struct holders *out)
{
    struct holder now = {0};
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(blocks[i].tag, blocks[i - 1].tag) == 0 &&
                    (blocks[i].tag[0] || blocks[i].bytes == blocks[i - 1].bytes);
        if (!same && now.blocks)
            insert(out, &now);
        if (!same) {
            now = (struct holder){.block_bytes = blocks[i].bytes};
            snprintf(now.tag, sizeof now.tag, "%.63s", blocks[i].tag);
        }
        now.block_bytes = now.block_bytes == blocks[i].bytes ? now.block_bytes : 0;
        now.bytes += blocks[i].bytes;
        now.blocks++;
    }
    if (now.blocks)
        insert(out, &now);
}

static enum ar_status name(const struct pass *pass, struct holders *out, struct ar_error *error)
{
    size_t count = 0;
    struct named_block *blocks = calloc(pass->slot_count + 1, sizeof *blocks);
    if (!blocks)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the live blocks");
    for (size_t i = 0; i < pass->slot_count; i++)
        if (pass->slots[i].bytes)
            blocks[count++] =
                (struct named_block){tag_of(pass, &pass->slots[i]), pass->slots[i].bytes};
    qsort(blocks, count, sizeof *blocks, compare_blocks);
    out->blocks = count;
    group(blocks, count, out);
    free(blocks);
    return AR_OK;
}

enum ar_status holders_find(struct trace_source *source, uint64_t end, struct holders *out,
                            struct ar_error *error)
{
    struct pass first = {.source = source}, second = {.source = source};
    *out = (struct holders){0};
    enum ar_status status = run(&first, end, out, error);
    out->steps = first.step - 1;
    out->late_bytes = first.late_bytes;
    if (!status && out->bytes)
        status = run(&second, out->event + 1, NULL, error);
    if (!status)
        status = name(&second, out, error);
    free(first.slots);
    free(second.slots);
    return status;
}
