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

static void place(const void *argument, uint64_t number, struct ar_device_operand *out)
{
    const struct replay *run = argument;
    const struct replay_slot *slot = &run->slots[number];
    *out = (struct ar_device_operand){.address = 0};
    if (slot->state == SLOT_LIVE)
        *out = (struct ar_device_operand){.address = slot->block.address,
                                          .bytes = slot->block.requested_bytes};
}

enum ar_status replay_memory_open(struct replay *run, struct ar_error *error)
{
    const struct replay_config *config = run->config;
    const struct trace_info *info = &config->source->info;
    const struct ar_device_ops *ops = run->device->ops;
    run->kernel_ops = (struct kernel_ops){
        .device = run->device, .source = config->source, .place = place, .argument = run};
    run->lengths = kernel_ops_lengths(run->device);
    run->follows = ops->kernel_op_ns && !(info->counted && !info->kernels);
    bool overlaps = run->policy->ops->capabilities & AR_POLICY_OVERLAPS; /* no memory */
    if (overlaps && config->verify)
        return ar_error_set(
            error, AR_UNSUPPORTED,
            "policy %s gives the same bytes to several blocks: it cannot be verified",
            run->policy->ops->name);
    if (overlaps)
        return AR_OK;
    if (config->verify)
        return verify_open(&run->verify, info->streams > 1 && !info->one_block_stream, error);
    run->has_kernel_ops = kernel_ops_wanted(run->device);
    run->follows = run->follows || run->has_kernel_ops;
    run->touches = ops->touch && info->counted && !info->kernels;
    return AR_OK;
}

void replay_memory_close(struct replay *run)
{
    verify_close(run->verify);
    kernel_ops_close(&run->kernel_ops);
}

static enum ar_status done(const struct replay *run, const struct trace_event *event,
                           enum ar_status status, struct ar_error *error)
{
    if (status == AR_OK)
        return AR_OK;
    return ar_error_set(error, status == AR_REFUSED ? AR_NO_MEMORY : status,
                        "%s: event %" PRIu64 ", block %" PRIu64 ": %s",
                        run->config->source->info.name, replay_number(run, event), event->id,
                        run->device->ops->problem(run->device));
}

enum ar_status replay_memory_given(struct replay *run, const struct trace_event *event,
                                   const struct replay_slot *slot, struct ar_error *error)
{
    struct ar_device *device = run->device;
    enum ar_status status = AR_OK;
    if (run->verify)
        status = verify_given(run, event, slot);
    else if (run->touches)
        status = device->ops->touch(device, slot->block.address, slot->block.requested_bytes,
                                    slot->stream);
    return done(run, event, status, error);
}

enum ar_status replay_memory_free_requested(struct replay *run, const struct trace_event *event,
                                            const struct replay_slot *slot, uint32_t stream,
                                            struct ar_error *error)
{
    if (!run->verify)
        return AR_OK;
    return done(run, event, verify_free_requested(run, slot, event->id, stream), error);
}

enum ar_status replay_memory_request(struct replay *run, const struct trace_event *event,
                                     struct ar_error *error)
{
    if (run->follows && kernel_ops_born(&run->kernel_ops, event->id, event->slot) != AR_OK)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the blocks of a trace");
    return AR_OK;
}

static enum ar_status at_event(const struct replay *run, const struct trace_event *event,
                               enum ar_status status, struct ar_error *error)
{
    return ar_error_prefix(error, status, "%s: event %" PRIu64, run->config->source->info.name,
                           replay_number(run, event));
}

enum ar_status replay_memory_kernel(struct replay *run, const struct trace_event *event,
                                    struct ar_error *error)
{
    enum ar_status status = kernel_ops_kernel(&run->kernel_ops, event, error);
    if (status == AR_OK)
        return AR_OK;
    if (status == AR_REFUSED) {
        replay_launch_refused(run, event);
        return AR_OK;
    }
    const char *problem = run->device->ops->problem(run->device);
    if (problem[0])
        (void)ar_error_set(error, status, "%s", problem);
    return at_event(run, event, status, error);
}

enum ar_status replay_memory_length(struct replay *run, const struct trace_event *event,
                                    uint64_t *ns, struct ar_error *error)
{
    enum ar_status status = kernel_ops_length(&run->kernel_ops, event, ns, error);
    return status == AR_OK ? status : at_event(run, event, status, error);
}
