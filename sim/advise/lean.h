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

#endif
