/* Out-of-memory dumps of TensorFlow and JAX, as a trace: the state of the allocator when a request
 * failed, and that request.
 *
 * 1. Regions, and chunks in use and free, are notes in front of the first event, in the order of
 *    addresses: a state to start from, see FORMAT.md.
 * 2. Each chunk in use is a request with the key initial=yes; the operation that requested it, if
 *    the log names it, is its tag.
 * 3. The request that failed is the last one, with a note. Its size is exact if a sentence of the
 *    log has the bytes, else as it was rounded, else as it was printed with a unit.
 * 4. If the log has no dump, XLA's list of a program's largest buffers is read: arguments are
 *    requests, the buffers that the program would have allocated are notes.
 * Both frameworks print the same text: the source locations in it show which one it was. */

#include "allocators/base/array.h"
#include "workloads/formats/formats.h"
#include "workloads/formats/xla/bfc_log.h"
#include "workloads/io/fields.h"

struct conversion {
    struct bfc_log log;
    struct format_reading *reading;
    struct ar_error *error;
    uint64_t ids;
};

static int by_address(const void *left, const void *right)
{
    const struct bfc_chunk *a = left, *b = right;
    AR_ORDER(a->address, b->address);
    return (a->line > b->line) - (a->line < b->line);
}

/* The regions, while the chunks are in the order of the log. If the chunks of a region do not fill
 * it, lines are missing. */
static enum ar_status append_regions(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    enum ar_status status = AR_OK;
    uint64_t broken = 0;
    for (size_t i = 0; i < dump->region_count && !status; i++) {
        const struct bfc_region *region = &dump->regions[i];
        size_t end = i + 1 < dump->region_count ? dump->regions[i + 1].first : dump->chunk_count;
        if (region->first == end)
            continue;
        uint64_t begin = dump->chunks[region->first].address, reached = begin;
        for (size_t k = region->first; k < end; k++) {
            broken += dump->chunks[k].address != reached;
            reached = dump->chunks[k].address + dump->chunks[k].bytes;
        }
        broken += reached - begin != region->bytes;
        status = format_note(c->reading, c->error, "segment,%" PRIu64 ",%" PRIu64 ",0", begin,
                             region->bytes);
    }
    if (broken)
        import_guess(c->reading->report,
                     "the chunks leave %" PRIu64
                     " gaps in their regions: lines of the log are missing",
                     broken);
    return status;
}

/* Sorts chunks by address and removes duplicates. */
static void sort_chunks(struct conversion *c)
{
    struct bfc_dump *dump = &c->log.last;
    size_t kept = 0;
    qsort(dump->chunks, dump->chunk_count, sizeof *dump->chunks, by_address);
    for (size_t i = 0; i < dump->chunk_count; i++) {
        if (kept && dump->chunks[i].address &&
            dump->chunks[kept - 1].address == dump->chunks[i].address)
            free(dump->chunks[i].tag);
        else
            dump->chunks[kept++] = dump->chunks[i];
    }
    c->reading->report->left_out = dump->chunk_count - kept;
    dump->chunk_count = kept;
}

/* The regions of a log that names none, from the addresses of the chunks: old versions list first
 * the chunks in use, then the free ones. */
static enum ar_status append_runs(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    for (size_t i = 0, end; i < dump->chunk_count; i = end) {
        uint64_t begin = dump->chunks[i].address, reached = begin;
        for (end = i; end < dump->chunk_count && dump->chunks[end].address == reached; end++)
            reached += dump->chunks[end].bytes;
        AR_TRY(format_note(c->reading, c->error, "segment,%" PRIu64 ",%" PRIu64 ",0", begin,
                           reached - begin));
    }
    return AR_OK;
}

