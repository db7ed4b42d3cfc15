/* Nsight Systems' SQLite exports (`nsys profile --cuda-memory-usage=true`, `nsys export --type
 * sqlite`): the requests of a program to the driver, and its kernels.
 *
 * 1. CUDA_GPU_MEMORY_USAGE_EVENTS has the requests and frees with their addresses. Device memory
 *    and arrays are kept, pinned memory with `space=pinned`; managed and static memory is omitted
 *    and reported. The tables ENUM_CUDA_MEM_KIND and ENUM_CUDA_DEV_MEM_EVENT_OPER say which number
 *    is which kind and operation.
 * 2. CUPTI_ACTIVITY_KIND_KERNEL has the kernels. A kernel is placed at its launch, which is the row
 *    of CUPTI_ACTIVITY_KIND_RUNTIME of the same correlation; else at its begin.
 * 3. Streams have the same numbers in both. The default streams are those of
 *    TARGET_INFO_CUDA_NULL_STREAM, or number 7 if there is no such table, or no stream.
 * 4. Of several processes the one with the most requests is taken.
 * 5. Columns and tables that a version lacks are optional.
 *
 * Source of the format: NVIDIA's "SQLite Schema Reference" of 2021.5 to 2025, and exports. */

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "workloads/formats/rows.h"
#include "workloads/io/fields.h"
#include "workloads/io/sqlite_file.h"

#define MEMORY  "CUDA_GPU_MEMORY_USAGE_EVENTS"
#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define CALLS   "CUPTI_ACTIVITY_KIND_RUNTIME"
#define NULLS   "TARGET_INFO_CUDA_NULL_STREAM"

#define USUAL_NULL_STREAM 7

enum kind { PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED, DEVICE_STATIC, MANAGED_STATIC, OTHER, KINDS };

static const char *const kind_names[KINDS] = {
    [PAGEABLE] = "pageable host",
    [PINNED] = "pinned host",
    [DEVICE] = "device",
    [ARRAY] = "array",
    [MANAGED] = "managed",
    [DEVICE_STATIC] = "static device",
    [MANAGED_STATIC] = "static managed",
    [OTHER] = "unknown",
};

struct process {
    int64_t id;
    uint64_t requests;
};

struct reading {
    struct rows rows;
    struct sqlite_file *file;
    int64_t *processes; /* of each row of rows.items */
    size_t process_count, process_room;
    struct ar_map kinds, operations; /* from numbers to enum kind, and to 1 for a free */
    struct ar_map null_streams, launches;
    struct process chosen;
    uint64_t at_kind[KINDS], unused_kernels;
    bool has_kinds, has_calls, has_null_streams, several_processes;
    int64_t device; /* of the first request */
    char version[32], card[128];
    uint64_t capacity_bytes;
    bool card_is_its;
};

/* Reads a table that may be missing. */
static enum ar_status read_table(struct reading *r, const char *table, const char *const *columns,
                                 enum ar_status (*take)(void *, const struct sqlite_value *,
                                                        uint64_t, struct ar_error *),
                                 bool *has, struct ar_error *error)
{
    AR_TRY(sqlite_file_has(r->file, table, has, error));
    if (!*has)
        return AR_OK;
    return sqlite_file_rows(r->file, table, columns, take, r, error);
}

/* ---- the meaning of numbers -------------------------------------------------------------- */

static enum ar_status take_kind(void *self, const struct sqlite_value *values,
                                uint64_t row AR_UNUSED, struct ar_error *error)
{
    static const char *const endings[KINDS] = {
        "KIND_PAGEABLE", "KIND_PINNED",        "KIND_DEVICE",         "KIND_ARRAY",
        "KIND_MANAGED",  "KIND_DEVICE_STATIC", "KIND_MANAGED_STATIC", "KIND_UNKNOWN"};
    struct reading *r = self;
    for (uint64_t kind = 0; kind < KINDS; kind++)
        if (!values[0].is_null && values[0].number >= 0 &&
            field_ends_with(values[1].text, endings[kind]))
            return ar_map_put(&r->kinds, (uint64_t)values[0].number, kind) ? format_no_memory(error)
                                                                           : AR_OK;
    return AR_OK;
}

static enum ar_status take_operation(void *self, const struct sqlite_value *values,
                                     uint64_t row AR_UNUSED, struct ar_error *error)
{
    struct reading *r = self;
    bool frees = field_ends_with(values[1].text, "DEALLOCATION");
    if (values[0].is_null || values[0].number < 0 || !field_ends_with(values[1].text, "ALLOCATION"))
        return AR_OK;
    return ar_map_put(&r->operations, (uint64_t)values[0].number, frees) ? format_no_memory(error)
                                                                         : AR_OK;
}

