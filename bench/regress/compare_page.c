#include "bench/regress/compare_page.h"

#include <stdlib.h>
#include <string.h>

#include "bench/report/junit_xml.h"
#include "bench/report/sentence.h"

static bool is_waived(const struct verdict_row *row)
{
    return row->waiver && !row->waiver->expired;
}

/* The row in words: its note, its size, its waiver. */
static void remark(const struct verdict_row *row, char text[400])
{
    char size[32] = "";
    if (row->change >= 0 && !row->timed)
        snprintf(size, sizeof size, "%.3g %% %s", 100 * row->change,
                 row->verdict == VERDICT_WORSE ? "worse" : "better");
    snprintf(text, 400, "%s%s%s", size, size[0] && row->note[0] ? "; " : "", row->note);
    size_t used = strlen(text);
    if (row->waiver)
        snprintf(text + used, 400 - used, "%s%s %s %s: %.120s", used ? "; " : "",
                 row->waiver->expired ? "its waiver expired on" : "waived until",
                 row->waiver->until, row->waiver->name, row->waiver->reason);
}

/* NO-DATA rows of one cell, one after the other, with one reason are one line. */
static size_t alike(const struct verdicts *verdicts, size_t first)
{
    const struct verdict_row *row = &verdicts->rows[first];
    size_t end = first + 1;
    while (row->verdict == VERDICT_NO_DATA && end < verdicts->count &&
           verdicts->rows[end].verdict == VERDICT_NO_DATA &&
           verdicts->rows[end].policy == row->policy &&
           verdicts->rows[end].workload == row->workload &&
           strcmp(verdicts->rows[end].note, row->note) == 0)
        end++;
    return end;
}

/* Fractions have nine digits for a reader, where these tell the two apart; else all. */
static void shorten(const char *text, char shorter[40])
{
    char *end;
    double number = strtod(text, &end);
    if (strchr(text, '.') && *end == 0)
        snprintf(shorter, 40, "%.9g", number);
    else
        snprintf(shorter, 40, "%.39s", text);
}

static void value_cells(struct table *table, const struct verdict_row *row)
{
    char old[40], new_[40];
    shorten(row->old, old);
    shorten(row->new_, new_);
    bool apart = strcmp(old, new_) != 0 || strcmp(row->old, row->new_) == 0;
    table_cell(table, "%s", apart ? old : row->old);
    table_cell(table, "%s", apart ? new_ : row->new_);
}

static void rows_of(const struct verdicts *verdicts, enum verdict verdict, struct table *table)
{
    for (size_t i = 0, end; i < verdicts->count; i = end) {
        const struct verdict_row *row = &verdicts->rows[i];
        char text[400];
        end = alike(verdicts, i);
        if (row->verdict != verdict)
            continue;
        remark(row, text);
        table_cell(table, "%s", is_waived(row) ? "waived" : verdict_name(verdict));
        table_cell(table, "%s", row->workload_name);
        table_cell(table, "%s", row->policy);
        if (end > i + 1)
            table_cell(table, "%s and %zu more", row->figure, end - i - 1);
        else
            table_cell(table, "%s", row->figure);
        value_cells(table, row);
        table_cell(table, "%s", text);
    }
}

static enum status print_rows(const struct verdicts *verdicts, FILE *stream, enum table_form form,
                              struct error *error)
{
    static const struct table_column columns[] = {
        {"verdict", "", true, 0}, {"workload", "", true, 24}, {"policy", "", true, 32},
        {"figure", "", true, 0},  {"old", "", false, 0},      {"new", "", false, 0},
        {"", "", true, 0},
    };
    static const enum verdict order[] = {VERDICT_WORSE, VERDICT_BETTER, VERDICT_AMBIGUOUS,
                                         VERDICT_NO_DATA};
    bool any = false;
    for (size_t i = 0; i < verdicts->count; i++)
        any = any || verdicts->rows[i].verdict != VERDICT_SAME;
    if (!any)
        return STATUS_OK;
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    if (!table)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory left for a table");
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        rows_of(verdicts, order[i], table);
    enum status status = table_print(table, stream, form, error);
    table_close(table);
    fputc('\n', stream);
    return status;
}

static void print_effects(const struct verdicts *verdicts, FILE *stream)
{
    char text[320];
    if (verdicts->timed)
        snprintf(text, sizeof text,
                 "Smallest effect that would be seen: exact figures any; instructions %.0f %%; "
                 "times %.2g %% (median of %zu tests; at most %.2g %%).",
                 100 * VERDICT_INSTRUCTIONS, 100 * verdicts->sees_median, verdicts->timed,
                 100 * verdicts->sees_most);
    else
        snprintf(text, sizeof text,
                 "Smallest effect that would be seen: exact figures any; instructions %.0f %%; no "
                 "times were compared.",
                 100 * VERDICT_INSTRUCTIONS);
    sentence_print(stream, text);
}

