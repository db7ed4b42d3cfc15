/* Reading a log for the dumps of a BFC allocator: the last dump that names chunks, and the request
 * that failed.
 *
 * Each line is searched for the allocator's own words, wherever they are, so that time stamps,
 * source locations and prefixes of a terminal do not matter.
 * 1. "... ran out of memory trying to allocate 1.25GiB (rounded to N)requested by op X" begins a
 *    dump; so does "BFCAllocator dump for" or the first bin if chunks were read already. With "is
 *    not a failure" the program continued without the memory.
 * 2. "Next region of size N", then "InUse at A of size N [by op X ..] next M", "Free  at ..";
 *    TensorFlow 1 says "Chunk at" for those in use. Addresses are hexadecimal, with or without 0x.
 * 3. "N Chunks of size S totalling": the summary, which replaces the chunks in logs that lost them.
 * 4. "Stats:" and its lines; "memory_limit_: N" if there are none.
 * 5. A later sentence has the exact size of the request: "Out of memory while trying to allocate N
 *    bytes" or "OOM when allocating tensor with shape[..] and type T".
 * 6. XLA's list of the largest buffers of a program is used if there are no chunks:
 *
 *     Peak buffers:
 *             Buffer 1:
 *                     Size: 6.00MiB
 *                     Operator: op_name="jit(f)/concatenate" source_file="f.py" source_line=6
 *                     XLA Label: concatenate
 *                     Shape: f32[4096,128,3]
 *                     ==========================
 *
 *    "Entry Parameter Subshape:" instead of the last two marks an argument, which was live before;
 *    the program would have allocated all others.
 * 7. "device: 0, name: NVIDIA A100-SXM4-40GB, pci bus id: .." of TensorFlow's gpu_device.cc names
 *    the card; the first one counts. Source of the words: bfc_allocator.cc of TensorFlow 1.0 to
 *    2.18 and of XLA. */
#include "workloads/formats/xla/bfc_log.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"
#include "workloads/io/fields.h"

/* ---- words and sizes --------------------------------------------------------------------- */

uint64_t bfc_human_bytes(const char *text, uint64_t *slack)
{
    static const char units[] = "KMGTP";
    double value = 0, place = 1, unit_bytes = 1;
    bool fraction = false, digits = false;
    *slack = 0;
    for (; (*text >= '0' && *text <= '9') || ((*text == '.' || *text == ',') && !fraction);
         text++) {
        if (*text == '.' || *text == ',') {
            fraction = true;
            continue;
        }
        digits = true;
        place /= fraction ? 10 : 1;
        value = fraction ? value + place * (*text - '0') : value * 10 + (*text - '0');
    }
    const char *unit = *text ? strchr(units, *text) : NULL;
    if (unit && text[1] == 'i' && text[2] == 'B') {
        for (const char *at = units; at <= unit; at++)
            unit_bytes *= (double)AR_KIB;
    } else if (*text != 'B') {
        digits = false;
    }
    value *= unit_bytes;
    if (!digits || !(value < 1e18))
        return 0;
    *slack = unit_bytes > 1 ? (uint64_t)(unit_bytes * place / 2) + 1 : 0;
    return (uint64_t)(value + 0.5);
}

uint64_t bfc_type_bytes(const char *type, size_t length)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {
        {"float", 4},  {"double", 8}, {"half", 2},  {"bfloat16", 2},  {"int64", 8},
        {"int32", 4},  {"int16", 2},  {"int8", 1},  {"uint64", 8},    {"uint32", 4},
        {"uint16", 2}, {"uint8", 1},  {"bool", 1},  {"pred", 1},      {"s8", 1},
        {"u8", 1},     {"s16", 2},    {"u16", 2},   {"f16", 2},       {"bf16", 2},
        {"s32", 4},    {"u32", 4},    {"f32", 4},   {"s64", 8},       {"u64", 8},
        {"f64", 8},    {"c64", 8},    {"c128", 16}, {"complex64", 8}, {"complex128", 16},
    };
    for (size_t i = 0; i < AR_COUNT(types); i++)
        if (strlen(types[i].name) == length && !strncmp(types[i].name, type, length))
            return types[i].bytes;
    return length > 2 && type[0] == 'f' && type[1] == '8' ? 1 : 0; /* f8e4m3fn and the like */
}

