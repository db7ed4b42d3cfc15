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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "sim/replay/kernel_ops.h"
#include "sim/replay/run.h"

/* ---- blocks --------------------------------------------------------------------------------- */

static void memory_of(const void *argument, uint64_t number, struct ar_device_operand *out)
{
    const struct replay *run = argument;
    const struct replay_slot *slot = &run->slots[number];
    *out = (struct ar_device_operand){.address = 0};
    if (slot->state == SLOT_LIVE)
        *out = (struct ar_device_operand){.address = slot->block.address,
                                          .bytes = slot->block.requested_bytes};
}

enum ar_status replay_contents_open(struct replay *run, struct ar_error *error)
{
    const struct replay_config *config = run->config;
    const struct trace_info *info = &config->source->info;
    const struct ar_device_ops *ops = run->device->ops;
    run->kernel_ops = (struct kernel_ops){
        .device = run->device, .source = config->source, .memory = memory_of, .argument = run};
    run->lengths = kernel_ops_lengths(run->device);
    run->follows = ops->kernel_op_ns && !(info->counted && !info->kernels);
    bool overlaps =
        run->policy->ops->capabilities & AR_POLICY_OVERLAPS; /* blocks without real memory */
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
                        run->config->source->info.name, replay_number(run, event), event->id,
                        run->device->ops->problem(run->device));
}

enum ar_status replay_contents_given(struct replay *run, const struct trace_event *event,
                                     const struct replay_slot *slot, struct ar_error *error)
{
    struct ar_device *device = run->device;
    enum ar_status status = AR_OK;
    if (run->verify)
        status = verify_given(run, event, slot);
    else if (run->touches)
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
    if (run->follows && kernel_ops_requested(&run->kernel_ops, event->id, event->slot) != AR_OK)
        return ar_no_memory(error, "the blocks of a trace");
    return AR_OK;
}

static enum ar_status at_event(const struct replay *run, const struct trace_event *event,
                               enum ar_status status, struct ar_error *error)
{
    return ar_error_prefix(error, status, "%s: event %" PRIu64, run->config->source->info.name,
                           replay_number(run, event));
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
    return at_event(run, event, status, error);
}

enum ar_status replay_contents_length(struct replay *run, const struct trace_event *event,
                                      uint64_t *ns, struct ar_error *error)
{
    enum ar_status status = kernel_ops_length(&run->kernel_ops, event, ns, error);
    return status == AR_OK ? status : at_event(run, event, status, error);
}

/* ---- kernel ops ----------------------------------------------------------------------------- */

static const char *const kind_names[AR_KERNEL_OP_COUNT] = {
#define X(name, text) #name,
    AR_KERNEL_OPS(X)
#undef X
};

static const char *const type_names[] = {
    [AR_DEVICE_F32] = "f32",   [AR_DEVICE_TF32] = "tf32", [AR_DEVICE_F16] = "f16",
    [AR_DEVICE_BF16] = "bf16", [AR_DEVICE_I8] = "i8",     [AR_DEVICE_I64] = "i64",
};
#define TYPE_COUNT (sizeof type_names / sizeof *type_names)

/* The index of a name in a list, or an error that lists the names. */
static enum ar_status find(const char *key, const char *value, const char *const *names,
                           size_t count, unsigned *index, struct ar_error *error)
{
    char all[128] = "";
    for (*index = 0; *index < count; ++*index) {
        if (strcmp(names[*index], value) == 0)
            return AR_OK;
        strncat(all, *index ? ", " : "", sizeof all - strlen(all) - 1);
        strncat(all, names[*index], sizeof all - strlen(all) - 1);
    }
    return ar_invalid(error, "%s=%s is not known; there are %s", key, value, all);
}

static enum ar_status read_entry(struct kernel_ops *kernel_ops, uint32_t index,
                                 struct kernel_ops_entry *entry, struct ar_error *error)
{
    const char *rest = trace_attributes_of(kernel_ops->source, index)->rest;
    *entry = (struct kernel_ops_entry){.read = true};
    if (!rest)
        return AR_OK;
    unsigned kind, type = AR_DEVICE_F32;
    enum ar_status status = trace_kernel_op_parse(rest, &entry->keys, error);
    if (status != AR_OK || !entry->keys.op[0])
        return status;
    status = find("op", entry->keys.op, kind_names, AR_KERNEL_OP_COUNT, &kind, error);
    if (status == AR_OK && entry->keys.type[0])
        status = find("type", entry->keys.type, type_names, TYPE_COUNT, &type, error);
    if (status != AR_OK)
        return status;
    entry->has_op = true;
    entry->kind = (enum ar_kernel_op_kind)kind;
    entry->type = (enum ar_device_type)type;
    return AR_OK;
}

/* The entry of a set of keys, read at its first use. */
static enum ar_status entry_of(struct kernel_ops *kernel_ops, uint32_t index,
                               struct kernel_ops_entry **out, struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(kernel_ops->entries, kernel_ops->entry_count, index), error,
                  "the keys of kernels");
    *out = &kernel_ops->entries[index];
    return (*out)->read ? AR_OK : read_entry(kernel_ops, index, *out, error);
}

