#include "bench/suite/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/suite/probe.h"
#include "bench/suite/spec_text.h"
#include "workloads/workload.h"

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the plan of the runs");
}

static enum ar_status refuse_twice(const struct text_list *list, const char *what,
                                   struct ar_error *error)
{
    for (size_t i = 0; i < list->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->items[i], list->items[j]) == 0)
                return ar_error_set(error, AR_INVALID, "%s \"%s\" is given twice; name it once",
                                    what, list->items[i]);
    return AR_OK;
}

static enum ar_status look_up_policies(struct plan *self, struct ar_error *error)
{
    const struct text_list *list = &self->suite->policies;
    enum ar_status status = refuse_twice(list, "policy", error);
    if (status)
        return status;
    self->policies = calloc(list->count, sizeof *self->policies);
    if (!self->policies)
        return no_memory(error);
    for (size_t i = 0; i < list->count; i++) {
        struct plan_policy *policy = &self->policies[i];
        policy->text = list->items[i];
        status = ar_spec_parse(policy->text, &policy->spec, error);
        if (status)
            return status;
        policy->spec.catalog = self->suite->catalog;
        self->policy_count++; /* from here on plan_close closes the spec */
        status = registry_lookup(&policy->spec, &policy->ops, error);
        if (status)
            return status;
    }
    return AR_OK;
}

/* The seed that the spec names, else `otherwise`. */
static uint64_t written_seed(const char *text, uint64_t otherwise)
{
    struct ar_spec spec;
    struct ar_error ignored = {0};
    if (ar_spec_parse(text, &spec, &ignored))
        return otherwise;
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    for (size_t i = 0; i < link->pair_count; i++)
        if (strcmp(link->pairs[i].key, "seed") == 0)
            otherwise = strtoull(link->pairs[i].value, NULL, 10);
    ar_spec_close(&spec);
    return otherwise;
}

/* The texts of a generator that has a seed, one for each draw, counted from the seed that is
 * written or the suite's. What refuses a seed (a file, a generator without one) is not drawn. */
static enum ar_status draw_workload(struct plan_workload *self, const struct suite *suite,
                                    struct ar_error *error)
{
    const uint64_t first = written_seed(self->text, suite->seed);
    for (uint64_t draw = 0; suite->draws > 1 && draw < suite->draws; draw++) {
        char seed[24];
        char *text = NULL;
        struct ar_error refused = {0};
        struct trace_source *source = NULL;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)(first + draw));
        if (spec_text_with(self->text, "seed", seed, &text, &refused))
            return AR_OK;
        enum ar_status status = AR_OK;
        bool drawn = draw > 0 || workload_open(text, &source, &refused) == AR_OK;
        trace_close(source);
        if (drawn)
            status = text_list_add(&self->drawn, text, error);
        free(text);
        if (status || !drawn)
            return status;
    }
    return AR_OK;
}

static enum ar_status look_up_workloads(struct plan *self, struct ar_error *error)
{
    const struct text_list *list = &self->suite->workloads;
    enum ar_status status = refuse_twice(list, "workload", error);
    if (status)
        return status;
    self->workloads = calloc(list->count, sizeof *self->workloads);
    if (!self->workloads)
        return no_memory(error);
    for (size_t i = 0; i < list->count; i++) {
        struct plan_workload *workload = &self->workloads[self->workload_count];
        struct trace_source *source = NULL;
        workload->text = list->items[i];
        status = workload_open(workload->text, &source, error);
        if (status)
            return status;
        workload->info = source->info;
        trace_close(source);
        workload->frees_count =
            replay_frees_choices(&workload->info, self->suite->frees, workload->frees);
        self->workload_count++; /* from here on plan_close closes the list */
        status = draw_workload(workload, self->suite, error);
        if (status)
            return status;
    }
    return AR_OK;
}

/* Every device with every capacity. */
static enum ar_status write_devices(struct plan *self, struct ar_error *error)
{
    const struct text_list *devices = &self->suite->devices;
    const struct text_list *capacities = &self->suite->capacities;
    size_t device_count = devices->count ? devices->count : 1;
    size_t capacity_count = capacities->count ? capacities->count : 1;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < device_count && !status; i++) {
        for (size_t j = 0; j < capacity_count && !status; j++) {
            const char *text = devices->count ? devices->items[i] : "sim";
            char *with = NULL;
            if (capacities->count)
                status = spec_text_with(text, "capacity", capacities->items[j], &with, error);
            if (!status)
                status = text_list_add(&self->devices, with ? with : text, error);
            free(with);
        }
    }
    return status ? status : refuse_twice(&self->devices, "device", error);
}

/* Of "all" policies, takes those out that cannot work on the device at all, by what it said. */
static enum ar_status leave_out(struct plan *self, const struct ar_error *why,
                                struct ar_error *error)
{
    size_t kept = 0;
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->policy_count; i++) {
        if (why[i].text[0] && !status) {
            status = text_list_add(&self->left_out, why[i].text, error);
            ar_spec_close(&self->policies[i].spec);
        } else {
            self->policies[kept++] = self->policies[i];
        }
    }
    self->policy_count = kept;
    return status;
}

/* Opens the device once, so that a bad one is found now. */
static enum ar_status look_at_device(struct plan *self, size_t device, struct ar_error *error)
{
    const char *text = self->devices.items[device];
    struct ar_error *why = NULL;
    if (self->suite->verify && !probe_wants_process(text))
        return ar_error_set(
            error, AR_INVALID,
            "run: --verify fills and checks real memory, and device %s has none; name "
            "a card with -d cuda, or leave it out",
            text);
    self->alone[device] =
        !self->suite->in_process && (self->suite->isolate || probe_wants_process(text));
    if (self->suite->all_policies && self->policy_count) {
        why = calloc(self->policy_count, sizeof *why);
        if (!why)
            return no_memory(error);
    }
    enum ar_status status =
        probe_device(self, text, self->alone[device], &self->props[device], why, error);
    if (!status && why)
        status = leave_out(self, why, error);
    free(why);
    return status;
}

