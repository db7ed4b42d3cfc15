/* The addresses of segments, in four forms:
 *
 * next    each new segment is above all earlier ones, at the next boundary; no address is reused.
 * list    driver allocations get recorded addresses in the order of a file: CSV with the header
 *         `ordinal,bytes,address`, with the bytes that the policy requested. Such recordings do not
 *         contain reserved ranges: these get the next address above all of the list. An empty list
 *         means `next`.
 * random  pages at random addresses below 2^47, from a seed, which overlap no other.
 * driver  from 2^47 downwards, as the driver of a card places them (address_space.h). */
#ifndef SIM_SIM_DEVICE_ADDRESSES_H
#define SIM_SIM_DEVICE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/rng.h"
#include "allocators/base/status.h"
#include "sim/device_memory/ranges.h"
#include "sim/sim_device/address_space.h"

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

/* The recorded address of the next driver allocation, of `bytes`. INVALID with a sentence in
 * `problem` if the list has another size. Does not advance in the list. */
enum ar_status sim_addresses_recorded(const struct sim_addresses *self, uint64_t bytes,
                                      uint64_t *address, char *problem,
                                      size_t problem_bytes) AR_STATUS_CHECKED;

#endif
