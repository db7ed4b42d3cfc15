/* Workers that share numbered items of work. */
#pragma once

#include "workloads/trace/source.h"

typedef enum ar_status crew_work(void *argument, size_t number, struct trace_source *trace,
                                 struct ar_error *error);
/* Called after each item; may be NULL. Calls never overlap. */
typedef void crew_done(void *argument);

/* Does the items [0, count) with up to `jobs` workers, each with its own copy of the trace (NULL:
 * none), of which the caller is one. If a thread cannot be made, the others do its items. After a
 * failure no further item begins; the failure of the lowest number is returned, so that it does not
 * depend on timing. */
enum ar_status crew_each(struct trace_source *trace, unsigned jobs, size_t count, crew_work *work,
                         crew_done *done, void *argument, struct ar_error *error);
