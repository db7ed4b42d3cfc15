/* How long the card takes for works on memory, the `work` lines of a profile: each limit that
 * sim/sim_device/work_limits.h knows, measured on shapes that nothing else bounds.
 *
 * 1. A work's time is that of one in a row: some are queued behind a kernel that runs until the host
 *    is done with queueing, between two marks whose times are the device's. Where the host was not
 *    done by then, the try does not count and the next one gets twice the time. The device's clock
 *    is tied to the host's at open only, and a minute later it may be milliseconds off; marks are never
 *    before the host's own time. So the kernel lasts longer by what the device's clock is behind, which
 *    the end of each row tells anew.
 * 2. Each takes the next part of an arena that is larger than the card's caches, as programs do, whose
 *    blocks come by again only after much else. Before each point all of it is set to ones, as
 *    programs' own numbers would be: what is not numbers may be faster or slower to multiply.
 * 3. A point is the median of its repetitions. A thin product is measured with each of the three
 *    lengths as the short one, and the median of those is taken.
 * 4. Shapes for which the arena has no room are left out; so is what comes after a point that took
 *    so long that the next would take too long, and all of it once the part's time is spent.
 * 5. On a device that only knows how long works take, they are kernels of that length. */
#include <inttypes.h>

#include "allocators/base/size.h"
#include "bench/calibrate/parts.h"
#include "sim/sim_device/work_limits.h"
#include "sim/work_shape.h"

#define ARENA_BYTES     GIB
#define ARENA_LEAST     (32 * MIB)
#define PIECE_BYTES     UINT64_C(512) /* that operands begin at multiples of */
#define ROW_TOTAL       16u /* of so many parts of the arena one holds the names of rows, */
#define ROW_TABLE       8u  /* and those from this one on are the table */
#define WARM_NS         UINT64_C(20000000)
#define PART_NS         UINT64_C(8000000000)
#define POINT_NS        UINT64_C(12000000)
#define LONG_NS         UINT64_C(10000000) /* the last point of a row */
#define BATCH_NS        UINT64_C(300000)
#define BATCH_MOST      32u
#define SAMPLES         7u
#define AHEAD_EACH_NS   UINT64_C(15000)
#define AHEAD_NS        UINT64_C(60000)
#define AHEAD_SPARE_NS  20000 /* of them: the host has to be done by so much earlier */
#define AHEAD_DOUBLINGS 5u

/* One curve: the shape of its first point, and the bits by which each length grows from point to
 * point. */
struct sweep {
    enum sim_work work;
    enum device_work_kind kind;
    enum device_type type;
    uint64_t m, n, k;
    unsigned m_bits, n_bits, k_bits, points;
};

#define CUBES(type, name)                                                                          \
    {                                                                                              \
        SIM_WORK_matmul_##name, DEVICE_WORK_matmul, type, 128, 128, 128, 1, 1, 1, 7                \
    }
#define THIN(type, name)                                                                           \
    {                                                                                              \
        SIM_WORK_thin_##name, DEVICE_WORK_matmul, type, 128, 128, 16, 1, 1, 0, 7                   \
    }
#define ADDS(type, name)                                                                           \
    {                                                                                              \
        SIM_WORK_scatter_add_##name, DEVICE_WORK_scatter_add, type, 128, 128, 0, 2, 0, 0, 7        \
    }

static const struct sweep sweeps[] = {
    {SIM_WORK_elementwise, DEVICE_WORK_elementwise, DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_WORK_copy, DEVICE_WORK_copy, DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_WORK_set, DEVICE_WORK_set, DEVICE_F32, 1024, 0, 0, 2, 0, 0, 9},
    {SIM_WORK_reduce, DEVICE_WORK_reduce, DEVICE_F32, 1, 32768, 0, 2, 0, 0, 7},
    {SIM_WORK_strip_32, DEVICE_WORK_reduce, DEVICE_F32, 64, 1024, 0, 2, 0, 0, 6},
    {SIM_WORK_strip_16, DEVICE_WORK_reduce, DEVICE_BF16, 64, 1024, 0, 2, 0, 0, 6},
    {SIM_WORK_gather, DEVICE_WORK_gather, DEVICE_F32, 128, 128, 0, 2, 0, 0, 7},
    {SIM_WORK_gather_rows, DEVICE_WORK_gather, DEVICE_F32, 64, 4, 0, 2, 0, 0, 9},
    {SIM_WORK_scatter_rows, DEVICE_WORK_scatter_add, DEVICE_F32, 64, 4, 0, 2, 0, 0, 9},
    ADDS(DEVICE_F32, f32),
    ADDS(DEVICE_F16, f16),
    ADDS(DEVICE_BF16, bf16),
    CUBES(DEVICE_BF16, bf16),
    THIN(DEVICE_BF16, bf16),
    CUBES(DEVICE_F32, f32),
    THIN(DEVICE_F32, f32),
    CUBES(DEVICE_TF32, tf32),
    THIN(DEVICE_TF32, tf32),
    CUBES(DEVICE_F16, f16),
    THIN(DEVICE_F16, f16),
};

