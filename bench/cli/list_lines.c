/* What the lists of `list` share: a table of names, a sentence in lines, a name that is none. */
#include "bench/cli/list.h"

#include <stdarg.h>
#include <stdio.h>

#include "bench/cli/cli.h"
#include "bench/report/sentence.h"

#define TEXT_WIDTH 22u
#define NAMES_MOST 128

const struct table_column list_columns[2] = {{"name", "", true, TEXT_WIDTH},
                                             {"what it is", "", true, 0}};

enum ar_status list_no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "list: no host memory left for the table");
}

enum ar_status list_print(struct table *table, struct ar_error *error)
{
    enum ar_status status = table_print(table, stdout, TABLE_TEXT, error);
    table_close(table);
    return status;
}

enum ar_status list_unknown(const char *what, const char *name, list_name_at *at,
                            struct ar_error *error)
{
    const char *names[NAMES_MOST];
    size_t count = 0;
    while (count < NAMES_MOST && (names[count] = at(count)))
        count++;
    return cli_unknown(what, name, names, count, error);
}

void list_line(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sentence_wrap(stdout, text, 0, 2, SENTENCE_WIDTH);
}
