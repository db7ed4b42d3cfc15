/* The command line of equal.sh and verify.sh. */
#include "tests/gpu/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static const char usage[] =
    "usage: cells equal|verify [options]\n"
    "  -j N             processes at a time (1: then what each cell leaves on the card is looked "
    "at)\n"
    "  -p, -w REGEX     only policies, only workloads that match\n"
    "  --policy SPEC, --workload SPEC   these, in place of all; may be repeated\n"
    "  --resume FILE    a file of lines, added to as cells end; cells that are `ok` there are not "
    "run\n"
    "  --capacity BYTES of each cell (default 8GiB, or $CAPACITY)\n"
    "  --limit SECONDS  of each cell (default 120, or $LIMIT)\n";

struct command {
    struct cells_wish wish;
    const char *policies[MOST], *workloads[MOST];
};

static const char *given(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && value[0] ? value : otherwise;
}

static bool read_number(const char *text, unsigned long most, unsigned long *out)
{
    char *rest;
    *out = strtoul(text, &rest, 10);
    return *rest == '\0' && rest != text && *out >= 1 && *out <= most;
}

static bool take(struct command *self, const char *key, const char *value)
{
    struct cells_wish *wish = &self->wish;
    unsigned long number = 0;
    bool good = true;
    if (strcmp(key, "-j") == 0)
        good = read_number(value, MOST, &number);
    else if (strcmp(key, "--limit") == 0)
        good = read_number(value, 86400, &number);
    else if (strcmp(key, "-p") == 0)
        wish->policies_like = value;
    else if (strcmp(key, "-w") == 0)
        wish->workloads_like = value;
    else if (strcmp(key, "--policy") == 0 && wish->policy_count < MOST)
        self->policies[wish->policy_count++] = value;
    else if (strcmp(key, "--workload") == 0 && wish->workload_count < MOST)
        self->workloads[wish->workload_count++] = value;
    else if (strcmp(key, "--resume") == 0)
        wish->resume = value;
    else if (strcmp(key, "--capacity") == 0)
        wish->capacity = value;
    else
        return false;
    if (good && number && key[1] == 'j')
        wish->jobs = (unsigned)number;
    else if (good && number)
        wish->limit_s = number;
    return good;
}

static bool read_line(struct command *self, int argc, char **argv)
{
    struct cells_wish *wish = &self->wish;
    bool good = argc > 1 && argc % 2 == 0 && take(self, "--limit", given("LIMIT", "120"));
    wish->jobs = 1;
    wish->capacity = given("CAPACITY", "8GiB");
    wish->policies = self->policies;
    wish->workloads = self->workloads;
    if (good && strcmp(argv[1], "verify") == 0)
        wish->task = CELLS_VERIFY;
    else if (!good || strcmp(argv[1], "equal") != 0)
        return false;
    for (int i = 2; good && i < argc; i += 2)
        good = take(self, argv[i], argv[i + 1]);
    return good && strlen(wish->capacity) < 32;
}

int main(int argc, char **argv)
{
    struct command self = {.wish = {.task = CELLS_EQUAL}};
    struct cells_list list;
    struct ar_error error = {""};
    if (!read_line(&self, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    enum ar_status status = cells_list_make(&self.wish, &list, &error);
    int answer = ar_status_exit(status);
    if (status)
        fprintf(stderr, "cells: %s\n", error.text);
    else
        answer = cells_crew_run(&self.wish, &list);
    cells_list_close(&list);
    return answer;
}
