/* A source over the records of a binary file.
 * 1. Header and tables, which precede the records, are read and kept.
 * 2. A plain file is mapped and its records are given out in place; of a file over 256 MiB the
 *    pages before the current span are released, so that resident memory is bounded. A compressed
 *    file is unpacked span by span.
 * 3. Opening sends every record through the check, which also computes the hash, and compares all
 *    counts with the header. Later passes trust the file. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/io/file.h"
#include "workloads/trace/forms.h"
#include "workloads/trace/check.h"
#include "workloads/trace/trace.h"

#define SPAN       UINT64_C(32768) /* events: 1 MiB */
#define DROP_ABOVE (UINT64_C(256) << 20)
#define REMEDY     "the file is cut off or damaged: copy it or make it again"

struct binary_trace {
    struct trace_source base;
    struct trace_input *input;
    struct trace_tables tables;
    struct binary_header header;
    uint64_t given; /* events so far */
    uint8_t *map;   /* NULL: unpacked through `input` into `span` */
    size_t map_bytes;
    struct trace_event *span;
};

static const char *path_of(const struct binary_trace *trace)
{
    return trace_input_path(trace->input);
}

/* Reads `count` bytes of the unpacked file; `*got` is less at its end. */
static enum ar_status read_whole(struct trace_input *input, void *bytes, size_t count, size_t *got,
                                 struct ar_error *error)
{
    *got = 0;
    while (*got < count) {
        size_t more;
        AR_TRY(trace_input_read(input, (char *)bytes + *got, count - *got, &more, error));
        if (!more)
            break;
        *got += more;
    }
    return AR_OK;
}

/* Reads a table of `count` bytes into new memory, which grows with the bytes that the file really
 * has. */
static enum ar_status read_table(struct binary_trace *trace, uint64_t count, char **out,
                                 struct ar_error *error)
{
    AR_FREED char *bytes = NULL;
    size_t have = 0, room = 0;
    while (have < count || !bytes) {
        room = count - have > (have | 65536) ? have + (have | 65536) : (size_t)count;
        char *longer = realloc(bytes, room + 1);
        if (!longer)
            return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory for its tables",
                                path_of(trace));
        bytes = longer;
        size_t got;
        AR_TRY(read_whole(trace->input, bytes + have, room - have, &got, error));
        have += got;
        if (have < room)
            return ar_error_set(error, AR_FORMAT, "%s: it ends inside its tables; " REMEDY,
                                path_of(trace));
    }
    bytes[have] = 0;
    *out = bytes;
    bytes = NULL;
    return AR_OK;
}

static enum ar_status damaged(const struct binary_trace *trace, const char *what,
                              struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "%s: %s; " REMEDY, path_of(trace), what);
}

static enum ar_status read_header(struct binary_trace *trace, struct ar_error *error)
{
    struct binary_header *h = &trace->header;
    size_t got;
    AR_TRY(read_whole(trace->input, h, sizeof *h, &got, error));
    if (got < 16 || (got < sizeof *h && h->version == BINARY_VERSION))
        return damaged(trace, "it ends inside its header", error);
    if (h->byte_order != BINARY_BYTE_ORDER)
        return ar_error_set(
            error, AR_FORMAT,
            "%s: a trace of a machine with the other byte order; convert it to text there",
            path_of(trace));
    if (h->version != BINARY_VERSION)
        return ar_error_set(
            error, AR_FORMAT,
            "%s: version %u of the binary trace format; this program reads version %u",
            path_of(trace), h->version, BINARY_VERSION);
    if (h->header_bytes != sizeof *h || h->record_bytes != sizeof(struct trace_event))
        return damaged(trace, "its header has sizes that version 1 does not have", error);
    static const uint8_t zero[sizeof h->zero];
    if (memcmp(h->zero, zero, sizeof zero) != 0)
        return damaged(trace, "its header has other bytes where version 1 has zeros", error);
    return AR_OK;
}

