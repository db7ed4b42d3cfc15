#include "bench/suite/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/fnv.h"
#include "allocators/base/size.h"
#include "bench/report/output_file.h"
#include "sim/replay/timing.h"
#include "workloads/io/file.h"

#define REDRAW_NS UINT64_C(100000000)
#define SECOND_NS UINT64_C(1000000000)

void progress_begin(struct progress *self, size_t total)
{
    uint64_t now = latency_clock_ns();
    const char *text = getenv("ALLOCRIG_PROGRESS");
    uint64_t seconds = 0;
    struct ar_error ignored;
    bool given = text && ar_count_parse(text, &seconds, &ignored) == AR_OK;
    *self = (struct progress){
        .shown = isatty(STDERR_FILENO) == 1, .total = total, .began_ns = now, .drawn_ns = now};
    self->lines = !self->shown && given;
    self->every_ns = !self->lines                       ? REDRAW_NS
                     : seconds < UINT64_MAX / SECOND_NS ? seconds * SECOND_NS
                                                        : UINT64_MAX;
}

void progress_text(const struct progress *self, uint64_t now_ns, const char *label, char *text,
                   size_t room)
{
    if (self->total < self->done) {
        snprintf(text, room, "%zu: %.50s", self->done, label);
        return;
    }
    double spent_s = (double)(now_ns - self->began_ns) / 1e9;
    long left_s = (long)(spent_s * (double)(self->total - self->done) / (double)self->done);
    snprintf(text, room, "%zu of %zu, %ld:%02ld left: %.50s", self->done, self->total, left_s / 60,
             left_s % 60, label);
}

void progress_step(struct progress *self, const char *label)
{
    self->done++;
    if (!self->shown && !self->lines)
        return;
    uint64_t now = latency_clock_ns();
    if (now - self->drawn_ns < self->every_ns)
        return;
    self->drawn_ns = now;
    char text[160];
    progress_text(self, now, label, text, sizeof text);
    fprintf(stderr, self->lines ? "%s\n" : "\r\033[K%s", text);
    fflush(stderr);
}

void progress_end(struct progress *self)
{
    if (self->shown)
        fprintf(stderr, "\r\033[K");
}

#define HEAD_MAGIC UINT64_C(0x31776c616e72756f) /* "ournalw1" in memory */
#define MOST_BYTES UINT64_C(1048576)

struct head {
    uint64_t magic, key;
};

struct record_head {
    uint64_t run, bytes, check;
};

/* Of all of a record, from a start that is not 0: zeros after a power failure are no record. */
static uint64_t check_of(const struct record_head *head, const void *payload)
{
    return ar_fnv64(ar_fnv64(AR_FNV64_SEED, head, offsetof(struct record_head, check)), payload,
                    head->bytes);
}

uint64_t journal_add_file(uint64_t hash, const char *path)
{
    char bytes[65536];
    FILE *file = fopen(path, "re");
    for (size_t count; file && (count = fread(bytes, 1, sizeof bytes, file)) > 0;)
        hash = ar_fnv64(hash, bytes, count);
    if (file)
        fclose(file);
    return hash;
}

static bool add_part(void *hash, const char *path)
{
    *(uint64_t *)hash = journal_add_file(*(uint64_t *)hash, path);
    return false;
}

uint64_t journal_add_spec(uint64_t hash, const char *text)
{
    hash = ar_fnv64(hash, text, strlen(text) + 1);
    file_parts(text, " \t" FILE_PARTS_SPEC, add_part, &hash);
    return hash;
}

uint64_t journal_key(void)
{
    return journal_add_file(AR_FNV64_SEED, "/proc/self/exe");
}

