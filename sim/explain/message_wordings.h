/* The readers of one framework's wordings each; CuPy's and RMM's, which are short, share one. */
#ifndef SIM_EXPLAIN_MESSAGE_WORDINGS_H
#define SIM_EXPLAIN_MESSAGE_WORDINGS_H

#include "sim/explain/message_text.h"

/* Whether such a message is there; fills the figures that it gives, as printed. A message that
 * does not say how much was asked for leaves that figure unknown. */
bool message_read_torch(const struct message_text *text, struct message *self);
bool message_read_pools(const struct message_text *text, struct message *self);
bool message_read_xla(const struct message_text *text, struct message *self);

#endif
