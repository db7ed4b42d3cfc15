/* The state of the simulated device, and the functions that its files share. */
#pragma once

#include "allocators/base/host.h"
#include "allocators/base/map.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/rng.h"
#include "allocators/base/status.h"
#include "sim/device.h"
#include "sim/device_memory/device_memory.h"
#include "sim/sim_device/clock.h"
#include "sim/sim_device/kernel_limits.h"
#include "sim/sim_device/profile.h"

/* ---- addresses.c ----
 *
 * The addresses of segments, in four forms:
 *
 * next    each new segment is above all earlier ones, at the next boundary; no address is reused.
 * list    driver allocations get recorded addresses in the order of a file: CSV with the header
 *         `ordinal,bytes,address`, with the bytes that the policy requested. Such recordings do not
 *         contain reserved ranges: these get the next address above all of the list. An empty list
 *         means `next`.
 * random  pages at random addresses below 2^47, from a seed, which overlap no other.
 * driver  from 2^47 downwards, as the driver of a card places them (struct address_space). */

/* Where a driver places allocations: a model of what H100s and H200s do with cuMemAlloc.
 *
 * The driver reserves address ranges in multiples of 32 MiB, from the top of its address space
 * downwards, in the highest gap that has 32 MiB more, so that it can align them; the last 32 MiB
 * stay free. An allocation is at the start of its range.
 * The rest of the range serves later allocations that fit, the lowest rest first. A range whose
 * last allocation is freed becomes a gap.
 *
 * Found in the addresses of 34 recordings (results/published/h200/addresses.md), which do not show
 * the ranges that the driver takes for itself. Allocators break ties by address, so the order of
 * the addresses decides how a pool fragments. */

/* Trees by address. `gaps` is mirrored: a gap that ends at `top` starts at 0 there, so that the
 * lowest is the highest. Must not move. */
struct address_space {
    struct ar_host host;
    struct ar_range_pool pool;
    uint64_t top, unit_bytes;
    uint64_t local, local_bytes; /* the driver's own local memory; 0: nothing is known of it */
    uint32_t taken;              /* allocations */
    uint32_t ranges;             /* reserved */
    uint32_t rests;              /* free parts of reserved ranges */
    uint32_t gaps;
};

/* The space has the addresses from `unit_bytes` to `top`, which are multiples of it. False: no host
 * memory. */
bool address_space_open(struct address_space *self, uint64_t top, uint64_t unit_bytes);
void address_space_close(struct address_space *self);

/* Places an allocation. False: there is no room, or no host memory; nothing has changed. */
bool address_space_take(struct address_space *self, uint64_t bytes, uint64_t *address);
/* Gives one back. */
void address_space_give(struct address_space *self, uint64_t address, uint64_t bytes);
/* The driver has so much local memory from here on, for all threads of the card. It obtains the new
 * piece before it frees the old one. The first time, before any allocation, it is what the driver
 * has at the start; without that, and where there is no room, nothing happens. */
void address_space_local(struct address_space *self, uint64_t bytes);
/* The driver takes memory, which it keeps. */
void address_space_taken(struct address_space *self, uint64_t bytes);

enum sim_addresses_form {
    SIM_ADDRESSES_NEXT,
    SIM_ADDRESSES_LIST,
    SIM_ADDRESSES_RANDOM,
    SIM_ADDRESSES_DRIVER
};

struct sim_address_row {
    uint64_t bytes, address;
};

struct sim_addresses {
    enum sim_addresses_form form;
    uint64_t boundary_bytes; /* of segments of at least a page */
    uint64_t next;
    struct ar_rng rng;
    struct address_space space;
    struct sim_address_row *rows;
    size_t row_count, row_next;
    char *path;
};

/* `form_text`: NULL for next, "random", "driver", or the path of a file. FORMAT or IO if the file
 * is wrong: addresses must be multiples of `boundary_bytes`, or of `granule_bytes` for smaller
 * segments. */
enum ar_status sim_addresses_open(struct sim_addresses *self, const char *form_text,
                                  uint64_t first_address, uint64_t boundary_bytes,
                                  uint64_t granule_bytes, uint64_t seed, struct ar_error *error);
