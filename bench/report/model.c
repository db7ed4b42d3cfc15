#include "bench/report/model.h"

#include <errno.h>
#include <math.h>

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/table.h"
#include "bench/statistics/statistics.h"

#define COLUMNS_MOST     256
#define LINE_MOST        65536 /* bytes of a line of a result */
#define REPETITIONS_MOST 1000

/* ---- results -------------------------------------------------------------------------------- */

enum column { POLICY, WORKLOAD, PASSED, SLOWDOWN, STEP, TIME, COLUMN_COUNT };

/* Returns the name of a missing column, or NULL. */
static const char *find_columns(char **fields, size_t count, size_t places[COLUMN_COUNT])
{
    static const char *const names[COLUMN_COUNT] = {
        "policy_spec", "workload", "passed", "slowdown", "steady_step_ns", "device_time_ns"};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        for (places[i] = 0; places[i] < count; places[i]++)
            if (strcmp(fields[places[i]], names[i]) == 0)
                break;
        if (places[i] == count)
            return names[i];
    }
    return NULL;
}

/* The values of the repetitions. */
struct reading {
    double values[3][REPETITIONS_MOST]; /* SLOWDOWN, STEP, TIME */
    size_t counts[3];
    size_t rows;
};

/* Returns what is wrong with the row, or NULL. */
static const char *take_row(struct reading *reading, char **fields,
                            const size_t places[COLUMN_COUNT], struct model_result *out)
{
    const char *policy = fields[places[POLICY]], *workload = fields[places[WORKLOAD]];
    if (strlen(policy) >= MODEL_NAME_ROOM || strlen(workload) >= MODEL_NAME_ROOM)
        return "policy_spec and workload have fewer than 4096 bytes each";
    if (reading->rows == 0) {
        strcpy(out->policy, policy);
        strcpy(out->workload, workload);
        out->passed = true;
    } else if (strcmp(out->policy, policy) != 0 || strcmp(out->workload, workload) != 0 ||
               reading->rows == REPETITIONS_MOST) {
        return "wanted one policy and one workload, repeated at most";
    }
    reading->rows++;
    out->passed = out->passed && strcmp(fields[places[PASSED]], "true") == 0;
    for (int i = 0; i < 3; i++) {
        const char *text = fields[places[SLOWDOWN + i]];
        double value;
        if (text[0] && (!ar_number_parse(text, &value) || !isfinite(value) || value < 0))
            return "slowdown, steady_step_ns and device_time_ns are numbers from 0, or empty";
        if (text[0])
            reading->values[i][reading->counts[i]++] = value;
    }
    return NULL;
}

static enum ar_status read_rows(FILE *file, const char *path, struct reading *reading,
                                struct model_result *out, struct ar_error *error)
{
    AR_FREED char *line = malloc(LINE_MOST);
    char *fields[COLUMNS_MOST];
    size_t places[COLUMN_COUNT];
    size_t columns = 0;
    AR_TRY_MEMORY(line, error, "reading %s", path);
    for (size_t number = 1; fgets(line, LINE_MOST, file); number++) {
        if (strlen(line) + 1 >= LINE_MOST)
            return ar_error_set(
                error, AR_FORMAT,
                "%s:%zu: the line has more than %d bytes; is this a file of `run --csv`?", path,
                number, LINE_MOST - 2);
        size_t count = csv_split(line, fields, COLUMNS_MOST);
        if (number == 1) {
            columns = count;
            const char *missing = find_columns(fields, count, places);
            if (missing)
                return ar_error_set(error, AR_FORMAT,
                                    "%s: is no file of `run --csv`: it lacks the column %s", path,
                                    missing);
            continue;
        }
        const char *wrong = count == columns ? take_row(reading, fields, places, out)
                                             : "it has not as many fields as the first line";
        if (wrong)
            return ar_error_set(error, AR_FORMAT, "%s:%zu: %s", path, number, wrong);
    }
    if (ferror(file))
        return ar_error_set(error, AR_IO, "%s: cannot be read to its end: %s", path,
                            strerror(errno));
    if (!reading->rows)
        return ar_error_set(error, AR_FORMAT, "%s: holds no run", path);
    return AR_OK;
}

