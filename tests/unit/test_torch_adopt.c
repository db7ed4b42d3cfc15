/* `torch` adopts the memory of another `torch` and is then in the same state, range by range. */
#include "allocators/base/rng.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define RANGES_MOST 4096
#define BLOCKS_MOST 512

/* A backing that has the given memory and accepts every release. */

struct held {
    struct ar_backing base;
    uint64_t total_bytes;
};

static void held_memory(struct ar_backing *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = *total_bytes = ((struct held *)self)->total_bytes;
}

static struct ar_backing_ticket held_fence(struct ar_backing *self, uint32_t stream)
{
    return (struct ar_backing_ticket){.stream = stream};
}

static void held_wait(struct ar_backing *self, struct ar_backing_ticket ticket)
{
    (void)self, (void)ticket;
}

static enum ar_status take_address(struct ar_backing *self, uint64_t number)
{
    (void)self, (void)number;
    return AR_OK;
}

static enum ar_status take_span(struct ar_backing *self, uint64_t address, uint64_t bytes)
{
    (void)self, (void)address, (void)bytes;
    return AR_OK;
}

static const struct ar_backing_ops held_ops = {
    .segment_free = take_address,
    .release = take_address,
    .destroy = take_address,
    .unmap = take_span,
    .fence = held_fence,
    .wait = held_wait,
    .memory = held_memory,
};

static struct held hold(uint64_t total_bytes)
{
    return (struct held){.base = {.ops = &held_ops, .granule_bytes = 512, .page_bytes = 2 * AR_MIB},
                         .total_bytes = total_bytes};
}

struct ranges {
    struct ar_policy_range at[RANGES_MOST];
    size_t count, used;
};

static bool collect(void *argument, const struct ar_policy_range *range)
{
    struct ranges *ranges = argument;
    assert_true(ranges->count < RANGES_MOST);
    ranges->at[ranges->count++] = *range;
    ranges->used += range->state == AR_POLICY_RANGE_USED;
    return true;
}

/* The knowledge of a recording: no address space after the last page. */
static struct ranges *without_tails(const struct ranges *all)
{
    struct ranges *known = calloc(1, sizeof *known);
    assert_non_null(known);
    for (size_t i = 0; i < all->count; i++) {
        bool last =
            i + 1 == all->count || all->at[i + 1].segment_address != all->at[i].segment_address;
        if (!last || all->at[i].state != AR_POLICY_RANGE_UNMAPPED)
            collect(known, &all->at[i]);
    }
    return known;
}

static void play(struct policy_rig *rig, struct ar_rng *rng)
{
    struct ar_policy_block blocks[BLOCKS_MOST];
    size_t count = 0;
    for (int i = 0; i < 1200; i++) {
        if (count && (count == BLOCKS_MOST || ar_rng_below(rng, 100) < 45)) {
            size_t at = (size_t)ar_rng_below(rng, count);
            assert_int_equal(policy_rig_free(rig, &blocks[at]), AR_OK);
            blocks[at] = blocks[--count];
        } else if (ar_rng_below(rng, 100) < 2) {
            assert_int_equal(ar_policy_trim(rig->policy, 0), AR_OK);
        } else {
            uint64_t bytes = ar_rng_log_uniform(rng, 1, 60 * AR_MIB);
            assert_int_equal(policy_rig_alloc(rig, bytes, &blocks[count++]), AR_OK);
        }
    }
}

static void expect_same(const struct ranges *left, const struct ranges *right)
{
    assert_int_equal(left->count, right->count);
    for (size_t i = 0; i < left->count; i++) {
        const struct ar_policy_range *a = &left->at[i], *b = &right->at[i];
        assert_int_equal(a->address, b->address);
        assert_int_equal(a->bytes, b->bytes);
        assert_int_equal(a->requested_bytes, b->requested_bytes);
        assert_int_equal(a->segment_address, b->segment_address);
        assert_int_equal(a->stream, b->stream);
        assert_int_equal(a->pool, b->pool);
        assert_int_equal(a->state, b->state);
    }
}

/* The present values of torch.cuda.memory_stats(); peaks and sums begin with the adoption. */
static void expect_same_figures(const struct ar_policy *left, const struct ar_policy *right)
{
    char name[2][64];
    uint64_t value[2];
    size_t compared = 0;
    for (size_t i = 0; ar_policy_report(left, i, name[0], sizeof name[0], &value[0]); i++) {
        assert_true(ar_policy_report(right, i, name[1], sizeof name[1], &value[1]));
        assert_string_equal(name[0], name[1]);
        if (strstr(name[0], ".current") || strcmp(name[0], "oversize_allocations") == 0) {
            compared++;
            if (value[0] != value[1])
                fail_msg("%s: %" PRIu64 " and %" PRIu64, name[0], value[0], value[1]);
        }
    }
    assert_true(compared > 10);
}

