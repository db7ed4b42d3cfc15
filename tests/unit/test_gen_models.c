/* The three generators that imitate programs: their memory is as their pages derive it, and
 * their options work. */
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "workloads/gen/eager.h"
#include "workloads/gen/embedding_table.h"

static struct gen_rig_sums sums, other;

static void pull(const char *text, struct gen_rig_sums *into)
{
    CLOSED(close_trace) struct trace_source *source = gen_rig_open(text);
    gen_rig_pull(source, into);
}

/* ---- embedding ------------------------------------------------------------------------------- */

/* Ten steps of dense layers, then tables. */
TEST(embedding_grows_late_and_fast)
{
    pull("embedding", &sums);
    assert_int_equal(sums.steps, 60);
    uint64_t before = sums.step_live_bytes[9] - sums.step_live_bytes[0];
    uint64_t after = sums.step_live_bytes[29] - sums.step_live_bytes[9];
    assert_true(before < 4 * AR_MIB);
    assert_true(after > AR_GIB);
    assert_true(sums.peak_live_bytes > 3 * AR_GIB);
    assert_true(sums.events > 10000 && sums.events < 100000);
    assert_int_equal(sums.kernels, 14519);
}

/* The state is made when the optimizer first sees a table: one table of R rows of 64 float32
 * holds R x 256 bytes, and as many again for each value of state. */
TEST(embedding_state_is_lazy)
{
    static const char base[] = "embedding:first=3,tables=1,growth=0,rows='100000',sparse='1',"
                               "batches='64',bags='2',steps=5,optimizer=";
    const uint64_t table = 100000 * 64 * 4;
    const char *optimizers[] = {"none", "momentum", "adagrad", "adam"};
    for (unsigned i = 0; i < 4; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", base, optimizers[i]);
        pull(text, &sums);
        uint64_t states = i < 2 ? i : i - 1;
        uint64_t grown = sums.step_live_bytes[3] - sums.step_live_bytes[2];
        uint64_t expected = (1 + states) * table;
        /* In addition only the wider top layer and one more vector. */
        assert_true(grown >= expected && grown < expected + AR_MIB);
    }
}

/* A growing table and the values of the optimizer have the same number of rows: with Adam three
 * times the bytes of the table alone, after each step. */
TEST(embedding_state_grows_with_the_table)
{
    static const char base[] = "embedding:first=0,tables=1,rows='1000000',start=1000,growth=2,"
                               "sparse='1',batches='4096',bags='10',steps=6,optimizer=";
    char text[256];
    snprintf(text, sizeof text, "%snone", base);
    pull(text, &sums);
    snprintf(text, sizeof text, "%sadam", base);
    pull(text, &other);
    for (unsigned step = 1; step < 6; step++) {
        uint64_t none = sums.step_live_bytes[step] - sums.step_live_bytes[step - 1];
        uint64_t adam = other.step_live_bytes[step] - other.step_live_bytes[step - 1];
        assert_int_equal(adam, 3 * none);
        assert_int_equal(none > 0, step == 1 || step == 3);
    }
    /* 35 of each step; Adam reads and writes each of its rows by indices */
    assert_int_equal(sums.kernels, 6 * 35);
    assert_int_equal(other.kernels, 400);
}

/* A dense gradient has the table's size; a sparse one that of the rows looked up. */
TEST(embedding_gradients)
{
    pull("embedding:first=0,tables=1,growth=0,rows='100000',sparse='0',batches='64',bags='2',"
         "steps=1,optimizer=none",
         &sums);
    pull("embedding:first=0,tables=1,growth=0,rows='100000',sparse='1',batches='64',bags='2',"
         "steps=1,optimizer=none",
         &other);
    assert_int_equal(sums.bin_bytes[0][24], 100000 * 256 * 2);
    assert_int_equal(other.bin_bytes[0][24], 100000 * 256);
    assert_int_equal(sums.peak_live_bytes > other.peak_live_bytes, 1);
}

/* A growing table has a row for each id seen, and not more than the factor times that. */
TEST(embedding_growth)
{
    const char *specs[] = {
        "embedding:first=0,tables=1,rows='1000000',start=1000,growth=2,sparse='1',"
        "batches='4096',bags='10',optimizer=none,steps=50",
        "embedding:first=0,tables=1,rows='1000000',start=1000,growth=1.5,sparse='1',"
        "batches='4096',bags='10',optimizer=none,steps=50"};
    /* 50 x 40960 uniform lookups of a million ids leave exp(-2.048) unseen: 870,990 seen. */
    const uint64_t seen = 870990;
    for (int i = 0; i < 2; i++) {
        pull(specs[i], &sums);
        uint64_t rest = sums.step_live_bytes[49] - 65 * AR_MIB;
        assert_true(rest > seen * 256);
        assert_true(rest < 1000001 * UINT64_C(256) + 4 * AR_MIB);
        /* The old table and the new one are live together. */
        assert_true(sums.peak_live_bytes > (seen + seen / 2) * 256);
        assert_true(sums.step_live_bytes[0] < sums.step_live_bytes[49] / 2);
    }
}

