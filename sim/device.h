/* The contract of a device: memory (as a backing), streams, events, kernels and a clock.
 * `sim` keeps a virtual clock and is stricter than the driver; `cuda` is the driver.
 *
 * Streams and events are dense ordinals; a stream exists once it is named. The host runs
 * ahead of the device: a kernel is queued and starts when its stream's earlier work is done
 * and no earlier than now. Errors: INVALID with a sentence from device_problem. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocators/backing.h"
#include "allocators/base/api.h"
#include "allocators/base/status.h"
#include "allocators/options.h"
#include "allocators/spec.h"

AR_BEGIN_DECLS

/* Every kind of call that is charged and counted. name, what */
#define AR_DEVICE_CALLS(X)                                                                         \
    X(alloc, "driver allocation (cuMemAlloc)")                                                     \
    X(free, "driver free (cuMemFree); waits for the device")                                       \
    X(reserve, "address range reserved (cuMemAddressReserve)")                                     \
    X(release, "address range given back (cuMemAddressFree)")                                      \
    X(create, "physical memory made (cuMemCreate)")                                                \
    X(destroy, "physical memory given back (cuMemRelease)")                                        \
    X(map, "physical memory mapped (cuMemMap)")                                                    \
    X(access, "a run of pages made usable (cuMemSetAccess)")                                       \
    X(unmap, "pages unmapped (cuMemUnmap)")                                                        \
    X(pool_alloc, "stream-ordered allocation (cuMemAllocAsync)")                                   \
    X(pool_free, "stream-ordered free (cuMemFreeAsync)")                                           \
    X(pool_trim, "stream-ordered pool trimmed (cuMemPoolTrimTo)")                                  \
    X(event, "event recorded or polled by a policy")

enum ar_device_call {
#define X(name, text) AR_DEVICE_CALL_##name,
    AR_DEVICE_CALLS(X)
#undef X
        AR_DEVICE_CALL_COUNT
};

AR_API const char *ar_device_call_name(enum ar_device_call call);

struct ar_device_props {
    char kind[8];            /* "sim", "cuda" */
    char profile[64];        /* "h100", "bump"; the card's name on cuda */
    uint64_t capacity_bytes; /* for this process; UINT64_MAX: unlimited */
    uint64_t total_bytes;    /* of the card */
    bool has_virtual_memory, has_pool, has_timing;
    /* The shortest timed kernel that is launched by itself, in ns; shorter ones go with the next one
     * of their stream. 0: not known. */
    uint64_t kernel_least_ns;
};

/* Kept up to date by the device; anybody may read it between calls. */
struct ar_device_counters {
    uint64_t calls[AR_DEVICE_CALL_COUNT];   /* that succeeded or were refused */
    uint64_t call_ns[AR_DEVICE_CALL_COUNT]; /* their own time, without waiting */
    uint64_t call_bytes[AR_DEVICE_CALL_COUNT];
    uint64_t refused;        /* calls that found no memory */
    uint64_t driver_ns;      /* the sum of call_ns */
    uint64_t stall_ns;       /* waits that the allocator caused beyond that: of the host in a
                                free or a wait(), of a stream for another's block, for cleaning */
    uint64_t physical_bytes; /* 2 MiB pages charged now, each once */
    uint64_t peak_physical_bytes;
    uint64_t outside_bytes;  /* held outside of the pool by the program (o events) */
    uint64_t others_bytes;   /* held by others on the card */
    uint64_t segments_made;  /* segments and reserved ranges, the next ordinal */
    uint64_t races;          /* blocks or pages handed out while another stream may use them */
    uint64_t clock_readings; /* of a real clock, by the device within calls of its backing, two for
                                each time that it takes there; 0 where the clock is virtual */
};

struct ar_device;

/* Real work of a kernel on blocks, for devices that have memory (keys of k events, FORMAT.md).
 * name, what it does with output `out` and inputs `in` */
#define AR_KERNEL_OPS(X)                                                                           \
    X(matmul, "out (m x n) = in[0] (m x k) * in[1] (k x n)")                                       \
    X(elementwise, "out = f(in...), as long as the shortest of them")                              \
    X(reduce, "out (n) = sums over the m rows of in[0] (m x n)")                                   \
    X(gather, "out (m rows of n) = rows of the table in[0] named by in[1]")                        \
    X(scatter_add, "rows of the table out named by in[1] += in[0] (m rows of n)")                  \
    X(copy, "out = in[0]")                                                                         \
    X(set, "out = a constant")

