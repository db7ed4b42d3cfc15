#include "bench/report/whatif_page.h"

#include <inttypes.h>

void whatif_page_head(FILE *stream)
{
    fputs(
        "| program | recorded | asked of it | requests | only in one | peak reserved, predicted | "
        "recorded | error | retries | passes |\n"
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
        stream);
}

static void print_error(FILE *stream, const struct whatif *whatif)
{
    double recorded = (double)whatif->recorded_peak_reserved_bytes;
    double predicted = (double)whatif->predicted.peak_reserved_bytes;
    if (!whatif->has_peak || !whatif->predicted.begun)
        fputs(" - |", stream);
    else if (whatif->predicted.peak_reserved_bytes == whatif->recorded_peak_reserved_bytes)
        fputs(" none |", stream);
    else
        fprintf(stream, " %+.2f %% |", 100 * (predicted / recorded - 1));
}

void whatif_page_line(FILE *stream, const struct whatif_line *line)
{
    const struct whatif *whatif = line->whatif;
    const struct trial *predicted = &whatif->predicted;
    const char *as_predicted = predicted->begun && predicted->passed ? "yes" : "no";
    fprintf(stream, "| `%s` | %s | %s | %" PRIu64 " | %" PRIu64 " | ", line->program, line->from,
            line->to, whatif->requests_from, whatif->only_from + whatif->only_to);
    if (predicted->begun)
        fprintf(stream, "%" PRIu64 " | ", predicted->peak_reserved_bytes);
    else
        fputs("- | ", stream);
    if (whatif->has_peak)
        fprintf(stream, "%" PRIu64 " |", whatif->recorded_peak_reserved_bytes);
    else
        fputs("- |", stream);
    print_error(stream, whatif);
    fprintf(stream, " %" PRIu64 " of ", predicted->retries);
    if (line->has_retries)
        fprintf(stream, "%" PRIu64 " | ", line->recorded_retries);
    else
        fputs("- | ", stream);
    fprintf(stream, "%s, %s |\n", as_predicted, whatif->recorded_passed ? "yes" : "no");
}