TEST(embedding_types)
{
    static const struct {
        const char *type;
        uint64_t row;
    } cases[] = {{"float32", 256}, {"float16", 128}, {"bfloat16", 128}, {"int8", 68}};
    for (unsigned i = 0; i < 4; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "embedding:first=1,tables=1,growth=0,rows='1000000',sparse='1',batches='64',"
                 "steps=2,optimizer=none,dtype=%s",
                 cases[i].type);
        pull(text, &sums);
        uint64_t grown = sums.step_live_bytes[1] - sums.step_live_bytes[0];
        assert_true(grown >= 1000000 * cases[i].row);
        assert_true(grown < 1000000 * cases[i].row + AR_MIB);
    }
}

/* Figures of the libraries, for n ids, and of a sum of 2048 rows. */
TEST(scratch_sizes)
{
    assert_int_equal(embedding_sort_scratch(2048), 1);
    /* 8 x 256 bins of 8, keys and values again, 6 tiles of 1024, counters, alignment. */
    assert_int_equal(embedding_sort_scratch(26624), 16384 + 2 * 26624 * 8 + 6 * 1024 + 256 + 255);
    assert_int_equal(embedding_select_scratch(26624), 1279);
    assert_int_equal(embedding_scan_scratch(22353), 1535);
    uint64_t partial;
    uint64_t counters;
    eager_sum_scratch(2048, 512, &partial, &counters);
    assert_int_equal(partial, 4 * 512 * 32 * 128);
    assert_int_equal(counters, 16);
    eager_sum_scratch(8192, 512, &partial, &counters);
    assert_int_equal(partial, 4 * 512 * 128 * 128);
    eager_sum_scratch(100, 100, &partial, &counters);
    assert_int_equal(partial, 0);
    assert_int_equal(counters, 0);
}

/* ---- gradient_tape --------------------------------------------------------------------------- */

#define TAPE                                                                                       \
    "gradient_tape:layers=6,width=256,batches='64',lengths='32',dtype=float32,bias=none,"          \
    "activation=none,optimizer=none,steps=4"

static const uint64_t tape_sheet = UINT64_C(64) * 32 * 256 * 4;
static const uint64_t tape_weights = UINT64_C(6) * 256 * 256 * 4;
static const uint64_t tape_library = 2 * EAGER_WORKSPACE_BYTES;

/* At the loss: input, five outputs on the tape, the result and the difference; then three more
 * sheets to differentiate the squares. */
TEST(tape_peak)
{
    pull(TAPE, &sums);
    uint64_t expected = tape_library + tape_weights + 11 * tape_sheet + 8;
    assert_int_equal(sums.step_peak_bytes[2], expected);
    /* Between steps input, result and loss are live. */
    assert_int_equal(sums.step_live_bytes[2], tape_library + tape_weights + 2 * tape_sheet + 4);
}

/* With segments of two layers the forward pass keeps two outputs of five. */
TEST(tape_recompute)
{
    pull(TAPE, &sums);
    pull(TAPE ",recompute=2", &other);
    assert_int_equal(sums.step_peak_bytes[2] - other.step_peak_bytes[2], 3 * tape_sheet);
    assert_int_equal(other.step_live_bytes[2], sums.step_live_bytes[2]);
    assert_true(other.kernel_ns > sums.kernel_ns);
    pull("gradient_tape:steps=3,activation=relu", &sums);
    pull("gradient_tape:steps=3,activation=relu,recompute=5", &other);
    assert_true(other.peak_live_bytes < sums.peak_live_bytes);
    assert_int_equal(other.step_live_bytes[2], sums.step_live_bytes[2]);
}

/* A persistent tape still holds five outputs and the difference between steps. */
TEST(tape_persistent)
{
    pull(TAPE, &sums);
    pull(TAPE ",persistent=yes", &other);
    assert_int_equal(other.step_live_bytes[2] - sums.step_live_bytes[2], 6 * tape_sheet);
}

TEST(tape_accumulation)
{
    pull(TAPE, &sums);
    pull(TAPE ",accumulate=3", &other);
    assert_int_equal(other.step_live_bytes[2], sums.step_live_bytes[2]);
    assert_true(other.allocs > 2 * sums.allocs);
    /* Gradients exist from the first micro-batch on. */
    assert_int_equal(other.step_peak_bytes[2] - sums.step_peak_bytes[2], tape_weights);
}

