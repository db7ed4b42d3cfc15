/* The contract of a device: memory (as a backing), streams, events, kernels and a clock. `sim`
 * keeps a virtual clock and is stricter than the driver; `cuda` is the driver.
 *
 * Streams and events are ordinals without gaps; a stream exists when it is first named. The host
 * runs ahead of the device: a kernel is queued, and starts when its stream's earlier work is done
 * and not before now. Errors: INVALID with a sentence from `problem`. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "allocators/backing.h"
#include "allocators/base/api.h"
#include "allocators/base/status.h"
#include "allocators/options.h"
#include "allocators/spec.h"

AR_BEGIN_DECLS

/* Every kind of call that is charged and counted: name, description */
#define AR_DEVICE_CALLS(X)                                                                         \
    X(alloc, "driver allocation (cuMemAlloc)")                                                     \
    X(free, "driver free (cuMemFree); waits for the device")                                       \
    X(reserve, "address range reserved (cuMemAddressReserve)")                                     \
    X(release, "address range released (cuMemAddressFree)")                                        \
    X(create, "physical memory made (cuMemCreate)")                                                \
    X(destroy, "physical memory released (cuMemRelease)")                                          \
    X(map, "physical memory mapped (cuMemMap)")                                                    \
    X(access, "a run of pages made usable (cuMemSetAccess)")                                       \
    X(unmap, "pages unmapped (cuMemUnmap)")                                                        \
    X(pool_alloc, "stream-ordered allocation (cuMemAllocAsync)")                                   \
    X(pool_free, "stream-ordered free (cuMemFreeAsync)")                                           \
    X(pool_trim, "stream-ordered pool trimmed (cuMemPoolTrimTo)")                                  \
    X(event, "event recorded or polled by a policy")                                               \
    X(pinned_alloc, "pinned host memory made (cuMemHostAlloc)")                                    \
    X(pinned_free, "pinned host memory released (cuMemFreeHost)")

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
    uint64_t most_bytes;     /* the most that the spec may ask for; 0: the card's own */
    /* The profile whose driver costs are charged, if they were not measured with this much memory:
     * the costs of the profile are another card's, or `capacity` is more than its card has. "":
     * the card's own */
    char costs_of[64];
    bool has_virtual_memory, has_pool, has_timing;
    /* The shortest timed kernel that is launched alone, in ns; shorter ones are added to the next
     * one of their stream. 0: not known. */
    uint64_t kernel_least_ns;
};

/* Updated by the device; may be read between calls. */
struct ar_device_counters {
    uint64_t calls[AR_DEVICE_CALL_COUNT];   /* successful or refused */
    uint64_t call_ns[AR_DEVICE_CALL_COUNT]; /* their own time, without waits */
    uint64_t call_bytes[AR_DEVICE_CALL_COUNT];
    uint64_t refused;        /* calls refused for lack of memory */
    uint64_t polls;          /* answers to `done` of the backing; of a simulated device */
    uint64_t driver_ns;      /* the sum of call_ns */
    uint64_t stall_ns;       /* further waits that the allocator causes: of the host in a free or
                                a wait(), of a stream for another's block, for cleaning */
    uint64_t physical_bytes; /* 2 MiB pages charged now, each once */
    uint64_t peak_physical_bytes;
    uint64_t outside_bytes; /* of the program, outside of the pool (o events) */
    uint64_t others_bytes;  /* of other processes on the card */
    uint64_t segments_made; /* segments and reserved ranges; the next ordinal */
    uint64_t races;         /* blocks or pages that got memory which another stream may still use */
    uint64_t pinned_bytes;  /* of pinned host memory now */
    uint64_t pinned_ns;     /* the part of driver_ns for it, events of its policy included */
    uint64_t clock_readings; /* of a real clock by the device within calls of its backing, two for
                                each measured time; 0 if the clock is virtual */
};

struct ar_device;

/* The operation of a kernel on blocks (keys of k events, FORMAT.md). Name, and what it does with
 * the output `out` and the inputs `in` */
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
    uint64_t address, bytes; /* bytes 0: it does not exist (its request failed) and is left out */
};

