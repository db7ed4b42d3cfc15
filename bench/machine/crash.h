/* A sentence if a policy of a shared object crashes, ends the process, or is ended by a signal
 * while it runs. */
#pragma once

#include <stdbool.h>

/* Handles the signals of a crash, SIGINT, SIGTERM and SIGXCPU, unless something else does. If the
 * code of a shared object with a policy runs, or has called what runs, a sentence on standard error
 * names it. A crash then ends the process with status 4; the other signals do what they always do.
 * Without such code a signal does what it always does. If the process ends by exit() before
 * crash_reports_returned(), or by a function like exit() in such code, a sentence says so and the
 * status is 4 too. A policy that makes the system call itself is not seen. `is_run`: the command is
 * `run`; the sentences of other commands point to it. */
void crash_reports_begin(bool is_run);

/* exit(), quick_exit() or _exit() was called. Returns if the process may end with this status.
 * on_exit() alone would not do: glibc calls it for the first of two threads only. */
void crash_reports_exit(int status);

/* At the end of main(). What a policy does while the process ends is still reported. */
void crash_reports_returned(void);

/* In a child whose parent reports how it ends. */
void crash_reports_end(void);
