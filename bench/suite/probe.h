/* What the plan needs to know of a device before any run: can it be opened, what it is, and which
 * policies can work on it at all. */
#ifndef BENCH_SUITE_PROBE_H
#define BENCH_SUITE_PROBE_H

#include "bench/suite/plan.h"

/* Whether runs on the device that `text` names have a process each. On a card they do: a driver's
 * state cannot be taken through a fork, and what one run leaves in it is there for the next. */
bool probe_wants_process(const char *text);

/* Opens the device once, in a process of its own where `alone`. `why` (of the plan's policies; or
 * NULL, not wanted) gets for each policy why it cannot work there; "" where it can. A card without
 * room for the moment is no error. */
enum ar_status probe_device(const struct plan *plan, const char *text, bool alone,
                            struct ar_device_props *props, struct ar_error *why,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* The device that `run` takes of itself: a real card where one is, else `sim`, and then `why` says
 * in a sentence why no card is taken. */
const char *probe_default(char *why, size_t why_bytes);

#endif
