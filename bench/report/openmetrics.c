/* OpenMetrics 1.0: TYPE, UNIT and HELP of a family, then all its samples; a name ends with its
 * unit; label sets differ; the last line is `# EOF`. */
#include "bench/report/result_writers.h"

#include "allocators/base/utf8.h"

/* Removes a part of a name that is a word between underscores. */
static void cut_out(char *name, const char *part)
{
    size_t length = strlen(part);
    for (char *at = strstr(name, part); at; at = strstr(at + 1, part)) {
        if (at[length] != '_' && at[length] != '\0')
            continue;
        memmove(at, at + length, strlen(at + length) + 1);
        return;
    }
}

const char *openmetrics_name(const struct metric_info *info, char name[OPENMETRICS_NAME_BYTES],
                             const char **unit, double *divisor)
{
    char base[64];
    snprintf(base, sizeof base, "%s", info->name);
    *unit = "";
    *divisor = 1;
    if (strcmp(info->unit, "bytes") == 0) {
        cut_out(base, "_bytes");
        *unit = "bytes";
    } else if (strcmp(info->unit, "ns") == 0) {
        cut_out(base, "_ns");
        *unit = "seconds";
        *divisor = 1e9;
    } else if (strcmp(info->unit, "ratio") == 0) {
        *unit = "ratio";
    } else if (strcmp(info->unit, "1/s") == 0) {
        cut_out(base, "_per_s");
        *unit = "per_second";
    }
    snprintf(name, OPENMETRICS_NAME_BYTES, "allocrig_%s%s%s", base, **unit ? "_" : "", *unit);
    return name;
}

/* A text in a label or a help line. */
static void put_text(FILE *stream, const char *text)
{
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = ar_utf8_bytes(text);
        if (*text == '\\' || *text == '"')
            fprintf(stream, "\\%c", *text);
        else if (*text == '\n')
            fputs("\\n", stream);
        else if (!bytes)
            fputs(AR_UTF8_REPLACEMENT, stream);
        else
            fwrite(text, 1, bytes, stream);
    }
}

static void label(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "%s=\"", name);
    put_text(stream, value);
    fputs("\",", stream);
}

static bool same_labels(const struct run_record *a, const struct run_record *b)
{
    return strcmp(a->policy_spec, b->policy_spec) == 0 &&
           strcmp(a->workload_spec, b->workload_spec) == 0 &&
           strcmp(a->device_spec, b->device_spec) == 0 && a->frees == b->frees &&
           a->host == b->host && a->repetition == b->repetition && a->seed == b->seed;
}

/* The labels of records[index]. A second record with the same labels gets a number. */
static void labels(FILE *stream, const struct run_record *records, size_t index)
{
    const struct run_record *record = &records[index];
    size_t copies = 0;
    for (size_t i = 0; i < index; i++)
        copies += same_labels(&records[i], record);
    fputc('{', stream);
    label(stream, "policy", record->policy_spec);
    label(stream, "workload", record->workload_spec);
    label(stream, "device", record->device_spec);
    label(stream, "frees", replay_frees_name(record->frees));
    label(stream, "host", replay_host_name(record->host));
    fprintf(stream, "repetition=\"%u\",seed=\"%" PRIu64 "\"", record->repetition, record->seed);
    if (copies)
        fprintf(stream, ",copy=\"%zu\"", copies);
    fputc('}', stream);
}

static void head(FILE *stream, const char *name, const char *unit, const char *help)
{
    fprintf(stream, "# TYPE %s gauge\n", name);
    if (*unit)
        fprintf(stream, "# UNIT %s %s\n", name, unit);
    fprintf(stream, "# HELP %s ", name);
    put_text(stream, help);
    fputc('\n', stream);
}

static void family(FILE *stream, enum metric metric, const struct run_record *records, size_t count)
{
    const struct metric_info *info = metric_info(metric);
    char name[OPENMETRICS_NAME_BYTES], number[REAL_TEXT_BYTES];
    const char *unit;
    double divisor;
    bool begun = false;
    openmetrics_name(info, name, &unit, &divisor);
    for (size_t i = 0; i < count; i++) {
        const struct metric_value *value = &records[i].metrics.at[metric];
        if (value->kind == METRIC_NULL)
            continue;
        if (!begun)
            head(stream, name, unit, info->definition);
        begun = true;
        fputs(name, stream);
        labels(stream, records, i);
        if (value->kind == METRIC_INTEGER && divisor <= 1)
            fprintf(stream, " %" PRIu64 "\n", value->integer);
        else
            fprintf(stream, " %s\n",
                    real_print(metric_number(&records[i].metrics, metric, 0) / divisor, number));
    }
}

void openmetrics_write(FILE *stream, const struct results *results)
{
    const struct run_record *records = results->runs;
    const size_t count = results->run_count;
    if (count)
        head(stream, "allocrig_passed", "",
             "1 where every request that may not fail was served, else 0");
    for (size_t i = 0; i < count; i++) {
        fputs("allocrig_passed", stream);
        labels(stream, records, i);
        fprintf(stream, " %d\n", records[i].passed);
    }
    for (int i = 0; i < METRIC_COUNT; i++)
        family(stream, (enum metric)i, records, count);
    fputs("# EOF\n", stream);
}
