/* Files of addresses, in the form that the simulated device reads, so that a run on it decides by
 * the same addresses. A file is made when the first row comes. One that is there is kept, and one
 * with a number behind its name is made: each pass of a run has addresses of its own, and the
 * first pass is the one that placements are of. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/state.h"

#define RECORDS_MOST 10000

enum status cuda_record_open(struct cuda_record *record, const char *path, struct error *error)
{
    if (path && !(record->path = strdup(path)))
        return error_set(error, STATUS_HOST_MEMORY, "no host memory for a device");
    return STATUS_OK;
}

static enum status record_failed(struct cuda_device *self, const struct cuda_record *record)
{
    self->base.bad_input = true;
    return cuda_misuse(self, "the addresses cannot be written to %s: %s", record->path,
                       strerror(errno));
}

static enum status record_begin(struct cuda_device *self, struct cuda_record *record)
{
    size_t length = strlen(record->path) + 16;
    char *path = malloc(length);
    if (!path)
        return STATUS_HOST_MEMORY;
    snprintf(path, length, "%s", record->path);
    for (int i = 1; i < RECORDS_MOST; i++) {
        record->file = fopen(path, "wxe");
        if (record->file || errno != EEXIST)
            break;
        snprintf(path, length, "%s.%d", record->path, i);
    }
    free(path);
    if (!record->file)
        return record_failed(self, record);
    setvbuf(record->file, NULL, _IOLBF, BUFSIZ); /* so that each row tells whether it went well */
    return fputs("ordinal,bytes,address\n", record->file) < 0 ? record_failed(self, record)
                                                              : STATUS_OK;
}

enum status cuda_record_row(struct cuda_device *self, struct cuda_record *record, uint64_t bytes,
                            uint64_t address)
{
    if (!record->path)
        return STATUS_OK;
    enum status status = record->file ? STATUS_OK : record_begin(self, record);
    if (status == STATUS_OK && fprintf(record->file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                                       record->rows++, bytes, address) < 0)
        status = record_failed(self, record);
    return status;
}

void cuda_record_close(struct cuda_record *record)
{
    if (record->file)
        fclose(record->file);
    free(record->path);
}
