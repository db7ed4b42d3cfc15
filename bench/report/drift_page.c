#include "bench/report/pages.h"

#include <math.h>

#include "allocators/base/size.h"
#include "bench/report/data_writer.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"

/* "2.5 hours". */
static const char *time_print(double ns, char *text, size_t room)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{86400e9, "days"}, {3600e9, "hours"}, {60e9, "minutes"}, {1e9, "s"},
                 {1e6, "ms"},       {1e3, "us"},       {0, "ns"}};
    size_t i = 0;
    while (ns < units[i].ns)
        i++;
    snprintf(text, room, "%.4g %s", ns / fmax(units[i].ns, 1), units[i].name);
    return text;
}

static void print_order(FILE *stream, const struct learned_model *model)
{
    switch (model->order) {
    case LEARNED_REPEAT:
        say(stream,
            "The steps repeat themselves exactly, with a period of %zu, so the long run does too.",
            model->period);
        return;
    case LEARNED_PERIOD:
        say(stream,
            "The kinds of steps have a period of %zu; sizes are drawn from the recorded steps of "
            "the same place in it.",
            model->period);
        return;
    case LEARNED_REPLAY:
        say(stream, "Sizes or live bytes have a trend over the recording, so its steps are "
                    "repeated in their order: what comes after it is not known.");
        return;
    case LEARNED_FOLLOW:
        break;
    }
    say(stream,
        "Steps are drawn from the recorded ones that may follow each other, %.3g in a row on "
        "average.",
        model->run_length > 1 ? model->run_length : 1.0);
}

static void print_sizes(FILE *stream, const struct learned_model *model)
{
    const struct learned_class *loose = &model->classes[model->class_count];
    size_t tails = 0, steady = model->step_count - model->warmup;
    double unseen = 0;
    for (size_t i = 0; i <= model->class_count; i++) {
        tails += model->classes[i].tail_count;
        unseen += model->classes[i].unseen * (double)model->classes[i].member_count;
    }
    if (unseen > 0)
        say(stream,
            "Sizes vary: %.0f %% of drawn steps get sizes between or beyond those recorded.",
            100 * unseen / (double)steady);
    if (tails)
        say(stream,
            "Steps larger than any recorded one are drawn from tails that are fitted to the "
            "largest %zu.",
            tails);
    if (loose->member_count)
        say(stream,
            "%zu of the %zu steady steps have events of their own; the sizes that vary in them "
            "grow or shrink together.",
            loose->member_count, steady);
}

static void print_head(FILE *stream, const struct drift_page *page)
{
    const struct learned_model *model = page->model;
    const struct drift_answer *first = page->answers;
    char step[32], all[32];
    say(stream, "%s: %zu steps are recorded%s; the start-up is %zu of them.", page->info->name,
        model->step_count,
        model->recording.marked ? "" : ", found by the rises and falls of live bytes",
        model->warmup);
    print_order(stream, model);
    print_sizes(stream, model);
    if (model->leaked_bytes > 0)
        say(stream,
            "The program itself keeps %.4g bytes more with each step, in blocks that it never "
            "frees.",
            model->leaked_bytes);
    if (model->step_ns > 0)
        say(stream, "A step takes %s%s, and %" PRIu64 " steps take %s.",
            time_print(model->step_ns, step, sizeof step),
            model->recording.timed ? "" : " (the sum of its kernels)", page->steps,
            time_print(model->step_ns * (double)page->steps, all, sizeof all));
    else
        say(stream, "The recording has no times: the drift in a day is not known.");
    say(stream,
        "%zu run%s of each policy, on %s. Intervals are those of a further run, at %.0f %%.",
        first->run_count, first->run_count == 1 ? "" : "s", AR_SIZE(page->capacity_bytes),
        100 * TREND_LEVEL);
}

static enum ar_status print_levels(FILE *stream, const struct drift_answer *answer,
                                   struct ar_error *error)
{
    struct table *table = table_of("after|steps; reserved|MiB; from|MiB; to|MiB; live|MiB; runs");
    for (size_t i = 0; i < answer->level_count; i++) {
        const struct drift_level *level = &answer->levels[i];
        table_cell(table, "%" PRIu64, level->step);
        table_number(table, true, 1, level->reserved.estimate);
        table_number(table, true, 1, level->reserved.low);
        table_number(table, true, 1, level->reserved.high);
        table_number(table, true, 1, level->live.estimate);
        table_cell(table, "%zu", level->runs);
    }
    return table_end(table, stream, TABLE_TEXT, error);
}

