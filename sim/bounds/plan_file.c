/* Reading, writing and checking plans.
 *
 * The check:
 * 1. Rows and blocks are sorted by name and walked together. This finds missing, duplicate and
 *    unknown rows.
 * 2. Each row is compared with its block: lifetime, size, sign, alignment, capacity.
 * 3. The remaining blocks are swept over time, ends before births. Live blocks are sorted by
 *    offset, so a new block can overlap only its neighbours and the blocks between them. */
#include "sim/bounds/bounds.h"

#include <errno.h>

#include "allocators/base/array.h"
#include "workloads/io/fields.h"

enum column { ID, LOWER, UPPER, SIZE, OFFSET, COLUMNS };

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

#define PLACES_MOST 32 /* columns of a file */

struct reading {
    struct plan_file *plan;
    size_t places, place_of[COLUMNS]; /* of a row */
};

static enum ar_status read_head(struct reading *r, char *line, struct ar_error *error)
{
    char *words[PLACES_MOST];
    r->places = fields_split(line, ',', words, PLACES_MOST);
    if (r->places > PLACES_MOST)
        return ar_error_set(error, AR_FORMAT, "more than %u columns", PLACES_MOST);
    for (enum column column = 0; column < COLUMNS; column++) {
        size_t place = 0;
        while (place < r->places && strcmp(words[place], column_names[column]) != 0)
            place++;
        if (place == r->places)
            return ar_error_set(error, AR_FORMAT,
                                "no column \"%s\": a plan's first line is "
                                "id,lower,upper,size,offset",
                                column_names[column]);
        r->place_of[column] = place;
    }
    return AR_OK;
}

static enum ar_status read_number(const char *word, enum column column, int64_t *number,
                                  struct ar_error *error)
{
    char *end;
    errno = 0;
    *number = strtoll(word, &end, 10);
    if (errno || end == word || *end || *word == ' ' || *word == '+')
        return ar_error_set(error, AR_FORMAT, "%s \"%.40s\" is not a whole number below 2^63",
                            column_names[column], word);
    return AR_OK;
}

static enum ar_status take_line(void *self, char *line, uint64_t number, struct ar_error *error)
{
    struct reading *r = self;
    struct plan_file *plan = r->plan;
    char *words[PLACES_MOST];
    int64_t numbers[COLUMNS];
    if (!r->places)
        return read_head(r, line, error);
    size_t count = fields_split(line, ',', words, PLACES_MOST);
    if (count != r->places)
        return ar_error_set(error, AR_FORMAT, "%zu fields, wanted %zu", count, r->places);
    for (enum column column = LOWER; column < COLUMNS; column++)
        AR_TRY(read_number(words[r->place_of[column]], column, &numbers[column], error));
    AR_TRY_MEMORY(ar_array_make_room(&plan->rows, plan->count, &plan->room, sizeof *plan->rows),
                  error, "a plan");
    struct plan_row *row = &plan->rows[plan->count++];
    *row = (struct plan_row){strdup(words[r->place_of[ID]]),
                             numbers[LOWER],
                             numbers[UPPER],
                             numbers[SIZE],
                             numbers[OFFSET],
                             number};
    AR_TRY_MEMORY(row->name, error, "a plan");
    return AR_OK;
}

enum ar_status plan_file_read(struct plan_file *self, const char *path, struct ar_error *error)
{
    AR_CLOSED(trace_input_close_at) struct trace_input *input = NULL;
    struct reading r = {.plan = self};
    *self = (struct plan_file){.rows = NULL};
    AR_TRY(trace_input_open(path, &input, error));
    AR_TRY(fields_lines(input, take_line, &r, error));
    return r.places ? AR_OK : ar_error_set(error, AR_FORMAT, "%s: the file is empty", path);
}

void plan_file_close(struct plan_file *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->rows[i].name);
    free(self->rows);
    *self = (struct plan_file){.rows = NULL};
}

void plan_file_write(FILE *stream, const struct bound_blocks *blocks, const uint64_t *offsets)
{
    fputs("id,lower,upper,size,offset\n", stream);
    for (size_t i = 0; i < blocks->count; i++) {
        const struct bound_request *request = &blocks->requests[i];
        char number[32];
        fprintf(stream, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n",
                request->tag ? request->tag : bound_request_name(request, number, sizeof number),
                request->lower, request->upper, request->bytes, offsets[i]);
    }
}

/* ---- the check ------------------------------------------------------------------------------ */

/* A row or a block with its name. */
struct named {
    const char *name;
    size_t index;
};

#define NUMBER_BYTES 24

