#include "bench/report/run_output.h"

#include <errno.h>
#include <math.h>

#include "allocators/base/array.h"
#include "bench/report/data_writer.h"

/* ---- events --------------------------------------------------------------------------------- */

void placements_csv_header(FILE *stream)
{
    fputs("event,op,id,requested,granted,segment,offset,granted_total,reserved\n", stream);
}

void placements_csv_row(FILE *stream, const struct replay_row *row)
{
    fprintf(stream,
            "%" PRIu64 ",%c,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRIu64
            ",%" PRIu64 "\n",
            row->event, row->op, row->id, row->requested_bytes, row->granted_bytes, row->segment,
            row->offset, row->granted_total_bytes, row->reserved_bytes);
}

/* The columns of a series, in their order: name and value of a sample. */
#define SERIES_COLUMNS(X)                                                                          \
    X("event", event)                                                                              \
    X("time_ns", time_ns)                                                                          \
    X("weight", weight)                                                                            \
    X("live_bytes", live_bytes)                                                                    \
    X("granted_bytes", granted_bytes)                                                              \
    X("reserved_bytes", reserved_bytes)                                                            \
    X("physical_bytes", physical_bytes)                                                            \
    X("free_bytes", free_bytes)                                                                    \
    X("pending_bytes", pending_bytes)                                                              \
    X("stranded_bytes", stranded_bytes)                                                            \
    X("largest_free_block_bytes", largest_free_block_bytes)                                        \
    X("servable_bytes", servable_bytes[AR_POLICY_EFFORT_NONE])                                     \
    X("servable_map_bytes", servable_bytes[AR_POLICY_EFFORT_MAP])                                  \
    X("servable_wait_bytes", servable_bytes[AR_POLICY_EFFORT_WAIT])                                \
    X("servable_trim_bytes", servable_bytes[AR_POLICY_EFFORT_TRIM])                                \
    X("usable_bytes", usable_bytes)                                                                \
    X("stranded_by_stream_bytes", stranded_by_stream_bytes)

void series_csv_header(FILE *stream)
{
    struct csv_writer csv = {.stream = stream};
#define X(name, value) csv_put_plain(&csv, name);
    SERIES_COLUMNS(X)
#undef X
    csv_end_row(&csv);
}

void series_csv_row(FILE *stream, const struct replay_sample *sample)
{
    struct csv_writer csv = {.stream = stream};
#define X(name, value) csv_put_integer(&csv, sample->value);
    SERIES_COLUMNS(X)
#undef X
    csv_end_row(&csv);
}
static void merge(struct thin_bucket *into, const struct thin_bucket *from)
{
    if (from->least_live.live_bytes < into->least_live.live_bytes)
        into->least_live = from->least_live;
    if (from->most_live.live_bytes > into->most_live.live_bytes)
        into->most_live = from->most_live;
    if (from->most_physical.physical_bytes > into->most_physical.physical_bytes)
        into->most_physical = from->most_physical;
}

static void halve(struct thin_series *self)
{
    for (size_t i = 0; i < THIN_BUCKETS / 2; i++) {
        struct thin_bucket pair = self->buckets[2 * i];
        merge(&pair, &self->buckets[2 * i + 1]);
        self->buckets[i] = pair;
    }
    self->count = THIN_BUCKETS / 2;
    self->width *= 2;
    self->in_last = self->width;
}

enum ar_status thin_series_add(void *argument, const struct replay_sample *sample,
                               struct ar_error *error AR_UNUSED)
{
    struct thin_series *self = argument;
    const struct thin_bucket one = {*sample, *sample, *sample};
    if (self->last.failed_allocs)
        return AR_OK;
    if (self->width == 0) {
        self->width = 1;
        self->in_last = 1;
    }
    if (self->in_last == self->width && self->count == THIN_BUCKETS)
        halve(self);
    if (self->count == 0 || self->in_last == self->width) {
        self->buckets[self->count++] = one;
        self->in_last = 0;
    } else {
        merge(&self->buckets[self->count - 1], &one);
    }
    self->in_last++;
    self->last = *sample;
    return AR_OK;
}

void thin_series_each(const struct thin_series *self, thin_series_take *take, void *argument)
{
    uint64_t taken = UINT64_MAX; /* the event taken last */
    for (size_t i = 0; i < self->count; i++) {
        const struct thin_bucket *bucket = &self->buckets[i];
        const struct replay_sample *order[] = {&bucket->least_live, &bucket->most_live,
                                               &bucket->most_physical};
        for (int a = 1; a < 3; a++) {
            for (int b = a; b > 0 && order[b]->event < order[b - 1]->event; b--) {
                const struct replay_sample *swap = order[b];
                order[b] = order[b - 1];
                order[b - 1] = swap;
            }
        }
        for (int a = 0; a < 3; a++) {
            if (order[a]->event != taken)
                take(argument, order[a]);
            taken = order[a]->event;
        }
    }
    if (self->count && self->last.event != taken)
        take(argument, &self->last);
}

