/* Reading: plain, gzip (zlib) or zstd (libzstd). A window of the file is read ahead. If the file is
 * compressed, the window feeds the decompressor. Several gzip members or zstd frames, one after the
 * other, are one stream. A page of PyTorch's memory viewer (torch/cuda/_memory_viz.py) has the file
 * that it shows within it, in base64. */
#include "workloads/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { WINDOW = 1 << 17 };
#define GUARD_BYTES (UINT64_C(64) << 20)
#define GUARD_RATIO 128u

enum packing { PLAIN, GZIP, ZSTD, PAGE };

struct trace_input {
    char *path;
    int file;
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool inside;               /* a member or frame has begun and not ended */
    bool guarded;              /* see trace_input_guard */
    bool ended;                /* the text of a page has ended */
    size_t text;               /* of a page: where its text begins */
    unsigned bits, bit_count;  /* of the text, not given out yet */
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

static enum ar_status no_memory(const struct trace_input *input, const char *form,
                                struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read %s", input->path, form);
}

/* The place behind the first `"base64": "` of a page; 0: there is none. */
static size_t find_text(const unsigned char *bytes, size_t count)
{
    static const char mark[] = "\"base64\":";
    size_t at = 0, length = sizeof mark - 1;
    while (at < count && strchr(" \t\r\n", bytes[at]))
        at++;
    for (at = at < count && bytes[at] == '<' ? at : count; at + length + 2 < count; at++)
        if (memcmp(bytes + at, mark, length) == 0) {
            at += length + (bytes[at + length] == ' ');
            return bytes[at] == '"' ? at + 1 : 0;
        }
    return 0;
}

static enum ar_status start_unpacking(struct trace_input *input, struct ar_error *error)
{
    bool gzip = input->filled >= 2 && !memcmp(input->window, "\x1f\x8b", 2);
    bool zstd = input->filled >= 4 && !memcmp(input->window, "\x28\xb5\x2f\xfd", 4);
    if (gzip && inflateInit2(&input->gzip, 15 + 16) == Z_OK)
        input->packing = GZIP;
    if (zstd && (input->zstd = ZSTD_createDStream()))
        input->packing = ZSTD;
    input->used = input->text = find_text(input->window, input->filled);
    if (input->text)
        input->packing = PAGE;
    if ((gzip || zstd) && input->packing == PLAIN)
        return no_memory(input, gzip ? "gzip" : "zstd", error);
    return AR_OK;
}

enum ar_status trace_input_open(const char *path, struct trace_input **out, struct ar_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return ar_error_set(error, AR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return ar_invalid(error, "%s: is a directory; name a trace file in it instead", path);
    struct trace_input *input = calloc(1, sizeof *input);
    if (!input || !(input->path = strdup(path))) {
        free(input);
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", path);
    }
    enum ar_status status = AR_OK;
    input->file = open(path, O_RDONLY | O_CLOEXEC);
    if (input->file < 0)
        status = ar_error_set(error, AR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    AR_THEN(status, fill(input, error));
    AR_THEN(status, start_unpacking(input, error));
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
    else if (result == Z_MEM_ERROR)
        return no_memory(input, "gzip", error);
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
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return no_memory(input, "zstd", error);
    if (ZSTD_isError(result))
        return broken(input, "zstd", ZSTD_getErrorName(result), error);
    return AR_OK;
}

static enum ar_status step_page(struct trace_input *input, void *bytes, size_t room, size_t *used,
                                size_t *got, struct ar_error *error)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = input->window + input->used;
    unsigned char *to = bytes;
    input->inside = true;
    for (*used = 0; *used < input->filled - input->used && *got < room && !input->ended; ++*used) {
        unsigned char letter = from[*used];
        const char *digit = letter ? strchr(digits, letter) : NULL;
        input->ended = letter == '"';
        if (!digit && !input->ended && letter != '=' && letter != '\\')
            return broken(input, "base64", "a character that it does not have", error);
        if (!digit)
            continue;
        input->bits = (input->bits << 6 | (unsigned)(digit - digits)) & 0x3fff;
        input->bit_count += 6;
        if (input->bit_count < 8)
            continue;
        input->bit_count -= 8;
        to[(*got)++] = (unsigned char)(input->bits >> input->bit_count);
    }
    input->inside = !input->ended;
    return AR_OK;
}

static enum ar_status read_plain(struct trace_input *input, void *bytes, size_t room, size_t *got,
                                 struct ar_error *error)
{
    if (input->used == input->filled)
        AR_TRY(fill(input, error));
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
        if (input->ended || (drained && !input->inside))
            return AR_OK;
        AR_TRY(input->packing == GZIP   ? step_gzip(input, bytes, room, &used, got, error)
               : input->packing == PAGE ? step_page(input, bytes, room, &used, got, error)
                                        : step_zstd(input, bytes, room, &used, got, error));
        input->used += used;
        input->packed += used;
        input->unpacked += *got;
        if (input->guarded && input->unpacked > GUARD_BYTES + GUARD_RATIO * input->packed)
            return ar_error_set(error, AR_FORMAT,
                                "%s: it unpacks to more than %u times its size, as no recording "
                                "does; unpack it first if it is one",
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
    if (lseek(input->file, (off_t)input->text, SEEK_SET) != (off_t)input->text)
        return ar_error_set(error, AR_IO,
                            "%s: cannot be read a second time: %s; write it to a file first",
                            input->path, strerror(errno));
    if (input->packing == GZIP)
        (void)inflateReset(&input->gzip);
    if (input->packing == ZSTD)
        (void)ZSTD_DCtx_reset(input->zstd, ZSTD_reset_session_only);
    input->packed = input->unpacked = 0;
    input->inside = input->ended = false;
    input->bits = input->bit_count = 0;
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

/* ---- writing ---- */

/* The bytes go to a new file in the same folder, which is renamed at the end: a rename within a
 * folder happens as a whole or not at all. A compressed file is one zstd frame with a checksum. */
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
    return ar_error_set(error, AR_IO, "%s: %s: %s%s", output->path, what, strerror(number),
                        output->part ? "; nothing was written" : "");
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

static enum ar_status open_standard(struct trace_output *output, struct ar_error *error)
{
    output->file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return output->file < 0 ? failed(output, "cannot be written", errno, error) : AR_OK;
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
    bool standard = strcmp(path, "-") == 0;
    bool there = !standard && stat(path, &about) == 0;
    if (there && S_ISDIR(about.st_mode))
        return ar_invalid(error, "%s: is a directory; name a file in it instead", path);
    struct trace_output *output = calloc(1, sizeof *output);
    if (!output)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write it", path);
    output->file = -1;
    output->path = file_behind_links(path);
    enum ar_status status = AR_OK;
    if (!output->path)
        status = ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write it", path);
    if (!status && compress)
        status = start_packing(output, error);
    if (standard && !status)
        status = open_standard(output, error);
    else
        AR_THEN(status, open_file(output, there && !S_ISREG(about.st_mode), error));
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
    if (ZSTD_getErrorCode(*left) == ZSTD_error_memory_allocation)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to write zstd",
                            output->path);
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
    AR_THEN(status, flush(output, error));
    AR_TRY(status);
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

int file_temporary(char *path, size_t room)
{
    const char *folder = getenv("TMPDIR");
    int used = snprintf(path, room, "%s/allocrig-XXXXXX", folder && *folder ? folder : "/tmp");
    if (used < 0 || (size_t)used >= room) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkostemp(path, O_CLOEXEC);
}
