/* A source that lets through so many steps or events of another one, and then says that there is
 * no more, until it is opened again: what makes replays take turns. */
#ifndef SIM_TENANTS_GATE_H
#define SIM_TENANTS_GATE_H

#include "workloads/trace/source.h"

struct gate {
    struct trace_source base;
    struct trace_source *inner;
    const struct trace_event *events; /* pulled and not let through */
    size_t count;
    uint64_t steps_left, events_left;
    uint64_t steps; /* let through in all */
    bool ended;     /* the inner source has no more */
    bool serves;    /* the inner source is adaptive */
};

/* `inner` stays the caller's and stands at its first event. */
void gate_begin(struct gate *gate, struct trace_source *inner);

/* Lets through up to that many steps or events, whichever ends first. */
void gate_let(struct gate *gate, uint64_t steps, uint64_t events);

#endif
