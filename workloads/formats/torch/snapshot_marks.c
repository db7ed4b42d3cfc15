/* An annotation is a name (of a `record_function`), a stage (START or END), a device and a time.
 *
 * 1. The label of a mark is the name, with `stage=start` or `stage=end`. The stage MARK, which this
 *    project writes for marks that are neither, becomes none.
 * 2. The end of `ProfilerStep#N`, and of anything called `step`, is the end of a step: `m,step`.
 *    Nothing else is: the beginning of `step` has the label `step_begins`. If the label differs
 *    from the name, `name=` has the name.
 * 3. Bytes that a label cannot hold become `_`.
 * 4. "allocator settings OLD -> NEW" and "allocator limit BYTES" are notes on a change of the
 *    allocator where the annotation starts: a program writes them around the calls that a snapshot
 *    does not hold (FORMAT.md). The first OLD has the settings of the start. A text without an
 *    arrow or a number, or that a note cannot hold as it is, stays a mark.
 * 5. `entry`, which this project writes, is the number of entries before it; PyTorch's annotations
 *    have times only. */
#include "workloads/formats/torch/snapshot_tree.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/policies/torch/torch.h"
#include "workloads/io/fields.h"

#define STEP_OF_PROFILER "ProfilerStep#"

static const struct {
    const char *stage, *word;
} stages[] = {{"START", "start"}, {"END", "end"}};

void snapshot_marks_close(struct snapshot_marks *marks)
{
    free(marks->items);
    *marks = (struct snapshot_marks){0};
}

/* ---- from annotations to marks --------------------------------------------------------- */

/* The text as a label or a value of a key. */
static void clean(const char *text, char out[SNAPSHOT_MARK_BYTES])
{
    field_word(text, strlen(text), ",=", out, SNAPSHOT_MARK_BYTES);
}

static enum ar_status keep(struct snapshot_tree *tree, const char *text, uint32_t *index,
                           struct ar_error *error)
{
    return texts_intern(&tree->texts, text, strlen(text), index, error);
}

static enum ar_status keep_key(struct snapshot_tree *tree, const char *text, uint32_t *key,
                               struct ar_error *error)
{
    *key = 0;
    enum ar_status status = *text ? keep(tree, text, key, error) : AR_OK;
    *key += *text && !status;
    return status;
}

static enum ar_status take_words(struct snapshot_mark *mark, struct snapshot_tree *tree,
                                 const char *given_name, const char *given_stage,
                                 struct ar_error *error)
{
    char name[SNAPSHOT_MARK_BYTES], stage[SNAPSHOT_MARK_BYTES];
    clean(given_name, name);
    if (!*name)
        (void)snprintf(name, sizeof name, "annotation");
    clean(given_stage, stage);
    bool ends = strcmp(given_stage, "END") == 0;
    bool is_step = strcmp(name, "step") == 0;
    if (strcmp(stage, "MARK") == 0)
        *stage = '\0';
    for (size_t i = 0; i < AR_COUNT(stages); i++)
        if (strcmp(given_stage, stages[i].stage) == 0)
            (void)snprintf(stage, sizeof stage, "%s", stages[i].word);
    const char *label = name;
    if (ends && (is_step || field_begins_with(name, STEP_OF_PROFILER)))
        label = "step";
    else if (is_step)
        label = "step_begins";
    bool ends_step = strcmp(label, "step") == 0;
    AR_TRY(keep(tree, label, &mark->label, error));
    AR_TRY(keep_key(tree, strcmp(label, name) != 0 ? name : "", &mark->name, error));
    return keep_key(tree, ends_step ? "" : stage, &mark->stage, error);
}

#define CHANGE_OF_SETTINGS "allocator settings "
#define CHANGE_OF_LIMIT    "allocator limit "
#define ARROW              " -> "

/* Whether the text has fewer than `room` bytes, all of which a note can hold. */
static bool fits(const char *text, size_t room)
{
    char kept[2 * sizeof((struct snapshot_marks *)0)->conf + sizeof ARROW];
    field_text(text, kept, sizeof kept);
    return strlen(text) < room && strcmp(text, kept) == 0;
}