uint64_t bfc_elements(const char *shape)
{
    uint64_t elements = 1;
    if (*shape != '[')
        return 0;
    for (shape++; *shape != ']'; shape += *shape == ',') {
        uint64_t length = 0;
        if (*shape < '0' || *shape > '9')
            return 0;
        for (; *shape >= '0' && *shape <= '9'; shape++)
            if (length < UINT64_C(1) << 40)
                length = length * 10 + (uint64_t)(*shape - '0');
        if (__builtin_mul_overflow(elements, length, &elements) || (*shape != ',' && *shape != ']'))
            return 0;
    }
    return elements;
}

/* A name as a trace can hold it: up to the next blank or odd byte. */
static void take_name(const char *from, char *name, size_t room)
{
    size_t length = 0;
    while (from[length] > ' ' && from[length] < 0x7f)
        length++;
    field_word(from, length, ",", name, room);
}

/* ---- XLA's list of buffers --------------------------------------------------------------- */

/* The text after the words at the start of the line, or NULL. */
static const char *text_after(const char *line, const char *words)
{
    size_t length = strlen(words);
    return strncmp(line, words, length) ? NULL : line + length;
}

/* "f32[4096,128,3]{2,1,0}"; tuples and others keep the printed size. */
static void take_shape(struct xla_buffer *buffer, const char *shape)
{
    size_t length = strcspn(shape, "[");
    uint64_t elements = shape[length] ? bfc_elements(shape + length) : 0;
    uint64_t bytes;
    if (!__builtin_mul_overflow(elements, bfc_type_bytes(shape, length), &bytes) && bytes)
        buffer->bytes = bytes;
}

/* Takes a line of the log, of the list or not. HOST_MEMORY. */
static enum ar_status take_buffer_line(struct xla_buffers *buffers, const char *line,
                                       uint64_t number, struct ar_error *error)
{
    const char *at;
    uint64_t slack;
    line += strspn(line, " \t");
    if (text_after(line, "Peak buffers:")) {
        buffers->count = 0;
        buffers->listing = true;
        buffers->inside = false;
        return AR_OK;
    }
    if (!buffers->listing)
        return AR_OK;
    at = text_after(line, "Buffer ");
    size_t digits = at ? strspn(at, "0123456789") : 0;
    if (digits && !strcmp(at + digits, ":")) {
        buffers->inside = true;
        const struct xla_buffer begun = {.line = number};
        if (buffers->count < XLA_BUFFER_LIMIT &&
            AR_ARRAY_ADD(buffers->items, buffers->count, buffers->capacity, begun))
            return AR_OK;
        return ar_no_memory(error, "a list of buffers");
    }
    if (!buffers->inside)
        buffers->listing = !*line;
    if (!buffers->inside)
        return AR_OK;
    struct xla_buffer *buffer = &buffers->items[buffers->count - 1];
    if ((at = text_after(line, "Size: ")) && !buffer->bytes)
        buffer->bytes = bfc_human_bytes(at, &slack);
    else if ((at = text_after(line, "Shape: ")))
        take_shape(buffer, at);
    else if ((at = text_after(line, "XLA Label: ")))
        take_name(at, buffer->label, sizeof buffer->label);
    else if ((at = text_after(line, "Entry Parameter Subshape: "))) {
        buffer->parameter = true;
        take_shape(buffer, at);
    } else if (text_after(line, "====")) {
        buffers->inside = false;
    }
    return AR_OK;
}

#define LINE_KEPT     4096u /* bytes of a line that are searched */
#define ROUNDING      256u
#define SUMMARY_LIMIT 65536u /* chunks that a line of a summary may stand for */

struct bfc_reading {
    struct bfc_log *log;
    struct bfc_dump dump; /* the current one */
    bool in_stats;
    uint64_t line;
    const char *path;
    struct ar_error *error;
};

static void close_dump(struct bfc_dump *dump)
{
    for (size_t i = 0; i < dump->chunk_count; i++)
        free(dump->chunks[i].tag);
    free(dump->chunks);
    free(dump->regions);
    *dump = (struct bfc_dump){0};
}

