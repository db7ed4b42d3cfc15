/* One policy over the simulated device whose calls cost nothing (profile bump), ready to be
 * driven; over the H100's where it needs virtual memory or the driver's pool, which bump has
 * not: warm, such a policy makes few calls or the pool is what is measured. */
#ifndef BENCH_MICRO_RIG_H
#define BENCH_MICRO_RIG_H

#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/device.h"

struct rig {
    struct ar_host host; /* what the policy's metadata is taken from */
    struct ar_spec spec;
    struct ar_device *device; /* NULL: not the rig's own */
    struct ar_policy *policy;
};

/* The spec under which a policy is measured: a limit that no trace here reaches, for those that
 * take all of it at once; none for `null`, which never takes anything back. Returns `text`. */
const char *rig_spec(const struct ar_policy_ops *ops, char *text, size_t text_bytes);

/* Makes both. The caller closes the rig. `rig` must not move while it is open. */
enum ar_status rig_open(struct rig *rig, const char *spec,
                        struct ar_error *error) AR_STATUS_CHECKED;
/* Only the policy, on memory that stays the caller's. */
enum ar_status rig_open_on(struct rig *rig, const char *spec, struct ar_backing *backing,
                           struct ar_error *error) AR_STATUS_CHECKED;
void rig_close(struct rig *rig);

#endif
