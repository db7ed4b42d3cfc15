#include "bench/regress/history.h"
#include "bench/statistics/statistics.h"

#include <fnmatch.h>
#include <math.h>

#include "allocators/base/array.h"

/* A run over all lines, while series are made. */
struct tracked_run {
    const struct history_run *run;  /* in the last line that has it */
    size_t epoch, outcome_epoch;    /* incremented when a new stretch begins */
    size_t heads[METRIC_COUNT + 1]; /* 1 + the index of its first series of each metric
                                       and of the outcome; 0: none */
    bool timed[METRIC_COUNT];
};

struct making {
    struct history_judged *out;
    const struct history *history;
    const struct history_rules *rules;
    struct tracked_run *runs;
    size_t run_count, run_room;
    struct ar_error *error;
};

static bool fits(const char *pattern, const char *text)
{
    return !pattern || fnmatch(pattern, text, 0) == 0;
}

static bool is_wanted(const struct history_rules *rules, const char *policy, const char *workload,
                      const char *name)
{
    return fits(rules->policy, policy) &&
           (fits(rules->workload, workload) || fits(rules->workload, name));
}

/* The index of the run, which is added if it is new; SIZE_MAX: no host memory. */
static size_t track(struct making *self, const struct history_run *run, size_t near)
{
    /* Lines mostly have the same order. */
    for (size_t i = 0; i < self->run_count; i++) {
        size_t at = (near + i) % self->run_count;
        if (history_run_same(self->runs[at].run, run))
            return at;
    }
    if (!ar_array_make_room(&self->runs, self->run_count, &self->run_room, sizeof *self->runs))
        return SIZE_MAX;
    self->runs[self->run_count] = (struct tracked_run){.run = run};
    return self->run_count++;
}

static struct history_series *add_series(struct history_judged *out,
                                         const struct history_series *like)
{
    return AR_ARRAY_ADD(out->series, out->count, out->room, *like) ? &out->series[out->count - 1]
                                                                   : NULL;
}

static enum ar_status add_point(struct making *self, struct history_series *series, size_t line,
                                double value, size_t epoch)
{
    AR_TRY_MEMORY(series, self->error, "the history");
    struct history_point point = {line, value, series->count == 0 || series->epoch != epoch, value};
    AR_TRY(
        AR_APPEND(series->points, series->count, series->room, point, self->error, "the history"));
    series->epoch = epoch;
    return AR_OK;
}

/* Finds or adds the series of a run and metric for the machine and flags of `like` (NULL: exact).
 * The series of a run and metric are a linked list. */
static struct history_series *series_of(struct history_judged *out, size_t *head,
                                        struct history_series *like)
{
    for (size_t at = *head; at; at = out->series[at - 1].other)
        if (out->series[at - 1].machine == like->machine &&
            out->series[at - 1].flags == like->flags)
            return &out->series[at - 1];
    like->other = *head;
    struct history_series *added = add_series(out, like);
    *head = added ? out->count : *head;
    return added;
}

static double outcome_of(const struct history_run *run)
{
    return run->passed   ? HISTORY_PASSED
           : run->played ? (double)run->first_failed_event
                         : HISTORY_NO_RUN;
}

static bool differ(double a, double b)
{
    return a < b || a > b;
}

