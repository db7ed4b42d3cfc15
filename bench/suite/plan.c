#include "bench/suite/plan.h"

#include "allocators/base/array.h"
#include "bench/suite/child.h"
#include "workloads/workload.h"

/* ---- devices -------------------------------------------------------------------------------- */

#define PROBE_LIMIT_S 120 /* a driver that hangs while it starts must not block the suite */

/* The kind of device whose runs share this process. */
static const char simulated[] = "sim";

bool plan_wants_process(const char *text)
{
    size_t length = strcspn(text, ":");
    return length != strlen(simulated) || strncmp(text, simulated, length) != 0;
}

struct probe {
    const struct plan *plan;
    const char *text;
    bool policies;
};

static void try_policy(const struct plan_policy *policy, struct ar_device *device,
                       struct ar_error *why)
{
    struct ar_host host = {0};
    struct ar_policy *made = NULL;
    const struct ar_policy_context context = {.backing = device->backing, .host = &host};
    enum ar_status status = registry_create(&policy->spec, &context, &made, why);
    ar_policy_destroy(made);
    if (status != AR_UNSUPPORTED)
        why->text[0] = '\0';
}

/* A child_work: the props of the device, then a text for each policy. */
static enum ar_status look(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct probe *probe = argument;
    const size_t count = probe->policies ? probe->plan->policy_count : 0;
    AR_CLOSED(ar_device_close_at) struct ar_device *device = NULL;
    *bytes = sizeof device->props + count * sizeof(struct ar_error);
    *payload = calloc(1, *bytes);
    AR_TRY_MEMORY(*payload, error, "a look at a device");
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    AR_TRY(ar_spec_parse(probe->text, &spec, error));
    spec.catalog = probe->plan->suite->catalog;
    AR_TRY(ar_device_open(&spec, &device, error));
    memcpy(*payload, &device->props, sizeof device->props);
    for (size_t i = 0; i < count; i++) {
        struct ar_error why = {{0}};
        try_policy(&probe->plan->policies[i], device, &why);
        memcpy((char *)*payload + sizeof device->props + i * sizeof why, &why, sizeof why);
    }
    return AR_OK;
}

/* The same in another process; the payload belongs to `child`. */
static enum ar_status look_alone(struct probe *probe, struct child *child, const void **payload,
                                 size_t *bytes, struct ar_error *error)
{
    struct child_answer answer;
    AR_TRY(child_run(child, look, probe, PROBE_LIMIT_S, &answer, error));
    if (answer.end != CHILD_ANSWERED)
        return ar_error_set(error, AR_MISSING, "device %s cannot be opened: its driver %s",
                            probe->text, answer.how);
    *payload = answer.payload;
    *bytes = answer.bytes;
    return answer.status;
}

/* Opens the device once, in a process of its own if `alone`. If `why` is not NULL, it gets for each
 * policy of the plan the reason why it cannot work there, or "". It is no error if a card has no
 * free memory at the moment. */
static enum ar_status probe_device(const struct plan *plan, const char *text, bool alone,
                                   struct ar_device_props *props, struct ar_error *why,
                                   struct ar_error *error)
{
    struct probe probe = {plan, text, why != NULL};
    struct child child = {.pipe = -1};
    const void *payload = NULL;
    void *owned = NULL;
    size_t bytes = 0;
    enum ar_status status;
    *props = (struct ar_device_props){.capacity_bytes = UINT64_MAX};
    snprintf(props->kind, sizeof props->kind, "%.*s", (int)strcspn(text, ":"), text);
    if (alone) {
        status = look_alone(&probe, &child, &payload, &bytes, error);
    } else {
        status = look(&probe, &owned, &bytes, error);
        payload = owned;
    }
    size_t wanted = sizeof *props + (why ? plan->policy_count * sizeof *why : 0);
    if (!status && bytes != wanted)
        status =
            ar_error_set(error, AR_CORRUPT, "device %s: what its process sent is cut off", text);
    if (!status) {
        memcpy(props, payload, sizeof *props);
        if (why)
            memcpy(why, (const char *)payload + sizeof *props, plan->policy_count * sizeof *why);
    }
    free(owned);
    child_close(&child);
    return status == AR_REFUSED ? AR_OK : status;
}

/* A child_work: whether a kind of device is available; if not, the error says why. */
static enum ar_status ask(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct ar_device_kind *kind = argument;
    AR_FREED char *text = calloc(1, sizeof error->text);
    AR_TRY_MEMORY(text, error, "a search for a card");
    *payload = NULL;
    *bytes = 0;
    return kind->available(text, sizeof error->text) ? AR_OK
                                                     : ar_error_set(error, AR_MISSING, "%s", text);
}

