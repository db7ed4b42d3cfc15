#ifndef BENCH_CLI_CMD_EXPLAIN_H
#define BENCH_CLI_CMD_EXPLAIN_H

#include "sim/explain/message.h"

/* Reads the first out-of-memory message of a file of any length, such as a log; "-" is standard
 * input. Sets `*more` if the file continues after the part in which messages were counted. INVALID
 * as message_read; IO. */
enum ar_status message_file_read(const char *path, struct message *out, bool *more,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* True if a text is the name of a file or looks like one: a word with a slash or the ending of a
 * log. */
bool message_file_is_meant(const char *text);

#endif
