/* Whether blocks keep their contents, on a device that has memory.
 *
 * 1. A block is filled with a pattern on its stream as soon as it is given, behind what the engine
 *    makes that stream wait for.
 * 2. When it is let go, before anybody is told, the pattern is read again: on each stream that uses
 *    the block, on its own, and on the one of the free. A stream other than the block's own is
 *    first made to wait for that one, as a program that uses what another stream wrote must.
 * 3. With blocks on several streams a long kernel goes before each reading: a policy that hands the
 *    bytes to another stream too early lets that stream's filling overtake the reading, which then
 *    finds the other block's pattern.
 * 4. Where frees are not ordered by streams (at-once, recorded) the program itself is taken to have
 *    waited: the host waits for the reading.
 * 5. Blocks that are live at the end are read then. Then the device tells the first wrong byte.
 *    What was given latest is remembered, to tell who was given the same bytes. */
#ifndef SIM_REPLAY_VERIFY_H
#define SIM_REPLAY_VERIFY_H

#include "sim/replay.h"

#define VERIFY_KERNEL_NS UINT64_C(20000)

struct replay;
struct replay_slot;
struct verify;

/* How long a kernel of the trace runs under verify: how much longer says nothing of contents. */
static inline uint64_t verify_kernel_ns(uint64_t nanoseconds)
{
    return nanoseconds < VERIFY_KERNEL_NS ? nanoseconds : VERIFY_KERNEL_NS;
}

/* HOST_MEMORY. `several`: blocks live on several streams. */
enum ar_status verify_open(struct verify **out, bool several,
                           struct ar_error *error) AR_STATUS_CHECKED;
void verify_close(struct verify *verify);

enum ar_status verify_given(struct replay *run, const struct trace_event *event,
                            const struct replay_slot *slot) AR_STATUS_CHECKED;
enum ar_status verify_free_requested(struct replay *run, const struct replay_slot *slot,
                                     uint64_t id, uint32_t stream) AR_STATUS_CHECKED;
/* CORRUPT with a sentence where a byte is wrong. */
enum ar_status verify_end(struct replay *run, struct ar_error *error) AR_STATUS_CHECKED;

#endif