/* The operation is cut to the bytes of its operands, whatever its shape says. */
struct ar_kernel_op {
    enum ar_kernel_op_kind kind;
    enum ar_device_type type;
    uint32_t stream;
    uint32_t input_count;
    uint64_t m, n, k; /* of the shape; 0 if it has fewer lengths */
    struct ar_device_operand out, in[AR_KERNEL_OP_INPUTS];
};

/* The first byte that `verify` found wrong. */
struct ar_device_wrong {
    uint64_t count;                  /* number of wrong bytes in all; 0: none */
    uint64_t address, block, offset; /* offset within the block */
    uint8_t expected, found;
};

/* A range of addresses that the policy obtained. Ordinals count from 0, in order of creation. */
struct ar_device_segment {
    uint64_t ordinal;
    uint64_t address, bytes;
};

struct ar_device_ops {
    void (*close)(struct ar_device *self); /* frees what is still allocated */

    /* Sets the memory of the program outside of the pool (o events); `bytes` replaces the last
     * value. REFUSED if it is not free. */
    enum ar_status (*outside)(struct ar_device *self, uint64_t bytes);

    /* The driver takes memory for itself: `bytes` of local memory for each thread of the card from
     * here on, or `bytes` in one piece. On a simulated device only addresses depend on it. NULL:
     * the card knows it. */
    void (*driver)(struct ar_device *self, bool is_local, uint64_t bytes);

    /* Sets the memory of other processes on the card; NULL: the card knows it. REFUSED if it is not
     * free. */
    enum ar_status (*others)(struct ar_device *self, uint64_t bytes);

    /* Whether a run that passed used the whole input of the device, an address list for example.
     * INVALID with a sentence if not. May be NULL. */
    enum ar_status (*used_up)(const struct ar_device *self, struct ar_error *error);

    /* Host time passes: a recorded gap between events. */
    void (*advance)(struct ar_device *self, uint64_t nanoseconds);
    /* Nanoseconds since open: on the host; and when all queued work is done. */
    uint64_t (*now)(struct ar_device *self);
    uint64_t (*idle_at)(struct ar_device *self);

    /* A kernel of that length on a stream. */
    void (*kernel)(struct ar_device *self, uint32_t stream, uint64_t nanoseconds);
    /* Events and waits of the program. A wait for an event that was never recorded does nothing. */
    void (*event_record)(struct ar_device *self, uint64_t event, uint32_t stream);
    void (*stream_wait)(struct ar_device *self, uint32_t stream, uint64_t event);
    /* The host waits for a stream, or for all (TRACE_NO_STREAM = UINT32_MAX). This is the program's
     * own wait: it does not count as stall. */
    void (*sync)(struct ar_device *self, uint32_t stream);

    /* The uses of memory by streams; only called if a workload has more than one stream.
     * `used`: all work queued so far on `stream` may use [address, address + bytes).
     * `handed_out`: the range now belongs to a block on `stream`. If other streams may still use
     * it: with `order` the stream waits for them (stall, and the time is returned); without, it is
     * a race: counted, and described in race_text with event numbers. */
    void (*used)(struct ar_device *self, uint64_t address, uint64_t bytes, uint32_t stream,
                 uint64_t event);
    uint64_t (*handed_out)(struct ar_device *self, uint64_t address, uint64_t bytes,
                           uint32_t stream, bool order, uint64_t event);
    const char *(*race_text)(struct ar_device *self); /* the first race, or "" */

    /* The segment that contains an address. False: there is none. */
    bool (*segment_of)(struct ar_device *self, uint64_t address, struct ar_device_segment *out);

    /* Operations on memory; NULL on a device that has none (sim). They are queued on the stream,
     * and the host does not wait. `fill` writes a pattern of block and offset, `verify` reads it
     * again and keeps the first wrong byte, `wrong` waits for all of it and returns the result.
     * REFUSED: a launch failed for lack of memory. */
    enum ar_status (*fill)(struct ar_device *self, uint64_t address, uint64_t bytes, uint64_t block,
                           uint32_t stream);
    enum ar_status (*verify)(struct ar_device *self, uint64_t address, uint64_t bytes,
                             uint64_t block, uint32_t stream);
    enum ar_status (*wrong)(struct ar_device *self, struct ar_device_wrong *out);
    enum ar_status (*touch)(struct ar_device *self, uint64_t address, uint64_t bytes,
                            uint32_t stream);
    enum ar_status (*kernel_op)(struct ar_device *self, const struct ar_kernel_op *op);

