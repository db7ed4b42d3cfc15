/* The registry: built-in policies are complete, every wrong spec has its message, a failed
 * creation frees everything, and policies load from shared objects, such as the skeleton. */
#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

static struct fake_backing backing;

TEST(built_in_are_whole)
{
    size_t count = 0;
    for (const struct ar_policy_ops *ops; (ops = registry_policy(count)); count++) {
        assert_ok(ar_policy_check(ops, &test_error));
        assert_ptr_equal(registry_find(ops->name), ops);
        for (const struct ar_option *option = ops->options; option->name; option++) {
            assert_non_null(option->help);
            assert_ptr_equal(ar_options_find(ops->options, option->name), option);
            assert_true(option->offset < ops->values_bytes);
        }
    }
    assert_true(count >= 7);
    assert_null(registry_find("no-such"));
    size_t decorators = 0;
    for (const struct decorator_ops *ops; (ops = registry_decorator(decorators)); decorators++)
        assert_true(ops->name && ops->summary && ops->options && ops->wrap);
    assert_int_equal(decorators, 3);
}

TEST(checks_what_a_policy_brings)
{
    const struct ar_policy_ops *good = registry_find("direct");
    static const struct ar_option late[] = {
        {"own", AR_OPTION_COUNT, 0, "0", 0, 0, NULL, ""}, AR_POLICY_COMMON_OPTIONS, {0}};
    struct ar_policy_ops bad[9];
    for (int i = 0; i < 9; i++)
        bad[i] = *good;
    bad[0].abi = 99;
    bad[1].ops_bytes = 8;
    bad[2].name = "";
    bad[3].alloc = NULL;
    bad[4].validate = NULL;
    bad[5].summary = NULL;
    bad[6].options = NULL;
    bad[7].options = late;
    bad[8].values_bytes = 1;
    static const char *const want[] = {
        "version 99", "have 8 bytes",      "no name",           "hook alloc",       "hook validate",
        "no summary", "do not begin with", "do not begin with", "do not begin with"};
    for (int i = 0; i < 9; i++) {
        struct ar_error error = {""};
        assert_int_equal(ar_policy_check(&bad[i], &error), AR_INVALID);
        if (!strstr(error.text, want[i]))
            fail_msg("case %d: %s", i, error.text);
    }
}

static enum ar_status make_policy(const char *text, struct ar_error *error)
{
    struct policy_rig rig;
    fake_backing_open(&backing, UINT64_MAX);
    enum ar_status status = policy_rig_open(&rig, text, &backing.base, 0);
    assert_null(rig.policy);
    *error = rig.error;
    assert_int_equal(policy_rig_close(&rig), 0);
    return status;
}

TEST(wrong_specs)
{
    cases_refused("registry", "wrong_specs", make_policy);
}

TEST(looks_up_without_making)
{
    struct ar_spec spec;
    const struct ar_policy_ops *ops = NULL;
    assert_ok(ar_spec_parse("checked+fault(n=1)+direct:limit=1GiB", &spec, &test_error));
    assert_ok(registry_lookup(&spec, &ops, &test_error));
    assert_ptr_equal(ops, registry_find("direct"));
    ar_spec_close(&spec);
    assert_ok(ar_spec_parse("direct:limit=lots", &spec, &test_error));
    assert_int_equal(registry_lookup(&spec, &ops, &test_error), AR_INVALID);
    ar_spec_close(&spec);
}

/* Every host allocation of a chain fails once: everything is freed. */
TEST(nothing_is_left_where_making_fails)
{
    uint64_t at = 1;
    enum ar_status status;
    do {
        struct policy_rig rig;
        fake_backing_open(&backing, UINT64_MAX);
        status = policy_rig_open(&rig, "checked+fault(n=9)+limit(bytes=1)+limit(bytes=2)+direct",
                                 &backing.base, at++);
        assert_true(status == AR_OK || status == AR_HOST_MEMORY);
        assert_int_equal(policy_rig_close(&rig), 0);
    } while (status != AR_OK);
    assert_true(at > 6); /* five links, and the backing of fault */
}

/* ---- shared objects -------------------------------------------------------------------------- */

static const char *folder(void)
{
    const char *given = getenv("TEST_TMP");
    return given ? given : "/tmp";
}

/* Compiles `source` into an object and returns its path; skips the test without a compiler. */
static const char *compile(const char *name, const char *source, char path[300])
{
    char command[1200];
    if (system("cc --version >/dev/null 2>&1"))
        skip();
    snprintf(path, 300, "%s/%s.so", folder(), name);
    snprintf(command, sizeof command, "cc -std=c11 -shared -fPIC -I. -o '%s' -x c %s", path,
             source);
    if (system(command))
        fail_msg("the compiler refuses: %s", command);
    return path;
}

