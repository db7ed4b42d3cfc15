/* A sentence if a policy of a shared object crashes, ends the process, or is ended by a signal
 * while it runs. */
#pragma once

/* Handles the signals of a crash, SIGINT, SIGTERM and SIGXCPU, unless something else does. If the
 * code of a shared object with a policy runs, or has called what runs, a sentence on standard error
 * names it. A crash then ends the process with status 4; the other signals do what they always do.
 * Without such code a signal does what it always does. If the process ends by exit() before
 * crash_reports_end(), or by _exit() in such code, a sentence says so and the status is 4 too. */
void crash_reports_begin(void);

/* exit() or _exit() was called. Returns if the process may end with this status. on_exit() alone
 * would not do: glibc calls it for the first of two threads only. */
void crash_reports_exit(int status);

/* At the end of main(), and in a child whose parent reports how it ends. */
void crash_reports_end(void);
