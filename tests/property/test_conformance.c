/* The requirements of the contract, tested for every policy of policies.def on every kind of
 * memory. A new policy needs no tests for these. POLICY sets one spec instead. */
#include "tests/support/amount.h"
#include "tests/support/memories.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define CAP_BYTES (512 * AR_MIB)
#define BLOCKS    48

/* One policy on one kind of memory. */
struct bench {
    struct memory memory;
    struct policy_rig rig;
    const char *name;
    uint64_t limit_bytes;
    struct ar_policy_block blocks[BLOCKS];
    size_t count;
};

/* False: the policy cannot use that memory, because it needs virtual memory or adjacent segments
 * that are missing. */
static bool bench_open(struct bench *b, const char *name, int kind, uint64_t cap_bytes,
                       const char *prefix, uint64_t fail_at)
{
    char spec[400];
    memset(b, 0, sizeof *b);
    b->name = name;
    memory_open(&b->memory, kind, cap_bytes);
    snprintf(spec, sizeof spec, "%s%s", prefix, name);
    enum ar_status status = policy_rig_open(&b->rig, spec, b->memory.backing, fail_at);
    if (status == AR_HOST_MEMORY && fail_at)
        return true;
    if (status && status != AR_UNSUPPORTED)
        fail_msg("%s on %s: %s", name, b->memory.name, b->rig.error.text);
    return status == AR_OK;
}

static void bench_close(struct bench *b)
{
    policy_rig_close_empty(&b->rig, b->name, &b->memory);
}

/* Runs `check` on each kind of memory. At least one must be usable. */
static void on_each_limited(const char *name, uint64_t limit_bytes, void (*check)(struct bench *b))
{
    int ran = 0;
    for (int kind = 0; kind < MEMORIES; kind++) {
        CLOSED(bench_close) struct bench b;
        if (bench_open(&b, name, kind, CAP_BYTES, "", 0)) {
            b.limit_bytes = limit_bytes;
            check(&b);
            ran++;
        }
    }
    assert_true(ran > 0);
}

static void on_each(const char *name, void (*check)(struct bench *b))
{
    on_each_limited(name, UINT64_MAX, check);
}

