/* Reports with exact byte counts, and small programs with a known answer. Origins:
 * EnzymeAD/Reactant.jl (its FAQ), pytorch/pytorch#159674, cupy/cupy#7678 and PR 1256,
 * tinygrad/tinygrad#2175, httomo#667, jax-ml/jax#788, microsoft/onnxruntime PR 15983,
 * pytorch/pytorch PR 136174; the fragmentation measures of the Linux kernel; Berger and others
 * (Hoard, ASPLOS 2000). */
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

#define CARD "sim:profile=h100"

/* The state after each event, and how it ended. */
struct seen {
    struct replay_sample at[4096];
    struct replay_result result; /* its numbers only */
};

static enum ar_status note(void *argument, const struct replay_sample *sample,
                           struct ar_error *error)
{
    struct seen *seen = argument;
    assert_true(sample->event < 4096);
    seen->at[sample->event] = *sample;
    return AR_OK;
}

static const struct seen *see(const char *policy, const char *device, const char *events)
{
    static struct seen seen;
    struct experiment_rig rig;
    memset(&seen, 0, sizeof seen);
    experiment_rig_over(&rig, policy, device, tiny_trace(events));
    const struct observer observer = {.sample = note, .argument = &seen};
    rig.experiment.observer = &observer;
    rig.experiment.stop_on_failure = true;
    experiment_rig_run(&rig);
    seen.result = rig.result;
    experiment_rig_close(&rig);
    return &seen;
}

static void passes(const char *policy, const char *device, const char *events)
{
    if (!see(policy, device, events)->result.passed)
        fail_msg("%s on %s does not finish: %s", policy, device, events);
}

static const struct seen *fails(const char *policy, const char *device, const char *events,
                                uint64_t event, enum replay_cause cause)
{
    const struct seen *seen = see(policy, device, events);
    assert_false(seen->result.passed);
    assert_int_equal(seen->result.first_failed_event, event);
    assert_int_equal(seen->result.cause, cause);
    return seen;
}

/* Four results of 4 GB stay live under a limit of 18,995,773,440: 2,995,773,440 bytes remain in one
 * range, and the fifth request fails for capacity. If they are freed in time, it is served. */
TEST(late_frees_are_no_fragmentation)
{
    static const char *const policies[] = {"greedy:limit=18995773440", "growth:limit=18995773440",
                                           "torch:limit=18995773440", "vmm:limit=18995773440"};
    for (size_t i = 0; i < COUNT(policies); i++) {
        const struct seen *seen =
            fails(policies[i], CARD ",capacity=24GiB",
                  "a,0,4000000000 a,1,4000000000 a,2,4000000000 a,3,4000000000 a,4,4000000000", 4,
                  REPLAY_CAUSE_CAPACITY);
        assert_int_equal(seen->at[3].live_bytes, 16000000000);
        if (i == 0) {
            assert_int_equal(seen->at[3].free_bytes, 2995773440);
            assert_int_equal(seen->at[3].largest_free_block_bytes, 2995773440);
        }
        passes(policies[i], CARD ",capacity=24GiB",
               "a,0,4000000000 a,1,4000000000 a,2,4000000000 a,3,4000000000 f,0 a,4,4000000000");
    }
}

/* 60 GiB freed, then a request of 70 of the 79 of this card of 80 GiB: a policy that keeps the 60
 * cannot serve it. JAX's growth keeps its regions. */