struct moment {
    uint64_t time;
    int birth; /* 0: an end; they come first */
    size_t block;
};

struct checking {
    const struct bound_blocks *blocks;
    const struct plan_file *plan;
    struct bound_verdict *verdict;
    uint64_t capacity_bytes;
    const struct plan_row **row_of; /* of each block; NULL: it has no place */
    size_t *live;                   /* blocks by offset */
    size_t live_count;
};

static void fault(struct checking *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fault(struct checking *c, const char *format, ...)
{
    if (c->verdict->faults++ < BOUND_FAULTS_MOST)
        AR_PRINT(c->verdict->texts[c->verdict->faults - 1], BOUND_FAULT_TEXT, format);
}

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int difference = strcmp(a->name, b->name);
    return difference ? difference : (a->index > b->index) - (a->index < b->index);
}

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    AR_ORDER(a->time, b->time);
    return a->birth != b->birth ? a->birth - b->birth
                                : (a->block > b->block) - (a->block < b->block);
}

static struct named *names_of_rows(const struct plan_file *plan)
{
    struct named *names = malloc((plan->count + 1) * sizeof *names);
    for (size_t i = 0; names && i < plan->count; i++)
        names[i] = (struct named){.name = plan->rows[i].name, .index = i};
    if (names)
        qsort(names, plan->count, sizeof *names, compare_named);
    return names;
}

/* `numbers` is the storage of names that are numbers. */
static struct named *names_of_blocks(const struct bound_blocks *blocks,
                                     char (*numbers)[NUMBER_BYTES])
{
    struct named *names = malloc((blocks->count + 1) * sizeof *names);
    for (size_t i = 0; names && numbers && i < blocks->count; i++) {
        names[i] = (struct named){.name = blocks->requests[i].tag, .index = i};
        if (names[i].name)
            continue;
        snprintf(numbers[i], NUMBER_BYTES, "%" PRIu64, blocks->requests[i].id);
        names[i].name = numbers[i];
    }
    return names;
}

/* A row of 0 bytes belongs to a request that no policy sees; it may have any offset. */
static void unknown_row(struct checking *c, const struct named *named)
{
    const struct plan_row *row = &c->plan->rows[named->index];
    if (row->size != 0)
        fault(c, "line %" PRIu64 ": the trace has no block %.60s", row->line, named->name);
}

/* Blocks of the same name get the rows of that name in order. */
static void match(struct checking *c, const struct named *rows, const struct named *blocks)
{
    size_t at = 0;
    for (size_t i = 0; i < c->blocks->count; i++) {
        for (; at < c->plan->count && strcmp(rows[at].name, blocks[i].name) < 0; at++)
            unknown_row(c, &rows[at]);
        if (at == c->plan->count || strcmp(rows[at].name, blocks[i].name) != 0) {
            fault(c, "block %.60s is missing from the plan", blocks[i].name);
            continue;
        }
        c->row_of[blocks[i].index] = &c->plan->rows[rows[at++].index];
        if (i + 1 < c->blocks->count && strcmp(blocks[i + 1].name, blocks[i].name) == 0)
            continue;
        for (; at < c->plan->count && strcmp(rows[at].name, blocks[i].name) == 0; at++)
            fault(c, "line %" PRIu64 ": block %.60s has a place already, in line %" PRIu64,
                  c->plan->rows[rows[at].index].line, rows[at].name,
                  c->row_of[blocks[i].index]->line);
    }
    for (; at < c->plan->count; at++)
        unknown_row(c, &rows[at]);
}

/* Checks one row against its block. False: its offset is unusable. */
static bool check_row(struct checking *c, size_t index)
{
    const struct plan_row *row = c->row_of[index];
    const struct bound_request *request = &c->blocks->requests[index];
    uint64_t alignment = c->blocks->blocks[index].alignment;
    if (row->lower != request->lower || row->upper != request->upper)
        fault(c,
              "line %" PRIu64 ": block %.60s lives from %" PRId64 " to %" PRId64
              " in the plan, from %" PRId64 " to %" PRId64 " in the trace",
              row->line, row->name, row->lower, row->upper, request->lower, request->upper);
    if (row->size < 0 || (uint64_t)row->size != request->bytes)
        fault(c,
              "line %" PRIu64 ": block %.60s has %" PRId64 " bytes in the plan, %" PRIu64
              " in the trace",
              row->line, row->name, row->size, request->bytes);
    if (row->offset < 0) {
        fault(c, "line %" PRIu64 ": block %.60s has the negative offset %" PRId64, row->line,
              row->name, row->offset);
        return false;
    }
    uint64_t end = (uint64_t)row->offset + request->bytes;
    if (alignment > 1 && (uint64_t)row->offset % alignment)
        fault(c,
              "line %" PRIu64 ": block %.60s is misaligned: offset %" PRId64
              " is not a multiple of %" PRIu64,
              row->line, row->name, row->offset, alignment);
    if (c->capacity_bytes && end > c->capacity_bytes)
        fault(c, "line %" PRIu64 ": block %.60s ends at %" PRIu64 ", beyond the capacity %" PRIu64,
              row->line, row->name, end, c->capacity_bytes);
    AR_RAISE(c->verdict->top_bytes, end);
    return true;
}

