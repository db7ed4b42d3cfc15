#include "bench/plugin/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/report/output_file.h"
#include "sim/replay/timing.h"

#define LINES_BYTES 512u

/* Replaces control characters, which a line cannot contain, by spaces. */
static void plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
}

enum ar_status recording_open(struct recording *self, const char *path,
                              const struct recording_head *head, struct ar_error *error)
{
    char lines[LINES_BYTES + 1024], policy[512], card[128];
    snprintf(policy, sizeof policy, "%s", head->policy);
    snprintf(card, sizeof card, "%s", head->card);
    plain(policy);
    plain(card);
    int length = snprintf(lines, sizeof lines,
                          "# allocrig-trace 1\n# recorder: allocrig-plugin 1\n# conf: %s\n"
                          "# capacity: %" PRIu64 "\n# card: %s\n# let-go: final\n",
                          policy, head->capacity_bytes, card);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || !file_write_all(file, lines, (size_t)length)) {
        int why = errno;
        struct stat about;
        if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode))
            (void)unlink(path);
        if (file >= 0)
            (void)close(file);
        return ar_error_set(error, AR_IO, "%s (ALLOCRIG_TRACE) cannot be written: %s", path,
                            strerror(why));
    }
    self->path = path;
    self->begun_ns = latency_clock_ns();
    __atomic_store_n(&self->file, file, __ATOMIC_RELAXED);
    return AR_OK;
}

static void stop(struct recording *self)
{
    (void)close(self->file);
    __atomic_store_n(&self->file, -1, __ATOMIC_RELAXED);
}

void recording_close(struct recording *self)
{
    pthread_mutex_lock(&self->lock);
    if (self->file >= 0)
        stop(self);
    pthread_mutex_unlock(&self->lock);
}

/* Writes the time if it changed, and the lines. The caller has the lock. */
__attribute__((format(printf, 2, 3))) static void put(struct recording *self, const char *format,
                                                      ...)
{
    char lines[LINES_BYTES];
    int length = 0;
    uint64_t now_us = (latency_clock_ns() - self->begun_ns) / 1000;
    if (self->file < 0)
        return;
    if (now_us > self->last_us) {
        self->last_us = now_us;
        length = snprintf(lines, sizeof lines, "t,%" PRIu64 "\n", now_us * 1000);
    }
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(lines + length, sizeof lines - (size_t)length, format, arguments);
    va_end(arguments);
    if (file_write_all(self->file, lines, (size_t)length))
        return;
    fprintf(stderr,
            "allocrig: %s cannot be written any more: %s; the part written so far can be read\n",
            self->path, strerror(errno));
    stop(self);
}

/* The fields after the size: stream, keys. */
static void fields(char *text, size_t text_bytes, const struct recording_request *request)
{
    char on[16] = "", in[24] = "", of[24] = "";
    if (request->stream)
        snprintf(on, sizeof on, ",%" PRIu32, request->stream);
    if (request->pool)
        snprintf(in, sizeof in, ",pool=%" PRIu32, request->pool);
    if (request->device)
        snprintf(of, sizeof of, ",device=%u", request->device);
    snprintf(text, text_bytes, "%s%s%s", on, in, of);
}

uint64_t recording_served(struct recording *self, const struct recording_request *request)
{
    char rest[64];
    fields(rest, sizeof rest, request);
    pthread_mutex_lock(&self->lock);
    uint64_t id = self->next_id++;
    put(self, "a,%" PRIu64 ",%" PRIu64 "%s\n", id, request->bytes, rest);
    pthread_mutex_unlock(&self->lock);
    return id;
}

void recording_failed(struct recording *self, const struct recording_request *request,
                      uint64_t free_bytes)
{
    char rest[64];
    fields(rest, sizeof rest, request);
    pthread_mutex_lock(&self->lock);
    uint64_t id = self->next_id++;
    put(self, "p,%" PRIu64 ",%" PRIu64 "%s\n!,oom,%" PRIu64 "\nr,%" PRIu64 "\n", id, request->bytes,
        rest, free_bytes, id);
    pthread_mutex_unlock(&self->lock);
}

void recording_free_requested(struct recording *self, uint64_t id, uint32_t own, uint32_t stream)
{
    char on[16] = "";
    if (stream != own)
        snprintf(on, sizeof on, ",%" PRIu32, stream);
    pthread_mutex_lock(&self->lock);
    put(self, "r,%" PRIu64 "%s\n", id, on);
    pthread_mutex_unlock(&self->lock);
}

void recording_use(struct recording *self, uint64_t id, uint32_t stream)
{
    pthread_mutex_lock(&self->lock);
    put(self, "u,%" PRIu64 ",%" PRIu32 "\n", id, stream);
    pthread_mutex_unlock(&self->lock);
}

void recording_trim(struct recording *self, uint32_t pool)
{
    char in[24] = "";
    if (pool)
        snprintf(in, sizeof in, ",pool=%" PRIu32, pool);
    pthread_mutex_lock(&self->lock);
    put(self, "c%s\n", in);
    pthread_mutex_unlock(&self->lock);
}

void recording_mark(struct recording *self, const char *label)
{
    char text[256];
    snprintf(text, sizeof text, "%s", label);
    plain(text);
    for (char *at = text; *at; at++)
        if (*at == ',')
            *at = ' ';
    pthread_mutex_lock(&self->lock);
    if (*text)
        put(self, "m,%s\n", text);
    pthread_mutex_unlock(&self->lock);
}
