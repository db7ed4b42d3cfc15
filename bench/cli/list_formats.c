/* `list formats`: what is read and written, our own formats and those of other programs. */
#include <stdio.h>
#include <string.h>

#include "bench/cli/list.h"
#include "workloads/formats/formats.h"

static const struct {
    const char *name, *text;
} formats[] = {
    {"text", "allocrig's own, read and written: one event a line (workloads/trace/FORMAT.md)"},
    {"binary", "the same events in records of 32 bytes, read and written"},
    {"oracle", "a text file of a and f lines without a header, read"},
    {"csv", "a recording as comma-separated values with a .json beside it, read"},
    {"zstd", "each of them compressed, read; text and binary written with the ending .zst"},
    {"gzip", "each of them compressed, read"},
    {"json", "results: allocrig.result/1, described by results/schema.json, written"},
    {"placements", "where each block of one run went, as CSV, written"},
    {"series", "the state after each event of one run, as CSV, written"},
    {"stats", "one run's statistics in the words of the allocator, as JSON, written"},
    {"calls", "each driver call of one run and what it cost, as CSV, written"},
    {"snapshot", "run --snapshot: one run as a PyTorch memory snapshot, written"},
    {"chrome", "run --chrome: one run over time for Perfetto and Chrome, as JSON, written"},
    {"hdr", "run --hdr: latencies by percentile as HdrHistogram's text, written"},
    {"latex", "run --latex: the tables for LaTeX with booktabs, written"},
    {"junit", "run --junit: each run as a test case, as JUnit XML, written"},
    {"openmetrics", "run --openmetrics: every figure as a gauge, as text, written"},
    {"suite", "what to run, as INI, read; workloads/suites/default.ini explains every key"},
};
#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

/* Those above, then the readers and the writers of other programs' files; false past the last. */
static bool format_at(size_t index, const char **name, const char **text)
{
    const struct format_writer *writer;
    const struct format_reader *reader;
    size_t readers = 0;
    if (index < FORMAT_COUNT) {
        *name = formats[index].name;
        *text = formats[index].text;
        return true;
    }
    while (format_reader_at(readers))
        readers++;
    index -= FORMAT_COUNT;
    if ((reader = format_reader_at(index))) {
        *name = reader->name;
        *text = reader->summary;
        return true;
    }
    if (!(writer = format_writer_at(index - readers)))
        return false;
    *name = writer->name;
    *text = writer->summary;
    return true;
}

const char *list_format_name(size_t index)
{
    const char *name, *text;
    return format_at(index, &name, &text) ? name : NULL;
}

enum ar_status list_formats(const char *name, struct ar_error *error)
{
    const char *format, *text;
    struct table *table = table_create(list_columns, 2);
    bool found = false;
    if (!table)
        return list_no_memory(error);
    for (size_t i = 0; format_at(i, &format, &text); i++) {
        if (name && strcmp(format, name) != 0)
            continue;
        found = true;
        table_cell(table, "%s", format);
        table_cell(table, "%s", text);
    }
    if (found)
        return list_print(table, error);
    table_close(table);
    return list_unknown("format", name, list_format_name, error);
}
