/* Reads suites of tenants (tenants_suite.h). All texts that a setup points to are copies that the
 * suite owns. */
#include "bench/suite/tenants_suite.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "bench/suite/ini.h"
#include "workloads/io/fields.h"

#define TENANT_PREFIX "tenant "
#define ROUNDS_MOST   1000000
#define RETRY_MS_MOST 3600000

struct reading {
    struct tenants_suite *suite;
    unsigned begun[TENANTS_MOST]; /* the line of each process's section */
    const struct ini_line *line;
    const char *key, *value;
    struct text_list keys; /* so far */
    struct ar_error *error;
};

static enum ar_status bad(const struct reading *self, const char *what)
{
    return ar_error_set(self->error, AR_FORMAT, "%s:%u: %s = %.80s: %s", self->line->path,
                        self->line->number, self->key, self->value, what);
}

static enum ar_status take_count(const struct reading *self, uint64_t *count)
{
    return ar_count_parse(self->value, count, NULL) ? bad(self, "a number, from 0") : AR_OK;
}

/* Rounds without any process take time, too. */
static enum ar_status take_round(const struct reading *self, uint64_t *round)
{
    return ar_count_parse(self->value, round, NULL) || *round > ROUNDS_MOST
               ? bad(self, "a round, from 0 to 1000000")
               : AR_OK;
}

static enum ar_status take_size(const struct reading *self, uint64_t *bytes)
{
    return ar_size_parse(self->value, bytes, NULL) ? bad(self, "a size, such as 500MiB") : AR_OK;
}

static enum ar_status take_bool(const struct reading *self, bool *value)
{
    *value = !strcmp(self->value, "yes");
    return *value || !strcmp(self->value, "no") ? AR_OK : bad(self, "yes or no");
}

/* For a key that its section has once. */
static enum ar_status once(struct reading *self)
{
    return suite_note_key(&self->keys, self->line, &self->key, self->error);
}

static enum ar_status machine_line(struct reading *self)
{
    struct tenants_suite *suite = self->suite;
    uint64_t number;
    if (!strcmp(self->key, "compute_capability")) {
        if (!suite->card_count || ar_count_parse(self->value, &number, NULL) || !number ||
            number > 99)
            return bad(self, "the major number of the card above, as 8");
        suite->cards[suite->card_count - 1].compute_capability = (unsigned)number;
        return AR_OK;
    }
    if (!strcmp(self->key, "host")) {
        AR_TRY(once(self));
        return ar_size_parse(self->value, &suite->host_bytes, NULL) || !suite->host_bytes ||
                       suite->host_bytes > UINT64_C(1) << 50
                   ? bad(self, "what can be pinned of the host's memory, such as 64GiB")
                   : AR_OK;
    }
    if (strcmp(self->key, "card") != 0)
        return bad(self, "[machine] has the keys card, compute_capability and host");
    if (suite->card_count == PROCESS_CARDS)
        return bad(self, "at most 16 cards");
    struct tenants_card *card = &suite->cards[suite->card_count];
    AR_TRY(ar_error_prefix(self->error, ar_spec_parse(self->value, &card->device, self->error),
                           "%s:%u", self->line->path, self->line->number));
    suite->card_count++;
    card->compute_capability = 9;
    if (strcmp(card->device.links[card->device.link_count - 1].name, "sim") != 0)
        return bad(self, "a card of a machine is a simulated one, sim:...");
    return AR_OK;
}

static enum ar_status run_line(struct reading *self)
{
    struct tenants_suite *suite = self->suite;
    AR_TRY(once(self));
    if (!strcmp(self->key, "mode")) {
        suite->free = !strcmp(self->value, "free");
        return suite->free || !strcmp(self->value, "barriered") ? AR_OK
                                                                : bad(self, "barriered or free");
    }
    if (!strcmp(self->key, "name")) {
        snprintf(suite->name, sizeof suite->name, "%s", self->value);
        return AR_OK;
    }
    if (!strcmp(self->key, "replicates")) {
        enum ar_status status = take_count(self, &suite->replicates);
        return status || (suite->replicates && suite->replicates <= 10000)
                   ? status
                   : bad(self, "1 to 10000");
    }
    if (!strcmp(self->key, "seed"))
        return take_count(self, &suite->seed);
    if (!strcmp(self->key, "turn_events")) {
        enum ar_status status = take_count(self, &suite->turn_events);
        return status || (suite->turn_events && suite->turn_events < (1u << 30))
                   ? status
                   : bad(self, "1 to 2^30 events");
    }
    return bad(self, "there are mode, replicates, seed, turn_events and name");
}