const char *plan_default_device(char *why, size_t why_bytes)
{
    why[0] = '\0';
    for (size_t i = 0; device_kinds[i]; i++) {
        const struct ar_device_kind *kind = device_kinds[i];
        struct ar_error error = {{0}};
        struct child child = {.pipe = -1};
        struct child_answer answer = {.how = ""};
        if (!plan_wants_process(kind->name))
            continue;
        enum ar_status status =
            child_run(&child, ask, (void *)(uintptr_t)kind, PROBE_LIMIT_S, &answer, &error);
        child_close(&child);
        if (!status && answer.end == CHILD_ANSWERED && answer.status == AR_OK)
            return kind->name;
        snprintf(why, why_bytes, "%s%s", answer.end == CHILD_ANSWERED ? "" : "its driver ",
                 answer.end == CHILD_ANSWERED ? error.text : answer.how);
    }
    return simulated;
}

/* ---- the plan ------------------------------------------------------------------------------- */

static enum ar_status refuse_twice(const struct text_list *list, const char *what,
                                   struct ar_error *error)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->items[i], list->items[j]) == 0)
                return ar_invalid(error, "%s \"%s\" is given twice; name it once", what,
                                  list->items[i]);
    return AR_OK;
}

/* PyTorch reads the settings of both caches from one string. */
static const char *conf_of_torch(const struct ar_spec *spec)
{
    bool torch = strcmp(spec->links[spec->link_count - 1].name, "torch") == 0;
    return torch ? ar_spec_value(spec, "conf") : NULL;
}

static enum ar_status choose_pinned(struct plan *self, struct plan_policy *policy,
                                    struct ar_error *error)
{
    const struct ar_policy_ops *ops;
    const char *given = self->suite->pinned;
    const char *conf = given ? NULL : conf_of_torch(&policy->spec);
    if (given && strcmp(given, "none") == 0)
        return AR_OK;
    char quote = conf && strchr(conf, '"') ? '\'' : '"';
    if ((conf ? asprintf(&policy->pinned_text, "torch-pinned:conf=%c%s%c", quote, conf, quote)
              : asprintf(&policy->pinned_text, "%s", given ? given : "torch-pinned")) < 0) {
        policy->pinned_text = NULL;
        return ar_no_memory(error, "the plan of the runs");
    }
    enum ar_status status = ar_spec_parse(policy->pinned_text, &policy->pinned, error);
    policy->pinned.catalog = self->suite->catalog;
    AR_THEN(status, registry_lookup(&policy->pinned, &ops, error));
    return ar_error_prefix(error, status, "pinned");
}

static void close_policy(struct plan_policy *policy)
{
    ar_spec_close(&policy->spec);
    ar_spec_close(&policy->pinned);
    free(policy->pinned_text);
}

static enum ar_status look_up_policies(struct plan *self, struct ar_error *error)
{
    const struct text_list *list = &self->suite->policies;
    AR_TRY(refuse_twice(list, "policy", error));
    self->policies = calloc(list->count, sizeof *self->policies);
    AR_TRY_MEMORY(self->policies, error, "the plan of the runs");
    for (size_t i = 0; i < list->count; i++) {
        struct plan_policy *policy = &self->policies[self->policy_count++];
        policy->text = list->items[i];
        AR_TRY(ar_spec_parse(policy->text, &policy->spec, error));
        policy->spec.catalog = self->suite->catalog;
        AR_TRY(registry_lookup(&policy->spec, &policy->ops, error));
        AR_TRY(choose_pinned(self, policy, error));
    }
    return AR_OK;
}

/* The seed in the spec, else `otherwise`. */
static uint64_t written_seed(const char *text, uint64_t otherwise)
{
    AR_CLOSED(ar_spec_close) struct ar_spec spec = {0};
    const char *seed = ar_spec_parse(text, &spec, NULL) ? NULL : ar_spec_value(&spec, "seed");
    return seed ? strtoull(seed, NULL, 10) : otherwise;
}

/* The specs of a generator that has a seed, one for each replicate; seeds count from the one in the
 * spec, or else the suite's. A file, or a generator without a seed, has no such specs. */
static enum ar_status replicate_workload(struct plan_workload *self, const struct suite *suite,
                                         struct ar_error *error)
{
    const uint64_t first = written_seed(self->text, suite->seed);
    for (uint64_t replicate = 0; suite->replicates > 1 && replicate < suite->replicates;
         replicate++) {
        char seed[24];
        AR_FREED char *text = NULL;
        struct ar_error refused = {0};
        AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)(first + replicate));
        if (spec_text_with(self->text, "seed", seed, &text, &refused) ||
            (replicate == 0 && workload_open(text, &source, &refused)))
            return AR_OK; /* it has no seed */
        AR_TRY(text_list_add(&self->texts, text, error));
    }
    return AR_OK;
}

