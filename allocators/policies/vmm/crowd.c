/* Which of many ranges has the most idle memory, without looking at each: rule 9 of vmm.h.
 *
 * 1. What vmm_find_idle gives for a range grows in steps with what is wanted: handle by handle
 *    from the end of one hole. If the first k of these handles have S(k) bytes, whoever wants
 *    more than S(k-1) and no more than S(k) gets S(k), and whoever wants more than there is gets
 *    all. So it gives the largest S(k) of the steps with S(k-1) < wanted.
 * 2. A step is a node in a tree by S(k-1) in which each node knows the largest S(k) below it
 *    (range_tree.h; among equals the range with the lowest number). Then the best of all ranges
 *    is what ar_range_tree_most_below finds.
 * 3. Steps are found as far as they were wanted. Behind the last one, if there may be more, lies
 *    a step of unknown size, above all others: where a search finds it the range is looked at
 *    again, at least twice as far.
 * 4. A range is stale, and looked at anew at the next search, once one of its holes with whole
 *    handles comes, goes or changes, or a fence of its stream is found done.
 * 5. Of streams, a bit says which have fences that are not known to be done.
 *
 * All of it is made when there are more than VMM_FEW ranges or streams. Where the host has no
 * memory for it, it is given up, and everything is looked at one by one until it can be made. */
#include "allocators/policies/vmm/vmm.h"

#define UNKNOWN   UINT32_MAX /* pages of a step that may be there */
#define WORD_BITS 64u

static uint32_t words_of(uint32_t bits)
{
    return (bits + WORD_BITS - 1) / WORD_BITS;
}

/* A size in pages, and a range: sizes first. */
static uint64_t key_of(uint64_t pages, uint32_t low)
{
    return pages << 32 | low;
}

/* ---- which streams have fences that are not known to be done --------------------------------- */

void vmm_crowd_waits(struct vmm_crowd *crowd, uint32_t stream, bool waits)
{
    uint32_t word = stream / WORD_BITS;
    uint64_t bit = UINT64_C(1) << stream % WORD_BITS;
    uint64_t word_bit = UINT64_C(1) << word % WORD_BITS;
    crowd->waiting[word] = waits ? crowd->waiting[word] | bit : crowd->waiting[word] & ~bit;
    if (crowd->waiting[word])
        crowd->waiting_words[word / WORD_BITS] |= word_bit;
    else
        crowd->waiting_words[word / WORD_BITS] &= ~word_bit;
}

/* The first bit at `from` or after in `count` words; `count` times their bits where there is none. */
static uint32_t next_bit(const uint64_t *words, uint32_t count, uint32_t from)
{
    uint64_t mask = ~UINT64_C(0) << from % WORD_BITS;
    for (uint32_t i = from / WORD_BITS; i < count; i++, mask = ~UINT64_C(0))
        if (words[i] & mask)
            return i * WORD_BITS + (uint32_t)__builtin_ctzll(words[i] & mask);
    return count * WORD_BITS;
}

/* The first stream at `stream` or after with a fence that is not known to be done; beyond all
 * streams where there is none. */
