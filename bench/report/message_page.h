/* What the page of a message and its advice share. */
#pragma once

#include "sim/explain/message.h"

/* The bytes of a figure; 0: not known. */
uint64_t message_page_bytes(const struct message *message, enum message_figure_name name);

/* Of the cause `capacity`: the bytes that are free on the card and unused in the pool, and by how
 * much the request exceeds them. 0: not known, or enough but for rounding. */
uint64_t message_page_short_by(const struct message *message, uint64_t *together);

/* Whether the compiled program needs more than the limit. */
bool message_page_program_passes(const struct message *message);

/* Whether the request would exceed the limit that the program set. */
bool message_page_passes_limit(const struct message *message);

/* As message_page_advice: what to try against fragmentation. */
const char *message_page_unfragment(const struct message *message, char *line, size_t line_bytes);
