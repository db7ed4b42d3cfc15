/* The kernel ops of embedding, gradient_tape and matmul_cache, in all variants: every operand
 * is a live block, every shape fits into its operands, and the keys do not grow with the steps. */
#include "allocators/base/map.h"
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "workloads/trace/kernel_op_keys.h"

struct follow {
    const char *name;
    struct trace_source *source;
    struct ar_map bytes; /* of each live block */
    uint64_t next_id, event;
    uint64_t kernels, kernel_ops, products;
    uint32_t most_keys;
};

static uint64_t type_bytes(const struct follow *f, const char *type)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"f32", 4}, {"", 4}, {"f16", 2}, {"bf16", 2}, {"i8", 1}, {"i64", 8}};
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    fail_msg("%s: event %" PRIu64 ": type %s", f->name, f->event, type);
    return 0;
}

static uint64_t operand_bytes(const struct follow *f, struct trace_reference reference)
{
    uint64_t id, bytes = 0;
    if (!trace_kernel_op_id(reference, f->next_id, &id) || !ar_map_get(&f->bytes, id, &bytes))
        fail_msg("%s: event %" PRIu64 ": an operand is not live", f->name, f->event);
    return bytes;
}

static void fits(const struct follow *f, uint64_t wanted_bytes, uint64_t bytes, const char *what)
{
    if (wanted_bytes > bytes || wanted_bytes == 0)
        fail_msg("%s: event %" PRIu64 ": %s: %" PRIu64 " bytes wanted of %" PRIu64, f->name,
                 f->event, what, wanted_bytes, bytes);
}

static void check_kernel_op(const struct follow *f, const struct trace_kernel_op *kernel_op)
{
    uint64_t element = type_bytes(f, kernel_op->type);
    uint64_t m = kernel_op->shape[0], n = kernel_op->shape[1], k = kernel_op->shape[2];
    uint64_t out = operand_bytes(f, kernel_op->out), in[TRACE_KERNEL_OP_INPUTS] = {0};
    for (unsigned i = 0; i < kernel_op->input_count; i++)
        in[i] = operand_bytes(f, kernel_op->in[i]);
    if (strcmp(kernel_op->op, "matmul") == 0) {
        assert_int_equal(kernel_op->input_count, 2);
        fits(f, m * n * element, out, "out of a product");
        fits(f, m * k * element, in[0], "left of a product");
        fits(f, k * n * element, in[1], "right of a product");
    } else if (strcmp(kernel_op->op, "reduce") == 0) {
        assert_int_equal(kernel_op->input_count, 1);
        fits(f, n * element, out, "out of a reduction");
        fits(f, m * n * element, in[0], "in of a reduction");
    } else if (strcmp(kernel_op->op, "gather") == 0) {
        assert_int_equal(kernel_op->input_count, 2);
        fits(f, m * n * element, out, "out of a gather");
        fits(f, n * element, in[0], "table of a gather");
        fits(f, m * 8, in[1], "names of a gather");
    } else if (strcmp(kernel_op->op, "scatter_add") == 0) {
        assert_int_equal(kernel_op->input_count, 2);
        fits(f, n * element, out, "table of a scatter");
        fits(f, m * n * element, in[0], "rows of a scatter");
        fits(f, m * 8, in[1], "names of a scatter");
    } else if (strcmp(kernel_op->op, "set") == 0) {
        assert_int_equal(kernel_op->input_count, 0);
    } else {
        assert_true(strcmp(kernel_op->op, "elementwise") == 0 ||
                    strcmp(kernel_op->op, "copy") == 0);
        assert_true(kernel_op->input_count > 0);
        assert_int_equal(kernel_op->dimension_count, 0);
    }
}

static void check_kernel(struct follow *f, const struct trace_event *event)
{
    struct trace_kernel_op kernel_op;
    f->kernels++;
    if (!event->attributes)
        return;
    if (trace_kernel_op_parse(trace_attributes_of(f->source, event->attributes)->rest, &kernel_op,
                              &test_error) != AR_OK)
        fail_msg("%s: event %" PRIu64 ": %s", f->name, f->event, test_error.text);
    check_kernel_op(f, &kernel_op);
    f->kernel_ops++;
    f->products += strcmp(kernel_op.op, "matmul") == 0;
}

