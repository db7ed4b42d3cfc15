#include "bench/report/results_notes.h"

#include <stdbool.h>
#include <string.h>

#include "bench/report/sentence.h"

/* Did a run finish of which figures were asked for, and has no slowdown? */
static bool lacks_slowdown(const struct run_record *record)
{
    const struct metric_values *metrics = &record->metrics;
    return record->passed && metrics->at[METRIC_slowdown].kind == METRIC_NULL &&
           metrics->at[METRIC_peak_live_bytes].kind != METRIC_NULL;
}

static bool group_lacks_slowdown(const struct run_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (lacks_slowdown(&records[i]))
            return true;
    return false;
}

static bool same_figures(const struct run_record *a, const struct run_record *b)
{
    static const enum metric figures[] = {
        METRIC_peak_live_bytes,     METRIC_peak_granted_bytes, METRIC_peak_reserved_bytes,
        METRIC_peak_physical_bytes, METRIC_driver_calls,       METRIC_external_fragmentation_mean};
    bool same = a->passed == b->passed;
    for (size_t i = 0; same && i < sizeof figures / sizeof figures[0]; i++)
        same = a->metrics.at[figures[i]].kind == b->metrics.at[figures[i]].kind &&
               !(metric_number(&a->metrics, figures[i], 0) <
                 metric_number(&b->metrics, figures[i], 0)) &&
               !(metric_number(&a->metrics, figures[i], 0) >
                 metric_number(&b->metrics, figures[i], 0));
    return same;
}

/* Several draws, and each policy has the same figures in all of them. */
static bool draws_are_alike(const struct run_record *records, size_t count)
{
    bool drawn = false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            if (strcmp(records[i].policy_spec, records[j].policy_spec) != 0)
                continue;
            if (!same_figures(&records[i], &records[j]))
                return false;
            drawn = drawn || records[i].seed != records[j].seed;
            break;
        }
    return drawn;
}

/* "NAME", "NAME and 2 more": of the workloads of which a group is `like` that. "": of none. */
static void name_groups(const struct run_record *records, size_t count,
                        bool (*like)(const struct run_record *records, size_t count),
                        char names[160])
{
    const char *first = NULL;
    const char *last = "";
    size_t more = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = run_record_group_end(records, count, begin);
        const char *name = records[begin].workload.name;
        if (strcmp(name, last) == 0 || !like(records + begin, end - begin))
            continue;
        more += first != NULL;
        first = first ? first : name;
        last = name;
    }
    names[0] = '\0';
    if (first && more)
        snprintf(names, 160, "%.120s and %zu more", first, more);
    else if (first)
        snprintf(names, 160, "%.120s", first);
}

void results_notes_print(FILE *stream, const struct run_record *records, size_t count)
{
    char names[160];
    char text[640];
    name_groups(records, count, group_lacks_slowdown, names);
    if (names[0]) {
        snprintf(text, sizeof text,
                 "No slowdown (-) of %s: without kernels there is no time that an allocator could "
                 "lengthen (--host recorded takes the times between events, where a recording has "
                 "them); runs with --verify are not held against a baseline.",
                 names);
        sentence_print(stream, text);
    }
    name_groups(records, count, draws_are_alike, names);
    if (names[0]) {
        snprintf(
            text, sizeof text,
            "All draws of %s are alike: a draw is of the addresses of segments, and of generators "
            "and policies with a seed; here it changed no decision.",
            names);
        sentence_print(stream, text);
    }
}
