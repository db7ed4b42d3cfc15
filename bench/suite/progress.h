/* A line on the terminal with the progress and the time left. Only if standard error is a terminal;
 * never on standard output. */
#pragma once

#include "allocators/base/status.h"

struct progress {
    bool shown, lines; /* on a terminal; elsewhere, as lines, if ALLOCRIG_PROGRESS is set */
    size_t done, total;
    uint64_t began_ns, drawn_ns, every_ns;
};

/* `total`: 0: unknown, so only what is done is shown. On a terminal one line is drawn again and
 * again; elsewhere there is none, unless ALLOCRIG_PROGRESS is a number of seconds: after each of
 * them a line follows. */
void progress_begin(struct progress *self, size_t total);
/* Writes how much is done, the time left at that time, and the label. */
void progress_text(const struct progress *self, uint64_t now_ns, const char *label, char *text,
                   size_t room);
/* One more of `total` is done; `label` names it. */
void progress_step(struct progress *self, const char *label);
/* Clears the line. */
void progress_end(struct progress *self);

/* The finished runs of a suite, a sweep or `twin`, so that an interrupted one continues. */

/* The finished runs of an interrupted command: a file that only grows.
 *
 * 1. Its head holds a key: a hash of this program, and of what the runs depend on. A journal
 *    with another key belongs to other runs and is refused.
 * 2. A record holds the number of its run (an index, or a hash of its input), the result and a
 *    check sum. Reading ends at the first record that is not whole, which is cut off: a process
 *    killed while it writes leaves at most one.
 * 3. What is written survives the process at once; it is flushed to the disk once a second. */
struct journal {
    int file;
    uint64_t synced_ns;
    const char *path; /* borrowed */
};

/* Takes one record of a journal. False: it is not whole; reading ends there. */
typedef bool journal_take(void *argument, uint64_t run, const void *payload, size_t bytes);

/* Opens or creates the journal at `path` and passes its records to `take`. INVALID: it belongs to
 * other runs, or is in use. IO. The caller closes it. */
enum ar_status journal_open(struct journal *self, const char *path, uint64_t key,
                            journal_take *take, void *argument, struct ar_error *error);

enum ar_status journal_add(struct journal *self, uint64_t run, const void *payload, size_t bytes,
                           struct ar_error *error);

/* `remove`: it is no longer needed. */
void journal_close(struct journal *self, bool remove);

/* A key to begin with: a hash of this program. Add what the runs depend on. */
uint64_t journal_key(void);
uint64_t journal_add_file(uint64_t hash, const char *path);
/* A spec, and the contents of the files that it names. */
uint64_t journal_add_spec(uint64_t hash, const char *text);
