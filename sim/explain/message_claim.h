/* Whether the words of a message say that it happened to the program of the text: a text may also
 * fear, guess, quote or deny it. */
#pragma once

#include "sim/explain/message_text.h"

/* Whether the words before `at` say that memory may run out: advice, or a text about a program.
 * Words for a card may stand between. */
bool message_claim_is_feared(const struct message_text *text, size_t at);

/* Whether a command or a call stands before the words in their line: grep -i "oom-kill". */
bool message_claim_is_code(const struct message_text *text, size_t at);

/* Whether the text begins with a task, and the words are in that line: "Add a check
 * for OOM". Behind a colon they are what a program printed: "Document 17: out of memory". */
bool message_claim_is_task(const struct message_text *text, size_t at);

/* Whether the sentence has a placeholder for the size: "failed to allocate %zu bytes". */
bool message_claim_is_template(const struct message_text *text, size_t at);

/* Whether the words that end at `end` are explained: "OOMKilled" means that .. */
bool message_claim_is_defined(const struct message_text *text, size_t end);

/* Whether the program tried again after it, as the rest of the line says. */
bool message_claim_is_survived(const struct message_text *text, size_t at);

/* Whether the text says that it was not a card's memory. */
bool message_claim_denies_card(const struct message_text *text);

/* Whether the words are one of several causes, a guess, or advice. */
bool message_claim_is_guess(const struct message_text *text, size_t at);

/* Whether the words of the message are those of a person, who may tell of another time. */
bool message_claim_is_told(const struct message_text *text, const struct message *self);

/* Whether the words before a message make it an example, or another person's. */
bool message_claim_is_example(const struct message_text *text, const struct message *self);

/* Whether the words at `at`, such as "failed" or "unable to", are a failure to take memory, which
 * "no failures", "failures: 0", "12 GiB out of 24 GiB" and "unable to link" are not. */
bool message_claim_fails(const struct message_text *text, size_t at);

/* The same of one of these words in [from, to). */
bool message_claim_fails_within(const struct message_text *text, const char *words, size_t from,
                                size_t to);

/* Whether the call whose name ends at `end` was not tried, or succeeded. */
bool message_claim_is_untried(const struct message_text *text, size_t end);

/* Whether the words that end at `end` are of what did not happen: "oom-kill events: 0". */
bool message_claim_is_none(const struct message_text *text, size_t end);
