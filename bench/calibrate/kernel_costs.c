/* The card's times of kernel ops, the `work` lines of a profile: each limit in
 * sim/sim_device/kernel_limits.h, measured on shapes that only it bounds.
 *
 * 1. The time of a kernel op is that of one in a row: several are queued, between two marks with
 *    the device's times, after a kernel that runs until the host has queued them. If the host is
 *    late, the try does not count and the next one gets twice the time. The device's clock is tied
 *    to the host's at open only and may be milliseconds off a minute later; marks are never before
 *    the host's own time. So the kernel is lengthened by the lag of the device's clock, which is
 *    measured again at the end of each row.
 * 2. Each op uses the next part of an arena that is larger than the card's caches, because a
 *    program also uses a block again only after much other memory. Before each point the arena is
 *    set to ones, because the multiplication of other bit patterns may be faster or slower.
 * 3. A point is the median of its repetitions. A thin product is measured with each of the three
 *    lengths as the short one, and the median of the three is used.
 * 4. Shapes larger than the arena are left out, as are points after one that took too long, and all
 *    points after the part's time is used up.
 * 5. A device that only knows the times of kernel ops runs kernels of that length. */

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/calibrate/meter.h"
#include "sim/kernel_shape.h"
#include "sim/replay.h"
#include "sim/sim_device/kernel_limits.h"

#define ARENA_BYTES     AR_GIB
#define ARENA_LEAST     (32 * AR_MIB)
#define PIECE_BYTES     UINT64_C(512) /* operands begin at multiples of it */
#define ROW_TOTAL       16u           /* parts of the arena: the first has the names of rows, */
#define ROW_TABLE       8u            /* and the parts from this one on are the table */
#define WARM_NS         UINT64_C(20000000)
#define PART_NS         UINT64_C(8000000000)
#define POINT_NS        UINT64_C(12000000)
#define LONG_NS         UINT64_C(10000000) /* the last point of a row */
#define BATCH_NS        UINT64_C(300000)
#define BATCH_MOST      32u
#define SAMPLES         7u
#define AHEAD_EACH_NS   UINT64_C(15000)
#define AHEAD_NS        UINT64_C(60000)
#define AHEAD_SPARE_NS  20000 /* of them: the host must finish this much earlier */
#define AHEAD_DOUBLINGS 5u

/* One curve: the shape of its first point, and the bits by which each length grows between
 * points. */
struct sweep {
    enum sim_kernel_op op;
    enum ar_kernel_op_kind kind;
    enum ar_device_type type;
    uint64_t m, n, k;
    unsigned m_bits, n_bits, k_bits, points;
};

#define CUBES(type, name)                                                                          \
    {                                                                                              \
        SIM_KERNEL_OP_matmul_##name, AR_KERNEL_OP_matmul, type, 128, 128, 128, 1, 1, 1, 7          \
    }
#define THIN(type, name)                                                                           \
    {                                                                                              \
        SIM_KERNEL_OP_thin_##name, AR_KERNEL_OP_matmul, type, 128, 128, 16, 1, 1, 0, 7             \
    }
#define ADDS(type, name)                                                                           \
    {                                                                                              \
        SIM_KERNEL_OP_scatter_add_##name, AR_KERNEL_OP_scatter_add, type, 128, 128, 0, 2, 0, 0, 7  \
    }

