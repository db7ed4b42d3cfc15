/* One policy over the simulated device whose calls cost nothing (profile bump). A policy that needs
 * virtual memory or the driver's pool, which bump does not have, gets the profile of the H100: when
 * warm it makes few calls, or the pool itself is measured. */
#pragma once

#include "allocators/base/status.h"
#include "allocators/policy.h"
#include "allocators/spec.h"
#include "sim/device.h"

struct rig {
    struct ar_host host; /* provides the policy's metadata */
    struct ar_spec spec;
    struct ar_device *device; /* NULL: the caller's backing is used */
    struct ar_policy *policy;
};

/* The spec under which a policy is measured. It has a limit that no trace reaches, for policies
 * that take their whole limit at once, but none for `null`, which never reuses memory. Returns
 * `text`. */
const char *rig_spec(const struct ar_policy_ops *ops, char *text, size_t text_bytes);

/* Opens the device and the policy. The caller closes the rig. `rig` must not move while it is
 * open. */
enum ar_status rig_open(struct rig *rig, const char *spec, struct ar_error *error);
/* The same with another device than the H100 for a policy that needs virtual memory or the pool. */
enum ar_status rig_open_or(struct rig *rig, const char *spec, const char *other,
                           struct ar_error *error);
/* Opens only the policy, on a backing that stays the caller's. */
enum ar_status rig_open_on(struct rig *rig, const char *spec, struct ar_backing *backing,
                           struct ar_error *error);
void rig_close(struct rig *rig);

/* ---- operations ------------------------------------------------------------------------------ */

/* The allocs and frees of a trace as an array in memory, for loops that measure nothing else.
 * Blocks that the trace leaves live are freed at its end, so the array can run repeatedly on one
 * policy. */

struct micro_op {
    uint64_t bytes; /* 0: a free */
    uint32_t slot;
    uint32_t stream;
};

struct micro_ops {
    struct micro_op *at;
    size_t count;
    uint32_t slots; /* the most that are live at once */
    char name[32];  /* for tables; the caller's */
};

/* Reads a trace of any format. A free is at its free requested event. Zero-byte requests are left
 * out. The caller closes `out`. */
enum ar_status micro_ops_read(const char *path, struct micro_ops *out, struct ar_error *error);
void micro_ops_close(struct micro_ops *ops);
