/* Which of many ranges has the most idle memory, without a visit to each: rule 9 of vmm.h.
 *
 * 1. The result of vmm_find_idle for a range grows in steps with the wanted bytes: handle by handle
 *    from the end of one free block. If the first k of these handles have S(k) bytes, a caller that
 *    wants more than S(k-1) and at most S(k) gets S(k), and a caller that wants more than all gets
 *    all. So the result is the largest S(k) of the steps with S(k-1) < wanted.
 * 2. A step is a node in a tree by S(k-1), in which each node knows the largest S(k) below it
 *    (range_tree.h; among equals the range with the lowest number). ar_range_tree_most_below then
 *    finds the best of all ranges.
 * 3. Steps are computed as far as they were wanted. If there may be more, a step of unknown size,
 *    above all others, follows the last one. If a search finds it, the range is examined again, at
 *    least twice as far.
 * 4. A range is stale, and is examined again at the next search, when a free block with whole
 *    handles is added, removed or changed, or when a fence of its stream is found done.
 * 5. A bit for each stream says whether it has fences that are not known to be done.
 *
 * The index is made when there are more than VMM_FEW ranges or streams. If the host has no memory
 * for it, it is closed, and all ranges are visited one by one until it can be made again. */
#include "allocators/policies/vmm/vmm.h"

#define UNKNOWN   UINT32_MAX /* pages of a step of unknown size */
#define WORD_BITS 64u
#define LAST      UINT32_MAX /* the end of the list of stale ranges */

static uint32_t words_of(uint32_t bits)
{
    return (bits + WORD_BITS - 1) / WORD_BITS;
}

/* A key in the order of sizes in pages, and then of ranges. */
static uint64_t key_of(uint64_t pages, uint32_t low)
{
    return pages << 32 | low;
}

/* ---- streams with fences that are not known to be done --------------------------------------- */

void vmm_index_waits(struct vmm_idle_index *index, uint32_t stream, bool waits)
{
    uint32_t word = stream / WORD_BITS;
    uint64_t bit = UINT64_C(1) << stream % WORD_BITS;
    uint64_t word_bit = UINT64_C(1) << word % WORD_BITS;
    index->waiting[word] = waits ? index->waiting[word] | bit : index->waiting[word] & ~bit;
    if (index->waiting[word])
        index->waiting_words[word / WORD_BITS] |= word_bit;
    else
        index->waiting_words[word / WORD_BITS] &= ~word_bit;
}

/* The first set bit from `from` on in `count` words; the number of all bits if there is none. */
static uint32_t next_bit(const uint64_t *words, uint32_t count, uint32_t from)
{
    uint64_t mask = ~UINT64_C(0) << from % WORD_BITS;
    for (uint32_t i = from / WORD_BITS; i < count; i++, mask = ~UINT64_C(0))
        if (words[i] & mask)
            return i * WORD_BITS + (uint32_t)__builtin_ctzll(words[i] & mask);
    return count * WORD_BITS;
}

/* The first stream from `stream` on with a fence that is not known to be done. Above all streams:
 * there is none. */
uint32_t vmm_next_waiting(const struct vmm *self, uint32_t stream)
{
    const struct vmm_idle_index *index = self->idle_index;
    if (!index) {
        while (stream < self->stream_room &&
               self->streams[stream].done == self->streams[stream].fences)
            stream++;
        return stream;
    }
    uint32_t words = words_of(index->stream_room);
    uint32_t word = stream / WORD_BITS;
    uint32_t end = (word + 1) * WORD_BITS;
    if (word >= words)
        return UINT32_MAX;
    uint32_t found = next_bit(index->waiting, word + 1, stream);
    if (found < end)
        return found;
    word = next_bit(index->waiting_words, words_of(words), word + 1);
    return word < words ? next_bit(index->waiting, words, word * WORD_BITS) : UINT32_MAX;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void forget_steps(struct vmm_idle_index *index, uint32_t number)
{
    for (uint32_t step = index->steps[number]; step;) {
        uint32_t previous = index->pool.nodes[step].previous;
        ar_range_tree_remove(&index->pool, &index->root, AR_RANGE_BY_ADDRESS, step);
        ar_range_pool_give(&index->pool, step);
        step = previous;
    }
    index->steps[number] = 0;
}

/* A caller that wants more than `above` pages of a range gets `pages`. */
static bool add_step(struct vmm_idle_index *index, uint32_t number, uint64_t above, uint64_t pages)
{
    if (!ar_range_pool_reserve(&index->pool, 1))
        return false;
    uint32_t step = ar_range_pool_take(&index->pool);
    struct ar_range_node *node = &index->pool.nodes[step];
    node->address = key_of(above, number);
    node->bytes = key_of(pages, UINT32_MAX - number);
    node->previous = index->steps[number];
    index->steps[number] = step;
    ar_range_tree_insert(&index->pool, &index->root, AR_RANGE_BY_ADDRESS, step);
    return true;
}

/* Examines a range as far as so many bytes are wanted. False: no host memory. */
static bool examine(struct vmm *self, uint32_t number, uint64_t wanted_bytes)
{
    struct vmm_idle_index *index = self->idle_index;
    const struct vmm_range *range = self->ranges[number];
    struct vmm_idle idle;
    forget_steps(index, number);
    index->looked++;
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
        if (!add_step(index, number, end - before, end - page))
            return false;
    }
    return bytes < wanted_bytes || add_step(index, number, end - first, UNKNOWN);
}