static void follow(const char *name, struct follow *f)
{
    const struct trace_event *events;
    size_t count;
    *f = (struct follow){.name = name, .source = gen_rig_open(name)};
    do {
        assert_ok(trace_next(f->source, &events, &count, &test_error));
        for (size_t i = 0; i < count; i++, f->event++) {
            const struct trace_event *event = &events[i];
            if (event->attributes > f->most_keys)
                f->most_keys = event->attributes;
            if (event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE) {
                assert_int_equal(event->id, f->next_id++);
                assert_int_equal(ar_map_put(&f->bytes, event->id, event->value), AR_OK);
            } else if (event->kind == TRACE_FREE_COMPLETED) {
                ar_map_remove(&f->bytes, event->id);
            } else if (event->kind == TRACE_KERNEL) {
                check_kernel(f, event);
            }
        }
    } while (count);
    ar_map_close(&f->bytes);
    trace_close(f->source);
}

static const char *const types[] = {"float32", "float16", "bfloat16", "int8"};
static const char *const optimizers[] = {"none", "sgd", "momentum", "adagrad", "adam"};

TEST(every_kernel_of_a_tape_uses_live_blocks)
{
    static const char *const biases[] = {"separate", "fused", "none"};
    static const char *const activations[] = {"none", "relu", "gelu"};
    for (int i = 0; i < 4 * 3 * 3 * 5 * 2 * 3; i++) {
        char name[256];
        struct follow f;
        int recompute = i / 360 % 3;
        snprintf(name, sizeof name,
                 "gradient_tape:steps=2,layers=3,width=64,batches=8;2048,lengths=3-9,dtype=%s,"
                 "bias=%s,activation=%s,optimizer=%s,persistent=%s,recompute=%d,accumulate=%d",
                 types[i % 4], biases[i / 4 % 3], activations[i / 12 % 3], optimizers[i / 36 % 5],
                 i / 180 % 2 ? "yes" : "no", recompute, 1 + i % 2);
        follow(name, &f);
        assert_true(f.kernels > 20);
        assert_int_equal(f.kernel_ops, f.kernels);
        /* 3 forward, 3 + 2 backward, and forward once more with recomputation. */
        assert_int_equal(f.products, 2u * (1u + (unsigned)i % 2) * (recompute ? 11u : 8u));
    }
}

TEST(every_kernel_of_an_embedding_uses_live_blocks)
{
    for (int i = 0; i < 4 * 5 * 2 * 2; i++) {
        char name[256];
        struct follow f;
        snprintf(name, sizeof name,
                 "embedding:steps=8,tables=4,first=1,every=1,rows=100-90000,batches=64;3000,"
                 "width=16,hidden=32,dtype=%s,optimizer=%s,growth=%s,master=%s",
                 types[i % 4], optimizers[i / 4 % 5], i / 20 % 2 ? "2" : "0",
                 i / 40 % 2 ? "yes" : "no");
        follow(name, &f);
        assert_true(f.kernels > 200);
        assert_int_equal(f.kernel_ops, f.kernels);
    }
}

TEST(every_kernel_of_products_uses_live_blocks)
{
    for (int i = 0; i < 4; i++) {
        char name[128];
        struct follow f;
        snprintf(name, sizeof name, "matmul_cache:shapes=64;100;64;7,repeat=3,probes=4,dtype=%s",
                 types[i]);
        follow(name, &f);
        /* The probe without scratch memory has no output: one for each of three shapes. */
        assert_int_equal(f.kernels - f.kernel_ops, 3);
        assert_int_equal(f.products, 4 * 3 * 3 + 3 * 3);
    }
}

TEST(keys_do_not_grow_with_the_steps)
{
    static const char *const forms[] = {
        "gradient_tape:layers=4,width=64,batches=8,lengths=4,steps=%d",
        "embedding:tables=3,first=0,every=1,rows=1000,batches=64,bags=3,width=16,steps=%d",
        "matmul_cache:shapes=64;100,repeat=%d",
    };
    for (size_t i = 0; i < COUNT(forms); i++) {
        uint32_t keys[2];
        for (int longer = 0; longer < 2; longer++) {
            char name[128];
            struct follow f;
            snprintf(name, sizeof name, forms[i], longer ? 300 : 15);
            follow(name, &f);
            keys[longer] = f.most_keys;
        }
        assert_int_equal(keys[0], keys[1]);
        assert_true(keys[0] > 10);
    }
}
