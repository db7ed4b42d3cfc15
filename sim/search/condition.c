/* Conditions on a trace. */
#include "sim/search/search.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/options.h"
#include "allocators/registry.h"

/* ---- reading one ------------------------------------------------------------------------- */

static enum ar_status parse_cause(const char *name, struct condition *out, struct ar_error *error)
{
    out->kind = CONDITION_CAUSE;
    for (int cause = REPLAY_CAUSE_NONE + 1; cause <= REPLAY_CAUSE_DRIVER; cause++) {
        out->cause = (enum replay_cause)cause;
        if (strcmp(replay_cause_name(out->cause), name) == 0)
            return AR_OK;
    }
    return ar_invalid(error,
                      "\"%.40s\" is no cause; there are returned, fragmentation, cache, pending, "
                      "tenant, outside, capacity, pinned, driver",
                      name);
}

static enum ar_status parse_metric(const char *text, size_t length, struct condition *out,
                                   struct ar_error *error)
{
    const char *names[METRIC_COUNT];
    char name[64];
    size_t count = 0;
    while (length && text[length - 1] == ' ')
        length--;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *info = metric_info((enum metric)i);
        out->metric = (enum metric)i;
        if (strcmp(info->name, name) == 0)
            return info->class == METRIC_EXACT
                       ? AR_OK
                       : ar_invalid(error,
                                    "%s is a time of the host, which is never twice the same; only "
                                    "exact metrics can be held to",
                                    name);
        names[count++] = info->name;
    }
    const char *near = ar_nearest_name(name, names, count);
    return ar_invalid(error, "there is no metric \"%s\"%s%s%s", name,
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static enum ar_status parse_value(const char *text, double *value, struct ar_error *error)
{
    uint64_t bytes;
    text += strspn(text, " ");
    if (ar_number_parse(text, value))
        return AR_OK;
    if (ar_size_parse(text, &bytes, NULL) != AR_OK)
        return ar_invalid(error, "\"%.40s\" is neither a number nor a size", text);
    *value = (double)bytes;
    return AR_OK;
}

/* Whether a text is the spec of a policy. */
static bool is_policy(const char *text, struct ar_spec *out, struct ar_error *error)
{
    const struct ar_policy_ops *ops;
    if (ar_spec_parse(text, out, error) != AR_OK)
        return false;
    if (registry_lookup(out, &ops, error) == AR_OK)
        return true;
    ar_spec_close(out);
    return false;
}

/* A spec may contain commas: the separator is the first comma with a policy on both sides. */
static enum ar_status parse_policies(const char *inside, struct condition *out,
                                     struct ar_error *error)
{
    char *first = strdup(inside);
    struct ar_error why = {""};
    bool found = false;
    AR_TRY_MEMORY(first, error, "a condition");
    size_t length = strlen(first);
    if (length)
        first[length - 1] = 0; /* the closing bracket */
    for (char *comma = strchr(first, ','); comma && !found; comma = strchr(comma + 1, ',')) {
        *comma = 0;
        if (is_policy(first, &out->policies[0], &why)) {
            found = is_policy(comma + 1, &out->policies[1], &why);
            if (!found)
                ar_spec_close(&out->policies[0]);
        }
        *comma = ',';
    }
    free(first);
    out->kind = CONDITION_DIFFERS;
    return found ? AR_OK
                 : ar_invalid(error, "differs takes two policies, as in differs(growth,greedy)%s%s",
                              *why.text ? ": " : "", why.text);
}

enum ar_status condition_parse(const char *text, struct condition *out, struct ar_error *error)
{
    static const char *const signs[] = {[CONDITION_ABOVE] = ">",
                                        [CONDITION_FROM] = ">=",
                                        [CONDITION_BELOW] = "<",
                                        [CONDITION_UP_TO] = "<="};
    size_t length = strlen(text), name = strcspn(text, "<>");
    *out = (struct condition){0};
    if (strcmp(text, "fails") == 0)
        return AR_OK; /* CONDITION_FAILS is 0 */
    if (strncmp(text, "cause=", 6) == 0)
        return parse_cause(text + 6, out, error);
    if (strncmp(text, "differs(", 8) == 0 && text[length - 1] == ')')
        return parse_policies(text + 8, out, error);
    if (!text[name])
        return ar_invalid(error,
                          "\"%.60s\" is no condition; there are fails, cause=CAUSE, METRIC>VALUE "
                          "(>= < <=) and differs(SPEC,SPEC)",
                          text);
    bool equal = text[name + 1] == '=';
    out->kind = CONDITION_METRIC;
    for (int order = CONDITION_ABOVE; order <= CONDITION_UP_TO; order++)
        if (strlen(signs[order]) == (equal ? 2u : 1u) && signs[order][0] == text[name])
            out->order = (enum condition_order)order;
    AR_TRY(parse_metric(text, name, out, error));
    return parse_value(text + name + 1 + equal, &out->value, error);
}

void condition_close(struct condition *condition)
{
    for (int i = 0; i < 2 && condition->kind == CONDITION_DIFFERS; i++)
        ar_spec_close(&condition->policies[i]);
}

/* ---- holding a trace to it --------------------------------------------------------------- */

struct place {
    int64_t segment, offset;
};

/* The placements of one run, or the comparison of another run with them. */
struct places {
    struct place *items;
    size_t count, capacity, at;
    bool comparing, differ;
};

static enum ar_status note_place(void *argument, const struct replay_row *row,
                                 struct ar_error *error)
{
    struct places *self = argument;
    struct place place = {row->segment, row->offset};
    if (row->op == 'f')
        return AR_OK;
    if (self->comparing) {
        self->differ |= self->at >= self->count || self->items[self->at].segment != place.segment ||
                        self->items[self->at].offset != place.offset;
        self->at++;
        return AR_OK;
    }
    return AR_APPEND(self->items, self->count, self->capacity, place, error, "a condition");
}

static void close_places(struct places *places)
{
    free(places->items);
}

static enum ar_status run_both(const struct condition *condition,
                               const struct experiment *experiment, uint64_t *runs, bool *holds,
                               struct ar_error *error)
{
    AR_CLOSED(close_places) struct places places = {0};
    struct replay_result results[2];
    for (int i = 0; i < 2; i++) {
        struct experiment run = *experiment;
        run.policy = &condition->policies[i];
        const struct observer observer = {.row = note_place, .argument = &places};
        run.observer = &observer;
        places.comparing = i == 1;
        ++*runs;
        AR_TRY(experiment_run(&run, &results[i], NULL, error));
        replay_result_close(&results[i]);
    }
    *holds = places.differ || places.at != places.count || results[0].passed != results[1].passed ||
             results[0].cause != results[1].cause ||
             (!results[0].passed && results[0].first_failed_event != results[1].first_failed_event);
    return AR_OK;
}

static bool compare(const struct condition *condition, const struct metric_value *value)
{
    double number = value->kind == METRIC_INTEGER ? (double)value->integer : value->real;
    if (value->kind == METRIC_NULL)
        return false;
    switch (condition->order) {
    case CONDITION_ABOVE:
        return number > condition->value;
    case CONDITION_FROM:
        return number >= condition->value;
    case CONDITION_BELOW:
        return number < condition->value;
    case CONDITION_UP_TO:
        break;
    }
    return number <= condition->value;
}

enum ar_status condition_holds(const struct condition *condition,
                               const struct experiment *experiment, uint64_t *runs, bool *holds,
                               struct ar_error *error)
{
    struct experiment run = {
        .policy = experiment->policy,
        .device = experiment->device,
        .source = experiment->source,
        .frees = experiment->frees,
        .host = experiment->host,
        .seed = experiment->seed,
        .stop_on_failure = condition->kind == CONDITION_FAILS || condition->kind == CONDITION_CAUSE,
        .measure = condition->kind == CONDITION_METRIC ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE,
    };
    struct replay_result result;
    if (condition->kind == CONDITION_DIFFERS)
        return run_both(condition, &run, runs, holds, error);
    ++*runs;
    enum ar_status status = experiment_run(&run, &result, NULL, error);
    if (status == AR_CORRUPT && condition->kind == CONDITION_FAILS) {
        *holds = true;
        return AR_OK;
    }
    AR_TRY(status);
    *holds = condition->kind == CONDITION_METRIC
                 ? compare(condition, &result.metrics.at[condition->metric])
                 : !result.passed &&
                       (condition->kind == CONDITION_FAILS || result.cause == condition->cause);
    replay_result_close(&result);
    return AR_OK;
}
