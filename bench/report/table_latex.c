#include <string.h>

#include "bench/report/latex.h"
#include "bench/report/table_rows.h"

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

static void begin_group(const struct table *self, FILE *stream, const char *caption)
{
    fputs("\\begin{table}\n\\centering\n", stream);
    if (caption) {
        fputs("\\caption{", stream);
        latex_text(stream, caption);
        fputs("}\n", stream);
    }
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

static void print_row(const struct table *self, FILE *stream, const struct table_row *row)
{
    for (size_t j = 0; j < row->cell_count; j++) {
        bool over = row->rest && j + 1 == row->cell_count && j + 1 < self->column_count;
        fputs(j ? " & " : "", stream);
        if (over)
            fprintf(stream, "\\multicolumn{%zu}{l}{", self->column_count - j);
        latex_text(stream, row->cells[j]);
        if (over)
            fputc('}', stream);
    }
    end_line(stream);
}

void table_print_latex(const struct table *self, FILE *stream)
{
    const char *caption = NULL;
    bool open = false;
    for (size_t i = 0; i < self->row_count; i++) {
        const struct table_row *row = self->rows[i];
        if (row->kind == TABLE_ROW_HEADING) {
            if (open)
                end_group(stream);
            open = false;
            caption = row->cells[0];
            continue;
        }
        if (!open)
            begin_group(self, stream, caption);
        open = true;
        print_row(self, stream, row);
    }
    if (open)
        end_group(stream);
}
