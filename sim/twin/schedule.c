#include "sim/twin/run.h"

#include "allocators/base/array.h"

#define WORDS_MOST 16

static const char *const stage_names[] = {"start", "cycle", "end"};

struct reading {
    const struct twin_scenario *scenario;
    enum twin_stage stage;
    size_t phase; /* from 1 */
    struct twin_fault *fault;
    struct ar_error *error;
};

static enum ar_status wrong(const struct reading *self, enum ar_status status)
{
    if (self->fault) {
        self->fault->stage = self->stage;
        self->fault->place = self->phase - 1;
    }
    return ar_error_prefix(self->error, status, "schedule: %s, phase %zu", stage_names[self->stage],
                           self->phase);
}

/* Cuts blanks at both ends off. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Ends the text at the next `separator`; returns what follows, or NULL. */
static char *cut(char *text, char separator)
{
    char *at = strchr(text, separator);
    if (!at)
        return NULL;
    *at = '\0';
    return at + 1;
}

static enum ar_status no_part(const struct reading *self, const char *name)
{
    const struct twin_scenario *scenario = self->scenario;
    const char *names[128];
    size_t count = 0;
    for (size_t i = 0; i < scenario->part_count && count < 128; i++)
        names[count++] = scenario->parts[i].name;
    for (size_t i = 0; i < scenario->process_count && count < 128; i++)
        names[count++] = scenario->processes[i].name;
    return ar_name_unknown("there is no part or process", name, names, count,
                           "add a section for it", self->error);
}

static enum ar_status no_action(const struct reading *self, const char *owner,
                                const struct twin_action *actions, const char *name)
{
    const char *names[32] = {NULL};
    char has_no[96];
    size_t count = 0;
    for (; actions->name && count < 32; actions++)
        names[count++] = actions->name;
    snprintf(has_no, sizeof has_no, "%s has no action", owner);
    return ar_name_unknown(has_no, name, names, count, NULL, self->error);
}

/* Finds what the action is of: sets `part` or `process`, and its actions. */
static enum ar_status find_owner(const struct reading *self, const char *name,
                                 struct schedule_call *out, const struct twin_action **actions)
{
    const struct twin_scenario *scenario = self->scenario;
    for (size_t i = 0; i < scenario->part_count; i++)
        if (strcmp(scenario->parts[i].name, name) == 0) {
            *out = (struct schedule_call){.part = i, .process = SIZE_MAX};
            *actions = scenario->parts[i].ops->actions;
            return AR_OK;
        }
    for (size_t i = 0; i < scenario->process_count; i++)
        if (strcmp(scenario->processes[i].name, name) == 0) {
            *out = (struct schedule_call){.part = SIZE_MAX, .process = i};
            *actions = twin_process_actions();
            return AR_OK;
        }
    return no_part(self, name);
}

static enum ar_status check_count(const struct reading *self, const struct schedule_call *call,
                                  const struct twin_action *action)
{
    size_t count = call->argument_count;
    if (count >= action->least_arguments && count <= action->most_arguments)
        return AR_OK;
    return ar_invalid(self->error, "%s takes %s%s, and got %zu", call->text,
                      action->arguments ? "the arguments " : "no arguments",
                      action->arguments ? action->arguments : "", count);
}

