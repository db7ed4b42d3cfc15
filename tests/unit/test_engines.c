/* Random operations under other options than the defaults, which the property tests use: of slab,
 * GMLake and the policies of inference and graphics engines (ort, offset, vma-virtual, ggml); and
 * ggml's stack. Single options: tests/steps/engines. Places: golden/test_pools. */
#include "allocators/base/rng.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

static void open_rig(struct policy_rig *rig, const char *spec, struct ar_backing *backing)
{
    if (policy_rig_open(rig, spec, backing, 0) != AR_OK)
        fail_msg("%s: %s", spec, rig->error.text);
}

TEST(options)
{
    enum { LONG = 7 }; /* so many have twice the operations */
    static const char *const specs[] = {
        "slab:virtual=true",
        "slab:keep=0,slack=0",
        "slab:largest_class=16MiB,keep=3",
        "slab:largest_class=4096,limit=300MiB",
        "gmlake:frag_limit=2MiB",
        "gmlake:frag_limit=2MiB,auto_gc=512MiB,reuse_limit=1.5",
        "gmlake:frag_limit=2MiB,realloc=true,defrag_level=1",
        "ort:arena_extend_strategy=kSameAsRequested",
        "ort:initial_chunk_size_bytes=1000,max_dead_bytes_per_chunk=1,limit=300MiB",
        "ort:initial_growth_chunk_size_bytes=1,max_power_of_two_extend_bytes=4MiB",
        "offset:round_up=true",
        "offset:size=300MiB,unit=4096,max_allocs=200",
        "vma-virtual:strategy=min_memory,alignment=1",
        "vma-virtual:strategy=min_time,limit=300MiB",
        "vma-virtual:strategy=min_offset,size=300MiB",
        "vma-virtual:algorithm=linear",
        "ggml:retry=false",
    };
    CLOSED(op_script_close) struct op_script short_script, long_script;
    op_script_open(&short_script, 3, 10000, 300, 32 * AR_MIB);
    op_script_open(&long_script, 3, 20000, 300, 32 * AR_MIB);
    for (size_t i = 0; i < COUNT(specs); i++) {
        struct policy_rig rig;
        char spec[120];
        CLOSED(close_device)
        struct ar_device *device = sim_test_open("sim:profile=h100,capacity=512MiB");
        snprintf(spec, sizeof spec, "checked(every=50)+%s", specs[i]);
        open_rig(&rig, spec, device->backing);
        struct op_result result =
            op_script_run(i < LONG ? &long_script : &short_script, rig.policy);
        if (result.status != AR_OK)
            fail_msg("%s: %s", specs[i], ar_policy_problem(rig.policy));
        assert_true(result.served > result.refused && result.refused > 0);
        assert_int_equal(policy_rig_close(&rig), 0);
        assert_int_equal(device->counters.physical_bytes, 0);
    }
}

/* ---- ggml's stack ---------------------------------------------------------------------------- */

enum { STREAMS = 2, DEPTH = 40 };

/* Random requests on two streams; each stream frees its last block first. Stops at a status that
 * is neither OK nor NO_MEMORY. */
static enum ar_status use_stacks(struct policy_rig *rig, unsigned steps, unsigned *refused)
{
    static struct ar_policy_block blocks[STREAMS][DEPTH];
    unsigned counts[STREAMS] = {0};
    struct ar_rng rng = ar_rng_of(5);
    *refused = 0;
    for (unsigned i = 0; i < steps; i++) {
        uint32_t stream = (uint32_t)ar_rng_below(&rng, STREAMS);
        unsigned *count = &counts[stream];
        enum ar_status status;
        if (*count == DEPTH || (*count && ar_rng_below(&rng, 100) < 45)) {
            --*count;
            status = ar_policy_free(rig->policy, &blocks[stream][*count], stream);
        } else {
            const struct ar_policy_request request = {.bytes = 1 + ar_rng_below(&rng, 8 * AR_MIB),
                                                      .stream = stream};
            status = ar_policy_alloc(rig->policy, &request, &blocks[stream][*count]);
            *count += status == AR_OK;
            *refused += status == AR_NO_MEMORY;
        }
        if (status != AR_OK && status != AR_NO_MEMORY)
            return status;
    }
    return AR_OK;
}

TEST(stacks)
{
    unsigned refused;
    struct policy_rig rig;
    CLOSED(close_device)
    struct ar_device *device = sim_test_open("sim:profile=h100,capacity=128MiB");
    open_rig(&rig, "checked(every=1)+ggml:pool=vmm", device->backing);
    assert_int_equal(use_stacks(&rig, 4000, &refused), AR_OK);
    assert_in_range(refused, 1, 1000);
    assert_int_equal(policy_rig_close(&rig), 0);
    assert_int_equal(device->counters.physical_bytes, 0);
}

/* Each host allocation and each call for memory fails once. */
TEST(stack_faults)
{
    unsigned refused;
    for (uint64_t at = 1; at < 40; at++) {
        char spec[80];
        struct policy_rig rig;
        CLOSED(close_device)
        struct ar_device *device = sim_test_open("sim:profile=h100,capacity=128MiB");
        enum ar_status status = policy_rig_open(&rig, "ggml:pool=vmm", device->backing, at);
        if (status == AR_OK)
            status = use_stacks(&rig, 300, &refused);
        assert_true(status == AR_OK || status == AR_HOST_MEMORY);
        assert_int_equal(policy_rig_close(&rig), 0);
        snprintf(spec, sizeof spec, "checked+fault(n=%d)+ggml:pool=vmm", (int)at);
        open_rig(&rig, spec, device->backing);
        assert_int_equal(use_stacks(&rig, 300, &refused), AR_OK);
        assert_int_equal(policy_rig_close(&rig), 0);
        assert_int_equal(device->counters.physical_bytes, 0);
    }
}

