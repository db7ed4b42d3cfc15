/* Kernel ops in steps: the part of a shape that its operands hold, its limits and its time
 * (steps.h). */
#include "sim/experiment/session.h"
#include "sim/kernel_shape.h"
#include "sim/sim_device/kernel_limits.h"
#include "tests/support/steps_state.h"
#include "tests/support/trace_rig.h"

enum { WIDTH = 6 };

static size_t take_name(struct steps *s, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps_take(s, names[i]))
            return i;
    steps_wrong(s, "no such name: %s", s->at);
}

/* BYTES, or BYTES@N at N bytes from an aligned address; 0: it is not there. */
static struct ar_device_operand take_operand(struct steps *s)
{
    uint64_t bytes = steps_value(s);
    return (struct ar_device_operand){
        (bytes ? 4096 : 0) + (steps_take(s, "@") ? steps_value(s) : 0), bytes};
}

/* KIND TYPE M N K out OPERAND [in OPERAND..]. */
static struct ar_kernel_op take_op(struct steps *s)
{
#define X(name, text) #name,
    static const char *const kinds[] = {AR_KERNEL_OPS(X)};
#undef X
    static const char *const types[] = {"f32", "tf32", "f16", "bf16", "i8", "i64"};
    struct ar_kernel_op op = {.kind = (enum ar_kernel_op_kind)take_name(s, kinds, COUNT(kinds))};
    op.type = (enum ar_device_type)take_name(s, types, COUNT(types));
    op.m = steps_value(s);
    op.n = steps_value(s);
    op.k = steps_value(s);
    if (!steps_take(s, "out"))
        steps_wrong(s, "out is missing");
    op.out = take_operand(s);
    if (steps_take(s, "in"))
        while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0)
            op.in[op.input_count++] = take_operand(s);
    return op;
}

static void shape_of(const struct ar_kernel_op *op, uint64_t out[WIDTH])
{
    const struct kernel_shape_matmul product = kernel_shape_matmul(op);
    const struct kernel_shape_elementwise each = kernel_shape_elementwise(op);
    const struct kernel_shape_reduce sums = kernel_shape_reduce(op);
    const struct kernel_shape_rows rows =
        op->kind == AR_KERNEL_OP_gather ? kernel_shape_gather(op) : kernel_shape_scatter_add(op);
    const uint64_t of[][WIDTH] = {
        [AR_KERNEL_OP_matmul] = {product.m, product.n, product.k, product.pitch_elements},
        [AR_KERNEL_OP_elementwise] = {each.element_count, each.operand_bytes, each.input_count,
                                      each.inputs[0], each.inputs[1], each.inputs[2]},
        [AR_KERNEL_OP_reduce] = {sums.row_count, sums.column_count, sums.pitch_elements},
        [AR_KERNEL_OP_gather] = {rows.row_count, rows.column_count, rows.row_bytes,
                                 rows.table_row_count, rows.index_bytes},
        [AR_KERNEL_OP_scatter_add] = {rows.row_count, rows.column_count, rows.row_bytes,
                                      rows.table_row_count, rows.index_bytes},
        [AR_KERNEL_OP_copy] = {kernel_shape_copy_bytes(op), kernel_shape_set_bytes(op)},
        [AR_KERNEL_OP_set] = {kernel_shape_set_bytes(op)},
    };
    memcpy(out, of[op->kind], sizeof of[0]);
}

/* `shape OP -> NUMBER..`: those that are missing are 0. Of a copy the bytes of a set follow. */
static void shape(struct steps *s)
{
    const struct ar_kernel_op op = take_op(s);
    uint64_t found[WIDTH];
    shape_of(&op, found);
    if (!steps_take(s, "->"))
        steps_wrong(s, "what is left of it?");
    for (size_t i = 0; i < WIDTH; i++)
        steps_is_equal(s, found[i], steps_at_end(s) ? 0 : steps_value(s));
}

/* `limits OP -> NAME SIZE [NAME SIZE]`. */
static void limits(struct steps *s)
{
#define X(name, text) #name,
    static const char *const names[] = {SIM_KERNEL_OPS(X)};
#undef X
    const struct ar_kernel_op op = take_op(s);
    struct sim_kernel_limit found[SIM_KERNEL_LIMITS];
    unsigned count = sim_kernel_limits(&op, found);
    if (!steps_take(s, "->"))
        steps_wrong(s, "what limits it?");
    for (unsigned i = 0; i < count; i++) {
        steps_is_equal(s, found[i].op, take_name(s, names, COUNT(names)));
        steps_is_equal(s, found[i].size, steps_value(s));
    }
}

/* `kernel_ns OP -> NS` on the device; `kernel_ns none`: it knows no such times. */
static void kernel_ns(struct steps *s)
{
    steps_need_device(s);
    if (steps_take(s, "none")) {
        assert_null(s->device->ops->kernel_op_ns);
        return;
    }
    const struct ar_kernel_op op = take_op(s);
    steps_answered(s, s->device->ops->kernel_op_ns(s->device, &op));
}

/* `baseline DEVICE of TRACE`: `baseline_ns`. */
static void run_baseline(struct steps *s)
{
    char device[LINE], path[LINE];
    struct baseline baseline = {0};
    steps_word(s, device, sizeof device);
    if (!steps_take(s, "of"))
        steps_wrong(s, "of what?");
    steps_word(s, path, sizeof path);
    CLOSED(close_trace) struct trace_source *source = trace_rig_source(path);
    CLOSED(ar_spec_close) struct ar_spec spec = spec_of(device);
    enum ar_status status = baseline_run(&spec, source, REPLAY_HOST_NONE, &baseline, &test_error);
    steps_make(s, "baseline_ns")->value = (long double)baseline.time_ns;
    steps_ended(s, status, test_error.text);
}

bool steps_kernel_operation(struct steps *s)
{
    if (steps_take(s, "shape"))
        shape(s);
    else if (steps_take(s, "limits"))
        limits(s);
    else if (steps_take(s, "kernel_ns"))
        kernel_ns(s);
    else if (steps_take(s, "baseline"))
        run_baseline(s);
    else
        return false;
    return true;
}
