/* Prints tables of texts (table.h). Rows are kept as texts until the table is printed, because
 * the widths depend on all of them. If a line would be longer than LINE_WIDTH, the columns stand
 * closer together. If that is not enough, one column of texts becomes narrower: a cell that is
 * longer than its column gets a line of its own, with the rest of its row below it. */
#include "bench/report/table.h"

#include <ctype.h>
#include <limits.h>

#include "allocators/base/array.h"
#include "allocators/base/utf8.h"
#include "bench/report/sentence.h"

#define GAP        2 /* spaces between columns */
#define LEAST_GAP  1 /* in a table that would be too wide */
#define LINE_WIDTH 80
#define LEAST_WIDE 20 /* other columns become narrower so that a last column of text has this */
#define STRIP_WIDE 12 /* a last column of text is not broken into lines narrower than this */

#define LATEX_CELL_MOST 9  /* letters of a cell that has others after it */
#define LATEX_WORD_MOST 24 /* letters of a word in a caption that is not broken */
#define LATEX_NARROW    6  /* columns; with more the type is smaller */

enum table_row_kind { TABLE_ROW_CELLS, TABLE_ROW_HEADING };

struct table_row {
    enum table_row_kind kind;
    size_t cell_count; /* given so far; the heading is cells[0] */
    bool rest;         /* the last cell given spans the columns after it */
    char *cells[];
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct table_column *own_columns; /* of table_of, with their texts in `own_text` */
    char *own_text;
    struct table_row **rows;
    size_t row_count, row_room;
    const char *label, *note; /* for LaTeX; NULL: none */
    bool lost;                /* host memory ran out */
};

struct table *table_create(const struct table_column *columns, size_t column_count)
{
    struct table *self = calloc(1, sizeof *self);
    if (self) {
        self->columns = columns;
        self->column_count = column_count;
    }
    return self;
}

struct table *table_of(const char *format, ...)
{
    size_t count = 1;
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    for (const char *at = text; at && *at; at++)
        count += *at == ';';
    struct table_column *own = calloc(count, sizeof *own);
    struct table *self = table_create(own, count);
    if (!self || !text || !own) {
        free(text);
        free(own);
        free(self);
        return NULL;
    }
    self->own_columns = own;
    self->own_text = text;
    for (char *rest = text; rest; own++) {
        char *title = strsep(&rest, ";");
        char *left = strchr(title, '<'), *unit = strchr(title, '|');
        *own = (struct table_column){.title = title + strspn(title, " "),
                                     .unit = unit ? unit + 1 : "",
                                     .left = left != NULL,
                                     .most_wide = left ? (unsigned)atoi(left + 1) : 0};
        if (left)
            *left = '\0';
        if (unit)
            *unit = '\0';
    }
    return self;
}

void table_close(struct table *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->row_count; i++) {
        for (size_t j = 0; j < self->rows[i]->cell_count; j++)
            free(self->rows[i]->cells[j]);
        free(self->rows[i]);
    }
    free(self->rows);
    free(self->own_columns);
    free(self->own_text);
    free(self);
}

void table_label(struct table *self, const char *label, const char *note)
{
    if (!self)
        return;
    self->label = label;
    self->note = note;
}

bool table_has_room(enum table_form form, enum table_room room)
{
    return form == TABLE_TEXT    ? room & TABLE_ROOM_TEXT
           : form == TABLE_LATEX ? room & TABLE_ROOM_LATEX
                                 : true;
}

static struct table_row *add_row(struct table *self, enum table_row_kind kind)
{
    if (!ar_array_make_room(&self->rows, self->row_count, &self->row_room, sizeof *self->rows))
        return NULL;
    struct table_row *row = calloc(1, sizeof *row + self->column_count * sizeof row->cells[0]);
    if (!row)
        return NULL;
    row->kind = kind;
    self->rows[self->row_count++] = row;
    return row;
}

static bool row_is_open(const struct table *self)
{
    if (self->row_count == 0)
        return false;
    const struct table_row *row = self->rows[self->row_count - 1];
    return row->kind == TABLE_ROW_CELLS && !row->rest && row->cell_count < self->column_count;
}

