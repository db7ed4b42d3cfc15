#include "sim/replay/works.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ENTRIES 64u

static const char *const kind_names[DEVICE_WORK_COUNT] = {
#define X(name, text) #name,
    DEVICE_WORKS(X)
#undef X
};

static const char *const type_names[] = {
    [DEVICE_F32] = "f32",   [DEVICE_TF32] = "tf32", [DEVICE_F16] = "f16",
    [DEVICE_BF16] = "bf16", [DEVICE_I8] = "i8",     [DEVICE_I64] = "i64",
};
#define TYPE_COUNT (sizeof type_names / sizeof *type_names)

/* The index of a name in a list, or a sentence that lists them. */
static enum status find(const char *key, const char *value, const char *const *names, size_t count,
                        unsigned *index, struct error *error)
{
    char all[128] = "";
    for (*index = 0; *index < count; ++*index) {
        if (strcmp(names[*index], value) == 0)
            return STATUS_OK;
        strncat(all, *index ? ", " : "", sizeof all - strlen(all) - 1);
        strncat(all, names[*index], sizeof all - strlen(all) - 1);
    }
    return error_set(error, STATUS_INVALID, "%s=%s is not known; there are %s", key, value, all);
}

static enum status read_entry(struct works *works, uint32_t index, struct works_entry *entry,
                              struct error *error)
{
    const char *rest = trace_attributes_of(works->source, index)->rest;
    *entry = (struct works_entry){.read = true};
    if (!rest)
        return STATUS_OK;
    unsigned kind, type = DEVICE_F32;
    enum status status = trace_work_parse(rest, &entry->keys, error);
    if (status != STATUS_OK || !entry->keys.op[0])
        return status;
    status = find("op", entry->keys.op, kind_names, DEVICE_WORK_COUNT, &kind, error);
    if (status == STATUS_OK && entry->keys.type[0])
        status = find("type", entry->keys.type, type_names, TYPE_COUNT, &type, error);
    if (status != STATUS_OK)
        return status;
    entry->works = true;
    entry->kind = (enum device_work_kind)kind;
    entry->type = (enum device_type)type;
    return STATUS_OK;
}

/* The entry of a set of keys, read when it is first seen. */
static enum status entry_of(struct works *works, uint32_t index, struct works_entry **out,
                            struct error *error)
{
    if (index >= works->entry_count) {
        size_t count = works->entry_count ? works->entry_count : LEAST_ENTRIES;
        while (count <= index)
            count *= 2;
        struct works_entry *entries = realloc(works->entries, count * sizeof *entries);
        if (!entries)
            return error_set(error, STATUS_HOST_MEMORY, "no host memory for the keys of kernels");
        memset(entries + works->entry_count, 0, (count - works->entry_count) * sizeof *entries);
        works->entries = entries;
        works->entry_count = count;
    }
    *out = &works->entries[index];
    return (*out)->read ? STATUS_OK : read_entry(works, index, *out, error);
}

static enum status operand(const struct works *works, struct trace_reference reference,
                           struct device_operand *out, uint64_t *id, struct error *error)
{
    uint64_t number;
    if (!trace_work_id(reference, works->next_id, id) || !id_map_get(&works->blocks, *id, &number))
        return error_set(error, STATUS_INVALID,
                         "it works on block %s%" PRIu64 ", which is not live",
                         reference.back ? "~" : "", reference.number);
    works->place(works->argument, number, out);
    return STATUS_OK;
}

/* What the keys say without the blocks. */
static struct device_work work_of(const struct works_entry *entry, uint32_t stream)
{
    const struct trace_work *keys = &entry->keys;
    return (struct device_work){
        .kind = entry->kind,
        .type = entry->type,
        .stream = stream,
        .input_count = keys->input_count,
        .m = keys->shape[0],
        .n = keys->shape[1],
        .k = keys->shape[2],
    };
}

/* And with them; `*out_id` is that of the block that it writes. */
static enum status whole_work(const struct works *works, const struct trace_event *event,
                              const struct works_entry *entry, struct device_work *work,
                              uint64_t *out_id, struct error *error)
{
    const struct trace_work *keys = &entry->keys;
    uint64_t id;
    *work = work_of(entry, event->stream);
    enum status status = operand(works, keys->out, &work->out, out_id, error);
    for (unsigned i = 0; i < keys->input_count && status == STATUS_OK; i++)
        status = operand(works, keys->in[i], &work->in[i], &id, error);
    return status;
}

static enum status launch(struct works *works, const struct trace_event *event,
                          const struct works_entry *entry, struct error *error)
{
    const struct device_ops *ops = works->device->ops;
    struct device_work work;
    uint64_t out_id;
    enum status status = whole_work(works, event, entry, &work, &out_id, error);
    if (status != STATUS_OK)
        return status;
    if (!work.out.bytes)
        return STATUS_UNSUPPORTED;
    /* Numbers that name rows must be spread; the pattern of the block is. */
    if (work.kind == DEVICE_WORK_set && work.type == DEVICE_I64 && ops->fill)
        return ops->fill(works->device, work.out.address, work.out.bytes, out_id, work.stream);
    return ops->work(works->device, &work);
}

enum status works_born(struct works *works, uint64_t id, uint64_t number)
{
    works->next_id = id + 1;
    return id_map_put(&works->blocks, id, number);
}

void works_gone(struct works *works, uint64_t id)
{
    id_map_remove(&works->blocks, id);
}

enum status works_kernel(struct works *works, const struct trace_event *event, struct error *error)
{
    struct works_entry *entry = NULL;
    enum status status = STATUS_OK;
    if (event->attributes)
        status = entry_of(works, event->attributes, &entry, error);
    if (status != STATUS_OK)
        return status;
    status = entry && entry->works ? launch(works, event, entry, error) : STATUS_UNSUPPORTED;
    if (status != STATUS_UNSUPPORTED)
        return status;
    works->device->ops->kernel(works->device, event->stream, event->value);
    return STATUS_OK;
}

enum status works_length(struct works *works, const struct trace_event *event, uint64_t *ns,
                         struct error *error)
{
    const struct device_ops *ops = works->device->ops;
    struct works_entry *entry;
    *ns = event->value;
    if (!event->attributes)
        return STATUS_OK;
    enum status status = entry_of(works, event->attributes, &entry, error);
    if (status != STATUS_OK || !entry->works)
        return status;
    struct device_work work = work_of(entry, event->stream);
    uint64_t out_id;
    if (ops->prepare)
        ops->prepare(works->device, &work);
    if (!ops->work_ns)
        return STATUS_OK;
    status = whole_work(works, event, entry, &work, &out_id, error);
    uint64_t known_ns =
        status == STATUS_OK && work.out.bytes ? ops->work_ns(works->device, &work) : 0;
    *ns = known_ns ? known_ns : event->value;
    return status;
}

void works_close(struct works *works)
{
    free(works->entries);
    id_map_close(&works->blocks);
    works->entries = NULL;
    works->entry_count = 0;
}
