/* `torch` in a program that changes its settings or its limit in the middle: parseArgs of
 * c10/core/AllocatorConfig.cpp and get_free_block as of PyTorch 2.11. What each change does was
 * compared with that release; recordings are in golden/data/random. */
#include "sim/replay.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"

static void change(struct device_rig *rig, const char *text)
{
    assert_ok(ar_policy_change(rig->policy.policy, text, &test_error));
    assert_ok(ar_policy_validate(rig->policy.policy, &test_error));
}

static uint64_t segments(const struct device_rig *rig)
{
    return policy_rig_figure(&rig->policy, "num_device_alloc");
}

static void check_setting(const struct device_rig *rig, const char *wanted)
{
    char text[512];
    struct ar_policy *policy = rig->policy.policy;
    assert_true(policy->ops->setting(policy, text, sizeof text));
    assert_string_equal(text, wanted);
}

/* Three keys return to their defaults if they are not named; the others stay. */
TEST(a_second_conf_resets_three_keys)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig,
                    "torch:conf='max_split_size_mb:40,garbage_collection_threshold:0.5,"
                    "roundup_power2_divisions:4,large_segment_size_mb:30'",
                    "sim");
    change(&rig, "settings,expandable_segments:True");
    check_setting(&rig,
                  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,large_segment_size_mb:30");
    change(&rig, "settings,max_split_size_mb:64");
    check_setting(&rig, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:64,"
                        "large_segment_size_mb:30");
    change(&rig, "settings,");
    check_setting(&rig,
                  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,large_segment_size_mb:30");
}

/* A block of 300 MiB serves 150 MiB if 200 MiB may be left over. From 2.11 on that key is reset
 * too. */
static void check_rounding(const char *policy, bool is_kept)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, policy, "sim");
    policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 300 * AR_MIB));
    change(&rig, "settings,max_split_size_mb:40");
    policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 150 * AR_MIB));
    assert_int_equal(segments(&rig), is_kept ? 1 : 2);
}

TEST(rounding_of_unsplit_blocks_is_reset_from_2_11_on)
{
    check_rounding("torch:max_split_size_mb=40,max_non_split_rounding_mb=200", false);
    check_rounding("torch:version=2.10,max_split_size_mb=40,max_non_split_rounding_mb=200", true);
}

/* Blocks of ranges are passed over while segments do not grow, and found again afterwards. */
TEST(ranges_stay_when_segments_grow_no_more)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "torch:expandable_segments=true", "sim");
    struct ar_policy_block range = policy_rig_take(&rig.policy, 12 * AR_MIB);
    policy_rig_give(&rig.policy, range);
    change(&rig, "settings,expandable_segments:False");
    struct ar_policy_block plain = policy_rig_take(&rig.policy, 12 * AR_MIB);
    assert_int_not_equal(plain.address, range.address);
    assert_int_equal(segments(&rig), 2);
    policy_rig_give(&rig.policy, plain);
    assert_int_equal(policy_rig_take(&rig.policy, 11 * AR_MIB).address, plain.address);
    change(&rig, "settings,expandable_segments:True");
    assert_int_equal(policy_rig_take(&rig.policy, 12 * AR_MIB).address, range.address);
    assert_int_equal(segments(&rig), 2);
}

/* While segments grow, the rest of any block is cut off from 512 bytes on. */
TEST(rests_follow_the_setting_in_force)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "torch", "sim");
    struct ar_policy_block block = policy_rig_take(&rig.policy, 11 * AR_MIB);
    assert_int_equal(block.granted_bytes, 12 * AR_MIB);
    policy_rig_give(&rig.policy, block);
    change(&rig, "settings,expandable_segments:True");
    block = policy_rig_take(&rig.policy, 11 * AR_MIB);
    assert_int_equal(block.granted_bytes, 11 * AR_MIB);
    policy_rig_give(&rig.policy, block);
    change(&rig, "settings,expandable_segments:False");
    assert_int_equal(policy_rig_take(&rig.policy, 11 * AR_MIB).granted_bytes, 12 * AR_MIB);
}

