/* Spools of the recorder: any bytes as a thread's file become a trace that reads back as the same,
 * or a sentence. */
#include <sys/stat.h>

#include "tests/fuzz/trace_bytes.h"
#include "workloads/record/recording.h"

static void write_file(const char *path, const uint8_t *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char folder[64], path[80];
    struct spools spools;
    struct recording_counts counts;
    struct trace_source *source = NULL;
    struct ar_error error = {""};
    snprintf(folder, sizeof folder, "/tmp/allocrig-fuzz-spool-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/a" SPOOL_FILE_END, folder);
    (void)mkdir(folder, 0700);
    write_file(path, data, bytes);
    enum ar_status status = spools_open(folder, &spools, &error);
    if (!status)
        status = recording_make(&spools, "fuzz", bytes % 2, &source, &counts, &error);
    if ((status == AR_OK) == (error.text[0] != '\0'))
        abort();
    if (!status) {
        (void)trace_bytes_pull(source);
        trace_bytes_round_trip(source, TRACE_FORMAT_TEXT);
        trace_bytes_round_trip(source, TRACE_FORMAT_BINARY);
    }
    trace_close(source);
    spools_close(&spools);
    spools_remove(folder);
    return 0;
}