/* A workload_take: adds a workload, or one GPU of it. */
static enum ar_status add_workload(void *argument, struct workload_part *part,
                                   struct ar_error *error)
{
    struct plan *self = argument;
    struct plan_workload workload = {.text = strdup(part->text), .info = part->source->info};
    if (!workload.text ||
        !AR_ARRAY_ADD(self->workloads, self->workload_count, self->workload_room, workload)) {
        free(workload.text);
        return ar_no_memory(error, "the plan of the runs");
    }
    struct plan_workload *added = &self->workloads[self->workload_count - 1];
    for (size_t i = 0; i + 1 < self->workload_count; i++)
        if (strcmp(self->workloads[i].text, added->text) == 0)
            return ar_invalid(error, "workload \"%s\" is given twice; name it once", added->text);
    added->frees_count = replay_frees_choices(&added->info, self->suite->frees, added->frees);
    return replicate_workload(added, self->suite, error);
}

static enum ar_status look_up_workloads(struct plan *self, struct ar_error *error)
{
    const struct text_list *list = &self->suite->workloads;
    const struct workload_choice choice = {.gpu =
                                               self->suite->gpu_given ? &self->suite->gpu : NULL};
    AR_TRY(refuse_twice(list, "workload", error));
    for (size_t i = 0; i < list->count; i++)
        AR_TRY(workload_each(list->items[i], &choice, add_workload, self, error));
    return AR_OK;
}

/* Combines every device with every capacity. */
static enum ar_status write_devices(struct plan *self, struct ar_error *error)
{
    const struct text_list *devices = &self->suite->devices;
    const struct text_list *capacities = &self->suite->capacities;
    size_t device_count = devices->count ? devices->count : 1;
    size_t capacity_count = capacities->count ? capacities->count : 1;
    for (size_t i = 0; i < device_count; i++) {
        for (size_t j = 0; j < capacity_count; j++) {
            const char *text = devices->count ? devices->items[i] : "sim";
            AR_FREED char *with = NULL;
            if (capacities->count)
                AR_TRY(spec_text_with(text, "capacity", capacities->items[j], &with, error));
            AR_TRY(text_list_add(&self->devices, with ? with : text, error));
        }
    }
    return refuse_twice(&self->devices, "device", error);
}

/* Removes from "all" policies those that cannot work on the device; `why` has the reasons. */
static enum ar_status leave_out(struct plan *self, const struct ar_error *why,
                                struct ar_error *error)
{
    size_t kept = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->policy_count; i++) {
        if (why[i].text[0] && !status) {
            status = text_list_add(&self->left_out, why[i].text, error);
            close_policy(&self->policies[i]);
        } else {
            self->policies[kept++] = self->policies[i];
        }
    }
    self->policy_count = kept;
    return status;
}

/* Opens the device once, so that a bad one is reported now. */
static enum ar_status look_at_device(struct plan *self, size_t device, struct ar_error *error)
{
    const char *text = self->devices.items[device];
    AR_FREED struct ar_error *why = NULL;
    if (self->suite->verify && !plan_wants_process(text))
        return ar_invalid(error,
                          "run: --verify fills and checks real memory, and device %s has none; "
                          "name a card with -d cuda, or leave it out",
                          text);
    self->alone[device] =
        !self->suite->in_process && (self->suite->isolate || plan_wants_process(text));
    if (self->suite->all_policies && self->policy_count) {
        why = calloc(self->policy_count, sizeof *why);
        AR_TRY_MEMORY(why, error, "the plan of the runs");
    }
    AR_TRY(probe_device(self, text, self->alone[device], &self->props[device], why, error));
    return why ? leave_out(self, why, error) : AR_OK;
}

static enum ar_status replicate_device(struct plan *self, const char *text, struct ar_error *error)
{
    uint64_t replicates = self->suite->replicates;
    bool addresses = strstr(text, "addresses=random") != NULL;
    bool workloads = false;
    for (size_t i = 0; i < self->workload_count; i++)
        workloads = workloads || self->workloads[i].texts.count;
    if (replicates > 1 && !addresses && !workloads)
        return ar_invalid(error,
                          "several replicates need something that depends on a seed: write "
                          "\"%s%saddresses=random\" for the device, name a generator that has a "
                          "seed, or leave --replicates out",
                          text, strchr(text, ':') ? "," : ":");
    for (uint64_t replicate = 0; replicate < replicates; replicate++) {
        char seed[24];
        AR_FREED char *with = NULL;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)(self->suite->seed + replicate));
        if (replicates > 1 && addresses)
            AR_TRY(spec_text_with(text, "seed", seed, &with, error));
        AR_TRY(text_list_add(&self->device_texts, with ? with : text, error));
    }
    return AR_OK;
}

