/* Which memory which stream may still use: ranges of physical memory, each with the last use
 * of every stream (and, for mapped memory, of every mapping that the use went through).
 *
 * A use is recorded when the program lets a block go and forgotten when its memory is handed
 * out again or goes back to the device, so there are at most a few entries per free block. */
#ifndef SIM_DEVICE_MEMORY_HAZARDS_H
#define SIM_DEVICE_MEMORY_HAZARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/device_memory/ranges.h"

struct sim_use {
    uint64_t mapping;  /* that it went through; 0: none, a driver allocation */
    uint64_t sequence; /* of the stream's work: all up to it may use the range */
    uint64_t time_ns;  /* when that work is done */
    uint64_t event;    /* of the trace, for reports */
    uint32_t stream;
};

struct sim_hazards {
    struct ranges ranges;
};

/* Returns false to stop. `start` and `end` are those of the part looked at. */
typedef bool sim_hazard_visit(void *argument, const struct sim_use *use, uint64_t start,
                              uint64_t end);

void sim_hazards_close(struct sim_hazards *self);
/* False: no memory. */
bool sim_hazards_use(struct sim_hazards *self, uint64_t start, uint64_t end,
                     const struct sim_use *use);
/* Every use that overlaps the range, by address; false where the visitor stopped. */
bool sim_hazards_visit(const struct sim_hazards *self, uint64_t start, uint64_t end,
                       sim_hazard_visit *visit, void *argument);
/* Forgets the range. False: no memory to divide an entry; then the rest of it stays. */
bool sim_hazards_forget(struct sim_hazards *self, uint64_t start, uint64_t end);

#endif
