/* The what-ifs of a scenario: each is a copy of its text with one change. Changes come from the
 * options of the policies, from the parts (struct twin_part_ops), and from the schedule. */
#ifndef BENCH_SUITE_TWIN_CHANGES_H
#define BENCH_SUITE_TWIN_CHANGES_H

#include "bench/suite/twin_setup.h"

struct twin_change {
    char text[200];
    struct scenario edited;
    bool failed; /* the edit is not possible */
    char why[400];
};

struct twin_changes {
    struct twin_change *at;
    size_t count, room;
};

/* `text` is what was run, with that setup and result, and must outlive the changes. The caller
 * closes them, also after a failure. */
enum ar_status twin_changes_find(const struct scenario *text, const struct twin_setup *setup,
                                 const struct twin_result *result, struct twin_changes *out,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void twin_changes_close(struct twin_changes *self);

/* The policy spec with that key set. The caller frees it; NULL: no host memory, or no spec. */
char *twin_policy_with(const char *policy, const char *key, const char *value);

#endif