enum ar_kernel_op_kind {
#define X(name, text) AR_KERNEL_OP_##name,
    AR_KERNEL_OPS(X)
#undef X
        AR_KERNEL_OP_COUNT
};

enum ar_device_type {
    AR_DEVICE_F32,
    AR_DEVICE_TF32,
    AR_DEVICE_F16,
    AR_DEVICE_BF16,
    AR_DEVICE_I8,
    AR_DEVICE_I64
};

#define AR_KERNEL_OP_INPUTS 4

struct ar_device_operand {
    uint64_t address, bytes; /* bytes 0: not there (its request failed); the work leaves it out */
};

/* The work never goes beyond the operands, whatever the shape says: it is cut to what fits. */
struct ar_kernel_op {
    enum ar_kernel_op_kind kind;
    enum ar_device_type type;
    uint32_t stream;
    uint32_t input_count;
    uint64_t m, n, k; /* of the shape; 0 where it has fewer */
    struct ar_device_operand out, in[AR_KERNEL_OP_INPUTS];
};

/* The first byte that `verify` found wrong. */
struct ar_device_wrong {
    uint64_t count;                  /* of wrong bytes found in all; 0: none */
    uint64_t address, block, offset; /* offset within the block */
    uint8_t expected, found;
};

/* A stretch of memory that the policy obtained. Ordinals count from 0 in the order made. */
struct ar_device_segment {
    uint64_t ordinal;
    uint64_t address, bytes;
};

struct ar_device_ops {
    void (*close)(struct ar_device *self); /* frees what is left */

    /* Memory held outside of the pool from now on (o events): bytes replaces the last value.
     * REFUSED where it does not fit. */
    enum ar_status (*outside)(struct ar_device *self, uint64_t bytes);

    /* What other processes hold of the card from now on; NULL: the card knows by itself. REFUSED
     * where that much is not free. */
    enum ar_status (*others)(struct ar_device *self, uint64_t bytes);

    /* Host time passes: the recorded gap between events. */
    void (*advance)(struct ar_device *self, uint64_t nanoseconds);
    /* Nanoseconds since open: of the host; and when all queued work is done. */
    uint64_t (*now)(struct ar_device *self);
    uint64_t (*idle_at)(struct ar_device *self);

    /* A kernel of that length on a stream. */
    void (*kernel)(struct ar_device *self, uint32_t stream, uint64_t nanoseconds);
    /* Events and waits of the program. A wait for an event never recorded is no wait. */
    void (*event_record)(struct ar_device *self, uint64_t event, uint32_t stream);
    void (*stream_wait)(struct ar_device *self, uint32_t stream, uint64_t event);
    /* The host waits for a stream, or for all (TRACE_NO_STREAM = UINT32_MAX). The program's
     * own wait: not counted as stall. */
    void (*sync)(struct ar_device *self, uint32_t stream);

    /* Who uses which memory: only called when a workload has more than one stream.
     * `used`: all work queued so far on `stream` may use [address, address + bytes).
     * `handed_out`: the range now belongs to a block on `stream`. Where other streams may
     * still use it: with `order` the stream waits for them (stall, and the time is returned);
     * without, it is a race: counted, and described in race_text with event numbers. */
    void (*used)(struct ar_device *self, uint64_t address, uint64_t bytes, uint32_t stream,
                 uint64_t event);
    uint64_t (*handed_out)(struct ar_device *self, uint64_t address, uint64_t bytes,
                           uint32_t stream, bool order, uint64_t event);
    const char *(*race_text)(struct ar_device *self); /* the first race, or "" */

    /* The segment that an address lies in. False: none. */
    bool (*segment_of)(struct ar_device *self, uint64_t address, struct ar_device_segment *out);

