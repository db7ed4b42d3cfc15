/* RMM's CSV and the oracle form: a line for each request and free.
 *
 * In RMM's CSV the streams 0x1 and 0x2 have meanings of their own, so stream 0 is 0x0 and stream n
 * is 0x(n+2). A free is the program's free request, on the stream that it named; its completion is
 * not in the file. Times are those of a day that began with the trace. */
#include <inttypes.h>
#include <stdio.h>

#include "workloads/formats/formats.h"
#include "workloads/formats/requests.h"

static enum ar_status rmm_row(void *output, struct request_moment *moment, struct ar_error *error)
{
    static const char *const actions[] = {[REQUEST_SERVED] = "allocate",
                                          [REQUEST_FAILED] = "allocate failure",
                                          [REQUEST_FREE_REQUESTED] = "free"};
    if (moment->kind > REQUEST_FREE_REQUESTED || moment->block->pinned)
        return AR_OK;
    const struct request_block *block = moment->block;
    uint64_t microseconds = moment->time_ns / 1000, seconds = microseconds / 1000000;
    char pointer[24] = "(nil)";
    if (moment->kind != REQUEST_FAILED)
        (void)snprintf(pointer, sizeof pointer, "0x%" PRIx64, block->address);
    return trace_output_print(output, error,
                              "%" PRIu32 ",%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64
                              ",%s,%s,%" PRIu64 ",0x%" PRIx64 "\n",
                              block->thread, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60,
                              microseconds % 1000000, actions[moment->kind], pointer, block->bytes,
                              moment->stream ? (uint64_t)moment->stream + 2 : 0);
}

static enum ar_status oracle_row(void *output, struct request_moment *moment,
                                 struct ar_error *error)
{
    const struct request_block *block = moment->block;
    if (moment->kind == REQUEST_SERVED || moment->kind == REQUEST_FAILED) {
        char stream[16] = "";
        if (block->stream)
            (void)snprintf(stream, sizeof stream, ",%" PRIu32, block->stream);
        enum ar_status status = trace_output_print(output, error, "a,%" PRIu64 ",%" PRIu64 "%s\n",
                                                   block->id, block->bytes, stream);
        return status || moment->kind == REQUEST_SERVED
                   ? status
                   : trace_output_print(output, error, "f,%" PRIu64 "\n", block->id);
    }
    return moment->kind == REQUEST_COMPLETE
               ? trace_output_print(output, error, "f,%" PRIu64 "\n", block->id)
               : AR_OK;
}

static enum ar_status write_rmm(struct trace_source *source, struct trace_output *output,
                                struct ar_error *error)
{
    enum ar_status status =
        trace_output_print(output, error, "Thread,Time,Action,Pointer,Size,Stream\n");
    return status ? status : requests_read(source, rmm_row, output, error);
}

static enum ar_status write_oracle(struct trace_source *source, struct trace_output *output,
                                   struct ar_error *error)
{
    return requests_read(source, oracle_row, output, error);
}

const struct format_writer format_writer_rmm = {
    .name = "rmm",
    .ending = ".rmm.csv",
    .summary = "RMM's log of requests, failures and frees as CSV, written (.rmm.csv)",
    .write = write_rmm,
};

const struct format_writer format_writer_oracle = {
    .name = "oracle",
    .ending = ".oracle.csv",
    .summary = "requests and completions only, as lines a,ID,BYTES and f,ID, written (.oracle.csv)",
    .write = write_oracle,
};
