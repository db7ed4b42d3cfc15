/* Where segments come to lie. Three forms:
 *
 * next    each new segment lies above all earlier ones, at the next boundary; none is reused.
 * list    driver allocations take recorded addresses in the order of a file, CSV with the
 *         header `ordinal,bytes,address`, bytes as the policy asked for them. Reserved ranges
 *         are not in such recordings: they take the next address above all of the list. An
 *         empty list means `next`.
 * random  pages drawn from a seed, anywhere in 47 bits, clear of all that is held. */
#ifndef SIM_SIM_DEVICE_ADDRESSES_H
#define SIM_SIM_DEVICE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/rng.h"
#include "allocators/base/status.h"
#include "sim/device_memory/ranges.h"

enum sim_addresses_form { SIM_ADDRESSES_NEXT, SIM_ADDRESSES_LIST, SIM_ADDRESSES_RANDOM };

struct sim_address_row {
    uint64_t bytes, address;
};

struct sim_addresses {
    enum sim_addresses_form form;
    uint64_t boundary_bytes; /* of segments of a page and more */
    uint64_t next;
    struct ar_rng rng;
    struct sim_address_row *rows;
    size_t row_count, row_next;
    char *path;
};

/* `form_text`: NULL for next, "random", or a file's path. FORMAT or IO where the file is
 * not as it should be; addresses must be multiples of `boundary_bytes`, those of segments
 * below that size of `granule_bytes`. */
enum ar_status sim_addresses_open(struct sim_addresses *self, const char *form_text,
                                  uint64_t first_address, uint64_t boundary_bytes,
                                  uint64_t granule_bytes, uint64_t seed,
                                  struct ar_error *error) AR_STATUS_CHECKED;
void sim_addresses_close(struct sim_addresses *self);

/* An address for `bytes` that overlaps none of `taken` and `pages`. REFUSED: there is none. */
enum ar_status sim_addresses_new(struct sim_addresses *self, uint64_t bytes,
                                 const struct ranges *taken, const struct ranges *pages,
                                 uint64_t *address) AR_STATUS_CHECKED;

/* The recorded address of the next driver allocation, which is to be `bytes` long. INVALID
 * with a sentence in `problem` where the list says otherwise. Does not move on. */
enum ar_status sim_addresses_recorded(const struct sim_addresses *self, uint64_t bytes,
                                      uint64_t *address, char *problem,
                                      size_t problem_bytes) AR_STATUS_CHECKED;

#endif