static const struct sweep sweeps[] = {
    {SIM_KERNEL_OP_elementwise, AR_KERNEL_OP_elementwise, AR_DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_KERNEL_OP_copy, AR_KERNEL_OP_copy, AR_DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_KERNEL_OP_set, AR_KERNEL_OP_set, AR_DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_KERNEL_OP_reduce, AR_KERNEL_OP_reduce, AR_DEVICE_F32, 1, 32768, 0, 2, 0, 0, 7},
    {SIM_KERNEL_OP_strip_32, AR_KERNEL_OP_reduce, AR_DEVICE_F32, 64, 1024, 0, 2, 0, 0, 6},
    {SIM_KERNEL_OP_strip_16, AR_KERNEL_OP_reduce, AR_DEVICE_BF16, 64, 1024, 0, 2, 0, 0, 6},
    {SIM_KERNEL_OP_gather, AR_KERNEL_OP_gather, AR_DEVICE_F32, 128, 128, 0, 2, 0, 0, 7},
    {SIM_KERNEL_OP_gather_rows, AR_KERNEL_OP_gather, AR_DEVICE_F32, 64, 4, 0, 2, 0, 0, 9},
    {SIM_KERNEL_OP_scatter_rows, AR_KERNEL_OP_scatter_add, AR_DEVICE_F32, 64, 4, 0, 2, 0, 0, 9},
    ADDS(AR_DEVICE_F32, f32),
    ADDS(AR_DEVICE_F16, f16),
    ADDS(AR_DEVICE_BF16, bf16),
    CUBES(AR_DEVICE_BF16, bf16),
    THIN(AR_DEVICE_BF16, bf16),
    CUBES(AR_DEVICE_F32, f32),
    THIN(AR_DEVICE_F32, f32),
    CUBES(AR_DEVICE_TF32, tf32),
    THIN(AR_DEVICE_TF32, tf32),
    CUBES(AR_DEVICE_F16, f16),
    THIN(AR_DEVICE_F16, f16),
};

struct kernel_bench {
    struct meter *meter;
    uint64_t address, bytes; /* the arena */
    uint64_t from, to, next; /* where operands are taken, in it */
    uint64_t names;          /* where the next names of rows are, in it */
    uint64_t ahead_each_ns;
    int64_t clock_ahead_ns; /* the device's clock, of the host's */
    uint64_t until_ns;
};

static bool goes_on(const struct kernel_bench *self)
{
    return self->meter->status == AR_OK && !self->meter->device->failed &&
           meter_now(self->meter) < self->until_ns;
}

/* ---- operands in the arena ----------------------------------------------------------------- */

static bool op_is_on_rows(const struct ar_kernel_op *op)
{
    return op->kind == AR_KERNEL_OP_gather || op->kind == AR_KERNEL_OP_scatter_add;
}

/* The next operand of that size. */
static struct ar_device_operand take(struct kernel_bench *self, uint64_t bytes)
{
    uint64_t whole = ar_size_round_up(bytes, PIECE_BYTES);
    if (self->next + whole > self->to)
        self->next = self->from;
    struct ar_device_operand operand = {self->address + self->next, bytes};
    self->next += whole;
    return operand;
}

/* The sizes of out and in; returns how many inputs. Of rows: without the table and the names. */
static uint32_t operand_bytes(const struct ar_kernel_op *op, uint64_t *out, uint64_t in[2])
{
    uint64_t unit = kernel_shape_element_bytes(op->type), m = op->m, n = op->n, k = op->k;
    *out = in[0] = in[1] = 0;
    switch (op->kind) {
    case AR_KERNEL_OP_matmul:
        *out = m * n * unit;
        in[0] = m * k * unit;
        in[1] = k * n * unit;
        return 2;
    case AR_KERNEL_OP_elementwise:
        *out = in[0] = in[1] = m * unit;
        return 2;
    case AR_KERNEL_OP_copy:
        *out = in[0] = m * unit;
        return 1;
    case AR_KERNEL_OP_reduce:
        *out = n * unit;
        in[0] = m * n * unit;
        return 1;
    case AR_KERNEL_OP_gather:
        *out = m * n * unit;
        return 2;
    case AR_KERNEL_OP_scatter_add:
        in[0] = m * n * unit;
        return 2;
    default:
        *out = m * unit;
        return 0;
    }
}

/* False: the arena has no room for it. */
static bool has_room(const struct kernel_bench *self, const struct ar_kernel_op *op)
{
    uint64_t out_bytes, in_bytes[2];
    (void)operand_bytes(op, &out_bytes, in_bytes);
    uint64_t bytes = out_bytes + in_bytes[0] + in_bytes[1] + 3 * PIECE_BYTES;
    bool named = !op_is_on_rows(op) || op->m * 8 <= self->bytes / ROW_TOTAL;
    return named && bytes <= self->to - self->from;
}