TEST(loads_the_skeleton)
{
    char path[300];
    char spec[400];
    compile("skeleton", "allocators/skeleton/skeleton.c", path);
    snprintf(spec, sizeof spec, "checked+%s:least=4KiB,limit=1MiB", path);
    for (int round = 0; round < 2; round++) { /* the second finds it loaded */
        struct policy_rig rig;
        struct ar_policy_block block;
        fake_backing_open(&backing, UINT64_MAX);
        if (policy_rig_open(&rig, spec, &backing.base, 0))
            fail_msg("%s", rig.error.text);
        assert_string_equal(rig.policy->ops->name, "checked+skeleton");
        assert_int_equal(policy_rig_alloc(&rig, 5000, &block), AR_OK);
        assert_int_equal(block.granted_bytes, 8192);
        assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 1, &block), AR_OK);
        assert_int_equal(block.granted_bytes, 4096);
        assert_int_equal(rig.policy->totals.reserved_bytes, 8192 + 4096);
        assert_int_equal(policy_rig_alloc(&rig, 2 * AR_MIB, &block), AR_NO_MEMORY);
        assert_int_equal(policy_rig_close(&rig), 0);
        assert_int_equal(backing.held_bytes, 0);
    }
}

TEST(refuses_objects_that_do_not_fit)
{
    EACH_ROW (row, 4) {
        char source[400];
        char path[300];
        struct policy_rig rig;
        snprintf(source, sizeof source, "- <<'END'\n%s\nEND\n", row.field[1]);
        compile(row.field[0], source, path);
        fake_backing_open(&backing, UINT64_MAX);
        assert_string_equal(ar_status_name(policy_rig_open(&rig, path, &backing.base, 0)),
                            row.field[3]);
        if (!strstr(rig.error.text, row.field[2]) || !strstr(rig.error.text, row.field[0]))
            fail_msg("%s: %s", row.field[0], rig.error.text);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}

static bool free_has_no_request(void *argument, const struct ar_policy_range *range)
{
    uint64_t *requested_bytes = argument;
    if (range->state == AR_POLICY_RANGE_FREE)
        assert_int_equal(range->requested_bytes, 0);
    *requested_bytes += range->requested_bytes;
    return true;
}

/* Every policy sets all of its statistics, whatever was in them, and requested bytes in a walk are
 * those of live blocks. */
TEST(statistics_are_whole)
{
    for (size_t i = 0; registry_policy(i); i++) {
        const struct ar_policy_ops *ops = registry_policy(i);
        if (ops->capabilities & AR_POLICY_OFFLINE)
            continue;
        struct ar_device *device = sim_test_open("sim:capacity=4GiB");
        struct policy_rig rig;
        struct ar_policy_block blocks[3];
        if (policy_rig_open(&rig, ops->name, device->backing, 0)) { /* of another device */
            policy_rig_close(&rig);
            ar_device_close(device);
            continue;
        }
        for (size_t b = 0; b < 3; b++)
            if (policy_rig_alloc(&rig, 3 * AR_MIB + b, &blocks[b]))
                fail_msg("%s: %s", ops->name, rig.error.text);
        assert_int_equal(policy_rig_free(&rig, &blocks[1]), AR_OK);
        struct ar_policy_stats zeros, ones;
        memset(&zeros, 0, sizeof zeros);
        memset(&ones, 0xff, sizeof ones);
        ar_policy_stats(rig.policy, &zeros);
        ar_policy_stats(rig.policy, &ones);
        if (memcmp(&zeros, &ones, sizeof zeros) != 0)
            fail_msg("%s leaves a part of its statistics unset", ops->name);
        assert_true(zeros.stranded_by_stream_bytes <= ar_policy_free_bytes(&zeros.totals));
        uint64_t requested_bytes = 0;
        if (!(ops->capabilities & AR_POLICY_OPAQUE)) {
            ar_policy_walk(rig.policy, free_has_no_request, &requested_bytes);
            if (requested_bytes != 6 * AR_MIB + 2 && strcmp(ops->name, "null") != 0)
                fail_msg("%s: %" PRIu64 " requested bytes", ops->name, requested_bytes);
        }
        assert_int_equal(policy_rig_free(&rig, &blocks[0]), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &blocks[2]), AR_OK);
        assert_int_equal(policy_rig_close(&rig), 0);
        ar_device_close(device);
    }
}
