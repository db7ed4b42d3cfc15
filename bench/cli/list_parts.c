/* `list parts`: the parts that a scenario of `twin` may have. */
#include <stdio.h>
#include <string.h>

#include "bench/cli/list.h"
#include "bench/cli/option_table.h"
#include "sim/twin/twin.h"

const char *list_part_name(size_t index)
{
    return twin_part_at(index) ? twin_part_at(index)->kind : NULL;
}

static enum ar_status print_actions(const struct twin_action *action, struct ar_error *error)
{
    static const struct table_column columns[] = {
        {"action", "", true, 0}, {"arguments", "", true, 24}, {"what it does", "", true, 0}};
    struct table *table = table_create(columns, 3);
    for (; action->name; action++) {
        table_cell(table, "%s", action->name);
        table_cell(table, "%s", action->arguments ? action->arguments : "-");
        table_cell(table, "%s", action->help);
    }
    return table_end(table, stdout, TABLE_TEXT, error);
}

/* The parts of `twin`: the keys of their sections and their actions. */
enum ar_status list_parts(const char *name, struct ar_error *error)
{
    struct table *table = name ? NULL : table_create(list_columns, 2);
    if (!name && !table)
        return list_no_memory(error);
    for (size_t i = 0; twin_part_at(i); i++) {
        const struct twin_part_ops *ops = twin_part_at(i);
        if (name && !strcmp(name, ops->kind)) {
            list_line("[%s NAME]: %s", ops->kind, ops->summary);
            putchar('\n');
            enum ar_status status = option_table_print(ops->options, error);
            putchar('\n');
            return status ? status : print_actions(ops->actions, error);
        }
        if (table) {
            table_cell(table, "%s", ops->kind);
            table_cell(table, "%s", ops->summary);
        }
    }
    if (!table)
        return list_unknown("part", name, list_part_name, error);
    enum ar_status status = table_end(table, stdout, TABLE_TEXT, error);
    if (!status)
        puts("\nEvery process has these actions:\n");
    return status ? status : print_actions(twin_process_actions(), error);
}