static void place(struct kernel_bench *self, struct ar_kernel_op *op)
{
    uint64_t out_bytes, in_bytes[2], part = self->bytes / ROW_TOTAL;
    op->input_count = operand_bytes(op, &out_bytes, in_bytes);
    op->out = take(self, out_bytes);
    for (uint32_t i = 0; i < op->input_count; i++)
        op->in[i] = take(self, in_bytes[i]);
    if (!op_is_on_rows(op))
        return;
    struct ar_device_operand table = {self->address + ROW_TABLE * part,
                                      self->bytes - ROW_TABLE * part};
    *(op->kind == AR_KERNEL_OP_gather ? &op->in[0] : &op->out) = table;
    if (self->names + op->m * 8 > part)
        self->names = 0;
    op->in[1] = (struct ar_device_operand){self->address + self->names, op->m * 8};
    self->names += op->m * 8;
}

/* ---- one time ------------------------------------------------------------------------------- */

/* Queues the op. False: it is not supported, or its time is unknown. */
static bool submit(struct kernel_bench *self, const struct ar_kernel_op *op)
{
    struct ar_device *device = self->meter->device;
    if (device->ops->kernel_op) {
        enum ar_status status = device->ops->kernel_op(device, op);
        if (status != AR_OK && status != AR_REFUSED) {
            self->meter->status = status;
            self->meter->call = "a work";
        }
        return status == AR_OK;
    }
    uint64_t ns = device->ops->kernel_op_ns(device, op);
    if (ns)
        device->ops->kernel(device, op->stream, ns);
    return ns != 0;
}

/* Rule 2; and names that are spread over all rows. */
static bool clear(struct kernel_bench *self, const struct ar_kernel_op *op)
{
    struct ar_device *device = self->meter->device;
    struct ar_kernel_op ones = {
        .kind = AR_KERNEL_OP_set,
        .type = op->type,
        .stream = METER_STREAM,
        .out = {self->address, self->bytes},
    };
    if (!device->ops->kernel_op)
        return true;
    if (!submit(self, &ones))
        return false;
    return !op_is_on_rows(op) || !device->ops->fill ||
           device->ops->fill(device, self->address, self->bytes / ROW_TOTAL, 1, METER_STREAM) ==
               AR_OK;
}

/* After a mark with a known time: the end of all work shows the difference of the clocks. */
static void compare_clocks(struct kernel_bench *self, uint64_t ended_ns)
{
    meter_sync(self->meter);
    self->clock_ahead_ns = (int64_t)(ended_ns - meter_now(self->meter));
}

/* The time of one of `count` in a row. False: not supported, or the host was always late. */
static bool in_a_row(struct kernel_bench *self, struct ar_kernel_op *op, uint32_t count,
                     uint64_t *ns)
{
    struct ar_device *device = self->meter->device;
    const struct ar_device_ops *ops = device->ops;
    for (unsigned tried = 0; tried <= AHEAD_DOUBLINGS && goes_on(self); tried++) {
        int64_t ahead_ns = self->clock_ahead_ns;
        uint64_t behind_ns = ahead_ns < 0 ? (uint64_t)-ahead_ns : 0;
        ops->kernel(device, METER_STREAM, AHEAD_NS + count * self->ahead_each_ns + behind_ns);
        uint64_t begin = ops->mark(device), asked_ns = meter_now(self->meter);
        for (uint32_t i = 0; i < count; i++) {
            place(self, op);
            if (!submit(self, op))
                return false;
        }
        uint64_t end = ops->mark(device), queued_ns = meter_now(self->meter);
        uint64_t begun_ns = ops->mark_ns(device, begin), ended_ns = ops->mark_ns(device, end);
        compare_clocks(self, ended_ns);
        bool marked = begun_ns > asked_ns && ended_ns > queued_ns; /* both by the device's clock */
        if (marked && (int64_t)queued_ns + AHEAD_SPARE_NS <= (int64_t)begun_ns - ahead_ns) {
            *ns = (ended_ns - begun_ns + count / 2) / count;
            return true;
        }
        self->ahead_each_ns *= 2;
    }
    return false;
}

