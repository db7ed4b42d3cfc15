/* What a pool of pinned host memory sees of a workload: its pinned requests as requests of a pool, and the
 * card's as requests of zero bytes, which no policy sees. All other events stay, so that both pools of a process
 * come to the same step at the same time. */
#ifndef SIM_TENANTS_PINNED_VIEW_H
#define SIM_TENANTS_PINNED_VIEW_H

#include "workloads/trace/source.h"

/* A source over `source`, which it takes over and closes, also where it fails. */
enum ar_status pinned_view_open(struct trace_source *source, struct trace_source **out,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