void sim_addresses_close(struct sim_addresses *self);

/* An address for `bytes` that overlaps neither `taken` nor `pages`. REFUSED: there is none. */
enum ar_status sim_addresses_new(struct sim_addresses *self, uint64_t bytes,
                                 const struct ranges *taken, const struct ranges *pages,
                                 uint64_t *address);

/* The segment or range of `bytes` at that address, which _new returned, is released. */
void sim_addresses_released(struct sim_addresses *self, uint64_t address, uint64_t bytes);

/* INVALID if the list has rows that no driver allocation has used. */
enum ar_status sim_addresses_used_up(const struct sim_addresses *self, struct ar_error *error);

/* The recorded address of the next driver allocation, of `bytes`. INVALID with a sentence in
 * `problem` if the list has another size. Does not advance in the list. */
enum ar_status sim_addresses_recorded(const struct sim_addresses *self, uint64_t bytes,
                                      uint64_t *address, char *problem, size_t problem_bytes);

struct sim_device;
struct sim_pool;

/* async_pool.c: the host has synchronised. Pending frees that are done become free, and memory
 * above the threshold is released to the device. Does nothing if the pool was never opened. */
void sim_pool_settle(struct sim_device *device, uint32_t stream);
/* An event was recorded on the stream; it was made to wait. */
void sim_pool_event(struct sim_device *device, uint32_t stream);
void sim_pool_stream_waits(struct sim_device *device, uint32_t stream);

void sim_pool_close(struct sim_pool *self);

/* pinned.c: pinned host memory. `most_bytes` 0: no limit. */
struct sim_pinned {
    struct ar_backing backing;
    uint64_t most_bytes, next_address;
    struct ar_map blocks;      /* by address: bytes */
    struct small_pages *small; /* NULL: none yet */
};
void sim_pinned_open(struct sim_device *self, uint64_t most_bytes);
void sim_pinned_close(struct sim_device *self);

struct sim_device {
    struct ar_device base;
    struct ar_backing backing;
    struct sim_pinned pinned;
    const struct sim_profile *profile;
    struct sim_profile *own_profile;            /* NULL: `profile` is one that all devices share */
    struct sim_recent costs[SIM_COST_COUNT][2]; /* the second on a busy card */
    struct sim_recent kernel_ops[SIM_KERNEL_OP_COUNT];
    struct sim_clock clock;
    struct sim_ledger ledger;
    struct sim_addresses addresses;
    struct sim_addresses ranges; /* of reserved ranges, if a list was given */
    struct small_pages small;
    struct device_memory memory;
    struct sim_pool *pool; /* NULL: never opened */
    uint64_t cached_bytes; /* freed last and not reused: cached by the driver; 0: none */
    uint64_t last_made;    /* 1 + ordinal of the latest segment; 0: freed */
    uint64_t waited_ns;    /* in the present call */
    uint64_t ended_ns[SIM_COST_COUNT]; /* 1 + end of the last call, by the kind of rests; 0: none */
    uint64_t carried_ns[SIM_COST_COUNT]; /* the addition to it for a rest */
    struct ar_device_ops ops;            /* without the hooks that the profile does not need */
    uint64_t launch_ns, launch_busy_ns;  /* host time of a kernel's launch */
    bool charges_launches;               /* kernels cost the host time, or are added up */
    uint64_t request_ns, mark_ns, record_ns, wait_ns; /* of the program's other actions */
    uint64_t program_ns;                              /* their time that no gap has absorbed yet */
    uint64_t owed_ns;                                 /* of kernels since the last charged launch */
    uint64_t products_seen;                           /* a bit for each type and order of lengths */
    char problem[512];
    char race[512];
};

static inline struct sim_device *sim_of_backing(struct ar_backing *backing)
{
    return (struct sim_device *)((char *)backing - offsetof(struct sim_device, backing));
}