struct works_bench {
    struct meter *meter;
    uint64_t address, bytes; /* the arena */
    uint64_t from, to, next; /* where operands are taken, in it */
    uint64_t names;          /* where the next names of rows are, in it */
    uint64_t ahead_each_ns;
    int64_t clock_ahead_ns; /* the device's clock, of the host's */
    uint64_t until_ns;
};

static bool goes_on(const struct works_bench *self)
{
    return self->meter->status == STATUS_OK && !self->meter->device->failed &&
           meter_now(self->meter) < self->until_ns;
}

/* ---- where works take place ----------------------------------------------------------------- */

static bool works_on_rows(const struct device_work *work)
{
    return work->kind == DEVICE_WORK_gather || work->kind == DEVICE_WORK_scatter_add;
}

/* The next operand of that size. */
static struct device_operand take(struct works_bench *self, uint64_t bytes)
{
    uint64_t whole = size_round_up(bytes, PIECE_BYTES);
    if (self->next + whole > self->to)
        self->next = self->from;
    struct device_operand operand = {self->address + self->next, bytes};
    self->next += whole;
    return operand;
}

/* The sizes of out and in; returns how many inputs. Of rows: without the table and the names. */
static uint32_t operand_bytes(const struct device_work *work, uint64_t *out, uint64_t in[2])
{
    uint64_t unit = work_shape_element_bytes(work->type), m = work->m, n = work->n, k = work->k;
    *out = in[0] = in[1] = 0;
    switch (work->kind) {
    case DEVICE_WORK_matmul:
        *out = m * n * unit;
        in[0] = m * k * unit;
        in[1] = k * n * unit;
        return 2;
    case DEVICE_WORK_elementwise:
        *out = in[0] = in[1] = m * unit;
        return 2;
    case DEVICE_WORK_copy:
        *out = in[0] = m * unit;
        return 1;
    case DEVICE_WORK_reduce:
        *out = n * unit;
        in[0] = m * n * unit;
        return 1;
    case DEVICE_WORK_gather:
        *out = m * n * unit;
        return 2;
    case DEVICE_WORK_scatter_add:
        in[0] = m * n * unit;
        return 2;
    default:
        *out = m * unit;
        return 0;
    }
}

/* False: the arena has no room for it. */
static bool has_room(const struct works_bench *self, const struct device_work *work)
{
    uint64_t out_bytes, in_bytes[2];
    (void)operand_bytes(work, &out_bytes, in_bytes);
    uint64_t bytes = out_bytes + in_bytes[0] + in_bytes[1] + 3 * PIECE_BYTES;
    bool named = !works_on_rows(work) || work->m * 8 <= self->bytes / ROW_TOTAL;
    return named && bytes <= self->to - self->from;
}

/* Gives the work the next operands. */
static void place(struct works_bench *self, struct device_work *work)
{
    uint64_t out_bytes, in_bytes[2], part = self->bytes / ROW_TOTAL;
    work->input_count = operand_bytes(work, &out_bytes, in_bytes);
    work->out = take(self, out_bytes);
    for (uint32_t i = 0; i < work->input_count; i++)
        work->in[i] = take(self, in_bytes[i]);
    if (!works_on_rows(work))
        return;
    struct device_operand table = {self->address + ROW_TABLE * part,
                                   self->bytes - ROW_TABLE * part};
    *(work->kind == DEVICE_WORK_gather ? &work->in[0] : &work->out) = table;
    if (self->names + work->m * 8 > part)
        self->names = 0;
    work->in[1] = (struct device_operand){self->address + self->names, work->m * 8};
    self->names += work->m * 8;
}

/* ---- one time ------------------------------------------------------------------------------- */

/* Queues it. False: it cannot be done, or its time is not known. */
static bool submit(struct works_bench *self, const struct device_work *work)
{
    struct device *device = self->meter->device;
    if (device->ops->work) {
        enum status status = device->ops->work(device, work);
        if (status != STATUS_OK && status != STATUS_REFUSED) {
            self->meter->status = status;
            self->meter->call = "a work";
        }
        return status == STATUS_OK;
    }
    uint64_t ns = device->ops->work_ns(device, work);
    if (ns)
        device->ops->kernel(device, work->stream, ns);
    return ns != 0;
}

/* Rule 2; and names that are spread over all rows. */
static bool clear(struct works_bench *self, const struct device_work *work)
{
    struct device *device = self->meter->device;
    struct device_work ones = {
        .kind = DEVICE_WORK_set,
        .type = work->type,
        .stream = METER_STREAM,
        .out = {self->address, self->bytes},
    };
    if (!device->ops->work)
        return true;
    if (!submit(self, &ones))
        return false;
    return !works_on_rows(work) || !device->ops->fill ||
           device->ops->fill(device, self->address, self->bytes / ROW_TOTAL, 1, METER_STREAM) ==
               STATUS_OK;
}

/* After a mark whose time is known: when all work is done tells how far apart the clocks are. */
static void compare_clocks(struct works_bench *self, uint64_t ended_ns)
{
    meter_sync(self->meter);
    self->clock_ahead_ns = (int64_t)(ended_ns - meter_now(self->meter));
}