/* Calls `take` with each line of a table. */
static enum ar_status each_line(struct binary_trace *trace, char *table, uint64_t bytes,
                                enum ar_status (*take)(struct binary_trace *, const char *, size_t,
                                                       struct ar_error *),
                                struct ar_error *error)
{
    char *at = table, *end = table + bytes;
    while (at < end) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop || memchr(at, 0, (size_t)(stop - at)))
            return ar_error_set(error, AR_FORMAT, "a line of a table has no end");
        *stop = 0;
        AR_TRY(take(trace, at, (size_t)(stop - at), error));
        at = stop + 1;
    }
    return AR_OK;
}

static enum ar_status take_head(struct binary_trace *trace, const char *line,
                                size_t length AR_UNUSED, struct ar_error *error)
{
    bool free_requested_final = false;
    unsigned given = 0;
    if (line[0] != '#')
        return ar_error_set(error, AR_FORMAT, "\"%.40s\" is no header line", line);
    return trace_header_parse(line, &trace->base, &free_requested_final, &given, error);
}

static enum ar_status take_keys(struct binary_trace *trace, const char *line, size_t length,
                                struct ar_error *error)
{
    uint32_t index = 0;
    size_t before = trace->tables.keys.count;
    AR_TRY(trace_tables_keys(&trace->tables, line, length, &index, error));
    if (index != before + 1 || strcmp(line, trace_tables_keys_text(&trace->tables, index)) != 0)
        return ar_error_set(error, AR_FORMAT, "the keys \"%.60s\" are there twice, or out of order",
                            line);
    return AR_OK;
}

static enum ar_status take_text(struct binary_trace *trace, const char *line, size_t length,
                                struct ar_error *error)
{
    uint64_t index = 0;
    size_t before = trace->tables.texts.count;
    AR_TRY(trace_tables_add_text(&trace->tables, line, length, &index, error));
    if (index != before)
        return ar_error_set(error, AR_FORMAT, "the text \"%.60s\" is there twice", line);
    return AR_OK;
}

static enum ar_status read_tables(struct binary_trace *trace, struct ar_error *error)
{
    struct binary_header *h = &trace->header;
    enum ar_status (*const takes[])(struct binary_trace *, const char *, size_t,
                                    struct ar_error *) = {take_head, take_keys, take_text};
    const uint64_t sizes[] = {h->head_bytes, h->key_bytes, h->text_bytes};
    uint64_t sum = ar_fnv64(AR_FNV64_SEED, h, offsetof(struct binary_header, checksum));
    uint64_t at = sizeof *h;
    for (unsigned i = 0; i < 3; i++) {
        if (sizes[i] > UINT64_C(1) << 40)
            return damaged(trace, "its header has tables of an impossible size", error);
        AR_FREED char *table = NULL;
        AR_TRY(read_table(trace, sizes[i], &table, error));
        at += sizes[i];
        if (i == 0 && ar_fnv64(sum, table, (size_t)sizes[0]) != h->checksum)
            return damaged(trace, "its header does not match its checksum", error);
        if (each_line(trace, table, sizes[i], takes[i], error))
            return ar_error_prefix(error, AR_FORMAT, "%s: in its tables", path_of(trace));
    }
    if (trace->tables.keys.count != h->key_count || trace->tables.texts.count != h->text_count ||
        h->records_at != (at + BINARY_ALIGN - 1) / BINARY_ALIGN * BINARY_ALIGN)
        return damaged(trace, "its tables are not as long as its header says", error);
    char padding[BINARY_ALIGN] = {0};
    static const char zeros[BINARY_ALIGN];
    size_t got;
    enum ar_status status =
        read_whole(trace->input, padding, (size_t)(h->records_at - at), &got, error);
    if (!status && memcmp(padding, zeros, sizeof zeros) != 0)
        return damaged(trace, "the padding before its records is not zero", error);
    return status;
}

