/* Host side of the kernels: the module, launches, fill, verify and touch.
 *
 * nvcc compiles kernels.cu to an image for one architecture of each family, with PTX for later
 * ones. The assembler puts it into the program (kernels_image.S). The driver loads kernels lazily
 * and may wait for the device then, so open launches each kernel once without work. */
#include "bench/cuda/kernels.h"

#include <limits.h>
#include <math.h>

#include "bench/statistics/statistics.h"
#include "sim/kernel_shape.h"

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8, TOUCH_BYTES = 4096 };

/* kernels_image.S. Empty without nvcc, and in the plug-in. */
extern const unsigned char kernels_image[];
extern const uint64_t kernels_image_bytes;

bool kernels_built(void)
{
    return kernels_image_bytes > 0;
}

static const char *const kernel_names[KERNEL_COUNT] = {
#define X(name) #name,
    KERNELS(X)
#undef X
};

/* ---- launching ------------------------------------------------------------------------------- */

static enum ar_status kernels_result(struct kernels *self, CUresult result, const char *call,
                                     uint64_t bytes)
{
    if (result == CUDA_SUCCESS)
        return AR_OK;
    snprintf(self->problem, sizeof self->problem, "%s of %llu bytes failed: %s", call,
             (unsigned long long)bytes, cuda_result_name(self->api, result));
    return result == CUDA_ERROR_OUT_OF_MEMORY ? AR_REFUSED : AR_INVALID;
}

/* As many blocks of 256 threads as `items` fill, up to what the card runs at once. */
static struct kernel_grid kernels_grid(const struct kernels *self, uint64_t items)
{
    uint64_t blocks = (items + THREADS - 1) / THREADS, most = self->processors;
    most *= BLOCKS_PER_PROCESSOR;
    blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
    return (struct kernel_grid){(unsigned)blocks, THREADS, 1};
}

static enum ar_status kernels_launch(struct kernels *self, enum kernel kernel,
                                     struct kernel_grid grid, CUstream stream, void **arguments,
                                     uint64_t bytes)
{
    CUresult result = self->api->launch_kernel(self->function[kernel], grid.blocks, 1, 1, grid.x,
                                               grid.y, 1, 0, stream, arguments, NULL);
    if (result == CUDA_SUCCESS)
        return AR_OK;
    char call[96];
    snprintf(call, sizeof call, "a launch (cuLaunchKernel) of the kernel %s on a range",
             kernel_names[kernel]);
    return kernels_result(self, result, call, bytes);
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum ar_status find_record(struct kernels *self, const char *name, size_t bytes,
                                  CUdeviceptr *out)
{
    size_t found = 0;
    AR_TRY(kernels_result(self, self->api->module_get_global(out, &found, self->module, name),
                          "cuModuleGetGlobal", bytes));
    if (found != bytes) {
        snprintf(self->problem, sizeof self->problem,
                 "the kernels' record %s has %zu bytes where the program expects %zu: build again "
                 "after make clean",
                 name, found, bytes);
        return AR_CORRUPT;
    }
    return AR_OK;
}

static enum ar_status load(struct kernels *self, CUdevice card)
{
    const struct cuda_api *api = self->api;
    int processors = 0;
    enum ar_status status = kernels_result(
        self,
        api->device_get_attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, card),
        "cuDeviceGetAttribute", 0);
    self->processors = processors > 0 ? (unsigned)processors : 1;
    AR_THEN(status, kernels_result(self, api->module_load_data(&self->module, kernels_image),
                                   "loading the kernels (cuModuleLoadData)", 0));
    for (int i = 0; i < KERNEL_COUNT && status == AR_OK; i++)
        status = kernels_result(
            self, api->module_get_function(&self->function[i], self->module, kernel_names[i]),
            kernel_names[i], 0);
    AR_THEN(status, find_record(self, "kernels_wrong", sizeof(struct kernels_wrong), &self->wrong));
    AR_THEN(status, find_record(self, "kernels_timer", sizeof(struct kernels_timer), &self->timer));
    AR_THEN(status, kernels_result(self, api->stream_create(&self->stream, CU_STREAM_NON_BLOCKING),
                                   "cuStreamCreate", 0));
    return status;
}