/* `forgets`: only the requested bytes of used blocks are known. */
static void check(const char *spec, uint64_t seed, bool forgets)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct held held = hold(device->props.total_bytes);
    struct policy_rig first, second;
    struct ar_rng rng = ar_rng_of(seed);
    struct ranges *before = calloc(1, sizeof *before), *after = calloc(1, sizeof *after);
    assert_true(before && after);
    assert_int_equal(policy_rig_open(&first, spec, device->backing, 0), AR_OK);
    assert_int_equal(policy_rig_open(&second, spec, &held.base, 0), AR_OK);
    play(&first, &rng);
    ar_policy_walk(first.policy, collect, before);
    FREED struct ranges *known = without_tails(before);
    FREED struct ar_policy_block *blocks = calloc(known->used + 1, sizeof *blocks);
    assert_non_null(blocks);
    for (size_t i = 0; forgets && i < known->count; i++)
        if (known->at[i].state == AR_POLICY_RANGE_USED && i + 1 < known->count &&
            known->at[i + 1].state == AR_POLICY_RANGE_FREE) {
            uint64_t rest = known->at[i].bytes - known->at[i].requested_bytes;
            known->at[i].bytes -= rest;
            known->at[i + 1].address -= rest;
            known->at[i + 1].bytes += rest;
        }
    assert_int_equal(second.policy->ops->adopt(second.policy, known->at, known->count, blocks),
                     AR_OK);
    assert_ok(ar_policy_validate(second.policy, &test_error));
    ar_policy_walk(second.policy, collect, after);
    expect_same(before, after);
    expect_same_figures(first.policy, second.policy);
    assert_memory_equal(&first.policy->totals, &second.policy->totals, sizeof first.policy->totals);
    for (size_t i = 0; i < known->used; i++)
        assert_int_equal(policy_rig_free(&second, &blocks[i]), AR_OK);
    assert_int_equal(ar_policy_trim(second.policy, 0), AR_OK);
    assert_int_equal(second.policy->totals.reserved_bytes, 0);
    assert_int_equal(policy_rig_close(&second), 0);
    assert_int_equal(policy_rig_close(&first), 0);
    free(before);
    free(after);
}

TEST(test_same_state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        check("torch", seed, false);
        check("torch:expandable_segments=true", seed, false);
        check("torch:expandable_segments=true", seed, true);
        check("torch:max_split_size_mb=40", seed, false);
        check("torch:roundup_power2_divisions=4", seed, false);
    }
}

/* Merged blocks leave their records to later ones. */
TEST(growing_segments_need_no_more_records)
{
    CLOSED(close_device) struct ar_device *device = sim_test_open("sim");
    struct policy_rig rig;
    struct ar_policy_block a, b;
    uint64_t early_bytes = 0;
    assert_int_equal(policy_rig_open(&rig, "torch:expandable_segments=true", device->backing, 0),
                     AR_OK);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(policy_rig_alloc(&rig, 30 * AR_MIB, &a), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 3 * AR_MIB, &b), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &a), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &b), AR_OK);
        if (i == 100)
            early_bytes = rig.host.now_bytes;
    }
    assert_int_equal(rig.host.now_bytes, early_bytes);
    assert_int_equal(policy_rig_close(&rig), 0);
}

/* States that `torch` cannot reach. */
TEST(test_impossible)
{
    static const struct {
        const char *spec;
        struct ar_policy_range ranges[3];
        size_t count;
    } rows[] = {
        {"torch", /* a block of the large pool in a segment of the small one */
         {{.address = 2 * AR_MIB, .bytes = 2 * AR_MIB, .requested_bytes = 2 * AR_MIB}},
         1},
        {"torch", /* too little memory for the rounded request */
         {{.address = 2 * AR_MIB, .bytes = 600, .requested_bytes = 600},
          {.address = 2 * AR_MIB + 600, .bytes = 2 * AR_MIB - 600, .requested_bytes = 512}},
         2},
        {"torch", /* addresses without memory in a segment that does not grow */
         {{.address = 2 * AR_MIB, .bytes = 20 * AR_MIB, .requested_bytes = 20 * AR_MIB},
          {.address = 22 * AR_MIB, .bytes = 2 * AR_MIB, .state = AR_POLICY_RANGE_UNMAPPED}},
         2},
        {"torch:expandable_segments=true", /* pages that do not begin at a page boundary */
         {{.address = 2 * AR_MIB, .bytes = 512, .state = AR_POLICY_RANGE_UNMAPPED},
          {.address = 2 * AR_MIB + 512, .bytes = 2 * AR_MIB, .requested_bytes = 512}},
         2},
        {"torch:expandable_segments=true", /* longer than any range */
         {{.address = 2 * AR_MIB, .bytes = 100 * AR_GIB, .state = AR_POLICY_RANGE_FREE}},
         1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct held held = hold(80 * AR_GIB);
        struct policy_rig rig;
        struct ar_policy_block blocks[3];
        struct ar_policy_range ranges[3];
        memcpy(ranges, rows[i].ranges, sizeof ranges);
        for (size_t k = 0; k < rows[i].count; k++)
            ranges[k].segment_address = ranges[0].address;
        assert_int_equal(policy_rig_open(&rig, rows[i].spec, &held.base, 0), AR_OK);
        assert_int_equal(rig.policy->ops->adopt(rig.policy, ranges, rows[i].count, blocks),
                         AR_INVALID);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}