/* An offline policy gets the lifetimes of fill: each block lives to the end. */
static void plan_fill(struct bench *b, uint64_t bytes)
{
    struct ar_policy *policy = b->rig.policy;
    if (!(policy->ops->capabilities & AR_POLICY_OFFLINE) || !policy->ops->plan)
        return;
    struct ar_policy_lifetime lives[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        lives[i] = (struct ar_policy_lifetime){bytes * (i + 1), i, 2 * BLOCKS};
    assert_int_equal(policy->ops->plan(policy, lives, BLOCKS), AR_OK);
}

/* Blocks of 1, 2, 3.. times `bytes`. */
static void fill(struct bench *b, uint64_t bytes)
{
    plan_fill(b, bytes);
    for (b->count = 0; b->count < BLOCKS; b->count++)
        if (policy_rig_alloc(&b->rig, bytes * (b->count + 1), &b->blocks[b->count]))
            fail_msg("%s on %s: block %zu: %s", b->name, b->memory.name, b->count,
                     ar_policy_problem(b->rig.policy));
}

static void works(struct bench *b, enum ar_status status)
{
    if (status)
        fail_msg("%s on %s: %s", b->name, b->memory.name, ar_policy_problem(b->rig.policy));
}

static void free_one(struct bench *b, const struct ar_policy_block *block)
{
    works(b, policy_rig_free(&b->rig, block));
}

/* Every second block, from the first (0) or the second (1) on. */
static void free_half(struct bench *b, size_t first)
{
    for (size_t i = first; i < b->count; i += 2)
        free_one(b, &b->blocks[i]);
}

/* One half first, to make free blocks between live ones. */
static void free_all(struct bench *b)
{
    free_half(b, 0);
    free_half(b, 1);
    b->count = 0;
}

/* ---- totals, walk, stats and validate agree -------------------------------------------------- */

static void books(struct bench *b)
{
    const struct ar_policy *policy = b->rig.policy;
    const struct ar_policy_totals *totals = &policy->totals;
    struct ar_policy_stats stats;
    if (ar_policy_validate(policy, &test_error))
        fail_msg("%s on %s: %s", b->name, b->memory.name, test_error.text);
    ar_policy_stats(policy, &stats);
    assert_memory_equal(&stats.totals, totals, sizeof *totals);
    assert_true(totals->live_bytes <= totals->granted_bytes);
    assert_true(totals->granted_bytes + totals->pending_bytes + totals->overhead_bytes <=
                totals->reserved_bytes);
    assert_true(totals->releasable_bytes <= ar_policy_free_bytes(totals));
    assert_true(ar_policy_servable(policy, AR_POLICY_EFFORT_NONE) <= ar_policy_free_bytes(totals));
    for (int effort = 0; effort + 1 < AR_POLICY_EFFORT_COUNT; effort++)
        assert_true(ar_policy_servable(policy, (enum ar_policy_effort)effort) <=
                    ar_policy_servable(policy, (enum ar_policy_effort)(effort + 1)));
    if (policy->ops->capabilities & (AR_POLICY_OVERLAPS | AR_POLICY_OPAQUE))
        return; /* nothing to walk over */
    struct policy_walk_sums sums = policy_walk_sum(policy);
    assert_false(sums.out_of_order);
    assert_false(sums.gap);
    assert_int_equal(sums.ranges[AR_POLICY_RANGE_USED], totals->live_blocks);
    assert_int_equal(sums.requested_bytes, totals->live_bytes);
    assert_int_equal(sums.bytes[AR_POLICY_RANGE_USED], totals->granted_bytes);
    assert_int_equal(sums.bytes[AR_POLICY_RANGE_PENDING], totals->pending_bytes);
    assert_int_equal(sums.bytes[AR_POLICY_RANGE_OVERHEAD], totals->overhead_bytes);
    assert_int_equal(sums.bytes[AR_POLICY_RANGE_FREE], ar_policy_free_bytes(totals));
    /* The largest request that it can serve: less than the free block if the search rounds requests
     * up, but of the same order. servable_is_served requests exactly that. */
    assert_true(stats.largest_free_block_bytes <= sums.largest_free_block_bytes);
    if (!policy->ops->room && sums.largest_free_block_bytes)
        fail_msg("%s on %s has a free block of %" PRIu64 " bytes, and no hook room that says so",
                 b->name, b->memory.name, sums.largest_free_block_bytes);
}

static void lives_and_dies(struct bench *b)
{
    const struct ar_policy_totals *totals = &b->rig.policy->totals;
    books(b);
    for (int round = 0; round < 3; round++) {
        fill(b, 1000);
        books(b);
        assert_int_equal(totals->live_blocks, BLOCKS);
        assert_int_equal(totals->live_bytes, 1000 * BLOCKS * (BLOCKS + 1) / 2);
        free_all(b);
        books(b);
        assert_int_equal(totals->live_bytes, 0);
        assert_int_equal(totals->granted_bytes, 0);
        assert_int_equal(totals->live_blocks, 0);
        assert_int_equal(totals->pending_bytes, 0);
    }
}

static void roundtrip(void **state)
{
    on_each(*state, lives_and_dies);
}

static void dies_with_blocks_live(struct bench *b)
{
    fill(b, 100000);
}

static void destroy_gives_all_back(void **state)
{
    on_each(*state, dies_with_blocks_live);
}

static void trims(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    fill(b, 100000);
    for (size_t i = 0; i < BLOCKS; i += 2)
        free_one(b, &b->blocks[i]);
    uint64_t granted = policy->totals.granted_bytes;
    uint64_t reserved = policy->totals.reserved_bytes;
    uint64_t free_before = ar_policy_free_bytes(&policy->totals);
    works(b, ar_policy_trim(policy, free_before / 2));
    assert_true(policy->totals.reserved_bytes <= reserved);
    books(b);
    works(b, ar_policy_trim(policy, 0));
    books(b);
    assert_int_equal(policy->totals.granted_bytes, granted);
    assert_true(policy->totals.reserved_bytes <= reserved);
    for (size_t i = 1; i < BLOCKS; i += 2)
        free_one(b, &b->blocks[i]);
    works(b, ar_policy_trim(policy, 0));
    books(b);
    if (policy->ops->trim && policy->totals.releasable_bytes &&
        !(policy->ops->capabilities & AR_POLICY_TRIM_KEEPS))
        fail_msg("%s on %s: all blocks are free, and trim(0) leaves %" PRIu64
                 " releasable bytes of %" PRIu64 " reserved; release them, leave the hook out, or "
                 "set AR_POLICY_TRIM_KEEPS",
                 b->name, b->memory.name, policy->totals.releasable_bytes,
                 policy->totals.reserved_bytes);
    struct ar_policy_block block; /* it still works */
    if (policy->ops->capabilities & AR_POLICY_OFFLINE)
        return;
    works(b, policy_rig_alloc(&b->rig, 12345, &block));
    books(b);
}

static void trim_keeps_what_is_live(void **state)
{
    on_each(*state, trims);
}

/* ---- requests that cannot be served ---------------------------------------------------------- */

static void asks_too_much(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    static const uint64_t sizes[] = {CAP_BYTES + 1, UINT64_C(1) << 40, (UINT64_C(1) << 60) - 1};
    struct ar_policy_block block;
    struct ar_policy_stats before;
    struct ar_policy_stats after;
    if (policy->ops->capabilities & (AR_POLICY_OVERLAPS | AR_POLICY_OFFLINE))
        return; /* `null` serves all; an offline policy knows the requests */
    fill(b, 1000);
    struct ar_policy_totals totals = policy->totals;
    ar_policy_stats(policy, &before);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(policy_rig_alloc(&b->rig, sizes[i], &block), AR_NO_MEMORY);
        assert_int_equal(policy->totals.live_bytes, totals.live_bytes);
        assert_int_equal(policy->totals.granted_bytes, totals.granted_bytes);
        assert_int_equal(policy->totals.live_blocks, totals.live_blocks);
        books(b);
    }
    ar_policy_stats(policy, &after);
    if (after.count.failures != before.count.failures + COUNT(sizes))
        fail_msg(
            "%s on %s: the counter `failures` is %" PRIu64 " after %zu refused requests; add 1 "
            "each time alloc returns NO_MEMORY",
            b->name, b->memory.name, after.count.failures - before.count.failures, COUNT(sizes));
    free_all(b);
    books(b);
}

