/* A request stream of 2000 steps, for which the real code of several allocators was measured,
 * compared with the results of the BFC allocator (google/tsl, compiled over a bump address). */
#include "allocators/policies/bfc/bfc.h"
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

#define STEPS     2000
#define MOST_LIVE 64

struct stream {
    uint32_t x;
    unsigned live[MOST_LIVE]; /* block numbers */
    uint64_t bytes[MOST_LIVE];
    unsigned count, next_block;
    uint64_t hash, live_bytes, fails, peak_granted_bytes;
};

static uint32_t draw(struct stream *s)
{
    s->x = (1103515245u * s->x + 12345u) & 0x7fffffffu;
    return s->x >> 8;
}

static void hash_address(struct stream *s, uint64_t address)
{
    for (unsigned i = 0; i < 8; i++) {
        s->hash ^= address >> 8 * i & 0xff;
        s->hash *= UINT64_C(0x100000001b3);
    }
}

static uint64_t draw_bytes(struct stream *s)
{
    uint32_t kind = draw(s) % 10;
    if (kind < 5)
        return 1 + draw(s) % 65536;
    if (kind < 8)
        return 1 + draw(s) % 4194304;
    return 1 + (kind == 8 ? 4 : 16) * (uint64_t)draw(s);
}

static void step_alloc(struct stream *s, struct bfc_rig *rig)
{
    uint64_t bytes = draw_bytes(s);
    unsigned block = s->next_block++ % BFC_RIG_BLOCKS;
    while (rig->live[block])
        block = s->next_block++ % BFC_RIG_BLOCKS;
    uint64_t address = bfc_rig_alloc(rig, block, bytes);
    hash_address(s, address);
    if (address == BFC_RIG_FAILED) {
        s->fails++;
        return;
    }
    s->live[s->count] = block;
    s->bytes[s->count++] = bytes;
    s->live_bytes += bytes;
    uint64_t granted = rig->policy->totals.granted_bytes;
    if (granted > s->peak_granted_bytes)
        s->peak_granted_bytes = granted;
}

static void step_free(struct stream *s, struct bfc_rig *rig)
{
    unsigned j = draw(s) % s->count;
    bfc_rig_free(rig, s->live[j]);
    s->live_bytes -= s->bytes[j];
    s->count--;
    s->live[j] = s->live[s->count];
    s->bytes[j] = s->bytes[s->count];
}

static struct stream run_stream(struct bfc_rig *rig)
{
    struct stream s = {.x = 12345, .hash = UINT64_C(0xcbf29ce484222325)};
    for (unsigned i = 0; i < STEPS; i++) {
        uint32_t a = draw(&s);
        if (s.count == MOST_LIVE || (s.count > 0 && a % 100 < 40))
            step_free(&s, rig);
        else
            step_alloc(&s, rig);
    }
    return s;
}

/* A field of 0 was not measured. */
struct expected {
    const char *spec;
    uint64_t hash, live, live_bytes, fails, reserved, in_use, peak, largest;
    double fragmentation;
    uint64_t regions, next_region;
};

static void check_stream(const struct expected *want)
{
    CLOSED(close_bfc_rig) struct bfc_rig *rig = bfc_rig_open(want->spec, UINT64_MAX);
    struct stream s = run_stream(rig);
    struct ar_policy_stats stats = bfc_rig_stats(rig);
    assert_int_equal(s.hash, want->hash);
    assert_int_equal(s.count, want->live);
    assert_int_equal(s.live_bytes, want->live_bytes);
    assert_int_equal(s.fails, want->fails);
    assert_int_equal(stats.count.failures, want->fails);
    assert_int_equal(stats.totals.live_bytes, want->live_bytes);
    assert_int_equal(stats.totals.live_blocks, want->live);
    assert_int_equal(stats.totals.reserved_bytes, want->reserved);
    if (want->in_use)
        assert_int_equal(stats.totals.granted_bytes, want->in_use);
    if (want->peak)
        assert_int_equal(s.peak_granted_bytes, want->peak);
    if (want->largest)
        assert_int_equal(stats.largest_free_block_bytes, want->largest);
    assert_float_equal(bfc_rig_fragmentation(rig), want->fragmentation, 1e-6);
    assert_int_equal(bfc_region_count(rig->policy), want->regions);
    if (want->next_region)
        assert_int_equal(bfc_next_region_bytes(rig->policy), want->next_region);
}

TEST(test_preallocated_4_gib)
{
    check_stream(&(struct expected){"greedy:limit=4GiB", UINT64_C(0xd7ec7ea8ed002e74), 60,
                                    483304663, 0, 4294967296, 618016256, 1179871744, 3319714560,
                                    0.097156, 1, 0});
}

TEST(test_growing_4_gib)
{
    check_stream(&(struct expected){"growth:limit=4GiB", UINT64_C(0xb717cc6185f54a24), 60,
                                    483304663, 0, 2220883968, 550595584, 1247297792, 1073741824,
                                    0.357152, 9, 2147483648});
}

TEST(test_growing_coalescing_1_gib)
{
    check_stream(&(struct expected){"growth:limit=1GiB,coalesce=true,garbage_collection=false",
                                    UINT64_C(0xae59a321499b161a), 62, 653673867, 8, 1073741824,
                                    895537408, 0, 0, 0.323971, 1, 0});
}

TEST(test_preallocated_1_gib)
{
    check_stream(&(struct expected){"greedy:limit=1GiB", UINT64_C(0x85f721819b4131dc), 60,
                                    477002699, 10, 1073741824, 629672192, 1041217792, 0, 0.360818,
                                    1, 0});
}
