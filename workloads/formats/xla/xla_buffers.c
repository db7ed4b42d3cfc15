/* Reading XLA's list of the buffers that a program has at its peak.
 *
 * What: a list that stands below the sentence of a request that failed, of the largest buffers:
 *
 *     Peak buffers:
 *             Buffer 1:
 *                     Size: 6.00MiB
 *                     Operator: op_name="jit(f)/concatenate" source_file="f.py" source_line=6
 *                     XLA Label: concatenate
 *                     Shape: f32[4096,128,3]
 *                     ==========================
 *
 * How: lines by their first words. "Entry Parameter Subshape:" in place of the last two tells an
 * argument, which was there before; anything else the program would have asked for. */
#include "workloads/formats/xla/xla_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/formats/xla/bfc_dump.h"

/* Behind the words that the line begins with, or NULL. */
static const char *after(const char *line, const char *words)
{
    size_t length = strlen(words);
    return strncmp(line, words, length) ? NULL : line + length;
}

static uint64_t type_bytes(const char *type, size_t length)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"pred", 1}, {"s8", 1},   {"u8", 1},  {"s16", 2}, {"u16", 2},
                 {"f16", 2},  {"bf16", 2}, {"s32", 4}, {"u32", 4}, {"f32", 4},
                 {"s64", 8},  {"u64", 8},  {"f64", 8}, {"c64", 8}, {"c128", 16}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && !strncmp(types[i].name, type, length))
            return types[i].bytes;
    return length > 2 && type[0] == 'f' && type[1] == '8' ? 1 : 0; /* f8e4m3fn and the like */
}

/* "f32[4096,128,3]{2,1,0}"; tuples and others keep the size as printed. */
static void take_shape(struct xla_buffer *buffer, const char *shape)
{
    size_t length = strcspn(shape, "[");
    uint64_t elements = shape[length] ? bfc_elements(shape + length) : 0;
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, type_bytes(shape, length), &bytes) || !bytes)
        return;
    buffer->bytes = bytes;
    buffer->exact = true;
}

static void take_label(struct xla_buffer *buffer, const char *label)
{
    size_t length = 0;
    for (; label[length] > ' ' && label[length] < 0x7f && length + 1 < XLA_LABEL_LIMIT; length++)
        buffer->label[length] = label[length];
    buffer->label[length] = 0;
    for (char *comma = buffer->label; (comma = strchr(comma, ','));)
        *comma = '_';
}

static enum ar_status add(struct xla_buffers *buffers, uint64_t number, struct ar_error *error)
{
    if (buffers->count == buffers->capacity) {
        size_t capacity = buffers->capacity ? buffers->capacity * 2 : 64;
        struct xla_buffer *items =
            capacity < XLA_BUFFER_LIMIT ? realloc(buffers->items, capacity * sizeof *items) : NULL;
        if (!items)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a list of buffers");
        buffers->items = items;
        buffers->capacity = capacity;
    }
    buffers->items[buffers->count++] = (struct xla_buffer){.line = number};
    return AR_OK;
}

enum ar_status xla_buffers_line(struct xla_buffers *buffers, const char *line, uint64_t number,
                                struct ar_error *error)
{
    const char *at;
    uint64_t slack;
    line += strspn(line, " \t");
    if (after(line, "Peak buffers:")) {
        buffers->count = 0;
        buffers->listing = true;
        buffers->inside = false;
        return AR_OK;
    }
    if (!buffers->listing)
        return AR_OK;
    if ((at = after(line, "Buffer ")) && *at >= '0' && *at <= '9' &&
        !strcmp(at + strspn(at, "0123456789"), ":")) {
        buffers->inside = true;
        return add(buffers, number, error);
    }
    if (!buffers->inside)
        buffers->listing = !*line;
    if (!buffers->inside)
        return AR_OK;
    struct xla_buffer *buffer = &buffers->items[buffers->count - 1];
    if ((at = after(line, "Size: ")) && !buffer->bytes)
        buffer->bytes = bfc_human_bytes(at, &slack);
    else if ((at = after(line, "Shape: ")))
        take_shape(buffer, at);
    else if ((at = after(line, "XLA Label: ")))
        take_label(buffer, at);
    else if ((at = after(line, "Entry Parameter Subshape: "))) {
        buffer->parameter = true;
        take_shape(buffer, at);
    } else if (after(line, "====")) {
        buffers->inside = false;
    }
    return AR_OK;
}

void xla_buffers_close(struct xla_buffers *buffers)
{
    free(buffers->items);
    *buffers = (struct xla_buffers){0};
}