/* Writes a sentence to `problem` and returns INVALID. */
enum ar_status sim_misuse(struct sim_device *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The host's clock advances by `ns`. Returns by how much it did: at the end of time it stops, and
 * the device has failed. */
void sim_time_ends(struct sim_device *self);
static inline uint64_t sim_pass(struct sim_device *self, uint64_t ns)
{
    uint64_t before_ns = self->clock.now_ns;
    self->clock.now_ns = sim_time_plus(before_ns, ns);
    if (__builtin_expect(self->clock.now_ns == SIM_TIME_END_NS, 0))
        sim_time_ends(self);
    return self->clock.now_ns - before_ns;
}
/* A stream waits for that time because of the allocator. */
void sim_stream_stalls(struct sim_device *self, uint64_t ns);

/* HOST_MEMORY, or INVALID with a sentence, if something was lost in calls that cannot fail
 * (kernels, uses). Checked at each call that allocates. */
enum ar_status sim_check_complete(struct sim_device *self);

/* Counts a call of the kind `cost` about `bytes`. The host spends `ns`, and the addition for a rest
 * of the kind. */
void sim_call(struct sim_device *self, enum ar_device_call call, enum sim_cost cost, uint64_t bytes,
              uint64_t ns);
/* The cost at that size and now, without a rest. */
uint64_t sim_cost_now(struct sim_device *self, enum sim_cost cost, uint64_t bytes);
/* The host waits for all work if the profile says that such a call does. Get the cost of the call
 * first: it is that of a busy card if the card was busy. */
void sim_await_work(struct sim_device *self, enum sim_cost call);
/* All three: a call of the kind `cost` about `bytes`, charged as one of `cost_bytes`. */
void sim_charge(struct sim_device *self, enum ar_device_call call, enum sim_cost waits,
                enum sim_cost cost, uint64_t bytes, uint64_t cost_bytes);
/* Counts a call that found no memory and returns REFUSED. This is no misuse: `problem` is
 * unchanged. */
enum ar_status sim_refuse(struct sim_device *self, enum ar_device_call call, enum sim_cost cost,
                          uint64_t bytes);
/* The host waits for the cleaning that the ledger requires. */
void sim_await_cleaning(struct sim_device *self, uint64_t unit_bytes, enum sim_cost cost);
/* Copies the ledger's figures to the counters. */
void sim_show_memory(struct sim_device *self);

/* Adds a segment with the next ordinal; NULL: no host memory. */
struct memory_segment *sim_segment_add(struct sim_device *self, uint64_t address, uint64_t end,
                                       uint64_t bytes, bool reserved);

/* Hooks of the backing. segments.c, virtual_memory.c */
enum ar_status sim_segment_alloc(struct ar_backing *backing, uint64_t bytes, uint64_t *address);
enum ar_status sim_segment_free(struct ar_backing *backing, uint64_t address);
enum ar_status sim_reserve(struct ar_backing *backing, uint64_t bytes, uint64_t *address);
enum ar_status sim_release(struct ar_backing *backing, uint64_t address);
enum ar_status sim_create(struct ar_backing *backing, uint64_t bytes, ar_backing_handle *handle);
enum ar_status sim_destroy(struct ar_backing *backing, ar_backing_handle handle);
enum ar_status sim_map(struct ar_backing *backing, uint64_t address, ar_backing_handle handle);
enum ar_status sim_access(struct ar_backing *backing, uint64_t address, uint64_t bytes);
enum ar_status sim_unmap(struct ar_backing *backing, uint64_t address, uint64_t bytes);

/* async_pool.c */
enum ar_status sim_pool_open(struct ar_backing *backing, const struct ar_backing_pool *settings);
enum ar_status sim_pool_alloc(struct ar_backing *backing, uint64_t bytes, uint32_t stream,
                              uint64_t *address);
enum ar_status sim_pool_free(struct ar_backing *backing, uint64_t address, uint32_t stream);
enum ar_status sim_pool_trim(struct ar_backing *backing, uint64_t keep_bytes);
void sim_pool_memory(struct ar_backing *backing, uint64_t *used_bytes, uint64_t *reserved_bytes);

/* Hooks of the device. */
void sim_used(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
              uint64_t event);
uint64_t sim_handed_out(struct ar_device *device, uint64_t address, uint64_t bytes, uint32_t stream,
                        bool order, uint64_t event);
