/* A file that appears whole or not at all.
 *
 * What: bytes go to a new file in the same folder, which is renamed at the end; a rename
 * within a folder either happens or does not. */
#include "workloads/trace/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

enum { BUFFER = 1 << 17, LEVEL = 6 };

struct trace_output {
    char *path;
    char *part; /* the name until it is whole; NULL: written directly */
    int file;
    ZSTD_CStream *zstd;
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

static enum status failed(const struct trace_output *output, const char *what, int number,
                          struct error *error)
{
    return error_set(error, STATUS_IO, "%s: %s: %s; nothing was written", output->path, what,
                     strerror(number));
}

static enum status open_file(struct trace_output *output, bool direct, struct error *error)
{
    if (direct) {
        output->file = open(output->path, O_WRONLY | O_CLOEXEC);
    } else {
        size_t room = strlen(output->path) + 40;
        output->part = malloc(room);
        if (!output->part)
            return error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to write it",
                             output->path);
        (void)snprintf(output->part, room, "%s.part-%ld", output->path, (long)getpid());
        output->file = open(output->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (output->file < 0)
        return failed(output, "cannot be made", errno, error);
    return STATUS_OK;
}

enum status trace_output_open(const char *path, bool compress, struct trace_output **out,
                              struct error *error)
{
    struct stat about;
    bool there = stat(path, &about) == 0;
    if (there && S_ISDIR(about.st_mode))
        return error_set(error, STATUS_INVALID, "%s: is a directory; name a file in it instead",
                         path);
    struct trace_output *output = calloc(1, sizeof *output);
    if (!output)
        return error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to write it", path);
    output->file = -1;
    output->path = there ? realpath(path, NULL) : strdup(path);
    enum status status = STATUS_OK;
    if (!output->path)
        status = error_set(error, STATUS_IO, "%s: cannot be made: %s", path, strerror(errno));
    if (!status && compress) {
        output->zstd = ZSTD_createCStream();
        if (!output->zstd || ZSTD_isError(ZSTD_initCStream(output->zstd, LEVEL)))
            status = error_set(error, STATUS_HOST_MEMORY, "%s: no host memory to write zstd", path);
        if (!status)
            (void)ZSTD_CCtx_setParameter(output->zstd, ZSTD_c_checksumFlag, 1);
    }
    if (!status)
        status = open_file(output, there && !S_ISREG(about.st_mode), error);
    if (status) {
        trace_output_discard(output);
        return status;
    }
    *out = output;
    return STATUS_OK;
}

static enum status flush(struct trace_output *output, struct error *error)
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
    return STATUS_OK;
}

/* Feeds the compressor; `*left` is what it still holds. */
static enum status pack(struct trace_output *output, ZSTD_inBuffer *in, ZSTD_EndDirective how,
                        size_t *left, struct error *error)
{
    ZSTD_outBuffer out = {output->buffer, BUFFER, output->used};
    *left = ZSTD_compressStream2(output->zstd, &out, in, how);
    output->used = out.pos;
    if (ZSTD_isError(*left))
        return error_set(error, STATUS_IO, "%s: cannot be compressed: %s", output->path,
                         ZSTD_getErrorName(*left));
    return output->used == BUFFER ? flush(output, error) : STATUS_OK;
}

enum status trace_output_write(struct trace_output *output, const void *bytes, size_t count,
                               struct error *error)
{
    enum status status = STATUS_OK;
    if (output->zstd) {
        ZSTD_inBuffer in = {bytes, count, 0};
        size_t left;
        while (in.pos < in.size && !status)
            status = pack(output, &in, ZSTD_e_continue, &left, error);
        return status;
    }
    const char *from = bytes;
    while (count && !status) {
        size_t room = BUFFER - output->used;
        size_t take = count < room ? count : room;
        memcpy(output->buffer + output->used, from, take);
        output->used += take;
        from += take;
        count -= take;
        if (output->used == BUFFER)
            status = flush(output, error);
    }
    return status;
}

static enum status finish(struct trace_output *output, struct error *error)
{
    enum status status = STATUS_OK;
    if (output->zstd) {
        ZSTD_inBuffer in = {NULL, 0, 0};
        size_t left = 1;
        while (left && !status)
            status = pack(output, &in, ZSTD_e_end, &left, error);
    }
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

enum status trace_output_commit(struct trace_output *output, struct error *error)
{
    enum status status = finish(output, error);
    if (status)
        trace_output_discard(output);
    else
        free_output(output);
    return status;
}
