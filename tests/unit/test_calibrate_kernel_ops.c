/* Calibrating works on a device that does them: a simulated one whose works are kernels of a length
 * by the bytes of their operands, and that looks at each work: whether it stays within one
 * allocation, has room for its shape, and is aligned. Its clock may be apart from the host's, as a
 * card's is after a while. */
#include "bench/calibrate/calibrate.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define MARKS_MOST 65536u

static struct {
    const struct ar_device_ops *sim;
    struct ar_device_ops ops;
    int64_t ahead_ns; /* the device's clock, of the host's */
    uint64_t host_ns; /* that a launch takes */
    uint64_t launched, filled, fails_from;
    enum ar_status fails_with;
    uint64_t seen[AR_KERNEL_OP_COUNT];
    uint64_t marks, begun_ns[MARKS_MOST], done_ns[MARKS_MOST];
} card; /* one at a time */

static uint64_t mark(struct ar_device *device)
{
    assert_true(card.marks < MARKS_MOST);
    card.begun_ns[card.marks] = card.sim->now(device);
    card.done_ns[card.marks] = (uint64_t)((int64_t)card.sim->idle_at(device) + card.ahead_ns);
    return card.marks++;
}

/* As on a card: the device's time, but never before the host's at the mark. */
static uint64_t mark_ns(struct ar_device *device, uint64_t number)
{
    uint64_t host_ns = card.begun_ns[number], done_ns = card.done_ns[number];
    card.sim->sync(device, UINT32_MAX);
    return done_ns > host_ns ? done_ns : host_ns;
}

static uint64_t unit_of(enum ar_device_type type)
{
    static const uint64_t units[] = {4, 4, 2, 2, 1, 8};
    return units[type];
}

/* An operand holds at least so many bytes, all within one allocation. */
static void check_operand(struct ar_device *device, const struct ar_device_operand *operand,
                          uint64_t bytes, uint64_t alignment)
{
    struct ar_device_segment segment;
    assert_true(operand->bytes >= bytes);
    assert_int_equal(operand->address % alignment, 0);
    assert_true(card.sim->segment_of(device, operand->address, &segment));
    assert_true(operand->address + operand->bytes <= segment.address + segment.bytes);
}

static bool apart(const struct ar_device_operand *a, const struct ar_device_operand *b)
{
    return a->address + a->bytes <= b->address || b->address + b->bytes <= a->address;
}

/* Checks the operands; returns the bytes by which it goes. */
static uint64_t look_at(struct ar_device *device, const struct ar_kernel_op *op)
{
    uint64_t unit = unit_of(op->type), m = op->m * unit, n = op->n * unit;
    const struct ar_device_operand *in = op->in, *out = &op->out;
    switch (op->kind) {
    case AR_KERNEL_OP_matmul:
        check_operand(device, out, op->m * n, 512);
        check_operand(device, &in[0], op->k * m, 512);
        check_operand(device, &in[1], op->k * n, 512);
        assert_true(apart(out, &in[0]) && apart(out, &in[1]));
        return op->m * n + op->k * m + op->k * n;
    case AR_KERNEL_OP_elementwise:
        check_operand(device, &in[1], m, 512);
        check_operand(device, &in[0], m, 512);
        check_operand(device, out, m, 512);
        assert_true(apart(out, &in[0]) && apart(out, &in[1]) && apart(&in[0], &in[1]));
        return 3 * m;
    case AR_KERNEL_OP_copy:
        check_operand(device, &in[0], m, 512);
        check_operand(device, out, m, 512);
        return 2 * m;
    case AR_KERNEL_OP_reduce:
        check_operand(device, &in[0], op->m * n, 512);
        check_operand(device, out, n, 512);
        return op->m * n;
    case AR_KERNEL_OP_gather:
    case AR_KERNEL_OP_scatter_add:
        assert_true(card.filled > 0);
        check_operand(device, &in[1], 8 * op->m, 8);
        check_operand(device, op->kind == AR_KERNEL_OP_gather ? out : &in[0], op->m * n, 512);
        assert_true(in[0].bytes >= n && out->bytes >= n && apart(out, &in[0]));
        assert_true(apart(out, &in[1]) && apart(&in[0], &in[1]));
        return 2 * op->m * n;
    default:
        check_operand(device, out, op->m ? m : out->bytes, 512);
        return out->bytes;
    }
}

#define TIME_OF(bytes) (2000 + (bytes) / 4096)

static enum ar_status do_work(struct ar_device *device, const struct ar_kernel_op *op)
{
    static const uint32_t inputs[AR_KERNEL_OP_COUNT] = {2, 2, 1, 2, 2, 1, 0};
    if (card.fails_from && card.launched >= card.fails_from)
        return card.fails_with;
    if (op->m || op->kind != AR_KERNEL_OP_set)
        assert_int_equal(op->input_count, inputs[op->kind]);
    uint64_t bytes = look_at(device, op);
    card.launched++;
    card.seen[op->kind]++;
    card.sim->advance(device, card.host_ns);
    card.sim->kernel(device, op->stream, TIME_OF(bytes));
    return AR_OK;
}