static enum ar_status append_places(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    uint64_t id = 0;
    for (size_t i = 0; i < dump->chunk_count && !dump->from_summary; i++) {
        const struct bfc_chunk *chunk = &dump->chunks[i];
        AR_TRY(trace_memory_line(c->reading->memory, chunk->line, c->error));
        AR_TRY(chunk->used
                   ? format_note(c->reading, c->error, "block,%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                                 chunk->address, chunk->bytes, id++)
                   : format_note(c->reading, c->error, "block,%" PRIu64 ",%" PRIu64 ",free",
                                 chunk->address, chunk->bytes));
    }
    return AR_OK;
}

static enum ar_status append_block(struct conversion *c, uint64_t bytes,
                                   const struct trace_attributes *keys)
{
    const struct trace_event event = {.kind = TRACE_ALLOC, .id = c->ids++, .value = bytes};
    return format_event(c->reading, event, keys, NULL, c->error);
}

static enum ar_status append_blocks(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    for (size_t i = 0; i < dump->chunk_count; i++) {
        const struct bfc_chunk *chunk = &dump->chunks[i];
        const struct trace_attributes keys = {.tag = chunk->tag, .rest = "initial=yes"};
        if (!chunk->used)
            continue;
        if (chunk->bytes >= TRACE_BYTES_LIMIT)
            return ar_error_set(c->error, AR_FORMAT,
                                "line %" PRIu64 ": a chunk of %" PRIu64 " bytes cannot be",
                                chunk->line, chunk->bytes);
        AR_TRY(trace_memory_line(c->reading->memory, chunk->line, c->error));
        for (uint32_t copy = 0; copy < chunk->copies; copy++)
            AR_TRY(append_block(c, chunk->bytes, &keys));
    }
    return AR_OK;
}

/* The request that failed, if the log has its size. */
static enum ar_status append_failure(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    const struct bfc_request *request = dump->chunk_count ? &dump->request : &c->log.list_request;
    uint64_t bytes = request->bytes           ? request->bytes
                     : request->rounded_bytes ? request->rounded_bytes
                                              : request->about_bytes;
    struct trace_attributes keys = {.tag = *request->operation ? request->operation : NULL};
    char note[32] = "oom";
    if (!bytes || bytes >= TRACE_BYTES_LIMIT) {
        import_guess(c->reading->report, "the log does not say which request failed");
        return AR_OK;
    }
    if (!request->bytes)
        import_guess(
            c->reading->report,
            request->rounded_bytes
                ? "the failed request is known as it was rounded, up to 256 bytes too large"
                : "the failed request is known to three digits only");
    if (dump->has_limit && dump->has_pool && dump->limit_bytes >= dump->pool_bytes)
        (void)snprintf(note, sizeof note, "oom,%" PRIu64, dump->limit_bytes - dump->pool_bytes);
    return format_failure(c->reading, (struct trace_event){.id = c->ids, .value = bytes}, &keys,
                          false, note, c->error);
}

/* The report. */
static void tell(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    uint64_t in_use = 0;
    for (size_t i = 0; i < dump->chunk_count; i++)
        in_use += dump->chunks[i].used ? dump->chunks[i].bytes * dump->chunks[i].copies : 0;
    c->reading->report->records = dump->copies;
    c->reading->report->begins_in_the_middle = true;
    import_guess(c->reading->report,
                 "a state, not a history: the blocks that were live when a request failed");
    import_guess(c->reading->report, "sizes are those of chunks, not of the requests");
    if (dump->from_summary)
        import_guess(c->reading->report, "the log names no chunks: blocks are those of its summary "
                                         "by size, without addresses and without what was free");
    else if (!dump->region_count)
        import_guess(c->reading->report,
                     "the log names no regions: adjacent chunks are taken for one");
    if (dump->has_in_use && dump->in_use_bytes == in_use)
        import_guess(c->reading->report, "the chunks in use add up to the allocator's own count");
    else if (dump->has_in_use)
        import_guess(c->reading->report,
                     "the chunks in use add up to %" PRIu64
                     " bytes, the allocator's own count is %" PRIu64,
                     in_use, dump->in_use_bytes);
    if (c->log.dumps > 1)
        import_guess(c->reading->report, "the log holds %" PRIu64 " dumps: the last is read",
                     c->log.dumps);
    if (c->log.later_failure)
        import_guess(c->reading->report, "another request failed later, without a dump of its own");
    import_guess_count(c->reading->report, c->log.soft_failures,
                       "requests that were allowed to fail failed too: they are not in the trace");
}

/* XLA's list of a program's largest buffers: arguments are live, the others are planned. */
static enum ar_status append_buffers(struct conversion *c)
{
    const struct xla_buffers *buffers = &c->log.buffers;
    static const struct trace_attributes keys = {.tag = "parameter", .rest = "initial=yes"};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < buffers->count && !status; i++) {
        const struct xla_buffer *buffer = &buffers->items[i];
        if (!buffer->parameter && *buffer->label)
            status = format_note(c->reading, c->error, "planned,%" PRIu64 ",%s", buffer->bytes,
                                 buffer->label);
        else if (!buffer->parameter)
            status = format_note(c->reading, c->error, "planned,%" PRIu64, buffer->bytes);
    }
    for (size_t i = 0; i < buffers->count && !status; i++) {
        const struct xla_buffer *buffer = &buffers->items[i];
        if (!buffer->parameter || buffer->bytes >= TRACE_BYTES_LIMIT)
            continue;
        status = trace_memory_line(c->reading->memory, buffer->line, c->error);
        AR_THEN(status, append_block(c, buffer->bytes, &keys));
    }
    c->reading->report->records = buffers->count;
    import_guess(c->reading->report, "XLA's list of the largest buffers of a program: its "
                                     "arguments are live, the others are notes");
    import_guess(c->reading->report, "the memory of other programs and all addresses are unknown");
    return status;
}

