/* Groups the records of a suite (results.h). Groups are found in one pass over the runs.
 * Medians: of a metric whose values all agree the first value stays as it is (integers beyond
 * 2^53 too); else it is the median of the runs, as an integer if the metric is one. */
#include "bench/report/results.h"

#include "allocators/base/array.h"

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

const char *run_record_workload(const struct run_record *record, const struct run_record *runs,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(runs[i].workload.name, record->workload.name) == 0 &&
            strcmp(runs[i].workload_spec, record->workload_spec) != 0)
            return record->workload_spec;
    return record->workload.name;
}

static bool run_record_same_group(const struct run_record *a, const struct run_record *b)
{
    return strcmp(a->workload_spec, b->workload_spec) == 0 &&
           strcmp(a->device_spec, b->device_spec) == 0 && a->frees == b->frees &&
           a->host == b->host;
}

static int rank_class(const struct run_record *record)
{
    return !record->ranked ? 2 : record->passed ? 0 : 1;
}

int run_record_rank_order(const struct run_record *a, const struct run_record *b)
{
    int difference = rank_class(a) - rank_class(b);
    if (difference || !a->passed || !b->passed)
        return difference;
    double left = metric_number(&a->metrics, METRIC_peak_physical_bytes, 0);
    double right = metric_number(&b->metrics, METRIC_peak_physical_bytes, 0);
    return (left > right) - (left < right);
}

static bool has_metric(const struct run_record *record, enum metric metric)
{
    return record->passed && record->metrics.at[metric].kind != METRIC_NULL;
}

struct statistic runs_statistic(const struct run_record *const *runs, size_t count,
                                enum metric metric, double *values)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (has_metric(runs[i], metric))
            values[found++] = metric_number(&runs[i]->metrics, metric, 0);
    return statistic_of(values, found);
}

/* A run of one step reports that step as its steady one. No metric counts the steps: their number
 * is the rate times the duration. */
static bool has_steady_steps(const struct metric_values *metrics)
{
    double steps = metric_number(metrics, METRIC_steps_per_s, 0) *
                   metric_number(metrics, METRIC_device_time_ns, 0) / 1e9;
    return metrics->at[METRIC_steady_slowdown].kind != METRIC_NULL && steps > 1.5;
}

enum metric slowdown_metric_of(const struct run_record *runs, size_t count)
{
    bool passed = false;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].passed && !has_steady_steps(&runs[i].metrics))
            return METRIC_slowdown;
        passed = passed || runs[i].passed;
    }
    return passed ? METRIC_steady_slowdown : METRIC_slowdown;
}

/* ---- grouping ------------------------------------------------------------------------------- */

static struct run_record *copy_of(struct results *self, const struct run_record *record)
{
    struct run_record *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *record;
    if (copy && AR_ARRAY_ADD(self->made, self->made_count, self->made_room, copy))
        return copy;
    free(copy);
    return NULL;
}

/* One record for several; NULL: no host memory. */
static const struct run_record *median_of(struct results *self,
                                          const struct run_record *const *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!runs[i]->passed)
            return runs[i];
    struct run_record *record = count > 1 ? copy_of(self, runs[0]) : NULL;
    for (int i = 0; i < METRIC_COUNT && record; i++) {
        struct metric_value *value = &record->metrics.at[i];
        struct statistic statistic = runs_statistic(runs, count, (enum metric)i, self->values);
        if (statistic.count < 2 || statistic.least == statistic.most)
            continue;
        if (value->kind == METRIC_INTEGER)
            value->integer = (uint64_t)statistic.median;
        else
            *value = (struct metric_value){.kind = METRIC_REAL, .real = statistic.median};
    }
    return count > 1 ? record : runs[0];
}

/* Where the next policy, replicate and group begin. */
struct grouping {
    struct results *results;
    size_t policies, replicates;
};

static bool add_replicate(struct grouping *self, size_t begin, size_t end)
{
    struct results *results = self->results;
    struct result_replicate *replicate = &results->replicates[self->replicates];
    *replicate =
        (struct result_replicate){.runs = results->order + begin, .run_count = end - begin};
    for (size_t i = begin; i < end; i++)
        replicate->passed_count += results->runs[i].passed;
    replicate->median = median_of(results, replicate->runs, replicate->run_count);
    results->medians[self->replicates++] = replicate->median;
    results->repeated = results->repeated || replicate->run_count > 1;
    return replicate->median != NULL;
}

static bool add_policy(struct grouping *self, size_t begin, size_t end)
{
    struct results *results = self->results;
    struct result_policy *policy = &results->policies[self->policies++];
    *policy = (struct result_policy){
        .runs = results->order + begin,
        .run_count = end - begin,
        .replicates = results->replicates + self->replicates,
        .medians = results->medians + self->replicates,
    };
    for (size_t at = begin, next; at < end; at = next) {
        for (next = at + 1; next < end && results->runs[next].seed == results->runs[at].seed;)
            next++;
        if (!add_replicate(self, at, next))
            return false;
        policy->passed_count += policy->medians[policy->replicate_count++]->passed;
    }
    policy->median = median_of(results, policy->medians, policy->replicate_count);
    return policy->median != NULL;
}

