/* Exports of Nsight Systems, row by row: each 11 bytes are a row of one of the tables, in a
 * database that SQLite itself made. The first byte says which tables and columns there are. */
#include "tests/fuzz/trace_bytes.h"

#include <sqlite3.h>

static void run(sqlite3 *database, const char *statement)
{
    char *why = NULL;
    if (sqlite3_exec(database, statement, NULL, NULL, &why) != SQLITE_OK && !why)
        abort();
    sqlite3_free(why);
}

static void make_tables(sqlite3 *database, unsigned which)
{
    run(database, "PRAGMA page_size = 512; BEGIN");
    run(database, which & 1 ? "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, bytes,"
                              " memoryOperationType, address, memKind, streamId, globalPid)"
                            : "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, bytes,"
                              " memoryOperationType, address, x, y, z)");
    run(database, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, [end], correlationId, streamId,"
                  " a, b, globalPid)");
    if (which & 2)
        run(database, "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, correlationId, a, b, c, d,"
                      " globalTid)");
    if (which & 4)
        run(database, "CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId);"
                      "INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (3), (NULL), ('x')");
    if (which & 8)
        run(database, "CREATE TABLE ENUM_CUDA_MEM_KIND (id, name); INSERT INTO ENUM_CUDA_MEM_KIND"
                      " VALUES (1, 'KIND_DEVICE'), (2, 'KIND_MANAGED'), (-1, 'KIND_ARRAY')");
    if (which & 16)
        run(database,
            "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id, name); INSERT INTO"
            " ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (1, 'ALLOCATION'), (0, 'DEALLOCATION')");
    if (which & 32)
        run(database,
            "CREATE TABLE META_DATA_EXPORT (name, value);"
            "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.5'), (NULL, 1);"
            "CREATE TABLE TARGET_INFO_GPU (id, name, totalMemory);"
            "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 150754820096), ('x', NULL, -1)");
}

static void add_row(sqlite3 *database, const uint8_t *row)
{
    static const char *const tables[] = {
        "CUDA_GPU_MEMORY_USAGE_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS",
        "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"};
    char statement[512], last[32];
    snprintf(last, sizeof last, "%d", (row[8] & 3) << 24);
    /* Now and then a value is no number, or a very large one. */
    const char *first = row[9] == 1 ? "NULL" : row[9] == 2 ? "'t'" : row[9] == 3 ? "1e300" : NULL;
    char start[32];
    snprintf(start, sizeof start, "%lld", (long long)row[1] << (row[9] == 4 ? 54 : 4));
    snprintf(statement, sizeof statement, "INSERT INTO %s VALUES (%s, %lld, %d, %d, %d, %d, %s)",
             tables[row[0] & 3], first ? first : start, (long long)row[2] << (row[9] == 5 ? 53 : 5),
             row[3] & 3, row[4] & 7, row[5] & 3, row[6] & 15, row[10] == 1 ? "NULL" : last);
    run(database, statement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sqlite3 *database;
    sqlite3_int64 size = 0;
    if (bytes < 1)
        return 0;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        abort();
    make_tables(database, data[0]);
    for (size_t at = 1; at + 11 <= bytes && at < 1100; at += 11)
        add_row(database, data + at);
    run(database, "COMMIT");
    unsigned char *image = sqlite3_serialize(database, "main", &size, 0);
    if (image)
        trace_bytes_run(image, (size_t)size);
    sqlite3_free(image);
    sqlite3_close(database);
    return 0;
}