static enum ar_status copy(const struct reading *self, const char *text, const char **out)
{
    struct text_list *texts = &self->suite->texts;
    AR_TRY(text_list_add(texts, text, self->error));
    *out = texts->items[texts->count - 1];
    return AR_OK;
}

/* The process that a line belongs to; a new one for the first line of its section. */
static enum ar_status tenant_of(struct reading *self, struct tenant_setup **setup)
{
    struct tenants_suite *suite = self->suite;
    const char *name = self->line->section + strlen(TENANT_PREFIX);
    for (size_t i = 0; i < suite->count; i++)
        if (!strcmp(suite->setups[i].name, name)) {
            if (self->begun[i] != self->line->section_number)
                return ar_error_set(
                    self->error, AR_FORMAT,
                    "%s:%u: there is a [%s] already, in line %u; processes have names of their own",
                    self->line->path, self->line->section_number, self->line->section,
                    self->begun[i]);
            *setup = &suite->setups[i];
            return AR_OK;
        }
    if (suite->count == TENANTS_MOST)
        return bad(self, "at most 256 processes");
    self->begun[suite->count] = self->line->section_number;
    AR_TRY(AR_APPEND(suite->setups, suite->count, suite->room, (struct tenant_setup){0},
                     self->error, "a suite"));
    *setup = &suite->setups[suite->count - 1];
    return copy(self, name, &(*setup)->name);
}

static enum ar_status add_text(const struct reading *self, const char *const **texts, size_t *count)
{
    const char **longer = realloc((void *)(uintptr_t)*texts, (*count + 1) * sizeof *longer);
    AR_TRY_MEMORY(longer, self->error, "a suite");
    *texts = longer;
    return copy(self, self->value, &longer[(*count)++]);
}

static enum ar_status add_setting(const struct reading *self, struct tenant_setup *setup)
{
    size_t count = setup->line_count;
    struct process_line *longer =
        realloc((void *)(uintptr_t)setup->lines, (count + 1) * sizeof *longer);
    AR_TRY_MEMORY(longer, self->error, "a suite");
    setup->lines = longer;
    longer[count].line = self->line->number;
    setup->line_count++;
    AR_TRY(copy(self, self->key, &longer[count].key));
    return copy(self, self->value, &longer[count].value);
}

static enum ar_status take_placement(const struct reading *self, enum tenant_placement *placement)
{
    static const char *const names[] = {
        [TENANT_GIVEN] = "given",
        [TENANT_FIRST_FIT] = "first-fit",
        [TENANT_LEAST_LOADED] = "least-loaded",
    };
    for (size_t i = 0; i < AR_COUNT(names); i++)
        if (!strcmp(self->value, names[i])) {
            *placement = (enum tenant_placement)i;
            return AR_OK;
        }
    return bad(self, "given, first-fit or least-loaded");
}

/* A key that a process has once. False in `known`: it is none. */
static enum ar_status single_key(const struct reading *self, struct tenant_setup *setup,
                                 bool *known)
{
    uint64_t number = 0;
    *known = true;
    bool pinned = !strcmp(self->key, "pinned");
    if (pinned && !strcmp(self->value, "none")) {
        setup->pinned = NULL;
        return AR_OK;
    }
    if (pinned || !strcmp(self->key, "policy"))
        return copy(self, self->value, pinned ? &setup->pinned : &setup->policy);
    if (!strcmp(self->key, "card")) {
        AR_TRY(take_count(self, &number));
        setup->card = (uint32_t)number;
        return number < PROCESS_CARDS ? AR_OK : bad(self, "a card's number, from 0");
    }
    if (!strcmp(self->key, "context"))
        return take_size(self, &setup->context_bytes);
    if (!strcmp(self->key, "needs"))
        return take_size(self, &setup->needs_bytes);
    if (!strcmp(self->key, "arrives"))
        return take_round(self, &setup->arrives);
    if (!strcmp(self->key, "leaves"))
        return take_round(self, &setup->leaves);
    if (!strcmp(self->key, "retry_ms")) {
        AR_TRY(take_count(self, &setup->retry_ms));
        setup->retry_given = true;
        return setup->retry_ms <= RETRY_MS_MOST
                   ? AR_OK
                   : bad(self, "milliseconds, from 0 (no wait) to 3600000; TensorFlow's are 10000");
    }
    if (!strcmp(self->key, "stays"))
        return take_bool(self, &setup->stays);
    if (!strcmp(self->key, "placement"))
        return take_placement(self, &setup->placement);
    *known = false;
    return AR_OK;
}