/* The time of one of `count` in a row. False: it cannot be done, or the host was always late. */
static bool in_a_row(struct works_bench *self, struct device_work *work, uint32_t count,
                     uint64_t *ns)
{
    struct device *device = self->meter->device;
    const struct device_ops *ops = device->ops;
    for (unsigned tried = 0; tried <= AHEAD_DOUBLINGS && goes_on(self); tried++) {
        int64_t ahead_ns = self->clock_ahead_ns;
        uint64_t behind_ns = ahead_ns < 0 ? (uint64_t)-ahead_ns : 0;
        ops->kernel(device, METER_STREAM, AHEAD_NS + count * self->ahead_each_ns + behind_ns);
        uint64_t begin = ops->mark(device), asked_ns = meter_now(self->meter);
        for (uint32_t i = 0; i < count; i++) {
            place(self, work);
            if (!submit(self, work))
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

/* The median of some, the first of which only loads what is needed. */
static bool measure(struct works_bench *self, struct device_work *work, uint64_t *ns)
{
    struct meter_samples samples = {.count = 0};
    uint64_t one_ns;
    bool worked = clear(self, work);
    place(self, work);
    worked = worked && submit(self, work);
    meter_sync(self->meter);
    self->ahead_each_ns = AHEAD_EACH_NS;
    if (!worked || !in_a_row(self, work, 1, &one_ns))
        return false;
    uint64_t count = one_ns < BATCH_NS / BATCH_MOST ? BATCH_MOST : BATCH_NS / (one_ns + 1) + 1;
    uint64_t until_ns = meter_now(self->meter) + POINT_NS;
    while (samples.count < SAMPLES &&
           (samples.count < SAMPLES_LEAST || meter_now(self->meter) < until_ns)) {
        if (!in_a_row(self, work, (uint32_t)count, &one_ns))
            return false;
        meter_samples_add(&samples, one_ns);
    }
    *ns = meter_samples_median(&samples);
    return true;
}

/* ---- one curve ------------------------------------------------------------------------------ */

/* Rule 3. Lengths of a thin product are two long ones and k. */
static bool measure_orders(struct works_bench *self, const struct device_work *work, bool thin,
                           uint64_t *ns)
{
    struct meter_samples samples = {.count = 0};
    const uint64_t orders[3][3] = {
        {work->m, work->n, work->k}, {work->m, work->k, work->n}, {work->k, work->m, work->n}};
    for (unsigned i = 0; i < (thin ? 3u : 1u); i++) {
        struct device_work turned = *work;
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

/* The size by which the curve goes. */
static uint64_t size_of(struct works_bench *self, const struct sweep *sweep,
                        struct device_work work)
{
    struct sim_work_limit limits[SIM_WORK_LIMITS];
    place(self, &work);
    unsigned count = sim_work_limits(&work, limits);
    for (unsigned i = 0; i < count; i++)
        if (limits[i].work == sweep->work)
            return limits[i].size;
    return 0;
}

static void sweep_go(struct works_bench *self, const struct sweep *sweep, struct sim_profile *out)
{
    bool thin = sweep->kind == DEVICE_WORK_matmul && sweep->k_bits == 0;
    struct device_work work = {.kind = sweep->kind,
                               .type = sweep->type,
                               .stream = METER_STREAM,
                               .m = sweep->m,
                               .n = sweep->n,
                               .k = sweep->k};
    bool rows = works_on_rows(&work);
    self->from = rows ? self->bytes / ROW_TOTAL : 0;
    self->to = rows ? self->bytes / ROW_TOTAL * ROW_TABLE : self->bytes;
    self->next = self->from;
    for (unsigned i = 0; i < sweep->points && goes_on(self) && has_room(self, &work); i++) {
        uint64_t ns;
        if (!measure_orders(self, &work, thin, &ns))
            return;
        if (ns)
            (void)sim_curve_add(&out->works[sweep->work], size_of(self, sweep, work), ns);
        if (ns > LONG_NS)
            return;
        work.m <<= sweep->m_bits;
        work.n <<= sweep->n_bits;
        work.k <<= sweep->k_bits;
    }
}

void parts_works(struct meter *meter, struct sim_profile *out, uint64_t bytes)
{
    const struct device_ops *ops = meter->device->ops;
    struct works_bench self = {.meter = meter, .bytes = ARENA_BYTES};
    (void)bytes;
    if (!ops->work && !ops->work_ns)
        return;
    while (self.bytes >= ARENA_LEAST && (!meter_room(meter, self.bytes, 1) ||
                                         !meter_alloc(meter, self.bytes, &self.address, NULL)))
        self.bytes /= 2;
    if (self.bytes < ARENA_LEAST)
        return;
    ops->kernel(meter->device, METER_STREAM, WARM_NS);
    compare_clocks(&self, ops->mark_ns(meter->device, ops->mark(meter->device)));
    self.until_ns = meter_now(meter) + PART_NS;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++)
        sweep_go(&self, &sweeps[i], out);
    meter_sync(meter);
    (void)meter_free(meter, self.address, NULL);
    meter_rest(meter, self.bytes);
}
