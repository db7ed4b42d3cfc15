/* PyTorch's cache of pinned host memory: its rules by hand-derived sequences, and random sequences
 * against a second model of it that shares no code with the policy. */
#include "allocators/registry.h"
#include "sim/device.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

/* On the pinned memory of a simulated device. Addresses count from the first block. */
struct rig {
    struct ar_device *device;
    struct policy_rig policy;
    uint64_t first_address;
};

static void open_rig(struct rig *rig, const char *spec, const char *device)
{
    memset(rig, 0, sizeof *rig);
    rig->device = sim_test_open(device);
    if (policy_rig_open(&rig->policy, spec, rig->device->pinned, 0) != AR_OK)
        fail_msg("%s", rig->policy.error.text);
    rig->first_address = UINT64_C(1) << 46;
}

static void check(struct rig *rig)
{
    assert_ok(ar_policy_validate(rig->policy.policy, &test_error));
}

static void close_rig(struct rig *rig)
{
    check(rig);
    assert_int_equal(policy_rig_close(&rig->policy), 0);
    assert_int_equal(rig->device->counters.pinned_bytes, 0);
    assert_int_equal(rig->device->counters.physical_bytes, 0);
    rig->device->ops->close(rig->device);
}

static struct ar_policy_block alloc(struct rig *rig, uint64_t bytes)
{
    struct ar_policy_block block = {0};
    assert_int_equal(policy_rig_alloc(&rig->policy, bytes, &block), AR_OK);
    assert_true(block.granted_bytes >= bytes);
    check(rig);
    return block;
}

static void use(struct rig *rig, const struct ar_policy_block *block, uint32_t stream)
{
    assert_int_equal(ar_policy_use(rig->policy.policy, block, stream), AR_OK);
}

static void release(struct rig *rig, struct ar_policy_block block)
{
    assert_int_equal(policy_rig_free(&rig->policy, &block), AR_OK);
    check(rig);
}

static void kernel(struct rig *rig, uint32_t stream, uint64_t nanoseconds)
{
    rig->device->ops->kernel(rig->device, stream, nanoseconds);
}

static void sync(struct rig *rig, uint32_t stream)
{
    rig->device->ops->sync(rig->device, stream);
}

static uint64_t made(const struct rig *rig)
{
    return rig->device->counters.calls[AR_DEVICE_CALL_pinned_alloc];
}

static uint64_t reserved(const struct rig *rig)
{
    return rig->policy.policy->totals.reserved_bytes;
}

TEST(powers_of_two)
{
    static const uint64_t sizes[][2] = {
        {1, 1},
        {2, 2},
        {3, 4},
        {511, 512},
        {512, 512},
        {513, 1024},
        {4097, 8192},
        {65536, 65536},
        {3 * AR_MIB, 4 * AR_MIB},
        {5000000, 8 * AR_MIB},
    };
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(alloc(&rig, sizes[i][0]).granted_bytes, sizes[i][1]);
        sum += sizes[i][1];
        assert_int_equal(reserved(&rig), sum);
        assert_int_equal(made(&rig), i + 1);
    }
    assert_int_equal(rig.device->counters.pinned_bytes, sum);
}

TEST(the_block_freed_last)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block a = alloc(&rig, 1000), b = alloc(&rig, 600), c = alloc(&rig, 2000);
    release(&rig, a);
    release(&rig, b);
    release(&rig, c);
    assert_int_equal(alloc(&rig, 1024).address, b.address);
    assert_int_equal(alloc(&rig, 513).address, a.address);
    assert_int_not_equal(alloc(&rig, 1024).address, c.address); /* never from a larger one */
    assert_int_equal(made(&rig), 4);
}

TEST(events)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block a = alloc(&rig, 4096);
    kernel(&rig, 1, MS);
    kernel(&rig, 2, 5 * MS);
    use(&rig, &a, 1);
    use(&rig, &a, 2);
    use(&rig, &a, 1);
    release(&rig, a);
    assert_int_equal(rig.policy.policy->totals.pending_bytes, 4096);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_requests.current"), 1);
    struct ar_policy_block b = alloc(&rig, 4096);
    assert_int_not_equal(b.address, a.address);
    sync(&rig, 1); /* stream 2 still works */
    assert_int_not_equal(alloc(&rig, 4096).address, a.address);
    sync(&rig, 2);
    assert_int_equal(alloc(&rig, 4096).address, a.address);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_requests.freed"), 1);
}