static enum ar_status tenant_line(struct reading *self)
{
    struct tenant_setup *setup = NULL;
    bool known;
    AR_TRY(tenant_of(self, &setup));
    if (!strcmp(self->key, "workload"))
        return add_text(self, &setup->workloads, &setup->workload_count);
    if (!strcmp(self->key, "beside"))
        return add_text(self, &setup->beside, &setup->beside_count);
    AR_TRY(single_key(self, setup, &known));
    return known ? once(self) : add_setting(self, setup);
}

static enum ar_status take_line(void *argument, const struct ini_line *line, struct ar_error *error)
{
    struct reading *self = argument;
    self->line = line;
    self->error = error;
    AR_TRY(ini_split(line, &self->key, &self->value, error));
    if (!strcmp(line->section, "machine"))
        return machine_line(self);
    return !strcmp(line->section, "run") ? run_line(self) : tenant_line(self);
}

static enum ar_status check(const struct tenants_suite *suite, const char *path,
                            struct ar_error *error)
{
    if (!suite->card_count)
        return ar_error_set(error, AR_FORMAT,
                            "%s: a machine has cards: [machine] and card = sim:profile=h100", path);
    if (!suite->count)
        return ar_error_set(error, AR_FORMAT, "%s: there is no process: [tenant NAME]", path);
    for (size_t i = 0; i < suite->count; i++) {
        const struct tenant_setup *setup = &suite->setups[i];
        if (!setup->workload_count)
            return ar_error_set(error, AR_FORMAT, "%s: process %s has no workload = SPEC", path,
                                setup->name);
        if (setup->policy && setup->lines)
            return ar_error_set(error, AR_FORMAT,
                                "%s:%u: process %s: \"%.40s\" is no key beside policy = SPEC: "
                                "either it is misspelled, or a framework's setting, which goes "
                                "with framework = tensorflow, jax or torch instead",
                                path, setup->lines[0].line, setup->name, setup->lines[0].key);
        if (!setup->policy && !setup->lines)
            return ar_error_set(error, AR_FORMAT,
                                "%s: process %s has either policy = SPEC or framework = "
                                "tensorflow, jax or torch with its settings",
                                path, setup->name);
        if (setup->leaves && setup->leaves <= setup->arrives)
            return ar_error_set(error, AR_FORMAT,
                                "%s: process %s leaves after round %llu and arrives after round "
                                "%llu; let it leave later",
                                path, setup->name, (unsigned long long)setup->leaves,
                                (unsigned long long)setup->arrives);
        if (setup->card >= suite->card_count)
            return ar_error_set(error, AR_FORMAT,
                                "%s: process %s is on card %u, and the machine has %zu, from 0",
                                path, setup->name, setup->card, suite->card_count);
    }
    return AR_OK;
}

enum ar_status tenants_suite_read(const char *path, struct tenants_suite *suite,
                                  struct ar_error *error)
{
    static const char *const sections[] = {"machine", "run", "tenant *"};
    struct reading reading = {.suite = suite};
    *suite = (struct tenants_suite){.replicates = 1, .seed = 1};
    const char *name = field_file_name(path);
    snprintf(suite->name, sizeof suite->name, "%.*s", (int)strcspn(name, "."), name);
    enum ar_status status = ini_read(path, sections, 3, take_line, &reading, error);
    text_list_close(&reading.keys);
    AR_TRY(status);
    return check(suite, path, error);
}

void tenants_suite_close(struct tenants_suite *suite)
{
    for (size_t i = 0; i < suite->card_count; i++)
        ar_spec_close(&suite->cards[i].device);
    for (size_t i = 0; i < suite->count; i++) {
        struct tenant_setup *setup = &suite->setups[i];
        free((void *)(uintptr_t)setup->workloads);
        free((void *)(uintptr_t)setup->beside);
        free((void *)(uintptr_t)setup->lines);
    }
    free(suite->setups);
    text_list_close(&suite->texts);
    *suite = (struct tenants_suite){0};
}
