/* 1. What is timed differs from run to run; what is not must be the same in all repetitions of a cell.
 * 2. Of those that differ the first is named, and the first that differs from it. */
#include "bench/regress/contradiction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Two places of one side: "the old side contradicts itself: runs 1 and 3 of b.json". */
static void say_contradiction(struct verdict_row *row, bool in_old, const char *what,
                              const char *file, size_t number, const char *other_file,
                              size_t other_number)
{
    const char *side = in_old ? "old" : "new";
    if (file == other_file)
        snprintf(row->note, sizeof row->note,
                 "the %s side contradicts itself: %ss %zu and %zu of %.100s", side, what, number,
                 other_number, base_of(file));
    else
        snprintf(row->note, sizeof row->note,
                 "the %s side contradicts itself: %s %zu of %.90s and %zu of %.90s", side, what,
                 number, base_of(file), other_number, base_of(other_file));
}

static void say_runs(struct verdict_row *row, bool in_old, const struct side_run *run,
                     const struct side_run *other)
{
    say_contradiction(row, in_old, "run", run->file, run->number, other->file, other->number);
}

bool contradiction_of_ends(const struct side_cell *old, const struct side_cell *new_,
                           struct verdict_row *row)
{
    const struct side_run *apart = side_ends_apart(old);
    const struct side_run *new_apart = side_ends_apart(new_);
    if (apart)
        say_runs(row, true, &old->runs[0], apart);
    else if (new_apart)
        say_runs(row, false, &new_->runs[0], new_apart);
    return apart || new_apart;
}

/* Both values of a side that has two, else the one. */
static void values_text(const struct side_cell *cell, const struct side_run *differs,
                        enum metric metric, char text[40])
{
    char one[40], other[40];
    side_value_text(&cell->runs[0].metrics.at[metric], one);
    if (differs)
        side_value_text(&differs->metrics.at[metric], other);
    snprintf(text, 40, "%.17s%s%.17s", one, differs ? " and " : "", differs ? other : "");
}

bool contradiction_of_metric(const struct side_cell *old_cell, const struct side_cell *new_cell,
                             enum metric metric, struct verdict_row *row)
{
    const struct side_run *old = side_differs(old_cell, metric);
    const struct side_run *new_ = side_differs(new_cell, metric);
    if (side_is_timed(new_cell, metric) || (!old && !new_))
        return false;
    values_text(old_cell, old, metric, row->old);
    values_text(new_cell, new_, metric, row->new_);
    if (old)
        say_runs(row, true, &old_cell->runs[0], old);
    else
        say_runs(row, false, &new_cell->runs[0], new_);
    return true;
}

/* Another count of the same that is further off than counts are compared; NULL: there is none. */
static const struct side_count *find_other(const struct side *side, const struct side_count *count)
{
    for (size_t i = 0; i < side->count_count; i++)
        if (side_same_count(&side->counts[i], count) &&
            strcmp(side->counts[i].compiler, count->compiler) == 0 &&
            fabs(side->counts[i].value / count->value - 1) > VERDICT_INSTRUCTIONS)
            return &side->counts[i];
    return NULL;
}

bool contradiction_of_count(const struct side *side, bool in_old, const struct side_count *count,
                            struct verdict_row *row)
{
    const struct side_count *other = find_other(side, count);
    if (!other)
        return false;
    const struct side_count *first = count < other ? count : other;
    other = count < other ? other : count;
    snprintf(in_old ? row->old : row->new_, sizeof row->old, "%.1f and %.1f", first->value,
             other->value);
    say_contradiction(row, in_old, "row", first->file, first->number, other->file, other->number);
    return true;
}
