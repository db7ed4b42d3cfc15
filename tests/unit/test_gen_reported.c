/* The generators that imitate reported problems: their memory is as their pages derive it, their
 * options work, and those with several streams are the same in both forms of a trace. */
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/formats/formats.h"
#include "workloads/gen/eager.h"
#include "workloads/trace/trace.h"

static struct gen_rig_sums sums, other;

static void pull(const char *text, struct gen_rig_sums *into)
{
    CLOSED(close_trace) struct trace_source *source = gen_rig_open(text);
    gen_rig_pull(source, into);
}

/* Medium by default: a table of all policies takes seconds. */
TRACE_TEST(defaults_are_medium)
{
    static const char *const workloads[] = {
        "rnn_buckets",   "varlen_transformer", "fsdp_runahead", "jitter_batch",
        "stash_restore", "gnn_minibatch",      "kv_concat",     "kv_paged"};
    for (size_t i = 0; i < COUNT(workloads); i++) {
        pull(workloads[i], &sums);
        assert_in_range(sums.events, 10000, 120000);
        assert_in_range(sums.peak_live_bytes, AR_GIB / 2, 9 * AR_GIB);
        assert_true(sums.steps >= 20 && sums.kernels > sums.steps);
        /* The libraries keep their workspaces, all other blocks are freed. */
        assert_true(sums.live_bytes <= 2 * EAGER_WORKSPACE_BYTES + EAGER_FUSED_WORKSPACE_BYTES);
    }
}

/* ---- rnn_buckets ----------------------------------------------------------------------------- */

TRACE_TEST(rnn_peak)
{
    const uint64_t T = 40, B = 256, H = 1536, L = 2, V = 20000, v = 4;
    uint64_t weights = 2 * V * H * v + L * (8 * H * H + 4 * H) * v;
    uint64_t expected = weights + 7 * T * L * B * H * v + 2 * T * B * H * v + 3 * T * B * V * v +
                        8 * T * B + v + 65 * AR_MIB;
    pull("rnn_buckets", &sums);
    assert_int_equal(sums.steps, 48);
    assert_int_equal(sums.peak_live_bytes, expected);
    assert_int_equal(sums.step_live_bytes[47], weights + 65 * AR_MIB);
    /* Each bucket has a higher peak than the one before, the same in each repetition. */
    for (unsigned i = 12; i < 48; i += 12)
        assert_true(sums.step_peak_bytes[i] > sums.step_peak_bytes[i - 1]);
    assert_int_equal(sums.step_peak_bytes[46], sums.step_peak_bytes[47]);
}

/* ---- varlen_transformer ---------------------------------------------------------------------- */

/* Another layer costs its weights and its saved tensors: s b h (34 + 5 a s / h) with full
 * attention in 16 bits, 34 s b h + 4 a s b with flash. */
TRACE_TEST(transformer_saves_the_known_bytes)
{
    const uint64_t s = 512, b = 4, h = 1024, a = 16;
    const uint64_t weights = 2 * (12 * h * h + 4 * h);
    const uint64_t saved[] = {34 * s * b * h + 4 * a * s * b, 34 * s * b * h + 5 * a * s * s * b,
                              2 * s * b * h};
    static const char *const variants[] = {"attention=flash", "attention=full", "recompute=yes"};
    for (unsigned i = 0; i < 3; i++) {
        char text[192];
        for (unsigned layers = 2; layers < 4; layers++) {
            snprintf(text, sizeof text,
                     "varlen_transformer:steps=1,lengths='512',optimizer=none,layers=%u,%s", layers,
                     variants[i]);
            pull(text, layers == 2 ? &sums : &other);
        }
        assert_int_equal(other.peak_live_bytes - sums.peak_live_bytes, weights + saved[i]);
    }
}

TRACE_TEST(transformer_state)
{
    pull("varlen_transformer:steps=2,layers=1,hidden=64,ffn=256,vocabulary=100,batch=1,"
         "lengths='32'",
         &sums);
    const uint64_t elements = 12 * 64 * 64 + 4 * 64 + 100 * 64;
    /* 16-bit weights, and three float32 values of each from the first update on. */
    assert_int_equal(sums.step_live_bytes[0], elements * (2 + 12) + 65 * AR_MIB);
    assert_int_equal(sums.step_live_bytes[1], sums.step_live_bytes[0]);
    pull("varlen_transformer:steps=2,layers=1,hidden=64,ffn=256,vocabulary=100,batch=1,"
         "lengths='32',dtype=float32,optimizer=momentum",
         &sums);
    assert_int_equal(sums.step_live_bytes[1], elements * (4 + 4) + 65 * AR_MIB);
}

/* ---- fsdp_runahead --------------------------------------------------------------------------- */