enum ar_status model_result_read(const char *path, struct model_result *out, struct ar_error *error)
{
    AR_FREED struct reading *reading = calloc(1, sizeof *reading);
    AR_TRY_MEMORY(reading, error, "reading %s", path);
    *out = (struct model_result){.policy = ""};
    FILE *file = fopen(path, "re");
    if (!file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    enum ar_status status = read_rows(file, path, reading, out, error);
    fclose(file);
    if (!status) {
        out->slowdown = model_median(reading->values[0], reading->counts[0]);
        out->step_ns = model_median(reading->values[1], reading->counts[1]);
        out->device_time_ns = model_median(reading->values[2], reading->counts[2]);
    }
    return status;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void model_kind_add(struct model_kind *whole, const struct model_kind *part)
{
    whole->count += part->count;
    whole->small += part->small;
    whole->met += part->met;
    whole->card_ns += part->card_ns;
    whole->sim_ns += part->sim_ns;
    whole->card_waited_ns += part->card_waited_ns;
    whole->sim_waited_ns += part->sim_waited_ns;
}

static bool is_met(uint64_t card_ns, uint64_t sim_ns)
{
    /* Halves, rounded up: twice a time may overflow 64 bits. */
    return sim_ns - sim_ns / 2 <= card_ns && card_ns - card_ns / 2 <= sim_ns;
}

static bool same_calls(const struct call_list *card, const struct call_list *sim)
{
    if (card->count != sim->count)
        return false;
    for (size_t i = 0; i < card->count; i++) {
        const struct driver_call *a = &card->items[i], *b = &sim->items[i];
        bool unknown = a->refused && !a->bytes; /* in files of before, refused calls had no bytes */
        if (a->call != b->call || (a->bytes != b->bytes && !unknown) || a->refused != b->refused)
            return false;
    }
    return true;
}

static enum ar_status pair(struct model_cell *cell, const struct driver_call *card,
                           const struct driver_call *sim, struct ar_error *error)
{
    struct model_kind *kind = &cell->kinds[card->call];
    bool large = card->bytes >= MODEL_LARGE_BYTES;
    kind->count++;
    kind->small += !large;
    kind->met += !large && is_met(card->ns, sim->ns);
    kind->card_ns += (double)card->ns;
    kind->sim_ns += (double)sim->ns;
    kind->card_waited_ns += (double)card->waited_ns;
    kind->sim_waited_ns += (double)sim->waited_ns;
    if (large)
        AR_TRY_MEMORY(AR_ARRAY_ADD(cell->large, cell->large_count, cell->large_room,
                                   ((struct model_large){*card, *sim})),
                      error, "driver calls");
    return AR_OK;
}

/* The index of the first call of that kind from `from` on, or the length of the list. */
static size_t next_of(const struct call_list *list, enum ar_device_call call, size_t from)
{
    while (from < list->count && list->items[from].call != call)
        from++;
    return from;
}

enum ar_status model_compare(struct model_cell *cell, const struct call_list *card,
                             const struct call_list *sim, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    cell->same_calls = same_calls(card, sim);
    for (int call = 0; call < AR_DEVICE_CALL_COUNT; call++) {
        size_t left = next_of(card, (enum ar_device_call)call, 0);
        size_t right = next_of(sim, (enum ar_device_call)call, 0);
        while (left < card->count && right < sim->count && !status) {
            status = pair(cell, &card->items[left], &sim->items[right], error);
            left = next_of(card, (enum ar_device_call)call, left + 1);
            right = next_of(sim, (enum ar_device_call)call, right + 1);
        }
        model_kind_add(&cell->all, &cell->kinds[call]);
    }
    return status;
}

void model_cell_close(struct model_cell *cell)
{
    free(cell->large);
    free(cell->again);
    *cell = (struct model_cell){.large = NULL};
}

double model_error(double card, double sim)
{
    return card > 0 ? sim / card - 1 : (double)NAN;
}

/* The rank of values[index] from 1; equal values share their mean rank. */
static double rank_of(const double *values, size_t count, size_t index)
{
    size_t below = 0;
    size_t equal = 0;
    for (size_t i = 0; i < count; i++) {
        below += values[i] < values[index];
        equal += values[i] == values[index];
    }
    return (double)below + ((double)equal + 1) / 2;
}

double model_rank_correlation(const double *a, const double *b, size_t count)
{
    double mean = ((double)count + 1) / 2;
    double ab = 0, aa = 0, bb = 0;
    if (count < 3)
        return (double)NAN;
    for (size_t i = 0; i < count; i++) {
        double left = rank_of(a, count, i) - mean;
        double right = rank_of(b, count, i) - mean;
        ab += left * right;
        aa += left * left;
        bb += right * right;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : (double)NAN;
}

/* ---- repetitions ---------------------------------------------------------------------------- */

/* The median time of a call leaves out the calls that were interrupted. The sum of a run is
 * different: every run has some slow calls, and which ones is chance, so a sum of medians of calls
 * would be less than any run takes; therefore it is the median of the runs' sums. The distance of
 * the repetitions from each other limits how close a model can come to any one of them. */

double model_median(double *values, size_t count)
{
    statistic_sort(values, count);
    return count ? statistic_middle(values, count) : (double)NAN;
}

/* The first run and those that made the same calls. */
struct alike {
    const struct call_list **runs;
    size_t count;
    double *ns, *waited_ns; /* a value of each run, for a median */
};

/* Fills in `again`: each run compared with the first. */
static enum ar_status alike_find(struct alike *self, struct model_cell *cell,
                                 const struct call_list *runs, size_t count, struct ar_error *error)
{
    self->runs = calloc(count, sizeof(*self->runs));
    self->ns = calloc(count, sizeof *self->ns);
    self->waited_ns = calloc(count, sizeof *self->waited_ns);
    cell->again = calloc(count, sizeof *cell->again);
    AR_TRY_MEMORY(self->runs && self->ns && self->waited_ns && cell->again, error, "runs");
    cell->runs = count;
    self->runs[self->count++] = &runs[0];
    for (size_t run = 1; run < count; run++) {
        AR_CLOSED(model_cell_close) struct model_cell one = {.large = NULL};
        AR_TRY(model_compare(&one, &runs[0], &runs[run], error));
        if (one.same_calls) {
            cell->again[cell->again_count++] = one.all;
            self->runs[self->count++] = &runs[run];
        }
    }
    return AR_OK;
}

/* The medians of the sums of the calls that have a counterpart on `sim`. */
static enum ar_status sum_runs(struct alike *self, const struct call_list *sim,
                               struct model_kind *sums, struct ar_error *error)
{
    for (size_t run = 0; run < self->count; run++) {
        AR_CLOSED(model_cell_close) struct model_cell one = {.large = NULL};
        AR_TRY(model_compare(&one, self->runs[run], sim, error));
        self->ns[run] = one.all.card_ns;
        self->waited_ns[run] = one.all.card_waited_ns;
    }
    sums->card_ns = model_median(self->ns, self->count);
    sums->card_waited_ns = model_median(self->waited_ns, self->count);
    return AR_OK;
}

/* In whole ns. */
static uint64_t whole_median(double *values, size_t count)
{
    double ns = model_median(values, count) + 0.5;
    return ns < (double)UINT64_MAX ? (uint64_t)ns : UINT64_MAX;
}

/* Leaves the median of each call over the runs in the first of them. */
static void take_medians(struct alike *self, struct call_list *first)
{
    for (size_t i = 0; i < first->count; i++) {
        for (size_t run = 0; run < self->count; run++) {
            self->ns[run] = (double)self->runs[run]->items[i].ns;
            self->waited_ns[run] = (double)self->runs[run]->items[i].waited_ns;
        }
        first->items[i].ns = whole_median(self->ns, self->count);
        first->items[i].waited_ns = whole_median(self->waited_ns, self->count);
    }
}

enum ar_status model_repeat_compare(struct model_cell *cell, struct call_list *runs, size_t count,
                                    const struct call_list *sim, struct ar_error *error)
{
    struct alike alike = {.runs = NULL};
    struct model_kind sums = {0};
    enum ar_status status = alike_find(&alike, cell, runs, count, error);
    bool several = alike.count > 1; /* one run is its own median */
    if (!status && several)
        status = sum_runs(&alike, sim, &sums, error);
    if (!status && several)
        take_medians(&alike, &runs[0]);
    AR_THEN(status, model_compare(cell, &runs[0], sim, error));
    if (!status && several) {
        cell->all.card_ns = sums.card_ns;
        cell->all.card_waited_ns = sums.card_waited_ns;
    }
    free(alike.runs);
    free(alike.ns);
    free(alike.waited_ns);
    return status;
}

/* The median of the known values; changes their order. */
static double median_of_known(double *values, size_t count)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            values[known++] = values[i];
    return model_median(values, known);
}

enum ar_status model_repeat_results(struct model_result *runs, size_t count, struct ar_error *error)
{
    double *values = calloc(count, sizeof *values);
    AR_TRY_MEMORY(values, error, "runs");
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].slowdown;
    runs[0].slowdown = median_of_known(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].step_ns;
    runs[0].step_ns = median_of_known(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = runs[i].device_time_ns;
    runs[0].device_time_ns = median_of_known(values, count);
    for (size_t i = 1; i < count; i++)
        runs[0].passed = runs[0].passed && runs[i].passed;
    free(values);
    return AR_OK;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* The page that compares the simulated device with a card. It states every bar that is missed and
 * leaves out no run. */

#define SUM_BAR  0.25 /* of a cell's driver time */
#define STEP_BAR 0.10 /* of a step's time */

static void put_percent(FILE *stream, double share)
{
    if (isnan(share))
        fputs(" - |", stream);
    else
        fprintf(stream, " %.1f %% |", 100 * share);
}

static void put_error(FILE *stream, double error)
{
    if (isnan(error))
        fputs(" - |", stream);
    else
        fprintf(stream, " %+.1f %% |", 100 * error);
}

static void put_ms(FILE *stream, double ns)
{
    if (isnan(ns))
        fputs(" - |", stream);
    else
        fprintf(stream, " %.3f |", ns / 1e6);
}

static double share(size_t part, size_t whole)
{
    return whole ? (double)part / (double)whole : (double)NAN;
}

/* The time of a step, or of the whole run if it has no steps. */
static double step_of(const struct model_result *result)
{
    return isnan(result->step_ns) ? result->device_time_ns : result->step_ns;
}

static void count_bar(FILE *stream, const char *what, size_t met, size_t of, double bar)
{
    fprintf(stream, "| %s | %zu of %zu |", what, met, of);
    put_percent(stream, share(met, of));
    fprintf(stream, " %.0f %% | %s |\n", 100 * bar,
            !of                                      ? "nothing to measure"
            : (double)met >= bar * (double)of - 1e-9 ? "met"
                                                     : "missed");
}

/* The number of runs whose calls count. */
static size_t runs_of(const struct model_cell *cell)
{
    return 1 + cell->again_count;
}

/* The number of runs that the figures are medians of. */
static void put_runs(FILE *stream, const struct model_cell *cells, size_t count)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t runs = runs_of(&cells[i]);
        AR_LOWER(least, runs);
        AR_RAISE(most, runs);
    }
    if (least < most)
        fprintf(stream, ", medians of %zu to %zu runs", least, most);
    else if (most > 1)
        fprintf(stream, ", medians of %zu runs", most);
}

static void put_sums(FILE *stream, const struct model_cell *cells, size_t count, bool repeated)
{
    struct model_kind all = {0};
    size_t sums = 0, sums_met = 0, steps = 0, steps_met = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = model_error(cells[i].all.card_ns, cells[i].all.sim_ns);
        double step = model_error(step_of(&cells[i].card), step_of(&cells[i].sim));
        model_kind_add(&all, &cells[i].all);
        sums += isnan(sum) ? 0 : 1;
        sums_met += fabs(sum) <= SUM_BAR;
        steps += isnan(step) ? 0 : 1;
        steps_met += fabs(step) <= STEP_BAR;
    }
    fputs("| what", stream);
    if (repeated)
        put_runs(stream, cells, count);
    fputs(" | met | share | bar | |\n| --- | --- | --- | --- | --- |\n", stream);
    count_bar(stream, "calls under 1 GiB within a factor of 2", all.met, all.small, 0.9);
    count_bar(stream, "driver time of policy x workload within 25 %", sums_met, sums, 0.9);
    count_bar(stream, "step time within 10 %", steps_met, steps, 1);
}