static enum ar_status add_run(struct making *self, size_t line, const struct history_run *run,
                              size_t index)
{
    struct tracked_run *tracked = &self->runs[index];
    bool another = strcmp(tracked->run->sha256, run->sha256) != 0;
    tracked->outcome_epoch += another;
    tracked->epoch += another || differ(outcome_of(tracked->run), outcome_of(run));
    tracked->run = run;
    struct history_series like = {.policy = run->policy,
                                  .workload = run->workload,
                                  .workload_name = run->workload_name,
                                  .where = run->device,
                                  .figure = "outcome",
                                  .unit = "event",
                                  .better = METRIC_HIGHER,
                                  .run = index};
    if (fits(self->rules->figure, like.figure))
        AR_TRY(add_point(self, series_of(self->out, &tracked->heads[METRIC_COUNT], &like), line,
                         outcome_of(run), tracked->outcome_epoch));
    for (int m = 0; m < METRIC_COUNT; m++) {
        const struct metric_info *info = metric_info((enum metric)m);
        if (isnan(run->values[m]) || !fits(self->rules->figure, info->name))
            continue;
        like.figure = info->name;
        like.unit = info->unit;
        like.better = info->better;
        like.kind = tracked->timed[m] ? CHANGE_TIMED : CHANGE_EXACT;
        like.machine = tracked->timed[m] ? self->history->lines[line].machine : NULL;
        like.flags = tracked->timed[m] ? self->history->lines[line].flags : NULL;
        AR_TRY(add_point(self, series_of(self->out, &tracked->heads[m], &like), line,
                         run->values[m], tracked->epoch));
    }
    return AR_OK;
}

/* The timed metrics must be known before any series is made. */
static enum ar_status note_timed(struct making *self, size_t line, const struct history_run *run,
                                 size_t index)
{
    (void)line;
    for (int m = 0; m < METRIC_COUNT; m++)
        self->runs[index].timed[m] |= run->timed[m];
    return AR_OK;
}

/* Calls it for each wanted run of each line, with the index of the run. */
static enum ar_status each_run(struct making *self,
                               enum ar_status (*step)(struct making *, size_t,
                                                      const struct history_run *, size_t))
{
    for (size_t i = 0; i < self->history->count; i++) {
        const struct history_line *line = &self->history->lines[i];
        for (size_t j = 0, near = 0; j < line->run_count; j++) {
            const struct history_run *run = &line->runs[j];
            if (!is_wanted(self->rules, run->policy, run->workload, run->workload_name))
                continue;
            size_t index = track(self, run, near);
            if (index == SIZE_MAX)
                return ar_no_memory(self->error, "the history");
            AR_TRY(step(self, i, run, index));
            near = index + 1;
        }
    }
    return AR_OK;
}

static enum ar_status add_count(struct making *self, size_t line,
                                const struct instruction_count *count, size_t first)
{
    struct history_judged *out = self->out;
    const struct history_series like = {
        .policy = count->policy,
        .workload = count->trace,
        .workload_name = count->trace,
        .where = count->kind,
        .figure = strcmp(count->measure, "exact") == 0 ? "instructions_exact" : "instructions",
        .unit = "count",
        .better = METRIC_LOWER,
        .kind = CHANGE_COUNT,
        .flags = count->compiler,
        .run = SIZE_MAX};
    if (!is_wanted(self->rules, like.policy, like.workload, like.workload_name) ||
        !fits(self->rules->figure, like.figure))
        return AR_OK;
    size_t at = first;
    while (at < out->count &&
           !(out->series[at].policy == like.policy && out->series[at].workload == like.workload &&
             out->series[at].where == like.where && out->series[at].flags == like.flags &&
             strcmp(out->series[at].figure, like.figure) == 0))
        at++;
    if (at == out->count && !add_series(out, &like))
        return ar_no_memory(self->error, "the history");
    return add_point(self, &out->series[at], line, count->value, 0);
}

static enum ar_status make_series(struct history_judged *self, const struct history *history,
                                  const struct history_rules *rules, struct ar_error *error)
{
    struct making making = {.out = self, .history = history, .rules = rules, .error = error};
    enum ar_status status = each_run(&making, note_timed);
    AR_THEN(status, each_run(&making, add_run));
    size_t first = self->count;
    for (size_t i = 0; i < history->count && !status; i++)
        for (size_t j = 0; j < history->lines[i].count_count && !status; j++)
            status = add_count(&making, i, &history->lines[i].counts[j], first);
    free(making.runs);
    return status;
}

const char *history_value_text(const struct history_series *series, double value, char text[40])
{
    if (strcmp(series->figure, "outcome") != 0)
        snprintf(text, 40, value >= 1e15 || differ(value, floor(value)) ? "%.6g" : "%.0f", value);
    else if (isinf(value))
        snprintf(text, 40, "passed");
    else if (value < 0)
        snprintf(text, 40, "no run");
    else
        snprintf(text, 40, "DNF @ %.0f", value);
    return text;
}