TRACE_TEST(fsdp_live_and_order)
{
    pull("fsdp_runahead", &sums);
    /* 32 shards of 32 MiB, 32 activations, two gathered layers and a gradient, when the
     * backward pass begins. */
    assert_int_equal(sums.streams, 2);
    assert_int_equal(sums.free_requests, sums.frees);
    assert_int_equal(sums.uses, 20 * 32 * 3);
    assert_int_equal(sums.peak_live_bytes, (32 * 32 + 32 * 32 + 3 * 128) * AR_MIB);
    assert_int_equal(sums.syncs, 20 * 2 * 32 / 9);
    pull("fsdp_runahead:ahead=0", &sums);
    assert_int_equal(sums.syncs, 20 * 2 * 32);
    /* A gradient lives a layer longer, after the first activation was freed; there are no use
     * events. */
    pull("fsdp_runahead:hold=stash", &sums);
    assert_int_equal(sums.uses, 0);
    assert_int_equal(sums.peak_live_bytes, (32 * 32 + 31 * 32 + 4 * 128) * AR_MIB);
}

/* ---- the two that split large blocks --------------------------------------------------------- */

TRACE_TEST(crumbs_are_the_reported_ones)
{
    pull("giant_then_crumbs", &sums);
    assert_int_equal(sums.peak_live_bytes, UINT64_C(11643387904) + 499214336);
    assert_int_equal(sums.step_live_bytes[0], 499214336);
    assert_int_equal(sums.allocs, 2 * (1 + 31));
    assert_int_equal(sums.trims, 0);
    pull("giant_then_crumbs:trim=yes,iterations=5,total=40MiB", &sums);
    assert_int_equal(sums.trims, 5);
    assert_int_equal(sums.step_live_bytes[4], 40 * AR_MIB);
    assert_int_equal(sums.live_bytes, 0);
}

TRACE_TEST(seven_events)
{
    pull("a_b_a", &sums);
    assert_int_equal(sums.events, 7);
    assert_int_equal(sums.peak_live_bytes, 7 * AR_GIB);
    assert_int_equal(sums.live_bytes, 3 * AR_GIB);
    pull("a_b_a:rounds=3,kernels=yes,trim=yes", &sums);
    assert_int_equal(sums.steps, 7);
    assert_int_equal(sums.trims, 4);
    assert_int_equal(sums.live_bytes, 7 * AR_GIB);
}

/* ---- jitter_batch ---------------------------------------------------------------------------- */

TRACE_TEST(batches_lie_in_their_range)
{
    pull("jitter_batch", &sums);
    assert_int_equal(sums.steps, 1000);
    assert_int_equal(sums.events, 1000 * 13);
    for (unsigned i = 0; i < 1000; i++) {
        assert_in_range(sums.step_live_bytes[i], 900 * AR_MIB, 1100 * AR_MIB);
        assert_int_equal(sums.step_live_bytes[i] % AR_MIB, 0);
    }
    assert_in_range(sums.peak_live_bytes, 2100 * AR_MIB, 2200 * AR_MIB);
    pull("jitter_batch:overlap=1,tensors=1,rows='10;20',draw=cycle,row=1MiB,steps=4", &sums);
    assert_int_equal(sums.peak_live_bytes, 20 * AR_MIB);
    assert_int_equal(sums.step_live_bytes[3], 0);
    assert_int_equal(sums.step_peak_bytes[2], 10 * AR_MIB);
}

/* ---- stash_restore --------------------------------------------------------------------------- */

TRACE_TEST(tables_come_back)
{
    static const char *const variants[] = {"reverse", "interleaved", "side"};
    const uint64_t tables = (768 + 720 + 672 + 624) * AR_MIB;
    for (unsigned i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "stash_restore:variant=%s", variants[i]);
        pull(text, &sums);
        assert_int_equal(sums.steps, 60);
        assert_int_equal(sums.step_live_bytes[59], tables + 320 * AR_MIB);
        /* The tables, the weights, and three activations, the largest ones or some others. */
        uint64_t left = sums.peak_live_bytes - tables - 320 * AR_MIB;
        assert_in_range(left, i == 1 ? 130 * AR_MIB : 208 * AR_MIB,
                        i == 1 ? 160 * AR_MIB : 216 * AR_MIB);
        assert_int_equal(sums.streams, i == 2 ? 2 : 1);
        assert_int_equal(sums.waits, i == 2 ? 2 * 60 : 0);
    }
    pull("stash_restore:trim=restore,alive=0", &sums);
    assert_int_equal(sums.trims, 60);
    assert_int_equal(sums.peak_live_bytes, tables + 320 * AR_MIB);
    pull("stash_restore:trim=forward,variant=interleaved,alive=60,steps=3", &sums);
    assert_int_equal(sums.trims, 3);
}

