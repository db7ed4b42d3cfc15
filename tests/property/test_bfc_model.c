/* The BFC family compared with a simple model: chunks in an array by address, linear searches, and
 * the bins of the original. Random requests, frees, alignments, limits and refusals of the backing;
 * each address, each size and all totals must agree. */
#include "allocators/base/rng.h"
#include "allocators/policies/bfc/bfc.h"
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

#define MOST_CHUNKS  4096
#define MODEL_BLOCKS 512

struct model_chunk {
    uint64_t address, bytes, region; /* the region's first address */
    bool used;
};

struct model {
    struct model_chunk chunks[MOST_CHUNKS]; /* by address */
    unsigned count;
    uint64_t limit, next, pool, used_bytes, slack, top, cap;
    bool collect, coalesce;
};

static unsigned bin_of(uint64_t bytes)
{
    unsigned bin = 0;
    for (uint64_t units = bytes / 256; units > 1 && bin < 20; units /= 2)
        bin++;
    return bin;
}

static uint64_t padding(uint64_t address, uint64_t alignment)
{
    return (alignment - address % alignment) % alignment;
}

static void insert_chunk(struct model *m, unsigned at, struct model_chunk chunk)
{
    assert_true(m->count < MOST_CHUNKS);
    memmove(&m->chunks[at + 1], &m->chunks[at], (m->count - at) * sizeof *m->chunks);
    m->chunks[at] = chunk;
    m->count++;
}

static void remove_chunk(struct model *m, unsigned at)
{
    m->count--;
    memmove(&m->chunks[at], &m->chunks[at + 1], (m->count - at) * sizeof *m->chunks);
}

/* The first chunk of the first bin that fits, by size and address within the bin. */
static int find_chunk(const struct model *m, uint64_t bytes, uint64_t alignment)
{
    for (unsigned bin = bin_of(bytes); bin <= 20; bin++) {
        int best = -1;
        for (unsigned i = 0; i < m->count; i++) {
            const struct model_chunk *chunk = &m->chunks[i];
            if (chunk->used || bin_of(chunk->bytes) != bin ||
                chunk->bytes < bytes + padding(chunk->address, alignment))
                continue;
            if (best < 0 || chunk->bytes < m->chunks[best].bytes)
                best = (int)i;
        }
        if (best >= 0)
            return best;
    }
    return -1;
}

/* Divides chunk `at` after `bytes`. */
static void divide(struct model *m, unsigned at, uint64_t bytes)
{
    struct model_chunk tail = m->chunks[at];
    tail.address += bytes;
    tail.bytes -= bytes;
    m->chunks[at].bytes = bytes;
    insert_chunk(m, at + 1, tail);
}

static bool model_take(struct model *m, uint64_t bytes, uint64_t alignment, uint64_t *address)
{
    int found = find_chunk(m, bytes, alignment);
    if (found < 0)
        return false;
    unsigned at = (unsigned)found;
    uint64_t pad = padding(m->chunks[at].address, alignment);
    if (pad)
        divide(m, at++, pad);
    if (m->chunks[at].bytes >= 2 * bytes || m->chunks[at].bytes - bytes >= m->slack)
        divide(m, at, bytes);
    m->chunks[at].used = true;
    m->used_bytes += m->chunks[at].bytes;
    *address = m->chunks[at].address;
    return true;
}

static void merge_around(struct model *m, unsigned at)
{
    struct model_chunk *chunks = m->chunks;
    if (at + 1 < m->count && !chunks[at + 1].used && chunks[at + 1].region == chunks[at].region) {
        chunks[at].bytes += chunks[at + 1].bytes;
        remove_chunk(m, at + 1);
    }
    if (at > 0 && !chunks[at - 1].used && chunks[at - 1].region == chunks[at].region) {
        chunks[at - 1].bytes += chunks[at].bytes;
        remove_chunk(m, at);
    }
}

