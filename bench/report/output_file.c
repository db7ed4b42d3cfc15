/* Complete files or none:
 * 1. A file is written without a name (O_TMPFILE), so that a killed program leaves nothing; if the
 *    file system does not support that, as NAME.part-PID.
 * 2. output_finish() flushes it, checks for errors and gives it the name NAME.part-PID.
 * 3. output_commit() renames it. In a set all files are finished before the first is renamed, so a
 *    full disk leaves none.
 * 4. A program killed between 2 and 3 leaves NAME.part-PID: the next output_open() of NAME removes
 *    it if no process has that number any more.
 * A symbolic link stays: the file that it leads to is replaced.
 * An existing file that is not a regular one (a terminal, a pipe, /dev/full) is written in
 * place. */
#include "bench/report/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators/base/array.h"
#include "workloads/io/file.h"

static enum ar_status cannot_write(const char *path, int number, struct ar_error *error)
{
    if (number == ENOENT) /* a file that is not there is made */
        return ar_error_set(error, AR_IO,
                            "%s: cannot be written: its folder does not exist; make it, or choose "
                            "another place",
                            path);
    return ar_error_set(
        error, AR_IO,
        "%s: cannot be written: %s; nothing was left there, choose another place or make room",
        path, strerror(number));
}

static enum ar_status no_name(const char *what, struct ar_error *error)
{
    return ar_invalid(error, "an output has an empty name; name a %s", what);
}

static void forget(struct output_file *self)
{
    free(self->part_path);
    free(self->place);
    free(self->path);
    *self = (struct output_file){0};
}

/* Opens a file without a name in the folder of `path`; -1 if that is not supported. */
static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int file = folder ? open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;
    free(folder);
    return file;
}

/* Whether it is NAME.part-PID of a process that has ended. */
static bool is_stale(const char *entry, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(entry, name, length) != 0 || strncmp(entry + length, ".part-", 6) != 0)
        return false;
    char *end = NULL;
    long process = strtol(entry + length + 6, &end, 10);
    return !*end && process > 0 && process == (pid_t)process && kill((pid_t)process, 0) != 0 &&
           errno == ESRCH;
}

static void remove_stale(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_stale(entry->d_name, name))
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    free(folder);
}

static enum ar_status open_part(struct output_file *self, struct ar_error *error)
{
    remove_stale(self->place);
    if (asprintf(&self->part_path, "%s.part-%ld", self->place, (long)getpid()) < 0) {
        self->part_path = NULL;
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to open it", self->path);
    }
    int file = open_nameless(self->place);
    self->nameless = file >= 0;
    if (!self->nameless)
        file = open(self->part_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file >= 0)
        self->stream = fdopen(file, "w");
    if (self->stream)
        return AR_OK;
    enum ar_status status = cannot_write(self->path, errno, error);
    if (file >= 0) {
        close(file);
        if (!self->nameless)
            unlink(self->part_path);
    }
    return status;
}

/* Gives a file without a name its part path. */
static bool name_part(struct output_file *self)
{
    char link_path[64];
    snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", fileno(self->stream));
    unlink(self->part_path);
    return linkat(AT_FDCWD, link_path, AT_FDCWD, self->part_path, AT_SYMLINK_FOLLOW) == 0;
}

enum ar_status output_open(struct output_file *self, const char *path, struct ar_error *error)
{
    struct stat info = {0};
    *self = (struct output_file){0};
    if (!path[0])
        return no_name("file", error);
    self->path = strdup(path);
    self->place = file_behind_links(path);
    if (!self->path || !self->place) {
        forget(self);
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to open it", path);
    }
    enum ar_status status = AR_OK;
    bool exists = stat(path, &info) == 0;
    if (strcmp(path, "-") == 0) {
        self->stream = stdout;
    } else if (exists && S_ISDIR(info.st_mode)) {
        status =
            ar_error_set(error, AR_IO, "%s: is a folder; give the name of a file to write", path);
    } else if (exists && !S_ISREG(info.st_mode)) {
        self->stream = fopen(path, "we");
        if (!self->stream)
            status = cannot_write(path, errno, error);
    } else {
        status = open_part(self, error);
    }
    if (status)
        forget(self);
    return status;
}

static void remove_part(const struct output_file *self)
{
    if (self->part_path && !self->nameless)
        unlink(self->part_path);
}

