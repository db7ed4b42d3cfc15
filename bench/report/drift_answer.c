/* What several long runs of one policy say together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/drift_page.h"

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

/* The allowances of drift_page.h. */
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
        status = ar_error_set(error, AR_HOST_MEMORY, "no host memory for the results of long runs");
    }
    free(half);
    free(slopes);
    free(values);
    return status;
}
