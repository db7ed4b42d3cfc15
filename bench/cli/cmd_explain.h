#ifndef BENCH_CLI_CMD_EXPLAIN_H
#define BENCH_CLI_CMD_EXPLAIN_H

#include "sim/explain/message.h"

/* An out-of-memory message out of a file, however long: a log, or what comes through a pipe. */
/* Reads the first such message of a file; "-" is standard input. `*more` where the file goes on
 * behind the part in which messages were counted. INVALID as message_read, IO. */
enum ar_status message_file_read(const char *path, struct message *out, bool *more,
                                 struct ar_error *error) AR_STATUS_CHECKED;

/* Whether a text is a file, or was meant to be one: a word with a slash or the ending of a log. */
bool message_file_is_meant(const char *text);

#endif
