/* Recorded CSVs (action,addr,size,stream,time_us): what PyTorch's memory history saw, with kernels
 * and marks, as a trace. Rows name blocks by address; a trace names them by id.
 *
 * 1. Streams become ordinals: the default stream is 0, the others are numbered by first appearance
 *    among the allocator's rows. A kernel has the profiler's stream; the .json maps it back, or it
 *    gets an ordinal of its own.
 * 2. A free that is completed in the next row of the allocator is one `f` at the free request; else
 *    it is `r` there and `f` at the completion. If all completions come so and a block is pending
 *    at the end, all frees are `r` and `f`: of `f` beside an `r` without a completion one would
 *    read that this block is completed, too.
 * 3. A request that failed (oom) is `a`, or `p` if requests follow it (the program continued), a
 *    note, and an `r`: nothing of it remains.
 * 4. Blocks that are freed without a request were there before the recording began: they come
 *    first, with the key initial=yes.
 * 5. The first row is at `t,0`, so that no note of what was done comes where the state at the start
 *    would.
 * 6. Rows that contradict each other are refused, or noted if the reader is lenient: a block that
 *    overlaps a live one, a free with another size or stream than its block's, and the like. The
 *    first ten mistakes of a file are told together.
 * 7. The rows name no pool. If the .json does not either, the pools are inferred from the
 *    addresses, as those of a snapshot (snapshot_pools.c, snapshot_ranges.c).
 * 8. Everything that the allocator did is kept in notes; FORMAT.md lists them. */

#include "allocators/base/array.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "workloads/formats/torch/sidecar.h"
#include "workloads/formats/torch/snapshot_world.h"
#include "workloads/io/fields.h"
#include "workloads/trace/check.h"

#define STREAMS_MOST  4096u
#define MISTAKES_MOST 10u
#define MORE_BYTES    32u /* of the number of those that are not told */
#define FAR_US        (UINT64_C(1) << 50)

enum action {
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    OOM,
    /* not of the allocator: */
    SNAPSHOT,
    KERNEL,
    MARK,
    ACTION_COUNT
};

static const char *const action_names[ACTION_COUNT] = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "kernel",         "mark",
};

struct row {
    uint64_t address, size, stream, time_us;
    uint32_t line;
    uint8_t action; /* enum action */
    bool at_once;   /* a free requested, and its completion in the allocator's next row */
};

struct segment {
    uint64_t begin, end;
    uint32_t pool;
};

/* Errors of rows, as one text. */
struct mistakes {
    enum ar_status status; /* of the first */
    unsigned count, told;
    size_t used;
    struct ar_error all;
};

struct conversion {
    struct format_reading *reading;
    struct mistakes mistakes;
    struct row *rows;
    size_t count, room;
    size_t at; /* the current row */
    struct sidecar sidecar;
    uint64_t next_id, time_ns, kernel_ns;
    struct ar_map blocks;        /* in use, by address: 2 * id, + 1 if its free was requested; its
                                   * range */
    struct ar_range_pool ranges; /* of these blocks; `extra` is the index of the row */
    struct ar_host host;         /* of the ranges */
    uint32_t range_root;
    struct ar_map streams;        /* the allocator's name -> ordinal */
    struct ar_map kernel_streams; /* the profiler's number -> ordinal after all of these */
    struct segment *segments;     /* live ones, if the .json has their pools */
    size_t segment_count, segments_made;
    uint16_t *pools; /* of each row, if they were inferred */
};

/* ---- mistakes ------------------------------------------------------------------------------ */

static void add_mistake(struct conversion *c, uint64_t line, enum ar_status status,
                        const char *text)
{
    struct mistakes *self = &c->mistakes;
    size_t room = sizeof self->all.text - self->used - MORE_BYTES;
    const char *path = trace_input_path(c->reading->input);
    int length = 0;
    if (self->count == 0) {
        self->status = status;
        length = snprintf(self->all.text, room, "%s:%" PRIu64 ": %s", path, line, text);
    } else if (self->count == self->told && self->told < MISTAKES_MOST) {
        length = snprintf(self->all.text + self->used, room, "; line %" PRIu64 ": %s", line, text);
    }
    self->count++;
    if (length > 0 && (size_t)length < room) {
        self->used += (size_t)length;
        self->told++;
    } else if (self->count == 1) { /* cut off */
        self->used = strlen(self->all.text);
        self->told++;
    }
}