static enum ar_status take_null_stream(void *self, const struct sqlite_value *values,
                                       uint64_t row AR_UNUSED, struct ar_error *error)
{
    struct reading *r = self;
    if (values[0].is_null || values[0].number < 0)
        return AR_OK;
    return ar_map_put(&r->null_streams, (uint64_t)values[0].number, 0) ? format_no_memory(error)
                                                                       : AR_OK;
}

static enum ar_status take_export(void *self, const struct sqlite_value *values, uint64_t row,
                                  struct ar_error *error)
{
    struct reading *r = self;
    (void)row, (void)error;
    if (strcmp(values[0].text, "EXPORT_PRODUCT_VERSION") == 0)
        field_text(values[1].text, r->version, sizeof r->version);
    return AR_OK;
}

/* The card of the first request; else the first one. */
static enum ar_status take_card(void *self, const struct sqlite_value *values, uint64_t row,
                                struct ar_error *error AR_UNUSED)
{
    struct reading *r = self;
    const struct sqlite_value *id = values[3].is_null ? &values[0] : &values[3];
    bool its = !id->is_null && id->number == r->device;
    if ((row > 1 && !its) || r->card_is_its)
        return AR_OK;
    r->card_is_its = its;
    field_text(values[1].text, r->card, sizeof r->card);
    r->capacity_bytes = values[2].is_null || values[2].number < 0 ? 0 : (uint64_t)values[2].number;
    return AR_OK;
}

static enum ar_status read_meanings(struct reading *r, struct ar_error *error)
{
    static const char *const names[] = {"id", "name", NULL};
    static const char *const streams[] = {"streamId", NULL};
    static const char *const exports[] = {"name", "value", NULL};
    bool has;
    AR_TRY(read_table(r, "ENUM_CUDA_MEM_KIND", names, take_kind, &has, error));
    AR_TRY(read_table(r, "ENUM_CUDA_DEV_MEM_EVENT_OPER", names, take_operation, &has, error));
    AR_TRY(read_table(r, NULLS, streams, take_null_stream, &has, error));
    r->has_null_streams = r->null_streams.count > 0;
    return read_table(r, "META_DATA_EXPORT", exports, take_export, &has, error);
}

static enum kind kind_of(const struct reading *r, const struct sqlite_value *value)
{
    uint64_t kind;
    if (!r->has_kinds)
        return DEVICE;
    if (value->is_null || value->number < 0)
        return OTHER;
    if (r->kinds.count)
        return ar_map_get(&r->kinds, (uint64_t)value->number, &kind) ? (enum kind)kind : OTHER;
    return value->number < KINDS ? (enum kind)value->number : OTHER;
}

static uint64_t stream_of(const struct reading *r, const struct sqlite_value *value)
{
    uint64_t ignored;
    if (value->is_null || value->number <= 0)
        return 0;
    if (r->has_null_streams)
        return ar_map_get(&r->null_streams, (uint64_t)value->number, &ignored)
                   ? 0
                   : (uint64_t)value->number;
    return value->number == USUAL_NULL_STREAM ? 0 : (uint64_t)value->number;
}

/* ---- rows -------------------------------------------------------------------------------- */

static int64_t process_of(const struct sqlite_value *global)
{
    return global->is_null ? 0 : global->number >> 24 & 0xffffff;
}

static enum ar_status add_row(struct reading *r, const struct row *row, int64_t process,
                              struct ar_error *error)
{
    AR_TRY(AR_APPEND(r->processes, r->process_count, r->process_room, process, error, "the file"));
    return rows_add(&r->rows, row, error);
}

/* A time or a size: an integer from 0 up. */
static enum ar_status take_number(const struct sqlite_value *value, const char *what, uint64_t *out,
                                  struct ar_error *error)
{
    if (value->is_null || value->number < 0 || value->number >= INT64_MAX / 2)
        return ar_invalid(error, "%s is not a number from 0 up", what);
    *out = (uint64_t)value->number;
    return AR_OK;
}

static const char *const memory_columns[] = {"start",   "bytes",     "memoryOperationType",
                                             "address", "globalPid", "deviceId",
                                             "memKind", "streamId",  NULL};
#define MEMORY_WANTED 0xfu /* the first four */
#define MEMORY_KIND   0x40u

