/* The table of figures that changed, of a comparison and of a history. Rows that probably have one
 * cause are one line. */
#pragma once

#include "allocators/base/status.h"
#include "bench/regress/verdict.h"
#include "bench/report/table.h"

/* Groups rows that probably have one cause: a policy that became worse does so in many figures and
 * workloads; a metric that is counted differently changes under many policies.
 *
 * 1. Rows of different kinds (verdict, waiver, commit) are never in one group.
 * 2. Of the remaining rows of a kind, the policy or the figure with the most rows is the next
 *    group. If two have equally many, a policy comes first, then the earlier one.
 * 3. Groups of at most GROUPS_LISTED rows stay single rows.
 * 4. The worst row of a group is the first by what matters to a person (change_place), then the one
 *    with the largest change. A row without a size, such as an outcome, counts as the largest.
 * 5. The groups and rows of a kind are in the order of what matters of their worst rows. */
#define GROUPS_LISTED 3

/* What matters: whether a program ends, its memory, its time, anything else, and last the parts of
 * a whole, such as fragmentation. */
enum change_place { CHANGE_OUTCOME, CHANGE_MEMORY, CHANGE_TIME, CHANGE_OTHER, CHANGE_SHARE };

/* The figures that a comparison tells first, in this order; the last one has no name. */
struct change_headline {
    const char *figure;
    enum change_place place;
};
extern const struct change_headline change_headlines[];

/* NULL: the figure is none of them. */
const struct change_headline *change_headline(const char *figure);

/* Whether both values are parts of a whole. Their change is a difference, in percentage points:
 * from 2e-7 to 2e-6 is next to nothing, and 800 % more. */
bool change_is_share(const char *unit, double old, double new);
enum change_place change_place(const char *figure, bool is_share);

/* The order of tables, and of the figure that a last line names: what matters more, then by size
 * (below 0: it has none). */
bool change_is_worse(enum change_place place, double change, enum change_place other_place,
                     double other_change);
bool verdict_is_worse(const struct verdict_row *row, const struct verdict_row *other);

/* The value of a figure for a sentence: bytes also in MiB. */
const char *change_value_text(const char *figure, const char *value, char text[CHANGE_VALUE_ROOM]);

/* Texts are borrowed. */
struct group_item {
    size_t kind;
    const char *policy, *workload, *figure;
    double change; /* its size, as a fraction, of a share as a difference; below 0: it has none */
    enum change_place place;
};

struct group {
    enum { GROUP_ROW, GROUP_OF_POLICY, GROUP_OF_FIGURE } by;
    size_t worst; /* index of an item */
    size_t count;
    size_t policies, workloads, figures; /* the number of different ones in its rows */
};

struct groups {
    struct group *items;
    size_t count;
    size_t folded; /* rows that are in groups of several */
};

/* The groups are in the order of the first rows of their kinds. HOST_MEMORY. The caller closes
 * them. */
enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error);
void groups_close(struct groups *self);

/* Describes a group without the values of its worst row: "policy torch, 12 figures in 6 workloads;
 * first: driver_time_ns of embedding". Returns `text`. */
const char *group_text(const struct group *group, const struct group_item *worst, char *text,
                       size_t room);

/* A figure that changed. Texts are borrowed. */
struct change_row {
    struct group_item item;
    const char *workload, *where; /* of the run: its workload as a spec, its device */
    const char *verdict;          /* "WORSE", "waived" */
    char old[CHANGE_VALUE_ROOM], new[CHANGE_VALUE_ROOM]; /* both "-": no values */
    char remark[400];
    const struct waiver *waiver;
    size_t section;    /* rows of one section follow each other */
    char heading[120]; /* of the section; "": none */
};

/* What of a waiver stands after the remark of its row: its name and reason, which has no limit of
 * length. */
#define WAIVER_FORMAT "%s%s%s"
#define WAIVER_TEXTS(waiver)                                                                       \
    (waiver) ? (waiver)->name : "", (waiver) ? ": " : "", (waiver) ? (waiver)->reason : ""

/* True if there is a waiver that has not expired. */
bool change_is_waived(const struct waiver *waiver);
/* Writes the state of a waiver, "waived until 2027-01-31 ", or "". Returns `text`. */
const char *change_waiver_text(const struct waiver *waiver, char text[48]);

/* Words for the two values: titles of columns, and after the new one in a sentence. */
struct change_words {
    const char *old, *new, *since;
};

/* Prints the rows, `all` of them or those that share a policy or a figure as one, and a blank line.
 * Nothing if there are none. HOST_MEMORY. */
enum ar_status change_table_print(const struct change_row *rows, size_t count, bool all,
                                  const struct change_words *words, FILE *stream,
                                  enum table_form form, struct ar_error *error);

/* "33.3 % worse"; from ten times on "20.7 times as much"; of a share "1.2 percentage points
 * worse". */
void change_size_text(double change, bool is_share, const char *word, char text[48]);