/* The median of several runs, after a first one that loads the kernel. */
static bool measure(struct kernel_bench *self, struct ar_kernel_op *op, uint64_t *ns)
{
    struct meter_samples samples = {.count = 0};
    uint64_t one_ns;
    bool worked = clear(self, op);
    place(self, op);
    worked = worked && submit(self, op);
    meter_sync(self->meter);
    self->ahead_each_ns = AHEAD_EACH_NS;
    if (!worked || !in_a_row(self, op, 1, &one_ns))
        return false;
    uint64_t count = one_ns < BATCH_NS / BATCH_MOST ? BATCH_MOST : BATCH_NS / (one_ns + 1) + 1;
    uint64_t until_ns = meter_now(self->meter) + POINT_NS;
    while (samples.count < SAMPLES &&
           (samples.count < SAMPLES_LEAST || meter_now(self->meter) < until_ns)) {
        if (!in_a_row(self, op, (uint32_t)count, &one_ns))
            return false;
        meter_samples_add(&samples, one_ns);
    }
    *ns = meter_samples_median(&samples);
    return true;
}

/* ---- one curve ------------------------------------------------------------------------------ */

/* Rule 3. Lengths of a thin product are two long ones and k. */
static bool measure_orders(struct kernel_bench *self, const struct ar_kernel_op *op, bool thin,
                           uint64_t *ns)
{
    struct meter_samples samples = {.count = 0};
    const uint64_t orders[3][3] = {
        {op->m, op->n, op->k}, {op->m, op->k, op->n}, {op->k, op->m, op->n}};
    for (unsigned i = 0; i < (thin ? 3u : 1u); i++) {
        struct ar_kernel_op turned = *op;
        turned.m = orders[i][0];
        turned.n = orders[i][1];
        turned.k = orders[i][2];
        if (!measure(self, &turned, ns))
            return false;
        meter_samples_add(&samples, *ns);
    }
    *ns = meter_samples_median(&samples);
    return true;
}

/* The size along the curve. */
static uint64_t size_of(struct kernel_bench *self, const struct sweep *sweep,
                        struct ar_kernel_op op)
{
    struct sim_kernel_limit limits[SIM_KERNEL_LIMITS];
    place(self, &op);
    unsigned count = sim_kernel_limits(&op, limits);
    for (unsigned i = 0; i < count; i++)
        if (limits[i].op == sweep->op)
            return limits[i].size;
    return 0;
}

static void sweep_go(struct kernel_bench *self, const struct sweep *sweep, struct sim_profile *out)
{
    bool thin = sweep->kind == AR_KERNEL_OP_matmul && sweep->k_bits == 0;
    struct ar_kernel_op op = {.kind = sweep->kind,
                              .type = sweep->type,
                              .stream = METER_STREAM,
                              .m = sweep->m,
                              .n = sweep->n,
                              .k = sweep->k};
    bool rows = op_is_on_rows(&op);
    self->from = rows ? self->bytes / ROW_TOTAL : 0;
    self->to = rows ? self->bytes / ROW_TOTAL * ROW_TABLE : self->bytes;
    self->next = self->from;
    for (unsigned i = 0; i < sweep->points && goes_on(self) && has_room(self, &op); i++) {
        uint64_t ns;
        if (!measure_orders(self, &op, thin, &ns))
            return;
        if (ns)
            (void)sim_curve_add(&out->kernel_ops[sweep->op], size_of(self, sweep, op), ns);
        if (ns > LONG_NS)
            return;
        op.m <<= sweep->m_bits;
        op.n <<= sweep->n_bits;
        op.k <<= sweep->k_bits;
    }
}

void parts_kernel_ops(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    const struct ar_device_ops *ops = meter->device->ops;
    struct kernel_bench self = {.meter = meter, .bytes = ARENA_BYTES};
    (void)bytes;
    if (!ops->kernel_op && !ops->kernel_op_ns)
        return;
    while (self.bytes >= ARENA_LEAST && (!meter_room(meter, self.bytes, 1) ||
                                         !meter_alloc(meter, self.bytes, &self.address, NULL)))
        self.bytes /= 2;
    if (self.bytes < ARENA_LEAST)
        return;
    ops->kernel(meter->device, METER_STREAM, WARM_NS);
    compare_clocks(&self, ops->mark_ns(meter->device, ops->mark(meter->device)));
    self.until_ns = meter_now(meter) + PART_NS;
    for (size_t i = 0; i < AR_COUNT(sweeps); i++)
        sweep_go(&self, &sweeps[i], out);
    meter_sync(meter);
    (void)meter_free(meter, self.address, NULL);
    meter_rest(meter, self.bytes);
}

