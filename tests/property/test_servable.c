/* Random programs, with limits from 1 MiB on: what a policy promises is served, more effort
 * promises no less, and the limit holds. The tests of the contract do this for one program with two
 * limits; here policies have the options that change what they can serve. */
#include "allocators/base/rng.h"
#include "tests/support/amount.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define CAP_BYTES (512 * AR_MIB)
#define BLOCKS    64
#define PROGRAMS  test_amount(20000, 400)

static const char *const specs[] = {
    "first-fit",
    "growth",
    "ort",
    "torch",
    "torch:large_segment_size_mb=35,max_split_size_mb=40",
    "torch:roundup_power2_divisions=4",
    "torch:roundup_power2_divisions='[1:2,2:8,16:2,>:32]'",
    "torch:expandable_segments=true",
    "mosaic",
    "gmlake",
    "cupy",
    "rmm-pool",
    "rmm-pool:initial_pool_size=256",
    "rmm-arena",
    "tlsf",
    "buddy:min=512",
    "offset",
    "vma-virtual",
    "ggml",
    "vmm",
    "slab:keep=2",
    "slab:virtual=true",
};

struct program {
    struct policy_rig rig;
    const char *spec;
    uint64_t limit_bytes;
    struct ar_policy_block blocks[BLOCKS];
    size_t count;
};

/* By how much an allocator itself passes its limit: PyTorch checks it for a request, not for the
 * pages that it maps; RMM rounds what is left up. */
static uint64_t passes_by(const char *spec)
{
    return strstr(spec, "expandable_segments") ? 20 * AR_MIB : strstr(spec, "rmm-pool") ? 255 : 0;
}

static void check_promises(const struct program *p, size_t step)
{
    const struct ar_policy *policy = p->rig.policy;
    uint64_t before = 0;
    if (ar_policy_validate(policy, &test_error))
        fail_msg("%s, step %zu: %s", p->spec, step, test_error.text);
    if (policy->totals.reserved_bytes > p->limit_bytes + passes_by(p->spec))
        fail_msg("%s, step %zu: %" PRIu64 " bytes are reserved", p->spec, step,
                 policy->totals.reserved_bytes);
    for (int effort = 0; effort < AR_POLICY_EFFORT_COUNT; effort++) {
        uint64_t bytes = ar_policy_servable(policy, (enum ar_policy_effort)effort);
        if (bytes < before || bytes > ar_policy_free_bytes(&policy->totals))
            fail_msg("%s, step %zu: servable with effort %d: %" PRIu64, p->spec, step, effort,
                     bytes);
        before = bytes;
    }
}

/* Requests what is promised: with no effort it takes nothing from the backing. */
static void take_promise(struct program *p, enum ar_policy_effort effort, size_t step)
{
    struct ar_policy *policy = p->rig.policy;
    uint64_t bytes = ar_policy_servable(policy, effort);
    uint64_t reserved_bytes = policy->totals.reserved_bytes;
    struct ar_policy_block block;
    if (!bytes)
        return;
    if (policy_rig_alloc(&p->rig, bytes, &block))
        fail_msg("%s, step %zu: %" PRIu64 " bytes are servable with effort %d and not served",
                 p->spec, step, bytes, effort);
    if (effort == AR_POLICY_EFFORT_NONE)
        assert_int_equal(policy->totals.reserved_bytes, reserved_bytes);
    assert_int_equal(policy_rig_free(&p->rig, &block), AR_OK);
}

static void run_program(struct program *p, struct ar_rng *rng)
{
    size_t steps = 20 + ar_rng_below(rng, 150);
    uint64_t most_bytes = p->limit_bytes / ar_rng_between(rng, 1, 8);
    for (size_t step = 0; step < steps; step++) {
        uint64_t what = ar_rng_below(rng, 20);
        if (what < 10 && p->count < BLOCKS) {
            uint64_t bytes = ar_rng_log_uniform(rng, 1, most_bytes);
            if (policy_rig_alloc(&p->rig, bytes, &p->blocks[p->count]) == AR_OK)
                p->count++;
        } else if (what < 17 && p->count) {
            size_t i = ar_rng_below(rng, p->count);
            assert_int_equal(policy_rig_free(&p->rig, &p->blocks[i]), AR_OK);
            p->blocks[i] = p->blocks[--p->count];
        } else if (what == 17) {
            assert_int_equal(ar_policy_trim(p->rig.policy, 0), AR_OK);
        }
        check_promises(p, step);
        if (what == 18)
            take_promise(p, AR_POLICY_EFFORT_NONE, step);
        else if (what == 19)
            take_promise(p, AR_POLICY_EFFORT_TRIM, step);
    }
}

static void programs_of(void **state)
{
    struct ar_rng rng = ar_rng_of(12);
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        struct program p = {.limit_bytes = ar_rng_log_uniform(&rng, 4096, 1638400) * 256};
        struct memory memory;
        char spec[200];
        snprintf(spec, sizeof spec, "%s%climit=%" PRIu64, (const char *)*state,
                 strchr(*state, ':') ? ',' : ':', p.limit_bytes);
        p.spec = spec;
        memory_open(&memory, MEMORIES - 1, CAP_BYTES);
        assert_int_equal(policy_rig_open(&p.rig, spec, memory.backing, 0), AR_OK);
        run_program(&p, &rng);
        policy_rig_close_empty(&p.rig, spec, &memory);
    }
}

int main(void)
{
    struct CMUnitTest tests[COUNT(specs)];
    for (size_t i = 0; i < COUNT(specs); i++)
        tests[i] =
            (struct CMUnitTest){specs[i], programs_of, NULL, NULL, (void *)(uintptr_t)specs[i]};
    return _cmocka_run_group_tests("servable", tests, COUNT(specs), NULL, NULL);
}
