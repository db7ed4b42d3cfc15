/* The limit that a program set for itself, as PyTorch's messages print it. */
#ifndef BENCH_REPORT_MESSAGE_LIMIT_H
#define BENCH_REPORT_MESSAGE_LIMIT_H

#include "sim/explain/message.h"

/* Without a limit PyTorch prints the size of the card in its place. */
bool message_is_limited(const struct message *message);

/* Whether the request would exceed the limit. */
bool message_passes_limit(const struct message *message);

#endif
