/* Sentences of an import report. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workloads/formats/import_report.h"

void import_guess(struct import_report *report, const char *format, ...)
{
    char text[sizeof report->guesses[0]];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (unsigned i = 0; i < report->guess_count; i++)
        if (!strcmp(report->guesses[i], text))
            return;
    if (report->guess_count < IMPORT_GUESSES)
        memcpy(report->guesses[report->guess_count++], text, sizeof text);
}
