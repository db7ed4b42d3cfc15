#include "bench/regress/change_table.h"

#include "allocators/base/size.h"
#include "bench/report/sentence.h"
#include "workloads/io/fields.h"

bool change_is_share(const char *unit, double old, double new)
{
    return strcmp(unit, "ratio") == 0 && old >= 0 && old <= 1 && new >= 0 && new <= 1;
}

const struct change_headline change_headlines[] = {{"outcome", CHANGE_OUTCOME},
                                                   {"peak_physical_bytes", CHANGE_MEMORY},
                                                   {"peak_reserved_bytes", CHANGE_MEMORY},
                                                   {"slowdown", CHANGE_TIME},
                                                   {"instructions", CHANGE_OTHER},
                                                   {NULL, CHANGE_OTHER}};

const struct change_headline *change_headline(const char *figure)
{
    for (const struct change_headline *line = change_headlines; line->figure; line++)
        if (strcmp(line->figure, figure) == 0)
            return line;
    return NULL;
}

enum change_place change_place(const char *figure, bool is_share)
{
    const struct change_headline *line = change_headline(figure);
    if (line)
        return line->place;
    return is_share ? CHANGE_SHARE : CHANGE_OTHER;
}

/* ---- groups --------------------------------------------------------------------------------- */

/* Texts become numbers first, so that counting the rows of a candidate is one pass. */

enum text { POLICY, WORKLOAD, FIGURE, TEXTS };

/* One call of groups_make. Arrays have room for all rows. */
struct grouping {
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

/* There are few different texts: each row is compared with the first row of each text. */
static void number_texts(struct grouping *self, enum text text)
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

/* Counts the remaining rows of a kind by one text; `*best` is the id with the most rows. */
static size_t most_frequent(struct grouping *self, size_t kind, enum text text, size_t *best)
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

bool change_is_worse(enum change_place place, double change, enum change_place other_place,
                     double other_change)
{
    if (place != other_place)
        return place < other_place;
    return other_change >= 0 && (change < 0 || change > other_change);
}

static bool is_worse(const struct group_item *a, const struct group_item *b)
{
    return change_is_worse(a->place, a->change, b->place, b->change);
}

/* Of rows that matter equally, the first. */
static bool comes_before(const struct group_item *items, size_t a, size_t b)
{
    return is_worse(&items[a], &items[b]) || (a < b && !is_worse(&items[b], &items[a]));
}

/* The number of different texts among the rows of the group `id`. */
static size_t different(struct grouping *self, size_t kind, enum text by, size_t id, enum text text)
{
    size_t count = 0;
    memset(self->tally, 0, self->count * sizeof *self->tally);
    for (size_t i = 0; i < self->count; i++)
        if (!self->done[i] && self->items[i].kind == kind && self->ids[by][i] == id)
            count += self->tally[self->ids[text][i]]++ == 0;
    return count;
}

static void add_group(struct grouping *self, size_t kind, enum text by, size_t id, size_t count)
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

/* By their worst rows. */
static void sort_groups(struct grouping *self, size_t from)
{
    struct group *groups = self->out->items;
    for (size_t i = from + 1; i < self->out->count; i++) {
        struct group group = groups[i];
        size_t at = i;
        for (; at > from && comes_before(self->items, group.worst, groups[at - 1].worst); at--)
            groups[at] = groups[at - 1];
        groups[at] = group;
    }
}

/* Adds all groups of a kind and its other rows. */
static void make_kind(struct grouping *self, size_t kind)
{
    const size_t from = self->out->count;
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
    sort_groups(self, from);
}

enum ar_status groups_make(struct groups *self, const struct group_item *items, size_t count,
                           struct ar_error *error)
{
    size_t room = count ? count : 1;
    AR_FREED size_t *ids = calloc(TEXTS * room, sizeof *ids);
    AR_FREED size_t *tally = calloc(room, sizeof *tally);
    AR_FREED bool *done = calloc(room, sizeof *done);
    *self = (struct groups){.items = calloc(room, sizeof *self->items)};
    AR_TRY_MEMORY(ids && tally && done && self->items, error, "groups of %zu rows", count);
    struct grouping work = {
        .items = items, .count = count, .tally = tally, .done = done, .out = self};
    for (int text = 0; text < TEXTS; text++) {
        work.ids[text] = ids + (size_t)text * room;
        number_texts(&work, (enum text)text);
    }
    for (size_t i = 0; i < count; i++)
        if (!done[i])
            make_kind(&work, items[i].kind);
    return AR_OK;
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
        snprintf(text, room, "policy %.160s, %s in %s; first: %s of %.160s", worst->policy, what,
                 where, worst->figure, worst->workload);
    } else if (group->by == GROUP_OF_FIGURE) {
        several(what, sizeof what, group->policies, worst->policy, "policies");
        snprintf(text, room, "figure %s, %s in %s; first: %.160s on %.160s", worst->figure, what,
                 where, worst->policy, worst->workload);
    } else {
        snprintf(text, room, "%s of %.160s with policy %.160s", worst->figure, worst->workload,
                 worst->policy);
    }
    return text;
}

