/* The bytes of a file, plain, gzip (zlib) or zstd (libzstd).
 *
 * A window of the file is read ahead. If the file is compressed, the window feeds the decompressor.
 * Several gzip members or zstd frames, one after the other, are one stream. */
#include "workloads/io/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { WINDOW = 1 << 17 };
#define GUARD_BYTES (UINT64_C(64) << 20)
#define GUARD_RATIO 128u

enum packing { PLAIN, GZIP, ZSTD };

struct trace_input {
    char *path;
    int file;
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
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

static enum ar_status start_unpacking(struct trace_input *input, struct ar_error *error)
{
    bool gzip = input->filled >= 2 && !memcmp(input->window, "\x1f\x8b", 2);
    bool zstd = input->filled >= 4 && !memcmp(input->window, "\x28\xb5\x2f\xfd", 4);
    if (gzip && inflateInit2(&input->gzip, 15 + 16) == Z_OK)
        input->packing = GZIP;
    if (zstd && (input->zstd = ZSTD_createDStream()))
        input->packing = ZSTD;
    if ((gzip || zstd) && input->packing == PLAIN)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read %s", input->path,
                            gzip ? "gzip" : "zstd");
    return AR_OK;
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
    enum ar_status status = AR_OK;
    input->file = open(path, O_RDONLY | O_CLOEXEC);
    if (input->file < 0)
        status = ar_error_set(error, AR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (!status)
        status = fill(input, error);
    if (!status)
        status = start_unpacking(input, error);
    if (status) {
        trace_input_close(input);
        return status;
    }
    *out = input;
    return AR_OK;
}

static enum ar_status broken(const struct trace_input *input, const char *form, const char *why,
                             struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT,
                        "%s: its %s compression is broken (%s): copy the file or make it again",
                        input->path, form, why);
}

/* Unpacks from the window; `*used` bytes of it are done with. */
static enum ar_status step_gzip(struct trace_input *input, void *bytes, size_t room, size_t *used,
                                size_t *got, struct ar_error *error)
{
    z_stream *gzip = &input->gzip;
    unsigned char *from = input->window + input->used;
    gzip->next_in = from;
    gzip->avail_in = (unsigned)(input->filled - input->used);
    gzip->next_out = bytes;
    gzip->avail_out = (unsigned)(room < INT_MAX ? room : INT_MAX);
    int result = inflate(gzip, Z_NO_FLUSH);
    *used = (size_t)(gzip->next_in - from);
    *got = (size_t)(gzip->next_out - (unsigned char *)bytes);
    input->inside = result != Z_STREAM_END;
    if (result == Z_STREAM_END)
        (void)inflateReset(gzip);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return broken(input, "gzip", gzip->msg ? gzip->msg : "not what gzip writes", error);
    return AR_OK;
}

static enum ar_status step_zstd(struct trace_input *input, void *bytes, size_t room, size_t *used,
                                size_t *got, struct ar_error *error)
{
    ZSTD_inBuffer from = {input->window + input->used, input->filled - input->used, 0};
    ZSTD_outBuffer to = {bytes, room, 0};
    size_t result = ZSTD_decompressStream(input->zstd, &to, &from);
    *used = from.pos;
    *got = to.pos;
    input->inside = result != 0;
    if (ZSTD_isError(result))
        return broken(input, "zstd", ZSTD_getErrorName(result), error);
    return AR_OK;
}

static enum ar_status read_plain(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                 struct ar_error *error)
{
    if (input->used == input->filled) {
        AR_TRY(fill(input, error));
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
    if (input->packing == PLAIN)
        return read_plain(input, bytes, room, got, error);
    bool drained = false; /* the end of the file was found */
    while (!*got) {
        size_t used;
        if (input->used == input->filled && !drained) {
            AR_TRY(fill(input, error));
            drained = !input->filled;
        }
        if (drained && !input->inside)
            return AR_OK;
        AR_TRY(input->packing == GZIP ? step_gzip(input, bytes, room, &used, got, error)
                                      : step_zstd(input, bytes, room, &used, got, error));
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
    if (input->packing == GZIP)
        (void)inflateReset(&input->gzip);
    if (input->packing == ZSTD)
        (void)ZSTD_DCtx_reset(input->zstd, ZSTD_reset_session_only);
    input->packed = input->unpacked = 0;
    input->inside = false;
    input->used = input->filled = 0;
    return AR_OK;
}

enum ar_status trace_input_head(struct trace_input *input, char *bytes, size_t room, size_t *count,
                                struct ar_error *error)
{
    size_t got = 1;
    enum ar_status status = AR_OK;
    *count = 0;
    while (!status && got && *count < room) {
        status = trace_input_read(input, bytes + *count, room - *count, &got, error);
        *count += status ? 0 : got;
    }
    return status ? status : trace_input_rewind(input, error);
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
    return input->packing == PLAIN ? input->file : -1;
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
    if (input->packing == GZIP)
        (void)inflateEnd(&input->gzip);
    ZSTD_freeDStream(input->zstd);
    free(input->path);
    free(input);
}