/* ---- driver calls --------------------------------------------------------------------------- */

static const char header[] = "event,call,bytes,ns,waited_ns,refused\n";

void calls_csv_header(FILE *stream)
{
    fputs(header, stream);
}

void calls_csv_row(FILE *stream, const struct driver_call *call)
{
    fprintf(stream, "%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", call->event,
            ar_device_call_name(call->call), call->bytes, call->ns, call->waited_ns, call->refused);
}

static bool find_call(const char *name, enum ar_device_call *out)
{
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++) {
        *out = (enum ar_device_call)i;
        if (strcmp(ar_device_call_name(*out), name) == 0)
            return true;
    }
    return false;
}

/* A row is exactly what calls_csv_row makes of it. */
static bool read_row(const char *line, struct driver_call *row)
{
    char name[32];
    char again[160];
    int refused = 0;
    if (sscanf(line, "%" SCNu64 ",%31[a-z_],%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%d", &row->event,
               name, &row->bytes, &row->ns, &row->waited_ns, &refused) != 6 ||
        !find_call(name, &row->call))
        return false;
    row->refused = refused == 1;
    snprintf(again, sizeof again, "%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n",
             row->event, name, row->bytes, row->ns, row->waited_ns, row->refused);
    return strcmp(line, again) == 0;
}

bool call_list_add(struct call_list *self, const struct driver_call *call)
{
    return AR_ARRAY_ADD(self->items, self->count, self->room, *call);
}

bool call_list_ready(struct call_list *self, size_t room)
{
    struct driver_call *items = malloc(room * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < room; i++)
        items[i] = (struct driver_call){.event = UINT64_MAX}; /* zeros alone may stay untouched */
    free(self->items);
    *self = (struct call_list){.items = items, .room = room};
    return true;
}

enum ar_status calls_csv_read(const char *path, struct call_list *out, struct ar_error *error)
{
    *out = (struct call_list){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    char line[192];
    enum ar_status status = AR_OK;
    if (!fgets(line, sizeof line, file) || strcmp(line, header) != 0)
        status = ar_error_set(error, AR_FORMAT, "%s:1: is not a file of --calls: wanted %.*s", path,
                              (int)sizeof header - 2, header);
    for (size_t number = 2; !status && fgets(line, sizeof line, file); number++) {
        struct driver_call row;
        if (read_row(line, &row))
            status = call_list_add(out, &row) ? AR_OK : ar_no_memory(error, "driver calls");
        else
            status = ar_error_set(error, AR_FORMAT, "%s:%zu: \"%.*s\" is no driver call", path,
                                  number, (int)strcspn(line, "\n"), line);
    }
    if (!status && ferror(file))
        status = ar_error_set(error, AR_IO, "%s: cannot be read to its end", path);
    fclose(file);
    return status;
}

void call_list_close(struct call_list *self)
{
    free(self->items);
    *self = (struct call_list){0};
}

/* ---- latencies ------------------------------------------------------------------------------ */

/* The form and the steps are those of HdrHistogram's outputPercentileDistribution: five steps each
 * time the distance to 100 % is halved. The value of a bucket is its largest, but at most the
 * maximum, which is exact. Mean and deviation are those of the middles of the buckets. */
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

/* ---- statistics of the policy --------------------------------------------------------------- */

static void write_contract(struct json_writer *json, const struct ar_policy *policy)
{
    struct ar_policy_stats stats;
    ar_policy_stats(policy, &stats);
    JSON_PUT(json, &stats.totals, live_bytes, live_blocks, granted_bytes, reserved_bytes,
             pending_bytes, releasable_bytes, overhead_bytes);
    json_put_integer(json, "free_bytes", ar_policy_free_bytes(&stats.totals));
    json_put_integer(json, "largest_free_block_bytes", stats.largest_free_block_bytes);
#define X(name, help) json_put_integer(json, #name, stats.count.name);
    AR_POLICY_COUNTERS(X)
#undef X
}

void policy_figures_write(FILE *stream, const struct ar_policy *policy)
{
    struct json_writer json = {.stream = stream};
    char name[64];
    uint64_t value;
    json_begin_object(&json, NULL);
    if (ar_policy_report(policy, 0, name, sizeof name, &value))
        for (size_t i = 0; ar_policy_report(policy, i, name, sizeof name, &value); i++)
            json_put_integer(&json, name, value);
    else
        write_contract(&json, policy);
    json_end_object(&json);
}