/* Bytes per weight: its own, and float32 master copy and state. */
TEST(tape_optimizers_and_types)
{
    EACH_ROW (row, 2) {
        char text[256];
        snprintf(text, sizeof text,
                 "gradient_tape:layers=4,width=512,batches='1',lengths='16',bias=none,steps=2,%s",
                 row.field[0]);
        pull(text, &sums);
        uint64_t held = sums.step_live_bytes[1] - 2 * EAGER_WORKSPACE_BYTES;
        uint64_t weights = UINT64_C(4) * 512 * 512;
        assert_true(held >= weights * cases_number(&row, 1));
        assert_true(held < weights * cases_number(&row, 1) + 2 * 16 * 512 * 4 + 4 * 512 * 4 + 8);
    }
}

/* Lists are followed in turn: 8, then 24 rows. */
TEST(tape_lists)
{
    pull("gradient_tape:layers=1,width=64,batches='2;3',lengths='4;8',draw=cycle,bias=none,"
         "optimizer=none,dtype=float32,steps=4",
         &sums);
    uint64_t base = 2 * EAGER_WORKSPACE_BYTES + 64 * 64 * 4 + 4;
    assert_int_equal(sums.step_live_bytes[2], base + 2 * 8 * 64 * 4);
    assert_int_equal(sums.step_live_bytes[3], base + 2 * 24 * 64 * 4);
    gen_rig_refused("gen_models", "tape_lists");
}

/* With all options every block is freed at the end, except the libraries' workspaces. */
TEST(tape_leaves_only_workspaces)
{
    static const char *const activations[] = {"none", "relu", "gelu"};
    static const char *const biases[] = {"separate", "fused", "none"};
    static const char *const types[] = {"float32", "float16", "bfloat16", "int8"};
    for (unsigned i = 0; i < 3 * 3 * 4 * 2 * 4; i++) {
        char text[256];
        unsigned bias = i / 3 % 3;
        snprintf(text, sizeof text,
                 "gradient_tape:layers=5,width=64,batches='3',lengths='8-32',steps=3,accumulate=2,"
                 "activation=%s,bias=%s,dtype=%s,persistent=%u,recompute=%u",
                 activations[i % 3], biases[bias], types[i / 9 % 4], i / 36 % 2, i / 72);
        pull(text, &sums);
        assert_int_equal(sums.live_bytes,
                         2 * EAGER_WORKSPACE_BYTES + (bias == 1 ? EAGER_FUSED_WORKSPACE_BYTES : 0));
        assert_int_equal(sums.steps, 3);
    }
}

TEST(embedding_leaves_only_workspaces)
{
    static const char *const optimizers[] = {"none", "sgd", "momentum", "adagrad", "adam"};
    static const char *const types[] = {"float32", "float16", "bfloat16", "int8"};
    for (unsigned i = 0; i < 5 * 4 * 3; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "embedding:steps=9,first=2,every=3,rows='100-5000',start=64,batches='16-400',"
                 "optimizer=%s,dtype=%s,growth=%s,sparse='0-1'",
                 optimizers[i % 5], types[i / 5 % 4], (const char *[]){"0", "1.5", "2"}[i / 20]);
        pull(text, &sums);
        assert_int_equal(sums.live_bytes, 2 * EAGER_WORKSPACE_BYTES + EAGER_FUSED_WORKSPACE_BYTES);
        assert_int_equal(sums.steps, 9);
    }
}

/* ---- matmul_cache ---------------------------------------------------------------------------- */

/* Two shapes, one of them twice: two kernels are loaded, each after three probes, and their memory
 * stays. */
TEST(matmul_first_uses)
{
    pull("matmul_cache:shapes='256;512;256',repeat=2,probes=4,kept=3MiB,module=5MiB,"
         "context=100MiB",
         &sums);
    assert_int_equal(sums.steps, 6);
    assert_int_equal(sums.probes, 6);
    assert_int_equal(sums.step_outside_bytes[1], 105 * AR_MIB);
    assert_int_equal(sums.step_outside_bytes[3], 110 * AR_MIB);
    assert_int_equal(sums.step_outside_bytes[5], 110 * AR_MIB);
    /* Third input and its product, the workspace, tables of the kernels. */
    assert_int_equal(sums.step_live_bytes[1], 2 * 256 * 256 * 4 + 32 * AR_MIB + 3 * AR_MIB);
    assert_int_equal(sums.step_live_bytes[3], 2 * 512 * 512 * 4 + 32 * AR_MIB + 6 * AR_MIB);
    assert_int_equal(sums.step_live_bytes[5], 2 * 256 * 256 * 4 + 32 * AR_MIB + 6 * AR_MIB);
    assert_int_equal(sums.live_bytes, 32 * AR_MIB + 6 * AR_MIB);
}

/* Two inputs and two products of a step, and the third input of the step before. */
TEST(matmul_peak)
{
    pull("matmul_cache:shapes='2048',repeat=3,probes=0,kept=0,module=0,context=0", &sums);
    assert_int_equal(sums.step_peak_bytes[2], 5 * UINT64_C(2048) * 2048 * 4 + 32 * AR_MIB);
    assert_int_equal(sums.outside_bytes, 0);
}
