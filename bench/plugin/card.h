/* One card of a program that runs on a policy: the policy, its memory and the program's blocks.
 *
 * 1. One lock covers the card. Two cards share nothing.
 * 2. A free names only an address, so a map leads from the address to
 *    the block.
 * 3. The program's streams get ordinals in the order in which they appear; the default stream is
 *    0.
 * 4. Order between streams. A `stream_ordered` policy is told of each use on another stream and
 *    defers the reuse itself. For any other policy a free records an event on each stream that used
 *    the block, and a request that gets memory which other streams may still use makes its stream
 *    wait for them. A program with a single stream needs none of this. When the second stream
 *    appears, it waits once for all work queued on the first.
 * 5. Private pools, of captured graphs and of torch.cuda.MemPool. Between begin and end a request
 *    belongs to the pool if its stream is being captured or if it comes from the thread that began
 *    the pool. A graph uses its blocks again at each replay, even after the program freed them.
 *    Therefore a policy without private pools gets such a block back only when the pool is
 *    released.
 * 6. A request that the policy serves from its own memory makes no driver call, and no clock is
 *    read unless latencies are measured. */
#pragma once

#include <pthread.h>

#include "allocators/base/hist.h"
#include "allocators/policy.h"
#include "allocators/relay.h"
#include "allocators/spec.h"
#include "bench/cuda/api.h"
#include "bench/host/locked_pool.h"
#include "bench/plugin/recording.h"
#include "sim/device.h"

/* The memory of a card for a policy inside another program. A thread of the program may have any
 * context current, or none, and may be capturing a graph. So the first driver call makes the card's
 * primary context current and relaxes the thread's capture mode, as PyTorch's own allocator does;
 * driver_memory_leave restores both. A request that needs no driver call changes neither. */

struct driver_memory {
    struct relay relay; /* its base is the backing of the policy */
    struct ar_device *device;
    bool inside; /* the context is current */
    CUcontext before;
    CUstreamCaptureMode mode;
};

/* Opens the card on the process' primary context. `self` does not move. */
enum ar_status driver_memory_open(struct driver_memory *self, unsigned ordinal,
                                  struct ar_error *error);
void driver_memory_close(struct driver_memory *self);

void driver_memory_enter(struct driver_memory *self);
/* Called at the end of each call of the program. */
void driver_memory_leave(struct driver_memory *self);

/* Free bytes of the card as the driver reports them; 0 if it fails. */
uint64_t driver_memory_free_bytes(struct driver_memory *self);

/* Sets the peak of physical bytes to the current value. */
void driver_memory_reset_peak(struct driver_memory *self);

/* Whether a stream may still use freed memory. If not, no order has to be kept. */
bool driver_memory_has_uses(const struct driver_memory *self);

/* Whether the stream is being captured into a graph. */
bool driver_memory_is_captured(struct driver_memory *self, CUstream stream);

/* Limits the policy to so many bytes of the card. It keeps what it has. */
void driver_memory_limit(struct driver_memory *self, uint64_t bytes);

/* The most streams of a card. */
#define CARD_STREAMS_MOST 1024u

struct card_block {
    struct ar_policy_block block;
    uint64_t id;      /* in the recording */
    uint64_t used_on; /* a bit for each stream ordinal; bit 63 for all from 63 on */
    uint32_t stream;
    uint32_t pool; /* ordinal of a private pool; 0: none */
    struct card_block *next;
};

/* PyTorch's name of a private pool. */
struct card_pool_id {
    unsigned long long first, second;
};

struct card_pool {
    struct card_pool_id id;
    unsigned open; /* begins without an end */
    pthread_t thread;
    struct card_block *kept; /* freed by the program, not yet freed in the policy (rule 5) */
    bool released;
};

