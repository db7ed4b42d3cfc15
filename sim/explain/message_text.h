/* The text of a pasted message, made fit for looking for words: lower case, without any white
 * space (a terminal breaks lines wherever it likes, also inside of words), without colours, the
 * strokes of boxes and tables, marks of quotes at the beginnings of lines, and with "\n" written
 * out taken as the line end that it was. Where white space stood is remembered: numbers without a
 * unit end there. */
#ifndef SIM_EXPLAIN_MESSAGE_TEXT_H
#define SIM_EXPLAIN_MESSAGE_TEXT_H

#include "sim/explain/message.h"

enum message_gap { MESSAGE_GAP_NONE, MESSAGE_GAP_SPACE, MESSAGE_GAP_LINE };

struct message_text {
    char *chars;         /* ends with a zero byte */
    unsigned char *gaps; /* enum message_gap before chars[i] */
    size_t count;
};

/* HOST_MEMORY; the caller closes it. */
enum ar_status message_text_open(const char *text, size_t bytes, struct message_text *self,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void message_text_close(struct message_text *self);

#define MESSAGE_NOWHERE SIZE_MAX

/* Where `words` (written without white space, in lower case) next stand in [from, to). */
size_t message_text_find(const struct message_text *self, const char *words, size_t from,
                         size_t to);

/* Reads "20.00mib", "3.31g", "0bytes", "1,610,612,736bytes" at `at`; returns where it ends,
 * MESSAGE_NOWHERE if none stands there. Units are powers of 1024, as all frameworks mean them. */
size_t message_text_size(const struct message_text *self, size_t at, struct message_figure *figure);

/* The same of a request, which may be of any size: as 2^60 bytes where it is of more. */
size_t message_text_asked(const struct message_text *self, size_t at,
                          struct message_figure *figure);

/* As message_text_size, ending right before `at`. */
bool message_text_size_before(const struct message_text *self, size_t at,
                              struct message_figure *figure);

/* Reads a whole number of bytes at `at`; it ends where white space stood. */
size_t message_text_count(const struct message_text *self, size_t at, uint64_t *count);

/* The readers of one framework's wordings each; CuPy's and RMM's, which are short, share one. */
/* Whether such a message is there; fills the figures that it gives, as printed. A message that
 * does not say how much was asked for leaves that figure unknown. */
bool message_read_torch(const struct message_text *text, struct message *self);
bool message_read_pools(const struct message_text *text, struct message *self);
bool message_read_xla(const struct message_text *text, struct message *self);

#endif
