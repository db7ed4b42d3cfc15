/* The schedule of a scenario: its texts read into calls of actions. */
#ifndef SIM_TWIN_SCHEDULE_H
#define SIM_TWIN_SCHEDULE_H

#include "sim/twin/twin.h"

struct schedule_call {
    size_t part;    /* index of the scenario; SIZE_MAX: an action of a process */
    size_t process; /* of that process */
    unsigned action;
    const char *text; /* "rollout.sleep" */
    const char **arguments;
    size_t argument_count;
};

struct schedule_phase {
    const char *text; /* "rollout.sleep 1" */
    struct schedule_call *calls;
    size_t call_count;
};

struct schedule_list {
    struct schedule_phase *phases;
    size_t count, room;
};

struct schedule {
    struct schedule_list lists[3]; /* by enum twin_stage */
    char *texts[3];                /* private */
};

/* INVALID: a sentence with the list, the phase and what is wrong. */
enum ar_status schedule_read(const struct twin_scenario *scenario, struct schedule *out,
                             struct ar_error *error) AR_STATUS_CHECKED;
void schedule_close(struct schedule *self); /* a zeroed struct is fine */

#endif