/* ---- changes (rules in history.h) ---------------------------------------------------- */

struct judge {
    struct history_judged *out;
    const struct history *history;
    const struct history_rules *rules;
    size_t first_recent; /* index of the first line of the newest `last` commits */
    struct ar_error *error;
};

/* Positive if b is better than a. */
static double gain(const struct history_series *series, double a, double b)
{
    double more = (double)((b > a) - (b < a));
    return series->better == METRIC_HIGHER ? more : -more;
}

static enum ar_status add_change(struct judge *self, size_t series_index, size_t from,
                                 const struct change_point *point)
{
    struct history_judged *out = self->out;
    const struct history_series *series = &out->series[series_index];
    const struct history_point *at = &series->points[from + point->at];
    const struct history_line *lines = self->history->lines;
    struct history_change change = {
        .series = series_index,
        .point = from + point->at,
        .line = at->line,
        .verdict = gain(series, point->before, point->after) > 0 ? VERDICT_BETTER : VERDICT_WORSE,
        .before = point->before,
        .after = point->after,
        .change = -1,
        .p = point->p,
        .recent = at->line >= self->first_recent,
    };
    if (strcmp(lines[at->line].commit, lines[(at - 1)->line].commit) == 0)
        change.verdict = VERDICT_AMBIGUOUS;
    if (point->before > 0 && !isinf(point->before) && strcmp(series->figure, "outcome") != 0)
        change.change = fabs(point->after / point->before - 1);
    return AR_APPEND(out->changes, out->change_count, out->change_room, change, self->error,
                     "the history");
}

/* Sets the level of every point of a stretch, and which of its changes stand. */
static void set_levels(struct judge *self, struct history_series *series, size_t from, size_t end,
                       const struct change_point *points, size_t found)
{
    struct history_change *changes =
        self->out->changes ? self->out->changes + self->out->change_count - found : NULL;
    for (size_t i = 0; i < found && series->kind == CHANGE_TIMED; i++)
        for (size_t at = i ? points[i].at : 0; at < end - from; at++)
            series->points[from + at].level =
                at < points[i].at ? points[i].before : points[i].after;
    bool newest = end == series->count;
    for (size_t i = 0; i < found; i++) {
        double now = series->points[end - 1].level;
        changes[i].stands = newest && gain(series, changes[i].before, now) *
                                              gain(series, changes[i].before, changes[i].after) >
                                          0;
    }
}

/* Finds the changes of one stretch. `values` and `points` have room for it. */
static enum ar_status judge_stretch(struct judge *self, size_t index, size_t from, size_t end,
                                    double *values, struct change_point *points)
{
    struct history_series *series = &self->out->series[index];
    const struct change_rules rules = {
        .effect = series->kind == CHANGE_COUNT ? VERDICT_INSTRUCTIONS : self->rules->effect,
        .alpha = self->rules->alpha / (double)(self->out->timed ? self->out->timed : 1)};
    size_t found = 0;
    for (size_t i = from; i < end; i++)
        values[i - from] = series->points[i].value;
    AR_TRY(
        change_points_find(values, end - from, series->kind, &rules, points, &found, self->error));
    for (size_t i = 0; i < found; i++)
        AR_TRY(add_change(self, index, from, &points[i]));
    if (found == 0 && series->kind == CHANGE_TIMED) {
        statistic_sort(values, end - from);
        for (size_t i = from; i < end; i++)
            series->points[i].level = statistic_middle(values, end - from);
    }
    set_levels(self, series, from, end, points, found);
    return AR_OK;
}

static bool has_factors(const struct history_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        if (!(series->points[i].value > 0))
            return false;
    return true;
}

