/* Snapshots of runs, and their comparison with the policy: shared by the tests of snapshots. */
#pragma once

#include "bench/report/run_output.h"
#include "workloads/trace/trace.h"

/* Runs a policy over a workload, as workload_open reads it; the image is settled. The caller closes
 * it with run_snapshot_close. */
void snapshot_run(struct run_snapshot *out, const char *policy, const char *workload);

/* Opens a snapshot; one device only if `device` is not NULL. `what` is in front of failures. */
struct trace_source *snapshot_open(const char *path, const uint32_t *device, const char *what);

/* Compares it with the policy of its settings: every address and the end must be equal. */
void snapshot_check_agrees(struct trace_source *source, const char *what);

/* Writes it as a snapshot and reads that: the same events, keys and notes. */
void snapshot_check_comes_back(struct trace_source *source, const char *path, const char *what);