/* A first request above the device capacity has no effect: later blocks lie in memory that the
 * device knows. */
static void serves_after_refusal(struct bench *b)
{
    struct ar_policy_block block;
    struct ar_device_segment segment;
    plan_fill(b, 2 * AR_MIB);
    if (b->rig.policy->ops->capabilities & AR_POLICY_OVERLAPS || !b->memory.device)
        return;
    assert_int_equal(policy_rig_alloc(&b->rig, 4 * CAP_BYTES, &block), AR_NO_MEMORY);
    works(b, policy_rig_alloc(&b->rig, 2 * AR_MIB, &block));
    struct ar_device *device = b->memory.device;
    if (!device->ops->segment_of(device, block.address, &segment))
        fail_msg("%s on %s: a block at %" PRIu64 ", where no segment lies", b->name, b->memory.name,
                 block.address);
    assert_true(device->counters.physical_bytes >= 2 * AR_MIB);
    free_one(b, &block);
}

static void refused_first(void **state)
{
    on_each(*state, serves_after_refusal);
}

static void refusal_changes_no_total(void **state)
{
    on_each(*state, asks_too_much);
}

/* A request of servable(EFFORT_NONE) bytes is served without a call. */
static void served_as_promised(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    struct ar_policy_block block;
    if (policy->ops->capabilities & AR_POLICY_OFFLINE)
        return;
    fill(b, 70000);
    for (size_t i = 0; i < BLOCKS; i += 3)
        free_one(b, &b->blocks[i]);
    uint64_t bytes = ar_policy_servable(policy, AR_POLICY_EFFORT_NONE);
    if (bytes == 0)
        return;
    uint64_t reserved = policy->totals.reserved_bytes;
    if (policy_rig_alloc(&b->rig, bytes, &block))
        fail_msg("%s on %s: %" PRIu64 " bytes are servable and not served", b->name, b->memory.name,
                 bytes);
    assert_int_equal(policy->totals.reserved_bytes, reserved);
    books(b);
}

