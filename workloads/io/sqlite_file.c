/* A SQLite database of unknown origin, read row by row.
 *
 * 1. SQLite opens it by a URI with mode=ro and immutable=1: it reads this one file, without locks,
 *    and looks for no journal. A database in write-ahead mode is read as if it was closed properly.
 * 2. An authorizer allows SQLite to read tables and the names of their columns and nothing else.
 *    Views, triggers, virtual tables and extensions are off; a table is one that has pages of its
 *    own, and a table with computed columns is refused.
 * 3. Rows come in the order of the file: SQLite sorts and keeps nothing. Its work is limited by the
 *    size of the file, because a damaged tree may contain cycles. */
#include "workloads/io/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACKED_MOST (UINT64_C(4) << 30)
#define STEPS_BETWEEN 100000 /* of SQLite's machine, between two checks of the limit */

struct sqlite_file {
    const char *path;
    sqlite3 *database;
    uint64_t bytes, steps_left;
};

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
    for (size_t i = 0; i < AR_COUNT(off); i++)
        sqlite3_db_config(file->database, off[i], 0, NULL);
    sqlite3_db_config(file->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; i < AR_COUNT(limits); i++)
        sqlite3_limit(file->database, limits[i][0], limits[i][1]);
    file->steps_left = 10 * STEPS_BETWEEN + 64 * file->bytes;
    sqlite3_progress_handler(file->database, STEPS_BETWEEN, count_steps, file);
    sqlite3_set_authorizer(file->database, authorize, NULL);
}

/* Opens the file at `real_path` as it is on disk. */
static enum ar_status open_uri(struct sqlite_file *file, const char *real_path,
                               struct ar_error *error)
{
    char *uri = malloc(3 * strlen(real_path) + sizeof "file:?mode=ro&immutable=1");
    AR_TRY_MEMORY(uri, error, "%s", file->path);
    char *to = stpcpy(uri, "file:");
    for (const char *at = real_path; *at; at++)
        to += sprintf(to, strchr("%?#", *at) ? "%%%02x" : "%c", (unsigned char)*at);
    strcpy(to, "?mode=ro&immutable=1");
    int code = sqlite3_open_v2(uri, &file->database,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    free(uri);
    return code ? say(file, "it cannot be opened", error) : AR_OK;
}

static uint64_t big_endian(const unsigned char *bytes, unsigned count)
{
    uint64_t number = 0;
    while (count--)
        number = number << 8 | *bytes++;
    return number;
}

/* The size of the database by its header; UINT64_MAX if the header does not say. */
static uint64_t bytes_by_header(const char *head, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)head;
    if (count < 100 || big_endian(bytes + 24, 4) != big_endian(bytes + 92, 4))
        return UINT64_MAX;
    uint64_t page = big_endian(bytes + 16, 2), pages = big_endian(bytes + 28, 4);
    return pages ? (page == 1 ? 65536 : page) * pages : UINT64_MAX;
}

static enum ar_status unpack(struct sqlite_file *file, struct trace_input *input, int descriptor,
                             struct ar_error *error)
{
    char bytes[1 << 16];
    size_t got;
    uint64_t expected = UINT64_MAX;
    for (;;) {
        enum ar_status status = trace_input_read(input, bytes, sizeof bytes, &got, error);
        if (status || !got)
            return status;
        if (file->bytes == 0)
            expected = bytes_by_header(bytes, got);
        if (file->bytes + got > expected)
            return ar_error_set(
                error, AR_FORMAT,
                "%s: the database is damaged: it has more bytes than its header says", file->path);
        if (file->bytes + got > UNPACKED_MOST)
            return ar_invalid(error,
                              "%s: it has more than 4 GiB when it is unpacked: unpack it first",
                              file->path);
        for (size_t used = 0; used < got;) {
            ssize_t now = write(descriptor, bytes + used, got - used);
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

/* Unpacks a compressed database into a temporary file, which loses its name once SQLite has it. */
static enum ar_status open_unpacked(struct sqlite_file *file, struct trace_input *input,
                                    struct ar_error *error)
{
    char path[256];
    int descriptor = file_temporary(path, sizeof path);
    if (descriptor < 0)
        return ar_error_set(error, AR_IO, "%s: no temporary file to unpack it into: %s; unpack it",
                            file->path, strerror(errno));
    enum ar_status status = unpack(file, input, descriptor, error);
    AR_THEN(status, open_uri(file, path, error));
    close(descriptor);
    (void)unlink(path);
    return status;
}

static enum ar_status open_plain(struct sqlite_file *file, int descriptor, struct ar_error *error)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return ar_invalid(error, "%s: a database is read from a file only", file->path);
    file->bytes = (uint64_t)about.st_size;
    AR_FREED char *path = realpath(file->path, NULL);
    if (!path)
        return ar_error_set(error, AR_IO, "%s: cannot be opened: %s", file->path, strerror(errno));
    return open_uri(file, path, error);
}

enum ar_status sqlite_file_open(struct trace_input *input, struct sqlite_file **out,
                                struct ar_error *error)
{
    struct sqlite_file *file = calloc(1, sizeof *file);
    AR_TRY_MEMORY(file, error, "a file");
    file->path = trace_input_path(input);
    int descriptor = trace_input_file(input);
    enum ar_status status =
        descriptor < 0 ? open_unpacked(file, input, error) : open_plain(file, descriptor, error);
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

/* Reading a computed column would run an expression of the database. */
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

/* The index of each wanted column in a row of the table; -1 if the table lacks it. */
static enum ar_status find_columns(struct sqlite_file *file, const char *table,
                                   const char *const *columns, int *places,
                                   sqlite3_stmt **statement, struct ar_error *error)
{
    char query[128];
    snprintf(query, sizeof query, "SELECT * FROM \"%s\"", table);
    AR_TRY(refuse_computed(file, table, error));
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
        /* The smallest row takes more than 4 bytes. */
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
            (void)ar_error_prefix(error, status, "%s: %s: row %llu", file->path, table,
                                  (unsigned long long)row);
    }
    if (!status && code != SQLITE_DONE)
        status = say(file, table, error);
    sqlite3_finalize(statement);
    return status;
}
