/* What is written at the end of the program: a JSON file of all figures, lines for people. */
#ifndef BENCH_PLUGIN_REPORT_H
#define BENCH_PLUGIN_REPORT_H

#include "bench/plugin/card.h"

struct report {
    const char *policy;     /* the spec */
    const char *stats_path; /* "-": standard error; NULL: none is wanted */
    struct card **cards;
    unsigned count;
};

/* Writes the file; with `verbose` also lines on standard error. What cannot be written is said
 * there. */
void report_write(const struct report *report, bool verbose);

#endif
