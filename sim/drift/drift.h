/* How the memory of a policy changes over a long run of a learned program.
 *
 * 1. Each seed is a run of its own: a new device, a new policy, and the steps that the seed draws
 *    (workloads/learned). It ends at the first request that fails.
 * 2. The state is read after steps: at a grid of DRIFT_SAMPLES, and after 1, 10, 100, ... steps.
 * 3. A recorded step that begins in a known state of the policy ends in a known one. Such steps are
 *    counted. Before one that is not known, as many of the last of them are replayed as lead from
 *    the replayed state to the counted one, which are few, because a policy forgets. A state is
 *    what the policy's walk shows, and the addresses of the blocks carried to the next step. Each
 *    part of the policy (ar_policy_range) has states of its own. A step that makes or frees a
 *    segment, flushes or tries again is never known. This holds for the policies of
 *    `drift_can_skip`, whose decisions depend on nothing else, unless blocks are used on several
 *    streams: then they depend on times. Runs of one policy share what they know, so the number of
 *    replayed steps depends on which of them came first (`context` in JSON). */
#pragma once

#include "sim/experiment/session.h"
#include "workloads/learned/learned.h"

#define DRIFT_SAMPLES 512
#define DRIFT_DECADES 13
#define DRIFT_PINS    10

struct drift_sample {
    uint64_t step, reserved_bytes, live_bytes;
};

/* Live blocks with one tag, or of one size if they have none, at the end of the run, and the
 * segments that they are in. Of a segment that grows by pages, a block keeps only the free bytes
 * beside it in its own page of 2 MiB. */
struct drift_pin {
    char tag[64];         /* "" */
    uint64_t block_bytes; /* of each; 0: they differ */
    uint64_t blocks, bytes;
    uint64_t segments, segment_bytes, free_bytes; /* of segments with such a block */
    uint64_t alone_bytes;                         /* free in segments that no other blocks are in */
    uint32_t first_step, last_step;               /* of their requests, from 0 */
};

struct drift_run {
    uint64_t seed;
    struct drift_sample samples[DRIFT_SAMPLES + DRIFT_DECADES + 1]; /* by their steps */
    size_t sample_count;
    uint64_t steps, replayed_steps, events; /* events: of the replayed steps */
    uint64_t failed_step;                   /* from 1; 0: no request failed */
    enum replay_cause cause;
    uint64_t failed_bytes;
    uint64_t retries, flushes, misfits;
    /* Steps after which more was reserved, and how much more: in the last nine tenths of the
     * recorded steps, and in those drawn after them. */
    struct drift_growth {
        uint64_t steps, bytes;
    } recorded, drawn;
    uint64_t reserved_bytes, recorded_bytes; /* after the last step, and the last recorded one */
    bool fell;                               /* some step left less reserved than the one before */
    uint64_t least_live_bytes, most_live_bytes; /* after steps, from the start-up on */
    struct drift_pin pins[DRIFT_PINS];          /* that keep most free bytes, first */
    size_t pin_count;
    uint64_t cached_bytes; /* free, in segments or whole pages without a live block */
};

struct drift_setup {
    const struct learned_model *model;
    const struct ar_spec *policy;
    const struct ar_spec *device;
    uint64_t steps, seed;
    bool every_step; /* replay all steps, see rule 3 */
};

/* Called for each hundredth of the steps of each run, by one worker at a time. A run that ends
 * early has done all of them. */
struct drift_watch {
    void (*done)(void *argument);
    void *argument;
};
#define DRIFT_WATCHED 100

/* Runs, with `jobs` workers. Memory for `steps` is bounded: only samples are kept. INVALID and
 * faults as replay_run; the first error counts. `watch`: NULL: none. */
enum ar_status drift_run_all(const struct drift_setup *setups, struct drift_run *out, size_t count,
                             unsigned jobs, const struct drift_watch *watch,
                             struct ar_error *error);

bool drift_can_skip(const struct ar_spec *policy);

/* pins.c: fills pins and cached_bytes of `out`. `source` is the lean one of the run. */
enum ar_status drift_find_pins(const struct ar_policy *policy, const struct replay *run,
                               const struct trace_source *source, struct drift_run *out,
                               struct ar_error *error);
