/* See kernel_ops.h. */
#include "sim/replay/kernel_ops.h"

#include "allocators/base/array.h"

static const char *const kind_names[AR_KERNEL_OP_COUNT] = {
#define X(name, text) #name,
    AR_KERNEL_OPS(X)
#undef X
};

static const char *const type_names[] = {
    [AR_DEVICE_F32] = "f32",   [AR_DEVICE_TF32] = "tf32", [AR_DEVICE_F16] = "f16",
    [AR_DEVICE_BF16] = "bf16", [AR_DEVICE_I8] = "i8",     [AR_DEVICE_I64] = "i64",
};

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
    AR_TRY(trace_kernel_op_parse(rest, &entry->keys, error));
    if (!entry->keys.op[0])
        return AR_OK;
    AR_TRY(find("op", entry->keys.op, kind_names, AR_KERNEL_OP_COUNT, &kind, error));
    if (entry->keys.type[0])
        AR_TRY(find("type", entry->keys.type, type_names, AR_COUNT(type_names), &type, error));
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
