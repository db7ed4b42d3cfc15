/* The tap of an observed run: it stands between policy and device and turns what passes there into
 * driver calls and memory events for the observers.
 *
 * The session opens it when an observer wants one of the two, gives its backing to the policy, and
 * closes it after the policy. The engine tells it where the trace is (tap_at_event) and of each
 * call to the policy (tap_policy_call). */
#ifndef SIM_OBSERVER_TAP_H
#define SIM_OBSERVER_TAP_H

#include "sim/observer.h"

struct tap;

/* Opens a tap on a device, unless no observer of the list needs one: then `*out` is NULL. */
enum ar_status tap_open(struct tap **out, const struct observer *observers,
                        struct ar_device *device, struct ar_error *error) AR_STATUS_CHECKED;
/* After the policy is destroyed and before the device is closed. NULL is fine. */
void tap_close(struct tap *self);

/* The backing to make the policy with. */
struct ar_backing *tap_backing(struct tap *self);
/* The policy that was made with it. */
void tap_set_policy(struct tap *self, const struct ar_policy *policy);

/* The engine begins an event, or has called the policy without a report of the call. */
void tap_at_event(struct tap *self, uint64_t event);
void tap_policy_call(struct tap *self, const struct observer_policy_call *call);
/* A mark of the program with its label and the keys that the format does not know, or NULL. */
void tap_mark(struct tap *self, const char *label, const char *keys);

/* The run is over: reports what is left. After this nothing is reported, whatever is closed. */
enum ar_status tap_end(struct tap *self, struct ar_error *error) AR_STATUS_CHECKED;

#endif