static void print_waivers(const struct waivers *waivers, FILE *stream)
{
    for (size_t i = 0; waivers && i < waivers->count; i++) {
        const struct waiver *waiver = &waivers->items[i];
        char text[320];
        if (waiver->expired)
            snprintf(text, sizeof text, "Waiver %.60s expired on %s and does not count.",
                     waiver->name, waiver->until);
        else if (!waiver->used)
            snprintf(text, sizeof text, "Waiver %.60s covers nothing here; is it still needed?",
                     waiver->name);
        else
            continue;
        sentence_print(stream, text);
    }
}

enum status compare_page(const struct verdicts *verdicts, const struct waivers *waivers,
                         FILE *stream, enum table_form form, struct error *error)
{
    enum status status = print_rows(verdicts, stream, form, error);
    const size_t *figures = verdicts->figures;
    fprintf(stream, "%zu figures SAME, %zu BETTER, %zu WORSE", figures[VERDICT_SAME],
            figures[VERDICT_BETTER], figures[VERDICT_WORSE]);
    if (verdicts->waived)
        fprintf(stream, " (%zu waived)", verdicts->waived);
    fprintf(stream, ", %zu AMBIGUOUS, %zu NO-DATA, of %zu runs and counts.\n",
            figures[VERDICT_AMBIGUOUS], figures[VERDICT_NO_DATA], verdicts->cells);
    print_effects(verdicts, stream);
    print_waivers(waivers, stream);
    return status;
}

static void attribute(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, " %s=\"", name);
    xml_text(stream, value);
    fputc('"', stream);
}

void compare_junit(const struct verdicts *verdicts, FILE *stream)
{
    size_t failures = verdicts->figures[VERDICT_WORSE] - verdicts->waived;
    size_t skipped = 0;
    for (size_t i = 0; i < verdicts->count; i++)
        skipped += verdicts->rows[i].verdict >= VERDICT_AMBIGUOUS || is_waived(&verdicts->rows[i]);
    fprintf(stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compare\" "
            "tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n"
            "  <testsuite name=\"compare\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"%zu\">\n",
            verdicts->count + 1, failures, skipped, verdicts->count + 1, failures, skipped);
    fprintf(stream, "    <testcase classname=\"compare\" name=\"%zu figures are the same\"/>\n",
            verdicts->figures[VERDICT_SAME]);
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *row = &verdicts->rows[i];
        char text[400];
        char message[512];
        remark(row, text);
        snprintf(message, sizeof message, "%s: %s before, %s now; %s", verdict_name(row->verdict),
                 row->old, row->new_, text);
        fputs("    <testcase", stream);
        attribute(stream, "classname", row->workload_name);
        fputs(" name=\"", stream);
        xml_text(stream, row->policy);
        fputc(' ', stream);
        xml_text(stream, row->figure);
        fputs("\">\n", stream);
        if (row->verdict >= VERDICT_WORSE) {
            bool fails = row->verdict == VERDICT_WORSE && !is_waived(row);
            fprintf(stream, "      <%s", fails ? "failure type=\"regression\"" : "skipped");
            attribute(stream, "message", message);
            fputs("/>\n", stream);
        }
        fputs("    </testcase>\n", stream);
    }
    fputs("  </testsuite>\n</testsuites>\n", stream);
}

/* As workflow commands want it: their own signs as percent codes. */
static void escaped(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (strchr("%\r\n,:", *text))
            fprintf(stream, "%%%02X", (unsigned)(unsigned char)*text);
        else
            fputc(*text, stream);
    }
}

void compare_annotations(const struct verdicts *verdicts, FILE *stream)
{
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *row = &verdicts->rows[i];
        char text[400];
        if (row->verdict != VERDICT_WORSE)
            continue;
        remark(row, text);
        fprintf(stream, "::%s title=", is_waived(row) ? "warning" : "error");
        escaped(stream, row->figure);
        fputs(" is worse::", stream);
        escaped(stream, row->workload_name);
        fputs(" with policy ", stream);
        escaped(stream, row->policy);
        fprintf(stream, "%%3A %s before, %s now; ", row->old, row->new_);
        escaped(stream, text);
        fputc('\n', stream);
    }
}