/* Maps a plain file. A file that is too short is refused here, before a record is read. */
static enum ar_status map_file(struct binary_trace *trace, int file, struct ar_error *error)
{
    struct stat about;
    const struct binary_header *h = &trace->header;
    if (fstat(file, &about) != 0 || about.st_size < 0)
        return ar_error_set(error, AR_IO, "%s: its size cannot be found", path_of(trace));
    uint64_t bytes = (uint64_t)about.st_size;
    uint64_t there =
        bytes > h->records_at ? (bytes - h->records_at) / sizeof(struct trace_event) : 0;
    if (there < h->events)
        return ar_error_set(error, AR_FORMAT,
                            "%s: it ends at event %" PRIu64 " of %" PRIu64 "; " REMEDY,
                            path_of(trace), there, h->events);
    if (bytes != h->records_at + h->events * sizeof(struct trace_event))
        return damaged(trace, "bytes follow its last event", error);
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED)
        return ar_error_set(error, AR_IO, "%s: cannot be mapped into memory", path_of(trace));
    trace->map = map;
    trace->map_bytes = (size_t)bytes;
    return AR_OK;
}

/* Releases the pages before `offset` that the previous span used. */
static void drop_before(struct binary_trace *trace, size_t offset)
{
    if (trace->map_bytes <= DROP_ABOVE || !offset)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t end = offset / page * page;
    size_t length = 2 * SPAN * sizeof(struct trace_event);
    size_t begin = end > length ? end - length : 0;
    (void)madvise(trace->map + begin, end - begin, MADV_DONTNEED);
}

static enum ar_status next_mapped(struct binary_trace *trace, const struct trace_event **events,
                                  size_t count, struct ar_error *error)
{
    struct stat about;
    size_t offset = (size_t)(trace->header.records_at + trace->given * sizeof **events);
    if (fstat(trace_input_file(trace->input), &about) != 0 ||
        (uint64_t)about.st_size < trace->map_bytes)
        return damaged(trace, "it became shorter while it was read", error);
    drop_before(trace, offset);
    *events = (const struct trace_event *)(const void *)(trace->map + offset);
    trace->given += count;
    return AR_OK;
}

static enum ar_status next_unpacked(struct binary_trace *trace, const struct trace_event **events,
                                    size_t count, struct ar_error *error)
{
    size_t got, bytes = count * sizeof **events;
    AR_TRY(read_whole(trace->input, trace->span, bytes, &got, error));
    if (got < bytes)
        return ar_error_set(
            error, AR_FORMAT, "%s: it ends at event %" PRIu64 " of %" PRIu64 "; " REMEDY,
            path_of(trace), trace->given + got / sizeof **events, trace->header.events);
    *events = trace->span;
    trace->given += count;
    return AR_OK;
}

static enum ar_status binary_next(struct trace_source *self, const struct trace_event **events,
                                  size_t *count, struct ar_error *error)
{
    struct binary_trace *trace = (struct binary_trace *)self;
    uint64_t left = trace->header.events - trace->given;
    *count = (size_t)(left < SPAN ? left : SPAN);
    if (!*count)
        return AR_OK;
    return trace->map ? next_mapped(trace, events, *count, error)
                      : next_unpacked(trace, events, *count, error);
}

static enum ar_status binary_rewind(struct trace_source *self, struct ar_error *error)
{
    struct binary_trace *trace = (struct binary_trace *)self;
    trace->given = 0;
    if (trace->map)
        return AR_OK;
    enum ar_status status = trace_input_rewind(trace->input, error);
    uint64_t left = trace->header.records_at;
    while (!status && left) {
        size_t room = SPAN * sizeof(struct trace_event), got;
        status =
            read_whole(trace->input, trace->span, left < room ? (size_t)left : room, &got, error);
        if (!status && !got)
            return damaged(trace, "it became shorter while it was read", error);
        left -= status ? 0 : got;
    }
    return status;
}

