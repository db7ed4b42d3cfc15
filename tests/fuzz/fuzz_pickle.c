/* PyTorch snapshots, pickles and JSON: one that can be read is written as a snapshot and read
 * again. */
#include "tests/fuzz/trace_bytes.h"

#include "workloads/formats/formats.h"

static void write_again(const uint8_t *data, size_t bytes)
{
    struct trace_source *source;
    struct ar_error error = {""};
    char path[64], again[64];
    trace_bytes_file(data, bytes, path);
    snprintf(again, sizeof again, "/tmp/allocrig-fuzz-%ld.pickle", (long)getpid());
    if (trace_open(path, &source, &error) == AR_OK) {
        enum ar_status status = format_write(&format_writer_snapshot, source, again, false, &error);
        trace_close(source);
        if (status == AR_OK && trace_open(again, &source, &error) == AR_OK) {
            (void)trace_bytes_pull(source);
            trace_close(source);
        }
        (void)unlink(again);
    }
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    write_again(data, bytes);
    return trace_bytes_run(data, bytes);
}
