/* The real card: its state, and the functions that its parts call of each other. */
#ifndef BENCH_CUDA_STATE_H
#define BENCH_CUDA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/cuda/api.h"
#include "bench/cuda/kernels.h"
#include "bench/cuda/schedule.h"
#include "bench/cuda/streams.h"
#include "sim/device.h"
#include "sim/device_memory/device_memory.h"
#include "sim/replay/latency.h"

/* A page that holds driver allocations below the page size. */
struct cuda_small_page {
    struct range range;
    uint64_t segments;
};

/* Memory that the program holds outside of the policy, as a list that can grow and shrink. With
 * virtual memory it is unmapped physical memory, which can be created and destroyed without a
 * wait. */
struct cuda_outside {
    struct cuda_outside *older;
    CUmemGenericAllocationHandle driver_handle;
    CUdeviceptr address; /* without virtual memory; 0: none */
    uint64_t bytes;
};

struct cuda_pool {
    CUmemoryPool handle; /* NULL: not opened */
    struct ranges blocks;
    uint64_t ordinal;
    uint64_t charged_bytes;  /* of the ledger */
    uint64_t used_bytes;     /* requested and not freed */
    uint64_t reserved_bytes; /* the driver's last answer */
    bool changed; /* may have changed since: the pool releases memory while the host waits */
};

struct cuda_record_row {
    uint64_t bytes, address;
};

/* A file of addresses, one row for each segment or range in the order made. */
struct cuda_record {
    char *path; /* NULL: not recorded */
    FILE *file; /* NULL: none yet */
    uint64_t written;
    struct cuda_record_row *rows; /* ROWS_MOST rows that are not written yet */
    size_t count;
};

struct cuda_device {
    struct ar_device base;
    struct ar_backing backing;
    struct ar_backing_ops backing_ops; /* without functions that this card lacks */
    struct cuda_api api;
    CUdevice card;
    CUcontext context, context_before; /* NULL: not retained */
    struct sim_ledger ledger;
    uint64_t page_bytes;
    bool capacity_given;
    uint64_t held_at_open_bytes; /* on the card, by all processes, from the driver */
    uint64_t card_others_bytes;  /* held by other processes at open; see card_bytes */
    uint64_t others_at_open_bytes;
    bool shared, others_known; /* with both, updated at each query of memory */
    struct device_memory memory;
    struct ranges small_pages;
    struct kernels *kernels;
    struct cuda_streams streams;
    struct cuda_marks marks;
    struct cuda_schedule schedule;
    struct cuda_pool pool;
    struct cuda_outside *outside; /* newest first */
    uint64_t opened_ns;
    uint64_t program_waited_ns; /* in the program's own waits */
    struct cuda_record record_segments, record_ranges;
    bool out_of_host_memory;
    bool trusts_policy; /* the policy orders streams itself: uses are not kept */
    char problem[512];
};

static inline struct cuda_device *cuda_of(struct ar_device *device)
{
    return (struct cuda_device *)device;
}

static inline struct cuda_device *cuda_of_backing(struct ar_backing *backing)
{
    return (struct cuda_device *)((char *)backing - offsetof(struct cuda_device, backing));
}

/* Nanoseconds since open. */
static inline uint64_t cuda_now(const struct cuda_device *self)
{
    return latency_clock_ns() - self->opened_ns;
}

/* The host's clock, for timing a call of the policy. Counts the reading. */
static inline uint64_t cuda_clock_ns(struct cuda_device *self)
{
    self->base.counters.clock_readings++;
    return latency_clock_ns();
}

/* errors, in cuda_device.c */

/* Writes the sentence of an INVALID and returns it. After a failure of the device the sentence of
 * the failure stays. */