/* NEW in "OLD -> NEW", where OLD may be empty; NULL if a note cannot say it. */
static const char *new_settings(const char *text, size_t *old_length)
{
    const size_t room = sizeof((struct snapshot_marks *)0)->conf;
    const char *arrow = strstr(text - 1, ARROW);
    if (!arrow || !fits(text, 2 * room + sizeof ARROW))
        return NULL;
    *old_length = arrow > text ? (size_t)(arrow - text) : 0;
    const char *value = arrow + strlen(ARROW);
    return *old_length < room && fits(value, room) ? value : NULL;
}

static const char *new_limit(const char *text)
{
    uint64_t bytes;
    bool is_number = ar_count_parse(text, &bytes, NULL) == AR_OK;
    return is_number && fits(text, sizeof((struct snapshot_marks *)0)->conf) ? text : NULL;
}

/* Rule 4. `*taken`: the annotation is such a change. */
static enum ar_status take_change(struct snapshot_mark *mark, struct snapshot_marks *marks,
                                  struct snapshot_tree *tree, const char *name, bool starts,
                                  bool *taken, struct ar_error *error)
{
    char note[sizeof marks->conf + 16];
    size_t old_length = 0;
    const char *value = NULL;
    bool of_settings = field_begins_with(name, CHANGE_OF_SETTINGS);
    if (of_settings)
        value = new_settings(name + strlen(CHANGE_OF_SETTINGS), &old_length);
    else if (field_begins_with(name, CHANGE_OF_LIMIT))
        value = new_limit(name + strlen(CHANGE_OF_LIMIT));
    *taken = value != NULL;
    if (!*taken || !starts)
        return AR_OK;
    if (of_settings && !marks->has_conf) {
        memcpy(marks->conf, name + strlen(CHANGE_OF_SETTINGS), old_length);
        marks->has_conf = true;
    }
    (void)snprintf(note, sizeof note, "%s,%s", of_settings ? "settings" : "limit", value);
    mark->is_change = true;
    return keep(tree, note, &mark->label, error);
}

static int by_time(const void *left, const void *right)
{
    const struct snapshot_mark *a = left, *b = right;
    AR_ORDER(a->time_us, b->time_us);
    return (a->order > b->order) - (a->order < b->order);
}

enum ar_status snapshot_marks_read(struct snapshot_marks *marks, struct snapshot_tree *tree,
                                   uint64_t list, uint64_t *left_out, struct ar_error *error)
{
    size_t count;
    const uint64_t *items = snapshot_items(tree, list, &count);
    if (!count)
        return AR_OK;
    marks->items = calloc(count, sizeof *marks->items);
    marks->room = marks->items ? count : 0;
    AR_TRY_MEMORY(marks->items, error, "the marks of a snapshot");
    for (size_t i = 0; i < count; i++) {
        struct snapshot_mark *mark = &marks->items[marks->count];
        size_t keys;
        (void)snapshot_pairs(tree, items[i], &keys);
        *left_out += !keys;
        if (!keys)
            continue;
        *mark = (struct snapshot_mark){.entry = UINT64_MAX, .order = (uint32_t)i};
        mark->has_time = snapshot_number(tree, snapshot_get(tree, items[i], SNAPSHOT_KEY_time_us),
                                         &mark->time_us);
        mark->time_us = mark->has_time ? mark->time_us : UINT64_MAX;
        (void)snapshot_number(tree, snapshot_get(tree, items[i], SNAPSHOT_KEY_device),
                              &mark->device);
        if (!snapshot_number(tree, snapshot_get(tree, items[i], SNAPSHOT_KEY_entry), &mark->entry))
            mark->entry = UINT64_MAX;
        const char *name = snapshot_text(tree, snapshot_get(tree, items[i], SNAPSHOT_KEY_name));
        const char *stage = snapshot_text(tree, snapshot_get(tree, items[i], SNAPSHOT_KEY_stage));
        bool is_change, starts = strcmp(stage, "END") != 0;
        AR_TRY(take_change(mark, marks, tree, name, starts, &is_change, error));
        if (!is_change)
            AR_TRY(take_words(mark, tree, name, stage, error));
        marks->count += !is_change || starts;
    }
    if (marks->count)
        qsort(marks->items, marks->count, sizeof *marks->items, by_time);
    return AR_OK;
}