static bool model_extend(struct model *m, uint64_t bytes)
{
    uint64_t available = (m->limit - m->pool) / 256 * 256;
    if (bytes > available)
        return false;
    bool increased = false;
    for (; bytes > m->next; m->next *= 2)
        increased = true;
    uint64_t size = m->next < available ? m->next : available;
    while (size > m->cap - m->pool) {
        float smaller = (float)size * 0.9f;
        uint64_t rounded = ((uint64_t)smaller + 255) / 256 * 256;
        size = rounded < size ? rounded : size - 256;
        if (size < bytes)
            return false;
    }
    if (!increased)
        m->next *= 2;
    bool joins = m->coalesce && m->count > 0 &&
                 m->chunks[m->count - 1].address + m->chunks[m->count - 1].bytes == m->top;
    uint64_t region = joins ? m->chunks[m->count - 1].region : m->top;
    insert_chunk(m, m->count, (struct model_chunk){m->top, size, region, false});
    m->top += size;
    m->pool += size;
    merge_around(m, m->count - 1);
    return true;
}

static bool whole_region(const struct model *m, unsigned i)
{
    uint64_t region = m->chunks[i].region;
    return !m->chunks[i].used && m->chunks[i].address == region &&
           (i + 1 == m->count || m->chunks[i + 1].region != region);
}

static bool model_collect(struct model *m, uint64_t bytes)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < m->count; i++)
        total += whole_region(m, i) ? m->chunks[i].bytes : 0;
    if (!m->collect || total == 0 || bytes > m->limit - m->pool + total)
        return false;
    for (unsigned i = m->count; i-- > 0;) {
        if (whole_region(m, i)) {
            m->pool -= m->chunks[i].bytes;
            remove_chunk(m, i);
        }
    }
    return true;
}

static uint64_t model_alloc(struct model *m, uint64_t requested, uint64_t alignment)
{
    uint64_t bytes = (requested + 255) / 256 * 256;
    uint64_t address;
    alignment = alignment < 256 ? 256 : alignment;
    if (model_take(m, bytes, alignment, &address))
        return address;
    if (model_extend(m, bytes) && model_take(m, bytes, alignment, &address))
        return address;
    if (model_collect(m, bytes) && model_extend(m, bytes) &&
        model_take(m, bytes, alignment, &address))
        return address;
    return BFC_RIG_FAILED;
}

static void model_free(struct model *m, uint64_t address)
{
    unsigned at = 0;
    while (m->chunks[at].address != address)
        at++;
    m->chunks[at].used = false;
    m->used_bytes -= m->chunks[at].bytes;
    merge_around(m, at);
}

static uint64_t model_largest(const struct model *m)
{
    uint64_t largest = 0;
    for (unsigned i = 0; i < m->count; i++) {
        if (!m->chunks[i].used && m->chunks[i].bytes > largest)
            largest = m->chunks[i].bytes;
    }
    return largest;
}

struct setup {
    const char *spec;
    uint64_t limit, first, slack, cap;
    bool collect, coalesce;
    uint64_t most_bytes; /* of a request */
    unsigned blocks, steps;
};

static void compare(const struct bfc_rig *rig, const struct model *m, unsigned step)
{
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    if (stats.totals.granted_bytes != m->used_bytes || stats.totals.reserved_bytes != m->pool ||
        stats.largest_free_block_bytes != model_largest(m) ||
        ((const struct bfc *)rig->policy)->regions.next_bytes != m->next)
        fail_msg("step %u: granted %" PRIu64 " for %" PRIu64 ", reserved %" PRIu64 " for %" PRIu64
                 ", largest %" PRIu64 " for %" PRIu64,
                 step, stats.totals.granted_bytes, m->used_bytes, stats.totals.reserved_bytes,
                 m->pool, stats.largest_free_block_bytes, model_largest(m));
}

