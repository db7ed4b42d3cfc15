/* The page that compares the simulated device with a card. It states every bar that is missed and
 * leaves out no run. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/model.h"

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
        least = runs < least ? runs : least;
        most = runs > most ? runs : most;
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
    fputs(
        "\n\n| call | calls | under 1 GiB | within a factor of 2 | card | sim | sim - card | card "
        "waited | sim waited |\n"
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
        fputs("Driver time and stall on the card are the median of the sums of the repetitions. "
              "`2 of 3` runs: one repetition made other calls than the first, so its calls and "
              "sums do not count; step and slowdown are the median of all.\n\n",
              stream);
    fprintf(stream,
            "| workload | policy |%s calls | within a factor of 2 | driver ms card | sim | sim - "
            "card | stall ms card | sim | step ms card | sim | sim - card | slowdown card | sim | "
            "|\n| --- | --- |%s ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
            "---: | ---: | ---: | --- |\n",
            repeated ? " runs |" : "", repeated ? " ---: |" : "");
}

static void put_cells(FILE *stream, const struct model_cell *cells, size_t count, bool repeated)
{
    put_cells_header(stream, repeated);
    for (size_t i = 0; i < count; i++) {
        const struct model_cell *cell = &cells[i];
        double card = step_of(&cell->card);
        double sim = step_of(&cell->sim);
        fprintf(stream, "| %s | `%s` |", cell->card.workload, cell->card.policy);
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
          "one, by the same measures. The rest of this page uses the median of the runs (the "
          "mean of the two middle ones if their number is even).\n\n"
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
          "baseline waits for them too.\n\n| "
          "workload | policies | rho |\n| --- | ---: | ---: |\n",
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
        fprintf(stream, "| %s | %zu |", cells[begin].card.workload, policies);
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
    fputs(
        "\n## Calls of 1 GiB or more\n\nThese calls wait until the driver has cleaned memory that "
        "this run or another one freed before, so one call does not predict the next.\n\n"
        "| workload | policy | event | call | bytes | card ms | sim ms |\n"
        "| --- | --- | ---: | --- | ---: | ---: | ---: |\n",
        stream);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < cells[i].large_count; j++) {
            const struct model_large *large = &cells[i].large[j];
            char bytes[32];
            fprintf(stream, "| %s | `%s` | %" PRIu64 " | %s%s | %s |", cells[i].card.workload,
                    cells[i].card.policy, large->card.event, ar_device_call_name(large->card.call),
                    large->card.refused ? ", refused" : "",
                    ar_size_print(large->card.bytes, bytes, sizeof bytes));
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