/* The host's preparation of matrix products: the first one of a process loads the library (cuBLAS),
 * the first of a type and order of lengths loads its kernels.
 *
 * 1. Products of two types in all six orders of three lengths, each done twice. The second is a
 *    plain launch; the time of the first beyond it is the preparation.
 * 2. The figure of all but the very first is their plain mean. They differ a hundredfold,
 *    depending on the kernels loaded before, and a program has a few of them, so their sum matters.
 * 3. Runs last, because the library keeps memory on the card. */

#define LENGTHS     3u
#define ORDERS      6u
#define BLOCK_BYTES (UINT64_C(8) << 20) /* the longest two lengths in the widest type */

static const enum ar_device_type types[] = {AR_DEVICE_BF16, AR_DEVICE_F32};

static const uint64_t orders[ORDERS][LENGTHS] = {
    {4096, 512, 64}, {4096, 64, 512}, {512, 4096, 64},
    {64, 4096, 512}, {512, 64, 4096}, {64, 512, 4096},
};

/* A device without memory has the host's part only. */
static bool product(struct meter *meter, const struct ar_kernel_op *op, uint64_t *took_ns)
{
    const struct ar_device_ops *ops = meter->device->ops;
    uint64_t begun_ns = meter_now(meter);
    if (ops->kernel_op && ops->kernel_op(meter->device, op) != AR_OK)
        return false;
    if (!ops->kernel_op)
        ops->prepare(meter->device, op);
    *took_ns = meter_now(meter) - begun_ns;
    meter_sync(meter);
    return true;
}

static void measure_products(struct meter *meter, struct sim_profile *out, const uint64_t *blocks)
{
    uint64_t first_ns = 0, others_ns = 0, count = 0;
    for (size_t i = 0; i < AR_COUNT(types) * ORDERS; i++) {
        const uint64_t *lengths = orders[i % ORDERS];
        struct ar_kernel_op op = {
            .kind = AR_KERNEL_OP_matmul,
            .type = types[i / ORDERS],
            .stream = METER_STREAM,
            .input_count = 2,
            .m = lengths[0],
            .n = lengths[1],
            .k = lengths[2],
            .out = {blocks[0], BLOCK_BYTES},
            .in = {{blocks[1], BLOCK_BYTES}, {blocks[2], BLOCK_BYTES}},
        };
        uint64_t new_ns, again_ns;
        if (!product(meter, &op, &new_ns) || !product(meter, &op, &again_ns))
            return;
        uint64_t prepared_ns = new_ns > again_ns ? new_ns - again_ns : 0;
        if (i == 0)
            first_ns = prepared_ns;
        else
            others_ns += prepared_ns;
        count += i != 0;
    }
    parts_figure(meter, out, SIM_COST_product_first, 1, first_ns);
    parts_figure(meter, out, SIM_COST_product_new, 1, (others_ns + count / 2) / count);
}

void parts_products(struct meter *meter, struct sim_profile *out, uint64_t bytes AR_UNUSED)
{
    const struct ar_device_ops *ops = meter->device->ops;
    uint64_t blocks[LENGTHS];
    uint32_t held = 0;
    if (!ops->kernel_op && !ops->prepare)
        return;
    while (held < LENGTHS && meter_alloc(meter, BLOCK_BYTES, &blocks[held], NULL))
        held++;
    if (held == LENGTHS)
        measure_products(meter, out, blocks);
    while (held)
        (void)meter_free(meter, blocks[--held], NULL);
}

