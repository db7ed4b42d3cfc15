/* What an out-of-memory message says and why the request failed, as a page for a reader. */
#ifndef BENCH_REPORT_MESSAGE_PAGE_H
#define BENCH_REPORT_MESSAGE_PAGE_H

#include <stdio.h>

#include "sim/explain/message.h"

/* `more`: the text went on behind what was read. */
void message_page_print(FILE *stream, const struct message *message, bool more);

/* What to try, by cause and framework: sentences. */
const char *message_page_advice(const struct message *message);

#endif
