/* Results as JUnit XML (`run --junit`). The elements are those that Jenkins and GitLab read:
 * testsuites, testsuite, properties, testcase, failure, error, skipped. Times are the device's,
 * because they are the same on every machine. */
#include "bench/report/result_writers.h"

#include "allocators/base/utf8.h"

/* U+FFFE and U+FFFF, the only characters above the space that XML does not allow. */
static bool is_forbidden(const char *text)
{
    return memcmp(text, "\xef\xbf", 2) == 0 && (text[2] == '\xbe' || text[2] == '\xbf');
}

void xml_text(FILE *stream, const char *text)
{
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = ar_utf8_bytes(text);
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        case '\'':
            fputs("&apos;", stream);
            break;
        case '\n':
        case '\t':
        case '\r':
            fprintf(stream, "&#%d;", *text);
            break;
        default:
            if (!bytes || (unsigned char)*text < 0x20 || (bytes == 3 && is_forbidden(text)))
                fputs(AR_UTF8_REPLACEMENT, stream);
            else
                fwrite(text, 1, bytes, stream);
            break;
        }
    }
}

void xml_attribute(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, " %s=\"", name);
    xml_text(stream, value);
    fputc('"', stream);
}

struct totals {
    size_t tests, failures, errors, skipped;
    double seconds;
};

static double seconds_of(const struct run_record *record)
{
    return metric_number(&record->metrics, METRIC_device_time_ns, 0) / 1e9;
}

static struct totals total(const struct run_record *records, size_t count)
{
    struct totals totals = {.tests = count};
    for (size_t i = 0; i < count; i++) {
        const struct run_record *record = &records[i];
        bool died = record->end == RUN_CRASHED || record->end == RUN_TIMED_OUT;
        totals.skipped += record->unsupported;
        totals.errors += died;
        totals.failures += !record->passed && !died && !record->unsupported;
        totals.seconds += seconds_of(record);
    }
    return totals;
}

static void put_totals(FILE *stream, struct totals totals)
{
    fprintf(stream, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.9f\"",
            totals.tests, totals.failures, totals.errors, totals.skipped, totals.seconds);
}

static void property(FILE *stream, const char *indent, const char *name, const char *value)
{
    fprintf(stream, "%s<property", indent);
    xml_attribute(stream, "name", name);
    xml_attribute(stream, "value", value);
    fputs("/>\n", stream);
}

/* Why a run did not pass, as an element. */
static void outcome(FILE *stream, const struct run_record *record)
{
    char message[512];
    const char *cause = run_record_cause(record);
    bool died = record->end == RUN_CRASHED || record->end == RUN_TIMED_OUT;
    if (record->end == RUN_PLAYED)
        snprintf(message, sizeof message,
                 "did not finish: event %" PRIu64 " asked for %" PRIu64 " bytes; cause: %s%s%s",
                 record->first_failed_event, record->first_failed_bytes, cause,
                 record->detail[0] ? "; " : "", record->detail);
    else
        snprintf(message, sizeof message, "%s", record->detail);
    fprintf(stream, "      <%s", record->unsupported ? "skipped" : died ? "error" : "failure");
    xml_attribute(stream, "message", message);
    if (!record->unsupported)
        xml_attribute(stream, "type", cause ? cause : "unknown");
    fputs("/>\n", stream);
}

static void metrics(FILE *stream, const struct run_record *record)
{
    fputs("      <properties>\n", stream);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_value *value = &record->metrics.at[i];
        char text[REAL_TEXT_BYTES];
        if (value->kind == METRIC_NULL)
            continue;
        if (value->kind == METRIC_INTEGER)
            snprintf(text, sizeof text, "%" PRIu64, value->integer);
        else
            real_print(value->real, text);
        property(stream, "        ", metric_info((enum metric)i)->name, text);
    }
    fputs("      </properties>\n", stream);
}

/* Several runs of one policy in a group differ in seed and repetition. */
static void test_case(FILE *stream, const struct run_record *record, bool several)
{
    char which[64] = "";
    if (several)
        snprintf(which, sizeof which, " [seed %" PRIu64 ", repetition %u]", record->seed,
                 record->repetition + 1);
    fputs("    <testcase name=\"", stream);
    xml_text(stream, record->policy_spec);
    xml_text(stream, which);
    fputc('"', stream);
    xml_attribute(stream, "classname", record->workload.name);
    fprintf(stream, " time=\"%.9f\">\n", seconds_of(record));
    metrics(stream, record);
    if (!record->passed)
        outcome(stream, record);
    fputs("    </testcase>\n", stream);
}

static void test_suite(FILE *stream, const struct result_group *group)
{
    const struct run_record *first = group->runs;
    fputs("  <testsuite name=\"", stream);
    xml_text(stream, first->workload.name);
    fputs(" on ", stream);
    xml_text(stream, first->device_spec);
    fprintf(stream, ", frees %s\"", replay_frees_name(first->frees));
    put_totals(stream, total(first, group->run_count));
    fputs(">\n    <properties>\n", stream);
    property(stream, "      ", "workload", first->workload_spec);
    property(stream, "      ", "device", first->device_spec);
    property(stream, "      ", "frees", replay_frees_name(first->frees));
    property(stream, "      ", "host", replay_host_name(first->host));
    fputs("    </properties>\n", stream);
    for (size_t i = 0; i < group->policy_count; i++) {
        const struct result_policy *policy = &group->policies[i];
        for (size_t j = 0; j < policy->run_count; j++)
            test_case(stream, policy->runs[j], policy->run_count > 1);
    }
    fputs("  </testsuite>\n", stream);
}

void junit_xml_write(FILE *stream, const struct results *results)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", stream);
    xml_attribute(stream, "name", results->suite ? results->suite : "allocrig");
    put_totals(stream, total(results->runs, results->run_count));
    fputs(">\n", stream);
    for (size_t i = 0; i < results->group_count; i++)
        test_suite(stream, &results->groups[i]);
    fputs("</testsuites>\n", stream);
}