static void servable_is_served(void **state)
{
    on_each(*state, served_as_promised);
}

static void check_limit(const struct bench *b)
{
    uint64_t reserved = b->rig.policy->totals.reserved_bytes;
    if (reserved > b->limit_bytes)
        fail_msg("%s on %s: %" PRIu64 " bytes are reserved, above limit=%" PRIu64
                 "; refuse what would pass ar_policy_limit()",
                 b->name, b->memory.name, reserved, b->limit_bytes);
}

/* Blocks of 3/64, 5/64 and 1/90 of the limit until it is reached: with sizes that alternate, sums
 * of free bytes are no powers of two. An opaque policy has no figures of free blocks. */
static bool fill_to_limit(struct bench *b)
{
    const uint64_t sizes[] = {b->limit_bytes / 64 * 3, b->limit_bytes / 64 * 5,
                              b->limit_bytes / 90};
    if (b->rig.policy->ops->capabilities &
        (AR_POLICY_OFFLINE | AR_POLICY_OVERLAPS | AR_POLICY_OPAQUE))
        return false;
    while (b->count < BLOCKS &&
           policy_rig_alloc(&b->rig, sizes[b->count % COUNT(sizes)], &b->blocks[b->count]) == AR_OK)
        b->count++;
    check_limit(b);
    return true;
}

/* A request of servable(EFFORT_TRIM) bytes is served. */
static void serves_with_trim(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    struct ar_policy_block block;
    if (!fill_to_limit(b))
        return;
    for (size_t first = 0; first < 2; first++) {
        free_half(b, first);
        uint64_t promised = ar_policy_servable(policy, AR_POLICY_EFFORT_TRIM);
        if (!promised)
            continue;
        if (policy_rig_alloc(&b->rig, promised, &block))
            fail_msg("%s on %s: servable(EFFORT_TRIM) returns %" PRIu64
                     ", and a request of so many bytes is not served",
                     b->name, b->memory.name, promised);
        books(b);
        free_one(b, &block);
    }
}

/* A request above servable(EFFORT_TRIM) and the rest of the limit is refused. A block that is
 * mapped may use the free part of a page at each of its ends too. */
static void serves_no_more(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    struct ar_policy_block block;
    if (!fill_to_limit(b))
        return;
    for (size_t first = 0; first < 2; first++) {
        free_half(b, first);
        uint64_t promised = ar_policy_servable(policy, AR_POLICY_EFFORT_TRIM);
        uint64_t rest = b->limit_bytes - policy->totals.reserved_bytes;
        uint64_t bytes = promised + rest + 1;
        if (policy->ops->capabilities & AR_POLICY_NEEDS_MAPPING)
            bytes += 2 * b->memory.backing->page_bytes;
        if (policy_rig_alloc(&b->rig, bytes, &block) != AR_NO_MEMORY)
            fail_msg("%s on %s: servable(EFFORT_TRIM) returns %" PRIu64
                     ", the limit allows %" PRIu64 " more, and %" PRIu64
                     " bytes are served; does the policy release its cache before it refuses, "
                     "or serve a class from free bytes and the rest of the limit together?",
                     b->name, b->memory.name, promised, rest, bytes);
        books(b);
    }
}

static void keeps_to_the_limit(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    struct ar_policy_block block;
    enum ar_status status = AR_OK;
    if (policy->ops->capabilities & AR_POLICY_OFFLINE)
        return;
    for (int i = 0; i < 200 && status == AR_OK; i++) {
        status = policy_rig_alloc(&b->rig, b->limit_bytes / 64 * 3, &block);
        check_limit(b);
    }
    assert_int_equal(status, AR_NO_MEMORY);
    assert_true(policy->totals.reserved_bytes > 0);
    books(b);
}

