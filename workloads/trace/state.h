/* What a recorded allocator holds at one moment, followed through the notes of a recording, and
 * written as notes: the state in which a part of it begins. */
#ifndef WORKLOADS_TRACE_STATE_H
#define WORKLOADS_TRACE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

struct trace_state {
    struct trace_state_area *areas; /* by address; the runs of a range behind it */
    size_t count, room;
    struct trace_state_block *blocks; /* in use, by address */
    size_t block_count, block_room;
};

void trace_state_close(struct trace_state *self);

/* Takes any note. HOST_MEMORY. */
enum ar_status trace_state_note(struct trace_state *self, const char *text,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* A block was placed, for a request of `bytes` from a pool (0: the common one). HOST_MEMORY. */
enum ar_status trace_state_placed(struct trace_state *self, uint64_t address, uint64_t bytes,
                                  uint32_t pool, struct ar_error *error) AR_STATUS_CHECKED;
/* The block at an address may be used again. */
void trace_state_freed(struct trace_state *self, uint64_t address);
/* Bytes of the block in use at an address; 0: there is none. */
uint64_t trace_state_bytes(const struct trace_state *self, uint64_t address);

/* The note of area `index`, from 0; false past the last one. */
bool trace_state_print(const struct trace_state *self, size_t index, char *text, size_t room);

#endif
