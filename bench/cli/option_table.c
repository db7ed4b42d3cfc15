#include "bench/cli/option_table.h"

#include <stdint.h>
#include <stdio.h>

#include "allocators/base/size.h"
#include "bench/report/table.h"

static const char *type_name(const struct ar_option *option)
{
    static const char *const names[] = {
        [AR_OPTION_BYTES] = "bytes", [AR_OPTION_COUNT] = "count", [AR_OPTION_FRACTION] = "number",
        [AR_OPTION_BOOL] = "bool",   [AR_OPTION_CHOICE] = "",     [AR_OPTION_TEXT] = "text",
    };
    return option->type == AR_OPTION_CHOICE ? option->choices : names[option->type];
}

/* One end of a range, in the unit of the option. */
static const char *bound_text(const struct ar_option *option, double bound, char *text,
                              size_t text_bytes)
{
    if (option->type == AR_OPTION_BYTES)
        return ar_size_print_exact((uint64_t)bound, text, text_bytes);
    snprintf(text, text_bytes, option->type == AR_OPTION_COUNT ? "%.0f" : "%.15g", bound);
    return text;
}

static void range_cell(struct table *table, const struct ar_option *option)
{
    char least[32];
    char most[32];
    if (option->least == 0 && option->most == 0)
        table_cell(table, "-");
    else
        table_cell(table, "%s..%s", bound_text(option, option->least, least, sizeof least),
                   bound_text(option, option->most, most, sizeof most));
}

enum ar_status option_table_print(const struct ar_option *list, struct ar_error *error)
{
    static const struct table_column columns[] = {{"option", "", true, 13},
                                                  {"type", "", true, 8},
                                                  {"default", "", true, 8},
                                                  {"range", "", true, 12},
                                                  {"what it is", "", true, 0}};
    if (!list || !list->name) {
        puts("No options.");
        return AR_OK;
    }
    struct table *table = table_of(columns);
    for (; list->name; list++) {
        table_cell(table, "%s", list->name);
        table_cell(table, "%s", type_name(list));
        table_cell(table, "%s", list->default_text ? list->default_text : "-");
        range_cell(table, list);
        table_cell(table, "%s", list->help);
    }
    return table_end(table, stdout, TABLE_TEXT, error);
}
