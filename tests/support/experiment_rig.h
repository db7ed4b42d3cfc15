/* Experiments from texts (a policy, a device, a workload), for tests of the parts around the
 * engine. */
#pragma once

#include "sim/replay.h"

struct experiment_rig {
    struct ar_spec policy, device;
    struct trace_source *source;
    struct experiment experiment; /* change it before the run; metrics are exact */
    struct replay_result result;
    struct ar_device_props props;
    struct ar_error error;
};

/* `workload` as workload_open reads it. Fails the test if a text is wrong. */
void experiment_rig_open(struct experiment_rig *rig, const char *policy, const char *device,
                         const char *workload);
/* The same over a source, which the rig closes. */
void experiment_rig_over(struct experiment_rig *rig, const char *policy, const char *device,
                         struct trace_source *source);
/* The experiment must be OK. */
void experiment_rig_run(struct experiment_rig *rig);
void experiment_rig_close(struct experiment_rig *rig);