enum ar_status snapshot_marks_imply(struct snapshot_marks *marks, struct snapshot_tree *tree,
                                    const struct snapshot_mark *at, const char *note,
                                    struct ar_error *error)
{
    struct snapshot_mark mark = *at;
    mark.is_change = true;
    mark.order = (uint32_t)marks->count;
    AR_TRY(keep(tree, note, &mark.label, error));
    AR_TRY(
        AR_APPEND(marks->items, marks->count, marks->room, mark, error, "the marks of a snapshot"));
    qsort(marks->items, marks->count, sizeof *marks->items, by_time);
    return AR_OK;
}

bool snapshot_changes_until(struct snapshot_changes *self, const struct snapshot_tree *tree,
                            size_t entry, uint64_t time_us, struct torch_settings *settings)
{
    bool changed = false;
    for (; self->next < self->marks->count; self->next++) {
        const struct snapshot_mark *mark = &self->marks->items[self->next];
        struct torch_settings next = *settings;
        struct ar_error ignored;
        bool placed = mark->entry != UINT64_MAX;
        if (placed ? mark->entry > entry : !mark->has_time || mark->time_us > time_us)
            break;
        const char *text = mark->is_change ? tree->texts.items[mark->label] : "";
        if (!field_begins_with(text, "settings,") ||
            torch_settings_again(&next, strchr(text, ',') + 1, &ignored))
            continue;
        *settings = next;
        changed = true;
    }
    return changed;
}

/* ---- from marks to annotations --------------------------------------------------------- */

/* The value of a key in "x=1,y=2"; false: there is none. */
static bool value_of(const char *keys, const char *key, char out[SNAPSHOT_MARK_BYTES])
{
    size_t length = strlen(key);
    for (const char *at = keys; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, length) != 0 || at[length] != '=')
            continue;
        (void)snprintf(out, SNAPSHOT_MARK_BYTES, "%.*s", (int)strcspn(at + length + 1, ","),
                       at + length + 1);
        return true;
    }
    return false;
}

void snapshot_words_of(const char *label, const char *keys, struct snapshot_words *out)
{
    char stage[SNAPSHOT_MARK_BYTES];
    if (!value_of(keys, "name", out->name))
        clean(label, out->name);
    if (!value_of(keys, "stage", stage))
        (void)snprintf(stage, sizeof stage, "%s", strcmp(label, "step") == 0 ? "END" : "MARK");
    for (size_t i = 0; i < AR_COUNT(stages); i++)
        if (strcmp(stage, stages[i].word) == 0)
            (void)snprintf(stage, sizeof stage, "%s", stages[i].stage);
    memcpy(out->stage, stage, sizeof stage);
}

bool snapshot_change_name(const char *note, const char *conf, char out[SNAPSHOT_CHANGE_BYTES])
{
    const char *value = strchr(note, ',') + 1, *back;
    size_t old_length = strlen(conf);
    if (field_begins_with(note, "limit,")) {
        (void)snprintf(out, SNAPSHOT_CHANGE_BYTES, CHANGE_OF_LIMIT "%s", value);
        back = new_limit(out + strlen(CHANGE_OF_LIMIT));
    } else {
        (void)snprintf(out, SNAPSHOT_CHANGE_BYTES, CHANGE_OF_SETTINGS "%s" ARROW "%s", conf, value);
        back = new_settings(out + strlen(CHANGE_OF_SETTINGS), &old_length);
    }
    return back && strcmp(back, value) == 0 && old_length == strlen(conf);
}