__attribute__((format(printf, 4, 0))) static void add_text(struct table *self,
                                                           enum table_row_kind kind, bool rest,
                                                           const char *format, va_list arguments)
{
    if (!self)
        return;
    struct table_row *row = kind == TABLE_ROW_CELLS && row_is_open(self)
                                ? self->rows[self->row_count - 1]
                                : add_row(self, kind);
    char *text;
    if (!row || vasprintf(&text, format, arguments) < 0) {
        self->lost = true;
        return;
    }
    size_t room = 4 * strlen(text) + 1;
    char *escaped = malloc(room);
    if (escaped)
        ar_utf8_escape(text, escaped, room);
    free(text);
    self->lost |= !escaped;
    row->cells[row->cell_count++] = escaped ? escaped : strdup("");
    row->rest = rest;
}

void table_heading(struct table *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(self, TABLE_ROW_HEADING, false, format, arguments);
    va_end(arguments);
}

void table_cell(struct table *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(self, TABLE_ROW_CELLS, false, format, arguments);
    va_end(arguments);
}

void table_known(struct table *self, bool known, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (known)
        add_text(self, TABLE_ROW_CELLS, false, format, arguments);
    else
        table_cell(self, "-");
    va_end(arguments);
}

void table_number(struct table *self, bool known, int decimals, double value)
{
    table_known(self, known, "%.*f", decimals, value);
}

void table_rest(struct table *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(self, TABLE_ROW_CELLS, true, format, arguments);
    va_end(arguments);
}

/* The length of its longest cell of at most `most` bytes; 0: of any length. */
static size_t column_width(const struct table *self, size_t column, size_t most)
{
    const struct table_column *info = &self->columns[column];
    size_t title = strlen(info->title);
    size_t unit = strlen(info->unit);
    size_t width = title > unit ? title : unit;
    for (size_t i = 0; i < self->row_count; i++) {
        const struct table_row *row = self->rows[i];
        if (row->kind != TABLE_ROW_CELLS || column >= row->cell_count)
            continue;
        if (row->rest && column == row->cell_count - 1)
            continue;
        size_t length = strlen(row->cells[column]);
        if (length > width && (most == 0 || length <= most))
            width = length;
    }
    return width;
}

/* Spaces between columns, and the width of each. */
struct layout {
    size_t gap;
    size_t *widths;
};

static size_t line_length(const struct table *self, const struct layout *layout)
{
    const size_t *widths = layout->widths;
    size_t last = self->column_count - 1;
    size_t length =
        self->columns[last].left && widths[last] > LEAST_WIDE ? LEAST_WIDE : widths[last];
    for (size_t j = 0; j < last; j++)
        length += widths[j] + layout->gap;
    return length;
}

/* Makes the widest column of texts, except the last, so narrow that lines fit. */
static void narrow_texts(const struct table *self, const struct layout *layout)
{
    size_t *widths = layout->widths, length = line_length(self, layout);
    size_t widest = self->column_count;
    for (size_t j = 0; j + 1 < self->column_count; j++)
        if (self->columns[j].left && (widest == self->column_count || widths[j] > widths[widest]))
            widest = j;
    if (length <= LINE_WIDTH || widest == self->column_count)
        return;
    size_t excess = length - LINE_WIDTH;
    if (excess >= widths[widest])
        return;
    size_t width = column_width(self, widest, widths[widest] - excess);
    if (width <= widths[widest] - excess)
        widths[widest] = width;
}

/* The longest word of a last column of texts, which is not broken; 0: of numbers. */
static size_t longest_word(const struct table *self, size_t column)
{
    size_t longest = 0;
    for (size_t i = 0; i < self->row_count && self->columns[column].left; i++) {
        const struct table_row *row = self->rows[i];
        const bool has = row->kind == TABLE_ROW_CELLS && column < row->cell_count;
        for (const char *at = has ? row->cells[column] : ""; *at; at += at[0] == ' ') {
            const size_t word = strcspn(at, " ");
            AR_RAISE(longest, word);
            at += word;
        }
    }
    return longest;
}

