/* Google Benchmark behind a C header: micro.cc is the only C++ file of the project. A benchmark is
 * a C function that runs its work once for each micro_next and is registered with an argument. */
#ifndef BENCH_MICRO_MICRO_H
#define BENCH_MICRO_MICRO_H

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
/* As above, of one that measures itself: one round a repetition, and what counts is the time that
 * it says with micro_time. */
void micro_register_timed(const char *name, micro_function *function, void *argument);

/* True while another round is to be run; the time between calls is what is measured, in
 * processor time. */
bool micro_next(struct micro_state *state);
/* Operations in each round: what the time is divided by. To be called after the last round. */
void micro_operations(struct micro_state *state, uint64_t operations);
/* The time of the round, of a benchmark that measures itself. To be called in every round. */
void micro_time(struct micro_state *state, double nanoseconds);
/* Adds a number to the result. */
void micro_counter(struct micro_state *state, const char *name, double value);
/* Ends the benchmark with a sentence in place of a result. */
void micro_fail(struct micro_state *state, const char *sentence);

/* Adds a pair to the `context` of the JSON. */
void micro_context(const char *key, const char *value);

/* Runs all that is registered under the command line of Google Benchmark (--benchmark_filter,
 * --benchmark_out=FILE ...). Nothing but `reporter` sees the results, besides the file. Returns an
 * exit status: 2 where an argument is not known. */
int micro_run(int argc, char **argv, micro_reporter *reporter, void *argument);

#ifdef __cplusplus
}
#endif

#endif
