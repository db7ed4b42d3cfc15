/* What `explain` prints: a failure taken apart, or an out-of-memory message, as a page for a reader
 * or as JSON of the schema allocrig.explain/1. In the JSON bytes are bytes, and what is not known
 * or has no limit is null. */
#ifndef BENCH_REPORT_EXPLAIN_PAGE_H
#define BENCH_REPORT_EXPLAIN_PAGE_H

#include <stdio.h>

#include "bench/report/json_writer.h"
#include "sim/experiment/recorded_card.h"
#include "sim/explain/explain.h"
#include "sim/explain/message.h"

struct explain_page {
    const char *workload, *policy;
    enum replay_frees frees;
    const struct explain_result *result;
    const struct recorded_card *card;
};

/* What to do about causes that no setting of the policy answers: sentences, or "". */
void explain_page_advice(const struct explain_result *result, char *text, size_t room);

/* HOST_MEMORY. */
enum ar_status explain_page_print(FILE *stream, const struct explain_page *page,
                                  struct ar_error *error) AR_STATUS_CHECKED;

/* `runs`, one for each way to free that was examined: begin, any number of runs, end. */
void explain_json_begin(struct json_writer *json, FILE *stream);
void explain_json_run(struct json_writer *json, const struct explain_page *page);
void explain_json_end(struct json_writer *json);

/* What a message says and why the request failed. `more`: the text continues past what was read. */
void message_page_print(FILE *stream, const struct message *message, bool more);

/* What the cause means for this message. */
const char *message_page_meaning(const struct message *message);
void explain_json_message(FILE *stream, const struct message *message);

/* Writes into `line` what to try, by cause, framework and platform: sentences. Returns `line`. */
const char *message_page_advice(const struct message *message, char *line, size_t line_bytes);

/* The limit that a program set for itself, as PyTorch's messages print it. */

/* Without a limit PyTorch prints the size of the card in its place. */
bool message_is_limited(const struct message *message);

/* Whether the request would exceed the limit. */
bool message_passes_limit(const struct message *message);

#endif