static void make_fit(const struct table *self, struct layout *layout)
{
    const size_t gaps[] = {GAP, LEAST_GAP}, last = self->column_count - 1;
    for (size_t i = 0; i < AR_COUNT(gaps); i++) {
        for (size_t j = 0; j < self->column_count; j++)
            layout->widths[j] = column_width(self, j, 0);
        layout->gap = gaps[i];
        const size_t word = longest_word(self, last);
        if (line_length(self, layout) + (word > LEAST_WIDE ? word - LEAST_WIDE : 0) <= LINE_WIDTH)
            return;
    }
    layout->gap = GAP;
    for (size_t j = 0; j < self->column_count; j++)
        layout->widths[j] = column_width(self, j, self->columns[j].most_wide);
    narrow_texts(self, layout);
    if (line_length(self, layout) <= LINE_WIDTH)
        return;
    layout->gap = LEAST_GAP;
    narrow_texts(self, layout);
}

static void print_cell(FILE *stream, const char *text, const struct layout *layout, size_t width,
                       bool left, bool last)
{
    if (left)
        fprintf(stream, "%-*s", last ? 0 : (int)width, text);
    else
        fprintf(stream, "%*s", (int)width, text);
    if (!last)
        fprintf(stream, "%*s", (int)layout->gap, "");
}

/* The text of a last column, broken between words so that lines fit, further lines below the
 * first. */
static void print_wrapped(FILE *stream, const char *text, size_t indent)
{
    size_t room = indent + STRIP_WIDE <= LINE_WIDTH ? LINE_WIDTH - indent : SIZE_MAX;
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = strcspn(text, " "); /* one long word */
        if (!text[cut])
            break;
        fprintf(stream, "%.*s\n%*s", (int)cut, text, (int)indent, "");
        text += cut + 1;
    }
    fputs(text, stream);
}

static void print_row(const struct table *self, FILE *stream, const struct layout *layout,
                      const struct table_row *row)
{
    const size_t *widths = layout->widths;
    size_t indent = 0;
    for (size_t j = 0; j < row->cell_count; j++) {
        bool last = j == row->cell_count - 1;
        const char *text = row->cells[j];
        if (last && (row->rest || self->columns[j].left)) {
            print_wrapped(stream, text, indent);
            break;
        }
        indent += widths[j] + layout->gap;
        if (last || strlen(text) <= widths[j]) {
            print_cell(stream, text, layout, widths[j], self->columns[j].left, last);
            continue;
        }
        /* The cell is longer than its column: the rest of the row goes below it. */
        fprintf(stream, "%s\n%*s", text, (int)indent, "");
    }
    fputc('\n', stream);
}

static const char *title_text(const struct table_column *column, bool unit)
{
    return unit ? column->unit : column->title;
}

static void print_title_line(const struct table *self, FILE *stream, const struct layout *layout,
                             bool unit)
{
    size_t count = self->column_count;
    while (count > 0 && !title_text(&self->columns[count - 1], unit)[0])
        count--;
    if (count == 0)
        return;
    for (size_t j = 0; j < count; j++)
        print_cell(stream, title_text(&self->columns[j], unit), layout, layout->widths[j],
                   self->columns[j].left, j == count - 1);
    fputc('\n', stream);
}

static void print_text(const struct table *self, FILE *stream, const struct layout *layout,
                       int width)
{
    print_title_line(self, stream, layout, false);
    print_title_line(self, stream, layout, true);
    for (size_t i = 0; i < self->row_count; i++) {
        const struct table_row *row = self->rows[i];
        if (row->kind == TABLE_ROW_CELLS) {
            print_row(self, stream, layout, row);
            continue;
        }
        fputc('\n', stream);
        sentence_wrap(stream, row->cells[0], 0, 2, width);
    }
}

static void markdown_titles(const struct table *self, FILE *stream)
{
    for (size_t j = 0; j < self->column_count; j++) {
        const struct table_column *column = &self->columns[j];
        fprintf(stream, "| %s%s%s%s ", column->title, column->unit[0] ? " (" : "", column->unit,
                column->unit[0] ? ")" : "");
    }
    fputs("|\n", stream);
    for (size_t j = 0; j < self->column_count; j++)
        fputs(self->columns[j].left ? "| --- " : "| ---: ", stream);
    fputs("|\n", stream);
}

void markdown_text(FILE *stream, const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", stream);
        else
            fputc(*text == '\n' || *text == '\r' ? ' ' : *text, stream);
}