/* The texts of a device, one for each draw. */
static enum ar_status draw_device(struct plan *self, const char *text, struct ar_error *error)
{
    uint64_t draws = self->suite->draws;
    bool addresses = strstr(text, "addresses=random") != NULL;
    bool workloads = false;
    for (size_t i = 0; i < self->workload_count; i++)
        workloads = workloads || self->workloads[i].drawn.count;
    if (draws > 1 && !addresses && !workloads)
        return ar_error_set(
            error, AR_INVALID,
            "several draws need something to draw: write \"%s%saddresses=random\" for "
            "the device, name a generator that has a seed, or leave --draws out",
            text, strchr(text, ':') ? "," : ":");
    for (uint64_t draw = 0; draw < draws; draw++) {
        char seed[24];
        char *with = NULL;
        enum ar_status status = AR_OK;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)(self->suite->seed + draw));
        if (draws > 1 && addresses)
            status = spec_text_with(text, "seed", seed, &with, error);
        if (!status)
            status = text_list_add(&self->drawn, with ? with : text, error);
        free(with);
        if (status)
            return status;
    }
    return AR_OK;
}

static enum ar_status look_at_devices(struct plan *self, struct ar_error *error)
{
    self->alone = calloc(self->devices.count, sizeof *self->alone);
    self->props = calloc(self->devices.count, sizeof *self->props);
    if (!self->alone || !self->props)
        return no_memory(error);
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->devices.count && !status; i++) {
        status = look_at_device(self, i, error);
        if (!status)
            status = draw_device(self, self->devices.items[i], error);
    }
    return status;
}

uint64_t plan_reps(const struct plan *self, size_t device)
{
    if (self->suite->reps)
        return self->suite->reps;
    return probe_wants_process(self->devices.items[device]) && !self->suite->once
               ? PLAN_REPS_ON_A_CARD
               : 1;
}

/* The cells of one workload on one device with one way to free: all policies, each with all
 * its repetitions and draws. */
static void add_group(struct plan *self, size_t workload, size_t device, enum replay_frees frees)
{
    const struct suite *suite = self->suite;
    const struct text_list *drawn = &self->workloads[workload].drawn;
    const uint64_t reps = plan_reps(self, device);
    for (size_t policy = 0; policy < self->policy_count; policy++) {
        for (uint64_t draw = 0; draw < suite->draws; draw++) {
            for (uint64_t repetition = 0; repetition < reps; repetition++) {
                self->cells[self->cell_count++] = (struct plan_cell){
                    .policy = policy,
                    .workload = workload,
                    .device = device,
                    .alone = self->alone[device],
                    .device_text = self->drawn.items[device * suite->draws + draw],
                    .workload_text =
                        drawn->count ? drawn->items[draw] : self->workloads[workload].text,
                    .frees = frees,
                    .measure = suite->measure,
                    .repetition = (unsigned)repetition,
                    .seed = suite->seed + draw,
                };
            }
        }
    }
}

static enum ar_status write_cells(struct plan *self, struct ar_error *error)
{
    const uint64_t most = 1000000;
    const uint64_t each = self->policy_count * self->suite->draws; /* draws: at most 10000 */
    uint64_t ways = 0;
    uint64_t cells = 0;
    for (size_t i = 0; i < self->workload_count; i++)
        ways += self->workloads[i].frees_count;
    for (size_t i = 0; i < self->devices.count && cells <= most; i++)
        cells += ways * each > most ? most + 1 : ways * each * plan_reps(self, i);
    if (cells > most)
        return ar_error_set(error, AR_INVALID,
                            "policies x workloads x devices x repetitions x draws make more than "
                            "1,000,000 runs; ask for fewer");
    self->cells = calloc(cells ? cells : 1, sizeof *self->cells);
    if (!self->cells)
        return no_memory(error);
    for (size_t i = 0; i < self->workload_count; i++)
        for (size_t j = 0; j < self->devices.count; j++)
            for (unsigned k = 0; k < self->workloads[i].frees_count; k++)
                add_group(self, i, j, self->workloads[i].frees[k]);
    return AR_OK;
}

enum ar_status plan_make(struct plan *self, const struct suite *suite, struct ar_error *error)
{
    *self = (struct plan){.suite = suite};
    enum ar_status status = look_up_policies(self, error);
    if (!status)
        status = look_up_workloads(self, error);
    if (!status)
        status = write_devices(self, error);
    if (!status)
        status = look_at_devices(self, error);
    if (!status)
        status = write_cells(self, error);
    if (status)
        plan_close(self);
    return status;
}

void plan_close(struct plan *self)
{
    for (size_t i = 0; i < self->policy_count; i++)
        ar_spec_close(&self->policies[i].spec);
    for (size_t i = 0; i < self->workload_count; i++)
        text_list_close(&self->workloads[i].drawn);
    free(self->policies);
    free(self->workloads);
    text_list_close(&self->left_out);
    text_list_close(&self->devices);
    text_list_close(&self->drawn);
    free(self->alone);
    free(self->props);
    free(self->cells);
    *self = (struct plan){0};
}

unsigned plan_jobs(const struct plan *self)
{
    if (self->suite->jobs)
        return (unsigned)self->suite->jobs;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (unsigned)processors : 1;
}

unsigned plan_jobs_alone(const struct plan *self)
{
    for (size_t i = 0; i < self->devices.count; i++)
        if (probe_wants_process(self->devices.items[i]) && !self->suite->jobs)
            return 1;
    return plan_jobs(self);
}