static enum ar_status append_dump(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    AR_TRY(append_regions(c));
    sort_chunks(c);
    tell(c);
    if (!dump->region_count && !dump->from_summary)
        AR_TRY(append_runs(c));
    AR_TRY(append_places(c));
    return append_blocks(c);
}

static enum ar_status convert(struct conversion *c)
{
    const struct bfc_dump *dump = &c->log.last;
    if (!dump->chunk_count && !c->log.buffers.count)
        return ar_error_set(c->error, AR_FORMAT,
                            "the log holds no dump of an allocator, which has lines such as "
                            "\"InUse at 7f2e00000000 of size 256\"; keep the messages of level I "
                            "of bfc_allocator.cc (TF_CPP_MIN_LOG_LEVEL=0)");
    c->reading->info.limit_bytes = dump->limit_bytes;
    memcpy(c->reading->info.card, c->log.card, sizeof c->log.card);
    AR_TRY(format_start(c->reading, c->error));
    AR_TRY(dump->chunk_count ? append_dump(c) : append_buffers(c));
    return append_failure(c);
}

static enum ar_status read_dump(struct format_reading *reading, struct ar_error *error)
{
    bool jax = reading->info.format[0] == 'j';
    struct conversion c = {.reading = reading, .error = error};
    struct trace_info *info = &reading->info;
    info->complete = false;
    (void)snprintf(info->recorder, sizeof info->recorder, "%s", jax ? "xla" : "tensorflow");
    enum ar_status status = bfc_log_read(reading->input, &c.log, error);
    AR_THEN(status, convert(&c));
    bfc_log_close(&c.log);
    return status;
}

/* Text that holds one of the words, and is no JSON. */
static bool holds_any(const char *head, size_t count, const char *const *words)
{
    size_t at = head_blanks(head, count, 0);
    if (at == count || head[at] == '{' || head[at] == '#' || memchr(head, 0, count))
        return false;
    if (head[at] == '[') {
        at = head_blanks(head, count, at + 1);
        if (at == count || strchr("{[]\"", head[at]))
            return false;
    }
    for (; *words; words++)
        if (head_holds(head, count, *words))
            return true;
    return false;
}

/* The source locations of jaxlib and other users of XLA. */
static bool jax_matches(const char *head, size_t count)
{
    static const char *const words[] = {"external/xla/",
                                        "external/org_tensorflow/",
                                        "external/tsl/",
                                        "jaxlib",
                                        "XlaRuntimeError",
                                        "pjrt_stream_executor",
                                        "jax._src",
                                        "jax/_src/",
                                        NULL};
    static const char *const others[] = {"external/local_xla", "external/local_tsl",
                                         " tensorflow/core/", NULL};
    return holds_any(head, count, words) && !holds_any(head, count, others);
}

static bool tf_matches(const char *head, size_t count)
{
    static const char *const words[] = {
        " tensorflow/",  "tensorflow\\core\\",     "external/local_xla/",  "external/local_tsl/",
        "bfc_allocator", "BFCAllocator dump",      "Next region of size ", "InUse at ",
        "GPU_0_bfc",     "ResourceExhaustedError", "import tensorflow",    NULL};
    return holds_any(head, count, words);
}

const struct format_reader format_jax_dump = {
    .name = "jax_dump",
    .summary = "a log in which JAX's allocator (XLA's BFC) tells its state out of memory, read",
    .matches = jax_matches,
    .read = read_dump,
};

const struct format_reader format_tf_dump = {
    .name = "tf_dump",
    .summary = "a log in which TensorFlow's allocator (BFC) tells its state out of memory, read",
    .matches = tf_matches,
    .read = read_dump,
};
