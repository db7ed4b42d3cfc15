/* PyTorch's cache of pinned host memory: random sequences against a second model of it that shares
 * no code with the policy. Its rules, step by step: tests/steps/torch_pinned. */
#include "allocators/registry.h"
#include "sim/device.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

/* On the pinned memory of a simulated device. */
struct rig {
    struct ar_device *device;
    struct policy_rig policy;
};

static void open_rig(struct rig *rig, const char *spec, const char *device)
{
    memset(rig, 0, sizeof *rig);
    rig->device = sim_test_open(device);
    if (policy_rig_open(&rig->policy, spec, rig->device->pinned, 0) != AR_OK)
        fail_msg("%s", rig->policy.error.text);
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

static uint64_t made(const struct rig *rig)
{
    return rig->device->counters.calls[AR_DEVICE_CALL_pinned_alloc];
}

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
