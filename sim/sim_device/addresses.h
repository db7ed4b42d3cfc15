/* The addresses of segments, in four forms:
 *
 * next    each new segment is above all earlier ones, at the next boundary; no address is reused.
 * list    driver allocations get recorded addresses in the order of a file: CSV with the header
 *         `ordinal,bytes,address`, with the bytes that the policy requested. Such recordings do not
 *         contain reserved ranges: these get the next address above all of the list. An empty list
 *         means `next`.
 * random  pages at random addresses below 2^47, from a seed, which overlap no other.
 * driver  from 2^47 downwards, as the driver of a card places them (struct address_space). */
#ifndef SIM_SIM_DEVICE_ADDRESSES_H
#define SIM_SIM_DEVICE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/host.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/rng.h"
#include "allocators/base/status.h"
#include "sim/device_memory/device_memory.h"

/* Where a driver places allocations: a model of what H100s and H200s do with cuMemAlloc.
 *
 * The driver reserves address ranges in multiples of 32 MiB, from the top of its address space
 * downwards, in the highest gap that is large enough. An allocation is at the start of its range.
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
    uint32_t taken;  /* allocations */
    uint32_t ranges; /* reserved */
    uint32_t rests;  /* free parts of reserved ranges */
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
                                  uint64_t granule_bytes, uint64_t seed,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void sim_addresses_close(struct sim_addresses *self);

/* An address for `bytes` that overlaps neither `taken` nor `pages`. REFUSED: there is none. */
enum ar_status sim_addresses_new(struct sim_addresses *self, uint64_t bytes,
                                 const struct ranges *taken, const struct ranges *pages,
                                 uint64_t *address) AR_STATUS_CHECKED;

/* The segment or range of `bytes` at that address, which _new returned, is released. */
void sim_addresses_released(struct sim_addresses *self, uint64_t address, uint64_t bytes);

/* INVALID if the list has rows that no driver allocation has used. */
enum ar_status sim_addresses_used_up(const struct sim_addresses *self,
                                     struct ar_error *error) AR_STATUS_CHECKED;

/* The recorded address of the next driver allocation, of `bytes`. INVALID with a sentence in
 * `problem` if the list has another size. Does not advance in the list. */
enum ar_status sim_addresses_recorded(const struct sim_addresses *self, uint64_t bytes,
                                      uint64_t *address, char *problem,
                                      size_t problem_bytes) AR_STATUS_CHECKED;

#endif