/* At least the size of every kernel's arguments. With zeros each kernel does nothing. They run in
 * the default stream, because kernels start faster until a context has used a second stream (by
 * about 160 ns on an H200): what spin_calibrate measures must hold for programs of many streams. */
static enum ar_status launch_all(struct kernels *self)
{
    uint64_t zero[8] = {0};
    void *arguments[] = {zero, zero, zero, zero};
    for (int i = 0; i < KERNEL_COUNT; i++)
        AR_TRY(kernels_launch(self, (enum kernel)i, (struct kernel_grid){1, 32, 1}, NULL, arguments,
                              0));
    return kernels_result(self, self->api->ctx_synchronize(),
                          "the first launch of all kernels (cuCtxSynchronize)", 0);
}

enum ar_status kernels_open(const struct cuda_api *api, CUdevice card, struct kernels **out,
                            struct ar_error *error)
{
    *out = NULL;
    if (!kernels_built())
        return ar_error_set(
            error, AR_MISSING,
            "this build holds no kernels, since nvcc was not found when it was made; install a "
            "CUDA toolkit and build again, or use the simulated device, sim");
    struct kernels *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "the host has no memory left for kernels");
    self->api = api;
    enum ar_status status = load(self, card);
    AR_THEN(status, launch_all(self));
    AR_THEN(status, spin_calibrate(self));
    if (status == AR_OK) {
        *out = self;
        return AR_OK;
    }
    status = ar_error_set(error, status, "the kernels of device cuda cannot be made ready: %s",
                          self->problem);
    kernels_close(self);
    return status;
}

void kernels_close(struct kernels *self)
{
    if (!self)
        return;
    blas_close(self->blas);
    if (self->stream)
        self->api->stream_destroy(self->stream);
    if (self->module)
        self->api->module_unload(self->module);
    free(self);
}

void kernels_facts(const struct kernels *self, struct kernels_facts *out)
{
    *out = (struct kernels_facts){
        .timer_step_ns = self->spin.timer_step_ns,
        .timer_from_ns = self->spin.timer_from_ns,
        .cycles_per_ns = self->spin.cycles_per_ns,
        .spin_overhead_ns = self->spin.overhead_ns,
        .spin_least_ns = self->spin.least_ns,
        .matmul = self->matmul,
        .matmul_bytes = self->blas ? blas_held_bytes(self->blas) : 0,
    };
}

const char *kernels_problem(const struct kernels *self)
{
    return self->problem;
}

/* ---- fill, verify, touch --------------------------------------------------------------------- */

