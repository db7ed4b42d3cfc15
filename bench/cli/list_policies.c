/* `list policies` and `list decorators`, from the registry of policies. */
#include <stdio.h>
#include <string.h>

#include "allocators/registry.h"
#include "bench/cli/list.h"
#include "bench/cli/option_table.h"

static const struct {
    enum ar_policy_capability bit;
    const char *text;
} capabilities[] = {
    {AR_POLICY_STREAM_ORDERED, "keeps a block from other streams until that is safe"},
    {AR_POLICY_OPAQUE, "its inside cannot be seen: hole metrics are null"},
    {AR_POLICY_OFFLINE, "sees the whole trace before the first request"},
    {AR_POLICY_NEEDS_MAPPING, "needs virtual memory"},
    {AR_POLICY_WATCHES_FREE, "reports its holes: the unusable-free index is known"},
    {AR_POLICY_HONOURS_ALIGNMENT, "serves any power-of-two alignment"},
    {AR_POLICY_UNRANKED, "a harness check or a bound: shown, never ranked"},
    {AR_POLICY_OVERLAPS, "hands out memory that it never takes back"},
};

static enum ar_status show_policy(const struct ar_policy_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    if (ops->reference)
        list_line("Reference: %s", ops->reference);
    for (size_t i = 0; ops->recorders && ops->recorders[i]; i++)
        printf("%s%s%s", i ? ", " : "Answers to recordings of: ", ops->recorders[i],
               ops->recorders[i + 1] ? "" : "\n");
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++)
        if (ops->capabilities & capabilities[i].bit)
            printf("- %s\n", capabilities[i].text);
    putchar('\n');
    return option_table_print(ops->options, error);
}

static enum ar_status show_decorator(const struct decorator_ops *ops, struct ar_error *error)
{
    list_line("%s: %s", ops->name, ops->summary);
    list_line("A decorator: write %s(key=value)+POLICY.", ops->name);
    putchar('\n');
    return option_table_print(ops->options, error);
}

/* A policy from a shared object, named as -p names it. */
static enum ar_status show_object(const char *name, struct ar_error *error)
{
    struct ar_spec spec;
    const struct ar_policy_ops *ops;
    enum ar_status status = ar_spec_parse(name, &spec, error);
    if (status)
        return status;
    status = registry_lookup(&spec, &ops, error);
    ar_spec_close(&spec);
    return status ? status : show_policy(ops, error);
}

static bool names_object(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

const char *list_policy_name(size_t index)
{
    const struct ar_policy_ops *ops = registry_policy(index);
    return ops ? ops->name : NULL;
}

const char *list_decorator_name(size_t index)
{
    const struct decorator_ops *ops = registry_decorator(index);
    return ops ? ops->name : NULL;
}

static void add_decorators(struct table *table)
{
    for (size_t i = 0; registry_decorator(i); i++) {
        table_cell(table, "%s", registry_decorator(i)->name);
        table_cell(table, "%s", registry_decorator(i)->summary);
    }
}

enum ar_status list_decorators(const char *name, struct ar_error *error)
{
    for (size_t i = 0; name && registry_decorator(i); i++)
        if (strcmp(list_decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    if (name)
        return list_unknown("decorator", name, list_decorator_name, error);
    struct table *table = table_create(list_columns, 2);
    if (!table)
        return list_no_memory(error);
    add_decorators(table);
    return list_print(table, error);
}

/* A policy, or what may be written before one. */
static const char *policy_word(size_t index)
{
    size_t policies = 0;
    while (list_policy_name(policies))
        policies++;
    return index < policies ? list_policy_name(index) : list_decorator_name(index - policies);
}

static enum ar_status show_policy_word(const char *name, struct ar_error *error)
{
    if (names_object(name))
        return show_object(name, error);
    for (size_t i = 0; registry_policy(i); i++)
        if (strcmp(list_policy_name(i), name) == 0)
            return show_policy(registry_policy(i), error);
    for (size_t i = 0; registry_decorator(i); i++)
        if (strcmp(list_decorator_name(i), name) == 0)
            return show_decorator(registry_decorator(i), error);
    return list_unknown("policy", name, policy_word, error);
}

enum ar_status list_policies(const char *name, struct ar_error *error)
{
    if (name)
        return show_policy_word(name, error);
    struct table *table = table_create(list_columns, 2);
    if (!table)
        return list_no_memory(error);
    for (size_t i = 0; registry_policy(i); i++) {
        table_cell(table, "%s", registry_policy(i)->name);
        table_cell(table, "%s", registry_policy(i)->summary);
    }
    table_heading(table, "decorators, written before a policy: checked+growth");
    add_decorators(table);
    return list_print(table, error);
}
