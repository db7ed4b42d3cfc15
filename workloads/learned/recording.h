/* A recording in memory, divided into steps, with the life of each block. The first stage of
 * `learned`; model.h is the second.
 *
 * 1. Notes are left out, and so are the keys of kernels, which name blocks by their ids.
 * 2. A step ends at a mark `step`. A recording without such marks is divided by its live bytes: a
 *    step is one rise and fall. A rise is complete when live bytes have passed half of the way from
 *    the level of the valleys to that of the peaks, a fall when they are back at a quarter. The
 *    step ends at the last event with the fewest live bytes in between.
 * 3. Events after the last step are left out. */
#ifndef WORKLOADS_LEARNED_RECORDING_H
#define WORKLOADS_LEARNED_RECORDING_H

#include "workloads/trace/source.h"
#include "workloads/trace/tables.h"

#define LEARNED_STEPS_LEAST 4          /* in a recording */
#define LEARNED_NEVER       UINT32_MAX /* a step: the block is not freed in the recording */

struct learned_block {
    uint64_t bytes;
    uint32_t attributes, stream;
    uint32_t born;             /* step of its request, from 0 */
    uint32_t freed, completed; /* steps of the free request and of the last event, or NEVER */
};

struct learned_event {
    struct trace_event event; /* attributes and texts by the recording's own tables */
    uint32_t block;           /* index of the block, for the kinds that have one */
};

struct learned_recording {
    struct trace_info info;
    struct trace_tables tables;
    struct learned_event *events;
    size_t event_count, event_room;
    struct learned_block *blocks;
    size_t block_count, block_room;
    size_t *step_ends; /* the index after the last event of each step */
    size_t step_count, step_room;
    uint64_t *step_ns; /* duration of each step: recorded, or of its kernels on their streams */
    bool marked;       /* steps are marked; else found by rule 2 */
    bool timed;        /* step_ns is from recorded times; else the sum of the kernels' lengths */
    bool free_requested_final; /* no completion follows a free request */
    bool has_uses;
};

/* Pulls all of `source`, which still belongs to the caller. INVALID for an adaptive source, for
 * several GPUs, and if there are fewer than LEARNED_STEPS_LEAST steps. */
enum ar_status learned_recording_read(struct trace_source *source, struct learned_recording *self,
                                      struct ar_error *error) AR_STATUS_CHECKED;
void learned_recording_close(struct learned_recording *self);

#endif