/* One queue for all streams: an event that is not done holds up those behind it. */
TEST(one_queue)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block slow = alloc(&rig, 100), quick = alloc(&rig, 4096);
    kernel(&rig, 1, 50 * MS);
    use(&rig, &slow, 1);
    kernel(&rig, 2, MS);
    use(&rig, &quick, 2);
    release(&rig, slow);
    release(&rig, quick);
    sync(&rig, 2);
    struct ar_policy_block other = alloc(&rig, 4096);
    assert_int_not_equal(other.address, quick.address);
    sync(&rig, 1);
    assert_int_equal(alloc(&rig, 4096).address, quick.address);
    assert_int_equal(alloc(&rig, 100).address, slow.address);
}

TEST(background_threads)
{
    for (int on = 0; on < 2; on++) {
        CLOSED(close_rig) struct rig rig;
        open_rig(&rig,
                 on ? "torch-pinned:conf='pinned_use_background_threads:True'" : "torch-pinned",
                 "sim");
        struct ar_policy_block a = alloc(&rig, 4096);
        kernel(&rig, 1, MS);
        use(&rig, &a, 1);
        release(&rig, a);
        sync(&rig, 1);
        ar_policy_progress(rig.policy.policy);
        assert_int_equal(rig.policy.policy->totals.pending_bytes, on ? 0 : 4096);
    }
}

TEST(a_trim_releases_what_is_free)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block a = alloc(&rig, 4096), b = alloc(&rig, 8192), c = alloc(&rig, 100);
    kernel(&rig, 1, MS);
    use(&rig, &b, 1);
    release(&rig, a);
    release(&rig, b);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    check(&rig);
    assert_int_equal(reserved(&rig), 8192 + 128); /* b is pending, c live */
    assert_int_equal(policy_rig_figure(&rig.policy, "num_host_free"), 1);
    sync(&rig, 1);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 128);
    assert_int_equal(policy_rig_figure(&rig.policy, "allocations.current"), 1);
    release(&rig, c);
}

TEST(no_second_try)
{
    struct rig rig;
    struct ar_policy_block block;
    open_rig(&rig, "torch-pinned", "sim:host=10000");
    struct ar_policy_block a = alloc(&rig, 4096);
    release(&rig, a);
    assert_int_equal(policy_rig_alloc(&rig.policy, 8000, &block), AR_NO_MEMORY);
    check(&rig);
    assert_int_equal(reserved(&rig), 4096); /* the cached block stays */
    assert_int_equal(alloc(&rig, 4096).address, a.address);
    assert_int_equal(alloc(&rig, 4000).granted_bytes, 4096);
    close_rig(&rig);
    open_rig(&rig, "torch-pinned:limit=6000", "sim");
    (void)alloc(&rig, 4096);
    assert_int_equal(policy_rig_alloc(&rig.policy, 2048, &block), AR_NO_MEMORY);
    (void)alloc(&rig, 1024);
    close_rig(&rig);
}

TEST(reserve_segment)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned:pinned_reserve_segment_size_mb=1", "sim");
    struct ar_policy_block a = alloc(&rig, 1), b = alloc(&rig, 5000), c = alloc(&rig, 300000);
    assert_int_equal(a.address - rig.first_address, 0);
    assert_int_equal(b.address - rig.first_address, 4096); /* a takes 4 KiB of it */
    assert_int_equal(b.granted_bytes, 8192);
    assert_int_equal(c.address - rig.first_address, 12288);
    assert_int_equal(made(&rig), 1);
    assert_int_equal(reserved(&rig), AR_MIB);
    assert_int_equal(ar_policy_servable(rig.policy.policy, AR_POLICY_EFFORT_NONE), 262144);
    struct ar_policy_block d = alloc(&rig, 600000); /* does not fit any more */
    assert_int_equal(d.granted_bytes, AR_MIB);
    assert_int_equal(made(&rig), 2);
    release(&rig, b);
    assert_int_equal(alloc(&rig, 8000).address, b.address);
    release(&rig, a);
    release(&rig, c);
    release(&rig, d);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    check(&rig);
    assert_int_equal(reserved(&rig), AR_MIB); /* the segment stays, a and c are lost */
    assert_int_equal(policy_rig_figure(&rig.policy, "num_host_free"), 3);
    assert_int_equal(alloc(&rig, 1).address - rig.first_address, 12288 + 524288);
}

