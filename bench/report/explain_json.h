/* What `explain` says, as one JSON object, schema allocrig.explain/1: `runs`, one for each way to free
 * that was looked at, or `message`. Bytes are bytes; what is not known or has no end is null. */
#ifndef BENCH_REPORT_EXPLAIN_JSON_H
#define BENCH_REPORT_EXPLAIN_JSON_H

#include "bench/report/explain_page.h"
#include "bench/report/json_writer.h"
#include "sim/explain/message.h"

/* Around the runs: begin, any number of runs, end. */
void explain_json_begin(struct json_writer *json, FILE *stream);
void explain_json_run(struct json_writer *json, const struct explain_page *page);
void explain_json_end(struct json_writer *json);

/* All of it for a message. */
void explain_json_message(FILE *stream, const struct message *message);

#endif