enum ar_status kernels_fill(struct kernels *self, uint64_t address, uint64_t bytes, uint64_t block,
                            CUstream stream)
{
    void *arguments[] = {&address, &bytes, &block};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_fill, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

enum ar_status kernels_verify(struct kernels *self, uint64_t address, uint64_t bytes,
                              uint64_t block, CUstream stream)
{
    uint64_t number = ++self->verifications;
    void *arguments[] = {&address, &bytes, &block, &number};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_verify, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

enum ar_status kernels_wrong(struct kernels *self, struct ar_device_wrong *out)
{
    struct kernels_wrong record = {0};
    const struct cuda_api *api = self->api;
    memset(out, 0, sizeof *out);
    enum ar_status status = kernels_result(self, api->ctx_synchronize(),
                                           "waiting for verifications (cuCtxSynchronize)", 0);
    AR_THEN(status,
            kernels_result(
                self, api->memcpy_dtoh_async(&record, self->wrong, sizeof record, self->stream),
                "cuMemcpyDtoHAsync", sizeof record));
    AR_THEN(status, kernels_result(self, api->stream_synchronize(self->stream),
                                   "cuStreamSynchronize", sizeof record));
    if (status != AR_OK || !record.count)
        return status;
    *out = (struct ar_device_wrong){
        .count = record.count,
        .address = record.address,
        .block = record.block,
        .offset = record.offset,
        .expected = (uint8_t)record.expected,
        .found = (uint8_t)record.found,
    };
    return AR_OK;
}

enum ar_status kernels_forget_wrong(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    AR_TRY(kernels_result(self, api->ctx_synchronize(),
                          "waiting for verifications (cuCtxSynchronize)", 0));
    AR_TRY(kernels_result(
        self, api->memset_d8_async(self->wrong, 0, sizeof(struct kernels_wrong), self->stream),
        "cuMemsetD8Async", sizeof(struct kernels_wrong)));
    return kernels_result(self, api->stream_synchronize(self->stream), "cuStreamSynchronize",
                          sizeof(struct kernels_wrong));
}

enum ar_status kernels_touch(struct kernels *self, uint64_t address, uint64_t bytes,
                             CUstream stream)
{
    void *arguments[] = {&address, &bytes};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_touch, kernels_grid(self, bytes / TOUCH_BYTES), stream,
                          arguments, bytes);
}

/* Kernels of a given length: one thread that waits by a clock of the card.
 *
 *  1. Which clock. Short waits go by the cycle counter, whose rate is measured. Long waits go by
 *     %globaltimer, because it runs in nanoseconds whatever the card's frequency. The timer is not
 *     used for short waits, because a wait ends at one of its readings: on an H200 these are about
 *     100 ns apart. If its steps are long (about 1000 ns on some cards), it is not used.
 *  2. Overhead. Kernels that follow each other in a stream have a gap between them, and a start
 *     and an end: batches of two lengths, queued behind a kernel that holds the stream so that
 *     the host is ahead, are measured with events. From the two periods follow the overhead of
 *     one kernel and the rate of the counter. A batch by the timer gives its overhead. The median
 *     of several rounds is used, or the least where other programs use the card in most of them.
 *  3. Kernels without a wait follow each other as fast as the card starts them, which may be slower
 *     than the overhead after longer ones: another batch measures the least possible length.
 *  4. These batches are queued in advance. Replays launch while other kernels run, which costs a
 *     little more for each kernel: a last batch without the hold measures this.
 *  5. A kernel of d ns waits for d - overhead. A length below the least, and the remainder of
 *     whole clock steps, is added to the next kernel of the stream. */

enum {
    ROUNDS = 5,
    EMPTY_COUNT = 256,
    SHORT_COUNT = 128,
    SHORT_CYCLES = 10000,
    LONG_COUNT = 64,
    LONG_CYCLES = 100000,
    LONG_NS = 100000,
    USUAL_COUNT = 256,
    HOLD_CYCLES = 3000000,
    WARM_CYCLES = 30000000, /* an idle card runs slower at first */
    TIMER_CHANGES = 256,
    /* The overhead depends by some 50 ns on the length: a batch is of 16 lengths. */
    LENGTHS = 16,
    LENGTH_STEP = 40,
    MEAN_EXTRA = LENGTH_STEP * (LENGTHS - 1) / 2,
};

#define TIMER_STEP_MOST_NS 100.0
#define TIMER_WAIT_NS      20000.0 /* shorter waits go by cycles */
#define LEAST_MARGIN       1.1     /* keeps the launch rate of the card out of the figures */
#define DISTURBED          1.2 /* medians above so many times the least are not the kernels' own */

static enum ar_status spin(struct kernels *self, enum kernel kernel, uint64_t units,
                           CUstream stream)
{
    void *arguments[] = {&units};
    return kernels_launch(self, kernel, (struct kernel_grid){1, 1, 1}, stream, arguments, 0);
}

static enum ar_status choose_clock(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    struct kernels_timer record = {0};
    uint64_t wanted = TIMER_CHANGES;
    void *arguments[] = {&wanted};
    enum ar_status status = kernels_launch(self, KERNEL_time_timer, (struct kernel_grid){1, 1, 1},
                                           self->stream, arguments, 0);
    AR_THEN(status,
            kernels_result(
                self, api->memcpy_dtoh_async(&record, self->timer, sizeof record, self->stream),
                "cuMemcpyDtoHAsync", sizeof record));
    AR_THEN(status, kernels_result(self, api->stream_synchronize(self->stream),
                                   "cuStreamSynchronize", sizeof record));
    bool fine =
        record.changes && (double)record.total_ns <= TIMER_STEP_MOST_NS * (double)record.changes;
    self->spin.timer_from_ns = fine ? TIMER_WAIT_NS : (double)INFINITY;
    self->spin.timer_step_ns = record.changes ? (double)record.least_ns : 0;
    return status;
}

/* A row of timed kernels to be measured. */
struct batch {
    enum kernel kernel;
    unsigned count;
    uint64_t units; /* of the first; MEAN_EXTRA more in the mean; 0: all without a wait */
    bool hold;      /* queued before the first runs */
};

/* Nanoseconds from one kernel of the batch to the next. */
static enum ar_status period(struct kernels *self, const CUevent event[2],
                             const struct batch *batch, double *out)
{
    const struct cuda_api *api = self->api;
    float milliseconds = 0;
    enum ar_status status =
        batch->hold ? spin(self, KERNEL_spin_clock, HOLD_CYCLES, self->stream) : AR_OK;
    AR_THEN(status,
            kernels_result(self, api->event_record(event[0], self->stream), "cuEventRecord", 0));
    for (unsigned i = 0; i < batch->count && status == AR_OK; i++)
        status = spin(self, batch->kernel,
                      batch->units ? batch->units + i % LENGTHS * LENGTH_STEP : 0, self->stream);
    AR_THEN(status,
            kernels_result(self, api->event_record(event[1], self->stream), "cuEventRecord", 0));
    AR_THEN(status,
            kernels_result(self, api->event_synchronize(event[1]), "cuEventSynchronize", 0));
    AR_THEN(status, kernels_result(self, api->event_elapsed_time(&milliseconds, event[0], event[1]),
                                   "cuEventElapsedTime", 0));
    *out = (double)milliseconds * 1e6 / batch->count;
    return status;
}

/* Other programs on the card make a round longer, never shorter. */
static double of_rounds(double ns[ROUNDS])
{
    statistic_sort(ns, ROUNDS);
    return ns[ROUNDS / 2] > DISTURBED * ns[0] ? ns[0] : ns[ROUNDS / 2];
}

static enum ar_status measure(struct kernels *self, const CUevent event[2])
{
    enum { EMPTY, SHORT, USUAL, LONG, TIMED, BATCHES };
    static const struct batch batches[BATCHES] = {
        [EMPTY] = {KERNEL_spin_clock, EMPTY_COUNT, 0, true},
        [SHORT] = {KERNEL_spin_clock, SHORT_COUNT, SHORT_CYCLES, true},
        [USUAL] = {KERNEL_spin_clock, USUAL_COUNT, SHORT_CYCLES, false},
        [LONG] = {KERNEL_spin_clock, LONG_COUNT, LONG_CYCLES, true},
        [TIMED] = {KERNEL_spin_timer, LONG_COUNT, LONG_NS, true},
    };
    double ns[BATCHES][ROUNDS] = {{0}}, batch_ns[BATCHES];
    AR_TRY(spin(self, KERNEL_spin_clock, WARM_CYCLES, self->stream));
    for (int i = 0; i < ROUNDS; i++)
        for (int b = 0; b < BATCHES; b++)
            AR_TRY(period(self, event, &batches[b], &ns[b][i]));
    for (int b = 0; b < BATCHES; b++)
        batch_ns[b] = of_rounds(ns[b]);
    double ns_per_cycle = 1;
    if (batch_ns[LONG] > batch_ns[SHORT])
        ns_per_cycle = (batch_ns[LONG] - batch_ns[SHORT]) / (LONG_CYCLES - SHORT_CYCLES);
    struct spin *how = &self->spin;
    how->cycles_per_ns = 1 / ns_per_cycle;
    how->overhead_ns = fmax(0, fmax(batch_ns[SHORT], batch_ns[USUAL]) -
                                   ns_per_cycle * (SHORT_CYCLES + MEAN_EXTRA));
    how->timer_overhead_ns = fmax(0, batch_ns[TIMED] - (LONG_NS + MEAN_EXTRA));
    how->timer_from_ns = fmax(how->timer_from_ns, how->timer_overhead_ns); /* no wait is negative */
    how->least_ns = fmax(how->overhead_ns, batch_ns[EMPTY] * LEAST_MARGIN);
    return AR_OK;
}

enum ar_status spin_calibrate(struct kernels *self)
{
    const struct cuda_api *api = self->api;
    CUevent event[2] = {NULL, NULL};
    enum ar_status status = choose_clock(self);
    for (int i = 0; i < 2 && status == AR_OK; i++)
        status = kernels_result(self, api->event_create(&event[i], CU_EVENT_DEFAULT),
                                "cuEventCreate", 0);
    AR_THEN(status, measure(self, event));
    for (int i = 0; i < 2; i++)
        if (event[i])
            api->event_destroy(event[i]);
    return status;
}

enum ar_status kernels_spin(struct kernels *self, double *owed_ns, uint64_t nanoseconds,
                            CUstream stream)
{
    const struct spin *how = &self->spin;
    *owed_ns += (double)nanoseconds;
    if (*owed_ns < how->least_ns)
        return AR_OK;
    bool by_timer = *owed_ns >= how->timer_from_ns;
    double step_ns = by_timer ? how->timer_step_ns : 1 / how->cycles_per_ns;
    double wait_ns = *owed_ns - (by_timer ? how->timer_overhead_ns : how->overhead_ns);
    double steps = floor(wait_ns / step_ns + 0.5);
    double units = by_timer ? steps * step_ns : steps;
    AR_TRY(spin(self, by_timer ? KERNEL_spin_timer : KERNEL_spin_clock, (uint64_t)units, stream));
    *owed_ns = wait_ns - steps * step_ns;
    return AR_OK;
}

/* Kernel ops: launches the kernel, or calls cuBLAS, for the shape that sim/kernel_shape.h computes.
 * An empty shape does nothing. */

static enum kernel_format format_of(enum ar_device_type type)
{
    static const enum kernel_format formats[] = {
        [AR_DEVICE_F32] = FORMAT_F32, [AR_DEVICE_TF32] = FORMAT_F32,
        [AR_DEVICE_F16] = FORMAT_F16, [AR_DEVICE_BF16] = FORMAT_BF16,
        [AR_DEVICE_I8] = FORMAT_I8,   [AR_DEVICE_I64] = FORMAT_I64};
    return formats[type];
}

/* The kernel of a set for a format; a set is in the order of the formats. */
static enum kernel of_set(enum kernel first, enum kernel_format format)
{
    return (enum kernel)((int)first + (int)format);
}

static enum ar_status elementwise(struct kernels *self, const struct ar_kernel_op *op,
                                  CUstream stream)
{
    struct kernel_shape_elementwise shape = kernel_shape_elementwise(op);
    struct kernels_inputs in = {.count = shape.input_count};
    if (!shape.element_count)
        return AR_OK;
    for (uint32_t i = 0; i < shape.input_count; i++)
        in.address[i] = op->in[shape.inputs[i]].address;
    uint64_t out = op->out.address;
    void *arguments[] = {&out, &in, &shape.element_count};
    return kernels_launch(self, of_set(KERNEL_elementwise_f32, format_of(op->type)),
                          kernels_grid(self, shape.operand_bytes / 16), stream, arguments,
                          shape.operand_bytes);
}

static enum ar_status reduce(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_reduce cut = kernel_shape_reduce(op);
    struct kernels_matrix shape = {
        .rows = cut.row_count, .columns = cut.column_count, .pitch = cut.pitch_elements};
    if (!shape.rows)
        return AR_OK;
    unsigned width = 1;
    while (width < 32 && width < shape.columns)
        width *= 2;
    uint64_t out = op->out.address, in = op->in[0].address;
    void *arguments[] = {&out, &in, &shape, &width};
    return kernels_launch(self, of_set(KERNEL_reduce_f32, format_of(op->type)),
                          kernels_grid(self, kernel_shape_times(shape.columns / width + 1, 256)),
                          stream, arguments,
                          shape.rows * shape.pitch * kernel_shape_element_bytes(op->type));
}

/* For kernels that process a row with 32 threads. */
static struct kernel_grid grid_of_rows(const struct kernels *self, uint64_t rows)
{
    struct kernel_grid grid = kernels_grid(self, kernel_shape_times(rows, 32));
    grid.x = 32;
    grid.y = 8;
    return grid;
}

static struct kernels_rows rows_of(const struct ar_kernel_op *op,
                                   const struct kernel_shape_rows *shape)
{
    return (struct kernels_rows){
        .rows = shape->row_count,
        .columns = shape->column_count,
        .table_rows = shape->table_row_count,
        .index = op->in[1].address,
        .index_bytes = shape->index_bytes,
    };
}

/* Uses the widest words that both addresses and the row length allow. */
static enum ar_status gather(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_rows shape = kernel_shape_gather(op);
    struct kernels_rows rows = rows_of(op, &shape);
    uint64_t out = op->out.address, table = op->in[0].address;
    if (!rows.rows)
        return AR_OK;
    uint64_t together = out | table | shape.row_bytes, word_bytes = 1;
    enum kernel kernel = KERNEL_gather_1;
    if (together % 16 == 0) {
        kernel = KERNEL_gather_16;
        word_bytes = 16;
    } else if (together % 4 == 0) {
        kernel = KERNEL_gather_4;
        word_bytes = 4;
    }
    rows.columns = shape.row_bytes / word_bytes;
    void *arguments[] = {&out, &table, &rows};
    return kernels_launch(self, kernel, grid_of_rows(self, rows.rows), stream, arguments,
                          rows.rows * shape.row_bytes);
}

static enum ar_status scatter_add(struct kernels *self, const struct ar_kernel_op *op,
                                  CUstream stream)
{
    struct kernel_shape_rows shape = kernel_shape_scatter_add(op);
    struct kernels_rows rows = rows_of(op, &shape);
    uint64_t table = op->out.address, in = op->in[0].address;
    if (!rows.rows)
        return AR_OK;
    void *arguments[] = {&table, &in, &rows};
    return kernels_launch(self, of_set(KERNEL_scatter_add_f32, format_of(op->type)),
                          grid_of_rows(self, rows.rows), stream, arguments,
                          rows.rows * shape.row_bytes);
}

static enum ar_status copy(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    uint64_t bytes = kernel_shape_copy_bytes(op);
    uint64_t out = op->out.address, in = op->in[0].address;
    void *arguments[] = {&out, &in, &bytes};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_copy, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* The kernel repeats 8 bytes, counted from the address on. */
static enum ar_status set(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    static const uint64_t ones[] = {
        [FORMAT_F32] = 0x3f8000003f800000,
        [FORMAT_F16] = 0x3c003c003c003c00,
        [FORMAT_BF16] = 0x3f803f803f803f80,
        [FORMAT_I8] = 0x0101010101010101,
        [FORMAT_I64] = 1,
    };
    uint64_t bytes = kernel_shape_set_bytes(op);
    uint64_t out = op->out.address, one = ones[format_of(op->type)];
    void *arguments[] = {&out, &bytes, &one};
    if (!bytes)
        return AR_OK;
    return kernels_launch(self, KERNEL_set, kernels_grid(self, bytes / 16), stream, arguments,
                          bytes);
}

/* ---- matrix products ------------------------------------------------------------------------- */

static enum ar_status open_matmul(struct kernels *self)
{
    struct ar_error why;
    if (self->blas_tried)
        return AR_OK;
    enum ar_status status = blas_open(self->api, &self->blas, &why);
    if (status == AR_OK) {
        snprintf(self->matmul, sizeof self->matmul, "%s", blas_name(self->blas));
    } else if (status == AR_MISSING) {
        snprintf(self->matmul, sizeof self->matmul,
                 "a plain kernel of this program, slower than cuBLAS: %.160s", why.text);
        status = AR_OK;
    } else { /* no memory: the next product tries again */
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
        return status;
    }
    self->blas_tried = true;
    return status;
}

enum ar_status kernels_choose_matmul(struct kernels *self, enum kernels_matmul choice)
{
    blas_close(self->blas);
    self->blas = NULL;
    self->blas_tried = choice == KERNELS_PLAIN;
    snprintf(self->matmul, sizeof self->matmul, "%s",
             choice == KERNELS_PLAIN ? "a plain kernel of this program, as asked for" : "");
    return choice == KERNELS_CUBLAS_EARLY ? open_matmul(self) : AR_OK;
}

static enum ar_status plain_matmul(struct kernels *self, const struct ar_kernel_op *op,
                                   struct kernels_product *shape, CUstream stream)
{
    uint64_t out = op->out.address, a = op->in[0].address, b = op->in[1].address;
    uint64_t tiles = kernel_shape_times((shape->m + 15) / 16, (shape->n + 15) / 16);
    struct kernel_grid grid = kernels_grid(self, kernel_shape_times(tiles, 256));
    grid.x = 16;
    grid.y = 16;
    void *arguments[] = {&out, &a, &b, shape};
    return kernels_launch(self, of_set(KERNEL_matmul_f32, format_of(op->type)), grid, stream,
                          arguments, op->out.bytes);
}

static enum ar_status matmul(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    struct kernel_shape_matmul cut = kernel_shape_matmul(op);
    struct kernels_product shape = {
        .m = cut.m, .n = cut.n, .k = cut.k, .pitch_a = cut.pitch_elements};
    if (!shape.m)
        return AR_OK;
    bool small = op->m <= INT_MAX && op->n <= INT_MAX && op->k <= INT_MAX;
    bool floats = op->type != AR_DEVICE_I8 && op->type != AR_DEVICE_I64;
    if (!small || !floats)
        return plain_matmul(self, op, &shape, stream);
    AR_TRY(open_matmul(self));
    if (!self->blas)
        return plain_matmul(self, op, &shape, stream);
    struct blas_product product = {
        .type = op->type,
        .out = op->out.address,
        .a = op->in[0].address,
        .b = op->in[1].address,
        .m = shape.m,
        .n = shape.n,
        .k = shape.k,
        .pitch_a = shape.pitch_a,
    };
    struct ar_error why;
    enum ar_status status = blas_matmul(self->blas, &product, stream, &why);
    if (status != AR_OK)
        snprintf(self->problem, sizeof self->problem, "%.500s", why.text);
    return status;
}

enum ar_status kernels_op(struct kernels *self, const struct ar_kernel_op *op, CUstream stream)
{
    typedef enum ar_status (*function)(struct kernels *, const struct ar_kernel_op *, CUstream);
    static const function functions[AR_KERNEL_OP_COUNT] = {
        [AR_KERNEL_OP_matmul] = matmul,
        [AR_KERNEL_OP_elementwise] = elementwise,
        [AR_KERNEL_OP_reduce] = reduce,
        [AR_KERNEL_OP_gather] = gather,
        [AR_KERNEL_OP_scatter_add] = scatter_add,
        [AR_KERNEL_OP_copy] = copy,
        [AR_KERNEL_OP_set] = set,
    };
    return functions[op->kind](self, op, stream);
}
