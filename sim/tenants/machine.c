#include "sim/tenants/runner.h"

#define LINES_MOST 64

/* Picks a card with enough free memory by the placement; false: none. */
static bool pick(const struct tenant_setup *setup, const struct process_card *cards,
                 size_t card_count, uint64_t context_bytes, uint32_t *card)
{
    uint64_t needs_bytes = setup->needs_bytes + context_bytes;
    uint64_t most_bytes = 0;
    bool found = false;
    for (uint32_t i = 0; i < card_count; i++) {
        uint64_t free_bytes = cards[i].free_bytes;
        bool first = setup->placement == TENANT_FIRST_FIT;
        if (free_bytes < needs_bytes || (found && (first || free_bytes <= most_bytes)))
            continue;
        found = true;
        *card = i;
        most_bytes = free_bytes;
    }
    return found;
}

/* Makes the pools of the settings. `only`: the card on which the process was placed, or NULL. */
static enum ar_status configure(const struct tenant_setup *setup, const struct process_card *cards,
                                size_t card_count, uint64_t context_bytes, const uint32_t *only,
                                struct process *process, struct ar_error *error)
{
    struct process_card left[PROCESS_CARDS];
    struct process_line lines[LINES_MOST];
    char visible[16];
    size_t line_count = setup->line_count;
    if (line_count >= LINES_MOST)
        return ar_invalid(error, "more than %d settings", LINES_MOST - 1);
    for (size_t i = 0; i < card_count; i++) {
        uint64_t free_bytes = cards[i].free_bytes;
        left[i] = cards[i];
        left[i].free_bytes = free_bytes > context_bytes ? free_bytes - context_bytes : 0;
    }
    memcpy(lines, setup->lines, line_count * sizeof *lines);
    if (only) {
        snprintf(visible, sizeof visible, "%" PRIu32, *only);
        lines[line_count++] = (struct process_line){"CUDA_VISIBLE_DEVICES", visible, 0};
    }
    return process_configure(left, card_count, lines, line_count, process, error);
}

/* Adds the pools of other libraries in the same process. */
static enum ar_status add_beside(const struct tenant_setup *setup, struct process *process,
                                 struct ar_error *error)
{
    for (size_t i = 0; i < setup->beside_count; i++) {
        if (!process->pool_count || process->pool_count == PROCESS_POOLS)
            return ar_invalid(error,
                              "beside = %s: a process has 1 to %d pools, and its first pool must "
                              "exist, because the others use its card",
                              setup->beside[i], PROCESS_POOLS);
        struct process_pool *pool = &process->pools[process->pool_count++];
        *pool = (struct process_pool){.card = process->pools[0].card, .limit_bytes = UINT64_MAX};
        snprintf(pool->policy, sizeof pool->policy, "%s", setup->beside[i]);
    }
    return AR_OK;
}

/* Adds the pool of pinned memory after all others. */
static enum ar_status add_pinned(const struct tenant_setup *setup, size_t card_count,
                                 struct process *process, struct ar_error *error)
{
    bool own = !strcmp(setup->pinned, "yes");
    if (!process->pool_count || process->pool_count == PROCESS_POOLS)
        return ar_invalid(error,
                          "pinned = %s: a process has 1 to %d pools, and its first pool must "
                          "exist, because the pinned one uses its workload",
                          setup->pinned, PROCESS_POOLS);
    if (own && !process->pinned_policy[0])
        return ar_invalid(error, "pinned = yes is for TensorFlow and JAX; name a policy, such as "
                                 "pinned = growth:limit=1GiB");
    struct process_pool *pool = &process->pools[process->pool_count++];
    *pool = (struct process_pool){
        .card = (uint32_t)card_count, .limit_bytes = UINT64_MAX, .pinned = true};
    snprintf(pool->policy, sizeof pool->policy, "%s", own ? process->pinned_policy : setup->pinned);
    return AR_OK;
}

enum ar_status tenant_place(const struct tenant_setup *setup, const struct process_card *cards,
                            size_t card_count, uint64_t context_bytes, struct process *process,
                            struct ar_error *error)
{
    uint32_t card = setup->card;
    bool placed = setup->placement != TENANT_GIVEN;
    enum ar_status status = AR_OK;
    if (placed && !pick(setup, cards, card_count, context_bytes, &card))
        return ar_error_set(error, AR_REFUSED, "no card has enough free memory for it");
    if (setup->lines) {
        status = configure(setup, cards, card_count, context_bytes, placed ? &card : NULL, process,
                           error);
    } else {
        process->pool_count = 1;
        process->pools[0].card = card;
        snprintf(process->pools[0].policy, sizeof process->pools[0].policy, "%s", setup->policy);
    }
    if (setup->retry_given) {
        process->retries = setup->retry_ms > 0;
        process->retry_ms = setup->retry_ms;
    }
    AR_THEN(status, add_beside(setup, process, error));
    return status || !setup->pinned ? status : add_pinned(setup, card_count, process, error);
}

/* ---- the view of pinned requests ------------------------------------------------------------
 *
 * 1. Events are copied in spans. A request with the key space=pinned keeps its bytes; other
 *    requests get zero bytes.
 * 2. The key `space` is removed, so that the engine passes the request to the policy.
 * 3. Memory outside of the pool belongs to the card, so its events become notes. */

#define SPAN 256

struct pinned_view {
    struct trace_source base;
    const struct trace_event *given; /* read and not passed on yet */
    size_t given_count;
    struct trace_attributes keys; /* returned last */
    struct trace_event events[SPAN];
};

static struct pinned_view *of(struct trace_source *base)
{
    return (struct pinned_view *)base;
}

static bool is_pinned(struct pinned_view *self, const struct trace_event *event)
{
    return trace_attributes_of(self->base.over, event->attributes)->space == TRACE_SPACE_PINNED;
}

static enum ar_status view_next(struct trace_source *base, const struct trace_event **events,
                                size_t *count, struct ar_error *error)
{
    struct pinned_view *self = of(base);
    *count = 0;
    if (!self->given_count) {
        enum ar_status status =
            trace_next(self->base.over, &self->given, &self->given_count, error);
        if (status != AR_OK || !self->given_count)
            return status;
    }
    while (*count < SPAN && *count < self->given_count) {
        struct trace_event *event = &self->events[*count];
        *event = self->given[(*count)++];
        if (event->kind == TRACE_OUTSIDE)
            event->kind = TRACE_NOTE;
        if (trace_requests(event) && !is_pinned(self, event))
            event->value = 0;
    }
    self->given += *count;
    self->given_count -= *count;
    *events = self->events;
    return AR_OK;
}

static enum ar_status view_rewind(struct trace_source *base, struct ar_error *error)
{
    of(base)->given_count = 0;
    return trace_rewind(base->over, error);
}

static const struct trace_attributes *view_attributes(struct trace_source *base, uint32_t index)
{
    struct pinned_view *self = of(base);
    self->keys = *trace_attributes_of(self->base.over, index);
    self->keys.space = TRACE_SPACE_DEVICE;
    return &self->keys;
}

static void view_close(struct trace_source *base)
{
    trace_close(base->over);
    free(base);
}

enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error)
{
    static const struct trace_source_ops ops = {
        .next = view_next,
        .rewind = view_rewind,
        .attributes = view_attributes,
        .close = view_close,
    };
    struct pinned_view *self = calloc(1, sizeof *self);
    if (!self) {
        trace_close(source);
        return ar_no_memory(error, "a workload");
    }
    self->base = (struct trace_source){.ops = &ops, .info = source->info, .over = source};
    *out = &self->base;
    return AR_OK;
}
