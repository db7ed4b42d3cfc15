/* See place.h. */
#include "sim/tenants/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINES_MOST 64

/* The card with room that the placement picks; false: none. */
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

/* Its pools, by its settings; `only`: the card where it was placed, or NULL. */
static enum ar_status configure(const struct tenant_setup *setup, const struct process_card *cards,
                                size_t card_count, uint64_t context_bytes, const uint32_t *only,
                                struct process *process, struct ar_error *error)
{
    struct process_card left[PROCESS_CARDS];
    struct process_line lines[LINES_MOST];
    char visible[16];
    size_t line_count = setup->line_count;
    if (line_count >= LINES_MOST)
        return ar_error_set(error, AR_INVALID, "more than %d settings", LINES_MOST - 1);
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

/* Pools of other libraries in the same process. */
static enum ar_status add_beside(const struct tenant_setup *setup, struct process *process,
                                 struct ar_error *error)
{
    for (size_t i = 0; i < setup->beside_count; i++) {
        if (!process->pool_count || process->pool_count == PROCESS_POOLS)
            return ar_error_set(
                error, AR_INVALID,
                "beside = %s: a process has 1 to %d pools, and a first one whose card "
                "the others take",
                setup->beside[i], PROCESS_POOLS);
        struct process_pool *pool = &process->pools[process->pool_count++];
        *pool = (struct process_pool){.card = process->pools[0].card, .limit_bytes = UINT64_MAX};
        snprintf(pool->policy, sizeof pool->policy, "%s", setup->beside[i]);
    }
    return AR_OK;
}

/* Its pool of pinned memory, behind all others. */
static enum ar_status add_pinned(const struct tenant_setup *setup, size_t card_count,
                                 struct process *process, struct ar_error *error)
{
    bool own = !strcmp(setup->pinned, "yes");
    if (!process->pool_count || process->pool_count == PROCESS_POOLS)
        return ar_error_set(
            error, AR_INVALID,
            "pinned = %s: a process has 1 to %d pools, and a first one whose workload "
            "this one takes",
            setup->pinned, PROCESS_POOLS);
    if (own && !process->pinned_policy[0])
        return ar_error_set(
            error, AR_INVALID,
            "pinned = yes is of TensorFlow and JAX; name a policy, such as pinned = "
            "growth:limit=1GiB");
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
        return ar_error_set(error, AR_REFUSED, "no card has room for what it needs");
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
    if (!status)
        status = add_beside(setup, process, error);
    return status || !setup->pinned ? status : add_pinned(setup, card_count, process, error);
}