    /* Real work on memory; NULL on a device that has none (sim). Queued on the stream, the host
     * does not wait. `fill` writes a pattern of block and offset, `verify` reads it again and
     * keeps what it finds wrong, `wrong` waits for all of it and tells. REFUSED: a launch failed
     * for want of memory. */
    enum ar_status (*fill)(struct ar_device *self, uint64_t address, uint64_t bytes, uint64_t block,
                           uint32_t stream);
    enum ar_status (*verify)(struct ar_device *self, uint64_t address, uint64_t bytes,
                             uint64_t block, uint32_t stream);
    enum ar_status (*wrong)(struct ar_device *self, struct ar_device_wrong *out);
    enum ar_status (*touch)(struct ar_device *self, uint64_t address, uint64_t bytes,
                            uint32_t stream);
    enum ar_status (*kernel_op)(struct ar_device *self, const struct ar_kernel_op *op);

    const char *(*problem)(struct ar_device *self);

    /* A moment: the host is here and all work is queued that it has asked for so far. Its time is
     * asked for later, so that the host need not wait now. `mark_ns`: when the host had come
     * there and that work was done, nanoseconds since open; waits for it where needed. */
    uint64_t (*mark)(struct ar_device *self);
    uint64_t (*mark_ns)(struct ar_device *self, uint64_t mark);

    /* Bytes that the card says it holds for this process, context and libraries with them; NULL:
     * it cannot be asked. Slow: a driver call of its own, not counted. */
    uint64_t (*card_bytes)(struct ar_device *self);

    /* What the host does for a kind of work before it is done first, as loading a library; on a
     * device that has no memory to do it on. The operands are not looked at. NULL: nothing. */
    void (*prepare)(struct ar_device *self, const struct ar_kernel_op *op);

    /* A request or a free was served: the host spends on it what the program and the policy themselves
     * take, beside the driver's calls, on a device whose host is simulated. NULL: nothing. */
    void (*requested)(struct ar_device *self);

    /* Writes what the device holds back of the files that it was told to write (addresses), at the
     * end of a run, whose time it is no part of. IO: it could not be written. NULL: there are none. */
    enum ar_status (*flush)(struct ar_device *self, struct ar_error *error);

    /* How many nanoseconds a work takes on a device that has no memory to do it on, by its shape and
     * the sizes of its operands. 0: not known, it takes what its event says. NULL: of all works. */
    uint64_t (*kernel_op_ns)(struct ar_device *self, const struct ar_kernel_op *op);
};

/* Told of each counted call right after it. `ns` is its own time, without `waited_ns`, for
 * which it waited for the device. */
struct ar_device_observer {
    void (*call)(void *argument, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                 uint64_t waited_ns, bool refused);
    void *argument;
};

/* The base of every device: the first member of its own struct. */
struct ar_device {
    const struct ar_device_ops *ops;
    struct ar_backing *backing; /* part of the device */
    struct ar_device_props props;
    struct ar_device_counters counters;
    /* The INVALID that `problem` tells of lies in what the user gave, as an address list that
     * is of another run, and not in what the policy did. */
    bool bad_input;
    /* The driver failed, and not for want of memory: `problem` tells how, and nothing can be asked
     * of the device any more. For the run that is an outcome. Never on sim. */
    bool failed;
    struct ar_device_observer observer; /* call NULL: nobody listens */
};

/* A kind of device, by the name that specs have. */
struct ar_device_kind {
    const char *name, *summary;
    const struct ar_option *options;
    enum ar_status (*open)(const struct ar_spec_link *link, struct ar_device **out,
                           struct ar_error *error);
    /* Why it cannot be opened on this machine, a sentence in `text`; true: it can. */
    bool (*available)(char *text, size_t text_bytes);
};

/* Enters one call in the counters and tells the observer. For the devices themselves. */
AR_API void ar_device_count(struct ar_device *self, enum ar_device_call call, uint64_t bytes,
                            uint64_t ns, uint64_t waited_ns, bool refused);

/* Opens what a spec names: `sim:profile=h100,capacity=24GiB,addresses=FILE`, or `cuda`.
 * INVALID for bad options, MISSING where there is no such device. The caller closes it. */
AR_API enum ar_status ar_device_open(const struct ar_spec *spec, struct ar_device **out,
                                     struct ar_error *error) AR_STATUS_CHECKED;
AR_API enum ar_status ar_device_open_text(const char *text, struct ar_device **out,
                                          struct ar_error *error) AR_STATUS_CHECKED;

static inline void ar_device_close(struct ar_device *self)
{
    if (self)
        self->ops->close(self);
}

AR_END_DECLS

#endif
