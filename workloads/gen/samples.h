/* Numbers that vary from step to step: a list such as '2048;4096;8192' or '1-19;64'. An entry is a
 * number or a range. Entries are taken in turn, again from the first after the last, or one is
 * drawn at random each time; a number from a range is always drawn at random. */
#ifndef WORKLOADS_GEN_SAMPLES_H
#define WORKLOADS_GEN_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/rng.h"

struct emit;

enum samples_order { SAMPLES_RANDOM, SAMPLES_CYCLE };
#define SAMPLES_CHOICES "random|cycle"

struct samples_range {
    uint64_t least, most;
};

struct samples {
    const struct samples_range *ranges; /* owned by the generator's source */
    size_t count;
    size_t turn; /* entries taken in turn; 0 at each start of the generator */
    enum samples_order order;
    struct samples *other; /* the generator's other lists */
};

/* Reads the list from the text of `option`; every number must lie in [least, most]. Only in the
 * open() of a generator; errors go to emit_fail. */
void samples_open(struct emit *emit, struct samples *samples, const char *text,
                  enum samples_order order, uint64_t least, uint64_t most, const char *option);

/* The next number; from a range uniformly, or so that every doubling is equally likely. */
uint64_t samples_next(struct samples *samples, struct ar_rng *rng);
uint64_t samples_next_log(struct samples *samples, struct ar_rng *rng);

/* The largest number that can come. */
uint64_t samples_most(const struct samples *samples);

#endif