static enum ar_status fill(struct ar_device *device, uint64_t address, uint64_t bytes,
                           uint64_t block, uint32_t stream)
{
    const struct ar_device_operand operand = {address, bytes};
    check_operand(device, &operand, bytes, 512);
    card.filled++;
    card.sim->kernel(device, stream, TIME_OF(bytes));
    return AR_OK;
}

static enum ar_status measure(const char *spec, int64_t ahead_ns, uint64_t host_ns,
                              struct sim_profile *out, struct ar_error *error)
{
    struct ar_device *device = sim_test_open(spec);
    memset(card.seen, 0, sizeof card.seen);
    card.sim = device->ops;
    card.ops = *device->ops;
    card.ops.kernel_op = do_work;
    card.ops.fill = fill;
    card.ops.mark = mark;
    card.ops.mark_ns = mark_ns;
    card.ahead_ns = ahead_ns;
    card.host_ns = host_ns;
    card.launched = card.filled = card.marks = 0;
    device->ops = &card.ops;
    enum ar_status status = calibrate(device, &(struct calibrate_options){0}, out, error);
    if (status == AR_OK)
        assert_int_equal(device->counters.physical_bytes, 0);
    device->ops = card.sim;
    ar_device_close(device);
    return status;
}

/* Every point of the curve is TIME_OF its size by `share`; returns how many there are. */
static uint32_t check_curve(const struct sim_profile *measured, enum sim_kernel_op op,
                            uint64_t share)
{
    const struct sim_curve *curve = &measured->kernel_ops[op];
    for (uint32_t i = 0; i < curve->count; i++)
        assert_int_equal(curve->ns[i], TIME_OF(curve->bytes[i] * share));
    return curve->count;
}

static void check_all(const struct sim_profile *measured)
{
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_elementwise, 1), 9);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_copy, 1), 9);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_set, 1), 9);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_reduce, 1), 7);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_strip_32, 1024 / 32 * 4), 6);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_strip_16, 1024 / 32 * 2), 6);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_gather, 1), 7);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_gather_rows, 2 * 16), 9);
    assert_int_equal(check_curve(measured, SIM_KERNEL_OP_scatter_rows, 2 * 16), 9);
    for (int op = SIM_KERNEL_OP_thin_f32; op <= (int)SIM_KERNEL_OP_thin_bf16; op++)
        assert_int_equal(check_curve(measured, (enum sim_kernel_op)op, 1), 7);
    for (int op = SIM_KERNEL_OP_scatter_add_f32; op <= (int)SIM_KERNEL_OP_scatter_add_bf16; op++)
        assert_int_equal(check_curve(measured, (enum sim_kernel_op)op, 2), 7);
    for (int op = SIM_KERNEL_OP_matmul_f32; op <= (int)SIM_KERNEL_OP_matmul_bf16; op++) {
        const struct sim_curve *curve = &measured->kernel_ops[op];
        uint64_t unit = op <= (int)SIM_KERNEL_OP_matmul_tf32 ? 4 : 2, n = 128;
        assert_int_equal(curve->count, 7);
        for (uint32_t i = 0; i < curve->count; i++, n *= 2) {
            assert_int_equal(curve->bytes[i], 2 * n * n * n);
            assert_int_equal(curve->ns[i], TIME_OF(3 * n * n * unit));
        }
    }
}

TEST(each_work_stays_in_its_place)
{
    struct sim_profile measured;
    assert_ok(measure("sim", 0, 3000, &measured, &test_error));
    for (int kind = 0; kind < AR_KERNEL_OP_COUNT; kind++)
        assert_true(card.seen[kind] > 0);
    check_all(&measured);
}

/* Milliseconds apart, either way; and a host that takes long for each launch. */
TEST(clocks_apart_are_no_matter)
{
    static const int64_t ahead_ns[] = {-6000000, 6000000, -900000};
    static const uint64_t host_ns[] = {3000, 3000, 40000};
    struct sim_profile measured;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(measure("sim", ahead_ns[i], host_ns[i], &measured, &test_error));
        check_all(&measured);
    }
}

/* A small card has no room for the large ones. */
TEST(on_a_small_card)
{
    struct sim_profile measured;
    assert_ok(measure("sim:capacity=300MiB", 0, 3000, &measured, &test_error));
    assert_int_equal(check_curve(&measured, SIM_KERNEL_OP_set, 1), 8);
    assert_int_equal(check_curve(&measured, SIM_KERNEL_OP_elementwise, 1), 7);
    assert_in_range(check_curve(&measured, SIM_KERNEL_OP_gather_rows, 2 * 16), 7, 8);
    assert_int_equal(measured.kernel_ops[SIM_KERNEL_OP_matmul_f32].count, 5);
}

/* No memory for the library: what was measured by then stays. Another failure ends it all. */
TEST(kernel_ops_that_fail)
{
    struct sim_profile measured;
    card.fails_from = 2000;
    card.fails_with = AR_REFUSED;
    assert_ok(measure("sim", 0, 3000, &measured, &test_error));
    assert_int_equal(check_curve(&measured, SIM_KERNEL_OP_elementwise, 1), 9);
    assert_int_equal(measured.kernel_ops[SIM_KERNEL_OP_matmul_f32].count, 0);
    card.fails_with = AR_INVALID;
    assert_says(measure("sim", 0, 3000, &measured, &test_error), AR_INVALID,
                "calibrating: a work failed");
    card.fails_from = 0;
}