enum ar_status cuda_misuse(struct cuda_device *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Translates the driver's result: OK, or REFUSED for a lack of memory. Any other error is a
 * permanent failure of the device: INVALID with a sentence. `bytes` 0: the call has no size. */
enum ar_status cuda_answer(struct cuda_device *self, CUresult result, const char *call,
                           uint64_t bytes);
/* The same for calls that cannot lack memory. False: the device has failed. */
bool cuda_worked(struct cuda_device *self, CUresult result, const char *call);
/* OK unless the device has failed. */
enum ar_status cuda_ready(struct cuda_device *self);

/* Counts a call from `begun_ns` of the host's clock to now. */
static inline void cuda_count(struct cuda_device *self, enum ar_device_call call, uint64_t bytes,
                              uint64_t begun_ns, uint64_t waited_ns, bool refused)
{
    uint64_t ns = cuda_clock_ns(self) - begun_ns;
    ar_device_count(&self->base, call, refused ? 0 : bytes, ns, waited_ns, refused);
}

/* Counts a call that the capacity forbids like a refusal by the driver, which is not called. */
static inline enum ar_status cuda_refuse(struct cuda_device *self, enum ar_device_call call)
{
    ar_device_count(&self->base, call, 0, 0, 0, true);
    return AR_REFUSED;
}

/* Copies the ledger's figures to the counters. */
void cuda_show_memory(struct cuda_device *self);

/* cuda_device.c */
extern const struct ar_device_ops cuda_device_ops;
extern const struct ar_backing_ops cuda_backing_ops;

/* open.c. Works in any state, also half open. */
void cuda_close(struct ar_device *device);

/* record.c */
enum ar_status cuda_record_open(struct cuda_record *record, const char *path,
                                struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status cuda_record_row(struct cuda_device *self, struct cuda_record *record, uint64_t bytes,
                               uint64_t address);
enum ar_status cuda_record_flush(struct ar_device *device, struct ar_error *error);
/* Writes the remaining rows if possible. */
void cuda_record_close(struct cuda_record *record);

/* segments.c */
enum ar_status cuda_segment_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address);
enum ar_status cuda_segment_free(struct ar_backing *backing, uint64_t address);
void cuda_segments_close(struct cuda_device *self);

/* cuda_device.c */
enum ar_status cuda_outside(struct ar_device *device, uint64_t bytes);
void cuda_outside_close(struct cuda_device *self);

/* virtual_memory.c */
enum ar_status cuda_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address);
enum ar_status cuda_release(struct ar_backing *backing, uint64_t address);
enum ar_status cuda_create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle);
enum ar_status cuda_destroy(struct ar_backing *backing, ar_backing_handle handle);
enum ar_status cuda_map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle);
enum ar_status cuda_access(struct ar_backing *backing, uint64_t address, uint64_t bytes);
enum ar_status cuda_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes);
CUmemAllocationProp cuda_memory_kind(const struct cuda_device *self);
void cuda_virtual_memory_close(struct cuda_device *self);

/* segments.c: the driver's pool */
enum ar_status cuda_pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings);
enum ar_status cuda_pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                               uint64_t *address);
enum ar_status cuda_pool_free(struct ar_backing *backing, uint64_t address, uint32_t stream);
enum ar_status cuda_pool_trim(struct ar_backing *backing, uint64_t keep_bytes);
void cuda_pool_memory(struct ar_backing *backing, uint64_t *used_bytes, uint64_t *reserved_bytes);
/* Updates the ledger after a possible change of the pool's size. */
void cuda_pool_charge(struct cuda_device *self);
bool cuda_pool_has(const struct cuda_device *self, uint64_t address);
void cuda_pool_close(struct cuda_device *self);

/* cuda_device.c: other processes on the card */

/* Bytes that all processes hold on the card, from the management library; -1: unknown. */
int64_t cuda_others_look(uint64_t ordinal);
/* Bytes that other processes hold, from the bytes held before there was a context and now, and from
 * the driver's figure now. */
uint64_t cuda_others_bytes(int64_t before_bytes, int64_t now_bytes, uint64_t driver_bytes);

/* cuda_device.c: uses of memory by streams */
void cuda_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
               uint64_t event);
uint64_t cuda_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes,
                         uint32_t stream, bool order, uint64_t event);

#endif