TEST(thresholds)
{
    struct rig rig;
    open_rig(&rig, "torch-pinned:pinned_max_round_threshold_mb=1", "sim");
    uint64_t mib = AR_MIB;
    struct ar_policy_block a = alloc(&rig, 1500000), b = alloc(&rig, 1200000);
    assert_int_equal(a.granted_bytes, 1500000);
    assert_int_equal(alloc(&rig, mib).granted_bytes, mib);
    assert_int_equal(alloc(&rig, mib - 1).granted_bytes, mib);
    release(&rig, a);
    release(&rig, b);
    assert_int_equal(alloc(&rig, 1400000).address, a.address); /* b is too small */
    assert_int_equal(alloc(&rig, 1100000).address, b.address);
    close_rig(&rig);
    open_rig(&rig, "torch-pinned:pinned_max_cached_size_mb=1", "sim");
    a = alloc(&rig, 1500000);
    b = alloc(&rig, 600000);
    assert_int_equal(a.granted_bytes, 1500000);
    assert_int_equal(b.granted_bytes, mib);
    release(&rig, a);
    release(&rig, b);
    assert_int_equal(reserved(&rig), mib); /* a was released, b is cached */
    close_rig(&rig);
}

static struct ar_policy_block captured(struct rig *rig, uint64_t bytes)
{
    const struct ar_policy_request request = {.bytes = bytes, .pool = 3};
    struct ar_policy_block block = {0};
    assert_int_equal(ar_policy_alloc(rig->policy.policy, &request, &block), AR_OK);
    check(rig);
    return block;
}

TEST(captured_graphs)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block common = alloc(&rig, 4096);
    release(&rig, common);
    struct ar_policy_block a = captured(&rig, 4096), b = captured(&rig, 4096);
    assert_int_not_equal(a.address, common.address);
    use(&rig, &a, 1);
    release(&rig, a);
    release(&rig, b);
    sync(&rig, 1);
    assert_int_equal(captured(&rig, 4096).address, b.address);
    assert_int_not_equal(captured(&rig, 4096).address, a.address); /* never again */
    assert_int_equal(alloc(&rig, 4096).address, common.address);
    struct ar_policy_block c = captured(&rig, 100);
    release(&rig, c);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 4 * 4096 + 128); /* the pool lives */
    ar_policy_end_pool(rig.policy.policy, 3);
    assert_int_equal(ar_policy_trim(rig.policy.policy, 0), AR_OK);
    assert_int_equal(reserved(&rig), 4 * 4096);
}

TEST(peaks_of_sizes)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch-pinned", "sim");
    struct ar_policy_block a = alloc(&rig, 1000);
    release(&rig, a);
    struct ar_policy_block b = alloc(&rig, 3000);
    /* They were never live together, but the peaks of their sizes are added. */
    assert_int_equal(policy_rig_figure(&rig.policy, "active_bytes.peak"), 1024 + 4096);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_bytes.current"), 4096);
    assert_int_equal(policy_rig_figure(&rig.policy, "allocated_bytes.peak"), 1024 + 4096);
    ar_policy_reset_peaks(rig.policy.policy);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_bytes.peak"), 4096);
    release(&rig, b);
}

TEST(peaks_begin_anew_at_what_is_live)
{
    CLOSED(close_rig) struct rig rig;
    open_rig(&rig, "torch", "sim");
    struct ar_policy_block kept = alloc(&rig, 3000), freed = alloc(&rig, 5000);
    release(&rig, freed);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_bytes.all.peak"), 3072 + 5120);
    ar_policy_reset_peaks(rig.policy.policy);
    assert_int_equal(policy_rig_figure(&rig.policy, "active_bytes.all.peak"), 3072);
    assert_int_equal(policy_rig_figure(&rig.policy, "allocated_bytes.small_pool.peak"), 3072);
    assert_int_equal(policy_rig_figure(&rig.policy, "requested_bytes.all.peak"), 3000);
    release(&rig, kept);
}

TEST(wrong_settings)
{
    EACH_ROW (row, 2) {
        struct ar_device *device = sim_test_open("sim");
        struct policy_rig rig;
        assert_int_equal(policy_rig_open(&rig, row.field[0], device->pinned, 0), AR_INVALID);
        if (!strstr(rig.error.text, row.field[1]))
            fail_msg("%s: %s", row.field[0], rig.error.text);
        policy_rig_close(&rig);
        device->ops->close(device);
    }
    struct rig rig; /* settings of the device's cache are passed over */
    open_rig(&rig,
             "torch-pinned:conf='roundup_power2_divisions:[256:1,>:4],"
             "pinned_reserve_segment_size_mb:2,expandable_segments:True'",
             "sim");
    (void)alloc(&rig, 1);
    assert_int_equal(reserved(&rig), 2 * AR_MIB);
    close_rig(&rig);
}