static void put_kinds(FILE *stream, const struct model_cell *cells, size_t count, bool repeated)
{
    fputs("\n## Kinds of call\n\nTimes are the driver's own, in ms; waited is the time for which "
          "the call waited for the device in addition.",
          stream);
    if (repeated)
        fputs(" With repetitions they are sums of the calls' medians: a call that is slow in one "
              "run only counts in the sums of the runs below, but not in these.",
              stream);
    fputs("\n\n| call | calls | under 1 GiB | within a factor of 2 | card | sim | sim - card | "
          "card waited | sim waited |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
          stream);
    for (int call = 0; call < AR_DEVICE_CALL_COUNT; call++) {
        struct model_kind kind = {0};
        for (size_t i = 0; i < count; i++)
            model_kind_add(&kind, &cells[i].kinds[call]);
        if (!kind.count)
            continue;
        fprintf(stream, "| %s | %zu | %zu |", ar_device_call_name((enum ar_device_call)call),
                kind.count, kind.small);
        put_percent(stream, share(kind.met, kind.small));
        put_ms(stream, kind.card_ns);
        put_ms(stream, kind.sim_ns);
        put_error(stream, model_error(kind.card_ns, kind.sim_ns));
        put_ms(stream, kind.card_waited_ns);
        put_ms(stream, kind.sim_waited_ns);
        fputc('\n', stream);
    }
}

