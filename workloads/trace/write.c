/* Writes any source to a file, as text or binary, in two passes. The first sends the events through
 * the check and collects their keys and texts, so that counts and tables are known before a byte is
 * written; the second gives each event its slot and writes it. The result can therefore always be
 * read, and the same events give the same bytes. */

#include "workloads/trace/forms.h"
#include "workloads/trace/check.h"
#include "workloads/io/file.h"
#include "workloads/trace/trace.h"

enum { BATCH = 2048 };

struct writer {
    struct trace_source *source;
    struct trace_output *output; /* NULL in the first pass */
    enum trace_format format;
    struct trace_tables tables;
    struct trace_check check;
    struct trace_info info; /* the counts of the first pass */
    bool free_requested_final;
    char *line; /* room for one line of text */
    size_t line_room;
    size_t batch_count;
    struct trace_event batch[BATCH];
};

static enum ar_status write_line(struct writer *writer, const struct trace_event *event,
                                 uint32_t block_stream, struct ar_error *error)
{
    const struct trace_line_parts parts = {
        .keys = trace_tables_keys_text(&writer->tables, event->attributes),
        .text = trace_tables_text(&writer->tables, event->value),
        .block_stream = block_stream,
    };
    size_t length = trace_line_print(event, &parts, writer->line, writer->line_room);
    if (length > writer->line_room) {
        char *line = realloc(writer->line, 2 * length);
        AR_TRY_MEMORY(line, error, "a line");
        writer->line = line;
        writer->line_room = 2 * length;
        length = trace_line_print(event, &parts, line, writer->line_room);
    }
    return trace_output_write(writer->output, writer->line, length, error);
}

static enum ar_status flush_batch(struct writer *writer, struct ar_error *error)
{
    size_t bytes = writer->batch_count * sizeof writer->batch[0];
    writer->batch_count = 0;
    return trace_output_write(writer->output, writer->batch, bytes, error);
}

static enum ar_status take_event(struct writer *writer, const struct trace_event *given,
                                 struct ar_error *error)
{
    struct trace_event event = *given;
    enum ar_status status = trace_tables_take(&writer->tables, writer->source, &event, NULL, error);
    AR_THEN(status, trace_check_event(&writer->check, &event, error));
    if (status)
        return ar_error_prefix(error, status, "%s: event %llu", writer->info.name,
                               (unsigned long long)writer->check.counts.events);
    if (!writer->output)
        return AR_OK;
    if (writer->format == TRACE_FORMAT_TEXT)
        return write_line(writer, &event, writer->check.block_stream, error);
    writer->batch[writer->batch_count++] = event;
    return writer->batch_count == BATCH ? flush_batch(writer, error) : AR_OK;
}

