#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "bench/report/latex.h"
#include "bench/report/table_rows.h"

#define LATEX_CELL_MOST 14 /* letters */

void latex_text(FILE *stream, const char *text)
{
    static const struct {
        char character;
        const char *written;
    } special[] = {
        {'\\', "\\textbackslash{}"},
        {'{', "\\{"},
        {'}', "\\}"},
        {'$', "\\$"},
        {'&', "\\&"},
        {'#', "\\#"},
        {'%', "\\%"},
        {'_', "\\_"},
        {'^', "\\textasciicircum{}"},
        {'~', "\\textasciitilde{}"},
        {'<', "\\textless{}"},
        {'>', "\\textgreater{}"},
        {'|', "\\textbar{}"},
        {'"', "\\textquotedbl{}"},
        {'\'', "\\textquotesingle{}"},
        {'`', "\\textasciigrave{}"},
    };
    for (; *text; text++) {
        const char *written = NULL;
        for (size_t i = 0; i < sizeof special / sizeof *special; i++)
            if (special[i].character == *text)
                written = special[i].written;
        if (written)
            fputs(written, stream);
        else
            fputc(*text, stream);
    }
}

static void end_line(FILE *stream)
{
    fputs(" \\\\\n", stream);
}

static void print_titles(const struct table *self, FILE *stream)
{
    bool units = false;
    for (size_t j = 0; j < self->column_count; j++) {
        fputs(j ? " & " : "", stream);
        latex_text(stream, self->columns[j].title);
        units = units || self->columns[j].unit[0];
    }
    end_line(stream);
    for (size_t j = 0; units && j < self->column_count; j++) {
        fputs(j ? " & " : "", stream);
        latex_text(stream, self->columns[j].unit);
    }
    if (units)
        end_line(stream);
}

/* The first words of a heading, up to its colon, as a label may have them. */
static size_t slug(const char *heading, char text[64])
{
    const char *end = strstr(heading, ": ");
    size_t length = end ? (size_t)(end - heading) : strlen(heading);
    size_t used = 0;
    for (size_t i = 0; i < length && used < 63; i++) {
        bool plain = isalnum((unsigned char)heading[i]) && (unsigned char)heading[i] < 128;
        if (plain || (used && text[used - 1] != '-'))
            text[used++] = plain ? (char)tolower((unsigned char)heading[i]) : '-';
    }
    while (used && text[used - 1] == '-')
        used--;
    text[used] = '\0';
    return used;
}

/* `tab:LABEL-GROUP`; where earlier groups have the same name, with the number of this one. */
static void print_label(const struct table *self, FILE *stream, size_t heading_row)
{
    char name[64];
    char other[64];
    unsigned same = 1;
    slug(self->rows[heading_row]->cells[0], name);
    for (size_t i = 0; i < heading_row; i++) {
        if (self->rows[i]->kind != TABLE_ROW_HEADING)
            continue;
        slug(self->rows[i]->cells[0], other);
        same += strcmp(name, other) == 0;
    }
    fprintf(stream, "\\label{tab:%s-%s", self->label, name);
    if (same > 1)
        fprintf(stream, "-%u", same);
    fputs("}\n", stream);
}

/* `heading_row` beyond the rows: there is none. */
static void begin_group(const struct table *self, FILE *stream, size_t heading_row, bool wide)
{
    fputs("\\begin{table}\n\\centering\n", stream);
    if (heading_row < self->row_count) {
        fputs("\\caption{", stream);
        latex_text(stream, self->rows[heading_row]->cells[0]);
        fputs("}\n", stream);
        if (self->label)
            print_label(self, stream, heading_row);
    }
    if (!wide)
        fputs("\\footnotesize\\setlength{\\tabcolsep}{3pt}\n", stream);
    fputs("\\begin{tabular}{", stream);
    for (size_t j = 0; j < self->column_count; j++)
        fputc(self->columns[j].left ? 'l' : 'r', stream);
    fputs("}\n\\toprule\n", stream);
    print_titles(self, stream);
    fputs("\\midrule\n", stream);
}

static void end_group(FILE *stream)
{
    fputs("\\bottomrule\n\\end{tabular}\n\\end{table}\n", stream);
}

/* A long name above the rest of its row, so that its column stays narrow. */
static bool is_long(const struct table *self, const struct table_row *row, size_t column)
{
    return self->columns[column].left && column + 1 < row->cell_count &&
           strlen(row->cells[column]) > LATEX_CELL_MOST;
}

static void print_long(const struct table *self, FILE *stream, const struct table_row *row,
                       size_t column)
{
    fprintf(stream, "\\multicolumn{%zu}{l}{", self->column_count - column);
    latex_text(stream, row->cells[column]);
    fputc('}', stream);
    end_line(stream);
    for (size_t j = 0; j < column; j++)
        fputs(" & ", stream);
}

static void print_row(const struct table *self, FILE *stream, const struct table_row *row,
                      bool wide)
{
    for (size_t j = 0; j < row->cell_count; j++) {
        bool over = row->rest && j + 1 == row->cell_count && j + 1 < self->column_count;
        if (!wide && is_long(self, row, j)) {
            fputs(j ? " & " : "", stream);
            print_long(self, stream, row, j);
            continue;
        }
        fputs(j ? " & " : "", stream);
        if (over)
            fprintf(stream, "\\multicolumn{%zu}{l}{", self->column_count - j);
        latex_text(stream, row->cells[j]);
        if (over)
            fputc('}', stream);
    }
    end_line(stream);
}

void table_print_latex(const struct table *self, FILE *stream, bool wide)
{
    size_t heading = SIZE_MAX;
    bool open = false;
    for (size_t i = 0; i < self->row_count; i++) {
        const struct table_row *row = self->rows[i];
        if (row->kind == TABLE_ROW_HEADING) {
            if (open)
                end_group(stream);
            open = false;
            heading = i;
            continue;
        }
        if (!open)
            begin_group(self, stream, heading, wide);
        open = true;
        print_row(self, stream, row, wide);
    }
    if (open)
        end_group(stream);
}