/* The number + 1 of the range that gives the most if so many bytes are wanted, the first among
 * equals. 0: none does, or there was no host memory and the index is closed. */
uint32_t vmm_index_most_idle(struct vmm *self, uint64_t wanted_bytes)
{
    struct vmm_idle_index *index = self->idle_index;
    uint64_t pages = (wanted_bytes + self->page_bytes - 1) / self->page_bytes;
    bool enough = true;
    while (enough && index->stale != LAST) {
        uint32_t number = index->stale - 1;
        struct vmm_range *range = self->ranges[number];
        index->stale = range->stale;
        range->stale = 0;
        enough = examine(self, number, wanted_bytes);
    }
    while (enough) {
        uint64_t most = ar_range_tree_most_below(&index->pool, index->root, key_of(pages, 0));
        uint32_t number = UINT32_MAX - (uint32_t)most;
        if (most >> 32 != UNKNOWN)
            return most ? number + 1 : 0;
        uint64_t known = index->pool.nodes[index->steps[number]].address >> 32;
        uint64_t twice = 2 * known * self->page_bytes;
        enough = examine(self, number, twice > wanted_bytes ? twice : wanted_bytes);
    }
    vmm_index_close(self);
    return 0;
}

/* For validate: whether every step of a range that is not stale is right. */
bool vmm_index_is_right(const struct vmm *self)
{
    const struct vmm_idle_index *index = self->idle_index;
    for (uint32_t i = 0; index && i < self->stream_room; i++)
        if ((index->waiting[i / WORD_BITS] >> i % WORD_BITS & 1) !=
            (self->streams[i].done < self->streams[i].fences))
            return false;
    for (uint32_t i = 0; index && i < self->range_count; i++) {
        const struct vmm_range *range = self->ranges[i];
        struct vmm_idle idle;
        if (range->stale)
            continue;
        if (!index->steps[i] && vmm_find_idle(self, range, 1, &idle))
            return false;
        for (uint32_t step = index->steps[i]; step; step = index->pool.nodes[step].previous) {
            const struct ar_range_node *node = &index->pool.nodes[step];
            uint64_t above = (node->address >> 32) * self->page_bytes;
            uint64_t pages = node->bytes >> 32;
            if (pages != UNKNOWN &&
                vmm_find_idle(self, range, above + 1, &idle) != pages * self->page_bytes)
                return false;
        }
    }
    return true;
}

/* ---- making the index ------------------------------------------------------------------------ */

static bool grow_words(struct vmm *self, uint64_t **words, uint32_t old_bits, uint32_t bits)
{
    uint64_t *grown =
        ar_host_grow(self->host, *words, words_of(old_bits), words_of(bits), sizeof *grown);
    if (grown)
        *words = grown;
    return grown != NULL;
}

/* Makes room for all streams and sets the bits of the new ones. */
static bool cover_streams(struct vmm *self, struct vmm_idle_index *index)
{
    uint32_t had = index->stream_room;
    if (self->stream_room <= had)
        return true;
    uint32_t room = self->stream_room + self->stream_room / 4;
    if (!grow_words(self, &index->waiting, had, room) ||
        !grow_words(self, &index->waiting_words, words_of(had), words_of(room)))
        return false;
    index->stream_room = room;
    for (uint32_t i = had; i < self->stream_room; i++)
        if (self->streams[i].done < self->streams[i].fences)
            vmm_index_waits(index, i, true);
    return true;
}

/* Makes room for the steps of all ranges. */
static bool cover_ranges(struct vmm *self, struct vmm_idle_index *index)
{
    if (self->range_count <= index->range_room)
        return true;
    return ar_host_extend(self->host, &index->steps, &index->range_room, self->range_room,
                          sizeof *index->steps);
}

/* Covers the present ranges and streams. Makes the index if there is none. */
void vmm_index_cover(struct vmm *self)
{
    bool is_new = !self->idle_index;
    if (is_new) {
        self->idle_index = ar_host_alloc(self->host, sizeof *self->idle_index);
        if (!self->idle_index)
            return;
        ar_range_pool_open(&self->idle_index->pool, self->host);
        self->idle_index->stale = LAST;
    }
    if (!cover_streams(self, self->idle_index) || !cover_ranges(self, self->idle_index)) {
        vmm_index_close(self);
        return;
    }
    for (uint32_t i = 0; is_new && i < self->range_count; i++)
        vmm_stale(self->idle_index, self->ranges[i], i);
}

void vmm_index_close(struct vmm *self)
{
    struct vmm_idle_index *index = self->idle_index;
    if (!index)
        return;
    for (uint32_t i = 0; i < self->range_count; i++)
        self->ranges[i]->stale = 0;
    ar_range_pool_close(&index->pool);
    ar_host_free(self->host, index->steps, index->range_room * sizeof *index->steps);
    ar_host_free(self->host, index->waiting, words_of(index->stream_room) * sizeof *index->waiting);
    ar_host_free(self->host, index->waiting_words,
                 words_of(words_of(index->stream_room)) * sizeof *index->waiting_words);
    ar_host_free(self->host, index, sizeof *index);
    self->idle_index = NULL;
}
