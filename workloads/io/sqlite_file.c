/* A SQLite database that may be anything, read row by row.
 *
 * 1. SQLite sees the one file that was opened, through a file system of its own that reads the
 *    descriptor: no journal, no other file, nothing to write, no library to load.
 * 2. An authorizer lets it read tables and their columns' names and nothing else. Views, triggers
 *    and virtual tables are off; a table is one that has pages of its own, and one that computes
 *    columns is refused.
 * 3. Rows come in the order of the file: nothing is sorted or kept by SQLite. Its work is bounded by
 *    the size of the file: a damaged tree may lead in circles.
 * 4. A database in write-ahead mode is read as it lies there, as one that was closed well. */
#include "workloads/io/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HAVE_SQLITE3
#define HAVE_SQLITE3 0
#endif

#if HAVE_SQLITE3
#include <sqlite3.h>

#define UNPACKED_MOST (UINT64_C(4) << 30)
#define STEPS_BETWEEN 100000 /* of SQLite's machine, between two looks at the bound */

struct sqlite_file {
    sqlite3_vfs vfs;
    char vfs_name[40];
    const char *path;
    sqlite3 *database;
    int descriptor;
    bool owned; /* the descriptor */
    uint64_t bytes, steps_left;
};

struct open_file { /* what SQLite holds */
    sqlite3_file base;
    const struct sqlite_file *file;
};

/* ---- the file system --------------------------------------------------------------------- */

static int file_close(sqlite3_file *self)
{
    (void)self;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *self, void *bytes, int count, sqlite3_int64 offset)
{
    const struct sqlite_file *file = ((struct open_file *)self)->file;
    size_t got = 0;
    while (got < (size_t)count) {
        ssize_t now = pread(file->descriptor, (char *)bytes + got, (size_t)count - got,
                            (off_t)(offset + (sqlite3_int64)got));
        if (now < 0 && errno == EINTR)
            continue;
        if (now < 0)
            return SQLITE_IOERR_READ;
        if (now == 0)
            break;
        got += (size_t)now;
    }
    for (sqlite3_int64 at = 18; at <= 19; at++) /* the mode: write-ahead, or not */
        if (at >= offset && at < offset + (sqlite3_int64)got)
            ((char *)bytes)[at - offset] = 1;
    memset((char *)bytes + got, 0, (size_t)count - got);
    return got == (size_t)count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *self, const void *bytes, int count, sqlite3_int64 offset)
{
    (void)self, (void)bytes, (void)count, (void)offset;
    return SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *self, sqlite3_int64 size)
{
    (void)self, (void)size;
    return SQLITE_READONLY;
}

