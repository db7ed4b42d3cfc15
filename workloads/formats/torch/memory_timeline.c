/* The raw memory timeline of PyTorch's profiler, as a trace:
 * `export_memory_timeline("x.raw.json.gz")` writes rows [time, action, bytes, category] that name
 * no tensor.
 *
 * 1. Actions: 1 a tensor was there before, 2 it is made, 3 it is written to, 4 it is destroyed. A
 *    write is two rows: minus the bytes in the old category, plus them in the new one.
 * 2. Live tensors are in stacks, one for each size and category. A destroyed or written tensor is
 *    the last one in the stack of its size and category, else the last one of that size in another
 *    category.
 * 3. A tensor that is destroyed and was never made was there before: it comes first, with the key
 *    initial=yes, as do those that the file lists as there before.
 * 4. The first category of a tensor is its tag.
 * Source of the rows: torch/profiler/_memory_profiler.py. */

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "workloads/formats/formats.h"
#include "workloads/io/fields.h"
#include "workloads/io/json_pull.h"

enum action { ACTION_BEFORE = 1, ACTION_MAKE, ACTION_WRITE, ACTION_DESTROY };

#define NONE       UINT32_MAX
#define TIME_LIMIT (INT64_C(1) << 61)
/* Times in this range are microseconds since 1970; nanoseconds are a thousand times as large. */
#define MICROSECONDS_LEAST INT64_C(1000000000000000)
#define MICROSECONDS_MOST  INT64_C(4000000000000000)

/* In the order of their numbers in the file; the last one is "none". */
static const char *const categories[] = {
    "parameter",  "optimizer_state", "input",           "temporary",
    "activation", "gradient",        "autograd_detail", NULL};
enum { CATEGORIES = AR_COUNT(categories) };

struct timeline_row {
    int64_t time, bytes;
    uint64_t line;
    uint64_t id;   /* of its block in the trace */
    uint32_t pair; /* of a destroyed tensor: the row that made it; NONE: it was there before */
    uint32_t next; /* in the stack of its size and category */
    uint8_t action, category;
    bool initial;
};

struct conversion {
    struct timeline_row *rows;
    size_t count, capacity;
    struct ar_map stacks; /* size and category -> the row on top */
    struct format_reading *reading;
    struct json_pull *pull;
    struct ar_error *error;
    uint64_t next_id, paired, other_categories;
    int64_t begin, scale; /* the first time; nanoseconds in a unit */
};

/* ---- reading ----------------------------------------------------------------------------- */

static enum ar_status add_row(struct conversion *c, const struct timeline_row *row)
{
    return c->count < NONE && AR_ARRAY_ADD(c->rows, c->count, c->capacity, *row)
               ? AR_OK
               : format_no_memory(c->error);
}

/* A row, after its opening bracket. */
static enum ar_status read_row(struct conversion *c)
{
    struct json_token token;
    int64_t numbers[4];
    size_t count = 0;
    enum ar_status status;
    uint64_t line = json_pull_line(c->pull);
    while (!(status = json_pull_next(c->pull, &token, c->error)) && token.kind != JSON_ARRAY_END) {
        if (count == 4 || !json_integer_of(&token, 0, &numbers[count]))
            return json_pull_refuse(c->pull, c->error,
                                    "each row must have four numbers: time, action, bytes, "
                                    "category; export the timeline as a .raw.json.gz");
        count++;
    }
    AR_TRY(status);
    if (count < 4)
        return json_pull_refuse(
            c->pull, c->error,
            "the row has %zu numbers instead of four: time, action, bytes, category", count);
    if (numbers[1] < ACTION_BEFORE || numbers[1] > ACTION_DESTROY)
        return json_pull_refuse(c->pull, c->error, "the action %" PRId64 " is not known",
                                numbers[1]);
    if (numbers[3] < 0 || numbers[3] >= CATEGORIES)
        return json_pull_refuse(c->pull, c->error, "the category %" PRId64 " is not known",
                                numbers[3]);
    bool negative = numbers[1] == ACTION_DESTROY || (numbers[1] == ACTION_WRITE && numbers[2] < 0);
    int64_t bytes = negative ? -numbers[2] : numbers[2];
    if (bytes < 0 || bytes >= (int64_t)TRACE_BYTES_LIMIT)
        return json_pull_refuse(c->pull, c->error, "a tensor of %" PRId64 " bytes cannot be",
                                numbers[2]);
    if (numbers[0] <= -TIME_LIMIT || numbers[0] >= TIME_LIMIT)
        return json_pull_refuse(c->pull, c->error, "the time %" PRId64 " cannot be", numbers[0]);
    return add_row(c, &(struct timeline_row){.time = numbers[0],
                                             .bytes = numbers[2],
                                             .line = line,
                                             .pair = NONE,
                                             .next = NONE,
                                             .action = (uint8_t)numbers[1],
                                             .category = (uint8_t)numbers[3]});
}