TEST(a_limit_holds_from_its_change_on)
{
    CLOSED(device_rig_close) struct device_rig rig;
    struct ar_policy_block block;
    device_rig_open(&rig, "torch", "sim");
    struct ar_policy_block first = policy_rig_take(&rig.policy, 60 * AR_MIB);
    change(&rig, "limit,104857600");
    assert_int_equal(policy_rig_alloc(&rig.policy, 60 * AR_MIB, &block), AR_NO_MEMORY);
    change(&rig, "limit,0");
    policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 60 * AR_MIB));
    policy_rig_give(&rig.policy, first);
    /* Two blocks of one age are above the threshold: both are collected. */
    change(&rig, "settings,garbage_collection_threshold:0.5");
    change(&rig, "limit,209715200");
    policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 70 * AR_MIB));
    assert_int_equal(rig.policy.policy->totals.reserved_bytes, 70 * AR_MIB);
}

/* Parts of a segment can be too large to be split if max_split_size_mb becomes smaller. PyTorch
 * releases such a part like a segment, and stops: the request fails, no block is lost. */
TEST(a_part_of_a_segment_is_not_released)
{
    for (size_t part = 0; part < 2; part++) {
        CLOSED(device_rig_close) struct device_rig rig;
        device_rig_open(&rig, "torch", "sim");
        struct ar_policy_block block;
        policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 80 * AR_MIB));
        struct ar_policy_block first = policy_rig_take(&rig.policy, 40 * AR_MIB);
        struct ar_policy_block second = policy_rig_take(&rig.policy, 40 * AR_MIB);
        policy_rig_give(&rig.policy, part ? second : first);
        change(&rig, "settings,max_split_size_mb:20");
        change(&rig, "limit,104857600");
        assert_int_equal(policy_rig_alloc(&rig.policy, 64 * AR_MIB, &block), AR_NO_MEMORY);
        policy_rig_give(&rig.policy, part ? first : second);
        assert_ok(ar_policy_validate(rig.policy.policy, &test_error));
        assert_int_equal(policy_rig_figure(&rig.policy, "num_device_free"), 0);
        assert_int_equal(policy_rig_figure(&rig.policy, "oversize_allocations.current"), 0);
        policy_rig_give(&rig.policy, policy_rig_take(&rig.policy, 80 * AR_MIB));
        assert_int_equal(segments(&rig), 1);
    }
}

TEST(what_cannot_be_followed_is_refused)
{
    CLOSED(device_rig_close) struct device_rig rig;
    device_rig_open(&rig, "torch:expandable_segments=true", "sim");
    struct ar_policy *policy = rig.policy.policy;
    assert_says(ar_policy_change(policy, "settings,max_split_size_mb:8", &test_error), AR_INVALID,
                "max_split_size_mb:8\": write a number of MiB, at least 20");
    assert_says(ar_policy_change(policy, "settings,large_segment_size_mb:40", &test_error),
                AR_UNSUPPORTED, "large_segment_size_mb changes in the middle");
    assert_says(ar_policy_change(policy, "limit,many", &test_error), AR_INVALID,
                "limit,many: write the bytes");
    check_setting(&rig, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

/* A replay follows the notes of a trace: the second request is beyond the limit, the third not. */
TEST(a_replay_follows_the_notes)
{
    static const char text[] = "# allocrig-trace 1\na,0,12582912\n!,limit,12582912\n"
                               "p,1,12582912\nr,1\n!,limit,0\na,2,12582912\nf,0\nf,2\n";
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(device_rig_close) struct device_rig torch;
    CLOSED(replay_result_close) struct replay_result result;
    trace_rig_write(rig.path[0], text, sizeof text - 1);
    assert_ok(trace_open(rig.path[0], &source, &test_error));
    device_rig_open(&torch, "torch", "sim");
    const struct replay_config config = {
        .policy = torch.policy.policy, .device = torch.device, .source = source};
    assert_ok(replay_run(&config, &result, &test_error));
    assert_true(result.passed);
    assert_int_equal(policy_rig_figure(&torch.policy, "num_ooms"), 1);
    assert_int_equal(segments(&torch), 2);
}

/* A note has no block. */
TEST(a_note_that_cannot_be_followed_is_named_by_its_event)
{
    static const char text[] = "# allocrig-trace 1\n# name: x\na,0,1\n!,limit,many\nf,0\n";
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    CLOSED(close_trace) struct trace_source *source;
    CLOSED(device_rig_close) struct device_rig torch;
    CLOSED(replay_result_close) struct replay_result result = {0};
    trace_rig_write(rig.path[0], text, sizeof text - 1);
    assert_ok(trace_open(rig.path[0], &source, &test_error));
    device_rig_open(&torch, "torch", "sim");
    const struct replay_config config = {
        .policy = torch.policy.policy, .device = torch.device, .source = source};
    assert_says(replay_run(&config, &result, &test_error), AR_INVALID,
                "x: event 1: policy torch: the note limit,many");
}
