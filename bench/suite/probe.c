#include "bench/suite/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/child.h"
#include "sim/device_kinds.h"

/* A driver that hangs while it starts must not hang the suite. */
#define PROBE_LIMIT_S 120

/* The kind of device that needs no process of its own. */
static const char simulated[] = "sim";

bool probe_wants_process(const char *text)
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

/* The props of the device and, behind them, a text for each policy. */
static enum ar_status look(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct probe *probe = argument;
    const size_t count = probe->policies ? probe->plan->policy_count : 0;
    struct ar_device *device = NULL;
    *bytes = sizeof device->props + count * sizeof(struct ar_error);
    *payload = calloc(1, *bytes);
    if (!*payload)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left to look at a device");
    struct ar_spec spec;
    enum ar_status status = ar_spec_parse(probe->text, &spec, error);
    if (status)
        return status;
    spec.catalog = probe->plan->suite->catalog;
    status = ar_device_open(&spec, &device, error);
    ar_spec_close(&spec);
    if (status)
        return status;
    memcpy(*payload, &device->props, sizeof device->props);
    for (size_t i = 0; i < count; i++) {
        struct ar_error why = {{0}};
        try_policy(&probe->plan->policies[i], device, &why);
        memcpy((char *)*payload + sizeof device->props + i * sizeof why, &why, sizeof why);
    }
    ar_device_close(device);
    return AR_OK;
}

static void fill_in(const char *text, struct ar_device_props *props)
{
    *props = (struct ar_device_props){.capacity_bytes = UINT64_MAX};
    snprintf(props->kind, sizeof props->kind, "%.*s", (int)strcspn(text, ":"), text);
}

/* Looks in another process; the payload belongs to `child` then. */
static enum ar_status look_alone(struct probe *probe, struct child *child, const void **payload,
                                 size_t *bytes, struct ar_error *error)
{
    struct child_answer answer;
    enum ar_status status = child_run(child, look, probe, PROBE_LIMIT_S, &answer, error);
    if (status)
        return status;
    if (answer.end != CHILD_ANSWERED)
        return ar_error_set(error, AR_MISSING, "device %s cannot be opened: its driver %s",
                            probe->text, answer.how);
    *payload = answer.payload;
    *bytes = answer.bytes;
    return answer.status;
}

enum ar_status probe_device(const struct plan *plan, const char *text, bool alone,
                            struct ar_device_props *props, struct ar_error *why,
                            struct ar_error *error)
{
    struct probe probe = {plan, text, why != NULL};
    struct child child = {.pipe = -1};
    const void *payload = NULL;
    void *owned = NULL;
    size_t bytes = 0;
    enum ar_status status;
    fill_in(text, props);
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

/* Asks a kind whether it is there; its sentence is the payload. */
static enum ar_status ask(void *argument, void **payload, size_t *bytes, struct ar_error *error)
{
    const struct ar_device_kind *kind = argument;
    char *text = calloc(1, sizeof error->text);
    if (!text)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory left to look for a card");
    bool there = kind->available(text, sizeof error->text);
    if (there) {
        free(text);
        return AR_OK;
    }
    (void)ar_error_set(error, AR_MISSING, "%s", text);
    free(text);
    *payload = NULL;
    *bytes = 0;
    return AR_MISSING;
}

const char *probe_default(char *why, size_t why_bytes)
{
    why[0] = '\0';
    for (size_t i = 0; device_kinds[i]; i++) {
        const struct ar_device_kind *kind = device_kinds[i];
        struct ar_error error = {{0}};
        struct child child = {.pipe = -1};
        struct child_answer answer = {.how = ""};
        if (!probe_wants_process(kind->name))
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