/* The header of the table of runs, and the meaning of its columns with repetitions. */
static void put_cells_header(FILE *stream, bool repeated)
{
    fputs("\n## Runs\n\n", stream);
    if (repeated)
        fputs("Driver time and stall on the card are the median of the sums of the repetitions. `2 "
              "of 3` runs: one repetition made other calls than the first, so its calls and sums "
              "do not count; step and slowdown are the median of all.\n\n",
              stream);
    fprintf(stream,
            "| workload | policy |%s calls | within a factor of 2 | driver ms card | sim | sim - "
            "card | stall ms card | sim | step ms card | sim | sim - card | slowdown card | sim | "
            "|\n| --- | --- |%s ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
            "---: | ---: | ---: | --- |\n",
            repeated ? " runs |" : "", repeated ? " ---: |" : "");
}

static void put_names(FILE *stream, const struct model_cell *cell)
{
    fputs("| ", stream);
    markdown_text(stream, cell->card.workload);
    fputs(" | `", stream);
    markdown_text(stream, cell->card.policy);
    fputs("` |", stream);
}

static void put_cells(FILE *stream, const struct model_cell *cells, size_t count, bool repeated)
{
    put_cells_header(stream, repeated);
    for (size_t i = 0; i < count; i++) {
        const struct model_cell *cell = &cells[i];
        double card = step_of(&cell->card);
        double sim = step_of(&cell->sim);
        put_names(stream, cell);
        if (repeated)
            fprintf(stream, " %zu", runs_of(cell));
        if (repeated && runs_of(cell) < cell->runs)
            fprintf(stream, " of %zu", cell->runs);
        fprintf(stream, "%s %zu |", repeated ? " |" : "", cell->all.count);
        put_percent(stream, share(cell->all.met, cell->all.small));
        put_ms(stream, cell->all.card_ns);
        put_ms(stream, cell->all.sim_ns);
        put_error(stream, model_error(cell->all.card_ns, cell->all.sim_ns));
        put_ms(stream, cell->all.card_waited_ns);
        put_ms(stream, cell->all.sim_waited_ns);
        put_ms(stream, card);
        put_ms(stream, sim);
        put_error(stream, model_error(card, sim));
        if (isnan(cell->card.slowdown) || isnan(cell->sim.slowdown))
            fputs(" - | - |", stream);
        else
            fprintf(stream, " %.4f | %.4f |", cell->card.slowdown, cell->sim.slowdown);
        fprintf(stream, "%s%s |\n", cell->same_calls ? "" : " not the same calls",
                cell->card.passed && cell->sim.passed ? "" : " did not finish");
    }
}

