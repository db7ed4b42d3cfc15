#include "bench/report/run_record.h"

#include <string.h>

const char *run_record_cause(const struct run_record *record)
{
    static const char *const names[] = {
#define X(name, text) text,
        RUN_ENDS(X)
#undef X
    };
    if (record->passed)
        return NULL;
    return record->end == RUN_PLAYED ? replay_cause_name(record->cause) : names[record->end];
}

bool run_record_same_group(const struct run_record *a, const struct run_record *b)
{
    return strcmp(a->workload_spec, b->workload_spec) == 0 &&
           strcmp(a->device_spec, b->device_spec) == 0 && a->frees == b->frees &&
           a->host == b->host;
}

size_t run_record_group_end(const struct run_record *records, size_t count, size_t begin)
{
    size_t end = begin + 1;
    while (end < count && run_record_same_group(&records[begin], &records[end]))
        end++;
    return end;
}

size_t run_record_draws(const struct run_record *group, size_t count)
{
    size_t draws = 0;
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        draws += group[i].repetition == 0 && strcmp(group[i].policy_spec, group->policy_spec) == 0;
        differ |= strcmp(group[i].workload.name, group->workload.name) != 0;
    }
    return differ ? draws : 1;
}

static int place(const struct run_record *record)
{
    return !record->ranked ? 2 : record->passed ? 0 : 1;
}

int run_record_rank_order(const struct run_record *a, const struct run_record *b)
{
    int difference = place(a) - place(b);
    if (difference || !a->passed || !b->passed)
        return difference;
    double left = metric_number(&a->metrics, METRIC_peak_physical_bytes, 0);
    double right = metric_number(&b->metrics, METRIC_peak_physical_bytes, 0);
    return (left > right) - (left < right);
}
