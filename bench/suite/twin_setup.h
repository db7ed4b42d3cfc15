/* Makes what `twin_run` takes out of a scenario's text, and checks it: each error names the line
 * and what to write. */
#ifndef BENCH_SUITE_TWIN_SETUP_H
#define BENCH_SUITE_TWIN_SETUP_H

#include "bench/suite/scenario.h"
#include "sim/twin/twin.h"

struct twin_setup {
    struct twin_scenario scenario; /* points into the text and to the members below */
    struct twin_process_setup *processes;
    struct twin_part_setup *parts;
    char *lists[SCENARIO_LISTS];
};

/* The kinds of parts, for scenario_read. Returns their number; `kinds` has room for `most`. */
size_t twin_setup_kinds(const char **kinds, size_t most);
#define TWIN_KINDS_MOST 64

/* `text` must outlive the setup. The caller closes it, not after a failure. */
enum ar_status twin_setup_make(const struct scenario *text, struct twin_setup *out,
                               struct ar_error *error) AR_STATUS_CHECKED;
/* The values of a part's options. The caller frees them, also after a failure. */
enum ar_status twin_setup_values(const struct twin_part_setup *part, void **values,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Puts file and line before an error of the engine. `part`: the index of the part that it is about;
 * SIZE_MAX: the part that the error begins with ("buffer kv: ..."). `failed`: what twin_run said
 * about the step in which it was found; NULL: in none. */
enum ar_status twin_setup_error(const struct scenario *text, const struct twin_setup *setup,
                                size_t part, const struct twin_result *failed,
                                enum ar_status status, struct ar_error *error);
void twin_setup_close(struct twin_setup *self);

#endif