/* With a limit of a single segment of most policies, and of several. */
static void on_each_with_limit(const char *name, void (*check)(struct bench *b))
{
    static const uint64_t limits[] = {64 * AR_MIB, 400 * AR_MIB};
    for (size_t i = 0; i < COUNT(limits); i++) {
        char spec[300];
        snprintf(spec, sizeof spec, "%s%slimit=%" PRIu64, name, strchr(name, ':') ? "," : ":",
                 limits[i]);
        on_each_limited(spec, limits[i], check);
    }
}

static void limit_holds(void **state)
{
    on_each_with_limit(*state, keeps_to_the_limit);
}

static void servable_is_enough(void **state)
{
    on_each_with_limit(*state, serves_no_more);
}

static void servable_with_trim(void **state)
{
    on_each_with_limit(*state, serves_with_trim);
}

static void alignment_is_honoured(struct bench *b)
{
    struct ar_policy *policy = b->rig.policy;
    if (!(policy->ops->capabilities & AR_POLICY_HONOURS_ALIGNMENT))
        return;
    for (int round = 0; round < 3; round++) {
        for (unsigned log2 = 0; log2 <= 21; log2++) {
            struct ar_policy_block block;
            const struct ar_policy_request request = {.bytes = 777,
                                                      .alignment = UINT64_C(1) << log2};
            assert_int_equal(ar_policy_alloc(policy, &request, &block), AR_OK);
            assert_int_equal(block.address % request.alignment, 0);
            if (log2 % 2)
                free_one(b, &block);
        }
    }
    books(b);
}

static void alignment(void **state)
{
    on_each(*state, alignment_is_honoured);
}

/* ---- the watch of free blocks ---------------------------------------------------------------- */

static bool usable(void *argument, const struct ar_policy_range *range)
{
    struct ar_policy_free_watch *sum = argument;
    if (range->state == AR_POLICY_RANGE_FREE)
        sum->usable_bytes += range->bytes - range->bytes % sum->unit_bytes;
    return true;
}

static void watch(void **state)
{
    const char *name = *state;
    CLOSED(op_script_close) struct op_script script;
    op_script_open(&script, 11, 4000, 100, 4 * AR_MIB);
    for (int kind = 0; kind < MEMORIES; kind++) {
        CLOSED(bench_close) struct bench b;
        if (bench_open(&b, name, kind, CAP_BYTES, "", 0) &&
            (b.rig.policy->ops->capabilities & AR_POLICY_WATCHES_FREE)) {
            struct ar_policy_free_watch held = {.unit_bytes = 100000};
            ar_policy_walk(b.rig.policy, usable, &held); /* free blocks that `create` made */
            ar_policy_watch(b.rig.policy, &held);
            struct op_script part = script;
            part.count -= script.count / 3; /* stop in the middle, with free and used blocks */
            struct op_result result = op_script_run(&part, b.rig.policy);
            if (result.status)
                fail_msg("%s on %s: %s at operation %zu: %s", b.name, b.memory.name,
                         ar_status_name(result.status), result.at, ar_policy_problem(b.rig.policy));
            struct ar_policy_free_watch sum = {.unit_bytes = 100000};
            ar_policy_walk(b.rig.policy, usable, &sum);
            if (held.usable_bytes != sum.usable_bytes)
                fail_msg("%s on %s: ar_policy_free_added and _removed report %" PRIu64
                         " usable bytes of free blocks, the walk %" PRIu64,
                         b.name, b.memory.name, held.usable_bytes, sum.usable_bytes);
        }
    }
}

/* ---- faults: each host allocation, each call for memory, fails once -------------------------- */

/* The possible results of a run with a fault. Everything is released after any of them. At most
 * `refused` requests find no memory on the device. */