/* ---- the table ----------------------------------------------------------------------------- */

bool change_is_waived(const struct waiver *waiver)
{
    return waiver && !waiver->expired;
}

void change_size_text(double change, bool is_share, const char *word, char text[48])
{
    if (is_share)
        snprintf(text, 48, "%.3g percentage points %s", 100 * change, word);
    else if (change >= 9) /* a decrease is at most 1 */
        snprintf(text, 48, "%.3g times as much", change + 1);
    else
        snprintf(text, 48, "%.3g %% %s", 100 * change, word);
}

const char *change_waiver_text(const struct waiver *waiver, char text[48])
{
    text[0] = '\0';
    if (waiver)
        snprintf(text, 48, "%s %s ", waiver->expired ? "its waiver expired on" : "waived until",
                 waiver->until);
    return text;
}

/* A row for every figure, those of a run together. */
static enum ar_status print_all(const struct change_row *rows, size_t count,
                                const struct change_words *words, FILE *stream,
                                enum table_form form, struct ar_error *error)
{
    struct table *table = table_of("verdict<; figure<; %s; %s; <", words->old, words->new);
    for (size_t i = 0; i < count; i++) {
        const struct change_row *row = &rows[i], *before = i ? row - 1 : NULL;
        bool begins = !before || before->section != row->section;
        if (begins && row->heading[0])
            table_heading(table, "%s", row->heading);
        if (begins || before->item.policy != row->item.policy ||
            before->workload != row->workload || before->where != row->where)
            table_heading(table, "%s with policy %s", row->item.workload, row->item.policy);
        table_cell(table, "%s", row->verdict);
        table_cell(table, "%s", row->item.figure);
        table_cell(table, "%s", row->old);
        table_cell(table, "%s", row->new);
        table_cell(table, "%s" WAIVER_FORMAT, row->remark, WAIVER_TEXTS(row->waiver));
    }
    return table_end(table, stream, form, error);
}

const char *change_value_text(const char *figure, const char *value, char text[CHANGE_VALUE_ROOM])
{
    double bytes;
    const bool is_number = ar_number_parse(value, &bytes);
    snprintf(text, CHANGE_VALUE_ROOM, "%s", value);
    if (is_number && bytes >= (double)AR_MIB && field_ends_with(figure, "_bytes"))
        text_add(text, CHANGE_VALUE_ROOM, " (%.1f MiB)", bytes / (double)AR_MIB);
    return text;
}

static void group_row(struct table *table, const struct group *group, const struct change_row *row,
                      const struct change_words *words)
{
    char of[800], old[CHANGE_VALUE_ROOM], new[CHANGE_VALUE_ROOM];
    bool valued = strcmp(row->old, "-") != 0 || strcmp(row->new, "-") != 0;
    group_text(group, &row->item, of, sizeof of);
    table_cell(table, "%s", row->verdict);
    table_cell(table, "%zu", group->count);
    if (valued)
        table_cell(table, "%s: %s before, %s %s%s%s" WAIVER_FORMAT, of,
                   change_value_text(row->item.figure, row->old, old),
                   change_value_text(row->item.figure, row->new, new), words->since,
                   row->remark[0] ? "; " : "", row->remark, WAIVER_TEXTS(row->waiver));
    else
        table_cell(table, "%s: %s" WAIVER_FORMAT, of, row->remark, WAIVER_TEXTS(row->waiver));
}

static enum ar_status print_groups(const struct change_row *rows, size_t count,
                                   const struct change_words *words, FILE *stream,
                                   enum table_form form, struct ar_error *error)
{
    AR_FREED struct group_item *items = calloc(count, sizeof *items);
    AR_CLOSED(groups_close) struct groups groups = {0};
    AR_TRY_MEMORY(items, error, "a table");
    for (size_t i = 0; i < count; i++)
        items[i] = rows[i].item;
    AR_TRY(groups_make(&groups, items, count, error));
    AR_CLOSED(table_close_at) struct table *table = table_of("verdict<; rows; what<");
    for (size_t i = 0; i < groups.count; i++) {
        const struct change_row *row = &rows[groups.items[i].worst];
        bool begins = !i || rows[groups.items[i - 1].worst].section != row->section;
        if (begins && row->heading[0])
            table_heading(table, "%s", row->heading);
        group_row(table, &groups.items[i], row, words);
    }
    AR_TRY(table_print(table, stream, form, error));
    if (groups.folded)
        fputs("\nRows that share a policy or a figure are one line; --all lists every row.\n",
              stream);
    return AR_OK;
}

enum ar_status change_table_print(const struct change_row *rows, size_t count, bool all,
                                  const struct change_words *words, FILE *stream,
                                  enum table_form form, struct ar_error *error)
{
    if (!count)
        return AR_OK;
    enum ar_status status = all ? print_all(rows, count, words, stream, form, error)
                                : print_groups(rows, count, words, stream, form, error);
    fputc('\n', stream);
    return status;
}
