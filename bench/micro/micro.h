/* Google Benchmark behind a C header: micro.cc is the only C++ file of the project. A benchmark is
 * a C function that runs its work once for each micro_next and is registered with an argument. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct micro_state;
typedef void micro_function(struct micro_state *state, void *argument);

struct micro_value {
    const char *name;
    double value;
};

/* One measured repetition. */
struct micro_report {
    const char *name;                 /* as registered */
    const struct micro_value *values; /* "ns_per_op", and what micro_counter added */
    size_t value_count;
    uint64_t iterations; /* of the loop, each a pass of micro_operations */
    const char *problem; /* NULL: it ran */
};
typedef void micro_reporter(void *argument, const struct micro_report *report);

/* Adds a benchmark. `argument` stays the caller's and outlives micro_run; `name` is copied. */
void micro_register(const char *name, micro_function *function, void *argument);
/* As above, for a benchmark that measures itself: each repetition is one round, whose time is the
 * one passed to micro_time. */
void micro_register_timed(const char *name, micro_function *function, void *argument);

/* True while another round must run. The processor time between calls is measured. */
bool micro_next(struct micro_state *state);
/* Sets the operations of each round, by which the time is divided. Call it after the last round. */
void micro_operations(struct micro_state *state, uint64_t operations);
/* Sets the time of the round, for a benchmark that measures itself. Call it in every round. */
void micro_time(struct micro_state *state, double nanoseconds);
/* Adds a number to the result. */
void micro_counter(struct micro_state *state, const char *name, double value);
/* Ends the benchmark with a sentence in place of a result. */
void micro_fail(struct micro_state *state, const char *sentence);

/* Adds a pair to the `context` of the JSON. */
void micro_context(const char *key, const char *value);

/* Runs all that is registered under the command line of Google Benchmark (--benchmark_filter,
 * --benchmark_out=FILE ...). The results go to `reporter` and the file only. Returns an exit
 * status: 2 for an unknown argument. */
int micro_run(int argc, char **argv, micro_reporter *reporter, void *argument);

#ifdef __cplusplus
}
#endif