static enum ar_status read_rows(struct conversion *c)
{
    struct json_token token;
    enum ar_status status = json_pull_next(c->pull, &token, c->error);
    while (!status && !(status = json_pull_next(c->pull, &token, c->error)) &&
           token.kind != JSON_ARRAY_END)
        status = token.kind == JSON_ARRAY
                     ? read_row(c)
                     : json_pull_refuse(c->pull, c->error, "a row in brackets is expected here");
    AR_THEN(status, json_pull_next(c->pull, &token, c->error)); /* nothing may follow */
    if (!status && !c->count)
        status = json_pull_refuse(c->pull, c->error, "the timeline holds no rows");
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------- */

static uint64_t key_of(int64_t bytes, unsigned category)
{
    return (uint64_t)bytes * CATEGORIES + category;
}

static enum ar_status push(struct conversion *c, uint32_t at, int64_t bytes, unsigned category)
{
    uint64_t top;
    c->rows[at].next = ar_map_get(&c->stacks, key_of(bytes, category), &top) ? (uint32_t)top : NONE;
    return ar_map_put(&c->stacks, key_of(bytes, category), at) ? format_no_memory(c->error) : AR_OK;
}

/* Takes the top of a stack, NONE if it is empty. */
static enum ar_status pop_of(struct conversion *c, int64_t bytes, unsigned category, uint32_t *at)
{
    uint64_t key = key_of(bytes, category), top;
    *at = NONE;
    if (!ar_map_get(&c->stacks, key, &top))
        return AR_OK;
    *at = (uint32_t)top;
    if (c->rows[top].next != NONE)
        return ar_map_put(&c->stacks, key, c->rows[top].next) ? format_no_memory(c->error) : AR_OK;
    ar_map_remove(&c->stacks, key);
    return AR_OK;
}

/* Takes a tensor of a size: of the category, else of any. */
static enum ar_status pop(struct conversion *c, int64_t bytes, unsigned category, uint32_t *at)
{
    enum ar_status status = pop_of(c, bytes, category, at);
    c->paired += *at != NONE;
    for (unsigned other = 0; other < CATEGORIES && !status && *at == NONE; other++) {
        status = pop_of(c, bytes, other, at);
        c->other_categories += *at != NONE;
    }
    return status;
}

/* The two rows of a write: the tensor changes its stack. A row without its other half, or without
 * a tensor, is left out. */
static enum ar_status pair_write(struct conversion *c, uint32_t *at)
{
    const struct timeline_row *row = &c->rows[*at];
    const struct timeline_row *other = *at + 1 < c->count ? row + 1 : NULL;
    uint32_t tensor = NONE;
    if (!other || other->action != ACTION_WRITE || other->bytes != -row->bytes || row->bytes > 0) {
        c->reading->report->left_out++;
        return AR_OK;
    }
    ++*at;
    AR_TRY(pop(c, other->bytes, row->category, &tensor));
    if (tensor != NONE)
        return push(c, tensor, other->bytes, other->category);
    c->reading->report->left_out += 2;
    return AR_OK;
}

static enum ar_status pair_all(struct conversion *c)
{
    for (uint32_t at = 0; at < c->count; at++) {
        struct timeline_row *row = &c->rows[at];
        switch (row->action) {
        case ACTION_BEFORE:
            row->initial = true;
            AR_TRY(push(c, at, row->bytes, row->category));
            break;
        case ACTION_MAKE:
            AR_TRY(push(c, at, row->bytes, row->category));
            break;
        case ACTION_WRITE:
            AR_TRY(pair_write(c, &at));
            break;
        default:
            row->bytes = -row->bytes;
            AR_TRY(pop(c, row->bytes, row->category, &row->pair));
            row->initial = row->pair == NONE;
            c->reading->report->unmatched_frees += row->initial;
        }
    }
    return AR_OK;
}

/* ---- events ------------------------------------------------------------------------------ */

static enum ar_status append(struct conversion *c, struct trace_event event,
                             const struct trace_attributes *keys)
{
    return format_event(c->reading, event, keys, NULL, c->error);
}

static enum ar_status append_block(struct conversion *c, struct timeline_row *row)
{
    const struct trace_attributes keys = {.tag = categories[row->category],
                                          .rest = row->initial ? "initial=yes" : NULL};
    row->id = c->next_id++;
    return append(
        c, (struct trace_event){.kind = TRACE_ALLOC, .id = row->id, .value = (uint64_t)row->bytes},
        &keys);
}

/* The unit of the times, and the first one. Tensors that were there before have the time -1. */
static void find_begin(struct conversion *c)
{
    bool found = false;
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].action != ACTION_BEFORE && (!found || c->rows[i].time < c->begin)) {
            c->begin = c->rows[i].time;
            found = true;
        }
    bool microseconds = c->begin >= MICROSECONDS_LEAST && c->begin <= MICROSECONDS_MOST;
    c->scale = microseconds ? 1000 : 1;
    if (microseconds)
        import_guess(c->reading->report, "times are taken for microseconds since 1970");
}

