/* Lists of observers. */
#include "sim/observer.h"

/* Calls a callback of each observer that has it, until one of them fails. */
#define EACH_UNTIL_ERROR(list, callback, ...)                                                      \
    do {                                                                                           \
        enum ar_status status = AR_OK;                                                             \
        for (const struct observer *one = (list); one && !status; one = one->next)                 \
            if (one->callback)                                                                     \
                status = one->callback(one->argument, __VA_ARGS__);                                \
        return status;                                                                             \
    } while (0)

enum ar_status observer_begin(const struct observer *list, struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, begin, error);
}

enum ar_status observer_row(const struct observer *list, const struct replay_row *row,
                            struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, row, row, error);
}

enum ar_status observer_sample(const struct observer *list, const struct replay_sample *sample,
                               struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, sample, sample, error);
}

enum ar_status observer_memory(const struct observer *list, const struct observer_event *event,
                               struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, memory, event, error);
}

enum ar_status observer_latencies(const struct observer *list, const struct latency *latency,
                                  struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, latencies, latency, error);
}

enum ar_status observer_finished(const struct observer *list, const struct ar_policy *policy,
                                 struct ar_error *error)
{
    EACH_UNTIL_ERROR(list, finished, policy, error);
}

void observer_policy_call(const struct observer *list, const struct observer_policy_call *call)
{
    for (; list; list = list->next)
        if (list->policy_call)
            list->policy_call(list->argument, call);
}

void observer_driver_call(const struct observer *list, const struct observer_driver_call *call)
{
    for (; list; list = list->next)
        if (list->driver_call)
            list->driver_call(list->argument, call);
}

struct observer_wants observer_wants(const struct observer *list)
{
    struct observer_wants wants = {0};
    for (; list; list = list->next) {
        wants.rows |= list->row != NULL;
        wants.samples |= list->sample != NULL;
        wants.policy_calls |= list->policy_call != NULL;
        wants.driver_calls |= list->driver_call != NULL;
        wants.memory |= list->memory != NULL;
    }
    return wants;
}
