#include "bench/plugin/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AR_MIB 1048576.0

/* Text between quotes. */
static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if ((unsigned char)*text < 0x20)
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void put_latency(FILE *file, const char *name, const struct ar_hist *hist)
{
    fprintf(file,
            ",\n      \"%s\": {\"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64
            ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "}",
            name, ar_hist_quantile(hist, 0.5), ar_hist_quantile(hist, 0.9),
            ar_hist_quantile(hist, 0.99), ar_hist_quantile(hist, 0.999),
            hist->total ? hist->most : 0);
}

static void put_card(FILE *file, struct card *card)
{
    struct card_figures figures;
    struct ar_policy_stats stats;
    card_figures(card, &figures);
    pthread_mutex_lock(&card->lock);
    ar_policy_stats(card->policy, &stats);
    const struct ar_device *device = card->memory.device;
    fprintf(file, "    {\"gpu\": %u, \"name\": ", card->ordinal);
    put_text(file, device->props.profile);
    fprintf(file, ", \"policy\": ");
    put_text(file, card->policy->ops->name);
#define X(field, text) fprintf(file, ",\n      \"" #field "\": %" PRIu64, figures.field);
    CARD_FIGURES(X)
#undef X
#define X(field, text) fprintf(file, ",\n      \"policy_" #field "\": %" PRIu64, stats.count.field);
    AR_POLICY_COUNTERS(X)
#undef X
    fprintf(file, ",\n      \"calls\": {");
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        fprintf(
            file, "%s\"%s\": {\"calls\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
            i ? ", " : "", ar_device_call_name((enum ar_device_call)i), device->counters.calls[i],
            device->counters.call_ns[i], device->counters.call_bytes[i]);
    fprintf(file, "}");
    if (card->latency) {
        put_latency(file, "alloc_ns", &card->latency->alloc);
        put_latency(file, "free_ns", &card->latency->free);
    }
    pthread_mutex_unlock(&card->lock);
    fprintf(file, "}");
}

static void put_all(FILE *file, const struct report *report)
{
    fprintf(file, "{\n  \"schema\": \"allocrig.plugin/1\",\n  \"policy\": ");
    put_text(file, report->policy);
    fprintf(file, ",\n  \"process\": %ld,\n  \"cards\": [\n", (long)getpid());
    for (unsigned i = 0; i < report->count; i++) {
        put_card(file, report->cards[i]);
        fprintf(file, "%s\n", i + 1 < report->count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
}

/* Beside its place first: a full disk leaves what was there. A pipe or terminal is written to. */
static bool write_stats(const struct report *report)
{
    char part[4096 + 32];
    struct stat about;
    const char *path = report->stats_path;
    bool in_place = stat(path, &about) == 0 && !S_ISREG(about.st_mode);
    int length = snprintf(part, sizeof part, "%s.part-%ld", path, (long)getpid());
    if (!in_place && (length < 0 || (size_t)length >= sizeof part)) {
        errno = ENAMETOOLONG;
        return false;
    }
    FILE *file = fopen(in_place ? path : part, "we");
    if (!file)
        return false;
    put_all(file, report);
    bool written = fflush(file) == 0 && !ferror(file);
    int why = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        why = errno;
    }
    if (written && !in_place && rename(part, path) != 0) {
        written = false;
        why = errno;
    }
    if (!written && !in_place)
        (void)unlink(part);
    errno = why;
    return written;
}

static void write_file(const struct report *report)
{
    if (strcmp(report->stats_path, "-") == 0)
        put_all(stderr, report);
    else if (!write_stats(report))
        fprintf(stderr, "allocrig: %s (ALLOCRIG_STATS) cannot be written: %s\n", report->stats_path,
                strerror(errno));
}

static void say_card(const struct report *report, struct card *card)
{
    struct card_figures figures;
    card_figures(card, &figures);
    fprintf(stderr,
            "allocrig: GPU %u under %s: %" PRIu64 " requests, %" PRIu64 " frees, %" PRIu64
            " not served; peaks: live %.1f MiB, reserved %.1f MiB, physical %.1f MiB; %" PRIu64
            " driver calls in %.3f ms, %.3f ms waited\n",
            card->ordinal, report->policy, figures.requests, figures.frees, figures.failed,
            (double)figures.peak_live_bytes / AR_MIB, (double)figures.peak_reserved_bytes / AR_MIB,
            (double)figures.peak_physical_bytes / AR_MIB, figures.driver_calls,
            (double)figures.driver_ns / 1e6, (double)figures.stall_ns / 1e6);
    if (card->latency)
        fprintf(stderr,
                "allocrig: GPU %u: a request took %" PRIu64 " ns at the median and %" PRIu64
                " ns at the 99th percentile, a free %" PRIu64 " and %" PRIu64 " ns\n",
                card->ordinal, ar_hist_quantile(&card->latency->alloc, 0.5),
                ar_hist_quantile(&card->latency->alloc, 0.99),
                ar_hist_quantile(&card->latency->free, 0.5),
                ar_hist_quantile(&card->latency->free, 0.99));
}

void report_write(const struct report *report, bool verbose)
{
    if (report->stats_path)
        write_file(report);
    for (unsigned i = 0; verbose && i < report->count; i++)
        say_card(report, report->cards[i]);
}
