/* Texts become numbers first, so that counting a candidate's rows is one pass over the rows. */
#include "bench/regress/groups.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum text { POLICY, WORKLOAD, FIGURE, TEXTS };

/* One call of groups_make. Arrays have room for all rows. */
struct work {
    const struct group_item *items;
    size_t count;
    size_t *ids[TEXTS]; /* of each row: the first row with the same text */
    size_t *tally;      /* of such ids */
    bool *done;
    struct groups *out;
};

static const char *text_of(const struct group_item *item, enum text text)
{
    return text == POLICY ? item->policy : text == WORKLOAD ? item->workload : item->figure;
}

/* There are few different texts: each row is held against the first rows of those. */
static void number_texts(struct work *self, enum text text)
{
    size_t *firsts = self->tally;
    size_t known = 0;
    for (size_t i = 0; i < self->count; i++) {
        size_t at = 0;
        while (at < known &&
               strcmp(text_of(&self->items[firsts[at]], text), text_of(&self->items[i], text)) != 0)
            at++;
        if (at == known)
            firsts[known++] = i;
        self->ids[text][i] = firsts[at];
    }
}

/* The rows that are left of a kind, counted by one text: the id with the most. */
static size_t most_frequent(struct work *self, size_t kind, enum text text, size_t *best)
{
    size_t most = 0;
    memset(self->tally, 0, self->count * sizeof *self->tally);
    for (size_t i = 0; i < self->count; i++)
        if (!self->done[i] && self->items[i].kind == kind)
            self->tally[self->ids[text][i]]++;
    for (size_t i = 0; i < self->count; i++)
        if (self->tally[i] > most) {
            most = self->tally[i];
            *best = i;
        }
    return most;
}

static bool is_worse(const struct group_item *a, const struct group_item *b)
{
    return b->change >= 0 && (a->change < 0 || a->change > b->change);
}

/* Different texts among the rows of a group, whose ids are `id`. */
static size_t different(struct work *self, size_t kind, enum text by, size_t id, enum text text)
{
    size_t count = 0;
    memset(self->tally, 0, self->count * sizeof *self->tally);
    for (size_t i = 0; i < self->count; i++)
        if (!self->done[i] && self->items[i].kind == kind && self->ids[by][i] == id)
            count += self->tally[self->ids[text][i]]++ == 0;
    return count;
}

static void add_group(struct work *self, size_t kind, enum text by, size_t id, size_t count)
{
    struct group group = {.by = by == POLICY ? GROUP_OF_POLICY : GROUP_OF_FIGURE,
                          .worst = SIZE_MAX,
                          .count = count,
                          .policies = different(self, kind, by, id, POLICY),
                          .workloads = different(self, kind, by, id, WORKLOAD),
                          .figures = different(self, kind, by, id, FIGURE)};
    for (size_t i = 0; i < self->count; i++) {
        if (self->done[i] || self->items[i].kind != kind || self->ids[by][i] != id)
            continue;
        self->done[i] = true;
        if (group.worst == SIZE_MAX || is_worse(&self->items[i], &self->items[group.worst]))
            group.worst = i;
    }
    self->out->items[self->out->count++] = group;
    self->out->folded += count;
}

/* All groups of a kind, then its other rows. */
static void make_kind(struct work *self, size_t kind)
{
    for (;;) {
        size_t policy = 0;
        size_t figure = 0;
        size_t of_policy = most_frequent(self, kind, POLICY, &policy);
        size_t of_figure = most_frequent(self, kind, FIGURE, &figure);
        bool by_policy = of_policy >= of_figure;
        size_t count = by_policy ? of_policy : of_figure;
        if (count <= GROUPS_LISTED)
            break;
        add_group(self, kind, by_policy ? POLICY : FIGURE, by_policy ? policy : figure, count);
    }
    for (size_t i = 0; i < self->count; i++) {
        if (self->done[i] || self->items[i].kind != kind)
            continue;
        self->done[i] = true;
        self->out->items[self->out->count++] = (struct group){
            .by = GROUP_ROW, .worst = i, .count = 1, .policies = 1, .workloads = 1, .figures = 1};
    }
}

enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error)
{
    struct work work = {.items = items, .count = count, .out = self};
    size_t room = count ? count : 1;
    bool complete = true;
    *self = (struct groups){.items = calloc(room, sizeof *self->items)};
    work.tally = calloc(room, sizeof *work.tally);
    work.done = calloc(room, sizeof *work.done);
    for (int text = 0; text < TEXTS; text++) {
        work.ids[text] = calloc(room, sizeof *work.ids[text]);
        complete = complete && work.ids[text];
    }
    complete = complete && self->items && work.tally && work.done;
    if (complete) {
        for (int text = 0; text < TEXTS; text++)
            number_texts(&work, (enum text)text);
        for (size_t i = 0; i < count; i++)
            if (!work.done[i])
                make_kind(&work, items[i].kind);
    }
    for (int text = 0; text < TEXTS; text++)
        free(work.ids[text]);
    free(work.tally);
    free(work.done);
    if (complete)
        return AR_OK;
    groups_close(self);
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left to group %zu rows", count);
}

void groups_close(struct groups *self)
{
    free(self->items);
    *self = (struct groups){0};
}

static void several(char *text, size_t room, size_t count, const char *one, const char *name)
{
    if (count == 1)
        snprintf(text, room, "%.160s", one);
    else
        snprintf(text, room, "%zu %s", count, name);
}

const char *group_text(const struct group *group, const struct group_item *worst, char *text,
                       size_t room)
{
    char what[168];
    char where[168];
    several(where, sizeof where, group->workloads, worst->workload, "workloads");
    if (group->by == GROUP_OF_POLICY) {
        several(what, sizeof what, group->figures, worst->figure, "figures");
        snprintf(text, room, "policy %.160s, %s in %s; largest: %s of %.160s", worst->policy, what,
                 where, worst->figure, worst->workload);
    } else if (group->by == GROUP_OF_FIGURE) {
        several(what, sizeof what, group->policies, worst->policy, "policies");
        snprintf(text, room, "figure %s, %s in %s; largest: %.160s on %.160s", worst->figure, what,
                 where, worst->policy, worst->workload);
    } else {
        snprintf(text, room, "%s of %.160s with policy %.160s", worst->figure, worst->workload,
                 worst->policy);
    }
    return text;
}

struct table *groups_table(void)
{
    static const struct table_column columns[] = {
        {"verdict", "", true, 0}, {"rows", "", false, 0}, {"what", "", true, 0}};
    return table_create(columns, sizeof columns / sizeof columns[0]);
}

void groups_note(size_t folded, FILE *stream)
{
    if (folded)
        fputs("\nOne line for what shares a policy or a figure; --all lists every row.\n", stream);
}
