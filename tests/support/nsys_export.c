#include "tests/support/nsys_export.h"

#include "tests/support/test.h"

#include <unistd.h>

#include <sqlite3.h>

const char nsys_export_2024[] =
    "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_MEM_KIND VALUES"
    " (0,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE','Pageable'),"
    " (1,'CUDA_MEMOPR_MEMORY_KIND_PINNED','Pinned'), (2,'CUDA_MEMOPR_MEMORY_KIND_DEVICE','Device'),"
    " (3,'CUDA_MEMOPR_MEMORY_KIND_ARRAY','Array'), (4,'CUDA_MEMOPR_MEMORY_KIND_MANAGED','Managed'),"
    " (5,'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC','Device Static'),"
    " (6,'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC','Managed Static'),"
    " (7,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN','Unknown');"
    "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER"
    " (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);"
    "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES"
    " (0,'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION','Allocation'),"
    " (1,'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION','Deallocation');"
    "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
    "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION','2024.6.2.225'),"
    " ('EXPORT_SCHEMA_VERSION','3.16.1');"
    "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT,"
    " totalMemory INTEGER, cuDevId INTEGER);"
    "INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'NVIDIA T4', 15843721216, 0),"
    " (1, 1, 'NVIDIA H100 80GB HBM3', 85520809984, 1);"
    "CREATE TABLE TARGET_INFO_CUDA_NULL_STREAM (streamId INTEGER NOT NULL, hwId INTEGER NOT NULL,"
    " vmId INTEGER NOT NULL, processId INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL);"
    "INSERT INTO TARGET_INFO_CUDA_NULL_STREAM VALUES (7, 0, 0, 66, 0, 1), (13, 0, 0, 66, 1, 2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,"
    " streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,"
    " nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);"
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL,"
    " pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,"
    " memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER,"
    " localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER,"
    " localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER,"
    " importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER);";

void nsys_export_make(const char *path, const char *const *statements)
{
    sqlite3 *database;
    (void)unlink(path);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    for (; *statements; statements++)
        if (sqlite3_exec(database, *statements, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", *statements, sqlite3_errmsg(database));
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}