static enum ar_status operand(const struct kernel_ops *kernel_ops, struct trace_reference reference,
                              struct ar_device_operand *out, uint64_t *id, struct ar_error *error)
{
    uint64_t number;
    if (!trace_kernel_op_id(reference, kernel_ops->next_id, id) ||
        !ar_map_get(&kernel_ops->blocks, *id, &number))
        return ar_invalid(error, "its operand is block %s%" PRIu64 ", which is not live",
                          reference.back ? "~" : "", reference.number);
    kernel_ops->memory(kernel_ops->argument, number, out);
    return AR_OK;
}

/* The part of an operation that does not depend on the blocks. */
static struct ar_kernel_op work_of(const struct kernel_ops_entry *entry, uint32_t stream)
{
    const struct trace_kernel_op *keys = &entry->keys;
    return (struct ar_kernel_op){
        .kind = entry->kind,
        .type = entry->type,
        .stream = stream,
        .input_count = keys->input_count,
        .m = keys->shape[0],
        .n = keys->shape[1],
        .k = keys->shape[2],
    };
}

/* The operands; `*out_id` is the id of the block that the operation writes. */
static enum ar_status whole_work(const struct kernel_ops *kernel_ops,
                                 const struct trace_event *event,
                                 const struct kernel_ops_entry *entry,
                                 struct ar_kernel_op *kernel_op, uint64_t *out_id,
                                 struct ar_error *error)
{
    const struct trace_kernel_op *keys = &entry->keys;
    uint64_t id;
    *kernel_op = work_of(entry, event->stream);
    AR_TRY(operand(kernel_ops, keys->out, &kernel_op->out, out_id, error));
    for (unsigned i = 0; i < keys->input_count; i++)
        AR_TRY(operand(kernel_ops, keys->in[i], &kernel_op->in[i], &id, error));
    return AR_OK;
}

static enum ar_status launch(struct kernel_ops *kernel_ops, const struct trace_event *event,
                             const struct kernel_ops_entry *entry, struct ar_error *error)
{
    const struct ar_device_ops *ops = kernel_ops->device->ops;
    struct ar_kernel_op kernel_op;
    uint64_t out_id;
    AR_TRY(whole_work(kernel_ops, event, entry, &kernel_op, &out_id, error));
    if (!kernel_op.out.bytes)
        return AR_UNSUPPORTED;
    /* Numbers of rows must be spread; the pattern of the block is. */
    if (kernel_op.kind == AR_KERNEL_OP_set && kernel_op.type == AR_DEVICE_I64 && ops->fill)
        return ops->fill(kernel_ops->device, kernel_op.out.address, kernel_op.out.bytes, out_id,
                         kernel_op.stream);
    return ops->kernel_op(kernel_ops->device, &kernel_op);
}

enum ar_status kernel_ops_requested(struct kernel_ops *kernel_ops, uint64_t id, uint64_t number)
{
    kernel_ops->next_id = id + 1;
    return ar_map_put(&kernel_ops->blocks, id, number);
}

void kernel_ops_freed(struct kernel_ops *kernel_ops, uint64_t id)
{
    ar_map_remove(&kernel_ops->blocks, id);
}

enum ar_status kernel_ops_kernel(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 struct ar_error *error)
{
    struct kernel_ops_entry *entry = NULL;
    if (event->attributes)
        AR_TRY(entry_of(kernel_ops, event->attributes, &entry, error));
    enum ar_status status =
        entry && entry->has_op ? launch(kernel_ops, event, entry, error) : AR_UNSUPPORTED;
    if (status != AR_UNSUPPORTED)
        return status;
    kernel_ops->device->ops->kernel(kernel_ops->device, event->stream, event->value);
    return AR_OK;
}

enum ar_status kernel_ops_length(struct kernel_ops *kernel_ops, const struct trace_event *event,
                                 uint64_t *ns, struct ar_error *error)
{
    const struct ar_device_ops *ops = kernel_ops->device->ops;
    struct kernel_ops_entry *entry;
    *ns = event->value;
    if (!event->attributes)
        return AR_OK;
    enum ar_status status = entry_of(kernel_ops, event->attributes, &entry, error);
    if (status != AR_OK || !entry->has_op)
        return status;
    struct ar_kernel_op kernel_op = work_of(entry, event->stream);
    uint64_t out_id;
    if (ops->prepare)
        ops->prepare(kernel_ops->device, &kernel_op);
    if (!ops->kernel_op_ns)
        return AR_OK;
    status = whole_work(kernel_ops, event, entry, &kernel_op, &out_id, error);
    uint64_t known_ns = status == AR_OK && kernel_op.out.bytes
                            ? ops->kernel_op_ns(kernel_ops->device, &kernel_op)
                            : 0;
    *ns = known_ns ? known_ns : event->value;
    return status;
}

void kernel_ops_close(struct kernel_ops *kernel_ops)
{
    free(kernel_ops->entries);
    ar_map_close(&kernel_ops->blocks);
    kernel_ops->entries = NULL;
    kernel_ops->entry_count = 0;
}
