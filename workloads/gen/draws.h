/* Numbers that vary from step to step: a list such as '2048;4096;8192' or '1-19;64'. An entry
 * is a number or a range. They are taken in turn, from the start again after the last, or one
 * is drawn at random; a range is drawn from at random each time. */
#ifndef WORKLOADS_GEN_DRAWS_H
#define WORKLOADS_GEN_DRAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/rng.h"
#include "allocators/base/status.h"

enum draws_order { DRAWS_RANDOM, DRAWS_CYCLE };
#define DRAWS_CHOICES "random|cycle"

struct draws_range {
    uint64_t least, most;
};

struct draws {
    struct draws_range *ranges;
    size_t count;
    size_t next; /* in turn */
    enum draws_order order;
};

/* Reads the list; every number must lie in [least, most]. INVALID names `owner` and `option`.
 * draws_close gives it back. */
enum ar_status draws_parse(struct draws *draws, const char *text, enum draws_order order,
                           uint64_t least, uint64_t most, const char *owner, const char *option,
                           struct ar_error *error) AR_STATUS_CHECKED;
void draws_close(struct draws *draws);

/* To the first entry again. */
void draws_start(struct draws *draws);

/* The next number; from a range evenly, or so that every doubling is equally likely. */
uint64_t draws_next(struct draws *draws, struct ar_rng *rng);
uint64_t draws_next_log(struct draws *draws, struct ar_rng *rng);

/* The largest number that can come. */
uint64_t draws_most(const struct draws *draws);

#endif