static uint64_t begin_of(const struct checking *c, size_t block)
{
    return (uint64_t)c->row_of[block]->offset;
}

static uint64_t end_of(const struct checking *c, size_t block)
{
    return begin_of(c, block) + c->blocks->requests[block].bytes;
}

/* The number of live blocks that begin below `offset`. */
static size_t rank_of(const struct checking *c, uint64_t offset)
{
    size_t low = 0, high = c->live_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (begin_of(c, c->live[middle]) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void say_overlap(struct checking *c, size_t one, size_t other)
{
    const struct plan_row *a = c->row_of[one], *b = c->row_of[other];
    fault(c,
          "blocks %.40s (line %" PRIu64 ", %" PRIu64 " to %" PRIu64 ") and %.40s (line %" PRIu64
          ", %" PRIu64 " to %" PRIu64 ") overlap and live at the same time",
          a->name, a->line, begin_of(c, one), end_of(c, one), b->name, b->line, begin_of(c, other),
          end_of(c, other));
}

/* Adds a live block. A block that overlaps is reported and left out, so live blocks never
 * overlap. */
static void live_on(struct checking *c, size_t block)
{
    size_t rank = rank_of(c, begin_of(c, block));
    bool clear = true;
    if (rank > 0 && end_of(c, c->live[rank - 1]) > begin_of(c, block)) {
        say_overlap(c, c->live[rank - 1], block);
        clear = false;
    }
    for (size_t i = rank; i < c->live_count && begin_of(c, c->live[i]) < end_of(c, block); i++) {
        say_overlap(c, c->live[i], block);
        clear = false;
    }
    if (!clear)
        return;
    AR_ARRAY_INSERT(c->live, c->live_count, rank, block);
}

static void die(struct checking *c, size_t block)
{
    size_t rank = rank_of(c, begin_of(c, block));
    if (rank == c->live_count || c->live[rank] != block)
        return; /* the block was left out because it overlaps */
    AR_ARRAY_REMOVE(c->live, c->live_count, rank);
}

static void sweep(struct checking *c, struct moment *moments)
{
    size_t count = 0;
    for (size_t i = 0; i < c->blocks->count; i++) {
        if (!c->row_of[i] || !check_row(c, i))
            continue;
        moments[count++] = (struct moment){c->blocks->blocks[i].born, 1, i};
        moments[count++] = (struct moment){c->blocks->blocks[i].dies, 0, i};
    }
    qsort(moments, count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < count; i++) {
        if (moments[i].birth)
            live_on(c, moments[i].block);
        else
            die(c, moments[i].block);
    }
}

enum ar_status bound_check(const struct bound_blocks *blocks, const struct plan_file *plan,
                           uint64_t capacity_bytes, struct bound_verdict *verdict,
                           struct ar_error *error)
{
    struct checking c = {blocks, plan, verdict, capacity_bytes, NULL, NULL, 0};
    char(*numbers)[NUMBER_BYTES] = malloc((blocks->count + 1) * sizeof *numbers);
    struct named *rows = names_of_rows(plan), *wanted = names_of_blocks(blocks, numbers);
    struct moment *moments = malloc((2 * blocks->count + 1) * sizeof *moments);
    c.row_of = calloc(blocks->count + 1, sizeof *c.row_of);
    c.live = malloc((blocks->count + 1) * sizeof *c.live);
    *verdict = (struct bound_verdict){.faults = 0};
    bool ready = numbers && rows && wanted && moments && c.row_of && c.live;
    if (ready) {
        qsort(wanted, blocks->count, sizeof *wanted, compare_named);
        match(&c, rows, wanted);
        sweep(&c, moments);
    }
    free(numbers);
    free(rows);
    free(wanted);
    free(moments);
    free(c.row_of);
    free(c.live);
    return ready ? AR_OK : ar_no_memory(error, "a check");
}