static enum ar_status judge_series(struct judge *self, size_t index)
{
    const struct history_series *series = &self->out->series[index];
    if (series->kind == CHANGE_TIMED && !has_factors(series)) {
        self->out->unjudged++;
        return AR_OK;
    }
    AR_FREED double *values = calloc(series->count, sizeof *values);
    AR_FREED struct change_point *points = calloc(series->count, sizeof *points);
    AR_TRY_MEMORY(values && points, self->error, "the history");
    for (size_t from = 0, end; from < series->count; from = end) {
        end = from + 1;
        while (end < series->count && !series->points[end].begins)
            end++;
        AR_TRY(judge_stretch(self, index, from, end, values, points));
    }
    return AR_OK;
}

/* Counts the commits and finds the first line of the newest ones. */
static void count_commits(struct judge *self)
{
    const struct history_line *lines = self->history->lines;
    self->first_recent = 0;
    for (size_t i = self->history->count; i-- > 0;) {
        bool seen = false;
        for (size_t j = i + 1; j < self->history->count && !seen; j++)
            seen = strcmp(lines[j].commit, lines[i].commit) == 0;
        self->out->commits += !seen;
        if (self->rules->last && self->out->commits > self->rules->last && !self->first_recent)
            self->first_recent = i + 1;
    }
}

/* The newest commit first; in a commit, WORSE first. */
static int newest_first(const void *left, const void *right)
{
    const struct history_change *a = left;
    const struct history_change *b = right;
    AR_ORDER(b->line, a->line);
    AR_ORDER(b->verdict == VERDICT_WORSE, a->verdict == VERDICT_WORSE);
    AR_ORDER(a->series, b->series);
    return (a->point > b->point) - (a->point < b->point);
}

static void look_for_waivers(struct judge *self, struct waivers *waivers)
{
    for (size_t i = 0; i < self->out->change_count; i++) {
        struct history_change *change = &self->out->changes[i];
        const struct history_series *series = &self->out->series[change->series];
        const struct waiver_case of = {series->figure,
                                       series->policy,
                                       series->workload,
                                       series->workload_name,
                                       self->history->lines[change->line].commit,
                                       change->change};
        if (waivers && change->verdict == VERDICT_WORSE && change->recent && change->stands)
            change->waiver = waivers_find(waivers, &of);
        self->out->counted += history_counts(change);
        self->out->waived += change->waiver && !change->waiver->expired;
    }
}

static size_t longest_timed(const struct history_judged *out)
{
    size_t most = 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->series[i].kind == CHANGE_TIMED && out->series[i].count > most)
            most = out->series[i].count;
    return most;
}

/* The number of runs that the newest line does not have. */
static size_t count_ended(const struct judge *self)
{
    size_t ended = 0;
    for (size_t i = 0; i < self->out->count; i++) {
        const struct history_series *series = &self->out->series[i];
        ended += strcmp(series->figure, "outcome") == 0 &&
                 series->points[series->count - 1].line + 1 < self->history->count;
    }
    return ended;
}

bool history_counts(const struct history_change *change)
{
    return change->verdict == VERDICT_WORSE && change->stands && change->recent &&
           !(change->waiver && !change->waiver->expired);
}

enum ar_status history_judge(struct history_judged *self, const struct history *history,
                             const struct history_rules *rules, struct waivers *waivers,
                             struct ar_error *error)
{
    *self = (struct history_judged){0};
    struct judge judge = {self, history, rules, 0, error};
    count_commits(&judge);
    AR_TRY(make_series(self, history, rules, error));
    for (size_t i = 0; i < self->count; i++)
        self->timed += self->series[i].kind == CHANGE_TIMED;
    for (size_t i = 0; i < self->count; i++)
        AR_TRY(judge_series(&judge, i));
    if (self->change_count)
        qsort(self->changes, self->change_count, sizeof *self->changes, newest_first);
    self->longest = longest_timed(self);
    if (self->timed)
        self->delay = change_points_delay(self->longest, rules->alpha / (double)self->timed);
    self->ended = count_ended(&judge);
    look_for_waivers(&judge, waivers);
    return AR_OK;
}

void history_judged_close(struct history_judged *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->series[i].points);
    free(self->series);
    free(self->changes);
    *self = (struct history_judged){0};
}
