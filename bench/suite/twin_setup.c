#include "bench/suite/twin_study.h"

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/suite/scenario.h"
#include "sim/sim_device/profile.h"

static enum ar_status no_memory(const struct scenario *text, struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory for the scenario", text->path);
}

size_t twin_setup_kinds(const char **kinds, size_t most)
{
    size_t count = 0;
    for (; twin_part_at(count) && count < most; count++)
        kinds[count] = twin_part_at(count)->kind;
    return count;
}

static bool is_part(const struct scenario_section *section)
{
    return strcmp(section->kind, "machine") != 0 && strcmp(section->kind, "process") != 0;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* A key and what its errors name. */
struct reading {
    const struct scenario *text;
    const struct scenario_section *section;
    const struct scenario_key *key;
    struct ar_error *error;
};

/* Puts the line, or the edit, before the error. */
static enum ar_status at_key(const struct reading *self, enum ar_status status)
{
    const char *name = self->section->name[0] ? self->section->name : self->section->kind;
    return !status ? AR_OK
           : self->key->line
               ? ar_error_prefix(self->error, AR_FORMAT, "%s:%u", self->text->path, self->key->line)
               : ar_error_prefix(self->error, AR_INVALID, "%s.%s=%s", name, self->key->name,
                                 self->key->value);
}

static enum ar_status bad(const struct reading *self, const char *what)
{
    return at_key(self, ar_error_set(self->error, AR_FORMAT, "%s = %.80s: %s", self->key->name,
                                     self->key->value, what));
}

static enum ar_status unknown(const struct reading *self, const char *const *names, size_t count)
{
    char has_no[160];
    snprintf(has_no, sizeof has_no, "[%s%s%.60s] has no key", self->section->kind,
             self->section->name[0] ? " " : "", self->section->name);
    return at_key(self, ar_name_unknown(has_no, self->key->name, names, count, NULL, self->error));
}

static enum ar_status take_bytes(const struct reading *self, uint64_t *bytes)
{
    return scenario_bytes_parse(self->key->value, bytes, NULL)
               ? bad(self, "write a size, such as 500MiB")
               : AR_OK;
}

/* 0 bytes would be no limit. */
static enum ar_status take_host(const struct reading *self, uint64_t *bytes)
{
    AR_TRY(take_bytes(self, bytes));
    if (*bytes)
        return AR_OK;
    return bad(self, "write at least a byte, or leave it out for host memory without a limit");
}

static enum ar_status machine_key(const struct reading *self, struct twin_scenario *out)
{
    static const char *const names[] = {"card", "cards", "host", "seed"};
    const char *name = self->key->name, *value = self->key->value;
    uint64_t number;
    if (!strcmp(name, "card")) {
        struct ar_spec spec;
        if (ar_spec_parse(value, &spec, self->error))
            return at_key(self, AR_FORMAT);
        bool simulated = spec.link_count == 1 && !strcmp(spec.links[0].name, "sim");
        ar_spec_close(&spec);
        out->device = value;
        return simulated || sim_profile_builtin(value)
                   ? AR_OK
                   : bad(self, "write a simulated card, such as h100 or sim:profile=h100");
    }
    if (!strcmp(name, "cards")) {
        if (ar_count_parse(value, &number, NULL) || !number || number > TWIN_CARDS)
            return bad(self, "write a number of cards from 1 to 64");
        out->cards = (unsigned)number;
        return AR_OK;
    }
    if (!strcmp(name, "host"))
        return take_host(self, &out->host_bytes);
    if (!strcmp(name, "seed"))
        return ar_count_parse(value, &out->seed, NULL) ? bad(self, "write a number") : AR_OK;
    return unknown(self, names, 4);
}

/* "all", "0", "0-3" or "0,2" as bits. */
static enum ar_status take_cards(const struct reading *self, unsigned cards, uint64_t *out)
{
    static const char what[] = "write all, a card as 0, or several as 0-3 or 0,2";
    const char *at = self->key->value;
    if (!strcmp(at, "all")) {
        *out = cards == 64 ? UINT64_MAX : (UINT64_C(1) << cards) - 1;
        return AR_OK;
    }
    while (true) {
        char word[24], *dash;
        uint64_t first, last;
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), at);
        dash = strchr(word, '-');
        if (dash)
            *dash++ = '\0';
        if (ar_count_parse(word, &first, NULL) || ar_count_parse(dash ? dash : word, &last, NULL) ||
            last < first)
            return bad(self, what);
        if (last >= cards) {
            char text[80];
            snprintf(text, sizeof text, "the machine has %u card%s, from 0", cards,
                     cards == 1 ? "" : "s");
            return bad(self, text);
        }
        for (uint64_t card = first; card <= last; card++)
            *out |= UINT64_C(1) << card;
        if (!at[length])
            return AR_OK;
        at += length + 1;
        at += strspn(at, " ");
    }
}

