/* One card of a program that runs on a policy: the policy, its memory, and what the program holds.
 *
 * 1. One lock for all of it. The program's threads come in one at a time; two cards do not meet.
 * 2. A free names an address and nothing else, so a map (bench/host/address_map.h) leads from it to
 *    the block.
 * 3. Streams of the program get ordinals in the order in which they appear; the default stream is
 *    0.
 * 4. Order between streams. A policy that is `stream_ordered` is told of each use on another stream
 *    and defers by itself. For any other, a free records events, one for each stream that used the
 *    block, and a request for memory that other streams may still use makes its stream wait for
 *    them. While the program has a single stream nothing of it is done; when the second appears, it
 *    waits once for all that the first was given so far.
 * 5. Private pools: those of captured graphs and of torch.cuda.MemPool. Between begin and end a
 *    request belongs to the pool where its stream is being captured, or where it comes from the
 *    thread that began. A graph uses its blocks again whenever it is replayed, whoever has let them
 *    go. So a policy without pools is not told of a free of such a block until the pool is
 *    released.
 * 6. No driver call is made and no clock is read for a request that the policy serves by itself,
 *    unless latencies are wanted. */
#ifndef BENCH_PLUGIN_CARD_H
#define BENCH_PLUGIN_CARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocators/base/hist.h"
#include "allocators/policy.h"
#include "allocators/spec.h"
#include "bench/host/address_map.h"
#include "bench/plugin/driver_memory.h"
#include "bench/plugin/recording.h"

/* The most streams of a card that are told apart. */
#define CARD_STREAMS_MOST 1024u

struct card_block {
    struct ar_policy_block block;
    uint64_t id;      /* in the recording */
    uint64_t used_on; /* bits by stream ordinal; the last one stands for all from 63 on */
    uint32_t stream;
    uint32_t pool; /* ordinal of a private pool; 0: none */
    struct card_block *next;
};

/* How PyTorch names a private pool. */
struct card_pool_id {
    unsigned long long first, second;
};

struct card_pool {
    struct card_pool_id id;
    unsigned open; /* begun and not ended */
    pthread_t thread;
    struct card_block *held; /* rule 5 */
    bool released;
};

/* name, meaning: what can be asked for while the program runs, and is reported at its end */
#define CARD_FIGURES(X)                                                                            \
    X(requests, "asked for")                                                                       \
    X(frees, "freed")                                                                              \
    X(uses, "uses on other streams")                                                               \
    X(failed, "requests that were not served")                                                     \
    X(unknown, "frees and uses of an address where no block starts")                               \
    X(lock_waits, "calls that found another thread inside")                                        \
    X(streams, "streams seen")                                                                     \
    X(live_bytes, "requested and not freed")                                                       \
    X(granted_bytes, "of the blocks given for them")                                               \
    X(reserved_bytes, "held by the policy, as the imitated allocator counts")                      \
    X(physical_bytes, "2 MiB pages charged for it")                                                \
    X(peak_live_bytes, "the most of each")                                                         \
    X(peak_granted_bytes, "")                                                                      \
    X(peak_reserved_bytes, "")                                                                     \
    X(peak_physical_bytes, "")                                                                     \
    X(driver_calls, "by the policy, polls of events among them")                                   \
    X(driver_ns, "their time, without waiting")                                                    \
    X(stall_ns, "waited for the device beyond that")                                               \
    X(metadata_bytes, "host memory of the policy and of the map")

struct card_figures {
#define X(name, text) uint64_t name;
    CARD_FIGURES(X)
#undef X
};

struct card_latency {
    struct ar_hist alloc, free; /* nanoseconds, with all that the call does */
};

struct card {
    pthread_mutex_t lock; /* for all below */
    unsigned ordinal;
    struct driver_memory memory;
    struct ar_host host;
    struct ar_policy_context context;
    struct ar_policy *policy;
    bool orders, has_pools; /* the policy, by itself */
    uint64_t alignment_bytes;
    struct address_map map; /* cookie: the card_block */
    struct card_block *unused;
    struct card_chunk *chunks;
    CUstream *streams;
    uint32_t stream_count, stream_room, stream_last; /* last: the ordinal found last */
    struct card_pool *pools;
    uint32_t pool_count, pool_room, pools_open;
    struct card_figures figures;  /* counts and peaks */
    struct card_latency *latency; /* NULL: not wanted */
    struct recording *recording;
};

struct card_settings {
    const struct ar_spec *policy;
    bool latency;
    double fraction; /* of the card, that the policy may have; 0: all */
    struct recording *recording;
};

/* The policy on the process' primary context of that card. */
enum ar_status card_open(const struct card_settings *settings, unsigned ordinal, struct card **out,
                         struct ar_error *error) AR_STATUS_CHECKED;

/* Serves a request of 0 < bytes < 2^60. NO_MEMORY and the others with a sentence for people. */
enum ar_status card_alloc(struct card *card, uint64_t bytes, CUstream stream, uint64_t *address,
                          struct ar_error *error) AR_STATUS_CHECKED;

/* The program frees the block on `stream`. INVALID where none starts there. */
enum ar_status card_free(struct card *card, uint64_t address, CUstream stream,
                         struct ar_error *error);

/* The block is used on that stream too. INVALID as above. */
enum ar_status card_use(struct card *card, uint64_t address, CUstream stream,
                        struct ar_error *error);

/* Whether a block starts there. */
bool card_has(struct card *card, uint64_t address);

/* Gives back what is cached. */
void card_trim(struct card *card);

void card_pool_begin(struct card *card, struct card_pool_id id);
void card_pool_end(struct card *card, struct card_pool_id id);
void card_pool_release(struct card *card, struct card_pool_id id);

/* The most of the card's memory that the policy may have, as a fraction. */
void card_limit(struct card *card, double fraction);

/* The segment that an address lies in; false: none. */
bool card_segment(struct card *card, uint64_t address, uint64_t *start, uint64_t *bytes);

void card_figures(struct card *card, struct card_figures *out);
/* See plugin.h. */
struct allocrig_range;
size_t card_statistics(struct card *card, char *text, size_t text_bytes);
size_t card_ranges(struct card *card, struct allocrig_range *out, size_t room);
/* Peaks start again from what is held now, also those that the policy reports. */
void card_reset_peaks(struct card *card);

#endif