static enum ar_status append_row(struct conversion *c, struct timeline_row *row, uint64_t *now_ns)
{
    uint64_t time_ns;
    if (row->action == ACTION_BEFORE || row->action == ACTION_WRITE)
        return AR_OK;
    AR_TRY(trace_memory_line(c->reading->memory, row->line, c->error));
    if (__builtin_mul_overflow((uint64_t)(row->time - c->begin), (uint64_t)c->scale, &time_ns) ||
        time_ns >= UINT64_C(1) << 62)
        return ar_invalid(c->error, "the time in line %" PRIu64 " is too far after the first",
                          row->line);
    if (time_ns > *now_ns || *now_ns == UINT64_MAX) {
        *now_ns = time_ns;
        AR_TRY(append(c, (struct trace_event){.kind = TRACE_TIME, .value = time_ns}, NULL));
    }
    if (row->action == ACTION_MAKE)
        return append_block(c, row);
    uint64_t id = row->pair == NONE ? row->id : c->rows[row->pair].id;
    return append(c, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id}, NULL);
}

static enum ar_status append_all(struct conversion *c)
{
    uint64_t now_ns = UINT64_MAX;
    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].initial) {
            AR_TRY(trace_memory_line(c->reading->memory, c->rows[i].line, c->error));
            AR_TRY(append_block(c, &c->rows[i]));
        }
    for (size_t i = 0; i < c->count; i++)
        AR_TRY(append_row(c, &c->rows[i], &now_ns));
    return AR_OK;
}

static enum ar_status convert(struct conversion *c)
{
    AR_TRY(pair_all(c));
    find_begin(c);
    c->reading->report->records = c->count;
    c->reading->report->begins_in_the_middle =
        c->reading->report->unmatched_frees || c->rows[0].initial;
    import_guess(c->reading->report,
                 "rows name no tensor: %" PRIu64
                 " writes and frees are of the latest tensor of their size and category",
                 c->paired);
    import_guess_count(c->reading->report, c->other_categories,
                       "writes and frees found only a tensor of their size in another category");
    import_guess(c->reading->report, "rows name no stream: all tensors are on stream 0");
    AR_TRY(format_start(c->reading, c->error));
    return append_all(c);
}

static enum ar_status read_timeline(struct format_reading *reading, struct ar_error *error)
{
    struct conversion c = {.reading = reading, .error = error};
    struct trace_info *info = &reading->info;
    (void)snprintf(info->recorder, sizeof info->recorder, "torch.profiler");
    enum ar_status status = json_pull_open(reading->input, &c.pull, error);
    AR_THEN(status, read_rows(&c));
    AR_THEN(status, convert(&c));
    json_pull_close(c.pull);
    ar_map_close(&c.stacks);
    free(c.rows);
    return status;
}

/* An array of arrays of numbers. */
static bool timeline_matches(const char *head, size_t count)
{
    for (size_t brackets = 0, at = head_blanks(head, count, 0); at < count;
         at = head_blanks(head, count, at + 1), brackets++) {
        if (brackets == 2)
            return head[at] == '-' || head[at] == '[' || head[at] == ']' ||
                   (head[at] >= '0' && head[at] <= '9');
        if (head[at] != '[')
            return false;
    }
    return false;
}

const struct format_reader format_memory_timeline = {
    .name = "memory_timeline",
    .summary = "the raw memory timeline of PyTorch's profiler, .raw.json, read",
    .matches = timeline_matches,
    .read = read_timeline,
};