/* The host time of the program around the allocator: requests and frees without driver calls, marks
 * of steps, the program's events and waits.
 *
 * 1. It is measured in the engine, which replays a trace made here under `torch` with default
 *    options and reads the clock around each call, as in any run on a card. The trace also reads
 *    the clock when the engine reads its next events, which times each span.
 * 2. A program that waits for its host launches short kernels and does everything else between
 *    them. So all spans have the same kernels and one more activity: requests, of which one frees
 *    one of a few dozen blocks of many sizes and the next makes another; marks, one for every ten
 *    kernels, behind a longer one; events; events and waits for them. The time of a span beyond one
 *    of kernels alone, or of events, less its driver calls, is divided by their number. The time of
 *    a request includes the policy's own; other policies need a little less or more.
 * 3. The host waits for the card only before the first span, which is not counted: launches just
 *    after a wait are slow, and on an H100 hid the requests between them.
 * 4. The spans alternate, so a change of the host's speed affects all of them. */

#define ROUNDS      40u /* and one before, in which the policy gets its memory */
#define SPANS       ((ROUNDS + 1) * SPAN_COUNT)
#define BLOCKS      32u
#define BYTES_LEAST 512u
#define BYTES_MOST  (4 * AR_MIB)
#define KERNELS     60u
#define TEN         10u
#define EVENTS_MOST (3 * KERNELS)

/* For a device that does not report its shortest kernel: long enough that it is never idle. */
#define KERNEL_NS UINT64_C(20000)

/* The first has kernels too and is not counted. Requests come last because the policy's driver
 * calls leave the card idle. */
enum ar_span {
    SPAN_first,
    SPAN_kernels,
    SPAN_marks,
    SPAN_records,
    SPAN_waits,
    SPAN_requests,
    SPAN_COUNT
};

struct program {
    struct trace_source base;
    struct meter *meter;
    struct ar_rng rng;
    uint64_t next_id, ids[BLOCKS]; /* of the block of each slot, + 1; 0: none */
    uint32_t slot;
    uint32_t given; /* spans so far */
    uint64_t begun_ns, driver_ns;
    uint64_t took_ns[SPAN_COUNT];
    struct meter_samples requests, marks, records, waits;
    struct trace_event events[EVENTS_MOST];
    size_t count;
};

static void put(struct program *self, struct trace_event event)
{
    self->events[self->count++] = event;
}

static void put_free(struct program *self, uint32_t slot)
{
    if (self->ids[slot])
        put(self, (struct trace_event){.kind = TRACE_FREE_COMPLETED,
                                       .flags = TRACE_WHOLE,
                                       .slot = slot,
                                       .id = self->ids[slot] - 1});
    self->ids[slot] = 0;
}

static void put_alloc(struct program *self, uint32_t slot)
{
    uint64_t bytes = ar_rng_log_uniform(&self->rng, BYTES_LEAST, BYTES_MOST);
    put(self, (struct trace_event){
                  .kind = TRACE_ALLOC, .slot = slot, .value = bytes, .id = self->next_id});
    self->ids[slot] = ++self->next_id;
}

/* A little longer than the shortest, the last of ten four times as long. */
static uint64_t kernel_ns(const struct program *self, bool last)
{
    uint64_t least_ns = self->meter->device->props.kernel_least_ns;
    if (!least_ns)
        return KERNEL_NS;
    return last ? 4 * least_ns : least_ns + least_ns / 4;
}

static void put_span(struct program *self, enum ar_span span)
{
    for (uint32_t i = 0; i < KERNELS; i++) {
        bool last = i % TEN == TEN - 1;
        put(self, (struct trace_event){.kind = TRACE_KERNEL,
                                       .stream = METER_STREAM,
                                       .value = kernel_ns(self, last)});
        if (span == SPAN_requests) {
            put_free(self, self->slot);
            put_alloc(self, self->slot);
            self->slot = (self->slot + 1) % BLOCKS;
        }
        if (span == SPAN_marks && last)
            put(self, (struct trace_event){.kind = TRACE_MARK, .flags = TRACE_STEP});
        if (span == SPAN_records || span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_RECORD, .stream = METER_STREAM});
        if (span == SPAN_waits)
            put(self, (struct trace_event){.kind = TRACE_WAIT, .stream = METER_BUSY_STREAM});
    }
}

static uint64_t driver_ns(const struct program *self)
{
    const struct ar_device_counters *counters = &self->meter->device->counters;
    return counters->driver_ns + counters->stall_ns;
}

