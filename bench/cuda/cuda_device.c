/* The real card: its hooks, its clock, errors, other processes, memory outside of the policy, and
 * uses by streams. Each section explains its part.
 *
 * 1. The clock is the host's, nanoseconds since open; marks put the device's work on it.
 * 2. Each call of a policy is timed between two readings around the driver's function. Waits for
 *    the device are separate. Neither includes bookkeeping.
 * 3. A driver error other than a lack of memory ends the device (see errors below). */
#include "bench/cuda/cuda_device.h"

#include <unistd.h>

#include "bench/cuda/state.h"
#include "bench/machine/environment.h"

/* A launch that takes this long waited for a full queue of the stream. */
#define LAUNCH_WAITED_NS 100000u

/* ---- hooks of the device -------------------------------------------------------------------- */

static uint64_t hook_now(struct ar_device *device)
{
    return cuda_now(cuda_of(device));
}

/* The program's own wait. */
static void hook_sync(struct ar_device *device, uint32_t stream)
{
    struct cuda_device *self = cuda_of(device);
    if (stream != CUDA_ALL_STREAMS && !cuda_stream(self, stream))
        return;
    self->program_waited_ns += cuda_stream_sync(self, stream);
    cuda_pool_charge(self);
}

static uint64_t hook_idle_at(struct ar_device *device)
{
    hook_sync(device, CUDA_ALL_STREAMS);
    return hook_now(device);
}

static void hook_advance(struct ar_device *device, uint64_t nanoseconds)
{
    struct cuda_device *self = cuda_of(device);
    const struct ar_device_counters *counters = &device->counters;
    uint64_t taken_ns = counters->driver_ns + counters->stall_ns + self->program_waited_ns;
    uint64_t due_ns = cuda_schedule_gap(&self->schedule, cuda_now(self), taken_ns, nanoseconds);
    while (cuda_now(self) < due_ns)
        ;
}

/* Translates the kernels' status of a launch to the device's. */
static enum ar_status launched(struct cuda_device *self, struct cuda_stream *stream,
                               enum ar_status status)
{
    if (stream)
        stream->sequence++;
    if (status == AR_OK || status == AR_REFUSED || self->base.failed)
        return status;
    (void)cuda_misuse(self,
                      "the driver failed: %s; run it again under compute-sanitizer, and see dmesg",
                      kernels_problem(self->kernels));
    self->base.failed = true;
    return AR_INVALID;
}

static void hook_kernel(struct ar_device *device, uint32_t ordinal, uint64_t nanoseconds)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_stream *stream = cuda_stream(self, ordinal);
    if (!stream || device->failed)
        return;
    uint64_t begun_ns = self->schedule.begun ? latency_clock_ns() : 0;
    enum ar_status status =
        kernels_spin(self->kernels, &stream->owed_ns, nanoseconds, stream->handle);
    if (launched(self, stream, status) == AR_REFUSED)
        (void)cuda_worked(self, CUDA_ERROR_OUT_OF_MEMORY, "cuLaunchKernel");
    if (!self->schedule.begun)
        return;
    uint64_t took_ns = latency_clock_ns() - begun_ns;
    if (took_ns >= LAUNCH_WAITED_NS)
        self->program_waited_ns += took_ns;
}

static void hook_event_record(struct ar_device *device, uint64_t event, uint32_t stream)
{
    cuda_stream_event_record(cuda_of(device), event, stream);
}

static void hook_stream_wait(struct ar_device *device, uint32_t stream, uint64_t event)
{
    cuda_stream_event_wait(cuda_of(device), stream, event);
}

static const char *hook_race_text(struct ar_device *device AR_UNUSED)
{
    return "";
}

static bool hook_segment_of(struct ar_device *device, uint64_t address,
                            struct ar_device_segment *out)
{
    const struct cuda_device *self = cuda_of(device);
    const struct memory_segment *segment = memory_segment_find(&self->memory, address);
    if (segment)
        *out = (struct ar_device_segment){
            .ordinal = segment->ordinal, .address = segment->range.start, .bytes = segment->bytes};
    else if (cuda_pool_has(self, address))
        *out = (struct ar_device_segment){.ordinal = self->pool.ordinal, .bytes = UINT64_MAX};
    else
        return false;
    return true;
}

