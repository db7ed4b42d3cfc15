/* The file of a history: reading, and adding a line (history.h has the rules). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/regress/history.h"
#include "bench/regress/waivers.h"

#define BEGINNING "{\"schema\": \"" HISTORY_SCHEMA "\""

static enum ar_status no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory left for the history");
}

static enum ar_status failed(const char *path, const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_IO, "%s: cannot be %s: %s", path, what, strerror(errno));
}

bool history_is_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    char date[11];
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    memcpy(date, text, 10);
    date[10] = '\0';
    return waivers_is_date(date) && memcmp(text + 11, "24", 2) < 0 && text[14] < '6' &&
           (text[17] < '6' || memcmp(text + 17, "60", 2) == 0);
}

/* All of an open file, with a 0 behind it. */
static enum ar_status read_all(int file, const char *path, char **text, size_t *bytes,
                               struct ar_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return failed(path, "read", error);
    if (!S_ISREG(about.st_mode))
        return ar_error_set(error, AR_IO, "%s: is no file that lines can be added to", path);
    size_t size = (size_t)about.st_size;
    *bytes = 0;
    *text = malloc(size + 1);
    if (!*text)
        return no_memory(error);
    while (*bytes < size) {
        ssize_t got = pread(file, *text + *bytes, size - *bytes, (off_t)*bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *bytes += (size_t)got;
    }
    (*text)[*bytes] = '\0';
    return *bytes == size ? AR_OK : failed(path, "read", error);
}

static enum ar_status add_line(struct history *self, const char *text, size_t bytes, size_t number,
                               struct ar_error *error)
{
    struct history_line line = {.number = number};
    if (bytes >= 7 && (memcmp(text, "<<<<<<<", 7) == 0 || memcmp(text, "=======", 7) == 0 ||
                       memcmp(text, ">>>>>>>", 7) == 0))
        return ar_error_set(
            error, AR_FORMAT,
            "the mark of a merge that was not finished; keep the lines of both sides "
            "and take the marks away");
    enum ar_status status = history_parse_line(self, text, bytes, &line, error);
    if (status)
        return status;
    struct history_line *lines = realloc(self->lines, (self->count + 1) * sizeof *lines);
    if (!lines) {
        history_drop_line(&line);
        return no_memory(error);
    }
    self->lines = lines;
    line.number = number;
    self->lines[self->count++] = line;
    return AR_OK;
}

/* Is a last line without its end what is left of a write? It begins as every line does. */
static bool is_torn(const char *text, size_t bytes)
{
    size_t shorter = bytes < sizeof BEGINNING - 1 ? bytes : sizeof BEGINNING - 1;
    return memcmp(text, BEGINNING, shorter) == 0;
}

static int by_time(const void *left, const void *right)
{
    const struct history_line *a = left;
    const struct history_line *b = right;
    int order = strcmp(a->time, b->time);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static enum ar_status read_lines(struct history *self, const char *path, const char *text,
                                 size_t bytes, struct ar_error *error)
{
    size_t number = 1;
    enum ar_status status = AR_OK;
    for (size_t at = 0, end; at < bytes && !status; at = end + 1, number++) {
        const char *found = memchr(text + at, '\n', bytes - at);
        end = found ? (size_t)(found - text) : bytes;
        status = add_line(self, text + at, end - at, number, error);
        if (status == AR_FORMAT && !found && is_torn(text + at, end - at)) {
            self->torn_bytes = end - at;
            status = AR_OK;
        }
        if (status)
            (void)ar_error_prefix(error, status, "%s:%zu", path, number);
    }
    if (self->count)
        qsort(self->lines, self->count, sizeof *self->lines, by_time);
    return status;
}

enum ar_status history_read(struct history *self, const char *path, struct ar_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    *self = (struct history){0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* of a pipe, too, for the sentence */
    if (file < 0)
        return failed(path, "read", error);
    enum ar_status status = flock(file, LOCK_SH) == 0 ? AR_OK : failed(path, "locked", error);
    if (!status)
        status = read_all(file, path, &text, &bytes, error);
    close(file);
    if (!status)
        status = read_lines(self, path, text, bytes, error);
    free(text);
    if (status)
        history_close(self);
    return status;
}

void history_close(struct history *self)
{
    for (size_t i = 0; i < self->count; i++)
        history_drop_line(&self->lines[i]);
    free(self->lines);
    for (size_t i = 0; i < self->text_count; i++)
        free(self->texts[i]);
    free(self->texts);
    *self = (struct history){0};
}

/* ---- adding --------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : a <= b && a >= b;
}

static bool same_run(const struct history_run *a, const struct history_run *b)
{
    bool same = same_text(a->policy, b->policy) && same_text(a->workload, b->workload) &&
                same_text(a->device, b->device) && same_text(a->frees, b->frees) &&
                same_text(a->host, b->host) && a->seed == b->seed &&
                same_text(a->sha256, b->sha256) && a->passed == b->passed &&
                a->played == b->played && a->first_failed_event == b->first_failed_event &&
                same_text(a->cause, b->cause);
    for (int m = 0; m < METRIC_COUNT && same; m++)
        same = same_number(a->values[m], b->values[m]) && a->timed[m] == b->timed[m];
    return same;
}

bool history_same_figures(const struct history_line *a, const struct history_line *b)
{
    bool same = a->run_count == b->run_count && a->count_count == b->count_count &&
                same_text(a->machine, b->machine);
    for (size_t i = 0; i < a->run_count && same; i++)
        same = same_run(&a->runs[i], &b->runs[i]);
    for (size_t i = 0; i < a->count_count && same; i++) {
        const struct side_count *left = &a->counts[i];
        const struct side_count *right = &b->counts[i];
        same = same_text(left->policy, right->policy) && same_text(left->trace, right->trace) &&
               same_text(left->kind, right->kind) && same_text(left->measure, right->measure) &&
               same_text(left->compiler, right->compiler) && same_number(left->value, right->value);
    }
    return same;
}

/* Cuts a torn line off, ends a whole one without end, and writes, all or nothing. */
static enum ar_status write_line(int file, const char *path, size_t whole, bool ends,
                                 const char *line, size_t bytes, struct ar_error *error)
{
    if (ftruncate(file, (off_t)whole) != 0 || lseek(file, 0, SEEK_END) < 0 ||
        (!ends && write(file, "\n", 1) != 1))
        return failed(path, "written", error);
    size_t done = 0;
    while (done < bytes) {
        ssize_t put = write(file, line + done, bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break;
        done += (size_t)put;
    }
    if (done == bytes && fsync(file) == 0)
        return AR_OK;
    enum ar_status status = failed(path, "written", error);
    (void)!ftruncate(file, (off_t)whole);
    return status;
}

/* Holds the new line against the file, which is locked, and adds it. */
static enum ar_status add_to(int file, const char *path, const char *line, size_t bytes,
                             struct history_added *added, struct ar_error *error)
{
    char *text = NULL;
    size_t there = 0;
    struct history history = {0};
    struct history_line now = {0};
    enum ar_status status = read_all(file, path, &text, &there, error);
    if (!status)
        status = read_lines(&history, path, text, there, error);
    if (!status)
        status = history_parse_line(&history, line, bytes - 1, &now, error);
    added->added = true;
    for (size_t i = 0; i < history.count && !status; i++)
        if (strcmp(history.lines[i].commit, now.commit) == 0 &&
            history_same_figures(&history.lines[i], &now))
            added->added = false;
    size_t whole = there - history.torn_bytes;
    if (!status && added->added) {
        bool ends = whole == 0 || text[whole - 1] == '\n';
        status = write_line(file, path, whole, ends, line, bytes, error);
        added->cut_bytes = history.torn_bytes;
    }
    history_drop_line(&now);
    history_close(&history);
    free(text);
    return status;
}

static enum ar_status check(const struct side *results, struct history_stamp *stamp,
                            struct ar_error *error)
{
    if (!results->machine)
        return ar_error_set(
            error, AR_INVALID,
            "there is no result among them (run --json), so nothing says where they "
            "were made");
    if (!stamp->commit && results->dirty)
        return ar_error_set(error, AR_INVALID,
                            "the results are of a tree with changes that no commit holds; commit "
                            "them and measure again, or name the line: --commit NAME");
    if (!stamp->commit)
        stamp->commit = results->commit ? results->commit : "unknown";
    if (strcmp(stamp->commit, "unknown") == 0 || !*stamp->commit)
        return ar_error_set(error, AR_INVALID,
                            "the results do not say of which commit they are; add --commit NAME");
    if (!stamp->time)
        stamp->time = results->time ? results->time : "";
    if (!history_is_time(stamp->time))
        return ar_error_set(
            error, AR_INVALID,
            "\"%.40s\" is no time; write that of the commit as YYYY-MM-DDTHH:MM:SSZ", stamp->time);
    if (!*results->machine)
        return ar_error_set(error, AR_INVALID,
                            "the results are of several machines; a line is of one");
    return AR_OK;
}

/* Opens the file, or makes it, and has its lock. One that another process made and took away again,
 * since it could not write, is nobody's any more: then once more. -1: the error says why. */
static int open_locked(const char *path, bool *made, struct ar_error *error)
{
    struct stat about;
    for (;;) {
        int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        *made = file < 0 && errno == ENOENT;
        if (*made)
            file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*made && file < 0 && errno == EEXIST)
            continue;
        if (file < 0) {
            (void)failed(path, "written", error);
            return -1;
        }
        if (flock(file, LOCK_EX) != 0 || fstat(file, &about) != 0) {
            (void)failed(path, "locked", error);
            close(file);
            return -1;
        }
        if (about.st_nlink > 0) {
            *made = *made && about.st_size == 0; /* else another process has its line in it */
            return file;
        }
        close(file);
    }
}

enum ar_status history_append(const char *path, const struct side *results,
                              const struct history_stamp *stamp, struct history_added *added,
                              struct ar_error *error)
{
    struct history_stamp used = *stamp;
    char *line = NULL;
    size_t bytes = 0;
    *added = (struct history_added){0};
    enum ar_status status = check(results, &used, error);
    if (status)
        return status;
    FILE *stream = open_memstream(&line, &bytes);
    if (!stream)
        return no_memory(error);
    history_write_line(stream, results, &used);
    bool bad = ferror(stream);
    if (fclose(stream) != 0 || bad) {
        free(line);
        return no_memory(error);
    }
    bool made = false;
    int file = open_locked(path, &made, error);
    status = file < 0 ? AR_IO : add_to(file, path, line, bytes, added, error);
    if (file >= 0 && status && made)
        (void)unlink(path);
    if (file >= 0)
        close(file);
    free(line);
    return status;
}
