/* The library that CUDA's driver loads into a program (CUDA_INJECTION64_PATH) and that records the
 * calls of the program to the driver.
 *
 * 1. The driver calls InitializeInjection once, when the program begins to use it. It subscribes to
 *    the calls of calls.c only.
 * 2. CUPTI calls on_call before and after each of them, in the thread that makes it. The end of a
 *    call writes one record to the thread's spool.
 * 3. Programs call the driver, or the runtime, which calls the driver. A call of the runtime is
 *    recorded only if no call of the same kind was made within it.
 * 4. Of every SAMPLED-th request and free, the time spent in this library is measured. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/record/injection/state.h"

#define SAMPLED 16u

enum { DRIVER, RUNTIME };

/* The only recorder: CUPTI's buffers and the end of the process have no argument for it. */
static struct recorder *recorder_get(void)
{
    static struct recorder recorder;
    return &recorder;
}

/* ---- one call ------------------------------------------------------------------------------- */

static void name_device(struct recorder *recorder, struct spool_head *head, unsigned device)
{
    unsigned bit = 1u << device;
    if (atomic_fetch_or(&recorder->devices_named, bit) & bit)
        return;
    struct spool_device *place = &head->devices[device];
    size_t bytes = 0;
    if (recorder->driver.device_total_mem &&
        recorder->driver.device_total_mem(&bytes, (CUdevice)device) == CUDA_SUCCESS)
        place->bytes = bytes;
    if (recorder->driver.device_get_name)
        (void)recorder->driver.device_get_name(place->name, sizeof place->name - 1,
                                               (CUdevice)device);
}

static uint16_t device_of(struct spool_writer *writer, CUcontext context)
{
    uint32_t device = 0;
    if (context && context != writer->context &&
        writer->recorder->cupti.cuptiGetDeviceId(context, &device) == CUPTI_SUCCESS) {
        writer->context = context;
        writer->device = (uint16_t)device;
    }
    return writer->device;
}

/* The three names of default streams. */
static void settle_stream(struct spool_record *record, bool per_thread)
{
    const uint64_t legacy = (uintptr_t)CU_STREAM_LEGACY;
    const uint64_t own = (uintptr_t)CU_STREAM_PER_THREAD;
    if (record->stream == own || (per_thread && record->stream == 0)) {
        record->flags |= SPOOL_PER_THREAD;
        record->stream = 0;
    } else if (record->stream == legacy) {
        record->stream = 0;
    }
}

static uint64_t word(const void *arguments, uint8_t place)
{
    uint64_t value = 0;
    if (place)
        memcpy(&value, (const uint64_t *)arguments + place - 1, sizeof value);
    return value;
}

static void read_arguments(const struct call *call, const void *arguments,
                           struct spool_record *record)
{
    const struct call_reads *reads = &call->reads;
    const void *made = (const void *)(uintptr_t)word(arguments, reads->made);
    record->address = made ? word(made, 1) : word(arguments, reads->address);
    record->bytes = word(arguments, reads->bytes);
    record->stream = word(arguments, reads->stream);
    record->other = word(arguments, reads->other);
    if (call->decode)
        call->decode(arguments, record);
}

/* Calls that make something or wait count at their end; all others at their begin. */
static bool counts_at_end(unsigned kind)
{
    const unsigned kinds = 1u << SPOOL_ALLOC | 1u << SPOOL_CREATE | 1u << SPOOL_RESERVE |
                           1u << SPOOL_MAP | 1u << SPOOL_ACCESS | 1u << SPOOL_SYNC |
                           1u << SPOOL_SYNC_DEVICE | 1u << SPOOL_SYNC_EVENT;
    return kinds >> kind & 1u;
}

static void write_call(struct spool_writer *writer, const struct call *call,
                       const CUpti_CallbackData *data, uint64_t now_ns)
{
    struct recorder *recorder = writer->recorder;
    struct spool_record *record = spool_writer_begin(writer);
    if (!record)
        return;
    record->time_ns = counts_at_end(call->kind) ? now_ns : *data->correlationData;
    record->result = *(const int32_t *)data->functionReturnValue;
    record->flags = call->flags;
    record->device = device_of(writer, data->context);
    record->correlation = data->correlationId;
    record->outer_correlation = writer->outer_depth ? writer->outer_correlation : 0;
    read_arguments(call, data->functionParams, record);
    settle_stream(record, call->per_thread);
    bool memory = call->kind == SPOOL_ALLOC || call->kind == SPOOL_CREATE;
    if (memory && record->result != CUDA_SUCCESS) {
        size_t free_bytes = 0, total_bytes = 0;
        if (recorder->driver.mem_get_info &&
            recorder->driver.mem_get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS)
            record->free_bytes = free_bytes;
        record->address = record->other = 0; /* the call made nothing */
    }
    if (memory && record->device < SPOOL_DEVICES)
        name_device(recorder, writer->head, record->device);
    spool_writer_end(writer, record, (enum spool_kind)call->kind);
}