/* Fewer samples have no trend that could be told from chance. */
static bool knows_trend(const struct drift_answer *answer)
{
    return answer->half_samples >= 4;
}

/* Whether the interval of the drift allows for more growth in as many steps than the level is
 * uncertain by otherwise. */
static bool may_grow(const struct drift_page *page, const struct drift_answer *answer)
{
    const double level =
        answer->level_count ? answer->levels[answer->level_count - 1].reserved.estimate : 0;
    return answer->per_million.high * (double)page->steps / 1e6 > ADVISE_UNCERTAINTY * level;
}

static void print_verdict(FILE *stream, const struct drift_page *page,
                          const struct drift_answer *answer)
{
    const struct trend_interval *million = &answer->per_million, *day = &answer->per_day;
    char text[160] = "";
    if (page->model->step_ns > 0)
        snprintf(text, sizeof text, "; %.3g MiB a day (%.3g to %.3g)", day->estimate, day->low,
                 day->high);
    if (knows_trend(answer))
        say(stream, "Drift over the last half: %.3g MiB in 10^6 steps (%.3g to %.3g)%s.",
            million->estimate, million->low, million->high, text);
    if (!knows_trend(answer))
        say(stream, "Whether it levels off is not known: the runs are too short for a trend.");
    else if (answer->has_trend)
        say(stream, "It does not level off: the last half has a trend (Mann-Kendall, p = %.2g)%s.",
            answer->p,
            answer->live_p < TREND_ALPHA &&
                    fabs(answer->live_per_million) > 0.5 * fabs(million->estimate)
                ? ", and live bytes have it too: it is the program's own"
                : "");
    else
        say(stream, "%s: the last half has no trend (Mann-Kendall, p = %.2g).%s",
            may_grow(page, answer) ? "Whether it levels off cannot be told" : "It levels off",
            answer->p,
            million->high > million->estimate + 0.5 && million->estimate < 0.5
                ? " The interval of its drift is wide because one more growth in that half is "
                  "possible, although no run has it: more seeds or steps (--seeds, --steps) or a "
                  "longer recording make it narrower."
                : "");
    const char *capacity = AR_SIZE(page->capacity_bytes);
    if (page->model->order == LEARNED_REPEAT && !answer->failed_runs)
        say(stream,
            "Out of memory by step %" PRIu64 " at %s: no, in none of %zu runs of the "
            "same steps. Retries after a flush: %" PRIu64 ".",
            page->steps, capacity, answer->run_count, answer->retries);
    else
        say(stream,
            "Out of memory by step %" PRIu64 " at %s: %zu of %zu runs, a probability of "
            "%.2g (%.2g to %.2g). Retries after a flush: %" PRIu64 ".",
            page->steps, capacity, answer->failed_runs, answer->run_count, answer->failed.estimate,
            answer->failed.low, answer->failed.high, answer->retries);
    for (size_t i = 0; i < answer->run_count; i++)
        if (answer->runs[i].failed_step) {
            say(stream,
                "The run with seed %" PRIu64 " ends in step %" PRIu64 ", at a request of %s: %s.",
                answer->runs[i].seed, answer->runs[i].failed_step,
                AR_SIZE(answer->runs[i].failed_bytes), replay_cause_name(answer->runs[i].cause));
            break;
        }
    if (answer->runs->misfits)
        say(stream,
            "In the first run, %" PRIu64 " steps followed one that leaves other blocks "
            "than the next one expects; those were freed or requested in between.",
            answer->runs->misfits);
}

static enum ar_status print_pins(FILE *stream, const struct drift_run *run, struct ar_error *error)
{
    say(stream,
        "Blocks that keep free memory at the end of the first run; %.1f MiB more are free in "
        "segments or pages without one.",
        (double)run->cached_bytes / (double)AR_MIB);
    if (!run->pin_count)
        return AR_OK;
    struct table *table =
        table_of("kept free|MiB; alone|MiB; segments; blocks; of each; step; tag<");
    for (size_t i = 0; i < run->pin_count; i++) {
        const struct drift_pin *pin = &run->pins[i];
        table_number(table, true, 1, (double)pin->free_bytes / (double)AR_MIB);
        table_number(table, true, 1, (double)pin->alone_bytes / (double)AR_MIB);
        table_cell(table, "%" PRIu64, pin->segments);
        table_cell(table, "%" PRIu64, pin->blocks);
        table_cell(table, "%s", pin->block_bytes ? AR_SIZE(pin->block_bytes) : "differ");
        table_cell(table, pin->first_step == pin->last_step ? "%u" : "%u-%u", pin->first_step + 1,
                   pin->last_step + 1);
        page_tag_cell(table, pin->tag);
    }
    return table_end(table, stream, TABLE_TEXT, error);
}

