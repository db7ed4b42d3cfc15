/* `capacity`: the memory that a workload needs under each policy. Passing is not monotone in the
 * capacity, so there are two figures: the lowest capacity that passes, and the lowest above which
 * all pass. Policies are ranked by the second. */
#include <math.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "bench/statistics/statistics.h"
#include "bench/suite/plan.h"
#include "bench/suite/progress.h"
#include "bench/suite/run.h"
#include "bench/suite/suite.h"
#include "bench/suite/suite_run.h"
#include "sim/search/search.h"

struct arguments {
    struct suite suite;
    const char *json;
    bool wants_curve;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'p', "policy", "SPEC",
     "a policy, NAME:key=value,...; `all`: every one; default: the one that imitates the allocator "
     "of a recording",
     CLI_SUITE(cli_suite_policy), .many = true},
    {'w', "workload", "WORKLOAD", "a trace file, or a generator's NAME:key=value,...",
     CLI_SUITE(cli_suite_workload), .many = true},
    {'d', "device", "DEVICE",
     "a simulated device without a capacity; default: sim; a number N: only GPU N of the workloads",
     CLI_SUITE(cli_suite_key), .many = true},
    {CLI_CARD_ROW, CLI_SUITE(cli_suite_card), .many = true},
    {0, "json", "FILE", "write the results as JSON; - is standard output", CLI_FILE(json)},
    {0, "frees", "MODE", "ordered (default), at-once or recorded", CLI_SUITE(cli_suite_key)},
    {0, "host", "MODE", "host time: none (default), recorded or open", CLI_SUITE(cli_suite_key)},
    {0, "seed", "N", "seed of policies that use random numbers", CLI_SUITE(cli_suite_key)},
    {0, "replicates", "N", "repeat with N seeds of addresses=random and of generators",
     CLI_SUITE(cli_suite_key)},
    {0, "draws", "N", "alias of --replicates, for one release", .alias = "replicates"},
    {0, "curve", NULL, "also print the slowdown at 1 to 2 times the live peak",
     CLI_FLAG(wants_curve)},
    {0, "jobs", "N", "workers; default: one for each processor", CLI_SUITE(cli_suite_key)},
    {0},
};

static const struct cli_page page = {
    .arguments = "WORKLOAD [-p SPEC].. [-w WORKLOAD].. [options]",
    .text =
        "Finds the capacities at which a workload passes, on a grid from its live peak to four\n"
        "times that, at least to 256 MiB. A gap is a range of capacities that fail although a\n"
        "smaller one passes. Safe is the lowest capacity above which all pass; no flush and no\n"
        "retry are the lowest above which no run flushes or retries.",
    .options = options,
    .argument = {CLI_SUITE(cli_suite_workload), .many = true},
    .capacity = "it searches the capacity; `run -d sim:capacity=24GiB` tries one",
};

/* The result of one policy and workload. */
struct answer {
    const struct plan_policy *policy;
    const struct plan_workload *workload;
    enum replay_frees frees;
    uint64_t seed;  /* of the replicate */
    bool as_driver; /* segments lie where the driver of a card puts them */
    struct capacity_result result;
    char why[256]; /* the policy cannot start on the device, or refuses the workload; "": it can */
    enum ar_status refusal; /* UNSUPPORTED or FORMAT then */
};

static int answer_place(const struct answer *answer)
{
    bool ranked = !(answer->policy->ops->capabilities & AR_POLICY_UNRANKED);
    return answer->why[0] ? 3 : !ranked ? 2 : answer->result.safe_bytes ? 0 : 1;
}

/* Within a workload: by safe capacity, then those that never pass, then the unranked. */
static int compare_answers(const struct answer *a, const struct answer *b)
{
    int difference = answer_place(a) - answer_place(b);
    return difference ? difference
                      : (a->result.safe_bytes > b->result.safe_bytes) -
                            (a->result.safe_bytes < b->result.safe_bytes);
}

static void sort_answers(struct answer *answers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct answer answer = answers[i];
        size_t at = i;
        for (; at > 0 && answers[at - 1].workload == answer.workload &&
               answers[at - 1].frees == answer.frees &&
               compare_answers(&answer, &answers[at - 1]) < 0;
             at--)
            answers[at] = answers[at - 1];
        answers[at] = answer;
    }
}

static void capacity_cell(struct table *table, uint64_t bytes)
{
    if (bytes)
        table_cell(table, "%.1f", (double)bytes / (double)AR_MIB);
    else
        table_cell(table, "none");
}