static const char *hook_problem(struct ar_device *device)
{
    return cuda_of(device)->problem;
}

static uint64_t hook_card_bytes(struct ar_device *device)
{
    struct cuda_device *self = cuda_of(device);
    size_t free_bytes = 0, total_bytes = 0;
    if (device->failed ||
        !cuda_worked(self, self->api.mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo"))
        return 0;
    uint64_t used_bytes = total_bytes - free_bytes;
    return used_bytes > self->card_others_bytes ? used_bytes - self->card_others_bytes : 0;
}

/* ---- kernel ops ------------------------------------------------------------------------------ */

static enum ar_status hook_fill(struct ar_device *device, uint64_t address, uint64_t bytes,
                                uint64_t block, uint32_t ordinal)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_stream *stream = cuda_stream(self, ordinal);
    if (!stream || device->failed)
        return cuda_ready(self);
    return launched(self, stream,
                    kernels_fill(self->kernels, address, bytes, block, stream->handle));
}

static enum ar_status hook_verify(struct ar_device *device, uint64_t address, uint64_t bytes,
                                  uint64_t block, uint32_t ordinal)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_stream *stream = cuda_stream(self, ordinal);
    if (!stream || device->failed)
        return cuda_ready(self);
    return launched(self, stream,
                    kernels_verify(self->kernels, address, bytes, block, stream->handle));
}

static enum ar_status hook_wrong(struct ar_device *device, struct ar_device_wrong *out)
{
    struct cuda_device *self = cuda_of(device);
    *out = (struct ar_device_wrong){0};
    return device->failed ? cuda_ready(self)
                          : launched(self, NULL, kernels_wrong(self->kernels, out));
}

static enum ar_status hook_touch(struct ar_device *device, uint64_t address, uint64_t bytes,
                                 uint32_t ordinal)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_stream *stream = cuda_stream(self, ordinal);
    if (!stream || device->failed)
        return cuda_ready(self);
    return launched(self, stream, kernels_touch(self->kernels, address, bytes, stream->handle));
}

static enum ar_status hook_kernel_op(struct ar_device *device, const struct ar_kernel_op *op)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_stream *stream = cuda_stream(self, op->stream);
    if (!stream || device->failed)
        return cuda_ready(self);
    return launched(self, stream, kernels_op(self->kernels, op, stream->handle));
}

/* The bytes that other processes hold, so that the rest of the used bytes is this process's.
 *
 * The driver reports only the bytes of all processes together. The management library reports the
 * same before there is a context, when none are ours, and again after: the difference is the
 * context, and further bytes that the driver counts belong to other processes. Without the library
 * all bytes count as ours. Processes that start or end later are not noticed. */

int64_t cuda_others_look(uint64_t ordinal)
{
    struct nvml *nvml = nvml_open();
    if (!nvml)
        return -1;
    struct nvml_state state = {.used_bytes = -1};
    nvml_read_state(nvml, (unsigned)ordinal, getenv("CUDA_VISIBLE_DEVICES"), (uint32_t)getpid(),
                    &state);
    nvml_close(nvml);
    return state.used_bytes;
}

uint64_t cuda_others_bytes(int64_t before_bytes, int64_t now_bytes, uint64_t driver_bytes)
{
    if (before_bytes < 0 || now_bytes < before_bytes)
        return 0;
    uint64_t ours_bytes = (uint64_t)(now_bytes - before_bytes);
    return driver_bytes > ours_bytes ? driver_bytes - ours_bytes : 0;
}

/* Memory that the program holds outside of the policy (o events). It is really allocated, so that
 * the policy has the same memory left as in the program. The newest allocation is released first;
 * if it is larger than the reduction, it is made again in the smaller size. */