TEST(what_is_kept_makes_room)
{
    static const char events[] = "a,0,64424509440 f,0 a,1,75161927680";
    static const char card[] = CARD ",capacity=79GiB";
    static const char *const giving[] = {
        "torch",    "torch:expandable_segments=true", "cupy", "growth:limit=79GiB", "vmm", "direct",
        "first-fit"};
    for (size_t i = 0; i < COUNT(giving); i++)
        passes(giving[i], card, events);
    const struct seen *seen =
        fails("growth:framework=jax,limit=79GiB", card, events, 2, REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(seen->at[1].live_bytes, 0);
}

/* 512 MiB freed, 768 requested under a limit of 1 GiB; and 30 %, 30 %, the second freed, 60 %. */
TEST(cupy_frees_before_it_counts)
{
    passes("cupy:limit=1073741824", CARD, "a,0,536870912 f,0 a,1,805306368");
    passes("cupy", CARD ",capacity=1000MiB", "a,0,314572800 a,1,314572800 f,1 a,2,629145600");
    passes("torch", CARD ",capacity=1000MiB", "a,0,314572800 a,1,314572800 f,1 a,2,629145600");
}

/* A, B and A again on 8 GiB: each keeps 1 GiB, and A uses 4 more. 3 of 8 GiB are live when the last
 * request fails. */
TEST(an_output_stays_in_the_giant)
{
    const struct seen *seen =
        fails("torch", CARD ",capacity=8GiB",
              "a,0,1073741824 a,1,4294967296 f,1 a,2,1073741824 a,3,1073741824 a,4,4294967296", 5,
              REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(seen->at[4].live_bytes, 3 * AR_GIB);
    assert_int_equal(seen->at[4].reserved_bytes, 5 * AR_GIB);
    assert_int_equal(seen->at[4].largest_free_block_bytes, 2 * AR_GIB);
}

/* 2 GiB of parameters in 400 tensors, made after a first giant of 5,520,758,552 bytes was freed:
 * with growing regions they lie inside of its region, and the next giant no longer fits into 8 GiB;
 * one range needs no more than the live peak and a page for both (jax-ml/jax#788). */
TEST(parameters_lie_in_the_giant)
{
    static const char *const ranges[] = {"first-fit", "best-fit", "torch:expandable_segments=true"};
    FREED char *events = malloc(400 * 24 + 128);
    assert_non_null(events);
    size_t used = (size_t)sprintf(events, "a,0,5520758552 f,0 ");
    for (unsigned i = 1; i <= 400; i++)
        used += (size_t)sprintf(events + used, "a,%u,5368709 ", i);
    sprintf(events + used, "a,401,5520758552");
    const struct seen *seen = fails("growth:framework=jax", CARD ",capacity=8GiB", events, 402,
                                    REPLAY_CAUSE_FRAGMENTATION);
    assert_int_equal(seen->at[401].live_bytes, 400 * 5368709);
    for (size_t i = 0; i < COUNT(ranges); i++) {
        passes(ranges[i], CARD ",capacity=8GiB", events);
        seen = see(ranges[i], CARD, events);
        assert_true(seen->at[402].reserved_bytes < 5520758552 + 400 * 5368709 + 20 * AR_MIB);
    }
}

/* Regions that double: with 257 blocks of 64 MiB, slightly more than 16 GiB, 32 GiB are reserved
 * (microsoft/onnxruntime PR 15983). */
TEST(doubling_holds_twice_as_much)
{
    FREED char *events = malloc(257 * 32);
    assert_non_null(events);
    tiny_trace_requests(events, 257, 64 * AR_MIB);
    const struct seen *seen = see("growth", CARD, events);
    assert_int_equal(seen->at[255].reserved_bytes, 16 * AR_GIB);
    assert_int_equal(seen->at[256].reserved_bytes, 32 * AR_GIB);
    assert_int_equal(see("cupy", CARD, events)->at[256].reserved_bytes, 257 * 64 * AR_MIB);
}

/* 1024 MiB cached, 500 requested, nothing above 400 is split: 500 with a rest of at most 20 is less
 * than 1024, so a segment is added. With a larger allowed rest it is reused (pytorch/pytorch PR
 * 136174). */
TEST(an_unsplit_giant_serves_nothing)
{
    static const char events[] = "a,0,1073741824 f,0 a,1,524288000";
    assert_int_equal(see("torch:max_split_size_mb=400", CARD, events)->at[2].reserved_bytes,
                     1524 * AR_MIB);
    assert_int_equal(see("torch:max_split_size_mb=400,max_non_split_rounding_mb=525", CARD, events)
                         ->at[2]
                         .reserved_bytes,
                     1024 * AR_MIB);
    assert_int_equal(see("torch", CARD, events)->at[2].reserved_bytes, 1024 * AR_MIB);
}

/* 1,000 buffers of 1.1 MiB, each an allocation of the driver's in pages of 2 MiB. */
TEST(the_driver_rounds_up)
{
    FREED char *events = malloc(1000 * 32);
    assert_non_null(events);
    tiny_trace_requests(events, 1000, 1153434);
    const struct seen *seen = see("direct", CARD, events);
    assert_true(seen->result.passed);
    assert_int_equal(seen->at[999].live_bytes, 1153434000);
    assert_int_equal(seen->at[999].physical_bytes, 2000 * AR_MIB);
}

/* 512 MiB in blocks of 8, every second one freed: half is free, and the largest free block is 1 /
 * 32 of it: external fragmentation 1 - 2 * 8 / 512. No free block serves 16. */
TEST(a_checkerboard_in_numbers)
{
    static const char *const fits[] = {"first-fit", "best-fit"};
    char events[2048];
    tiny_trace_checkerboard(events);
    for (int i = 0; i < 2; i++) {
        const struct seen *seen = fails(fits[i], CARD ",capacity=512MiB", events,
                                        TINY_CHECKERBOARD_EVENTS, REPLAY_CAUSE_FRAGMENTATION);
        assert_int_equal(seen->at[95].free_bytes, 256 * AR_MIB);
        assert_int_equal(seen->at[95].largest_free_block_bytes, 8 * AR_MIB);
        double external =
            1 - (double)seen->at[95].largest_free_block_bytes / (double)seen->at[95].free_bytes;
        assert_true(external == 1 - 2 * 8.0 / 512);
    }
}

/* One of P streams allocates, the next one frees, and so on: a cache for each stream reaches P
 * blocks, a shared one needs one. */
TEST(a_cache_for_each_stream_multiplies)
{
    static const unsigned streams[] = {2, 4, 8};
    for (size_t i = 0; i < COUNT(streams); i++) {
        char events[2048];
        size_t used = 0;
        unsigned p = streams[i], last = 3 * p - 1;
        for (unsigned turn = 0; turn < 3 * p; turn++)
            used += (size_t)sprintf(events + used, "%sa,%u,67108864,%u u,%u,%u f,%u",
                                    turn ? " " : "", turn, turn % p, turn, (turn + 1) % p, turn);
        assert_int_equal(see("torch", CARD, events)->at[3 * last].reserved_bytes, p * 64 * AR_MIB);
        assert_int_equal(see("cupy", CARD, events)->at[3 * last].reserved_bytes, p * 64 * AR_MIB);
        assert_int_equal(see("growth", CARD, events)->at[3 * last].reserved_bytes, 64 * AR_MIB);
        assert_int_equal(see("first-fit", CARD, events)->at[3 * last].reserved_bytes, 64 * AR_MIB);
    }
}

/* 1,024 blocks of 64 KiB fill 32 segments of 2 MiB. If one block in each stays live, all segments
 * stay when the cache is released; with one in every second segment, half of them. The ideal is 64
 * KiB for each block. */
TEST(one_small_block_pins_a_segment)
{
    static const unsigned every[] = {16, 32, 64, 128};
    static const uint64_t kept_mib[] = {64, 64, 32, 16};
    for (size_t i = 0; i < 4; i++) {
        FREED char *events = malloc(64 * 1024);
        size_t used = 0;
        assert_non_null(events);
        for (unsigned block = 0; block < 1024; block++)
            used += (size_t)sprintf(events + used, "a,%u,65536 ", block);
        for (unsigned block = 0; block < 1024; block++)
            if (block % every[i])
                used += (size_t)sprintf(events + used, "f,%u ", block);
        sprintf(events + used, "c");
        unsigned end = 2 * 1024 - 1024 / every[i];
        const struct seen *seen = see("torch", CARD, events);
        assert_int_equal(seen->at[1023].reserved_bytes, 64 * AR_MIB);
        assert_int_equal(seen->at[end].reserved_bytes, kept_mib[i] * AR_MIB);
        assert_int_equal(seen->at[end].live_bytes, 1024 / every[i] * 64 * AR_KIB);
    }
}