static enum ar_status take_memory(void *self, const struct sqlite_value *values, uint64_t number,
                                  struct ar_error *error)
{
    struct reading *r = self;
    struct row row = {.position = number};
    uint64_t frees;
    enum kind kind = kind_of(r, &values[6]);
    AR_TRY(take_number(&values[0], "start", &row.time_ns, error));
    AR_TRY(take_number(&values[1], "bytes", &row.bytes, error));
    if (values[2].is_null || values[2].number < 0 ||
        (r->operations.count ? !ar_map_get(&r->operations, (uint64_t)values[2].number, &frees)
                             : (frees = (uint64_t)values[2].number) > 1))
        return ar_invalid(error, "memoryOperationType is neither a request nor a free");
    row.action = frees ? ROW_FREE : ROW_ALLOC;
    row.address = values[3].is_null ? 0 : (uint64_t)values[3].number;
    if (kind == PINNED)
        row.space = TRACE_SPACE_PINNED; /* on no card, for no stream */
    else {
        row.device = values[5].is_null ? 0 : (uint32_t)(values[5].number & 0xffff);
        row.stream = stream_of(r, &values[7]);
    }
    r->rows.reading->report->records++;
    r->at_kind[kind] += !frees;
    if ((kind != DEVICE && kind != ARRAY && kind != PINNED) || row.address == UINT64_MAX) {
        r->rows.reading->report->left_out++;
        return AR_OK;
    }
    return add_row(r, &row, process_of(&values[4]), error);
}

static const char *const kernel_columns[] = {"start",         "end",       "streamId", "deviceId",
                                             "correlationId", "globalPid", NULL};

/* Until a kernel is placed, `address` of its row holds its begin and `text` its correlation. */
static enum ar_status take_kernel(void *self, const struct sqlite_value *values, uint64_t number,
                                  struct ar_error *error)
{
    struct reading *r = self;
    struct row row = {.action = ROW_KERNEL, .position = number};
    uint64_t end = 0;
    AR_TRY(take_number(&values[0], "start", &row.time_ns, error));
    AR_TRY(take_number(&values[1], "end", &end, error));
    if (end < row.time_ns)
        return ar_invalid(error, "the kernel ends before it begins");
    row.bytes = end - row.time_ns;
    row.address = row.time_ns;
    row.stream = stream_of(r, &values[2]);
    row.text = values[4].is_null ? 0 : (uint32_t)values[4].number;
    r->rows.reading->report->records++;
    if (row.text && ar_map_put(&r->launches, row.text, UINT64_MAX))
        return format_no_memory(error);
    return add_row(r, &row, values[5].is_null ? r->chosen.id : process_of(&values[5]), error);
}

/* A call of the runtime: the launch of the kernels of its correlation. */
static enum ar_status take_call(void *self, const struct sqlite_value *values, uint64_t number,
                                struct ar_error *error)
{
    struct reading *r = self;
    uint64_t begun;
    (void)number;
    if (values[0].is_null || values[0].number < 0 || values[1].is_null ||
        (!values[2].is_null && process_of(&values[2]) != r->chosen.id))
        return AR_OK;
    if (ar_map_get(&r->launches, (uint32_t)values[1].number, &begun) &&
        ar_map_put(&r->launches, (uint32_t)values[1].number, (uint64_t)values[0].number))
        return format_no_memory(error);
    return AR_OK;
}

static enum ar_status choose_process(struct reading *r, struct ar_error *error)
{
    struct ar_map counts = {0};
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < r->rows.count && !status; i++) {
        uint64_t count = 0, id = (uint64_t)r->processes[i];
        if (!ar_map_get(&counts, id, &count))
            count = 0;
        count += r->rows.items[i].action == ROW_ALLOC;
        status = ar_map_put(&counts, id, count);
        if (count > r->chosen.requests || i == 0)
            r->chosen = (struct process){r->processes[i], count};
    }
    r->several_processes = counts.count > 1;
    ar_map_close(&counts);
    return status ? format_no_memory(error) : AR_OK;
}

static enum ar_status read_memory(struct reading *r, struct ar_error *error)
{
    unsigned missing = 0;
    bool has = false, nsys = false;
    AR_TRY(sqlite_file_has(r->file, MEMORY, &has, error));
    if (!has)
        AR_TRY(sqlite_file_has(r->file, "StringIds", &nsys, error));
    if (!has)
        return ar_error_set(error, AR_FORMAT,
                            "the database has no table " MEMORY
                            ": profile with --cuda-memory-usage=true%s",
                            nsys ? "" : "; and no table EVENTS, which a replay log of Umpire has");
    AR_TRY(sqlite_file_lacks(r->file, MEMORY, memory_columns, &missing, error));
    if (missing & MEMORY_WANTED)
        return ar_error_set(
            error, AR_FORMAT,
            MEMORY " lacks one of the columns start, bytes, memoryOperationType and address");
    r->has_kinds = !(missing & MEMORY_KIND);
    AR_TRY(sqlite_file_rows(r->file, MEMORY, memory_columns, take_memory, r, error));
    if (!r->rows.count)
        return ar_error_set(error, AR_FORMAT, MEMORY " has no rows of device memory");
    return choose_process(r, error);
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    AR_ORDER(a->time_ns, b->time_ns);
    bool kernels = a->action == ROW_KERNEL;
    AR_ORDER(kernels, b->action == ROW_KERNEL);
    if (kernels)
        AR_ORDER(a->address, b->address);
    return (a->position > b->position) - (a->position < b->position);
}

