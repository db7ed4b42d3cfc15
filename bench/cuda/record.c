/* Files of addresses, in the form that the simulated device reads, so that a run on it decides by
 * the same addresses.
 *
 * 1. A file is made when the first row comes. One that is there is kept, and one with a number
 *    behind its name is made: each pass of a run has addresses of its own, and the first pass is
 *    the one that placements are of.
 * 2. Rows come within the calls of a policy, whose time is measured: they are kept, and written
 *    when the run is over, whatever way it ended, or when there are many of them. Of a process that
 *    is killed only such a block is there, with whole rows. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/state.h"

#define RECORDS_MOST 10000
#define ROWS_MOST    65536u

enum ar_status cuda_record_open(struct cuda_record *record, const char *path,
                                struct ar_error *error)
{
    if (!path)
        return AR_OK;
    record->path = strdup(path);
    record->rows = malloc(ROWS_MOST * sizeof *record->rows);
    if (!record->path || !record->rows)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for a device");
    /* Pages that are touched here need not come within a call. */
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

/* The file under the first name that is free; NULL: it cannot be made. */
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
    if (!path)
        return AR_HOST_MEMORY;
    record->file = open_new(record, path, length);
    free(path);
    if (!record->file || fputs("ordinal,bytes,address\n", record->file) < 0 ||
        fflush(record->file) != 0)
        return record_failed(self, record);
    return AR_OK;
}

/* Writes the rows that are kept. False: they are not all there, and errno says why. */
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
    if (!record->file) {
        enum ar_status status = record_begin(self, record);
        if (status != AR_OK)
            return status;
    }
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