static void describe_group(struct result_group *group, const struct results *results)
{
    const struct run_record *first = group->runs;
    bool differ = false;
    for (size_t i = 1; i < group->run_count; i++) {
        group->replicated = group->replicated || first[i].seed != first->seed;
        differ = differ || strcmp(first[i].workload.name, first->workload.name) != 0;
    }
    group->workload_replicates = differ ? group->policies->replicate_count : 1;
    group->name = group->workload_replicates > 1
                      ? first->workload_spec
                      : run_record_workload(first, results->runs, results->run_count);
    group->slowdown = slowdown_metric_of(first, group->run_count);
}

static bool add_group(struct grouping *self, size_t begin, size_t end)
{
    struct results *results = self->results;
    struct result_group *group = &results->groups[results->group_count++];
    const struct run_record *runs = results->runs;
    *group = (struct result_group){.runs = runs + begin,
                                   .run_count = end - begin,
                                   .policies = results->policies + self->policies};
    for (size_t at = begin, next; at < end; at = next) {
        for (next = at + 1;
             next < end && strcmp(runs[next].policy_spec, runs[at].policy_spec) == 0;)
            next++;
        if (!add_policy(self, at, next))
            return false;
        group->policy_count++;
    }
    describe_group(group, results);
    results->replicated = results->replicated || group->replicated;
    AR_RAISE(results->policies_most, group->policy_count);
    return true;
}

enum ar_status results_open(struct results *self, const struct run_record *runs, size_t count,
                            struct ar_error *error)
{
    const size_t room = count ? count : 1;
    *self = (struct results){
        .runs = runs,
        .run_count = count,
        .groups = calloc(room, sizeof *self->groups),
        .policies = calloc(room, sizeof *self->policies),
        .replicates = calloc(room, sizeof *self->replicates),
        .order = calloc(room, sizeof(*self->order)),
        .medians = calloc(room, sizeof(*self->medians)),
        .values = calloc(room, sizeof *self->values),
    };
    struct grouping grouping = {.results = self};
    bool done = self->groups && self->policies && self->replicates && self->order &&
                self->medians && self->values;
    for (size_t i = 0; i < count && done; i++)
        self->order[i] = &runs[i];
    for (size_t begin = 0, end; begin < count && done; begin = end) {
        for (end = begin + 1; end < count && run_record_same_group(&runs[begin], &runs[end]);)
            end++;
        done = add_group(&grouping, begin, end);
    }
    return done ? AR_OK : ar_no_memory(error, "the results");
}

void results_close(struct results *self)
{
    for (size_t i = 0; i < self->made_count; i++)
        free(self->made[i]);
    free(self->made);
    free(self->groups);
    free(self->policies);
    free(self->replicates);
    free(self->order);
    free(self->medians);
    free(self->values);
    *self = (struct results){0};
}

/* ---- pairs ---------------------------------------------------------------------------------- */

const struct run_record *result_policy_seed(const struct result_policy *policy, uint64_t seed)
{
    for (size_t i = 0; i < policy->replicate_count; i++)
        if (policy->medians[i]->seed == seed)
            return policy->medians[i];
    return NULL;
}

struct result_pairs result_pairs_of(const struct result_policy *policy,
                                    const struct result_policy *base, enum metric metric,
                                    double *values)
{
    struct result_pairs pairs = {0};
    for (int ratios = 0; ratios < 2; ratios++) {
        size_t count = 0;
        for (size_t i = 0; i < policy->replicate_count; i++) {
            const struct run_record *at = policy->medians[i];
            const struct run_record *other = result_policy_seed(base, at->seed);
            if (!has_metric(at, metric) || !other || !has_metric(other, metric))
                continue;
            double mine = metric_number(&at->metrics, metric, 0);
            double theirs = metric_number(&other->metrics, metric, 0);
            pairs.less += !ratios && mine < theirs;
            pairs.more += !ratios && mine > theirs;
            if (!ratios)
                values[count++] = mine - theirs;
            else if (theirs > 0)
                values[count++] = mine / theirs;
        }
        *(ratios ? &pairs.ratio : &pairs.difference) = statistic_of(values, count);
    }
    pairs.equal = pairs.difference.count - pairs.less - pairs.more;
    return pairs;
}

bool results_have(const struct results *self, enum metric metric)
{
    for (size_t i = 0; i < self->run_count; i++)
        if (self->runs[i].metrics.at[metric].kind != METRIC_NULL)
            return true;
    return false;
}

bool results_have_optional(const struct results *self)
{
    for (int metric = METRIC_FIRST_OPTIONAL; metric < METRIC_COUNT; metric++)
        if (results_have(self, (enum metric)metric))
            return true;
    return false;
}

bool results_have_pairs(const struct results *self)
{
    for (size_t i = 0; i < self->group_count; i++)
        if (result_group_has_pairs(&self->groups[i]))
            return true;
    return false;
}