/* The distance between single runs on the card: no model can be closer to all of them. */
static void put_again(FILE *stream, const struct model_cell *cells, size_t count)
{
    struct model_kind all = {0};
    size_t pairs = 0, sums_met = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < cells[i].again_count; j++) {
            const struct model_kind *again = &cells[i].again[j];
            model_kind_add(&all, again);
            pairs++;
            sums_met += fabs(model_error(again->card_ns, again->sim_ns)) <= SUM_BAR;
        }
    if (!pairs)
        return;
    fputs("\n## The card compared with itself\n\nRepetitions of a run are compared with the first "
          "one, by the same measures. The rest of this page uses the median of the runs (the mean "
          "of the two middle ones if their number is even).\n\n"
          "| what | met | share |\n| --- | --- | --- |\n",
          stream);
    fprintf(stream, "| calls under 1 GiB within a factor of 2 | %zu of %zu |", all.met, all.small);
    put_percent(stream, share(all.met, all.small));
    fprintf(stream, "\n| driver time of policy x workload within 25 %% | %zu of %zu |", sums_met,
            pairs);
    put_percent(stream, share(sums_met, pairs));
    fputc('\n', stream);
}

/* The runs of one workload are adjacent. */
static void put_ranks(FILE *stream, const struct model_cell *cells, size_t count)
{
    double *card = calloc(count ? count : 1, sizeof *card);
    double *sim = calloc(count ? count : 1, sizeof *sim);
    fputs("\n## Order of the policies\n\nSpearman's rank correlation of the policies by slowdown, "
          "card compared with sim. On a card the slowdown of a run includes waits of the first run "
          "of a process, for example for the library of matrix products to load; on sim the "
          "baseline waits for them too.\n\n| workload | policies | rho |\n| --- | ---: | ---: |\n",
          stream);
    for (size_t begin = 0, end; card && sim && begin < count; begin = end) {
        size_t policies = 0;
        for (end = begin;
             end < count && strcmp(cells[end].card.workload, cells[begin].card.workload) == 0;
             end++) {
            if (isnan(cells[end].card.slowdown) || isnan(cells[end].sim.slowdown))
                continue;
            card[policies] = cells[end].card.slowdown;
            sim[policies++] = cells[end].sim.slowdown;
        }
        double rho = model_rank_correlation(card, sim, policies);
        fputs("| ", stream);
        markdown_text(stream, cells[begin].card.workload);
        fprintf(stream, " | %zu |", policies);
        if (isnan(rho))
            fputs(" - |\n", stream);
        else
            fprintf(stream, " %.3f |\n", rho);
    }
    free(card);
    free(sim);
}

