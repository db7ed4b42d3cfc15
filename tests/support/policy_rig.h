/* A policy for tests: made from a spec on a backing. Its host memory is measured. */
#pragma once

#include "allocators/policy.h"
#include "allocators/spec.h"
#include "tests/support/fake_backing.h"
#include "tests/support/memories.h"

struct policy_rig {
    struct ar_spec spec;
    struct ar_host host;
    struct ar_policy_context context;
    struct ar_policy *policy;
    struct ar_error error; /* of the last call that failed */
};

/* Makes the policy of `text` on `backing`, with host memory that fails at the allocation
 * `fail_at` (0: never). Returns the status of the registry. */
enum ar_status policy_rig_open(struct policy_rig *rig, const char *text, struct ar_backing *backing,
                               uint64_t fail_at);

/* Destroys the policy. Returns the host bytes that it did not free: 0 if nothing leaks. */
uint64_t policy_rig_close(struct policy_rig *rig);

/* Destroys the policy `name`, then its memory. Fails the test if host or device bytes are left. */
void policy_rig_close_empty(struct policy_rig *rig, const char *name, struct memory *memory);

/* One request on the default stream, no alignment. */
enum ar_status policy_rig_alloc(struct policy_rig *rig, uint64_t bytes,
                                struct ar_policy_block *out);
enum ar_status policy_rig_free(struct policy_rig *rig, const struct ar_policy_block *block);

/* The same for tests in which each request is served and the policy stays valid. */
struct ar_policy_block policy_rig_take(struct policy_rig *rig, uint64_t bytes);
void policy_rig_give(struct policy_rig *rig, struct ar_policy_block block);

/* The figure of that name that the policy reports; it must have one. */
uint64_t policy_rig_figure(const struct policy_rig *rig, const char *wanted);

/* Makes the policy on a fake backing of `cap_bytes`, of which there is one. It must be created; at
 * the end the policy is valid, and neither host nor device memory is left. */
extern struct fake_backing fake_rig_backing;
void fake_rig_open(struct policy_rig *rig, const char *text, uint64_t cap_bytes);
void fake_rig_close(struct policy_rig *rig);

/* A policy on a simulated device of its own, as sim_test_open opens it. */
struct device_rig {
    struct ar_device *device;
    struct policy_rig policy;
    uint64_t event; /* of the last request or free */
};

void device_rig_open(struct device_rig *rig, const char *policy, const char *device);
/* The same on a device that is open; the rig closes it. */
void device_rig_open_on(struct device_rig *rig, const char *policy, struct ar_device *device);
/* No call was refused as misuse, nothing raced, and the policy is valid and agrees with the device
 * on the bytes. */
void device_rig_check(const struct device_rig *rig);
/* The same; and nothing is left. */
void device_rig_close(struct device_rig *rig);

/* A request, whose stream uses the block from now on; and a free: all work queued on the stream may
 * still use the block. */
enum ar_status device_rig_ask(struct device_rig *rig, const struct ar_policy_request *request,
                              struct ar_policy_block *block);
void device_rig_give(struct device_rig *rig, const struct ar_policy_block *block, uint32_t stream);

/* The policies that a test is for, by index from 0: POLICY of the environment, a spec, if it is
 * set; else all of policies.def. NULL: there are no more. If there is no such policy the program
 * ends with a sentence. */
const char *policy_rig_each(size_t index);

/* Whether the policy of a spec has this capability. */
bool policy_rig_has(const char *text, enum ar_policy_capability capability);

/* The bytes of all ranges of a walk, by state, and the errors of the walk itself. */
struct policy_walk_sums {
    uint64_t bytes[5]; /* by enum ar_policy_range_state */
    uint64_t ranges[5];
    uint64_t requested_bytes;
    uint64_t largest_free_block_bytes;
    uint64_t end;      /* of the last range */
    bool out_of_order; /* a range starts before the last one ends */
    bool gap;          /* between two ranges of one segment */
    uint64_t segment;  /* of the last range */
};

struct policy_walk_sums policy_walk_sum(const struct ar_policy *policy);