static void enter(struct spool_writer *writer, unsigned domain, const CUpti_CallbackData *data,
                  uint64_t now_ns)
{
    *data->correlationData = now_ns;
    if (domain != RUNTIME)
        return;
    if (writer->outer_depth++)
        return;
    writer->inner_kinds = 0;
    writer->outer_correlation = data->correlationId;
}

static void leave(struct spool_writer *writer, unsigned domain, const struct call *call,
                  const CUpti_CallbackData *data, uint64_t now_ns)
{
    /* The runtime may use another kind of free than the program called. */
    uint32_t bit = UINT32_C(1) << (call->kind == SPOOL_FREE_ASYNC ? SPOOL_FREE : call->kind);
    if (domain == DRIVER) {
        writer->inner_kinds |= bit;
        write_call(writer, call, data, now_ns);
        return;
    }
    if (!writer->outer_depth) /* its begin was in the parent process */
        return;
    if (!(writer->inner_kinds & bit))
        write_call(writer, call, data, now_ns);
    writer->outer_depth--;
}

static void CUPTIAPI on_call(void *self, CUpti_CallbackDomain where, CUpti_CallbackId number,
                             const void *call_data)
{
    uint64_t now_ns = recorder_now_ns();
    struct recorder *recorder = self;
    const CUpti_CallbackData *data = call_data;
    unsigned domain = where == CUPTI_CB_DOMAIN_RUNTIME_API ? RUNTIME : DRIVER;
    if ((where != CUPTI_CB_DOMAIN_DRIVER_API && domain != RUNTIME) ||
        number >= recorder->call_counts[domain])
        return;
    const struct call *call = &recorder->calls[domain][number];
    struct spool_writer *writer = call->kind ? spool_writer_of_thread(recorder) : NULL;
    if (!writer || !writer->head)
        return;
    bool begins = data->callbackSite == CUPTI_API_ENTER;
    bool counts =
        call->kind == SPOOL_ALLOC || call->kind == SPOOL_FREE || call->kind == SPOOL_FREE_ASYNC;
    if (begins)
        enter(writer, domain, data, now_ns);
    else
        leave(writer, domain, call, data, now_ns);
    bool outermost = writer->outer_depth == (begins && domain == RUNTIME);
    if (counts && begins && outermost)
        writer->sampled = ++writer->calls % SAMPLED == 0;
    if (!counts || !writer->sampled)
        return;
    writer->head->cost.total_ns += recorder_now_ns() - now_ns;
    writer->head->cost.samples += !begins && outermost;
}

/* ---- kernels --------------------------------------------------------------------------------
 *
 * CUPTI's records of kernels have their durations, and the number of the call that launched them.
 * The records come when CUPTI's buffers are full, every second, or at the end. */

#define BUFFER_BYTES    (UINT64_C(1) << 20)
#define BUFFER_ALIGN    8u
#define FLUSH_PERIOD_MS 1000u

/* The oldest layout that the supported libraries fill; later ones only append fields. */
typedef CUpti_ActivityKernel9 kernel_record;
_Static_assert(offsetof(kernel_record, correlationId) ==
                       offsetof(CUpti_ActivityKernel8, correlationId) &&
                   offsetof(kernel_record, end) == offsetof(CUpti_ActivityKernel8, end),
               "the fields that are read stay where they are");

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *records_most)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *records_most = 0;
}

static void write_kernel(struct spool_writer *writer, const kernel_record *kernel)
{
    struct spool_record *record = spool_writer_begin(writer);
    if (!record)
        return;
    record->time_ns = recorder_now_ns();
    record->bytes = kernel->end > kernel->start ? kernel->end - kernel->start : 0;
    record->other = kernel->start;
    record->correlation = kernel->correlationId;
    record->device = (uint16_t)kernel->deviceId;
    spool_writer_end(writer, record, SPOOL_KERNEL);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes)
{
    struct recorder *recorder = recorder_get();
    struct spool_writer *writer = spool_writer_of_thread(recorder);
    CUpti_Activity *activity = NULL;
    (void)context;
    (void)stream;
    (void)bytes;
    while (writer && valid_bytes &&
           recorder->cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) ==
               CUPTI_SUCCESS)
        if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            activity->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            write_kernel(writer, (const kernel_record *)(const void *)activity);
    free(buffer);
}