static void gaps_cell(struct table *table, const struct capacity_result *result)
{
    char text[80] = "";
    for (size_t i = 0; i < result->gap_count; i++) {
        double from = (double)result->gaps[i].from_bytes / (double)AR_MIB;
        double to = (double)result->gaps[i].to_bytes / (double)AR_MIB;
        if (i == 2 && result->gap_count > 3) {
            text_add(text, sizeof text, ", %zu more", result->gap_count - i);
            break;
        }
        text_add(text, sizeof text, "%s%.0f", i ? ", " : "", from);
        if (from != to)
            text_add(text, sizeof text, "-%.0f", to);
    }
    table_cell(table, "%s", result->gap_count ? text : "-");
}

static void add_row(struct table *table, const struct answer *answer, size_t rank)
{
    double live = (double)answer->result.live_peak_bytes;
    table_known(table, answer_place(answer) == 0, "%zu", rank);
    table_cell(table, "%s", answer->policy->text);
    if (answer->why[0]) {
        table_rest(table, "%s", answer->why);
        return;
    }
    capacity_cell(table, answer->result.first_pass_bytes);
    capacity_cell(table, answer->result.safe_bytes);
    table_known(table, answer->result.safe_bytes && live > 0, "%.3f",
                (double)answer->result.safe_bytes / live);
    capacity_cell(table, answer->result.no_flush_bytes);
    capacity_cell(table, answer->result.no_retry_bytes);
    table_cell(table, "%" PRIu64, answer->result.runs);
    gaps_cell(table, &answer->result);
}

/* What the recordings say of their cards. The answers do not depend on it, except for requests that
 * no such card serves. */
static void print_cards(const struct answer *answers, size_t count)
{
    const char *first = NULL; /* of recordings that name no card */
    size_t unknown = 0;
    char text[32];
    for (size_t i = 0; i < count; i++) {
        const struct capacity_result *result = &answers[i].result;
        const struct trace_info *info = &answers[i].workload->info;
        const struct recorded_card *card = &result->card;
        ar_size_print(result->card_bytes, text, sizeof text);
        if (answers[i].why[0] || (i && answers[i].workload == answers[i - 1].workload))
            continue;
        if (card->source == RECORDED_CARD_DRIVER)
            say(stdout,
                "%s was recorded with %s: what was reserved when event %" PRIu64
                " failed, and what the driver said was free.",
                info->name, text, card->event);
        else if (card->source == RECORDED_CARD_LIMIT)
            say(stdout, "%s was recorded with a limit of %s.", info->name, text);
        else if (card->source == RECORDED_CARD_TOTAL)
            say(stdout, "%s was recorded on %s, of which a process has %s.", info->name,
                card->name[0] ? card->name : "a card", text);
        else if (card->source == RECORDED_CARD_NAME)
            say(stdout, "%s was recorded on %s, with %s by the profile %s.", info->name, card->name,
                text, card->profile);
        else if (card->source == RECORDED_CARD_UNKNOWN && card->name[0])
            say(stdout,
                "%s was recorded on %s, of which there is no profile. The capacities do not depend "
                "on it.",
                info->name, card->name);
        else if (card->source == RECORDED_CARD_UNKNOWN && info->recorder[0]) {
            first = first ? first : info->name;
            unknown++;
        }
    }
    if (first && unknown > 1)
        snprintf(text, sizeof text, " and %zu more", unknown - 1);
    if (first)
        say(stdout, "Card of %s%s unknown: none is recorded. The capacities do not depend on it.",
            first, unknown > 1 ? text : "");
}

/* Why `advise` and `fits` may answer otherwise about a recording. */
static void print_assumed(const struct answer *answers, size_t count)
{
    bool recorded = false, pending = false, rising = false;
    for (size_t i = 0; i < count; i++) {
        recorded |= answers[i].workload->info.recorder[0] != '\0';
        pending |= answers[i].frees == REPLAY_RECORDED;
        rising |= !answers[i].as_driver;
    }
    if (recorded)
        say(stdout,
            "Of a recording `advise` and `fits` may say less or more: they %s%s%stry fewer "
            "capacities.",
            rising ? "place segments as the driver of a card does (here with -d "
                     "sim:addresses=driver), "
                   : "",
            pending ? "let a request wait for blocks that other streams use (with frees recorded "
                      "none waits here), "
                    : "",
            rising || pending ? "and " : "");
}

/* The grid begins at the live peak, which counts probes. */
static void print_probes(const struct answer *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct capacity_result *result = &answers[i].result;
        bool first = i == 0 || answers[i].workload != answers[i - 1].workload;
        if (first && ar_size_round_up(result->firm_peak_bytes, 2 * AR_MIB) <
                         ar_size_round_down(result->live_peak_bytes, 2 * AR_MIB))
            say(stdout,
                "The live peak of %s counts requests that may fail; without them it is %s. It may "
                "pass below the capacities here, where some of them fail: `advise` tries that.",
                answers[i].workload->info.name, AR_SIZE(result->firm_peak_bytes));
    }
}

