/* A file that appears whole or not at all.
 *
 * The bytes go to a new file in the same folder, which is renamed at the end: a rename within a
 * folder happens as a whole or not at all. A compressed file is one zstd frame with a checksum. */
#include "workloads/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { BUFFER = 1 << 17, LEVEL = 6 };

struct trace_output {
    char *path;
    char *part; /* the name until the file is whole; NULL: written directly */
    int file;
    ZSTD_CStream *zstd; /* NULL: not compressed */
    size_t used;
    char buffer[BUFFER];
};

static void free_output(struct trace_output *output)
{
    ZSTD_freeCStream(output->zstd);
    free(output->path);
    free(output->part);
    free(output);
}

void trace_output_discard(struct trace_output *output)
{
    if (!output)
        return;
    if (output->file >= 0) {
        close(output->file);
        if (output->part)
            (void)unlink(output->part);
    }
    free_output(output);
}

static enum ar_status failed(const struct trace_output *output, const char *what, int number,
                             struct ar_error *error)
{
    return ar_error_set(error, AR_IO, "%s: %s: %s; nothing was written", output->path, what,
                        strerror(number));
}

static enum ar_status open_file(struct trace_output *output, bool direct, struct ar_error *error)
{
    if (direct) {
        output->file = open(output->path, O_WRONLY | O_CLOEXEC);
    } else {
        size_t room = strlen(output->path) + 40;
        output->part = malloc(room);
        if (!output->part)
            return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write it",
                                output->path);
        (void)snprintf(output->part, room, "%s.part-%ld", output->path, (long)getpid());
        output->file = open(output->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (output->file < 0)
        return failed(output, "cannot be made", errno, error);
    return AR_OK;
}

static enum ar_status start_packing(struct trace_output *output, struct ar_error *error)
{
    output->zstd = ZSTD_createCStream();
    if (!output->zstd ||
        ZSTD_isError(ZSTD_CCtx_setParameter(output->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(output->zstd, ZSTD_c_checksumFlag, 1)))
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write zstd",
                            output->path);
    return AR_OK;
}

enum ar_status trace_output_open(const char *path, bool compress, struct trace_output **out,
                                 struct ar_error *error)
{
    struct stat about;
    bool there = stat(path, &about) == 0;
    if (there && S_ISDIR(about.st_mode))
        return ar_error_set(error, AR_INVALID, "%s: is a directory; name a file in it instead",
                            path);
    struct trace_output *output = calloc(1, sizeof *output);
    if (!output)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write it", path);
    output->file = -1;
    output->path = there ? realpath(path, NULL) : strdup(path);
    enum ar_status status = AR_OK;
    if (!output->path)
        status = ar_error_set(error, AR_IO, "%s: cannot be made: %s", path, strerror(errno));
    if (!status && compress)
        status = start_packing(output, error);
    if (!status)
        status = open_file(output, there && !S_ISREG(about.st_mode), error);
    if (status) {
        trace_output_discard(output);
        return status;
    }
    *out = output;
    return AR_OK;
}

static enum ar_status flush(struct trace_output *output, struct ar_error *error)
{
    for (size_t at = 0; at < output->used;) {
        ssize_t wrote = write(output->file, output->buffer + at, output->used - at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return failed(output, "cannot be written", wrote < 0 ? errno : ENOSPC, error);
        at += (size_t)wrote;
    }
    output->used = 0;
    return AR_OK;
}

/* Runs the compressor once. `*left`: bytes that it still keeps back. */
static enum ar_status pack(struct trace_output *output, ZSTD_inBuffer *from, bool end, size_t *left,
                           struct ar_error *error)
{
    ZSTD_outBuffer to = {output->buffer, BUFFER, output->used};
    *left = ZSTD_compressStream2(output->zstd, &to, from, end ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(*left))
        return ar_error_set(error, AR_IO, "%s: cannot be compressed: %s", output->path,
                            ZSTD_getErrorName(*left));
    output->used = to.pos;
    return output->used == BUFFER ? flush(output, error) : AR_OK;
}

enum ar_status trace_output_write(struct trace_output *output, const void *bytes, size_t count,
                                  struct ar_error *error)
{
    enum ar_status status = AR_OK;
    ZSTD_inBuffer from = {bytes, count, 0};
    size_t left;
    while (from.pos < count && !status) {
        if (output->zstd) {
            status = pack(output, &from, false, &left, error);
            continue;
        }
        size_t room = BUFFER - output->used;
        size_t take = count - from.pos < room ? count - from.pos : room;
        memcpy(output->buffer + output->used, (const char *)bytes + from.pos, take);
        output->used += take;
        from.pos += take;
        if (output->used == BUFFER)
            status = flush(output, error);
    }
    return status;
}

enum ar_status trace_output_print(struct trace_output *output, struct ar_error *error,
                                  const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return trace_output_write(output, line, (size_t)length, error);
}

static enum ar_status finish(struct trace_output *output, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    ZSTD_inBuffer nothing = {NULL, 0, 0};
    size_t left = output->zstd ? 1 : 0;
    while (left && !status)
        status = pack(output, &nothing, true, &left, error);
    if (!status)
        status = flush(output, error);
    if (status)
        return status;
    int closed = close(output->file);
    output->file = -1;
    if (closed != 0 || (output->part && rename(output->part, output->path) != 0)) {
        status = failed(output, "cannot be written", errno, error);
        if (output->part)
            (void)unlink(output->part);
    }
    return status;
}

enum ar_status trace_output_commit(struct trace_output *output, struct ar_error *error)
{
    enum ar_status status = finish(output, error);
    if (status)
        trace_output_discard(output);
    else
        free_output(output);
    return status;
}