static enum ar_status tell_mistakes(struct conversion *c, struct ar_error *error)
{
    struct mistakes *self = &c->mistakes;
    char more[MORE_BYTES] = "";
    if (!self->count)
        return AR_OK;
    self->all.text[self->used] = '\0';
    if (self->count > self->told)
        snprintf(more, sizeof more, "; and %u more", self->count - self->told);
    return ar_error_set(error, self->status, "%s%s", self->all.text, more);
}

/* A mistake of the row in `line` is kept, and the file is read on; else the same status. */
static enum ar_status keep_mistake(struct conversion *c, uint64_t line, enum ar_status status,
                                   const struct ar_error *error)
{
    if (status != AR_INVALID && status != AR_FORMAT)
        return status;
    add_mistake(c, line, status, error->text);
    return AR_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

static enum ar_status parse_number(const char *field, const char *column, uint64_t *out,
                                   struct ar_error *error)
{
    if (field[0] == '0' && (field[1] | 32) == 'x')
        return ar_invalid(error, "%s: \"%.40s\" is hexadecimal; write it as a decimal number",
                          column, field);
    return ar_error_prefix(error, ar_count_parse(field, out, error), "%s", column);
}

/* Whether the address and the size of a row are those of a block or a segment. */
static bool is_place(const struct row *row)
{
    return row->action < OOM;
}

static enum ar_status parse_row(char *line, struct row *row, struct ar_error *error)
{
    enum { COLUMNS = 5 };
    static const char *const columns[COLUMNS] = {"action", "addr", "size", "stream", "time_us"};
    uint64_t *const to[COLUMNS] = {NULL, &row->address, &row->size, &row->stream, &row->time_us};
    char *fields[COLUMNS];
    size_t count = fields_split(line, ',', fields, COLUMNS);
    int action = 0;
    while (action < ACTION_COUNT && strcmp(action_names[action], fields[0]) != 0)
        action++;
    if (action == ACTION_COUNT)
        return ar_invalid(error,
                          "the action \"%.40s\" is not known; write %s, %s, %s or another that "
                          "workloads/trace/FORMAT.md lists",
                          fields[0], action_names[0], action_names[1], action_names[2]);
    row->action = (uint8_t)action;
    for (size_t i = 1; i < COLUMNS; i++) {
        if (i == count)
            return ar_invalid(error, "the column %s is missing", columns[i]);
        AR_TRY(parse_number(fields[i], columns[i], to[i], error));
        if (*to[i] == AR_MAP_NO_KEY && (to[i] == &row->address || to[i] == &row->stream))
            return ar_invalid(error, "%s: %" PRIu64 " is too large: it must be below 2^64 - 1",
                              columns[i], *to[i]);
    }
    if (count > COLUMNS)
        return ar_invalid(error, "there are more than five columns");
    if (is_place(row) && row->size > UINT64_MAX - row->address)
        return ar_invalid(error,
                          "address %" PRIu64 " and size %" PRIu64 " come to 2^64 or more: no "
                          "memory is there",
                          row->address, row->size);
    return AR_OK;
}

static bool is_allocators(const struct row *row)
{
    return row->action < SNAPSHOT;
}

/* Marks the row that was read last, and the allocator's row before it, if they free one block. */
static void note_at_once(struct conversion *c, size_t *before)
{
    struct row *row = &c->rows[c->count - 1], *last = &c->rows[*before];
    if (!is_allocators(row))
        return;
    if (row->action == FREE_COMPLETED && last->action == FREE_REQUESTED &&
        last->address == row->address)
        row->at_once = last->at_once = true;
    *before = c->count - 1;
}

/* No free is joined with its completion if all would be, and a block is pending at the end. */
static void split_frees(struct conversion *c)
{
    bool joined = false, apart = false, pending = false;
    for (size_t i = 0; i < c->count; i++) {
        const struct row *row = &c->rows[i];
        joined |= row->at_once;
        apart |= row->action == FREE_COMPLETED && !row->at_once;
        pending |= row->action == FREE_REQUESTED && !row->at_once;
    }
    for (size_t i = 0; joined && pending && !apart && i < c->count; i++)
        c->rows[i].at_once = false;
}

/* The first line: the names of the columns. */
static enum ar_status read_columns(const struct conversion *c, struct trace_lines *lines,
                                   struct ar_error *error)
{
    char *line, shown[64];
    size_t length;
    AR_TRY(trace_lines_next(lines, &line, &length, error));
    if (line && strcmp(line, FORMAT_CSV_COLUMNS) != 0) {
        field_text(line, shown, sizeof shown);
        return ar_error_set(error, AR_FORMAT,
                            "%s:1: the columns are \"%s\"; read are exactly " FORMAT_CSV_COLUMNS,
                            trace_input_path(c->reading->input), shown);
    }
    return AR_OK;
}

static enum ar_status read_rows(struct conversion *c, struct ar_error *error)
{
    struct trace_lines *lines = malloc(sizeof *lines);
    AR_TRY_MEMORY(lines, error, "the file");
    trace_lines_start(lines, c->reading->input);
    char *line = NULL;
    size_t length, before = 0;
    enum ar_status status = read_columns(c, lines, error);
    while (!status && !(status = trace_lines_next(lines, &line, &length, error)) && line) {
        struct row row = {.line = (uint32_t)lines->number};
        if (!length)
            continue;
        status = parse_row(line, &row, error);
        bool wrong = status;
        status = keep_mistake(c, lines->number, status, error);
        if (wrong)
            continue;
        if (AR_ARRAY_ADD(c->rows, c->count, c->room, row))
            note_at_once(c, &before);
        else
            status = format_no_memory(error);
    }
    free(lines);
    return status ? status : tell_mistakes(c, error);
}

/* ---- streams ----------------------------------------------------------------------------- */

static enum ar_status add_stream(struct ar_map *map, uint64_t stream, struct ar_error *error)
{
    uint64_t ordinal;
    if (ar_map_get(map, stream, &ordinal))
        return AR_OK;
    if (map->count == STREAMS_MOST)
        return ar_invalid(error, "more than %u streams in one recording", STREAMS_MOST);
    return ar_map_put(map, stream, map->count) ? format_no_memory(error) : AR_OK;
}

static enum ar_status find_streams(struct conversion *c, struct ar_error *error)
{
    AR_TRY(add_stream(&c->streams, 0, error));
    for (size_t i = 0; i < c->count; i++)
        if (is_allocators(&c->rows[i]))
            AR_TRY(add_stream(&c->streams, c->rows[i].stream, error));
    return AR_OK;
}

static uint32_t stream_ordinal(const struct conversion *c, uint64_t stream)
{
    uint64_t ordinal = c->streams.count;
    (void)ar_map_get(&c->streams, stream, &ordinal);
    return (uint32_t)ordinal;
}

static enum ar_status kernel_ordinal(struct conversion *c, uint64_t profiler, uint32_t *ordinal,
                                     struct ar_error *error)
{
    for (size_t i = 0; i < c->sidecar.stream_count; i++) {
        *ordinal = stream_ordinal(c, c->sidecar.streams[i].allocator);
        if (c->sidecar.streams[i].profiler == profiler && *ordinal < c->streams.count)
            return AR_OK;
    }
    uint64_t number = 0;
    enum ar_status status = add_stream(&c->kernel_streams, profiler, error);
    (void)ar_map_get(&c->kernel_streams, profiler, &number);
    *ordinal = (uint32_t)(c->streams.count + number);
    return status;
}

/* ---- contradictions ---------------------------------------------------------------------- */

/* The current row contradicts earlier ones. */
static enum ar_status contradiction(struct conversion *c, enum ar_status status, const char *text,
                                    struct ar_error *error)
{
    if (c->reading->lenient)
        return format_note(c->reading, error, "contradiction,%s", text);
    add_mistake(c, c->rows[c->at].line, status, text);
    return AR_OK;
}

static enum ar_status contradiction_at(struct conversion *c, const char *what,
                                       struct ar_error *error)
{
    char text[128];
    snprintf(text, sizeof text, "address %" PRIu64 " %s", c->rows[c->at].address, what);
    return contradiction(c, AR_INVALID, text, error);
}

/* ---- segments and the pools they belong to ----------------------------------------------- */

static enum ar_status follow_segment(struct conversion *c, const struct row *row,
                                     struct ar_error *error)
{
    if (!c->sidecar.segment_count)
        return AR_OK;
    if (row->action == SEGMENT_ALLOC) {
        if (c->segments_made >= c->sidecar.segment_count ||
            c->sidecar.segments[c->segments_made].address != row->address) {
            char text[128];
            snprintf(text, sizeof text,
                     "segment %zu made here is not that of the .json next to the file; do the two "
                     "belong together?",
                     c->segments_made);
            c->sidecar.segment_count = 0; /* pools are unknown from here on */
            return contradiction(c, AR_FORMAT, text, error);
        }
        c->segments[c->segment_count++] = (struct segment){
            row->address, row->address + row->size, c->sidecar.segments[c->segments_made].pool};
        c->segments_made++;
    } else if (row->action == SEGMENT_FREE) {
        for (size_t i = 0; i < c->segment_count; i++)
            if (c->segments[i].begin == row->address) {
                c->segments[i] = c->segments[--c->segment_count];
                break;
            }
    }
    return AR_OK;
}

static uint32_t pool_at(const struct conversion *c, uint64_t address)
{
    if (c->pools)
        return c->pools[c->at];
    for (size_t i = 0; i < c->segment_count; i++)
        if (address >= c->segments[i].begin && address < c->segments[i].end)
            return c->segments[i].pool;
    return 0;
}

/* The rows of the allocator as entries of a snapshot, in which a row of another kind is unknown. */
static enum ar_status add_records(const struct conversion *c, struct snapshot_tree *tree,
                                  struct ar_error *error)
{
    static const uint8_t actions[ACTION_COUNT] = {
        [ALLOC] = SNAPSHOT_ALLOC,
        [FREE_REQUESTED] = SNAPSHOT_FREE_REQUESTED,
        [FREE_COMPLETED] = SNAPSHOT_FREE_COMPLETED,
        [SEGMENT_ALLOC] = SNAPSHOT_SEGMENT_ALLOC,
        [SEGMENT_FREE] = SNAPSHOT_SEGMENT_FREE,
        [SEGMENT_MAP] = SNAPSHOT_SEGMENT_MAP,
        [SEGMENT_UNMAP] = SNAPSHOT_SEGMENT_UNMAP,
        [OOM] = SNAPSHOT_OOM,
        [SNAPSHOT] = SNAPSHOT_UNKNOWN,
        [KERNEL] = SNAPSHOT_UNKNOWN,
        [MARK] = SNAPSHOT_UNKNOWN,
    };
    AR_TRY(snapshot_tree_start(tree, error));
    for (size_t i = 0; i < c->count; i++) {
        const struct row *row = &c->rows[i];
        struct snapshot_record record = {
            .address = row->address, .bytes = row->size, .action = actions[row->action] & 15u};
        unsigned stream = 0;
        if (is_allocators(row))
            AR_TRY(snapshot_stream(tree, row->stream, &stream, error));
        record.stream = stream & (SNAPSHOT_STREAMS_MOST - 1);
        AR_TRY(snapshot_add_record(tree, &record, error));
    }
    return AR_OK;
}

static void free_tree(struct snapshot_tree **tree)
{
    if (*tree)
        snapshot_tree_close(*tree);
    free(*tree);
}

static enum ar_status infer_pools(struct conversion *c, struct ar_error *error)
{
    static const struct snapshot_marks unchanged;
    AR_CLOSED(snapshot_world_close) struct snapshot_world world = {0};
    const char *conf = c->reading->info.conf;
    AR_CLOSED(free_tree) struct snapshot_tree *tree = calloc(1, sizeof *tree);
    c->pools = calloc(c->count, sizeof *c->pools);
    if (!tree || !c->pools)
        return format_no_memory(error);
    tree->input = c->reading->input;
    AR_TRY(add_records(c, tree, error));
    AR_TRY(snapshot_world_records(&world, tree, error));
    AR_TRY(snapshot_tell(&world, tree, &unchanged, conf, error));
    for (size_t i = 0; i < c->count; i++) {
        unsigned pool = snapshot_world_event(&world, tree, i)->pool;
        c->pools[i] = (uint16_t)(pool ? pool - 1 : 0);
    }
    return AR_OK;
}

/* ---- events ------------------------------------------------------------------------------ */

static enum ar_status append(struct conversion *c, struct trace_event event, const char *text,
                             struct ar_error *error)
{
    return format_event(c->reading, event, NULL, text, error);
}

static enum ar_status append_time(struct conversion *c, struct ar_error *error)
{
    uint64_t begin = c->rows[0].time_us, now = c->rows[c->at].time_us;
    const struct row *before = &c->rows[c->at ? c->at - 1 : 0];
    if (now < before->time_us)
        return ar_invalid(error, "time_us %" PRIu64 " is earlier than %" PRIu64 " in line %" PRIu32,
                          now, before->time_us, before->line);
    uint64_t since = now > begin ? now - begin : 0; /* 0: an earlier row is told */
    if (since > FAR_US)
        return ar_invalid(error, "time_us %" PRIu64 " is more than 35 years after the first row's",
                          now);
    uint64_t time_ns = since * 1000;
    if (time_ns <= c->time_ns && c->at)
        return AR_OK;
    c->time_ns = time_ns;
    return append(c, (struct trace_event){.kind = TRACE_TIME, .value = time_ns}, NULL, error);
}

/* The live block that a block would overlap; 0: none. A block of 0 bytes overlaps none. */
static uint32_t overlapped(const struct conversion *c, uint64_t address, uint64_t bytes)
{
    const struct ar_range_node *nodes = c->ranges.nodes;
    uint32_t before = ar_range_tree_last(&c->ranges, c->range_root, address);
    uint32_t after = ar_range_tree_first(&c->ranges, c->range_root, address, 1);
    if (bytes && before && address - nodes[before].address < nodes[before].bytes)
        return before;
    return bytes && after && nodes[after].address - address < bytes ? after : 0;
}

static void forget_block(struct conversion *c, uint64_t address, uint32_t range)
{
    ar_range_tree_remove(&c->ranges, &c->range_root, AR_RANGE_BY_ADDRESS, range);
    ar_range_pool_give(&c->ranges, range);
    ar_map_remove(&c->blocks, address);
}

/* A live block that the block of a row overlaps is told. If it is one that is only known from its
 * free, and this free follows, it was not there before the recording: that free is told. */
static enum ar_status clear_place(struct conversion *c, const struct row *row,
                                  struct ar_error *error)
{
    char text[128];
    uint32_t other;
    while ((other = overlapped(c, row->address, row->size)) != 0) {
        const struct row *live = &c->rows[c->ranges.nodes[other].extra];
        const uint64_t *block = ar_map_find(&c->blocks, live->address);
        bool requested = block && *block & 1;
        if (live->action == ALLOC || row->action != ALLOC || requested) {
            snprintf(text, sizeof text,
                     "address %" PRIu64 ": the block overlaps that of line %" PRIu32
                     ", which is live",
                     row->address, live->line);
            return contradiction(c, AR_INVALID, text, error);
        }
        forget_block(c, live->address, other);
    }
    return AR_OK;
}

/* Keeps the block of the current row as live. */
static enum ar_status keep_block(struct conversion *c, const struct row *row,
                                 struct ar_error *error)
{
    uint64_t *block = ar_map_find(&c->blocks, row->address);
    if (block) {
        AR_TRY(contradiction_at(c, "is given out while it is in use", error));
        forget_block(c, row->address, (uint32_t)block[1]);
    }
    AR_TRY(clear_place(c, row, error));
    block = ar_range_pool_reserve(&c->ranges, 1) ? ar_map_add(&c->blocks, row->address) : NULL;
    if (!block)
        return format_no_memory(error);
    uint32_t range = ar_range_pool_take(&c->ranges);
    struct ar_range_node *node = &c->ranges.nodes[range];
    node->address = row->address;
    node->bytes = row->size;
    node->extra = c->at;
    ar_range_tree_insert(&c->ranges, &c->range_root, AR_RANGE_BY_ADDRESS, range);
    block[0] = 2 * c->next_id;
    block[1] = range;
    return AR_OK;
}

static enum ar_status check_size(const struct row *row, struct ar_error *error)
{
    if (row->size >= TRACE_BYTES_LIMIT)
        return ar_invalid(error, "a block of %" PRIu64 " bytes cannot be", row->size);
    return AR_OK;
}

/* A request and its address. */
static enum ar_status append_block(struct conversion *c, const struct row *row, bool initial,
                                   struct ar_error *error)
{
    AR_TRY(check_size(row, error));
    AR_TRY(keep_block(c, row, error));
    const struct trace_attributes keys = {.pool = pool_at(c, row->address),
                                          .rest = initial ? "initial=yes" : NULL};
    const struct trace_event event = {.kind = TRACE_ALLOC,
                                      .id = c->next_id++,
                                      .value = row->size,
                                      .stream = stream_ordinal(c, row->stream)};
    AR_TRY(format_event(c->reading, event, &keys, NULL, error));
    return format_note_numbers(c->reading, "alloc", &row->address, 1, error);
}

/* A free has the size and the stream of its block. */
static enum ar_status check_free(struct conversion *c, const struct row *row, uint32_t range,
                                 struct ar_error *error)
{
    const struct row *block = &c->rows[c->ranges.nodes[range].extra];
    bool sized = block->size == row->size;
    char text[160];
    if (sized && block->stream == row->stream)
        return AR_OK;
    snprintf(text, sizeof text,
             "address %" PRIu64 " is freed with the %s %" PRIu64 ", and its block of line %" PRIu32
             " has %" PRIu64,
             row->address, sized ? "stream" : "size", sized ? row->stream : row->size, block->line,
             sized ? block->stream : block->size);
    return contradiction(c, AR_INVALID, text, error);
}

static enum ar_status append_free(struct conversion *c, const struct row *row,
                                  struct ar_error *error)
{
    uint64_t *block = ar_map_find(&c->blocks, row->address);
    if (!block)
        return contradiction_at(c, "is freed while it is not in use", error);
    AR_TRY(check_free(c, row, (uint32_t)block[1], error));
    struct trace_event event = {.kind = TRACE_FREE_COMPLETED, .id = *block / 2};
    bool requested = *block & 1;
    if (row->action == FREE_REQUESTED) {
        if (requested)
            return contradiction_at(c, "is freed twice", error);
        *block |= 1;
        if (!row->at_once) {
            event.kind = TRACE_FREE_REQUESTED;
            event.stream = TRACE_NO_STREAM;
        }
        return append(c, event, NULL, error);
    }
    if (c->reading->lenient && !requested)
        return contradiction_at(c, "is completed and its free was not requested", error);
    forget_block(c, row->address, (uint32_t)block[1]);
    return row->at_once ? AR_OK : append(c, event, NULL, error);
}

static enum ar_status append_oom(struct conversion *c, const struct row *row,
                                 struct ar_error *error)
{
    char note[32];
    bool more_follow = false;
    AR_TRY(check_size(row, error));
    for (size_t i = c->at + 1; i < c->count && !more_follow; i++)
        more_follow = c->rows[i].action == ALLOC || c->rows[i].action == OOM;
    const struct trace_event request = {
        .id = c->next_id++, .value = row->size, .stream = stream_ordinal(c, row->stream)};
    snprintf(note, sizeof note, "oom,%" PRIu64, row->address);
    return format_failure(c->reading, request, NULL, more_follow, note, error);
}

static enum ar_status append_kernel(struct conversion *c, const struct row *row,
                                    struct ar_error *error)
{
    struct trace_event kernel = {.kind = TRACE_KERNEL, .value = row->size};
    if (row->size >= TRACE_TIME_LIMIT - c->kernel_ns)
        return ar_invalid(error,
                          "a kernel of %" PRIu64 " ns cannot be: all kernels together must take "
                          "less than 2^62 ns",
                          row->size);
    c->kernel_ns += row->size;
    AR_TRY(kernel_ordinal(c, row->stream, &kernel.stream, error));
    return append(c, kernel, NULL, error);
}

static enum ar_status append_row(struct conversion *c, struct ar_error *error)
{
    const struct row *row = &c->rows[c->at];
    const uint64_t numbers[] = {row->address, row->size, stream_ordinal(c, row->stream)};
    AR_TRY(trace_memory_line(c->reading->memory, row->line, error));
    AR_TRY(keep_mistake(c, row->line, append_time(c, error), error));
    switch (row->action) {
    case ALLOC:
        return append_block(c, row, false, error);
    case FREE_REQUESTED:
    case FREE_COMPLETED:
        return append_free(c, row, error);
    case OOM:
        return append_oom(c, row, error);
    case KERNEL:
        return append_kernel(c, row, error);
    case MARK:
        return append(c, (struct trace_event){.kind = TRACE_MARK}, "step", error);
    case SNAPSHOT:
        return format_note_numbers(c->reading, action_names[row->action], NULL, 0, error);
    default:
        AR_TRY(follow_segment(c, row, error));
        return format_note_numbers(c->reading, action_names[row->action], numbers, 3, error);
    }
}

/* The blocks that were there before the recording began: the first row of their address is a
 * free. */
static enum ar_status append_initial(struct conversion *c, struct ar_error *error)
{
    AR_CLOSED(ar_map_close) struct ar_map seen = {0};
    for (c->at = 0; c->at < c->count; c->at++) {
        const struct row *row = &c->rows[c->at];
        bool frees = row->action == FREE_REQUESTED || row->action == FREE_COMPLETED;
        uint64_t before;
        if ((row->action != ALLOC && !frees) || ar_map_get(&seen, row->address, &before))
            continue;
        AR_TRY(ar_map_put(&seen, row->address, 0) ? format_no_memory(error) : AR_OK);
        if (frees)
            AR_TRY(trace_memory_line(c->reading->memory, row->line, error));
        if (frees)
            AR_TRY(append_block(c, row, true, error));
        if (row->action == FREE_COMPLETED)
            AR_TRY(append(c,
                          (struct trace_event){.kind = TRACE_FREE_REQUESTED,
                                               .id = c->next_id - 1,
                                               .stream = TRACE_NO_STREAM},
                          NULL, error));
    }
    return AR_OK;
}

static enum ar_status convert(struct conversion *c, struct ar_error *error)
{
    const char *path = trace_input_path(c->reading->input);
    enum ar_status status = find_streams(c, error);
    if (!status && c->sidecar.segment_count) {
        c->segments = calloc(c->sidecar.segment_count, sizeof *c->segments);
        if (!c->segments)
            status = format_no_memory(error);
    }
    if (!status && !c->sidecar.segment_count)
        status = infer_pools(c, error);
    if (status)
        return ar_error_prefix(error, status, "%s", path);
    status = append_initial(c, error);
    for (c->at = status ? c->at : 0; c->at < c->count && !status; c->at += !status)
        status = keep_mistake(c, c->rows[c->at].line, append_row(c, error), error);
    if (status)
        return ar_error_prefix(error, status, "%s:%" PRIu32, path, c->rows[c->at].line);
    return tell_mistakes(c, error);
}

static enum ar_status read_csv(struct format_reading *reading, struct ar_error *error)
{
    struct conversion c = {.reading = reading, .blocks.more_words = 1};
    const char *path = trace_input_path(reading->input);
    (void)snprintf(reading->info.recorder, sizeof reading->info.recorder, "torch");
    enum ar_status status = sidecar_read(path, &reading->info, &c.sidecar, error);
    ar_range_pool_open(&c.ranges, &c.host);
    AR_THEN(status, read_rows(&c, error));
    if (!status && !c.count)
        status = ar_error_set(error, AR_FORMAT, "%s: the recording holds no rows", path);
    split_frees(&c);
    AR_THEN(status, format_start(reading, error));
    AR_THEN(status, convert(&c, error));
    AR_THEN(status, sidecar_stats_read(path, &reading->stats, error));
    sidecar_close(&c.sidecar);
    ar_map_close(&c.blocks);
    ar_range_pool_close(&c.ranges);
    ar_map_close(&c.streams);
    ar_map_close(&c.kernel_streams);
    free(c.rows);
    free(c.segments);
    free(c.pools);
    return status;
}

const struct format_reader format_csv = {
    .name = "csv",
    .summary = "a recording of PyTorch's allocator as CSV",
    .own = true,
    .read = read_csv,
};