static enum ar_status print_table(const struct answer *answers, size_t count,
                                  struct ar_error *error)
{
    struct table *table = table_of("#; policy<30; first pass|MiB; safe|MiB; safe|/ live; no "
                                   "flush|MiB; no retry|MiB; runs; gaps|MiB<");
    size_t begin = 0;
    bool none = false;
    for (size_t i = 0; i < count; i++) {
        const struct capacity_result *result = &answers[i].result;
        none |= !answers[i].why[0] && !(result->first_pass_bytes && result->safe_bytes &&
                                        result->no_flush_bytes && result->no_retry_bytes);
        if (i == 0 || answers[i].workload != answers[begin].workload ||
            answers[i].frees != answers[begin].frees) {
            begin = i;
            table_heading(table, "%s: live peak %s, frees %s", answers[i].workload->info.name,
                          AR_SIZE(result->live_peak_bytes), replay_frees_name(answers[i].frees));
        }
        size_t rank = i - begin + 1;
        for (size_t j = i; j > begin && compare_answers(&answers[j - 1], &answers[i]) == 0; j--)
            rank--;
        add_row(table, &answers[i], rank);
    }
    AR_TRY(table_end(table, stdout, TABLE_TEXT, error));
    say(stdout,
        "First pass: the smallest capacity, from the live peak on, that passes. Safe: from here on "
        "all pass. No flush, no "
        "retry: from here on no run flushes or retries.%s Runs: capacities that were tried. Gaps: "
        "capacities above the first pass that fail.",
        none ? " None: not up to the largest capacity that was tried." : "");
    print_probes(answers, count);
    print_cards(answers, count);
    print_assumed(answers, count);
    return AR_OK;
}

/* Statistics of the safe capacity over the replicates of one policy, answers[0] to
 * answers[replicates - 1]. `each` gets the capacities; each[0] is NaN unless the policy is ranked
 * and passes in all replicates. */
static struct statistic safe_of(const struct answer *answers, size_t replicates, double *each,
                                double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < replicates; i++) {
        each[i] = (double)answers[i].result.safe_bytes / (double)AR_MIB;
        if (answer_place(&answers[i]) == 0)
            values[count++] = each[i];
    }
    if (count < replicates)
        each[0] = NAN;
    return statistic_of(values, count);
}

/* Prints median and range of the safe capacity over the replicates, ranked by pairs of replicates
 * (statistics.h). The replicates of a policy follow each other in `answers`, as in the plan. */
static enum ar_status print_replicates(const struct answer *answers, size_t count,
                                       size_t replicates, struct ar_error *error)
{
    AR_CLOSED(table_close_at)
    struct table *table = table_of("#; policy<30; passed|seeds; safe|MiB least; |median; |most");
    AR_FREED struct statistic *safe = calloc(count, sizeof *safe);
    AR_FREED double *values = calloc(count, sizeof *values);
    AR_FREED double *each = calloc(count, sizeof *each);
    AR_FREED struct statistic_place *places = calloc(count, sizeof *places);
    AR_TRY_MEMORY(table && safe && values && each && places, error, "the table");
    for (size_t begin = 0; begin < count;) {
        size_t rows = 0;
        for (size_t i = begin; i < count && answers[i].workload == answers[begin].workload &&
                               answers[i].frees == answers[begin].frees;
             i += replicates, rows++)
            safe[rows] = safe_of(&answers[i], replicates, &each[rows * replicates], values);
        statistic_places_paired(each, rows, replicates, values, places);
        table_heading(table, "%s: frees %s", answers[begin].workload->info.name,
                      replay_frees_name(answers[begin].frees));
        for (size_t i = 0; i < rows; i++) {
            const double shown[] = {safe[i].least, safe[i].median, safe[i].most};
            table_known(table, places[i].place, "%zu%s", places[i].place,
                        places[i].shared ? "=" : "");
            table_cell(table, "%s", answers[begin + i * replicates].policy->text);
            table_cell(table, "%zu of %zu", safe[i].count, replicates);
            for (int j = 0; j < 3; j++)
                table_known(table, safe[i].count, "%.1f", shown[j]);
        }
        begin += rows * replicates;
    }
    return table_print(table, stdout, TABLE_TEXT, error);
}

