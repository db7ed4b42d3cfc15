/* A recording in fewer events, for replays that measure little. The policy sees the same calls.
 *
 * 1. If blocks are freed when the free is requested (modes ordered and at-once), free requested and
 *    free completed become one event at the place of the first. The engine has a shortcut for it.
 * 2. Recorded times that do not pass (host none) and notes are left out.
 * 3. Without times (`timeless`), kernels, records of events and waits for them are left out too.
 *    They can change what a policy does only if it asks the device whether work is done. After the
 *    replay the caller must check that it did not (lean_holds). A wait gives no answer. */
#ifndef SIM_ADVISE_LEAN_H
#define SIM_ADVISE_LEAN_H

#include "allocators/spec.h"
#include "sim/device.h"
#include "sim/replay.h"

struct lean {
    struct trace_info info;
    const struct trace_tables *tables; /* of the recording, which must stay open */
    struct trace_event *events;        /* NULL: the recording has no such form */
    uint64_t *numbers;                 /* of the events in the recording */
    size_t count;
    uint64_t largest_bytes; /* of all requests */
    bool timeless;
};

/* There is no such form if streams must be ordered, because races depend on time. HOST_MEMORY. */
enum ar_status lean_make(struct trace_source *trace, enum replay_frees frees, enum replay_host host,
                         bool timeless, struct lean *out, struct ar_error *error) AR_STATUS_CHECKED;
void lean_close(struct lean *self);

/* A source of the events. Several may be used at once. It needs no close. */
struct lean_source {
    struct trace_source base;
    const struct lean *lean;
    bool given;
};

void lean_open(const struct lean *self, struct lean_source *out);

/* Whether a replay that ended is the same with and without times. */
bool lean_holds(const struct ar_device *device, const struct ar_policy *policy);

/* The capacity from which on a setting of PyTorch passes for certain, so that a search need not
 * replay the recording there.
 *
 * 1. Before a request fails, PyTorch releases every segment without a live block. So it fails only
 *    if the segments with live blocks and the new one need more than the card has.
 * 2. With max_split_size_mb the segment of a block is bounded by the requests alone. Larger blocks
 *    than that size are never divided, so a smaller request is in a segment that was made for a
 *    smaller request, and a larger one is in a segment of its own, at most 20 MiB larger.
 * 3. The sum of these bounds over the live blocks has a maximum. With that much memory nothing
 *    fails, whatever the fragmentation. */

/* In bytes; UINT64_MAX: not known. `policy` notices the capacity only by failed calls. */
uint64_t certain_bytes(const struct lean *lean, const struct ar_spec *policy);

#endif
