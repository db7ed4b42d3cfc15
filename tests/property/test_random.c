/* Random operations on every policy with the test oracle, a million with `make soak`: `checked`
 * checks each result, and walks and validates after each call while at most 256 blocks are live,
 * else after every thousandth. Then a part of the same script twice: the same seed gives the same
 * placements, byte for byte.
 *
 * OPS sets the number of operations, SEED the seed, SMALL the number of live blocks up to which
 * there is a walk after each call, POLICY one spec instead of all policies. */
#include <time.h>

#include "tests/support/amount.h"
#include "tests/support/memories.h"
#include "tests/support/op_script.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define MOST_LIVE  4000
#define MOST_BYTES (64 * AR_MIB)
#define CAP_BYTES  (3 * AR_GIB) /* the large phases request more than that: some requests fail */

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;
    if (text && ar_count_parse(text, &value, &test_error))
        fail_msg("%s: %s", name, test_error.text);
    return value;
}

/* Runs the script under the oracle on one kind of memory. False: the policy cannot use it. */
static bool run(const struct op_script *script, const char *name, int kind, const char *checked,
                struct op_result *result)
{
    struct memory memory;
    struct policy_rig rig;
    char spec[400];
    memory_open(&memory, kind, CAP_BYTES);
    snprintf(spec, sizeof spec, "%s%s", checked, name);
    enum ar_status status = policy_rig_open(&rig, spec, memory.backing, 0);
    if (status && status != AR_UNSUPPORTED)
        fail_msg("%s on %s: %s", name, memory.name, rig.error.text);
    if (!status) {
        *result = op_script_run(script, rig.policy);
        if (result->status)
            fail_msg("%s on %s, seed %" PRIu64 ", operation %zu: %s (%s)", name, memory.name,
                     number("SEED", 1), result->at, ar_policy_problem(rig.policy),
                     ar_status_name(result->status));
        assert_int_equal(rig.policy->totals.live_bytes, 0);
        assert_int_equal(rig.policy->totals.live_blocks, 0);
        assert_int_equal(rig.policy->totals.granted_bytes, 0);
    }
    policy_rig_close_empty(&rig, name, &memory);
    return status == AR_OK;
}

static void one_policy(void **state)
{
    const char *name = *state;
    char checked[60];
    snprintf(checked, sizeof checked, "checked(every=1000,small=%" PRIu64 ")+",
             number("SMALL", 256));
    struct op_result result[3] = {{0}};
    struct op_script script;
    bool offline = policy_rig_has(name, AR_POLICY_OFFLINE); /* plans take longer */
    size_t ops = number("OPS", test_amount(1000000, offline ? 6000 : 20000));
    bool ran = false;
    /* Most of them on bump, where addresses touch and an error of one byte is visible; the rest, or
     * all for a policy that needs it, with virtual memory. */
    for (int kind = 1; kind <= 2; kind++) {
        clock_t start = clock();
        op_script_open(&script, number("SEED", 1) + (uint64_t)kind,
                       kind == 1 ? ops * 7 / 10
                       : ran     ? ops * 3 / 10
                                 : ops,
                       MOST_LIVE, MOST_BYTES);
        if (run(&script, name, kind, checked, &result[0])) {
            ran = true;
            assert_true(result[0].served > 0);
            print_message("%-10s %-4s %8zu operations, %7zu refused, %.1f s\n", name,
                          kind == 1 ? "bump" : "h100", script.count, result[0].refused,
                          (double)(clock() - start) / CLOCKS_PER_SEC);
        }
        op_script_close(&script);
    }
    assert_true(ran);
    op_script_open(&script, number("SEED", 1), ops / 10, MOST_LIVE, MOST_BYTES);
    for (int kind = 1; kind <= 2; kind++) {
        if (run(&script, name, kind, "", &result[1]) && run(&script, name, kind, "", &result[2]))
            assert_true(result[1].hash == result[2].hash);
    }
    op_script_close(&script);
}

int main(void)
{
    struct CMUnitTest tests[64];
    size_t count = 0;
    for (const char *name; count < 64 && (name = policy_rig_each(count));)
        tests[count++] = (struct CMUnitTest){name, one_policy, NULL, NULL, (void *)(uintptr_t)name};
    return _cmocka_run_group_tests("random", tests, count, NULL, NULL);
}