void bfc_log_close(struct bfc_log *log)
{
    close_dump(&log->last);
    free(log->buffers.items);
    log->buffers = (struct xla_buffers){0};
}

/* The current dump ends: it is kept if it names chunks. */
static void end_dump(struct bfc_reading *reading)
{
    if (reading->dump.chunk_count) {
        close_dump(&reading->log->last);
        reading->log->last = reading->dump;
        reading->log->dumps++;
        reading->log->later_failure = false;
        reading->dump = (struct bfc_dump){0};
    } else {
        reading->log->later_failure |= reading->dump.request.failed;
        if (reading->dump.request.failed)
            reading->log->list_request = reading->dump.request;
        close_dump(&reading->dump);
    }
    reading->in_stats = false;
}

static const char *after(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    return at ? at + strlen(words) : NULL;
}

/* A decimal number below 2^63. */
static bool take_number(const char **at, uint64_t *value)
{
    const char *from = *at;
    *value = 0;
    while (*from == ' ' || *from == '\t')
        from++;
    if (*from < '0' || *from > '9')
        return false;
    for (; *from >= '0' && *from <= '9'; from++) {
        if (*value > (UINT64_MAX >> 1) / 10 - 1)
            return false;
        *value = *value * 10 + (uint64_t)(*from - '0');
    }
    *at = from;
    return true;
}

static bool number_after(const char *line, const char *words, uint64_t *value)
{
    const char *at = after(line, words);
    return at && take_number(&at, value);
}

static bool take_address(const char **at, uint64_t *value)
{
    const char *from = *at;
    int count = 0;
    *value = 0;
    while (*from == ' ')
        from++;
    from += from[0] == '0' && (from[1] | 32) == 'x' ? 2 : 0;
    for (; count <= 16; from++, count++) {
        unsigned digit = field_hex_digit(*from);
        if (digit == 16)
            break;
        *value = *value << 4 | digit;
    }
    *at = from;
    return count && count <= 16;
}

/* ---- chunks ------------------------------------------------------------------------------ */

static enum ar_status add_chunk(struct bfc_reading *reading, const struct bfc_chunk *chunk,
                                const char *tag)
{
    struct bfc_dump *dump = &reading->dump;
    struct bfc_chunk copy = *chunk;
    copy.tag = *tag ? strdup(tag) : NULL;
    if ((*tag && !copy.tag) ||
        !AR_ARRAY_ADD(dump->chunks, dump->chunk_count, dump->chunk_capacity, copy)) {
        free(copy.tag);
        return format_no_memory(reading->error);
    }
    dump->copies += chunk->copies;
    return AR_OK;
}

static enum ar_status add_region(struct bfc_reading *reading, uint64_t bytes)
{
    struct bfc_dump *dump = &reading->dump;
    const struct bfc_region region = {bytes, dump->chunk_count};
    return AR_APPEND(dump->regions, dump->region_count, dump->region_capacity, region,
                     reading->error, "the file");
}

/* "InUse at 7f00 of size 256 by op X action_count 3 step 0 next 4". */
static enum ar_status take_chunk(struct bfc_reading *reading, const char *line, bool *taken)
{
    static const struct {
        const char *words;
        bool used;
    } kinds[] = {
        {"InUse at ", true}, {"Free  at ", false}, {"Free at ", false}, {"Chunk at ", true}};
    struct bfc_chunk chunk = {.line = reading->line, .copies = 1};
    char tag[BFC_TAG_LIMIT] = "";
    const char *at = NULL;
    for (size_t i = 0; i < AR_COUNT(kinds) && !at; i++) {
        at = after(line, kinds[i].words);
        chunk.used = kinds[i].used;
    }
    *taken = at && take_address(&at, &chunk.address) && !strncmp(at, " of size ", 9) &&
             number_after(at, " of size ", &chunk.bytes) && chunk.bytes;
    if (!*taken)
        return AR_OK;
    const char *operation = after(at, " by op ");
    if (operation && strncmp(operation, "action_count ", 13) != 0)
        take_name(operation, tag, sizeof tag);
    if (reading->dump.from_summary)
        end_dump(reading); /* of a dump whose own chunks are lost */
    return add_chunk(reading, &chunk, tag);
}