enum ar_status drift_page_print(FILE *stream, const struct drift_page *page, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    print_head(stream, page);
    for (size_t i = 0; !status && i < page->answer_count; i++) {
        const struct drift_answer *answer = &page->answers[i];
        fprintf(stream, "\n%s\n", answer->policy);
        status = print_levels(stream, answer, error);
        print_verdict(stream, page, answer);
        AR_THEN(status, print_pins(stream, answer->runs, error));
    }
    return status;
}

/* ---- JSON and CSV --------------------------------------------------------------------------- */

static void write_interval(struct json_writer *json, const char *key,
                           const struct trend_interval *interval)
{
    json_begin_object(json, key);
    JSON_PUT(json, interval, estimate, low, high);
    json_end_object(json);
}

static void write_pins(struct json_writer *json, const struct drift_run *run)
{
    json_begin_array(json, "pinning_blocks");
    for (size_t i = 0; i < run->pin_count; i++) {
        const struct drift_pin *pin = &run->pins[i];
        json_begin_object(json, NULL);
        json_put_text(json, "tag", pin->tag[0] ? pin->tag : NULL);
        json_put_some(json, "block_bytes", pin->block_bytes);
        JSON_PUT(json, pin, blocks, bytes, segments, segment_bytes, free_bytes, alone_bytes);
        json_put_integer(json, "first_step", pin->first_step + 1u);
        json_put_integer(json, "last_step", pin->last_step + 1u);
        json_end_object(json);
    }
    json_end_array(json);
    json_put_integer(json, "cached_bytes", run->cached_bytes);
}

