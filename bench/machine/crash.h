/* A sentence if a policy of a shared object crashes, or is ended by a signal while it runs. */
#pragma once

/* Handles the signals of a crash, SIGINT, SIGTERM and SIGXCPU, unless something else does. If the
 * code of a shared object with a policy runs, or has called what runs, a sentence on standard error
 * names it. A crash then ends the process with status 4; the other signals do what they always do.
 * Without such code a signal does what it always does. */
void crash_reports_begin(void);

/* In a child whose parent reports how it ends. */
void crash_reports_end(void);