/* ---- gnn_minibatch --------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Without spread all steps are equal; with it the peaks of the steps spread about that value. */
TRACE_TEST(samples_are_log_normal)
{
    pull("gnn_minibatch:node_sigma=0,degree_sigma=0,steps=5", &other);
    assert_int_equal(other.step_peak_bytes[4], other.step_peak_bytes[3]);
    uint64_t fixed = other.step_peak_bytes[4];
    pull("gnn_minibatch", &sums);
    qsort(sums.step_peak_bytes, 400, sizeof sums.step_peak_bytes[0], by_size);
    assert_in_range(sums.step_peak_bytes[200], fixed * 9 / 10, fixed * 11 / 10);
    assert_true(sums.step_peak_bytes[399] > 2 * fixed);
    assert_true(sums.step_peak_bytes[0] < fixed / 2 + 65 * AR_MIB);
    /* Other depths and types. */
    pull("gnn_minibatch:layers=5,steps=3,nodes=1000,shrink=0.5,dtype=float16,optimizer=sgd", &sums);
    assert_int_equal(sums.steps, 3);
}

/* ---- caches of keys and values --------------------------------------------------------------- */

TRACE_TEST(caches_hold_their_tokens)
{
    /* 3 sequences, 2 layers, 4 heads of 32 16-bit values: 256 bytes a token and layer. */
    static const char load[] =
        "rounds=2,batch=3,layers=2,kv_heads=4,head=32,prompts='10',answers='6'";
    char text[160];
    snprintf(text, sizeof text, "kv_concat:%s", load);
    pull(text, &sums);
    assert_int_equal(sums.steps, 2 * 7);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(sums.step_live_bytes[i], 2 * 2 * 3 * (10 + i) * 256);
    assert_int_equal(sums.peak_live_bytes, (2 * 2 + 1) * 3 * 16 * 256 - 3 * 256);
    snprintf(text, sizeof text, "kv_paged:%s,page=8", load);
    pull(text, &sums);
    assert_int_equal(sums.steps, 2 * 7);
    assert_int_equal(sums.step_live_bytes[0], 2 * 2 * 3 * 16 * 256);
    assert_int_equal(sums.step_live_bytes[6], 2 * 2 * 3 * 16 * 256);
    snprintf(text, sizeof text, "kv_paged:%s,page=4", load);
    pull(text, &sums);
    assert_int_equal(sums.step_live_bytes[2], 2 * 2 * 3 * 12 * 256);
    assert_int_equal(sums.step_live_bytes[3], 2 * 2 * 3 * 16 * 256);
    assert_int_equal(sums.live_bytes, 0);
}

/* ---- all ------------------------------------------------------------------------------------- */

TRACE_TEST(refused)
{
    gen_rig_refused("gen_reported", "refused");
}

TRACE_TEST(seeds_differ)
{
    static const char *const drawn[] = {"varlen_transformer:steps=3", "jitter_batch:steps=9",
                                        "gnn_minibatch:steps=3", "kv_concat:rounds=1",
                                        "kv_paged:rounds=1"};
    for (size_t i = 0; i < COUNT(drawn); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,seed=2", drawn[i]);
        CLOSED(close_trace) struct trace_source *one = gen_rig_open(drawn[i]);
        CLOSED(close_trace) struct trace_source *two = gen_rig_open(text);
        gen_rig_pull(one, &sums);
        gen_rig_pull(two, &sums);
        assert_memory_not_equal(one->info.sha256, two->info.sha256, 32);
    }
}

/* Generator, text, binary, text: the same hash and the same text. */
TRACE_TEST(both_forms_hold_them)
{
    struct trace_rig *rig = *state;
    static const char *const workloads[] = {
        "fsdp_runahead:steps=2,layers=5",
        "fsdp_runahead:steps=2,layers=5,hold=stash,ahead=1",
        "stash_restore:steps=2,variant=side",
        "stash_restore:steps=2,trim=forward",
        "stash_restore:variant=interleaved,steps=2,trim=restore",
        "giant_then_crumbs:trim=yes",
        "phases:cycles=2,leak=1"};
    for (size_t i = 0; i < COUNT(workloads); i++) {
        static const struct trace_write_options options = {.format = TRACE_FORMAT_BINARY};
        CLOSED(close_trace) struct trace_source *source = gen_rig_open(workloads[i]);
        CLOSED(close_trace) struct trace_source *binary = NULL;
        CLOSED(close_trace) struct trace_source *again;
        FREED char *first = trace_rig_print(rig, source);
        assert_int_equal(trace_rewind(source, &test_error), AR_OK);
        if (trace_write(source, rig->path[1], &options, &test_error) != AR_OK ||
            trace_open(rig->path[1], &binary, &test_error) != AR_OK)
            fail_msg("%s", test_error.text);
        assert_memory_equal(source->info.sha256, binary->info.sha256, 32);
        assert_int_equal(source->info.streams, binary->info.streams);
        assert_int_equal(source->info.slots, binary->info.slots);
        assert_int_equal(source->info.peak_live_bytes, binary->info.peak_live_bytes);
        FREED char *second = trace_rig_print(rig, binary);
        assert_string_equal(first, second);
        assert_int_equal(trace_rig_text(rig, first, &again, &test_error), AR_OK);
        assert_memory_equal(source->info.sha256, again->info.sha256, 32);
    }
}