static void check_against_model(const struct setup *setup, uint64_t seed)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open(setup->spec, setup->cap);
    FREED struct model *m = calloc(1, sizeof *m);
    struct ar_rng rng = ar_rng_of(seed);
    assert_non_null(m);
    *m = (struct model){.limit = setup->limit,
                        .next = setup->first,
                        .slack = setup->slack,
                        .collect = setup->collect,
                        .coalesce = setup->coalesce,
                        .cap = setup->cap};
    unsigned failures = 0;
    for (unsigned step = 0; step < setup->steps; step++) {
        rig->careful = step % 16 == 0;
        /* the number of live blocks rises and falls */
        uint64_t among = step / 700 % 3 ? setup->blocks : setup->blocks / 8 + 1;
        unsigned block = (unsigned)ar_rng_below(&rng, among);
        if (rig->live[block]) {
            model_free(m, rig->blocks[block].address);
            bfc_rig_free(rig, block);
        } else {
            uint64_t bytes = ar_rng_log_uniform(&rng, 1, setup->most_bytes);
            uint64_t alignment = ar_rng_below(&rng, 8) ? 0 : UINT64_C(64) << ar_rng_below(&rng, 9);
            uint64_t expected = model_alloc(m, bytes, alignment);
            uint64_t got = bfc_rig_alloc_at(rig, block, bytes, alignment, false);
            if (got != expected)
                fail_msg("%s, step %u: %" PRIu64 " bytes at %" PRIu64 ", the model says %" PRIu64,
                         setup->spec, step, bytes, got, expected);
            failures += got == BFC_RIG_FAILED;
        }
        compare(rig, m, step);
        for (unsigned i = 0; i < setup->blocks && step % 700 == 699; i++) {
            if (rig->live[i]) {
                model_free(m, rig->blocks[i].address);
                bfc_rig_free(rig, i);
            }
        }
    }
    assert_true(failures > 0); /* the limits were reached */
}

/* The policy of these fields of a setup makes the decisions of the model. */
#define AGREES(seed, ...)                                                                          \
    check_against_model(&(const struct setup){__VA_ARGS__, .steps = 20000}, seed)

TEST(test_growing)
{
    for (uint64_t seed = 1; seed <= 2; seed++)
        AGREES(seed, .spec = "growth:limit=96MiB", .limit = 96 * AR_MIB, .first = 2 * AR_MIB,
               .slack = 128 * AR_MIB, .cap = UINT64_MAX, .collect = true, .most_bytes = 24 * AR_MIB,
               .blocks = 256);
}

TEST(test_growing_without_collection)
{
    AGREES(3, .spec = "growth:framework=jax,limit=100000000", .limit = 100000000,
           .first = 2 * AR_MIB, .slack = 128 * AR_MIB, .cap = UINT64_MAX, .most_bytes = 24 * AR_MIB,
           .blocks = 200);
}

TEST(test_growing_on_a_small_device)
{
    AGREES(4, .spec = "growth:limit=256MiB", .limit = 256 * AR_MIB, .first = 2 * AR_MIB,
           .slack = 128 * AR_MIB, .cap = 70000000, .collect = true, .most_bytes = 12 * AR_MIB,
           .blocks = 256);
}

TEST(test_coalescing)
{
    AGREES(5, .spec = "growth:limit=96MiB,coalesce=true,first_region=64KiB", .limit = 96 * AR_MIB,
           .first = 64 * AR_KIB, .slack = 128 * AR_MIB, .cap = UINT64_MAX, .collect = true,
           .coalesce = true, .most_bytes = 24 * AR_MIB, .blocks = 256);
}

TEST(test_preallocating)
{
    AGREES(6, .spec = "greedy:limit=64MiB,fragmentation_fraction=0.001", .limit = 64 * AR_MIB,
           .first = 64 * AR_MIB, .slack = 67108, .cap = UINT64_MAX, .collect = true,
           .most_bytes = 8 * AR_MIB, .blocks = 400);
}

/* Few sizes, so that many free blocks are equal and the address decides. */
TEST(test_equal_sizes)
{
    AGREES(7, .spec = "greedy:limit=64KiB", .limit = 64 * AR_KIB, .first = 64 * AR_KIB,
           .slack = 128 * AR_MIB, .cap = UINT64_MAX, .collect = true, .most_bytes = 1500,
           .blocks = 500);
}