static void binary_close(struct trace_source *self)
{
    struct binary_trace *trace = (struct binary_trace *)self;
    if (trace->map)
        (void)munmap(trace->map, trace->map_bytes);
    trace_tables_close(&trace->tables);
    trace_input_close(trace->input);
    free(trace->span);
    free(trace);
}

static const struct trace_source_ops binary_ops = {
    .next = binary_next,
    .rewind = binary_rewind,
    .close = binary_close,
};

/* Compares all counts of the header with the records. */
static bool header_agrees(const struct binary_trace *trace, const struct trace_check *check)
{
    const struct trace_info *i = &trace->base.info;
    const struct binary_header *h = &trace->header;
    return h->allocs == i->allocs && h->probes == i->probes && h->frees == i->frees &&
           h->steps == i->steps && h->kernels == i->kernels && h->zero_allocs == i->zero_allocs &&
           h->peak_live_bytes == i->peak_live_bytes && h->allocated_bytes == i->allocated_bytes &&
           h->slots == i->slots && h->streams == i->streams && h->key_count == check->keys_seen &&
           h->text_count == check->texts_seen &&
           h->flags == binary_flags(i, trace_check_is_final(check));
}

static enum ar_status check_records(struct binary_trace *trace, struct ar_error *error)
{
    struct ar_error unread;
    error = error ? error : &unread;
    struct trace_check check;
    trace_check_start(&check, &trace->tables, true,
                      trace->header.flags & BINARY_FREE_REQUESTED_FINAL);
    const struct trace_event *events;
    size_t count = 0, at = 0;
    enum ar_status status;
    while (!(status = binary_next(&trace->base, &events, &count, error)) && count) {
        status = trace_check_span(&check, events, count, &at, error);
        if (status) {
            struct ar_error why = *error;
            status = ar_error_set(error, AR_FORMAT, "%s: event %" PRIu64 ": %.700s; " REMEDY,
                                  path_of(trace), trace->given - count + at, why.text);
            break;
        }
    }
    if (!status) {
        trace_check_finish(&check, &trace->base.info);
        if (!header_agrees(trace, &check))
            status = damaged(trace, "its counts are not those of its events", error);
        else if (memcmp(trace->base.info.sha256, trace->header.sha256, 32) != 0)
            status = damaged(trace, "its events do not match its hash", error);
    }
    trace_check_close(&check);
    return status;
}

static enum ar_status open_checked(struct binary_trace *trace, struct ar_error *error)
{
    trace->base.info.complete = true;
    (void)strcpy(trace->base.info.format, "binary");
    AR_TRY(read_header(trace, error));
    AR_TRY(read_tables(trace, error));
    if (!*trace->base.info.name)
        trace_name_from_path(path_of(trace), trace->base.info.name, sizeof trace->base.info.name);
    int file = trace_input_file(trace->input);
    if (file >= 0) {
        AR_TRY(map_file(trace, file, error));
    } else {
        trace->span = malloc(SPAN * sizeof *trace->span);
        if (!trace->span)
            return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it",
                                path_of(trace));
    }
    AR_TRY(check_records(trace, error));
    if (!trace->map) {
        char more;
        size_t got;
        AR_TRY(read_whole(trace->input, &more, 1, &got, error));
        if (got)
            return damaged(trace, "bytes follow its last event", error);
    }
    return binary_rewind(&trace->base, error);
}

enum ar_status trace_binary_open(struct trace_input *input, struct trace_source **out,
                                 struct ar_error *error)
{
    struct binary_trace *trace = calloc(1, sizeof *trace);
    if (!trace) {
        trace_input_close(input);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a trace");
    }
    trace->base.ops = &binary_ops;
    trace->base.tables = &trace->tables;
    trace->input = input;
    enum ar_status status = open_checked(trace, error);
    if (status) {
        trace_close(&trace->base);
        return status;
    }
    *out = &trace->base;
    return AR_OK;
}