static enum ar_status check_policy(const struct reading *self)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const struct ar_policy_ops *ops;
    AR_TRY(at_key(self, ar_spec_parse(self->key->value, &spec, self->error)));
    return at_key(self, registry_lookup(&spec, &ops, self->error));
}

static enum ar_status process_key(const struct reading *self, unsigned cards,
                                  struct twin_process_setup *out)
{
    static const char *const names[] = {"cards", "policy", "context", "pinned"};
    const char *name = self->key->name, *value = self->key->value;
    if (!strcmp(name, "cards"))
        return take_cards(self, cards, &out->cards);
    if (!strcmp(name, "policy")) {
        out->policy = value;
        return check_policy(self);
    }
    if (!strcmp(name, "context"))
        return take_bytes(self, &out->context_bytes);
    if (!strcmp(name, "pinned")) {
        out->pinned = value;
        return strcmp(value, "none") != 0 ? check_policy(self) : AR_OK;
    }
    return unknown(self, names, 4);
}

enum ar_status twin_setup_values(const struct twin_part_setup *part, void **values,
                                 struct ar_error *error)
{
    char owner[160];
    snprintf(owner, sizeof owner, "%.60s %.60s", part->ops->kind, part->name);
    *values = calloc(1, part->ops->values_bytes ? part->ops->values_bytes : 1);
    return *values
               ? ar_options_read(part->ops->options, &part->options, owner, *values, error)
               : ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory for its values", owner);
}

/* One key by itself, so that its error has its line. */
static enum ar_status check_option(const struct reading *self, const struct twin_part_ops *ops)
{
    const char *names[256] = {"process"};
    size_t count = 1;
    for (const struct ar_option *option = ops->options; option && option->name && count < 256;
         option++)
        names[count++] = option->name;
    if (!ops->options || !ar_options_find(ops->options, self->key->name))
        return unknown(self, names, count);
    const struct ar_spec_pair pair = {self->key->name, self->key->value, false};
    const struct twin_part_setup part = {
        .name = self->section->name, .ops = ops, .options = {self->section->name, &pair, 1}};
    void *values = NULL;
    enum ar_status status = twin_setup_values(&part, &values, self->error);
    free(values);
    return status == AR_HOST_MEMORY ? status : at_key(self, status);
}

/* ---- sections ------------------------------------------------------------------------------- */

static enum ar_status take_machine(const struct scenario *text, struct twin_setup *out,
                                   struct ar_error *error)
{
    const struct scenario_section *section = scenario_find(text, "machine");
    out->scenario.cards = 1;
    for (size_t i = 0; section && i < section->key_count; i++)
        AR_TRY(machine_key(&(struct reading){text, section, &section->keys[i], error},
                           &out->scenario));
    return AR_OK;
}

static enum ar_status take_process(const struct scenario *text,
                                   const struct scenario_section *section, struct twin_setup *out,
                                   struct ar_error *error)
{
    struct twin_process_setup *process = &out->processes[out->scenario.process_count++];
    enum ar_status status = AR_OK;
    *process = (struct twin_process_setup){
        .name = section->name, .context_bytes = UINT64_MAX, .line = section->line};
    for (size_t i = 0; i < section->key_count && !status; i++)
        status = process_key(&(struct reading){text, section, &section->keys[i], error},
                             out->scenario.cards, process);
    if (!process->cards)
        process->cards = 1;
    return status;
}

/* The process of a part: the one that it names, or the only one. */
static enum ar_status find_process(const struct scenario *text,
                                   const struct scenario_section *section, struct twin_setup *out,
                                   const char **name, struct ar_error *error)
{
    const char *names[SCENARIO_SECTIONS];
    size_t count = out->scenario.process_count;
    const char *given = scenario_value(section, "process");
    for (size_t i = 0; i < count; i++)
        names[i] = out->processes[i].name;
    if (!given && count == 1) {
        *name = names[0];
        return AR_OK;
    }
    if (!given)
        return ar_error_set(error, AR_FORMAT,
                            "%s:%u: [%s %s] is in no process; write process = %s or another",
                            text->path, section->line, section->kind, section->name, names[0]);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(given, names[i])) {
            *name = names[i];
            return AR_OK;
        }
    const char *near = ar_nearest_name(given, names, count);
    unsigned line = section->line;
    for (size_t i = 0; i < section->key_count; i++)
        if (!strcmp(section->keys[i].name, "process") && section->keys[i].line)
            line = section->keys[i].line;
    return ar_error_set(
        error, AR_FORMAT, "%s:%u: [%s %s]: there is no process \"%.60s\"; did you mean %s?",
        text->path, line, section->kind, section->name, given, near ? near : names[0]);
}