/* ---- VMA's virtual block with many free blocks ----------------------------------------------- */

/* Serves a request by hooks that were read long before, as those of a replay are. `denied`: host
 * memory fails where the index would take it, after the growth of the records that comes before
 * it. */
static enum ar_status serve(struct policy_rig *rig, const struct ar_policy_ops *hooks,
                            const struct ar_policy_request *request, struct ar_policy_block *out,
                            bool denied)
{
    enum ar_status status = AR_HOST_MEMORY;
    for (uint64_t after = 1; after < 3 && status == AR_HOST_MEMORY; after++) {
        rig->host.fail_at = denied ? rig->host.calls + after : 0;
        out->requested_bytes = request->bytes;
        status = hooks->alloc(rig->policy, request, out);
    }
    rig->host.fail_at = 0;
    return status;
}

static void crowd(const char *spec)
{
    enum { SLOTS = 6000 };
    static struct ar_policy_block blocks[2][SLOTS];
    static bool live[SLOTS];
    struct policy_rig rigs[2];
    struct ar_rng rng = ar_rng_of(9);
    CLOSED(close_device) struct ar_device *one = sim_test_open("sim:capacity=2GiB");
    CLOSED(close_device) struct ar_device *other = sim_test_open("sim:capacity=2GiB");
    memset(live, 0, sizeof live);
    open_rig(&rigs[0], spec, one->backing);
    open_rig(&rigs[1], spec, other->backing);
    const struct ar_policy_ops *hooks[] = {rigs[0].policy->ops, rigs[1].policy->ops};
    for (unsigned i = 0; i < 30000; i++) {
        size_t slot = i < SLOTS ? i : ar_rng_below(&rng, SLOTS);
        struct ar_policy_request request = {.bytes = 12 + ar_rng_below(&rng, 3) * 256 +
                                                     ar_rng_below(&rng, 2),
                                            .alignment = ar_rng_below(&rng, 8) ? 0 : 1024};
        enum ar_status status[2];
        for (int r = 0; r < 2; r++)
            status[r] = live[slot] ? hooks[r]->free(rigs[r].policy, &blocks[r][slot], 0)
                                   : serve(&rigs[r], hooks[r], &request, &blocks[r][slot], r == 1);
        assert_int_equal(status[0], status[1]);
        assert_true(status[0] == AR_OK || (status[0] == AR_NO_MEMORY && !live[slot]));
        live[slot] = !live[slot] && status[0] == AR_OK;
        if (live[slot])
            assert_int_equal(blocks[0][slot].address, blocks[1][slot].address);
        if (i % 512 == 0)
            assert_ok(ar_policy_validate(rigs[0].policy, &test_error));
    }
    assert_true(rigs[0].host.now_bytes > rigs[1].host.now_bytes); /* only one has the index */
    assert_int_equal(policy_rig_close(&rigs[0]), 0);
    assert_int_equal(policy_rig_close(&rigs[1]), 0);
}

/* The index finds the block that a search one by one finds. */
TEST(many_free_blocks)
{
    crowd("vma-virtual:alignment=256");
    crowd("vma-virtual:alignment=256,strategy=min_memory");
    crowd("vma-virtual:alignment=256,strategy=min_time,size=2MiB");
    crowd("vma-virtual:alignment=256,strategy=min_offset");
}

/* A request with a coarse alignment looks at all blocks of its class in vain, with the index and
 * without. */
TEST(coarse_alignment)
{
    enum { BLOCKS = 8000, REQUESTS = 60 };
    static struct ar_policy_block blocks[2][BLOCKS];
    const struct ar_policy_request small = {.bytes = 5000};
    const struct ar_policy_request coarse = {.bytes = 5050, .alignment = AR_MIB};
    struct policy_rig rigs[2];
    struct ar_policy_block block[2];
    CLOSED(close_device) struct ar_device *one = sim_test_open("sim:capacity=2GiB");
    CLOSED(close_device) struct ar_device *other = sim_test_open("sim:capacity=2GiB");
    for (int r = 0; r < 2; r++) {
        open_rig(&rigs[r], "vma-virtual:alignment=256", r ? other->backing : one->backing);
        for (size_t i = 0; i < BLOCKS; i++)
            assert_ok(serve(&rigs[r], rigs[r].policy->ops, &small, &blocks[r][i], false));
        for (size_t i = 1; i < BLOCKS; i += 2)
            assert_ok(policy_rig_free(&rigs[r], &blocks[r][i]));
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        for (int r = 0; r < 2; r++)
            assert_ok(serve(&rigs[r], rigs[r].policy->ops, &coarse, &block[r], r == 1));
        assert_int_equal(block[0].address, block[1].address);
        for (int r = 0; r < 2; r++)
            assert_ok(policy_rig_free(&rigs[r], &block[r]));
    }
    assert_true(rigs[0].host.now_bytes > rigs[1].host.now_bytes);
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < BLOCKS; i += 2)
            assert_ok(policy_rig_free(&rigs[r], &blocks[r][i]));
        assert_int_equal(policy_rig_close(&rigs[r]), 0);
    }
}