static enum ar_status pass(struct writer *writer, struct ar_error *error)
{
    trace_check_start(&writer->check, &writer->tables, false, writer->free_requested_final);
    writer->check.hash_off = writer->output != NULL;
    struct trace_cursor cursor = {.source = writer->source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    while ((event = trace_read(&cursor, &status, error)) != NULL)
        status = take_event(writer, event, error);
    if (!status && writer->output && writer->check.counts.events != writer->info.events)
        return ar_invalid(error, "%s: a second pass over it gives different events",
                          writer->info.name);
    return status;
}

static enum ar_status write_text_head(struct writer *writer, const char *head, size_t head_bytes,
                                      struct ar_error *error)
{
    static const char first[] = TRACE_TEXT_FIRST_LINE "\n";
    AR_TRY(trace_output_write(writer->output, first, sizeof first - 1, error));
    return trace_output_write(writer->output, head, head_bytes, error);
}

static enum ar_status write_texts(struct writer *writer, const struct texts *texts,
                                  struct ar_error *error)
{
    for (size_t i = 0; i < texts->count; i++) {
        AR_TRY(trace_output_write(writer->output, texts->items[i], strlen(texts->items[i]), error));
        AR_TRY(trace_output_write(writer->output, "\n", 1, error));
    }
    return AR_OK;
}

static void fill_header(const struct writer *writer, size_t head_bytes, struct binary_header *h)
{
    const struct trace_info *info = &writer->info;
    const struct trace_tables *tables = &writer->tables;
    *h = (struct binary_header){
        .version = BINARY_VERSION,
        .byte_order = BINARY_BYTE_ORDER,
        .header_bytes = sizeof *h,
        .record_bytes = sizeof(struct trace_event),
        .flags = binary_flags(info, writer->free_requested_final),
        .slots = info->slots,
        .streams = info->streams,
        .key_count = (uint32_t)tables->keys.count,
        .text_count = tables->texts.count,
        .head_bytes = head_bytes,
        .key_bytes = tables->keys.total_bytes,
        .text_bytes = tables->texts.total_bytes,
        .events = info->events,
        .allocs = info->allocs,
        .probes = info->probes,
        .frees = info->frees,
        .steps = info->steps,
        .kernels = info->kernels,
        .zero_allocs = info->zero_allocs,
        .peak_live_bytes = info->peak_live_bytes,
        .allocated_bytes = info->allocated_bytes,
    };
    memcpy(h->magic, BINARY_MAGIC, sizeof h->magic);
    memcpy(h->sha256, info->sha256, sizeof h->sha256);
    uint64_t end = sizeof *h + h->head_bytes + h->key_bytes + h->text_bytes;
    h->records_at = (end + BINARY_ALIGN - 1) / BINARY_ALIGN * BINARY_ALIGN;
}

static enum ar_status write_binary_head(struct writer *writer, const char *head, size_t head_bytes,
                                        struct ar_error *error)
{
    static const char padding[BINARY_ALIGN];
    struct binary_header h;
    fill_header(writer, head_bytes, &h);
    h.checksum = ar_fnv64(ar_fnv64(AR_FNV64_SEED, &h, offsetof(struct binary_header, checksum)),
                          head, head_bytes);
    uint64_t end = sizeof h + h.head_bytes + h.key_bytes + h.text_bytes;
    AR_TRY(trace_output_write(writer->output, &h, sizeof h, error));
    AR_TRY(trace_output_write(writer->output, head, head_bytes, error));
    AR_TRY(write_texts(writer, &writer->tables.keys, error));
    AR_TRY(write_texts(writer, &writer->tables.texts, error));
    return trace_output_write(writer->output, padding, (size_t)(h.records_at - end), error);
}

static enum ar_status write_head(struct writer *writer, struct ar_error *error)
{
    bool text = writer->format == TRACE_FORMAT_TEXT;
    bool say_final = writer->free_requested_final && text; /* the binary form has a flag for it */
    size_t bytes = trace_header_print(&writer->info, &writer->source->stats, say_final, NULL, 0);
    AR_FREED char *head = malloc(bytes + 1);
    AR_TRY_MEMORY(head, error, "a trace");
    (void)trace_header_print(&writer->info, &writer->source->stats, say_final, head, bytes + 1);
    return text ? write_text_head(writer, head, bytes, error)
                : write_binary_head(writer, head, bytes, error);
}

/* The second pass, into the file. */
static enum ar_status write_out(struct writer *writer, const char *path, bool compress,
                                struct ar_error *error)
{
    AR_TRY(trace_output_open(path, compress, &writer->output, error));
    enum ar_status status = write_head(writer, error);
    AR_THEN(status, trace_rewind(writer->source, error));
    AR_THEN(status, pass(writer, error));
    if (!status && writer->format == TRACE_FORMAT_BINARY)
        status = flush_batch(writer, error);
    if (status)
        trace_output_discard(writer->output);
    else
        status = trace_output_commit(writer->output, error);
    return status;
}

enum ar_status trace_write(struct trace_source *source, const char *path,
                           const struct trace_write_options *options, struct ar_error *error)
{
    struct writer *writer = calloc(1, sizeof *writer);
    AR_TRY_MEMORY(writer, error, "a trace");
    writer->source = source;
    writer->format = options->format;
    writer->info = source->info;
    enum ar_status status = trace_rewind(source, error);
    AR_THEN(status, pass(writer, error));
    if (!status) {
        trace_check_finish(&writer->check, &writer->info);
        writer->free_requested_final = trace_check_is_final(&writer->check);
        trace_check_close(&writer->check);
        status = write_out(writer, path, options->compress, error);
    }
    trace_check_close(&writer->check);
    trace_tables_close(&writer->tables);
    free(writer->line);
    free(writer);
    return status;
}
