/* The bytes of a file, plain, gzip or zstd.
 *
 * What: a stream that can be rewound. How: a window of compressed bytes is read ahead and fed
 * to zlib or libzstd; several members or frames, one behind the other, are one stream. */
#include "workloads/trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

enum { WINDOW = 1 << 17 };

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct trace_input {
    char *path;
    int file;
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool inside;         /* a member or frame has begun and not ended */
    size_t used, filled; /* of the window */
    unsigned char window[WINDOW];
};

static enum status fill(struct trace_input *input, struct error *error)
{
    ssize_t got;
    do
        got = read(input->file, input->window, WINDOW);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set(error, STATUS_IO, "%s: cannot be read: %s", input->path, strerror(errno));
    input->used = 0;
    input->filled = (size_t)got;
    return STATUS_OK;
}

static enum status start(struct trace_input *input, struct error *error)
{
    enum status status = fill(input, error);
    if (status)
        return status;
    const unsigned char *w = input->window;
    if (input->filled >= 2 && w[0] == 0x1f && w[1] == 0x8b) {
        input->packing = PACKING_GZIP;
        if (inflateInit2(&input->gzip, 15 + 16) != Z_OK)
            return error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to read gzip",
                             input->path);
    } else if (input->filled >= 4 && w[0] == 0x28 && w[1] == 0xb5 && w[2] == 0x2f && w[3] == 0xfd) {
        input->packing = PACKING_ZSTD;
        input->zstd = ZSTD_createDStream();
        if (!input->zstd)
            return error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to read zstd",
                             input->path);
    }
    return STATUS_OK;
}

enum status trace_input_open(const char *path, struct trace_input **out, struct error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return error_set(error, STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return error_set(error, STATUS_INVALID,
                         "%s: is a directory; name a trace file in it instead", path);
    struct trace_input *input = calloc(1, sizeof *input);
    if (!input || !(input->path = strdup(path))) {
        free(input);
        return error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to read it", path);
    }
    input->file = open(path, O_RDONLY | O_CLOEXEC);
    enum status status = input->file < 0 ? error_set(error, STATUS_IO, "%s: cannot be opened: %s",
                                                     path, strerror(errno))
                                         : start(input, error);
    if (status) {
        trace_input_close(input);
        return status;
    }
    *out = input;
    return STATUS_OK;
}

static enum status broken(const struct trace_input *input, const char *what, struct error *error)
{
    return error_set(error, STATUS_FORMAT,
                     "%s: its %s compression is broken (%s); copy or make the file again",
                     input->path, input->packing == PACKING_GZIP ? "gzip" : "zstd", what);
}

static enum status read_gzip(struct trace_input *input, void *bytes, size_t room, size_t *got,
                             struct error *error)
{
    input->gzip.next_in = input->window + input->used;
    input->gzip.avail_in = (unsigned)(input->filled - input->used);
    input->gzip.next_out = bytes;
    input->gzip.avail_out = (unsigned)room;
    int result = inflate(&input->gzip, Z_NO_FLUSH);
    input->used = input->filled - input->gzip.avail_in;
    *got = room - input->gzip.avail_out;
    input->inside = result != Z_STREAM_END;
    if (result == Z_STREAM_END)
        (void)inflateReset(&input->gzip);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return broken(input, input->gzip.msg ? input->gzip.msg : "not what gzip writes", error);
    return STATUS_OK;
}

static enum status read_zstd(struct trace_input *input, void *bytes, size_t room, size_t *got,
                             struct error *error)
{
    ZSTD_inBuffer in = {input->window, input->filled, input->used};
    ZSTD_outBuffer out = {bytes, room, 0};
    size_t result = ZSTD_decompressStream(input->zstd, &out, &in);
    input->used = in.pos;
    *got = out.pos;
    input->inside = result != 0;
    if (ZSTD_isError(result))
        return broken(input, ZSTD_getErrorName(result), error);
    return STATUS_OK;
}

enum status trace_input_read(struct trace_input *input, void *bytes, size_t room, size_t *got,
                             struct error *error)
{
    room = room < (1u << 30) ? room : 1u << 30;
    *got = 0;
    bool drained = false; /* the last fill found the end of the file */
    while (!*got) {
        if (input->used == input->filled && !drained) {
            enum status status = fill(input, error);
            if (status)
                return status;
            drained = !input->filled;
        }
        if (input->packing == PACKING_NONE) {
            *got = input->filled - input->used;
            *got = *got < room ? *got : room;
            memcpy(bytes, input->window + input->used, *got);
            input->used += *got;
            return STATUS_OK;
        }
        if (drained && !input->inside)
            return STATUS_OK;
        enum status status = input->packing == PACKING_GZIP
                                 ? read_gzip(input, bytes, room, got, error)
                                 : read_zstd(input, bytes, room, got, error);
        if (status)
            return status;
        if (drained && !*got && input->inside)
            return broken(input, "it ends too soon", error);
    }
    return STATUS_OK;
}

enum status trace_input_rewind(struct trace_input *input, struct error *error)
{
    if (lseek(input->file, 0, SEEK_SET) != 0)
        return error_set(error, STATUS_IO, "%s: cannot be read a second time: %s", input->path,
                         strerror(errno));
    if (input->packing == PACKING_GZIP)
        (void)inflateReset(&input->gzip);
    else if (input->packing == PACKING_ZSTD)
        (void)ZSTD_DCtx_reset(input->zstd, ZSTD_reset_session_only);
    input->inside = false;
    input->used = input->filled = 0;
    return STATUS_OK;
}

int trace_input_file(const struct trace_input *input)
{
    return input->packing == PACKING_NONE ? input->file : -1;
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
    if (input->packing == PACKING_GZIP)
        (void)inflateEnd(&input->gzip);
    ZSTD_freeDStream(input->zstd);
    free(input->path);
    free(input);
}