static void after_fault(struct bench *b, const struct op_script *script, enum ar_status allowed,
                        size_t refused)
{
    struct op_result result = op_script_run(script, b->rig.policy);
    if (result.status != AR_OK && result.status != allowed)
        fail_msg("%s on %s: %s at operation %zu: %s", b->name, b->memory.name,
                 ar_status_name(result.status), result.at, ar_policy_problem(b->rig.policy));
    if (result.refused > refused)
        fail_msg("%s on %s: %zu requests are refused, %zu without the fault", b->name,
                 b->memory.name, result.refused, refused);
    if (ar_policy_validate(b->rig.policy, &test_error))
        fail_msg("%s on %s, after a fault: %s", b->name, b->memory.name, test_error.text);
}

static void host_faults(void **state)
{
    CLOSED(op_script_close) struct op_script script;
    /* A plan is made anew for each fault. */
    bool offline = policy_rig_has(*state, AR_POLICY_OFFLINE);
    op_script_open(&script, 5, test_amount(600, offline ? 100 : 400), 60, 8 * AR_MIB);
    for (int kind = 0; kind < MEMORIES; kind++) {
        uint64_t calls = UINT64_MAX;
        struct bench whole;
        size_t refused = 0; /* missing host memory is no refusal of the device */
        if (bench_open(&whole, *state, kind, CAP_BYTES, "", 0))
            refused = op_script_run(&script, whole.rig.policy).refused;
        bench_close(&whole);
        for (uint64_t at = 1; at <= calls && at < 5000; at++) {
            CLOSED(bench_close) struct bench b;
            if (!bench_open(&b, *state, kind, CAP_BYTES, "", at))
                calls = 0;
            else if (b.rig.policy)
                after_fault(&b, &script, AR_HOST_MEMORY, refused);
            if (b.rig.host.calls < at)
                calls = b.rig.host.calls; /* that call was never made */
        }
    }
}

static void backing_faults(void **state)
{
    CLOSED(op_script_close) struct op_script script;
    op_script_open(&script, 6, 600, 60, 8 * AR_MIB);
    for (int kind = 0; kind < MEMORIES; kind++) {
        for (uint64_t at = 1; at < 60; at += 60 / test_amount(60, 30)) {
            char prefix[40];
            CLOSED(bench_close) struct bench b;
            snprintf(prefix, sizeof prefix, "checked+fault(n=%" PRIu64 ")+", at);
            if (bench_open(&b, *state, kind, CAP_BYTES, prefix, 0))
                after_fault(&b, &script, AR_OK, SIZE_MAX);
        }
    }
}

/* ---- all of them, for each policy ------------------------------------------------------------ */

int main(void)
{
    static const struct CMUnitTest checks[] = {
        cmocka_unit_test(roundtrip),
        cmocka_unit_test(destroy_gives_all_back),
        cmocka_unit_test(trim_keeps_what_is_live),
        cmocka_unit_test(refusal_changes_no_total),
        cmocka_unit_test(refused_first),
        cmocka_unit_test(servable_is_served),
        cmocka_unit_test(servable_with_trim),
        cmocka_unit_test(servable_is_enough),
        cmocka_unit_test(limit_holds),
        cmocka_unit_test(alignment),
        cmocka_unit_test(watch),
        cmocka_unit_test(host_faults),
        cmocka_unit_test(backing_faults),
    };
    enum { CHECKS = COUNT(checks), POLICIES = 64 };
    static struct CMUnitTest tests[POLICIES * CHECKS];
    static char names[POLICIES * CHECKS][80];
    size_t count = 0;
    const char *policy;
    for (size_t p = 0; p < POLICIES && (policy = policy_rig_each(p)); p++) {
        for (size_t c = 0; c < CHECKS; c++, count++) {
            snprintf(names[count], sizeof names[count], "%.40s: %s", policy, checks[c].name);
            tests[count] = checks[c];
            tests[count].name = names[count];
            tests[count].initial_state = (void *)(uintptr_t)policy;
        }
    }
    return _cmocka_run_group_tests("conformance", tests, count, NULL, NULL);
}