    const char *(*problem)(struct ar_device *self);

    /* Marks a moment: the host is here, and its work so far is queued. The time is read later, so
     * that the host need not wait now. `mark_ns` returns when the host had reached the mark and
     * that work was done, in nanoseconds since open; it waits for this if needed. */
    uint64_t (*mark)(struct ar_device *self);
    uint64_t (*mark_ns)(struct ar_device *self, uint64_t mark);

    /* The bytes that the card reports for this process, with context and libraries; NULL: it cannot
     * report them. Slow: a driver call of its own, not counted. */
    uint64_t (*card_bytes)(struct ar_device *self);

    /* What the host does before the first operation of a kind, such as loading a library; on a
     * device without memory. The operands are not used. NULL: nothing. */
    void (*prepare)(struct ar_device *self, const struct ar_kernel_op *op);

    /* After a request or a free: the host spends the time that the program and the policy take for
     * it, without driver calls; on a device whose host is simulated. NULL: nothing. */
    void (*requested)(struct ar_device *self);

    /* Writes what the device has buffered for its files (addresses), after the end of a run. IO: it
     * could not be written. NULL: there are no files. */
    enum ar_status (*flush)(struct ar_device *self, struct ar_error *error);

    /* The nanoseconds of an operation on a device without memory, from its shape and the sizes of
     * its operands. 0: not known, it takes the length of its event. NULL: always 0. */
    uint64_t (*kernel_op_ns)(struct ar_device *self, const struct ar_kernel_op *op);
};

/* Called right after each counted call. A refused one has the bytes that it asked for. `ns` is its
 * own time, without `waited_ns`, the time for which it waited for the device. */
struct ar_device_observer {
    void (*call)(void *argument, enum ar_device_call call, uint64_t bytes, uint64_t ns,
                 uint64_t waited_ns, bool refused);
    void *argument;
};

/* The base of every device: the first member of its struct. */
struct ar_device {
    const struct ar_device_ops *ops;
    struct ar_backing *backing; /* part of the device */
    struct ar_backing *pinned;  /* the same for pinned host memory; NULL: there is none */
    struct ar_device_props props;
    struct ar_device_counters counters;
    /* Where a virtual clock of the host is kept, which `now` returns; NULL: the clock is real. */
    const uint64_t *clock_ns;
    /* The INVALID in `problem` is about the user's input (an address list of another run), not
     * about the policy. */
    bool bad_input;
    /* The driver failed with an error other than a lack of memory: `problem` describes it, and the
     * device must not be used any more. For the run this is an outcome. Never on sim. */
    bool failed;
    struct ar_device_observer observer; /* call NULL: none */
};

/* A kind of device, by its name in specs. */
struct ar_device_kind {
    const char *name, *summary;
    const struct ar_option *options;
    enum ar_status (*open)(const struct ar_spec_link *link, struct ar_device **out,
                           struct ar_error *error);
    /* Returns whether it can be opened on this machine; if not, the reason is a sentence in
     * `text`. */
    bool (*available)(char *text, size_t text_bytes);
};

/* Counts a call and reports it to the observer. For devices. */
AR_API void ar_device_count(struct ar_device *self, enum ar_device_call call, uint64_t bytes,
                            uint64_t ns, uint64_t waited_ns, bool refused);

/* Opens the device of a spec: `sim:profile=h100,capacity=24GiB,addresses=FILE`, or `cuda`. INVALID
 * for wrong options, MISSING if there is no such device. The caller closes it. */
AR_API enum ar_status ar_device_open(const struct ar_spec *spec, struct ar_device **out,
                                     struct ar_error *error);
AR_API enum ar_status ar_device_open_text(const char *text, struct ar_device **out,
                                          struct ar_error *error);

static inline void ar_device_close(struct ar_device *self)
{
    if (self)
        self->ops->close(self);
}
AR_CLOSER(struct ar_device *, ar_device_close)

AR_END_DECLS

/* The kinds of device that are built in. The table ends with NULL and belongs to the program
 * (bench/device_kinds.c), because sim cannot know the kinds in bench. */

extern const struct ar_device_kind *const device_kinds[];

/* The simulated device, `sim:profile=h100,...` (sim_device/sim_device.c). */
extern const struct ar_device_kind sim_device_kind;

#endif
