/* Private pools: rule 5 of card.h. */
#include <stdlib.h>

#include "bench/plugin/card_parts.h"

/* The ordinal of the pool, from 1; 0: there is none of that name. */
static uint32_t pool_find(const struct card *card, struct card_pool_id id)
{
    for (uint32_t i = 0; i < card->pool_count; i++) {
        const struct card_pool *pool = &card->pools[i];
        if (pool->id.first == id.first && pool->id.second == id.second && !pool->released)
            return i + 1;
    }
    return 0;
}

static uint32_t pool_add(struct card *card, struct card_pool_id id)
{
    if (card->pool_count == card->pool_room) {
        uint32_t room = card->pool_room ? 2 * card->pool_room : 8;
        struct card_pool *grown = realloc(card->pools, room * sizeof *grown);
        if (!grown)
            return 0;
        card->pools = grown;
        card->pool_room = room;
    }
    card->pools[card->pool_count++] = (struct card_pool){.id = id};
    return card->pool_count;
}

void card_pool_begin(struct card *card, struct card_pool_id id)
{
    card_enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (!ordinal)
        ordinal = pool_add(card, id);
    if (ordinal) {
        card->pools[ordinal - 1].open++;
        card->pools[ordinal - 1].thread = pthread_self();
        card->pools_open++;
    }
    card_leave(card);
}

void card_pool_end(struct card *card, struct card_pool_id id)
{
    card_enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (ordinal && card->pools[ordinal - 1].open) {
        card->pools[ordinal - 1].open--;
        card->pools_open--;
    }
    card_leave(card);
}

void card_pool_release(struct card *card, struct card_pool_id id)
{
    card_enter(card);
    uint32_t ordinal = pool_find(card, id);
    if (ordinal) {
        struct card_pool *pool = &card->pools[ordinal - 1];
        pool->released = true;
        card->pools_open -= pool->open;
        pool->open = 0;
        if (recording_wanted(card->recording))
            recording_trim(card->recording, ordinal);
        while (pool->held) {
            struct card_block *block = pool->held;
            pool->held = block->next;
            (void)card_give_back(card, block, block->stream);
        }
        ar_policy_end_pool(card->policy, ordinal);
    }
    card_leave(card);
}

uint32_t card_pool_now(struct card *card, CUstream stream)
{
    bool captured = driver_memory_is_captured(&card->memory, stream);
    for (uint32_t i = card->pool_count; i > 0; i--) {
        const struct card_pool *pool = &card->pools[i - 1];
        if (pool->open && (captured || pthread_equal(pool->thread, pthread_self())))
            return i;
    }
    return 0;
}

bool card_pool_hold(struct card *card, struct card_block *block)
{
    if (!block->pool || card->has_pools || card->pools[block->pool - 1].released)
        return false;
    struct card_pool *pool = &card->pools[block->pool - 1];
    block->next = pool->held;
    pool->held = block;
    return true;
}
