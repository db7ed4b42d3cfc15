/* Rows of one cause as one: a policy that became worse does so in many figures and workloads, a
 * figure that is counted otherwise does under many policies.
 *
 * 1. Rows of different kinds (verdict, waiver, commit) are never one.
 * 2. Of what is left of a kind, the policy or the figure with the most rows is the next group; of
 *    equal ones a policy, then the earlier. The rest goes on without its rows.
 * 3. What has at most GROUPS_LISTED rows stays rows: they tell more than their number.
 * 4. The worst of a group is its row with the largest change; one without a size, as an outcome, is
 *    before all others. */
#ifndef BENCH_REGRESS_GROUPS_H
#define BENCH_REGRESS_GROUPS_H

#include <stddef.h>
#include <stdio.h>

#include "allocators/base/status.h"
#include "bench/report/table.h"

#define GROUPS_LISTED 3

/* Texts are borrowed. */
struct group_item {
    size_t kind;
    const char *policy, *workload, *figure;
    double change; /* how much, as a fraction; below 0: it has no size */
};

struct group {
    enum { GROUP_ROW, GROUP_OF_POLICY, GROUP_OF_FIGURE } by;
    size_t worst; /* index of an item; of a row the row itself */
    size_t count;
    size_t policies, workloads, figures; /* different ones among its rows */
};

struct groups {
    struct group *items;
    size_t count;
    size_t folded; /* rows that stand in groups of several */
};

/* Groups in the order of the first rows of their kinds. HOST_MEMORY. On success the caller closes
 * it. */
enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error) AR_STATUS_CHECKED;
void groups_close(struct groups *self);

/* What a group is of, up to the values of its worst row: "policy torch, 12 figures in 6 workloads;
 * largest: driver_time_ns of embedding". Returns `text`. */
const char *group_text(const struct group *group, const struct group_item *worst, char *text,
                       size_t room);

/* The table of groups: verdict, rows, what. The caller closes it. NULL: no host memory. */
struct table *groups_table(void);
/* Says behind it how to see the rows that were folded, where some were. */
void groups_note(size_t folded, FILE *stream);

#endif
