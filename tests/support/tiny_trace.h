/* Small traces for tests, written as lines of the text format without the first one:
 * "a,0,100", "f,0", "m,step". Keys: align, pool, space, tag; from op or x on
 * the rest of a line is kept as it is. */
#pragma once

#include "workloads/trace/trace.h"

/* Events separated by blanks: tiny_trace("a,0,100 f,0"). Fails the test where it is wrong.
 * The caller closes it. */
struct trace_source *tiny_trace(const char *events);

/* The same, where the events may be such that no trace has them. */
enum ar_status tiny_trace_open(const char *events, struct trace_source **out,
                               struct ar_error *error);