static uint64_t held_bytes(const struct cuda_device *self)
{
    uint64_t bytes = 0;
    for (const struct cuda_outside *piece = self->outside; piece; piece = piece->older)
        bytes += piece->bytes;
    return bytes;
}

static enum ar_status piece_make(struct cuda_device *self, uint64_t bytes)
{
    struct cuda_outside *piece = calloc(1, sizeof *piece);
    AR_TRY_HOST(piece);
    bool is_virtual = self->base.props.has_virtual_memory;
    const CUmemAllocationProp kind = cuda_memory_kind(self);
    CUresult result = is_virtual ? self->api.mem_create(&piece->driver_handle, bytes, &kind, 0)
                                 : self->api.mem_alloc(&piece->address, bytes);
    enum ar_status status =
        cuda_answer(self, result, is_virtual ? "cuMemCreate" : "cuMemAlloc", bytes);
    if (status != AR_OK) {
        free(piece);
        return status;
    }
    piece->bytes = bytes;
    piece->older = self->outside;
    self->outside = piece;
    return AR_OK;
}

static enum ar_status piece_end(struct cuda_device *self)
{
    struct cuda_outside *piece = self->outside;
    self->outside = piece->older;
    CUresult result = piece->address ? self->api.mem_free(piece->address)
                                     : self->api.mem_release(piece->driver_handle);
    bool worked = cuda_worked(self, result, piece->address ? "cuMemFree" : "cuMemRelease");
    free(piece);
    return worked ? AR_OK : AR_INVALID;
}

static enum ar_status cuda_outside(struct ar_device *device, uint64_t bytes)
{
    struct cuda_device *self = cuda_of(device);
    enum ar_status status = cuda_ready(self);
    uint64_t before_bytes = self->ledger.outside_bytes;
    AR_TRY(status);
    if (!sim_ledger_outside(&self->ledger, bytes))
        return AR_REFUSED;
    uint64_t begun_ns = latency_clock_ns(), wanted_bytes = self->ledger.outside_bytes;
    while (status == AR_OK && held_bytes(self) > wanted_bytes)
        status = piece_end(self);
    uint64_t have_bytes = held_bytes(self);
    if (status == AR_OK && have_bytes < wanted_bytes)
        status = piece_make(self, wanted_bytes - have_bytes);
    if (status == AR_REFUSED)
        self->ledger.outside_bytes = before_bytes < have_bytes ? before_bytes : have_bytes;
    self->program_waited_ns += latency_clock_ns() - begun_ns;
    cuda_show_memory(self);
    return status;
}

void cuda_outside_close(struct cuda_device *self)
{
    while (self->outside)
        (void)piece_end(self);
}

/* The driver's results as statuses and sentences.
 *
 * 1. A lack of memory is an outcome: REFUSED, without a sentence.
 * 2. Every other error ends the device. Such errors come late, for earlier work, and most persist
 *    until the process ends. The first sentence is kept and no further calls are made, because
 *    later errors are consequences and must not replace the cause. */

enum ar_status cuda_misuse(struct cuda_device *self, const char *format, ...)
{
    if (self->base.failed)
        return AR_INVALID;
    AR_PRINT(self->problem, sizeof self->problem, format);
    return AR_INVALID;
}

static enum ar_status driver_failed(struct cuda_device *self, CUresult result, const char *call,
                                    uint64_t bytes)
{
    if (self->base.failed) /* the first error is the cause of the others */
        return AR_INVALID;
    const char *meaning = NULL;
    char size[48] = "";
    if (self->api.get_error_string(result, &meaning) != CUDA_SUCCESS || !meaning)
        meaning = "no description";
    if (bytes)
        snprintf(size, sizeof size, " of %" PRIu64 " bytes", bytes);
    (void)cuda_misuse(self,
                      "the driver failed: %s%s returned %s (%s), which may come from work queued "
                      "before it; run it again under compute-sanitizer, and see dmesg",
                      call, size, cuda_result_name(&self->api, result), meaning);
    self->base.failed = true; /* keeps the sentence */
    return AR_INVALID;
}