uint32_t vmm_next_waiting(const struct vmm *self, uint32_t stream)
{
    const struct vmm_crowd *crowd = self->crowd;
    if (!crowd) {
        while (stream < self->stream_room &&
               self->streams[stream].done == self->streams[stream].fences)
            stream++;
        return stream;
    }
    uint32_t words = words_of(crowd->stream_room);
    uint32_t word = stream / WORD_BITS;
    uint32_t end = (word + 1) * WORD_BITS;
    if (word >= words)
        return UINT32_MAX;
    uint32_t found = next_bit(crowd->waiting, word + 1, stream);
    if (found < end)
        return found;
    word = next_bit(crowd->waiting_words, words_of(words), word + 1);
    return word < words ? next_bit(crowd->waiting, words, word * WORD_BITS) : UINT32_MAX;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void forget_steps(struct vmm_crowd *crowd, uint32_t number)
{
    for (uint32_t step = crowd->steps[number]; step;) {
        uint32_t previous = crowd->pool.nodes[step].previous;
        ar_range_tree_remove(&crowd->pool, &crowd->root, AR_RANGE_BY_ADDRESS, step);
        ar_range_pool_give(&crowd->pool, step);
        step = previous;
    }
    crowd->steps[number] = 0;
}

/* Who wants more than `above` pages of a range gets `pages`. */
static bool add_step(struct vmm_crowd *crowd, uint32_t number, uint64_t above, uint64_t pages)
{
    if (!ar_range_pool_reserve(&crowd->pool, 1))
        return false;
    uint32_t step = ar_range_pool_take(&crowd->pool);
    struct ar_range_node *node = &crowd->pool.nodes[step];
    node->address = key_of(above, number);
    node->bytes = key_of(pages, UINT32_MAX - number);
    node->previous = crowd->steps[number];
    crowd->steps[number] = step;
    ar_range_tree_insert(&crowd->pool, &crowd->root, AR_RANGE_BY_ADDRESS, step);
    return true;
}

/* Looks at a range, as far as that many bytes are wanted. False: no host memory. */
static bool look(struct vmm *self, uint32_t number, uint64_t wanted_bytes)
{
    struct vmm_crowd *crowd = self->crowd;
    const struct vmm_range *range = self->ranges[number];
    struct vmm_idle idle;
    forget_steps(crowd, number);
    crowd->looked++;
    if (range->free_block_bytes < self->page_bytes)
        return true;
    uint64_t bytes = vmm_find_idle(self, range, wanted_bytes, &idle);
    if (!bytes)
        return true;
    uint64_t first = (idle.from - range->address) / self->page_bytes;
    uint64_t end = (idle.end - range->address) / self->page_bytes;
    for (uint64_t page = end; page > first;) {
        uint64_t before = page;
        page -= range->pages[page - 1].count;
        if (!add_step(crowd, number, end - before, end - page))
            return false;
    }
    return bytes < wanted_bytes || add_step(crowd, number, end - first, UNKNOWN);
}

/* The range, number + 1, that gives the most where that many bytes are wanted, the first of
 * those that give as much; 0: none does, or there was no host memory and there is no crowd any
 * more. */
uint32_t vmm_crowd_most_idle(struct vmm *self, uint64_t wanted_bytes)
{
    struct vmm_crowd *crowd = self->crowd;
    uint64_t pages = (wanted_bytes + self->page_bytes - 1) / self->page_bytes;
    bool enough = true;
    while (enough && crowd->stale != VMM_LAST) {
        uint32_t number = crowd->stale - 1;
        struct vmm_range *range = self->ranges[number];
        crowd->stale = range->stale;
        range->stale = 0;
        enough = look(self, number, wanted_bytes);
    }
    while (enough) {
        uint64_t most = ar_range_tree_most_below(&crowd->pool, crowd->root, key_of(pages, 0));
        uint32_t number = UINT32_MAX - (uint32_t)most;
        if (most >> 32 != UNKNOWN)
            return most ? number + 1 : 0;
        uint64_t known = crowd->pool.nodes[crowd->steps[number]].address >> 32;
        uint64_t twice = 2 * known * self->page_bytes;
        enough = look(self, number, twice > wanted_bytes ? twice : wanted_bytes);
    }
    vmm_crowd_close(self);
    return 0;
}

/* For validate: is every step of a range that is not stale what looking at it says? */
bool vmm_crowd_is_right(const struct vmm *self)
{
    const struct vmm_crowd *crowd = self->crowd;
    for (uint32_t i = 0; crowd && i < self->stream_room; i++)
        if ((crowd->waiting[i / WORD_BITS] >> i % WORD_BITS & 1) !=
            (self->streams[i].done < self->streams[i].fences))
            return false;
    for (uint32_t i = 0; crowd && i < self->range_count; i++) {
        const struct vmm_range *range = self->ranges[i];
        struct vmm_idle idle;
        if (range->stale)
            continue;
        if (!crowd->steps[i] && vmm_find_idle(self, range, 1, &idle))
            return false;
        for (uint32_t step = crowd->steps[i]; step; step = crowd->pool.nodes[step].previous) {
            const struct ar_range_node *node = &crowd->pool.nodes[step];
            uint64_t above = (node->address >> 32) * self->page_bytes;
            uint64_t pages = node->bytes >> 32;
            if (pages != UNKNOWN &&
                vmm_find_idle(self, range, above + 1, &idle) != pages * self->page_bytes)
                return false;
        }
    }
    return true;
}

/* ---- making it ------------------------------------------------------------------------------- */

static bool grow_words(struct vmm *self, uint64_t **words, uint32_t old_bits, uint32_t bits)
{
    uint64_t *grown =
        ar_host_grow(self->host, *words, words_of(old_bits), words_of(bits), sizeof *grown);
    if (grown)
        *words = grown;
    return grown != NULL;
}

/* Room for all streams there are; which of the new ones wait is set. */
static bool cover_streams(struct vmm *self, struct vmm_crowd *crowd)
{
    uint32_t had = crowd->stream_room;
    if (self->stream_room <= had)
        return true;
    uint32_t room = self->stream_room + self->stream_room / 4;
    if (!grow_words(self, &crowd->waiting, had, room) ||
        !grow_words(self, &crowd->waiting_words, words_of(had), words_of(room)))
        return false;
    crowd->stream_room = room;
    for (uint32_t i = had; i < self->stream_room; i++)
        if (self->streams[i].done < self->streams[i].fences)
            vmm_crowd_waits(crowd, i, true);
    return true;
}

/* Room for the steps of all ranges there are. */
static bool cover_ranges(struct vmm *self, struct vmm_crowd *crowd)
{
    uint32_t had = crowd->range_room;
    if (self->range_count <= had)
        return true;
    uint32_t room = self->range_room;
    uint32_t *steps = ar_host_grow(self->host, crowd->steps, had, room, sizeof *steps);
    if (!steps)
        return false;
    crowd->steps = steps;
    crowd->range_room = room;
    return true;
}

/* Covers the ranges and streams that there are now. */
void vmm_crowd_grow(struct vmm *self)
{
    bool is_new = !self->crowd;
    if (is_new) {
        self->crowd = ar_host_alloc(self->host, sizeof *self->crowd);
        if (!self->crowd)
            return;
        ar_range_pool_open(&self->crowd->pool, self->host);
        self->crowd->stale = VMM_LAST;
    }
    if (!cover_streams(self, self->crowd) || !cover_ranges(self, self->crowd)) {
        vmm_crowd_close(self);
        return;
    }
    for (uint32_t i = 0; is_new && i < self->range_count; i++)
        vmm_stale(self->crowd, self->ranges[i], i);
}

void vmm_crowd_close(struct vmm *self)
{
    struct vmm_crowd *crowd = self->crowd;
    if (!crowd)
        return;
    for (uint32_t i = 0; i < self->range_count; i++)
        self->ranges[i]->stale = 0;
    ar_range_pool_close(&crowd->pool);
    ar_host_free(self->host, crowd->steps, crowd->range_room * sizeof *crowd->steps);
    ar_host_free(self->host, crowd->waiting, words_of(crowd->stream_room) * sizeof *crowd->waiting);
    ar_host_free(self->host, crowd->waiting_words,
                 words_of(words_of(crowd->stream_room)) * sizeof *crowd->waiting_words);
    ar_host_free(self->host, crowd, sizeof *crowd);
    self->crowd = NULL;
}