static void write_runs(struct json_writer *json, const struct drift_answer *answer)
{
    json_begin_array(json, "runs");
    for (size_t i = 0; i < answer->run_count; i++) {
        const struct drift_run *run = &answer->runs[i];
        json_begin_object(json, NULL);
        JSON_PUT(json, run, seed, steps);
        json_put_some(json, "failed_step", run->failed_step);
        json_put_text(json, "cause", run->failed_step ? replay_cause_name(run->cause) : NULL);
        JSON_PUT(json, run, retries, flushes, misfits, least_live_bytes, most_live_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Which run meets a state first depends on the workers, so these numbers may differ between two
 * commands. All others are the same. */
static void write_context(struct json_writer *json, const struct drift_answer *answer)
{
    uint64_t steps = 0;
    uint64_t events = 0;
    for (size_t i = 0; i < answer->run_count; i++) {
        steps += answer->runs[i].replayed_steps;
        events += answer->runs[i].events;
    }
    json_begin_object(json, "context");
    json_put_integer(json, "replayed_steps", steps);
    json_put_integer(json, "replayed_events", events);
    json_end_object(json);
}

static void write_answer(struct json_writer *json, const struct drift_page *page,
                         const struct drift_answer *answer)
{
    json_begin_object(json, NULL);
    json_put_text(json, "policy", answer->policy);
    json_begin_array(json, "levels");
    for (size_t i = 0; i < answer->level_count; i++) {
        json_begin_object(json, NULL);
        JSON_PUT(json, &answer->levels[i], step, runs);
        write_interval(json, "reserved_mib", &answer->levels[i].reserved);
        write_interval(json, "live_mib", &answer->levels[i].live);
        json_end_object(json);
    }
    json_end_array(json);
    write_interval(json, "mib_per_million_steps", &answer->per_million);
    if (page->model->step_ns > 0)
        write_interval(json, "mib_per_day", &answer->per_day);
    json_put_real(json, "live_mib_per_million_steps", answer->live_per_million);
    json_put_real(json, "trend_p", answer->p);
    if (knows_trend(answer))
        json_put_bool(json, "levels_off", !answer->has_trend);
    else
        json_put_null(json, "levels_off");
    write_interval(json, "out_of_memory", &answer->failed);
    json_put_integer(json, "retries", answer->retries);
    write_context(json, answer);
    write_runs(json, answer);
    write_pins(json, answer->runs);
    json_end_object(json);
}

void drift_json_write(struct json_writer *json, const struct drift_page *page)
{
    const struct learned_model *model = page->model;
    json_begin_object(json, NULL);
    json_put_text(json, "schema", "allocrig.drift/1");
    json_put_text(json, "name", page->info->name);
    json_put_integer(json, "recorded_steps", model->step_count);
    json_put_bool(json, "marked", model->recording.marked);
    json_put_integer(json, "warmup_steps", model->warmup);
    json_put_text(json, "order", learned_order_name(model->order));
    json_put_some(json, "period", model->period);
    json_put_real(json, "run_length", model->run_length);
    json_put_integer(json, "classes", model->class_count);
    json_put_real(json, "leaked_bytes_per_step", model->leaked_bytes);
    json_put_real(json, "step_ns", model->step_ns > 0 ? model->step_ns : NAN);
    JSON_PUT(json, page, steps, capacity_bytes);
    json_begin_array(json, "policies");
    for (size_t i = 0; i < page->answer_count; i++)
        write_answer(json, page, &page->answers[i]);
    json_end_array(json);
    json_end_object(json);
}

void drift_series_write(FILE *stream, const struct drift_page *page)
{
    fputs("policy,seed,step,reserved_bytes,live_bytes\n", stream);
    for (size_t i = 0; i < page->answer_count; i++)
        for (size_t run = 0; run < page->answers[i].run_count; run++)
            for (size_t at = 0; at < page->answers[i].runs[run].sample_count; at++) {
                const struct drift_sample *sample = &page->answers[i].runs[run].samples[at];
                csv_text(stream, page->answers[i].policy);
                fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                        page->answers[i].runs[run].seed, sample->step, sample->reserved_bytes,
                        sample->live_bytes);
            }
}

/* ---- the answer of the runs of one policy ---------------------------------------------------- */

/* What several long runs of one policy say together. */

#define MIB(bytes) ((double)(bytes) / (double)AR_MIB)
#define DAY_NS     (24.0 * 3600 * 1e9)

static const struct drift_sample *sample_at(const struct drift_run *run, uint64_t step)
{
    for (size_t i = 0; i < run->sample_count; i++)
        if (run->samples[i].step == step)
            return &run->samples[i];
    return NULL;
}

static void add_level(struct drift_answer *out, uint64_t step, double *room)
{
    struct drift_level *level = &out->levels[out->level_count];
    *level = (struct drift_level){.step = step};
    for (int live = 0; live < 2; live++) {
        level->runs = 0;
        for (size_t i = 0; i < out->run_count; i++) {
            const struct drift_sample *sample = sample_at(&out->runs[i], step);
            if (sample)
                room[level->runs++] = MIB(live ? sample->live_bytes : sample->reserved_bytes);
        }
        if (level->runs)
            *(live ? &level->live : &level->reserved) = trend_of_levels(room, level->runs);
    }
    out->level_count += level->runs > 0;
}

/* The samples in the last half of a run. */
struct half {
    double x[DRIFT_SAMPLES + DRIFT_DECADES + 1], reserved[DRIFT_SAMPLES + DRIFT_DECADES + 1],
        live[DRIFT_SAMPLES + DRIFT_DECADES + 1];
    size_t count;
};

static void take_half(const struct drift_run *run, struct half *half)
{
    half->count = 0;
    for (size_t i = 0; i < run->sample_count; i++) {
        const struct drift_sample *sample = &run->samples[i];
        if (2 * sample->step < run->steps)
            continue;
        half->x[half->count] = (double)sample->step;
        half->reserved[half->count] = MIB(sample->reserved_bytes);
        half->live[half->count++] = MIB(sample->live_bytes);
    }
}

/* The mean size of a growth of one kind, in MiB. */
static double mean_growth(const struct drift_answer *out, bool recorded)
{
    double bytes = 0, steps = 0;
    for (size_t i = 0; i < out->run_count; i++) {
        const struct drift_growth *growth = recorded ? &out->runs[i].recorded : &out->runs[i].drawn;
        bytes += MIB(growth->bytes);
        steps += (double)growth->steps;
    }
    return steps > 0 ? bytes / steps : 0;
}

/* Reserved memory that never falls in any run is taken never to fall. */
static void forbid_fall(const struct learned_model *model, struct drift_answer *out)
{
    double least = INFINITY;
    for (size_t i = 0; i < out->run_count; i++) {
        least = fmin(least, MIB(out->runs[i].recorded_bytes));
        if (out->runs[i].fell)
            return;
    }
    out->per_million.low = fmax(out->per_million.low, 0);
    for (size_t i = 0; i < out->level_count; i++)
        if (out->levels[i].step > model->step_count)
            out->levels[i].reserved.low = fmax(out->levels[i].reserved.low, least);
}

static void allow_growth(const struct learned_model *model, uint64_t steps,
                         struct drift_answer *out)
{
    if (model->order == LEARNED_REPEAT)
        return;
    double recorded = 0, level = 0, count = (double)out->run_count;
    for (size_t i = 0; i < out->run_count; i++) {
        recorded += MIB(out->runs[i].recorded.bytes) / count;
        level += MIB(out->runs[i].recorded_bytes) / count;
    }
    for (size_t i = 0; i < out->level_count; i++) {
        double more = log10((double)out->levels[i].step / (double)model->step_count);
        struct trend_interval *reserved = &out->levels[i].reserved;
        if (more > 0)
            reserved->high = fmax(reserved->high, level + more * recorded);
    }
    double growth = fmax(mean_growth(out, true), mean_growth(out, false));
    if (out->run_count < DRIFT_SURE_RUNS)
        out->per_million.high =
            fmax(out->per_million.high, out->per_million.estimate + 3e6 * growth / (double)steps);
}

/* Over the runs that ended regularly, or if there are none, over all, each over its own last half.
 * The test takes those with as many samples as the first. `live`: of live bytes. Returns the number
 * of slopes. */
static size_t find_slopes(struct drift_answer *out, bool live, struct half *half, double *slopes,
                          double *values, double *p)
{
    size_t series = 0, count = 0, used = 0;
    for (size_t i = 0; i < out->run_count; i++) {
        const struct drift_run *run = &out->runs[i];
        if (run->failed_step && out->failed_runs < out->run_count)
            continue;
        take_half(run, half);
        const double *y = live ? half->live : half->reserved;
        slopes[used++] = 1e6 * trend_slope(half->x, y, half->count);
        if (series && half->count != count)
            continue;
        count = half->count;
        memcpy(values + series * count, y, count * sizeof *y);
        series++;
    }
    out->half_samples = count;
    *p = trend_test(values, series, count);
    return used;
}

static enum ar_status find_trend(struct drift_answer *out, struct half *half, double *slopes,
                                 double *values, struct ar_error *error)
{
    size_t used = find_slopes(out, true, half, slopes, values, &out->live_p);
    out->live_per_million = trend_of_seeds(slopes, used).estimate;
    used = find_slopes(out, false, half, slopes, values, &out->p);
    out->has_trend = out->p < TREND_ALPHA;
    out->per_million = trend_of_seeds(slopes, used);
    if (used > 1)
        return AR_OK;
    enum ar_status status =
        trend_of_series(half->x, half->reserved, half->count, &out->per_million, error);
    out->per_million.estimate *= 1e6;
    out->per_million.low *= 1e6;
    out->per_million.high *= 1e6;
    return status;
}

enum ar_status drift_answer_find(const struct learned_model *model, uint64_t steps,
                                 struct drift_answer *out, struct ar_error *error)
{
    size_t most = sizeof((struct half *)0)->x / sizeof(double);
    double *slopes = malloc(out->run_count * sizeof *slopes),
           *values = malloc(out->run_count * most * sizeof *values);
    struct half *half = malloc(sizeof *half);
    enum ar_status status = AR_OK;
    if (slopes && values && half) {
        for (uint64_t step = 1; step < steps; step *= 10)
            add_level(out, step, slopes);
        add_level(out, steps, slopes);
        for (size_t i = 0; i < out->run_count; i++) {
            out->failed_runs += out->runs[i].failed_step != 0;
            out->retries += out->runs[i].retries;
        }
        out->failed = trend_of_count(out->failed_runs, out->run_count);
        status = find_trend(out, half, slopes, values, error);
        allow_growth(model, steps, out);
        forbid_fall(model, out);
        double day = model->step_ns > 0 ? DAY_NS / model->step_ns / 1e6 : NAN;
        out->per_day =
            (struct trend_interval){out->per_million.estimate * day, out->per_million.low * day,
                                    out->per_million.high * day};
    } else {
        status = ar_no_memory(error, "the results of long runs");
    }
    free(half);
    free(slopes);
    free(values);
    return status;
}