static enum ar_status take_part(const struct scenario *text, const struct scenario_section *section,
                                struct twin_setup *out, struct ar_error *error)
{
    struct twin_part_setup *part = &out->parts[out->scenario.part_count++];
    struct ar_spec_pair *pairs = calloc(section->key_count + 1, sizeof *pairs);
    size_t count = 0;
    *part = (struct twin_part_setup){.name = section->name,
                                     .ops = twin_part_find(section->kind),
                                     .options = {.name = section->name, .pairs = pairs},
                                     .line = section->line};
    enum ar_status status =
        pairs ? find_process(text, section, out, &part->process, error) : no_memory(text, error);
    for (size_t i = 0; i < section->key_count && !status; i++) {
        const struct scenario_key *key = &section->keys[i];
        if (!strcmp(key->name, "process"))
            continue;
        status = check_option(&(struct reading){text, section, key, error}, part->ops);
        pairs[count++] = (struct ar_spec_pair){key->name, key->value, false};
    }
    part->options.pair_count = count;
    return status;
}

static enum ar_status take_sections(const struct scenario *text, struct twin_setup *out,
                                    struct ar_error *error)
{
    AR_TRY(take_machine(text, out, error));
    for (size_t i = 0; i < text->section_count; i++)
        if (!strcmp(text->sections[i].kind, "process"))
            AR_TRY(take_process(text, &text->sections[i], out, error));
    if (!out->scenario.process_count)
        return ar_error_set(error, AR_FORMAT,
                            "%s: there is no process; write [process NAME] and policy = torch",
                            text->path);
    for (size_t i = 0; i < text->section_count; i++)
        if (is_part(&text->sections[i]))
            AR_TRY(take_part(text, &text->sections[i], out, error));
    return AR_OK;
}

/* ---- the schedule --------------------------------------------------------------------------- */

/* Joins the steps of a list with commas. */
static enum ar_status take_list(const struct scenario *text, enum scenario_list list,
                                struct twin_setup *out, struct ar_error *error)
{
    const struct scenario_steps *steps = &text->lists[list];
    size_t bytes = 1, used = 0;
    for (size_t i = 0; i < steps->count; i++)
        bytes += strlen(steps->at[i].text) + 2;
    char *joined = out->lists[list] = calloc(1, bytes);
    if (!joined)
        return no_memory(text, error);
    for (size_t i = 0; i < steps->count; i++)
        used += (size_t)sprintf(joined + used, "%s%s", i ? ", " : "", steps->at[i].text);
    return AR_OK;
}

static enum ar_status take_schedule(const struct scenario *text, struct twin_setup *out,
                                    struct ar_error *error)
{
    enum ar_status status = AR_OK;
    size_t steps = 0;
    for (int list = 0; list < SCENARIO_LISTS && !status; list++) {
        status = take_list(text, (enum scenario_list)list, out, error);
        steps += text->lists[list].count;
    }
    if (!status && !steps)
        status = ar_error_set(error, AR_FORMAT,
                              "%s: there is no step; write [schedule] and start = PART.ACTION, ... "
                              "or cycle = ...",
                              text->path);
    out->scenario.start = out->lists[SCENARIO_START];
    out->scenario.cycle = out->lists[SCENARIO_CYCLE];
    out->scenario.end = out->lists[SCENARIO_END];
    out->scenario.cycles = text->cycles;
    return status;
}

/* Whether a step names a part or process: as that which acts, or among the arguments. */
static bool is_named(const struct scenario *text, const char *name)
{
    size_t length = strlen(name);
    for (int list = 0; list < SCENARIO_LISTS; list++)
        for (size_t i = 0; i < text->lists[list].count; i++) {
            const struct scenario_step *step = &text->lists[list].at[i];
            for (size_t k = 0; k < step->call_count; k++) {
                const char *word = step->calls[k].arguments;
                if (!strcmp(step->calls[k].part, name))
                    return true;
                for (; *word; word += strcspn(word, " "), word += *word == ' ')
                    if (strcspn(word, " ") == length && !strncmp(word, name, length))
                        return true;
            }
        }
    return false;
}

/* A part acts only in steps of the schedule, and a process starts with the first step of it or of a
 * part in it. */
static enum ar_status check_named(const struct scenario *text, const struct twin_setup *setup,
                                  struct ar_error *error)
{
    const struct twin_scenario *scenario = &setup->scenario;
    for (size_t i = 0; i < scenario->part_count; i++) {
        const struct twin_part_setup *part = &setup->parts[i];
        if (!is_named(text, part->name))
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: no step of the schedule names [%s %s], so it has no "
                                "effect; write start = %s.%s, or leave the section out",
                                text->path, part->line, part->ops->kind, part->name, part->name,
                                part->ops->actions[0].name);
    }
    for (size_t i = 0; i < scenario->process_count; i++) {
        const struct twin_process_setup *process = &setup->processes[i];
        bool starts = is_named(text, process->name);
        for (size_t k = 0; k < scenario->part_count; k++)
            starts |= !strcmp(setup->parts[k].process, process->name);
        if (!starts)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: no step of the schedule starts [process %s], so it takes "
                                "no memory; write a part with process = %s and a step for it, or "
                                "leave the section out",
                                text->path, process->line, process->name, process->name);
    }
    return AR_OK;
}

