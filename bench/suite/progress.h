/* A line on the terminal with the progress and the time left. Only if standard error is a terminal;
 * never on standard output. */
#ifndef BENCH_SUITE_PROGRESS_H
#define BENCH_SUITE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool shown;
    size_t done, total;
    uint64_t began_ns, drawn_ns;
};

void progress_begin(struct progress *self, size_t total);
/* Writes how much is done, the time left at that time, and the label. */
void progress_text(const struct progress *self, uint64_t now_ns, const char *label, char *text,
                   size_t room);
/* One more of `total` is done; `label` names it. */
void progress_step(struct progress *self, const char *label);
/* Clears the line. */
void progress_end(struct progress *self);

#endif
