/* A source made from other sources, with the two passes of the text reader: the first counts and
 * hashes; later ones do not hash. */
#include "workloads/trace/rewrite.h"

#include "allocators/base/array.h"
#include "workloads/trace/kernel_op_keys.h"

/* Appends an event whose keys and texts were added to the tables with result `status`. */
static enum ar_status push(struct trace_rewrite *self, struct trace_event event,
                           enum ar_status status, struct ar_error *error)
{
    AR_THEN(status, trace_check_event(&self->check, &event, error));
    if (status)
        return ar_error_prefix(error, status, "%s: event %llu", self->base.info.name,
                               (unsigned long long)self->check.counts.events);
    return AR_APPEND(self->span, self->count, self->capacity, event, error, "%zu events",
                     self->count);
}

enum ar_status trace_rewrite_emit(struct trace_rewrite *self, struct trace_source *source,
                                  struct trace_event event,
                                  const struct trace_attributes *attributes, struct ar_error *error)
{
    enum ar_status status = trace_tables_take(&self->tables, source, &event, attributes, error);
    return push(self, event, status, error);
}

enum ar_status trace_rewrite_note(struct trace_rewrite *self, const char *text,
                                  struct ar_error *error)
{
    struct trace_event event = {.kind = TRACE_NOTE};
    enum ar_status status =
        trace_tables_add_text(&self->tables, text, strlen(text), &event.value, error);
    return push(self, event, status, error);
}

/* Gives all blocks of the kernel op their new names. False: one has none. */
static bool rename_blocks(struct trace_kernel_op *kernel_op,
                          const struct trace_rewrite_names *names)
{
    for (unsigned i = 0; i <= kernel_op->input_count; i++) {
        struct trace_reference *reference = i ? &kernel_op->in[i - 1] : &kernel_op->out;
        uint64_t id, new_id;
        if (!trace_kernel_op_id(*reference, names->next_id, &id) ||
            !names->lookup(names->argument, id, &new_id))
            return false;
        reference->number = reference->back ? names->new_next_id - new_id : new_id;
    }
    return true;
}

enum ar_status trace_rewrite_kernel(struct trace_rewrite *self, struct trace_source *source,
                                    struct trace_event event,
                                    const struct trace_attributes *attributes,
                                    const struct trace_rewrite_names *names, struct ar_error *error)
{
    struct trace_attributes keys =
        attributes ? *attributes : *trace_attributes_of(source, event.attributes);
    struct trace_kernel_op kernel_op;
    struct ar_error ignored;
    /* Keys with these names and other values belong to the user. */
    if (!keys.rest || trace_kernel_op_parse(keys.rest, &kernel_op, &ignored) != AR_OK ||
        !kernel_op.op[0])
        return trace_rewrite_emit(self, source, event, attributes, error);
    size_t room = strlen(keys.rest) + TRACE_KERNEL_OP_TEXT;
    AR_FREED char *text = malloc(room);
    AR_TRY_MEMORY(text, error, "the keys of a trace");
    trace_kernel_op_replace(keys.rest, rename_blocks(&kernel_op, names) ? &kernel_op : NULL, text,
                            room);
    keys.rest = text[0] ? text : NULL;
    return trace_rewrite_emit(self, source, event, &keys, error);
}

static enum ar_status rewrite_next(struct trace_source *source, const struct trace_event **events,
                                   size_t *count, struct ar_error *error)
{
    struct trace_rewrite *self = (struct trace_rewrite *)source;
    self->count = 0;
    enum ar_status status = self->ops->fill(self, error);
    *events = self->span;
    *count = self->count;
    return status;
}

static enum ar_status rewrite_rewind(struct trace_source *source, struct ar_error *error)
{
    struct trace_rewrite *self = (struct trace_rewrite *)source;
    trace_check_close(&self->check);
    trace_check_start(&self->check, &self->tables, false, self->free_requested_final);
    self->check.hash_off = self->opened;
    return self->ops->restart(self, error);
}

static void rewrite_close(struct trace_source *source)
{
    struct trace_rewrite *self = (struct trace_rewrite *)source;
    self->ops->close(self);
    trace_check_close(&self->check);
    trace_tables_close(&self->tables);
    free(self->span);
    free(self);
}

static const struct trace_source_ops rewrite_ops = {
    .next = rewrite_next,
    .rewind = rewrite_rewind,
    .close = rewrite_close,
};

enum ar_status trace_rewrite_open(struct trace_rewrite *self, struct ar_error *error)
{
    self->base.ops = &rewrite_ops;
    self->base.tables = &self->tables;
    self->base.info.adaptive = false;
    const struct trace_event *events;
    size_t count = 1;
    enum ar_status status = rewrite_rewind(&self->base, error);
    while (!status && count)
        status = rewrite_next(&self->base, &events, &count, error);
    if (!status) {
        trace_check_finish(&self->check, &self->base.info);
        self->free_requested_final = trace_check_is_final(&self->check);
        self->opened = true;
        status = rewrite_rewind(&self->base, error);
    }
    if (status)
        rewrite_close(&self->base);
    return status;
}