/* Runs before the driver ends with the process. A forked child has none of CUPTI's threads. */
static void flush(void)
{
    if (recorder_get()->process == getpid())
        (void)recorder_get()->cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

static CUptiResult kernels_start(struct recorder *recorder)
{
    CUptiResult result = recorder->cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (result == CUPTI_SUCCESS)
        result = recorder->cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (result != CUPTI_SUCCESS)
        return result;
    if (recorder->cupti.cuptiActivityFlushPeriod)
        (void)recorder->cupti.cuptiActivityFlushPeriod(FLUSH_PERIOD_MS);
    (void)atexit(flush);
    return CUPTI_SUCCESS;
}

/* ---- start --------------------------------------------------------------------------------- */

static bool enable(struct recorder *recorder, unsigned domain, char *why, size_t room)
{
    CUpti_CallbackDomain where =
        domain == DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
    unsigned enabled = 0;
    CUptiResult last = CUPTI_SUCCESS;
    recorder->calls[domain] = domain == DRIVER ? driver_calls(&recorder->call_counts[domain])
                                               : runtime_calls(&recorder->call_counts[domain]);
    for (size_t i = 0; i < recorder->call_counts[domain]; i++) {
        const struct call *call = &recorder->calls[domain][i];
        if (!call->kind || (call->kind == SPOOL_LAUNCH && !recorder->kernels))
            continue;
        /* An older library does not have the later calls. */
        CUptiResult result = recorder->cupti.cuptiEnableCallback(1, recorder->subscriber, where,
                                                                 (CUpti_CallbackId)i);
        enabled += result == CUPTI_SUCCESS;
        last = result == CUPTI_SUCCESS ? last : result;
    }
    if (enabled)
        return true;
    const char *text = "an unknown error";
    (void)recorder->cupti.cuptiGetResultString(last, &text);
    snprintf(why, room, "CUPTI reports no calls of the %s: %s",
             domain == DRIVER ? "driver" : "runtime", text);
    return false;
}

static void child_begins(void)
{
    atomic_store(recorder_get()->known, RECORDER_NEW_PROCESS);
}

static bool start(struct recorder *recorder, char *why, size_t room)
{
    const char *kernels = getenv(SPOOL_KERNELS_VARIABLE);
    recorder->kernels = kernels && strcmp(kernels, "1") == 0;
    recorder->process_started_ns = recorder_now_ns();
    recorder->process = getpid();
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || pthread_key_create(&recorder->key, spool_writer_close) != 0) {
        snprintf(why, room, "the process has no memory or no thread key left");
        return false;
    }
    /* Both are needed: a fork clears the page, if the system can; the handler runs in fork()
     * only. */
    (void)madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
    recorder->known = page;
    atomic_store(recorder->known, RECORDER_KNOWN);
    if (pthread_atfork(NULL, NULL, child_begins) != 0 ||
        !libraries_open(recorder, on_call, why, room))
        return false;
    CUptiResult result = recorder->kernels ? kernels_start(recorder) : CUPTI_SUCCESS;
    if (result != CUPTI_SUCCESS) {
        const char *text = "an unknown error";
        (void)recorder->cupti.cuptiGetResultString(result, &text);
        snprintf(why, room, "CUPTI times no kernels: %s; record without --kernels", text);
        return false;
    }
    /* Only the driver's calls are required; some of the runtime's may be unknown. */
    char unwanted[256];
    (void)enable(recorder, RUNTIME, unwanted, sizeof unwanted);
    return enable(recorder, DRIVER, why, room);
}

/* Reports the reason to the command that started the program, and at once to the user, before a
 * long run without a recording. This library prints nothing else. */
static void tell(const struct recorder *recorder, const char *why)
{
    char path[512];
    dprintf(STDERR_FILENO, "allocrig: process %ld is not recorded: %s\n", (long)getpid(), why);
    snprintf(path, sizeof path, "%.*s/%ld" SPOOL_WHY_END, (int)sizeof recorder->folder - 1,
             recorder->folder, (long)getpid());
    FILE *file = fopen(path, "we");
    if (!file)
        return;
    fputs(why, file);
    fclose(file);
}

/* The driver looks for this name, and ignores the result. */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    struct recorder *recorder = recorder_get();
    const char *folder = getenv(SPOOL_FOLDER_VARIABLE);
    char why[1024] = "";
    if (!folder || strlen(folder) >= sizeof recorder->folder || recorder->subscriber)
        return 1;
    strcpy(recorder->folder, folder);
    if (!start(recorder, why, sizeof why)) {
        if (recorder->subscriber)
            (void)recorder->cupti.cuptiUnsubscribe(recorder->subscriber);
        tell(recorder, why);
    }
    return 1;
}
