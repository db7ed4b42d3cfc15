/* What the engine does to blocks on a device that has memory.
 *
 * 1. Kernels that say what they do (FORMAT.md) do it; others run for their length.
 * 2. Under `verify` kernels only take time, and at most VERIFY_KERNEL_NS of it: work would
 *    overwrite what is verified, and how long others run says nothing of contents.
 * 3. A device without memory may know how long they take: kernels then run for that.
 * 4. A trace without any kernel touches each block once when it is given, on its stream, so that
 *    its pages are really used. One with kernels does not: their recorded lengths contain what they
 *    did to memory. */
#include <inttypes.h>

#include "sim/replay/run.h"
#include "sim/replay/verify.h"

static void place(const void *argument, uint64_t number, struct device_operand *out)
{
    const struct replay *run = argument;
    const struct replay_slot *slot = &run->slots[number];
    *out = (struct device_operand){.address = 0};
    if (slot->state == SLOT_LIVE)
        *out = (struct device_operand){.address = slot->block.address,
                                       .bytes = slot->block.requested_bytes};
}

enum status replay_memory_open(struct replay *run, struct error *error)
{
    const struct replay_config *config = run->config;
    const struct trace_info *info = &config->source->info;
    const struct device_ops *ops = run->device->ops;
    run->kernel_ops = (struct kernel_ops){
        .device = run->device, .source = config->source, .place = place, .argument = run};
    run->lengths = kernel_ops_lengths(run->device);
    run->follows = ops->kernel_op_ns && !(info->counted && !info->kernels);
    bool overlaps = run->policy->ops->capabilities & POLICY_OVERLAPS; /* no memory */
    if (overlaps && config->verify)
        return error_set(error, STATUS_UNSUPPORTED,
                         "policy %s gives the same bytes to several blocks: it cannot be verified",
                         run->policy->ops->name);
    if (overlaps)
        return STATUS_OK;
    if (config->verify)
        return verify_open(&run->verify, info->streams > 1 && !info->one_block_stream, error);
    run->has_kernel_ops = kernel_ops_wanted(run->device);
    run->follows = run->follows || run->has_kernel_ops;
    run->touches = ops->touch && info->counted && !info->kernels;
    return STATUS_OK;
}

void replay_memory_close(struct replay *run)
{
    verify_close(run->verify);
    kernel_ops_close(&run->kernel_ops);
}

static enum status done(const struct replay *run, const struct trace_event *event,
                        enum status status, struct error *error)
{
    if (status == STATUS_OK)
        return STATUS_OK;
    return error_set(error, status == STATUS_REFUSED ? STATUS_NO_MEMORY : status,
                     "%s: event %" PRIu64 ", block %" PRIu64 ": %s", run->config->source->info.name,
                     replay_number(run, event), event->id, run->device->ops->problem(run->device));
}

enum status replay_memory_given(struct replay *run, const struct trace_event *event,
                                const struct replay_slot *slot, struct error *error)
{
    struct device *device = run->device;
    enum status status = STATUS_OK;
    if (run->verify)
        status = verify_given(run, event, slot);
    else if (run->touches)
        status = device->ops->touch(device, slot->block.address, slot->block.requested_bytes,
                                    slot->stream);
    return done(run, event, status, error);
}

enum status replay_memory_free_requested(struct replay *run, const struct trace_event *event,
                                         const struct replay_slot *slot, uint32_t stream,
                                         struct error *error)
{
    if (!run->verify)
        return STATUS_OK;
    return done(run, event, verify_free_requested(run, slot, event->id, stream), error);
}

enum status replay_memory_request(struct replay *run, const struct trace_event *event,
                                  struct error *error)
{
    if (run->follows && kernel_ops_born(&run->kernel_ops, event->id, event->slot) != STATUS_OK)
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for the blocks of a trace");
    return STATUS_OK;
}

static enum status at_event(const struct replay *run, const struct trace_event *event,
                            enum status status, struct error *error)
{
    return error_prefix(error, status, "%s: event %" PRIu64, run->config->source->info.name,
                        replay_number(run, event));
}

enum status replay_memory_kernel(struct replay *run, const struct trace_event *event,
                                 struct error *error)
{
    enum status status = kernel_ops_kernel(&run->kernel_ops, event, error);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_REFUSED) {
        replay_launch_refused(run, event);
        return STATUS_OK;
    }
    const char *problem = run->device->ops->problem(run->device);
    if (problem[0])
        (void)error_set(error, status, "%s", problem);
    return at_event(run, event, status, error);
}

enum status replay_memory_length(struct replay *run, const struct trace_event *event, uint64_t *ns,
                                 struct error *error)
{
    enum status status = kernel_ops_length(&run->kernel_ops, event, ns, error);
    return status == STATUS_OK ? status : at_event(run, event, status, error);
}