static bool read_all(int file, void *bytes, size_t count)
{
    char *at = bytes;
    while (count) {
        ssize_t got = read(file, at, count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        count -= (size_t)got;
    }
    return true;
}

static enum ar_status write_all(const struct journal *self, const void *bytes, size_t count,
                                struct ar_error *error)
{
    return file_write_all(self->file, bytes, count)
               ? AR_OK
               : ar_error_set(error, AR_IO, "%s: cannot be written: %s", self->path,
                              strerror(errno));
}

/* Reads one record. False: there is none, or it is not whole. */
static bool read_record(const struct journal *self, journal_take *take, void *argument)
{
    struct record_head head;
    if (!read_all(self->file, &head, sizeof head) || head.bytes > MOST_BYTES)
        return false;
    void *bytes = malloc(head.bytes ? head.bytes : 1);
    bool whole = bytes && read_all(self->file, bytes, head.bytes) &&
                 check_of(&head, bytes) == head.check &&
                 take(argument, head.run, bytes, head.bytes);
    free(bytes);
    return whole;
}

static enum ar_status read_journal(struct journal *self, uint64_t key, journal_take *take,
                                   void *argument, struct ar_error *error)
{
    const struct head wanted = {HEAD_MAGIC, key};
    struct head head;
    struct stat about;
    if (flock(self->file, LOCK_EX | LOCK_NB) != 0)
        return ar_invalid(error,
                          "%s: another process is writing to it; wait for its end, or name another "
                          "with --journal",
                          self->path);
    if (fstat(self->file, &about) != 0)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", self->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return ar_invalid(error, "%s: is no file that a journal can be kept in", self->path);
    bool whole = about.st_size >= (off_t)sizeof head;
    size_t there = whole ? sizeof head : (size_t)about.st_size;
    size_t same = there < sizeof head.magic ? there : sizeof head.magic;
    if (!read_all(self->file, &head, there) || memcmp(&head, &wanted, same) != 0)
        return ar_invalid(error, "%s: is no journal, and stays as it is; name another file",
                          self->path);
    if (whole && head.key != wanted.key)
        return ar_invalid(error,
                          "%s: is the journal of another sweep or suite, of another scenario, or "
                          "of another build of this program; remove it to begin anew, or name "
                          "another with --journal",
                          self->path);
    if (!whole) { /* new, or killed within its head */
        if (ftruncate(self->file, 0) != 0 || lseek(self->file, 0, SEEK_SET) != 0)
            return ar_error_set(error, AR_IO, "%s: cannot be written: %s", self->path,
                                strerror(errno));
        return write_all(self, &wanted, sizeof wanted, error);
    }
    off_t end = (off_t)sizeof head;
    while (read_record(self, take, argument))
        end = lseek(self->file, 0, SEEK_CUR);
    if (ftruncate(self->file, end) != 0 || lseek(self->file, end, SEEK_SET) != end)
        return ar_error_set(error, AR_IO, "%s: cannot be written: %s", self->path, strerror(errno));
    return AR_OK;
}

enum ar_status journal_open(struct journal *self, const char *path, uint64_t key,
                            journal_take *take, void *argument, struct ar_error *error)
{
    self->path = path;
    self->synced_ns = latency_clock_ns();
    if (!*path || strcmp(path, "-") == 0)
        return ar_invalid(error, "\"%s\" is no journal: it is read again, so name a file", path);
    bool made = false;
    self->file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (self->file < 0 && errno == ENOENT) {
        self->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        made = self->file >= 0;
    }
    if (self->file < 0)
        return ar_error_set(error, AR_IO, "%s: cannot be written: %s", path, strerror(errno));
    enum ar_status status = read_journal(self, key, take, argument, error);
    if (status && made)
        (void)unlink(path);
    if (status)
        close(self->file);
    return status;
}

enum ar_status journal_add(struct journal *self, uint64_t run, const void *payload, size_t bytes,
                           struct ar_error *error)
{
    enum ar_status status = AR_OK;
    struct record_head head = {.run = run, .bytes = bytes};
    head.check = check_of(&head, payload);
    char *whole = malloc(sizeof head + bytes);
    if (whole) {
        memcpy(whole, &head, sizeof head);
        memcpy(whole + sizeof head, payload, bytes);
        status = write_all(self, whole, sizeof head + bytes, error);
    } else {
        status = ar_no_memory(error, "the journal");
    }
    free(whole);
    uint64_t now = latency_clock_ns();
    if (!status && now - self->synced_ns > UINT64_C(1000000000)) {
        self->synced_ns = now;
        (void)fdatasync(self->file);
    }
    return status;
}

void journal_close(struct journal *self, bool remove)
{
    if (remove)
        unlink(self->path);
    close(self->file);
}