/* "35 Chunks of size 256 totalling 8.8KiB", if no chunk was named. */
static enum ar_status take_summary(struct bfc_reading *reading, const char *line, bool *taken)
{
    struct bfc_chunk chunk = {.line = reading->line, .used = true};
    const char *at = strstr(line, " Chunks of size ");
    uint64_t count = 0, place = 1;
    *taken = at && number_after(at, " Chunks of size ", &chunk.bytes) && chunk.bytes;
    if (!*taken || (reading->dump.chunk_count && !reading->dump.from_summary))
        return AR_OK;
    for (; at > line && at[-1] >= '0' && at[-1] <= '9' && place < 100000000; at--, place *= 10)
        count += place * (uint64_t)(at[-1] - '0');
    if (count + reading->dump.copies > SUMMARY_LIMIT)
        return ar_error_set(reading->error, AR_FORMAT,
                            "%s:%llu: the summary names more than %u chunks", reading->path,
                            (unsigned long long)reading->line, SUMMARY_LIMIT);
    reading->dump.from_summary = true;
    chunk.copies = (uint32_t)count;
    return add_chunk(reading, &chunk, "");
}

/* ---- statistics -------------------------------------------------------------------------- */

static bool take_stats(struct bfc_reading *reading, const char *line)
{
    struct bfc_dump *dump = &reading->dump;
    static const char *const names[] = {"MaxInUse:", "NumAllocs:",    "MaxAllocSize:",
                                        "Reserved:", "PeakReserved:", "LargestFreeBlock:"};
    uint64_t number;
    if (strstr(line, "Stats:")) {
        reading->in_stats = true;
        return true;
    }
    if (number_after(line, "memory_limit_: ", &number)) {
        dump->has_limit = true;
        dump->limit_bytes = number;
        dump->has_pool = number_after(line, "Total bytes in pool: ", &dump->pool_bytes) ||
                         number_after(line, "total_region_allocated_bytes_: ", &dump->pool_bytes);
        return true;
    }
    if (!reading->in_stats)
        return false;
    for (size_t i = 0; i < AR_COUNT(names); i++)
        if (strstr(line, names[i]))
            return true;
    if (number_after(line, "Limit:", &number)) {
        dump->has_limit = true;
        dump->limit_bytes = number;
        return true;
    }
    if (number_after(line, "InUse:", &number)) {
        dump->has_in_use = true;
        dump->in_use_bytes = number;
        return true;
    }
    reading->in_stats = false;
    return false;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB (rounded to N)requested by
 * op X", or less in older versions. */
static bool take_failure(struct bfc_reading *reading, const char *line)
{
    const char *at = after(line, "an out of memory trying to allocate ");
    if (!at)
        return false;
    if (strstr(at, "not a failure")) {
        reading->log->soft_failures++;
        return true;
    }
    if (!strstr(at, "See logs for memory state"))
        end_dump(reading);
    struct bfc_request *request = &reading->dump.request;
    request->failed = true;
    request->about_bytes = bfc_human_bytes(at, &request->about_slack);
    (void)number_after(at, "(rounded to ", &request->rounded_bytes);
    const char *operation = after(at, "requested by op ");
    if (operation)
        take_name(operation, request->operation, sizeof request->operation);
    const char *name = after(line, "Allocator (");
    if (name && name < at) {
        take_name(name, reading->dump.allocator, sizeof reading->dump.allocator);
        reading->dump.allocator[strcspn(reading->dump.allocator, ")")] = 0;
    }
    return true;
}

/* Whether a request may have been for so many bytes, given the other known sizes. */
static bool may_be(const struct bfc_request *request, uint64_t bytes)
{
    uint64_t about = request->about_bytes, slack = request->about_slack;
    if (!bytes || bytes >= UINT64_C(1) << 62)
        return false;
    if (request->rounded_bytes)
        return (bytes + ROUNDING - 1) / ROUNDING * ROUNDING == request->rounded_bytes;
    return !about || (bytes + slack >= about && bytes <= about + slack);
}

/* Bytes of the tensor in "OOM when allocating tensor with shape[2,3] and type float on ..". If the
 * version does not print the type: of the type that fits the other known sizes; 0 if none does, or
 * they are unknown. */
static uint64_t tensor_bytes(const struct bfc_request *request, const char *shape)
{
    static const uint64_t elements_bytes[] = {4, 2, 8, 1, 16};
    uint64_t elements = bfc_elements(shape), bytes;
    const char *end = strchr(shape, ']');
    if (!elements || elements >= UINT64_C(1) << 57 || !end)
        return 0;
    if (!strncmp(end, "] and type ", 11)) {
        const char *type = end + 11;
        return elements * bfc_type_bytes(type, strcspn(type, " ,.\"'"));
    }
    for (size_t i = 0; i < AR_COUNT(elements_bytes); i++) {
        bytes = elements * elements_bytes[i];
        if ((request->about_bytes || request->rounded_bytes) && may_be(request, bytes))
            return bytes;
    }
    return 0;
}

/* The sentences with the exact size of a request. */
static void take_exact(struct bfc_reading *reading, const char *line)
{
    static const char *const words[] = {"ut of memory while trying to allocate ",
                                        "ut of memory allocating ", "ailed to allocate "};
    struct bfc_request *request = &reading->dump.request;
    uint64_t bytes = 0;
    const char *at = after(line, "OOM when allocating tensor with shape");
    if (at)
        bytes = tensor_bytes(request, at);
    for (size_t i = 0; i < AR_COUNT(words) && !bytes; i++) {
        at = after(line, words[i]);
        if (at && (!take_number(&at, &bytes) || strncmp(at, " bytes", 6) != 0))
            bytes = 0;
    }
    if (!request->bytes && may_be(request, bytes)) {
        request->bytes = bytes;
        request->failed = true;
    }
}

/* Rule 7. */
static void take_card(struct bfc_log *log, const char *line)
{
    char text[sizeof log->card];
    const char *device = strstr(line, "device: ");
    const char *name = device ? after(device, ", name: ") : NULL;
    const char *end = name ? strstr(name, ", pci bus id: ") : NULL;
    size_t length = end ? (size_t)(end - name) : 0;
    if (log->card[0] || !length || length >= sizeof text)
        return;
    memcpy(text, name, length);
    text[length] = '\0';
    field_text(text, log->card, sizeof log->card);
}

/* ---- lines ------------------------------------------------------------------------------- */

static bool begins_anew(const struct bfc_reading *reading, const char *line)
{
    return reading->dump.chunk_count &&
           (strstr(line, "BFCAllocator dump for ") || strstr(line, "Bin (256):"));
}

static enum ar_status take_line(struct bfc_reading *reading, const char *line)
{
    uint64_t bytes;
    bool taken;
    if (begins_anew(reading, line))
        end_dump(reading);
    const char *name = after(line, "BFCAllocator dump for ");
    if (name) {
        take_name(name, reading->dump.allocator, sizeof reading->dump.allocator);
        return AR_OK;
    }
    AR_TRY(take_chunk(reading, line, &taken));
    if (taken)
        return AR_OK;
    if (number_after(line, "Next region of size ", &bytes))
        return add_region(reading, bytes);
    AR_TRY(take_summary(reading, line, &taken));
    if (taken || take_stats(reading, line) || take_failure(reading, line))
        return AR_OK;
    take_exact(reading, line);
    take_card(reading->log, line);
    return AR_OK;
}

enum ar_status bfc_log_read(struct trace_input *input, struct bfc_log *out, struct ar_error *error)
{
    struct bfc_reading reading = {.log = out, .path = trace_input_path(input), .error = error};
    struct trace_lines *lines = malloc(sizeof *lines);
    size_t length;
    char *line;
    AR_TRY_MEMORY(lines, error, "the file");
    trace_lines_start_log(lines, input, LINE_KEPT);
    enum ar_status status;
    while (!(status = trace_lines_next(lines, &line, &length, error)) && line) {
        reading.line = lines->number;
        status = take_line(&reading, line);
        AR_THEN(status, take_buffer_line(&out->buffers, line, lines->number, error));
        if (status)
            break;
    }
    end_dump(&reading);
    free(lines);
    return status;
}
