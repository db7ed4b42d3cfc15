/* Verification: whether blocks keep their contents, on a device that has memory. The rules are in
 * verify.c. */
#pragma once

#include "allocators/base/status.h"
#include "workloads/trace/event.h"

struct replay;
struct replay_slot;
struct verify;

#define VERIFY_KERNEL_NS UINT64_C(20000)

/* The length of a kernel under verify: longer kernels do not show more about contents. */
static inline uint64_t verify_kernel_ns(uint64_t nanoseconds)
{
    return nanoseconds < VERIFY_KERNEL_NS ? nanoseconds : VERIFY_KERNEL_NS;
}

/* HOST_MEMORY. `several`: requests, uses or frees are on several streams. */
enum ar_status verify_open(struct verify **out, bool several, struct ar_error *error);
void verify_close(struct verify *verify);

enum ar_status verify_given(struct replay *run, const struct trace_event *event,
                            const struct replay_slot *slot);
enum ar_status verify_freed(struct replay *run, const struct replay_slot *slot, uint64_t id,
                            uint32_t stream);
/* CORRUPT with a sentence if a byte is wrong. */
enum ar_status verify_end(struct replay *run, struct ar_error *error);