/* The time of one of `count`, from the difference of two spans. */
static void add(struct meter_samples *into, uint64_t ns, uint64_t without_ns, uint64_t count)
{
    uint64_t more_ns = ns > without_ns ? ns - without_ns : 0;
    meter_samples_add(into, (more_ns + count / 2) / count);
}

static void round_end(struct program *self)
{
    const uint64_t *took_ns = self->took_ns;
    add(&self->requests, took_ns[SPAN_requests], took_ns[SPAN_kernels], 2 * KERNELS);
    add(&self->marks, took_ns[SPAN_marks], took_ns[SPAN_kernels], KERNELS / TEN);
    add(&self->records, took_ns[SPAN_records], took_ns[SPAN_kernels], KERNELS);
    add(&self->waits, took_ns[SPAN_waits], took_ns[SPAN_records], KERNELS);
}

static void span_end(struct program *self)
{
    if (!self->given || self->given > SPANS)
        return;
    uint32_t span = (self->given - 1) % SPAN_COUNT, round = (self->given - 1) / SPAN_COUNT;
    uint64_t passed_ns = meter_now(self->meter) - self->begun_ns;
    uint64_t called_ns = driver_ns(self) - self->driver_ns;
    self->took_ns[span] = passed_ns > called_ns ? passed_ns - called_ns : 0;
    if (span == SPAN_COUNT - 1 && round > 0)
        round_end(self);
}

static enum ar_status program_next(struct trace_source *base, const struct trace_event **events,
                                   size_t *count, struct ar_error *error AR_UNUSED)
{
    struct program *self = (struct program *)base;
    span_end(self);
    if (self->given % SPAN_COUNT == SPAN_first)
        meter_sync(self->meter);
    self->count = 0;
    if (self->given < SPANS)
        put_span(self, (enum ar_span)(self->given % SPAN_COUNT));
    else if (self->given == SPANS)
        for (uint32_t slot = 0; slot < BLOCKS; slot++)
            put_free(self, slot);
    self->given++;
    *events = self->events;
    *count = self->count;
    self->driver_ns = driver_ns(self);
    self->begun_ns = meter_now(self->meter);
    return AR_OK;
}

static const char *program_text(struct trace_source *base AR_UNUSED, uint64_t index AR_UNUSED)
{
    return "step";
}

static const struct trace_source_ops program_ops = {.next = program_next, .text = program_text};

static enum ar_status replay(struct program *self, struct ar_error *error)
{
    struct ar_host host = {0};
    struct ar_policy_context context = {.backing = self->meter->backing, .host = &host};
    AR_CLOSED(ar_spec_close) struct ar_spec torch = {0};
    struct replay_config config = {
        .device = self->meter->device,
        .source = &self->base,
        .measure = REPLAY_METRICS_EXACT,
        .measure_time = true,
        .policy_host = &host,
    };
    struct replay_result result;
    AR_TRY(ar_spec_parse("torch", &torch, error));
    enum ar_status status = registry_create(&torch, &context, &config.policy, error);
    if (status == AR_OK) {
        status = replay_run(&config, &result, error);
        replay_result_close(&result);
    }
    meter_sync(self->meter);
    ar_policy_destroy(config.policy);
    return status;
}

void parts_program(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    struct program self = {
        .base = {.ops = &program_ops,
                 .info = {.name = "calibrate",
                          .format = "generator",
                          .complete = true,
                          .slots = BLOCKS,
                          .streams = METER_BUSY_STREAM + 1,
                          .one_block_stream = true}},
        .meter = meter,
    };
    struct ar_error error;
    ar_rng_seed(&self.rng, 1);
    enum ar_status status = replay(&self, &error);
    if (status != AR_OK) {
        meter->status = status;
        meter->call = "a replay";
        return;
    }
    parts_point(meter, out, SIM_COST_request, bytes, &self.requests);
    parts_point(meter, out, SIM_COST_mark, bytes, &self.marks);
    parts_point(meter, out, SIM_COST_record, bytes, &self.records);
    parts_point(meter, out, SIM_COST_wait, bytes, &self.waits);
}