enum ar_status cuda_answer(struct cuda_device *self, CUresult result, const char *call,
                           uint64_t bytes)
{
    if (result == CUDA_SUCCESS)
        return AR_OK;
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !self->base.failed)
        return AR_REFUSED;
    return driver_failed(self, result, call, bytes);
}

bool cuda_worked(struct cuda_device *self, CUresult result, const char *call)
{
    return result == CUDA_SUCCESS || driver_failed(self, result, call, 0) == AR_OK;
}

enum ar_status cuda_ready(struct cuda_device *self)
{
    if (self->base.failed)
        return AR_INVALID;
    return self->out_of_host_memory || self->memory.lost ? AR_HOST_MEMORY : AR_OK;
}

void cuda_show_memory(struct cuda_device *self)
{
    struct ar_device_counters *counters = &self->base.counters;
    counters->physical_bytes = self->ledger.physical_bytes;
    counters->peak_physical_bytes = self->ledger.peak_physical_bytes;
    counters->outside_bytes = self->ledger.outside_bytes;
    counters->others_bytes =
        self->capacity_given ? self->ledger.others_bytes : self->card_others_bytes;
}

/* Uses of memory by streams, for policies that leave the order between streams to the engine.
 *
 * 1. `used` keeps for a range the point in the stream's work, with a fence. Work that is known to
 *    be done needs none.
 * 2. `handed_out` with order: the new owner's stream waits for each such point of another stream.
 *    The wait shows in the step's time only; the device does not report it, so the
 *    returned stall is 0.
 * 3. Without order the policy is responsible. Races do not depend on the device: the simulated one
 *    finds them, and here --verify finds a wrong byte. From then on no uses are kept. */

static void cuda_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t ordinal,
                      uint64_t event)
{
    struct cuda_device *self = cuda_of(device);
    const struct cuda_streams *streams = &self->streams;
    if (self->trusts_policy || ordinal >= streams->count ||
        (!streams->embedded &&
         streams->streams[ordinal].sequence <= streams->streams[ordinal].known))
        return;
    uint64_t sequence = cuda_stream_fence(self, ordinal);
    memory_use(&self->memory, address, bytes,
               (struct sim_use){.sequence = sequence, .event = event, .stream = ordinal});
}

struct hand_out {
    struct cuda_device *self;
    uint32_t stream;
};

static bool hand_out_visit(void *argument, const struct sim_use *use, uint64_t start AR_UNUSED,
                           uint64_t end AR_UNUSED)
{
    const struct hand_out *hand_out = argument;
    cuda_stream_order(hand_out->self, use->stream, use->sequence, hand_out->stream);
    return true;
}

static uint64_t cuda_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes,
                                uint32_t stream, bool order, uint64_t event AR_UNUSED)
{
    struct cuda_device *self = cuda_of(device);
    if (!order)
        self->trusts_policy = true;
    if (self->trusts_policy || !self->memory.hazards.ranges.root)
        return 0;
    struct hand_out hand_out = {.self = self, .stream = stream};
    while (bytes) {
        struct memory_piece piece = memory_piece_at(&self->memory, address, bytes);
        memory_pass_on(&self->memory, &piece, hand_out_visit, &hand_out);
        address += piece.length;
        bytes -= piece.length;
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

const struct ar_device_ops cuda_device_ops = {
    .close = cuda_close,
    .outside = cuda_outside,
    .advance = hook_advance,
    .now = hook_now,
    .idle_at = hook_idle_at,
    .kernel = hook_kernel,
    .event_record = hook_event_record,
    .stream_wait = hook_stream_wait,
    .sync = hook_sync,
    .used = cuda_used,
    .handed_out = cuda_handed_out,
    .race_text = hook_race_text,
    .segment_of = hook_segment_of,
    .fill = hook_fill,
    .verify = hook_verify,
    .wrong = hook_wrong,
    .touch = hook_touch,
    .kernel_op = hook_kernel_op,
    .problem = hook_problem,
    .mark = cuda_mark,
    .mark_ns = cuda_mark_ns,
    .card_bytes = hook_card_bytes,
    .flush = cuda_record_flush,
};