/* name, meaning: available while the program runs and reported at exit */
#define CARD_FIGURES(X)                                                                            \
    X(requests, "requests")                                                                        \
    X(frees, "free requested")                                                                     \
    X(uses, "uses on other streams")                                                               \
    X(failed, "requests that failed")                                                              \
    X(unknown, "frees and uses of an address where no block starts")                               \
    X(lock_waits, "calls that waited for the lock")                                                \
    X(streams, "streams seen")                                                                     \
    X(live_bytes, "requested and not freed")                                                       \
    X(granted_bytes, "of their blocks")                                                            \
    X(reserved_bytes, "held by the policy, as the imitated allocator counts")                      \
    X(physical_bytes, "2 MiB pages charged for it")                                                \
    X(peak_live_bytes, "the most of each")                                                         \
    X(peak_granted_bytes, "")                                                                      \
    X(peak_reserved_bytes, "")                                                                     \
    X(peak_physical_bytes, "")                                                                     \
    X(driver_calls, "by the policy, including polls of events")                                    \
    X(driver_ns, "their time, without waiting")                                                    \
    X(stall_ns, "time spent waiting for the device")                                               \
    X(metadata_bytes, "host memory of the policy and of the map")

struct card_figures {
#define X(name, text) uint64_t name;
    CARD_FIGURES(X)
#undef X
};

struct card_latency {
    struct ar_hist alloc, free; /* nanoseconds for the whole call */
};

struct card {
    pthread_mutex_t lock; /* for all below */
    unsigned ordinal;
    struct driver_memory memory;
    struct ar_host host;
    struct ar_policy_context context;
    struct ar_policy *policy;
    bool orders, has_pools; /* capabilities of the policy */
    uint64_t alignment_bytes;
    struct ar_map map; /* from an address to the card_block */
    struct card_block *unused;
    struct card_chunk *chunks;
    CUstream *streams;
    uint32_t stream_count, stream_last; /* last: the ordinal last looked up */
    size_t stream_room;
    struct card_pool *pools;
    uint32_t pool_count, pools_open;
    size_t pool_room;
    struct card_figures figures;  /* counts and peaks */
    struct card_latency *latency; /* NULL: not measured */
    struct recording *recording;
};

struct card_settings {
    const struct ar_spec *policy;
    bool latency;
    double fraction; /* of the card that the policy may use; 0: all */
    struct recording *recording;
};

/* Opens the policy on the process' primary context of the card. */
enum ar_status card_open(const struct card_settings *settings, unsigned ordinal, struct card **out,
                         struct ar_error *error);

/* Serves a request of 0 < bytes < 2^60. Each error has a sentence. */
enum ar_status card_alloc(struct card *card, uint64_t bytes, CUstream stream, uint64_t *address,
                          struct ar_error *error);

/* The program frees the block on `stream`. INVALID if no block starts at the address. */
enum ar_status card_free(struct card *card, uint64_t address, CUstream stream,
                         struct ar_error *error);

/* The block is used on that stream too. INVALID as above. */
enum ar_status card_use(struct card *card, uint64_t address, CUstream stream,
                        struct ar_error *error);

/* Whether a block starts at the address. */
bool card_has(struct card *card, uint64_t address);

/* Releases cached memory. */
void card_trim(struct card *card);

void card_pool_begin(struct card *card, struct card_pool_id id);
void card_pool_end(struct card *card, struct card_pool_id id);
void card_pool_release(struct card *card, struct card_pool_id id);

/* Limits the policy to a fraction of the card's memory. */
void card_limit(struct card *card, double fraction);

/* The segment that contains the address; false if none does. */
bool card_segment(struct card *card, uint64_t address, uint64_t *start, uint64_t *bytes);

void card_figures(struct card *card, struct card_figures *out);
/* See plugin.h. */
struct allocrig_range;
size_t card_statistics(struct card *card, char *text, size_t text_bytes);
size_t card_ranges(struct card *card, struct allocrig_range *out, size_t room);
/* Sets all peaks, also those that the policy reports, to the current values. */
void card_reset_peaks(struct card *card);