static void write_answer(struct json_writer *json, const struct answer *answer)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", answer->policy->text);
    json_put_text(json, "workload", answer->workload->text);
    json_put_text(json, "frees", replay_frees_name(answer->frees));
    json_put_integer(json, "seed", answer->seed);
    if (answer->why[0])
        json_put_text(json, "detail", answer->why);
    if (!answer->why[0])
        json_put_text(json, "card_from", card_source_name(answer->result.card.source));
    json_put_some(json, "card_bytes", answer->result.card_bytes);
    json_put_integer(json, "live_peak_bytes", answer->result.live_peak_bytes);
    json_put_some(json, "first_pass_bytes", answer->result.first_pass_bytes);
    json_put_some(json, "safe_bytes", answer->result.safe_bytes);
    json_put_some(json, "no_flush_bytes", answer->result.no_flush_bytes);
    json_put_some(json, "no_retry_bytes", answer->result.no_retry_bytes);
    json_put_integer(json, "runs", answer->result.runs);
    json_begin_array(json, "gaps");
    for (size_t i = 0; i < answer->result.gap_count; i++) {
        json_begin_object(json, NULL);
        JSON_PUT(json, &answer->result.gaps[i], from_bytes, to_bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* ---- slowdown curve ------------------------------------------------------------------------- */

/* The slowdown at a few capacities near the live peak. */
struct curve {
    struct run_record *records; /* of the runs of the plan; the points borrow from them */
    struct text_list devices;   /* of the runs that need more than the card has */
    struct slowdown_curve slowdown;
};

/* The curve begins with a run of each workload that passes: if the card is too small for it, on one
 * with the capacity that was found to be safe. `answers`: of the runs, in their order. */
static enum ar_status make_room(struct plan *plan, const struct answer *answers,
                                struct text_list *devices, struct ar_error *error)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        struct plan_run *run = &plan->runs[i];
        AR_FREED char *text = NULL;
        if (answers[i].result.safe_bytes <= plan->props[run->device].capacity_bytes)
            continue;
        AR_TRY(spec_text_with(run->device_text, "capacity",
                              AR_SIZE_EXACT(answers[i].result.safe_bytes), &text, error));
        AR_TRY(text_list_add(devices, text, error));
        run->device_text = devices->items[devices->count - 1];
    }
    return AR_OK;
}

static enum ar_status find_curve(struct plan *plan, const struct answer *answers,
                                 struct suite *suite, struct curve *curve, struct ar_error *error)
{
    static const double ratios[] = {1.00, 1.02, 1.05, 1.1, 1.25, 1.5, 2};
    curve->records = calloc(plan->run_count + 1, sizeof *curve->records);
    AR_TRY_MEMORY(curve->records, error, "the slowdown curve");
    suite->ratio_count = AR_COUNT(ratios);
    memcpy(suite->ratios, ratios, sizeof ratios);
    AR_TRY(make_room(plan, answers, &curve->devices, error));
    AR_TRY(matrix_run(plan, plan->runs, plan->run_count, plan_jobs(plan), curve->records, error));
    return slowdown_run(plan, curve->records, plan_jobs(plan), &curve->slowdown, error);
}

static enum ar_status print_curve(const struct slowdown_curve *curve, const struct suite *suite,
                                  struct ar_error *error)
{
    if (curve->count == 0) {
        puts("\nNo slowdown: no workload has times that an allocator can lengthen.");
        return AR_OK;
    }
    puts("\nSlowdown by capacity, in multiples of the live peak; DNF: did not finish.\n");
    return slowdown_table_print(curve, suite, SLOWDOWN_TIME, "", stdout, TABLE_TEXT, error);
}

