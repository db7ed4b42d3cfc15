/* What the engine does with the contents of blocks.
 *
 * 1. On a device that has memory, kernels with an operation (`op=` in FORMAT.md) perform it. Other
 *    kernels run for their length.
 * 2. Under `verify` kernels only take time, at most VERIFY_KERNEL_NS: an operation would overwrite
 *    the pattern, and longer kernels do not show more about contents.
 * 3. A device without memory may know how long operations take. Then kernels run for this time.
 * 4. If a counted trace has no kernels at all, each block is touched once on its stream when it is
 *    served, so that its pages are really used. If it has kernels, blocks are not touched: the
 *    recorded lengths of the kernels include their memory accesses. */

#include "sim/replay/run.h"

static void memory_of(const void *argument, uint64_t number, struct ar_device_operand *out)
{
    const struct replay *run = argument;
    const struct replay_slot *slot = &run->slots[number];
    *out = (struct ar_device_operand){.address = 0};
    if (slot->state == SLOT_LIVE)
        *out = (struct ar_device_operand){.address = slot->block.address,
                                          .bytes = slot->block.requested_bytes};
}

/* What follows from the device (whether blocks have real memory is up to the policy too):
 *
 *   it performs kernel ops              has_kernel_ops, finds_blocks
 *   it touches memory, no kernels       touches_blocks
 *   it knows lengths of kernel ops      asks_lengths, finds_blocks
 *   it only prepares kernel ops         asks_lengths
 *
 * Under `verify` the first two do not hold, nor if several blocks may have the same bytes. */
enum ar_status replay_contents_open(struct replay *run, struct ar_error *error)
{
    const struct replay_config *config = run->config;
    const struct trace_info *info = &config->source->info;
    const struct ar_device_ops *ops = run->device->ops;
    bool overlaps = run->policy->ops->capabilities & AR_POLICY_OVERLAPS;
    bool no_kernels = info->counted && !info->kernels;
    if (overlaps && config->verify)
        return ar_error_set(
            error, AR_UNSUPPORTED,
            "policy %s gives the same bytes to several blocks: it cannot be verified",
            run->policy->ops->name);
    run->kernel_ops = (struct kernel_ops){
        .device = run->device, .source = config->source, .memory = memory_of, .argument = run};
    run->has_kernel_ops = kernel_ops_wanted(run->device) && !overlaps && !config->verify;
    run->touches_blocks = ops->touch && no_kernels && !overlaps && !config->verify;
    run->asks_lengths = kernel_ops_lengths(run->device);
    run->finds_blocks = run->has_kernel_ops || (ops->kernel_op_ns && !no_kernels);
    return config->verify ? verify_open(&run->verify, trace_uses_streams(info), error) : AR_OK;
}

void replay_contents_close(struct replay *run)
{
    verify_close(run->verify);
    kernel_ops_close(&run->kernel_ops);
}

static enum ar_status at_block(const struct replay *run, const struct trace_event *event,
                               enum ar_status status, struct ar_error *error)
{
    if (status == AR_OK)
        return AR_OK;
    return ar_error_set(error, status == AR_REFUSED ? AR_NO_MEMORY : status,
                        "%s: event %" PRIu64 ", block %" PRIu64 ": %s",
                        run->config->source->info.name, replay_event_number(run, event), event->id,
                        run->device->ops->problem(run->device));
}

enum ar_status replay_contents_given(struct replay *run, const struct trace_event *event,
                                     const struct replay_slot *slot, struct ar_error *error)
{
    struct ar_device *device = run->device;
    enum ar_status status = AR_OK;
    if (run->verify)
        status = verify_given(run, event, slot);
    else if (run->touches_blocks)
        status = device->ops->touch(device, slot->block.address, slot->block.requested_bytes,
                                    slot->stream);
    return at_block(run, event, status, error);
}

enum ar_status replay_contents_freed(struct replay *run, const struct trace_event *event,
                                     const struct replay_slot *slot, uint32_t stream,
                                     struct ar_error *error)
{
    if (!run->verify)
        return AR_OK;
    return at_block(run, event, verify_freed(run, slot, event->id, stream), error);
}

enum ar_status replay_contents_request(struct replay *run, const struct trace_event *event,
                                       struct ar_error *error)
{
    if (run->finds_blocks &&
        kernel_ops_requested(&run->kernel_ops, event->id, event->slot) != AR_OK)
        return ar_no_memory(error, "the blocks of a trace");
    return AR_OK;
}

enum ar_status replay_contents_kernel(struct replay *run, const struct trace_event *event,
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
    return replay_at_event(run, event, status, error);
}

enum ar_status replay_contents_length(struct replay *run, const struct trace_event *event,
                                      uint64_t *ns, struct ar_error *error)
{
    enum ar_status status = kernel_ops_length(&run->kernel_ops, event, ns, error);
    return status == AR_OK ? status : replay_at_event(run, event, status, error);
}
