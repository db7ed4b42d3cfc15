/* From the figures of a message to its cause. */
#ifndef SIM_EXPLAIN_MESSAGE_ACCOUNT_H
#define SIM_EXPLAIN_MESSAGE_ACCOUNT_H

#include "sim/explain/message.h"

/* Computes the figures that follow from those that are printed, finds contradictions, and sets the
 * cause, the confidence and the reasons. */
void message_judge(struct message *self);

#endif