static void write_curve(struct json_writer *json, const struct slowdown_curve *curve)
{
    json_begin_array(json, "slowdown");
    for (size_t i = 0; i < curve->count; i++) {
        const struct slowdown_point *point = &curve->points[i];
        json_begin_object(json, NULL);
        json_put_text(json, "workload", point->workload);
        json_put_text(json, "policy", point->policy_spec);
        JSON_PUT(json, point, capacity_ratio, capacity_bytes);
        json_put_known_real(json, "slowdown", point->passed && point->slowdown.kind == METRIC_REAL,
                            point->slowdown.real);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_json(FILE *stream, const struct answer *answers, size_t count,
                       const struct slowdown_curve *curve)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", "allocrig.capacity/1");
    json_begin_array(&json, "answers");
    for (size_t i = 0; i < count; i++)
        write_answer(&json, &answers[i]);
    json_end_array(&json);
    if (curve)
        write_curve(&json, curve);
    json_end_object(&json);
}

static enum ar_status report(const struct arguments *self, struct output_set *files, FILE *json,
                             struct answer *answers, size_t count,
                             const struct slowdown_curve *curve, struct ar_error *error)
{
    size_t replicates = self->suite.replicates;
    if (replicates <= 1)
        sort_answers(answers, count);
    if (!files->standard) {
        AR_TRY(replicates > 1 ? print_replicates(answers, count, replicates, error)
                              : print_table(answers, count, error));
        if (curve)
            AR_TRY(print_curve(curve, &self->suite, error));
    }
    if (json)
        write_json(json, answers, count, curve);
    return output_set_commit(files, error);
}

static bool is_as_driver(const struct plan_run *run)
{
    AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
    struct ar_error ignored;
    const char *addresses = ar_spec_parse(run->device_text, &device, &ignored)
                                ? NULL
                                : ar_spec_value(&device, "addresses");
    return addresses && strcmp(addresses, "driver") == 0;
}

static enum ar_status find_all(struct arguments *self, struct plan *plan, struct ar_error *error)
{
    AR_CLOSED(output_set_abandon) struct output_set files = {0};
    FILE *json;
    struct progress progress;
    size_t count = 0;
    bool begun = false;
    struct curve curve = {0};
    struct answer *answers = calloc(plan->run_count, sizeof *answers);
    AR_TRY_MEMORY(answers, error, "the answers");
    enum ar_status status = output_set_add(&files, self->json, &json, error);
    progress_begin(&progress, plan->run_count);
    for (size_t i = 0; i < plan->run_count && !status; i++) {
        const struct plan_run *run = &plan->runs[i];
        struct answer *answer = &answers[i];
        *answer = (struct answer){.policy = &plan->policies[run->policy],
                                  .workload = &plan->workloads[run->workload],
                                  .frees = run->frees,
                                  .seed = run->seed,
                                  .as_driver = is_as_driver(run)};
        status = run_find_capacity(plan, run, &answer->result, &answer->refusal, answer->why,
                                   sizeof answer->why, error);
        count += !status;
        begun |= !status && !answers[i].why[0];
        progress_step(&progress, plan->workloads[plan->runs[i].workload].text);
    }
    progress_end(&progress);
    if (!status && !begun)
        status = ar_error_set(error, answers[0].refusal == AR_FORMAT ? AR_FORMAT : AR_MISSING, "%s",
                              answers[0].why);
    if (!status && self->wants_curve)
        status = find_curve(plan, answers, &self->suite, &curve, error);
    AR_THEN(status, report(self, &files, json, answers, count,
                           self->wants_curve ? &curve.slowdown : NULL, error));
    slowdown_close(&curve.slowdown);
    free(curve.records);
    text_list_close(&curve.devices);
    for (size_t i = 0; i < count; i++)
        capacity_result_close(&answers[i].result);
    free(answers);
    return status;
}

/* The capacity is what is searched. */
static enum ar_status no_capacity(const struct text_list *devices, struct ar_error *error)
{
    for (size_t i = 0; i < devices->count; i++) {
        AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
        AR_TRY(ar_spec_parse(devices->items[i], &spec, error));
        const char *given = ar_spec_value(&spec, "capacity");
        if (given)
            return ar_invalid(error,
                              "capacity: it searches the capacity, so leave capacity=%.40s out "
                              "of the device; `run -d sim:capacity=%.40s` tries one",
                              given, given);
    }
    return AR_OK;
}

static enum ar_status plan_and_find(struct arguments *self, struct ar_error *error)
{
    AR_CLOSED(plan_close) struct plan plan = {0};
    if (self->wants_curve && self->suite.replicates > 1)
        return ar_invalid(error, "capacity: --curve is for one replicate; leave --replicates out, "
                                 "or use `run` with a suite that has [slowdown]");
    if (self->suite.workloads.count == 0)
        return ar_invalid(error, "capacity: no workload given; write capacity WORKLOAD -p SPEC");
    if (self->suite.policies.count == 0 && !self->suite.all_policies) {
        struct trace_source *recording;
        enum ar_status status =
            workload_open_recording(self->suite.workloads.items[0], &recording, error);
        AR_THEN(status, cli_recorded_policy(recording, &self->suite, error));
        AR_TRY(ar_error_prefix(error, status, "capacity"));
    }
    AR_TRY(no_capacity(&self->suite.devices, error));
    AR_TRY(plan_make(&plan, &self->suite, error));
    return find_all(self, &plan, error);
}

enum ar_status cmd_capacity(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.suite = SUITE_DEFAULTS};
    enum ar_status status = cli_parse(&page, argc, argv, &self, error);
    AR_THEN(status, plan_and_find(&self, error));
    suite_close(&self.suite);
    return status;
}