/* Moves kernels to their launches, drops rows of other processes, and sorts all by time. */
static void order_rows(struct reading *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->rows.count; i++) {
        struct row *row = &r->rows.items[i];
        uint64_t launched;
        if (r->processes[i] != r->chosen.id) {
            r->rows.reading->report->left_out++;
            r->unused_kernels += row->action == ROW_KERNEL;
            continue;
        }
        if (row->action == ROW_KERNEL && row->text &&
            ar_map_get(&r->launches, row->text, &launched) && launched <= row->address)
            row->time_ns = launched;
        row->text = 0;
        r->rows.items[kept++] = *row;
    }
    r->rows.count = kept;
    qsort(r->rows.items, kept, sizeof *r->rows.items, compare_rows);
    for (size_t i = 0; i < kept; i++)
        if (r->rows.items[i].action == ROW_KERNEL)
            r->rows.items[i].address = 0;
}

static enum ar_status read_kernels(struct reading *r, struct ar_error *error)
{
    static const char *const calls[] = {"start", "correlationId", "globalTid", NULL};
    static const char *const cards[] = {"id", "name", "totalMemory", "cuDevId", NULL};
    bool has;
    for (size_t i = r->rows.count; i-- > 0;)
        if (r->processes[i] == r->chosen.id && r->rows.items[i].space == TRACE_SPACE_DEVICE)
            r->device = r->rows.items[i].device;
    AR_TRY(read_table(r, "TARGET_INFO_GPU", cards, take_card, &has, error));
    AR_TRY(read_table(r, KERNELS, kernel_columns, take_kernel, &has, error));
    return r->launches.count ? read_table(r, CALLS, calls, take_call, &r->has_calls, error) : AR_OK;
}

static void say_guesses(struct reading *r)
{
    struct import_report *report = r->rows.reading->report;
    for (int kind = 0; kind < KINDS; kind++)
        if (kind != DEVICE && kind != PINNED && r->at_kind[kind])
            import_guess(report, "%" PRIu64 " requests of %s memory are %s", r->at_kind[kind],
                         kind_names[kind],
                         kind == ARRAY ? "taken like other device memory" : "left out");
    if (!r->has_kinds)
        import_guess(report, "the export has no kinds of memory: all is taken for device memory");
    if (r->several_processes)
        import_guess(report, "of several processes, %" PRId64 " with the most requests is taken",
                     r->chosen.id);
    if (!r->has_null_streams)
        import_guess(report, "stream 7 is taken for the default stream");
    if (r->launches.count && !r->has_calls)
        import_guess(report, "the export has no launches: kernels are placed at their begin");
}

static enum ar_status read_all(struct reading *r, struct ar_error *error)
{
    AR_TRY(read_meanings(r, error));
    AR_TRY(read_memory(r, error));
    AR_TRY(read_kernels(r, error));
    order_rows(r);
    return AR_OK;
}

static enum ar_status read_export(struct format_reading *reading, struct sqlite_file *file,
                                  struct ar_error *error)
{
    struct reading r = {.rows = {.reading = reading, .unit = ": row ", .has_times = true},
                        .file = file};
    struct trace_info *info = &reading->info;
    enum ar_status status = read_all(&r, error);
    say_guesses(&r);
    snprintf(info->recorder, sizeof info->recorder, "nsys%s%s", *r.version ? " " : "", r.version);
    snprintf(info->card, sizeof info->card, "%s", r.card);
    info->capacity_bytes = r.capacity_bytes;
    AR_THEN(status, rows_convert(&r.rows, error));
    rows_close(&r.rows);
    free(r.processes);
    ar_map_close(&r.kinds);
    ar_map_close(&r.operations);
    ar_map_close(&r.null_streams);
    ar_map_close(&r.launches);
    return status;
}

/* The tables of a database say which program wrote it. */
static enum ar_status read_nsys(struct format_reading *reading, struct ar_error *error)
{
    struct sqlite_file *file = NULL;
    bool has_memory = false, has_events = false;
    enum ar_status status = sqlite_file_open(reading->input, &file, error);
    AR_THEN(status, sqlite_file_has(file, MEMORY, &has_memory, error));
    if (!status && !has_memory)
        status = sqlite_file_has(file, "EVENTS", &has_events, error);
    AR_THEN(status, has_events ? umpire_read_database(reading, file, error)
                               : read_export(reading, file, error));
    sqlite_file_close(file);
    return status;
}

static bool matches_nsys(const char *head, size_t count)
{
    return count >= 16 && !memcmp(head, "SQLite format 3", 16);
}

const struct format_reader format_nsys = {
    .name = "nsys",
    .summary = "Nsight Systems' export as SQLite: requests of the driver, kernels, read",
    .matches = matches_nsys,
    .read = read_nsys,
};