/* ---- random sequences against a model -------------------------------------------------------- */

#define SLOTS   40
#define STREAMS 4

/* The model: blocks by number, lists as stacks of numbers, events in one array. */
struct model {
    struct {
        uint64_t address, bytes;
        int events;
    } blocks[4000];
    int block_count;
    int stacks[64][4000], stack_counts[64];
    struct {
        int block;
        uint64_t done_ns;
    } queue[8000];
    int queue_first, queue_end;
    uint64_t tails_ns[STREAMS];
};

static int stack_of(uint64_t bytes)
{
    int stack = 0;
    while ((UINT64_C(1) << stack) < bytes)
        stack++;
    return stack;
}

static void model_poll(struct model *model, uint64_t now_ns)
{
    while (model->queue_first < model->queue_end &&
           model->queue[model->queue_first].done_ns <= now_ns) {
        int block = model->queue[model->queue_first++].block;
        int stack = stack_of(model->blocks[block].bytes);
        if (--model->blocks[block].events == 0)
            model->stacks[stack][model->stack_counts[stack]++] = block;
    }
}

static void random_sequence(uint64_t seed)
{
    FREED struct model *model = calloc(1, sizeof *model);
    struct {
        struct ar_policy_block given;
        int block;
        bool streams[STREAMS], live;
    } slots[SLOTS] = {0};
    CLOSED(close_rig) struct rig rig;
    assert_non_null(model);
    open_rig(&rig, "checked+torch-pinned", "sim:profile=bump"); /* polling takes no time */
    for (int i = 0; i < 3000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned draw = (unsigned)(seed >> 33);
        unsigned slot = draw % SLOTS, stream = draw / SLOTS % STREAMS, what = draw / 1000 % 16;
        uint64_t now_ns = rig.device->ops->now(rig.device);
        if (what < 2) {
            uint64_t length_ns = 1 + draw % 977;
            kernel(&rig, stream, length_ns);
            uint64_t begin_ns = model->tails_ns[stream] > now_ns ? model->tails_ns[stream] : now_ns;
            model->tails_ns[stream] = begin_ns + length_ns;
        } else if (what == 2) {
            rig.device->ops->advance(rig.device, draw % 701);
        } else if (!slots[slot].live) {
            uint64_t bytes = 1 + (seed >> 20) % (UINT64_C(1) << (1 + draw % 9));
            int stack = stack_of(bytes);
            model_poll(model, now_ns);
            slots[slot].given = alloc(&rig, bytes);
            slots[slot].live = true;
            if (model->stack_counts[stack]) {
                slots[slot].block = model->stacks[stack][--model->stack_counts[stack]];
            } else {
                slots[slot].block = model->block_count++;
                model->blocks[slots[slot].block].address = slots[slot].given.address;
                model->blocks[slots[slot].block].bytes = UINT64_C(1) << stack;
            }
            assert_int_equal(slots[slot].given.address, model->blocks[slots[slot].block].address);
            assert_int_equal(slots[slot].given.granted_bytes, UINT64_C(1) << stack);
            assert_int_equal(made(&rig), model->block_count);
        } else if (what < 9) {
            use(&rig, &slots[slot].given, stream);
            slots[slot].streams[stream] = true;
        } else {
            int block = slots[slot].block, stack = stack_of(model->blocks[block].bytes);
            release(&rig, slots[slot].given);
            /* The policy's order of the streams is that of their uses. It does not matter here:
             * the block is free with the last of its events, and the queue stops at the latest. */
            uint64_t latest_ns = 0;
            for (unsigned s = 0; s < STREAMS; s++)
                if (slots[slot].streams[s] && model->tails_ns[s] > latest_ns)
                    latest_ns = model->tails_ns[s];
            bool used = false;
            for (unsigned s = 0; s < STREAMS; s++) {
                used |= slots[slot].streams[s];
                slots[slot].streams[s] = false;
            }
            if (used) {
                model->blocks[block].events = 1;
                model->queue[model->queue_end].block = block;
                model->queue[model->queue_end++].done_ns = latest_ns;
            } else {
                model->stacks[stack][model->stack_counts[stack]++] = block;
            }
            slots[slot].live = false;
        }
    }
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (slots[slot].live)
            release(&rig, slots[slot].given);
}

TEST(as_the_model)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        print_message("seed %d\n", (int)seed);
        random_sequence(seed);
    }
}