/* "rollout.sleep 1" */
static enum ar_status read_call(const struct reading *self, char *text, struct schedule_call *out)
{
    const char *words[WORDS_MOST];
    size_t count = 0;
    for (char *word = text, *rest; word && *word; word = rest) {
        rest = cut(word, ' ');
        if (*word && count == WORDS_MOST)
            return ar_invalid(self->error, "\"%.60s\" has more than %d arguments", text,
                              WORDS_MOST - 1);
        if (*word)
            words[count++] = word;
        while (rest && *rest == ' ')
            rest++;
    }
    const char *dot = count ? strchr(words[0], '.') : NULL;
    if (!dot)
        return ar_invalid(self->error, "\"%.60s\" is not an action; write PART.ACTION ARGUMENT..",
                          count ? words[0] : "");
    char owner[64];
    size_t length = (size_t)(dot - words[0]);
    if (length >= sizeof owner)
        length = sizeof owner - 1;
    memcpy(owner, words[0], length);
    owner[length] = '\0';
    const struct twin_action *actions = NULL;
    AR_TRY(find_owner(self, owner, out, &actions));
    out->text = words[0];
    unsigned at = 0;
    while (actions[at].name && strcmp(actions[at].name, dot + 1) != 0)
        at++;
    if (!actions[at].name)
        return no_action(self, owner, actions, dot + 1);
    out->action = at;
    out->argument_count = count - 1;
    out->arguments = calloc(count, sizeof *out->arguments);
    AR_TRY_MEMORY(out->arguments, self->error, "a schedule");
    memcpy(out->arguments, words + 1, (count - 1) * sizeof *words);
    return check_count(self, out, &actions[at]);
}

static enum ar_status read_phase(const struct reading *self, char *text, char *work,
                                 struct schedule_phase *out)
{
    size_t room = 0;
    *out = (struct schedule_phase){.text = text};
    for (char *rest; work; work = rest) {
        struct schedule_call call = {0};
        rest = cut(work, '&');
        AR_TRY_MEMORY(ar_array_make_room(&out->calls, out->call_count, &room, sizeof *out->calls),
                      self->error, "a schedule");
        enum ar_status status = read_call(self, trim(work), &call);
        out->calls[out->call_count++] = call; /* also its arguments, to be freed */
        AR_TRY(status);
    }
    return AR_OK;
}

static enum ar_status read_list(struct reading *self, const char *text, struct schedule *out)
{
    size_t length = text ? strlen(text) : 0;
    if (!length || strspn(text, " \t\r\n") == length)
        return AR_OK;
    /* Two copies: one stays as the texts of the phases, one is cut into words. */
    char *copy = malloc(2 * (length + 1));
    AR_TRY_MEMORY(copy, self->error, "a schedule");
    out->texts[self->stage] = copy;
    char *work = copy + length + 1;
    memcpy(copy, text, length + 1);
    memcpy(work, text, length + 1);
    for (char *tab = work; (tab = strpbrk(tab, "\t\r\n"));)
        *tab = ' ';
    struct schedule_list *list = &out->lists[self->stage];
    for (char *rest, *work_rest; copy; copy = rest, work = work_rest) {
        rest = cut(copy, ',');
        work_rest = cut(work, ',');
        self->phase++;
        AR_TRY_MEMORY(
            ar_array_make_room(&list->phases, list->count, &list->room, sizeof *list->phases),
            self->error, "a schedule");
        enum ar_status status = read_phase(self, trim(copy), work, &list->phases[list->count++]);
        if (status != AR_OK)
            return wrong(self, status);
    }
    return AR_OK;
}

enum ar_status schedule_read(const struct twin_scenario *scenario, struct schedule *out,
                             struct twin_fault *fault, struct ar_error *error)
{
    const char *const texts[] = {scenario->start, scenario->cycle, scenario->end};
    *out = (struct schedule){0};
    size_t phases = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct reading reading = {scenario, (enum twin_stage)i, 0, fault, error};
        AR_TRY(read_list(&reading, texts[i], out));
        phases += out->lists[i].count;
    }
    return phases ? AR_OK
                  : ar_invalid(error, "the schedule has no phases; write start = PART.ACTION, ..");
}

void schedule_close(struct schedule *self)
{
    for (unsigned i = 0; i < 3; i++) {
        struct schedule_list *list = &self->lists[i];
        for (size_t j = 0; j < list->count; j++) {
            for (size_t k = 0; k < list->phases[j].call_count; k++)
                free((void *)list->phases[j].calls[k].arguments);
            free(list->phases[j].calls);
        }
        free(list->phases);
        free(self->texts[i]);
    }
    *self = (struct schedule){0};
}
