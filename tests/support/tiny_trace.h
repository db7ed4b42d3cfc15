/* Small traces for tests, written as lines of the text format without the first one:
 * "a,0,100", "f,0", "m,step". Keys: align, pool, space, tag; from op or x on
 * the rest of a line is kept as it is. */
#ifndef TESTS_SUPPORT_TINY_TRACE_H
#define TESTS_SUPPORT_TINY_TRACE_H

#include "workloads/trace/trace.h"

/* Events separated by blanks: tiny_trace("a,0,100 f,0"). Fails the test where it is wrong.
 * The caller closes it. */
struct trace_source *tiny_trace(const char *events);

/* Events for it, as a text of the caller's: `count` requests of so many bytes, at most 32
 * characters for each. Returns its length. */
size_t tiny_trace_requests(char *events, unsigned count, uint64_t bytes);

#define TINY_CHECKERBOARD_EVENTS 96 /* before the last request */

/* 64 blocks of 8 MiB, every second one freed, then a request of twice the size; fits 2048
 * characters. */
void tiny_trace_checkerboard(char *events);

#endif
