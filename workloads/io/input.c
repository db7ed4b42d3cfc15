/* The bytes of a file, plain, gzip or zstd.
 *
 * What: a stream that can be rewound. How: a window of the file is read ahead; where it is
 * compressed, the window feeds the codec. */
#include "workloads/io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workloads/io/codec.h"

enum { WINDOW = 1 << 17 };
#define GUARD_BYTES (UINT64_C(64) << 20)
#define GUARD_RATIO 128u

struct trace_input {
    char *path;
    int file;
    struct unpacker *unpacker; /* NULL: the file is not compressed */
    bool inside;               /* a member or frame has begun and not ended */
    bool guarded;              /* see trace_input_guard */
    uint64_t packed, unpacked; /* bytes since the start of the file */
    size_t used, filled;       /* of the window */
    unsigned char window[WINDOW];
};

static enum ar_status fill(struct trace_input *input, struct ar_error *error)
{
    ssize_t got;
    do
        got = read(input->file, input->window, WINDOW);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", input->path, strerror(errno));
    input->used = 0;
    input->filled = (size_t)got;
    return AR_OK;
}

static enum ar_status start(struct trace_input *input, struct ar_error *error)
{
    enum ar_status status = fill(input, error);
    if (status)
        return status;
    enum packing packing = packing_of(input->window, input->filled);
    if (packing == PACKING_NONE)
        return AR_OK;
    status = unpacker_open(packing, &input->unpacker, error);
    return status ? ar_error_prefix(error, status, "%s", input->path) : AR_OK;
}

enum ar_status trace_input_open(const char *path, struct trace_input **out, struct ar_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return ar_error_set(error, AR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return ar_error_set(error, AR_INVALID,
                            "%s: is a directory; name a trace file in it instead", path);
    struct trace_input *input = calloc(1, sizeof *input);
    if (!input || !(input->path = strdup(path))) {
        free(input);
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", path);
    }
    input->file = open(path, O_RDONLY | O_CLOEXEC);
    enum ar_status status = input->file < 0 ? ar_error_set(error, AR_IO, "%s: cannot be opened: %s",
                                                           path, strerror(errno))
                                            : start(input, error);
    if (status) {
        trace_input_close(input);
        return status;
    }
    *out = input;
    return AR_OK;
}

static enum ar_status read_plain(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                 struct ar_error *error)
{
    if (input->used == input->filled) {
        enum ar_status status = fill(input, error);
        if (status)
            return status;
    }
    *got = input->filled - input->used;
    *got = *got < room ? *got : room;
    memcpy(bytes, input->window + input->used, *got);
    input->used += *got;
    input->packed += *got;
    return AR_OK;
}

enum ar_status trace_input_read(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                struct ar_error *error)
{
    *got = 0;
    if (!input->unpacker)
        return read_plain(input, bytes, room, got, error);
    bool drained = false; /* the end of the file was found */
    while (!*got) {
        if (input->used == input->filled && !drained) {
            enum ar_status status = fill(input, error);
            if (status)
                return status;
            drained = !input->filled;
        }
        if (drained && !input->inside)
            return AR_OK;
        size_t used;
        enum ar_status status =
            unpacker_step(input->unpacker, input->window + input->used, input->filled - input->used,
                          &used, bytes, room, got, &input->inside, error);
        if (status)
            return ar_error_prefix(error, status, "%s", input->path);
        input->used += used;
        input->packed += used;
        input->unpacked += *got;
        if (input->guarded && input->unpacked > GUARD_BYTES + GUARD_RATIO * input->packed)
            return ar_error_set(
                error, AR_FORMAT,
                "%s: it unpacks to more than %u times its size, as no recording does; "
                "unpack it first if it is one",
                input->path, GUARD_RATIO);
        if (drained && !*got && input->inside)
            return ar_error_set(error, AR_FORMAT,
                                "%s: the compressed file is cut off: copy it or make it again",
                                input->path);
    }
    return AR_OK;
}

enum ar_status trace_input_rewind(struct trace_input *input, struct ar_error *error)
{
    if (lseek(input->file, 0, SEEK_SET) != 0)
        return ar_error_set(error, AR_IO,
                            "%s: cannot be read a second time: %s; write it to a file first",
                            input->path, strerror(errno));
    unpacker_reset(input->unpacker);
    input->packed = input->unpacked = 0;
    input->inside = false;
    input->used = input->filled = 0;
    return AR_OK;
}

void trace_input_guard(struct trace_input *input)
{
    input->guarded = true;
}

uint64_t trace_input_bytes(const struct trace_input *input)
{
    return input->packed;
}

int trace_input_file(const struct trace_input *input)
{
    return input->unpacker ? -1 : input->file;
}

const char *trace_input_path(const struct trace_input *input)
{
    return input->path;
}

void trace_input_close(struct trace_input *input)
{
    if (!input)
        return;
    if (input->file >= 0)
        close(input->file);
    unpacker_close(input->unpacker);
    free(input->path);
    free(input);
}