static void print_markdown(const struct table *self, FILE *stream)
{
    bool titles = false;
    for (size_t i = 0; i < self->row_count; i++) {
        const struct table_row *row = self->rows[i];
        if (row->kind == TABLE_ROW_HEADING) {
            fprintf(stream, "%s**%s**\n\n", i ? "\n" : "", row->cells[0]);
            titles = false;
            continue;
        }
        if (!titles)
            markdown_titles(self, stream);
        titles = true;
        for (size_t j = 0; j < self->column_count; j++) {
            fputs("| ", stream);
            markdown_text(stream, j < row->cell_count ? row->cells[j] : "");
            fputc(' ', stream);
        }
        fputs("|\n", stream);
    }
}

/* ---- LaTeX: booktabs, one `table` for each group, its heading as the caption ----------------- */

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
        for (size_t i = 0; i < AR_COUNT(special); i++)
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

static void latex_titles(const struct table *self, FILE *stream)
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

/* A caption, in which a long word, such as the spec of a workload, may be broken. */
static void latex_caption(FILE *stream, const char *text)
{
    char piece[2] = "";
    size_t word = 0;
    for (; *text; text++) {
        word = *text == ' ' ? 0 : word + 1;
        piece[0] = *text;
        latex_text(stream, piece);
        if (strchr("/,:=.", *text) && text[1] && text[1] != ' ' &&
            word + strcspn(text, " ") > LATEX_WORD_MOST)
            fputs("\\allowbreak{}", stream);
    }
}

/* The heading up to its colon, in the characters that a label may have. */
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

/* `tab:LABEL-GROUP`; if earlier groups have the same name, with the number of this one. */
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

/* `heading_row` past the last row: there is none. */
static void begin_group(const struct table *self, FILE *stream, size_t heading_row)
{
    fputs("\\begin{table}\n\\centering\n", stream);
    if (heading_row < self->row_count) {
        fputs("\\caption{", stream);
        latex_caption(stream, self->rows[heading_row]->cells[0]);
        fputs(self->note ? ". " : "", stream);
        latex_text(stream, self->note ? self->note : "");
        fputs("}\n", stream);
        if (self->label)
            print_label(self, stream, heading_row);
    }
    fputs(self->column_count > LATEX_NARROW ? "\\scriptsize\\setlength{\\tabcolsep}{1.2pt}\n"
                                            : "\\footnotesize\\setlength{\\tabcolsep}{3pt}\n",
          stream);
    fputs("\\begin{tabular}{@{}", stream);
    for (size_t j = 0; j < self->column_count; j++)
        fputc(self->columns[j].left ? 'l' : 'r', stream);
    fputs("@{}}\n\\toprule\n", stream);
    latex_titles(self, stream);
    fputs("\\midrule\n", stream);
}

static void end_group(FILE *stream)
{
    fputs("\\bottomrule\n\\end{tabular}\n\\end{table}\n", stream);
}

/* A long name gets a line above the rest of its row, so that its column stays narrow. */
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

static void latex_row(const struct table *self, FILE *stream, const struct table_row *row,
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

static void print_latex(const struct table *self, FILE *stream, bool wide)
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
            begin_group(self, stream, heading);
        open = true;
        latex_row(self, stream, row, wide);
    }
    if (open)
        end_group(stream);
}

enum ar_status table_print(const struct table *self, FILE *stream, enum table_form form,
                           struct ar_error *error)
{
    if (!self || self->lost)
        return ar_no_memory(error, "the table");
    if (form == TABLE_MARKDOWN) {
        print_markdown(self, stream);
        return AR_OK;
    }
    if (table_is_latex(form)) {
        print_latex(self, stream, form == TABLE_LATEX_WIDE);
        return AR_OK;
    }
    struct layout layout = {GAP, calloc(self->column_count, sizeof *layout.widths)};
    AR_TRY_MEMORY(layout.widths, error, "the table");
    for (size_t j = 0; j < self->column_count; j++)
        layout.widths[j] = column_width(self, j, self->columns[j].most_wide);
    if (form == TABLE_TEXT)
        make_fit(self, &layout);
    print_text(self, stream, &layout, form == TABLE_TEXT ? LINE_WIDTH : INT_MAX);
    free(layout.widths);
    return AR_OK;
}

enum ar_status table_end(struct table *self, FILE *stream, enum table_form form,
                         struct ar_error *error)
{
    enum ar_status status = table_print(self, stream, form, error);
    table_close(self);
    return status;
}