static int file_number(sqlite3_file *self, int number)
{
    (void)self, (void)number;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *self, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)((struct open_file *)self)->file->bytes;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *self, int *out)
{
    (void)self;
    *out = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *self, int operation, void *argument)
{
    (void)self, (void)operation, (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *self)
{
    (void)self;
    return 4096;
}

static int file_traits(sqlite3_file *self)
{
    (void)self;
    return SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_number,
    .xFileSize = file_size,
    .xLock = file_number,
    .xUnlock = file_number,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *out, int flags,
                    int *out_flags)
{
    (void)name;
    out->pMethods = NULL;
    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return SQLITE_CANTOPEN;
    ((struct open_file *)out)->file = vfs->pAppData;
    out->pMethods = &file_methods;
    if (out_flags)
        *out_flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs, (void)name, (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs, (void)name, (void)flags;
    *out = 0;
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int room, char *out)
{
    (void)vfs;
    snprintf(out, (size_t)room, "%s", name);
    return SQLITE_OK;
}

static void *vfs_library(sqlite3_vfs *vfs, const char *name)
{
    (void)vfs, (void)name;
    return NULL;
}

static int vfs_random(sqlite3_vfs *vfs, int count, char *out)
{
    (void)vfs;
    memset(out, 0, (size_t)count);
    return count;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    *out = 0;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int room, char *out)
{
    (void)vfs, (void)room, (void)out;
    return 0;
}

static void make_vfs(struct sqlite_file *file)
{
    snprintf(file->vfs_name, sizeof file->vfs_name, "allocrig-%p", (void *)file);
    file->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = sizeof(struct open_file),
        .mxPathname = 64,
        .zName = file->vfs_name,
        .pAppData = file,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xDlOpen = vfs_library,
        .xRandomness = vfs_random,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_error,
    };
}

/* ---- opening ----------------------------------------------------------------------------- */

static int authorize(void *argument, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)argument, (void)b, (void)c, (void)d;
    if (action == SQLITE_PRAGMA && a && strcmp(a, "table_xinfo") == 0)
        return SQLITE_OK;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static int count_steps(void *argument)
{
    struct sqlite_file *file = argument;
    bool spent = file->steps_left < STEPS_BETWEEN;
    file->steps_left -= spent ? file->steps_left : STEPS_BETWEEN;
    return spent;
}

static enum ar_status say(const struct sqlite_file *file, const char *what, struct ar_error *error)
{
    int code = file->database ? sqlite3_errcode(file->database) : SQLITE_NOMEM;
    if (code == SQLITE_NOMEM)
        return ar_error_set(error, AR_HOST_MEMORY, "%s: no host memory to read it", file->path);
    if (code == SQLITE_INTERRUPT)
        return ar_error_set(error, AR_FORMAT,
                            "%s: %s: the database is damaged: reading it has no end", file->path,
                            what);
    return ar_error_set(error, AR_FORMAT, "%s: %s: %s", file->path, what,
                        sqlite3_errmsg(file->database));
}

static void restrain(struct sqlite_file *file)
{
    static const int off[] = {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA,
                              SQLITE_DBCONFIG_ENABLE_FKEY};
    static const int limits[][2] = {
        {SQLITE_LIMIT_LENGTH, 1 << 20},    {SQLITE_LIMIT_SQL_LENGTH, 1 << 17},
        {SQLITE_LIMIT_COLUMN, 256},        {SQLITE_LIMIT_EXPR_DEPTH, 64},
        {SQLITE_LIMIT_COMPOUND_SELECT, 2}, {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_FUNCTION_ARG, 8},    {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 8}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        sqlite3_db_config(file->database, off[i], 0, NULL);
    sqlite3_db_config(file->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        sqlite3_limit(file->database, limits[i][0], limits[i][1]);
    file->steps_left = 10 * STEPS_BETWEEN + 64 * file->bytes;
    sqlite3_progress_handler(file->database, STEPS_BETWEEN, count_steps, file);
    sqlite3_set_authorizer(file->database, authorize, NULL);
}

/* A file without a name in the folder for temporary ones. */
static int nameless_file(void)
{
    char path[256];
    const char *folder = getenv("TMPDIR");
    int used =
        snprintf(path, sizeof path, "%s/allocrig-XXXXXX", folder && *folder ? folder : "/tmp");
    if (used < 0 || (size_t)used >= sizeof path)
        return -1;
    int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0)
        (void)unlink(path);
    return descriptor;
}

static uint64_t big_endian(const unsigned char *bytes, unsigned count)
{
    uint64_t number = 0;
    while (count--)
        number = number << 8 | *bytes++;
    return number;
}

/* How many bytes the database has by its own header; UINT64_MAX where that does not tell. */
static uint64_t bytes_by_header(const char *head, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)head;
    if (count < 100 || big_endian(bytes + 24, 4) != big_endian(bytes + 92, 4))
        return UINT64_MAX;
    uint64_t page = big_endian(bytes + 16, 2), pages = big_endian(bytes + 28, 4);
    return pages ? (page == 1 ? 65536 : page) * pages : UINT64_MAX;
}

static enum ar_status unpack(struct sqlite_file *file, struct trace_input *input,
                             struct ar_error *error)
{
    char bytes[1 << 16];
    size_t got;
    uint64_t wanted = UINT64_MAX;
    file->descriptor = nameless_file();
    if (file->descriptor < 0)
        return ar_error_set(error, AR_IO, "%s: no temporary file to unpack it into: %s; unpack it",
                            file->path, strerror(errno));
    file->owned = true;
    for (;;) {
        enum ar_status status = trace_input_read(input, bytes, sizeof bytes, &got, error);
        if (status || !got)
            return status;
        if (file->bytes == 0)
            wanted = bytes_by_header(bytes, got);
        if (file->bytes + got > wanted)
            return ar_error_set(
                error, AR_FORMAT,
                "%s: the database is damaged: it has more bytes than its header says", file->path);
        if (file->bytes + got > UNPACKED_MOST)
            return ar_error_set(error, AR_INVALID,
                                "%s: it has more than 4 GiB when it is unpacked: unpack it first",
                                file->path);
        for (size_t used = 0; used < got;) {
            ssize_t now = write(file->descriptor, bytes + used, got - used);
            if (now < 0 && errno == EINTR)
                continue;
            if (now <= 0)
                return ar_error_set(error, AR_IO, "%s: cannot be unpacked: %s", file->path,
                                    strerror(errno));
            used += (size_t)now;
        }
        file->bytes += got;
    }
}

static enum ar_status find_bytes(struct sqlite_file *file, struct trace_input *input,
                                 struct ar_error *error)
{
    struct stat about;
    file->descriptor = trace_input_file(input);
    if (file->descriptor < 0)
        return unpack(file, input, error);
    if (fstat(file->descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return ar_error_set(error, AR_INVALID, "%s: a database is read from a file only",
                            file->path);
    file->bytes = (uint64_t)about.st_size;
    return AR_OK;
}

enum ar_status sqlite_file_open(struct trace_input *input, struct sqlite_file **out,
                                struct ar_error *error)
{
    struct sqlite_file *file = calloc(1, sizeof *file);
    if (!file)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a file");
    file->path = trace_input_path(input);
    file->descriptor = -1;
    enum ar_status status = find_bytes(file, input, error);
    make_vfs(file);
    if (!status && (sqlite3_initialize() || sqlite3_vfs_register(&file->vfs, 0) ||
                    sqlite3_open_v2("database", &file->database,
                                    SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, file->vfs_name)))
        status = say(file, "it cannot be opened", error);
    if (status) {
        sqlite_file_close(file);
        return status;
    }
    restrain(file);
    *out = file;
    return AR_OK;
}

void sqlite_file_close(struct sqlite_file *file)
{
    if (!file)
        return;
    sqlite3_close(file->database);
    sqlite3_vfs_unregister(&file->vfs);
    if (file->owned)
        close(file->descriptor);
    free(file);
}

/* ---- rows -------------------------------------------------------------------------------- */

enum ar_status sqlite_file_has(struct sqlite_file *file, const char *table, bool *has,
                               struct ar_error *error)
{
    sqlite3_stmt *statement = NULL;
    static const char query[] =
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?1";
    int code = sqlite3_prepare_v2(file->database, query, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    *has = code == SQLITE_ROW;
    enum ar_status status =
        code == SQLITE_ROW || code == SQLITE_DONE ? AR_OK : say(file, "its list of tables", error);
    sqlite3_finalize(statement);
    return status;
}

/* Reading a column that is computed would run what the database says. */
static enum ar_status refuse_computed(struct sqlite_file *file, const char *table,
                                      struct ar_error *error)
{
    enum { HIDDEN = 6, COMPUTED = 2 }; /* of a row of table_xinfo; 2 virtual, 3 stored */
    char query[128];
    sqlite3_stmt *statement = NULL;
    bool computed = false;
    snprintf(query, sizeof query, "PRAGMA table_xinfo(\"%s\")", table);
    int code = sqlite3_prepare_v2(file->database, query, -1, &statement, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        computed |= code == SQLITE_ROW && sqlite3_column_int(statement, HIDDEN) >= COMPUTED;
    }
    enum ar_status status = code == SQLITE_DONE ? AR_OK : say(file, table, error);
    sqlite3_finalize(statement);
    if (!status && computed)
        return ar_error_set(error, AR_FORMAT,
                            "%s: %s: it has a column that is computed, which no export has",
                            file->path, table);
    return status;
}

/* The place of each wanted column in a row of the table; -1 where it has none. */
static enum ar_status find_columns(struct sqlite_file *file, const char *table,
                                   const char *const *columns, int *places,
                                   sqlite3_stmt **statement, struct ar_error *error)
{
    char query[128];
    snprintf(query, sizeof query, "SELECT * FROM \"%s\"", table);
    enum ar_status status = refuse_computed(file, table, error);
    if (status)
        return status;
    if (sqlite3_prepare_v2(file->database, query, -1, statement, NULL) != SQLITE_OK)
        return say(file, table, error);
    for (int i = 0; columns[i]; i++) {
        places[i] = -1;
        for (int at = sqlite3_column_count(*statement); at-- > 0;) {
            const char *name = sqlite3_column_name(*statement, at);
            if (name && sqlite3_stricmp(name, columns[i]) == 0)
                places[i] = at;
        }
    }
    return AR_OK;
}

enum ar_status sqlite_file_lacks(struct sqlite_file *file, const char *table,
                                 const char *const *columns, unsigned *missing,
                                 struct ar_error *error)
{
    sqlite3_stmt *statement = NULL;
    int places[SQLITE_FILE_COLUMNS];
    enum ar_status status = find_columns(file, table, columns, places, &statement, error);
    *missing = 0;
    for (int i = 0; !status && columns[i]; i++)
        *missing |= places[i] < 0 ? 1u << i : 0;
    sqlite3_finalize(statement);
    return status;
}

static void take_value(sqlite3_stmt *statement, int place, struct sqlite_value *out)
{
    *out = (struct sqlite_value){.is_null = true, .text = ""};
    if (place < 0)
        return;
    int type = sqlite3_column_type(statement, place);
    out->is_null = type != SQLITE_INTEGER;
    if (type == SQLITE_INTEGER)
        out->number = sqlite3_column_int64(statement, place);
    const char *text =
        type == SQLITE_TEXT ? (const char *)sqlite3_column_text(statement, place) : NULL;
    out->text = text ? text : "";
}

enum ar_status
sqlite_file_rows(struct sqlite_file *file, const char *table, const char *const *columns,
                 enum ar_status (*take)(void *self, const struct sqlite_value *values, uint64_t row,
                                        struct ar_error *error),
                 void *self, struct ar_error *error)
{
    sqlite3_stmt *statement = NULL;
    int places[SQLITE_FILE_COLUMNS], code = SQLITE_DONE;
    struct sqlite_value values[SQLITE_FILE_COLUMNS];
    uint64_t row = 0;
    enum ar_status status = find_columns(file, table, columns, places, &statement, error);
    while (!status && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        /* The smallest row takes more than 4 bytes of the file. */
        if (++row > file->bytes / 4) {
            status = ar_error_set(error, AR_FORMAT,
                                  "%s: %s: the database is damaged: it has more rows than bytes",
                                  file->path, table);
            break;
        }
        for (int i = 0; columns[i]; i++)
            take_value(statement, places[i], &values[i]);
        status = take(self, values, row, error);
        if (status)
            ar_error_prefix(error, status, "%s: %s: row %llu", file->path, table,
                            (unsigned long long)row);
    }
    if (!status && code != SQLITE_DONE)
        status = say(file, table, error);
    sqlite3_finalize(statement);
    return status;
}

#else

enum ar_status sqlite_file_open(struct trace_input *input, struct sqlite_file **out,
                                struct ar_error *error)
{
    *out = NULL;
    return ar_error_set(
        error, AR_UNSUPPORTED,
        "%s: this is a SQLite database, and this program was built without sqlite3; "
        "\"make deps\" installs it, then build again",
        trace_input_path(input));
}

void sqlite_file_close(struct sqlite_file *file)
{
    (void)file; /* there are none */
}

enum ar_status sqlite_file_has(struct sqlite_file *file, const char *table, bool *has,
                               struct ar_error *error)
{
    (void)file;
    *has = false;
    return ar_error_set(error, AR_UNSUPPORTED, "%s: built without sqlite3", table);
}

enum ar_status sqlite_file_lacks(struct sqlite_file *file, const char *table,
                                 const char *const *columns, unsigned *missing,
                                 struct ar_error *error)
{
    (void)file, (void)columns;
    *missing = 0;
    return ar_error_set(error, AR_UNSUPPORTED, "%s: built without sqlite3", table);
}

enum ar_status
sqlite_file_rows(struct sqlite_file *file, const char *table, const char *const *columns,
                 enum ar_status (*take)(void *self, const struct sqlite_value *values, uint64_t row,
                                        struct ar_error *error),
                 void *self, struct ar_error *error)
{
    (void)file, (void)columns, (void)take, (void)self;
    return ar_error_set(error, AR_UNSUPPORTED, "%s: built without sqlite3", table);
}

#endif
