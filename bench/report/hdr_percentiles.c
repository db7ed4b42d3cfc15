/* The form is that of HdrHistogram's outputPercentileDistribution, its steps are too: each time the
 * distance to 100 % is halved, there are five of them.
 *
 * A value is the largest of its bucket, and no larger than the greatest of all, which is exact. The
 * mean and the deviation are those of the buckets' middles. */
#include "bench/report/hdr_percentiles.h"

#include <inttypes.h>
#include <math.h>

#define STEPS_TO_HALF 5

static uint64_t value_of(const struct ar_hist *hist, uint32_t bucket)
{
    uint64_t most = ar_hist_bucket_most(bucket);
    return most < hist->most ? most : hist->most;
}

static double middle_of(uint32_t bucket)
{
    uint64_t least = ar_hist_bucket_least(bucket);
    return (double)least + (double)(ar_hist_bucket_most(bucket) - least) / 2;
}

static double mean_of(const struct ar_hist *hist)
{
    double sum = 0;
    for (uint32_t i = 0; i < AR_HIST_BUCKETS; i++)
        if (hist->count[i])
            sum += (double)hist->count[i] * middle_of(i);
    return hist->total ? sum / (double)hist->total : 0;
}

static double deviation_of(const struct ar_hist *hist, double mean)
{
    double sum = 0;
    for (uint32_t i = 0; i < AR_HIST_BUCKETS; i++)
        if (hist->count[i])
            sum += (double)hist->count[i] * (middle_of(i) - mean) * (middle_of(i) - mean);
    return hist->total ? sqrt(sum / (double)hist->total) : 0;
}

/* The percentile that follows `percent`: a step whose size halves with each halved distance. */
static double next_percent(double percent)
{
    double halvings = floor(log2(100 / (100 - percent))) + 1;
    return percent + 100 / (STEPS_TO_HALF * pow(2, halvings));
}

static void write_line(FILE *stream, uint64_t value, double fraction, uint64_t count)
{
    fprintf(stream, "%12.3f %2.12f %10" PRIu64, (double)value, fraction, count);
    if (fraction < 1)
        fprintf(stream, " %14.2f", 1 / (1 - fraction));
    fputc('\n', stream);
}

void hdr_percentiles_write(FILE *stream, const struct ar_hist *hist)
{
    double percent = 0, mean = mean_of(hist);
    uint64_t count = 0;
    fprintf(stream, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    for (uint32_t i = 0; i < AR_HIST_BUCKETS && count < hist->total; i++) {
        count += hist->count[i];
        if (!hist->count[i])
            continue;
        double reached = 100 * (double)count / (double)hist->total;
        while (percent <= reached) {
            write_line(stream, value_of(hist, i), percent / 100, count);
            percent = next_percent(percent);
            if (count == hist->total)
                break; /* the line at 100 % says the rest */
        }
    }
    if (hist->total)
        write_line(stream, hist->most, 1, hist->total);
    fprintf(stream, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", mean,
            deviation_of(hist, mean));
    fprintf(stream, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
            hist->total ? (double)hist->most : 0.0, hist->total);
    fprintf(stream, "#[Buckets = %12u, SubBuckets     = %12u]\n", AR_HIST_BUCKETS / AR_HIST_SUB,
            AR_HIST_SUB);
}