static void put_large(FILE *stream, const struct model_cell *cells, size_t count)
{
    fputs("\n## Calls of 1 GiB or more\n\nThese calls wait until the driver has cleaned memory "
          "that this run or another one freed before, so one call does not predict the next.\n\n"
          "| workload | policy | event | call | bytes | card ms | sim ms |\n"
          "| --- | --- | ---: | --- | ---: | ---: | ---: |\n",
          stream);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < cells[i].large_count; j++) {
            const struct model_large *large = &cells[i].large[j];
            put_names(stream, &cells[i]);
            fprintf(stream, " %" PRIu64 " | %s%s | %s |", large->card.event,
                    ar_device_call_name(large->card.call), large->card.refused ? ", refused" : "",
                    AR_SIZE(large->card.bytes));
            put_ms(stream, (double)large->card.ns);
            put_ms(stream, (double)large->sim.ns);
            fputc('\n', stream);
        }
    }
}

void model_page(FILE *stream, const struct model_cell *cells, size_t count, bool repeated)
{
    fputs("# The simulated device compared with the card\n\nThe same runs on both. `sim - card` is "
          "the error of the model, relative to the measured value. A step is the median of the "
          "steady steps, or the whole run if it has none.\n\n",
          stream);
    put_sums(stream, cells, count, repeated);
    put_again(stream, cells, count);
    put_ranks(stream, cells, count);
    put_kinds(stream, cells, count, repeated);
    put_cells(stream, cells, count, repeated);
    put_large(stream, cells, count);
}