/* The line of the key that an error of a section names ("option model: ..", "groups = 0: .."), or
 * whose value it begins with; else that of the section. */
static unsigned line_of_key(const struct scenario *text, const struct twin_part_setup *part,
                            const char *error)
{
    const struct scenario_section *section = scenario_find(text, part->name);
    static const char *const forms[] = {"option %.100s:", "option %.100s ",
                                        ": %.100s = ", ": %.100s:", "%.100s = "};
    enum { FORMS = AR_COUNT(forms), OF_VALUE = 3 };
    for (size_t form = 0; form < FORMS; form++)
        for (size_t i = 0; section && i < section->key_count; i++) {
            const struct scenario_key *key = &section->keys[i];
            char named[160];
            snprintf(named, sizeof named, forms[form], form == OF_VALUE ? key->value : key->name);
            if (key->line && strstr(error, named))
                return key->line;
        }
    return part->line;
}

/* The line of the step in which an error was found; 0: of none, or of an edit. */
static unsigned line_of_step(const struct scenario *text, const struct twin_fault *fault)
{
    static const enum scenario_list lists[] = {
        [TWIN_START] = SCENARIO_START, [TWIN_CYCLE] = SCENARIO_CYCLE, [TWIN_END] = SCENARIO_END};
    const struct scenario_steps *steps = &text->lists[lists[fault->stage]];
    return fault->place < steps->count ? steps->at[fault->place].line : 0;
}

enum ar_status twin_setup_error(const struct scenario *text, const struct twin_setup *setup,
                                const struct twin_fault *fault, enum ar_status status,
                                struct ar_error *error)
{
    size_t part = fault->part;
    char begin[200];
    if (!status || status == AR_HOST_MEMORY || status == AR_CORRUPT)
        return status;
    for (size_t i = 0; i < setup->scenario.part_count && part == SIZE_MAX; i++) {
        snprintf(begin, sizeof begin, "%.60s %.100s:", setup->parts[i].ops->kind,
                 setup->parts[i].name);
        if (!strncmp(error->text, begin, strlen(begin)))
            part = i;
    }
    const struct scenario_section *machine = scenario_find(text, "machine");
    for (size_t i = 0; machine && i < machine->key_count; i++)
        if (!strncmp(error->text, "machine: card", 13) && !strcmp(machine->keys[i].name, "card") &&
            machine->keys[i].line)
            return ar_error_prefix(error, AR_FORMAT, "%s:%u", text->path, machine->keys[i].line);
    unsigned line = part < setup->scenario.part_count
                        ? line_of_key(text, &setup->parts[part], error->text)
                        : line_of_step(text, fault);
    return line ? ar_error_prefix(error, AR_FORMAT, "%s:%u", text->path, line)
                : ar_error_prefix(error, AR_FORMAT, "%s", text->path);
}

/* What the engine finds: an error of a part has the line of its section. */
static enum ar_status check_all(const struct scenario *text, struct twin_setup *out,
                                struct ar_error *error)
{
    struct twin_fault fault;
    enum ar_status status = twin_check(&out->scenario, &fault, error);
    return twin_setup_error(text, out, &fault, status, error);
}

enum ar_status twin_setup_make(const struct scenario *text, struct twin_setup *out,
                               struct ar_error *error)
{
    *out = (struct twin_setup){
        .processes = calloc(text->section_count + 1, sizeof *out->processes),
        .parts = calloc(text->section_count + 1, sizeof *out->parts),
    };
    out->scenario.processes = out->processes;
    out->scenario.parts = out->parts;
    out->scenario.name = text->path;
    enum ar_status status =
        out->processes && out->parts ? take_sections(text, out, error) : no_memory(text, error);
    AR_THEN(status, take_schedule(text, out, error));
    AR_THEN(status, check_all(text, out, error));
    AR_THEN(status, check_named(text, out, error));
    if (status)
        twin_setup_close(out);
    else if (!text->cycles) /* a list of no cycles is no list */
        out->scenario.cycle = "";
    return status;
}

void twin_setup_close(struct twin_setup *self)
{
    for (size_t i = 0; self->parts && i < self->scenario.part_count; i++)
        free((void *)(uintptr_t)self->parts[i].options.pairs);
    for (int list = 0; list < SCENARIO_LISTS; list++)
        free(self->lists[list]);
    free(self->processes);
    free(self->parts);
    *self = (struct twin_setup){0};
}
