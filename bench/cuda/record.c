/* Files of addresses in the format that the simulated device reads, so that a simulated run uses
 * the same addresses.
 *
 * 1. The first row creates the file. An existing file is kept, and a file with a number after its
 *    name is made: each pass of a run has its own addresses, and placements are of the first.
 * 2. Rows arrive during timed calls of the policy, so they are kept in memory and written at the
 *    end of the run or when there are many. A killed process leaves only the blocks written before,
 *    with complete rows. */
#include <errno.h>
#include <sys/stat.h>

#include "bench/cuda/state.h"

#define RECORDS_MOST 10000
#define ROWS_MOST    65536u

enum ar_status cuda_record_open(struct cuda_record *record, const char *path,
                                struct ar_error *error)
{
    struct stat there;
    if (!path)
        return AR_OK;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return ar_invalid(error,
                          "device cuda: the addresses cannot be written to %s: it is a folder; "
                          "name a file",
                          path);
    record->path = strdup(path);
    record->rows = malloc(ROWS_MOST * sizeof *record->rows);
    AR_TRY_MEMORY(record->path && record->rows, error, "a device");
    /* Touching the pages here keeps page faults out of timed calls. */
    for (size_t i = 0; i < ROWS_MOST; i++)
        record->rows[i] = (struct cuda_record_row){.bytes = UINT64_MAX};
    return AR_OK;
}

static enum ar_status record_failed(struct cuda_device *self, const struct cuda_record *record)
{
    self->base.bad_input = true;
    return cuda_misuse(self, "the addresses cannot be written to %s: %s", record->path,
                       strerror(errno));
}

/* Creates the file under the first unused name. NULL: it cannot be made. */
static FILE *open_new(const struct cuda_record *record, char *path, size_t path_bytes)
{
    FILE *file = NULL;
    snprintf(path, path_bytes, "%s", record->path);
    for (int i = 1; i < RECORDS_MOST; i++) {
        file = fopen(path, "wxe");
        if (file || errno != EEXIST)
            break;
        snprintf(path, path_bytes, "%s.%d", record->path, i);
    }
    return file;
}

static enum ar_status record_begin(struct cuda_device *self, struct cuda_record *record)
{
    size_t length = strlen(record->path) + 16;
    char *path = malloc(length);
    AR_TRY_HOST(path);
    record->file = open_new(record, path, length);
    free(path);
    if (!record->file || fputs("ordinal,bytes,address\n", record->file) < 0 ||
        fflush(record->file) != 0)
        return record_failed(self, record);
    return AR_OK;
}

/* Writes the kept rows. False: not all were written; errno has the reason. */
static bool rows_write(struct cuda_record *record)
{
    for (size_t i = 0; i < record->count; i++)
        if (fprintf(record->file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", record->written++,
                    record->rows[i].bytes, record->rows[i].address) < 0)
            return false;
    record->count = 0;
    return fflush(record->file) == 0;
}

enum ar_status cuda_record_row(struct cuda_device *self, struct cuda_record *record, uint64_t bytes,
                               uint64_t address)
{
    if (!record->path)
        return AR_OK;
    if (!record->file)
        AR_TRY(record_begin(self, record));
    if (record->count == ROWS_MOST && !rows_write(record))
        return record_failed(self, record);
    record->rows[record->count++] = (struct cuda_record_row){bytes, address};
    return AR_OK;
}

enum ar_status cuda_record_flush(struct ar_device *device, struct ar_error *error)
{
    struct cuda_device *self = cuda_of(device);
    struct cuda_record *const records[] = {&self->record_segments, &self->record_ranges};
    for (int i = 0; i < 2; i++)
        if (records[i]->file && !rows_write(records[i]))
            return ar_error_set(error, AR_IO, "the addresses cannot be written to %s: %s",
                                records[i]->path, strerror(errno));
    return AR_OK;
}

void cuda_record_close(struct cuda_record *record)
{
    if (record->file) {
        (void)rows_write(record);
        fclose(record->file);
    }
    free(record->rows);
    free(record->path);
}