static enum ar_status look_at_devices(struct plan *self, struct ar_error *error)
{
    self->alone = calloc(self->devices.count, sizeof *self->alone);
    self->props = calloc(self->devices.count, sizeof *self->props);
    AR_TRY_MEMORY(self->alone && self->props, error, "the plan of the runs");
    for (size_t i = 0; i < self->devices.count; i++) {
        AR_TRY(look_at_device(self, i, error));
        AR_TRY(replicate_device(self, self->devices.items[i], error));
    }
    return AR_OK;
}

static uint64_t plan_reps(const struct plan *self, size_t device)
{
    if (self->suite->reps)
        return self->suite->reps;
    return plan_wants_process(self->devices.items[device]) && !self->suite->once
               ? PLAN_REPS_ON_A_CARD
               : 1;
}

bool plan_is_alone(const struct plan *self, size_t policy, size_t device)
{
    return self->alone[device] ||
           (!self->suite->in_process && registry_names_object(&self->policies[policy].spec));
}

/* The runs of one group: all policies, each with all its replicates and repetitions. */
static void add_group(struct plan *self, size_t workload, size_t device, enum replay_frees frees)
{
    const struct suite *suite = self->suite;
    const struct text_list *texts = &self->workloads[workload].texts;
    const uint64_t reps = plan_reps(self, device);
    for (size_t policy = 0; policy < self->policy_count; policy++) {
        for (uint64_t replicate = 0; replicate < suite->replicates; replicate++) {
            for (uint64_t repetition = 0; repetition < reps; repetition++) {
                self->runs[self->run_count++] = (struct plan_run){
                    .policy = policy,
                    .workload = workload,
                    .device = device,
                    .alone = plan_is_alone(self, policy, device),
                    .device_text = self->device_texts.items[device * suite->replicates + replicate],
                    .workload_text =
                        texts->count ? texts->items[replicate] : self->workloads[workload].text,
                    .frees = frees,
                    .measure = suite->measure,
                    .repetition = (unsigned)repetition,
                    .seed = suite->seed + replicate,
                };
            }
        }
    }
}

static enum ar_status write_runs(struct plan *self, struct ar_error *error)
{
    const uint64_t most = 1000000;
    const uint64_t each =
        self->policy_count * self->suite->replicates; /* replicates: at most 10000 */
    uint64_t ways = 0;
    uint64_t runs = 0;
    for (size_t i = 0; i < self->workload_count; i++)
        ways += self->workloads[i].frees_count;
    for (size_t i = 0; i < self->devices.count && runs <= most; i++)
        runs += ways * each > most ? most + 1 : ways * each * plan_reps(self, i);
    if (runs > most)
        return ar_invalid(error, "policies x workloads x devices x repetitions x replicates make "
                                 "more than 1,000,000 runs; ask for fewer");
    self->runs = calloc(runs ? runs : 1, sizeof *self->runs);
    AR_TRY_MEMORY(self->runs, error, "the plan of the runs");
    for (size_t i = 0; i < self->workload_count; i++)
        for (size_t j = 0; j < self->devices.count; j++)
            for (unsigned k = 0; k < self->workloads[i].frees_count; k++)
                add_group(self, i, j, self->workloads[i].frees[k]);
    return AR_OK;
}

enum ar_status plan_make(struct plan *self, const struct suite *suite, struct ar_error *error)
{
    *self = (struct plan){.suite = suite};
    AR_TRY(look_up_policies(self, error));
    AR_TRY(look_up_workloads(self, error));
    AR_TRY(write_devices(self, error));
    AR_TRY(look_at_devices(self, error));
    return write_runs(self, error);
}

void plan_close(struct plan *self)
{
    for (size_t i = 0; i < self->policy_count; i++)
        close_policy(&self->policies[i]);
    for (size_t i = 0; i < self->workload_count; i++) {
        text_list_close(&self->workloads[i].texts);
        free(self->workloads[i].text);
    }
    free(self->policies);
    free(self->workloads);
    text_list_close(&self->left_out);
    text_list_close(&self->devices);
    text_list_close(&self->device_texts);
    free(self->alone);
    free(self->props);
    free(self->runs);
    *self = (struct plan){0};
}

unsigned plan_jobs(const struct plan *self)
{
    return environment_jobs(self->suite->jobs);
}

unsigned plan_jobs_alone(const struct plan *self)
{
    for (size_t i = 0; i < self->devices.count; i++)
        if (plan_wants_process(self->devices.items[i]) && !self->suite->jobs)
            return 1;
    return plan_jobs(self);
}