/* Checks that all bytes were written and closes the stream; the file is not in its place yet. */
static enum ar_status output_finish(struct output_file *self, struct ar_error *error)
{
    if (!self->stream)
        return AR_OK;
    errno = 0;
    bool wrong =
        fflush(self->stream) != 0 || ferror(self->stream) || (self->nameless && !name_part(self));
    int number = errno ? errno : EIO;
    /* A write that failed earlier set errno then. Another write fails for the same reason. */
    if (wrong && number == EIO && write(fileno(self->stream), "", 1) < 0)
        number = errno;
    if (self->stream != stdout && fclose(self->stream) != 0 && !wrong) {
        wrong = true;
        number = errno;
    }
    self->stream = NULL;
    self->nameless = false;
    return wrong ? cannot_write(self->path, number, error) : AR_OK;
}

enum ar_status output_commit(struct output_file *self, struct ar_error *error)
{
    enum ar_status status = output_finish(self, error);
    if (!status && self->part_path && rename(self->part_path, self->place) != 0)
        status = cannot_write(self->path, errno, error);
    if (status)
        remove_part(self);
    forget(self);
    return status;
}

void output_abandon(struct output_file *self)
{
    if (self->stream && self->stream != stdout)
        fclose(self->stream);
    remove_part(self);
    forget(self);
}

enum ar_status output_set_add(struct output_set *self, const char *path, FILE **stream,
                              struct ar_error *error)
{
    *stream = NULL;
    if (!path)
        return AR_OK;
    if (!ar_array_make_room(&self->files, self->count, &self->room, sizeof *self->files))
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to open it", path);
    bool standard = strcmp(path, "-") == 0;
    if (standard && self->standard)
        return ar_invalid(error, "-: two outputs would mix in standard output; give one a file");
    AR_TRY(output_open(&self->files[self->count], path, error));
    self->standard |= standard;
    *stream = self->files[self->count++].stream;
    return AR_OK;
}

enum ar_status output_set_commit(struct output_set *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    for (size_t i = 0; i < self->count && !status; i++)
        status = output_finish(&self->files[i], error);
    for (size_t i = 0; i < self->count && !status; i++)
        status = output_commit(&self->files[i], error);
    output_set_abandon(self);
    return status;
}

void output_set_abandon(struct output_set *self)
{
    for (size_t i = 0; i < self->count; i++)
        output_abandon(&self->files[i]);
    free(self->files);
    *self = (struct output_set){0};
}

enum ar_status output_folder_check(const char *path, struct ar_error *error)
{
    if (!path[0])
        return no_name("folder", error);
    AR_FREED char *at = strdup(path);
    AR_TRY_MEMORY(at, error, "%s", path);
    struct stat info;
    bool there;
    /* The nearest existing parent is where it would be created. A dangling link cannot be one. */
    while (!(there = stat(at, &info) == 0) && errno == ENOENT && lstat(at, &info) != 0 &&
           strcmp(at, ".") != 0) {
        char *slash = strrchr(at, '/');
        if (slash && slash != at)
            *slash = '\0';
        else
            strcpy(at, slash ? "/" : ".");
    }
    if (there && !S_ISDIR(info.st_mode))
        errno = ENOTDIR;
    bool usable = there && S_ISDIR(info.st_mode) && access(at, W_OK | X_OK) == 0;
    return usable ? AR_OK
                  : ar_error_set(error, AR_IO, "%s: the folder cannot be made or written to: %s",
                                 path, strerror(errno));
}

enum ar_status output_folder(const char *path, struct ar_error *error)
{
    if (!path[0])
        return no_name("folder", error);
    AR_FREED char *copy = strdup(path);
    AR_TRY_MEMORY(copy, error, "%s", path);
    for (char *at = copy + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char kept = *at;
        *at = '\0';
        struct stat info;
        if (mkdir(copy, 0777) != 0 && !(stat(copy, &info) == 0 && S_ISDIR(info.st_mode)))
            return ar_error_set(error, AR_IO, "%s: the folder cannot be made: %s", copy,
                                strerror(errno));
        if (kept == '\0')
            return AR_OK;
        *at = kept;
    }
}

bool file_write_all(int file, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count) {
        ssize_t put = write(file, at, count);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        count -= (size_t)put;
    }
    return true;
}
