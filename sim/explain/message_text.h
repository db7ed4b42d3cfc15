/* The text of a pasted message, normalized for searches: lower case, without white space (a
 * terminal may break lines inside of words), without colours, box and table characters, the marks
 * of HTML and Markdown, and quote marks at the beginnings of lines. An escaped "\n" counts as the
 * end of a line. The positions of
 * white space are kept, because numbers without a unit end there. */
#pragma once

#include "sim/explain/message.h"

/* WRAP: the end of a line that a terminal broke. */
enum message_gap { MESSAGE_GAP_NONE, MESSAGE_GAP_WRAP, MESSAGE_GAP_SPACE, MESSAGE_GAP_LINE };

struct message_text {
    char *chars;          /* ends with a zero byte */
    unsigned char *gaps;  /* enum message_gap before chars[i] */
    unsigned char *ranks; /* before the line of chars[i], "[rank3]:", plus 1; 0: none */
    size_t count;
    bool binary; /* a size in MiB or GiB is in it */
    bool cut;    /* the original ends in a number, without a line end */
};

/* Replaces escapes by their characters; `out` has room for all bytes. Returns the number of bytes.
 * Logs of Windows shells are UTF-16: every other byte is 0. */
size_t message_text_decode(const char *text, size_t bytes, char *out);

/* HOST_MEMORY; the caller closes it. */
enum ar_status message_text_open(const char *text, size_t bytes, struct message_text *self,
                                 struct ar_error *error);
void message_text_close(struct message_text *self);

#define MESSAGE_NOWHERE SIZE_MAX

/* The position of the next `words` (lower case, without white space) in [from, to). */
size_t message_text_find(const struct message_text *self, const char *words, size_t from,
                         size_t to);

/* Reads a size such as "20.00mib", "3.31g", "0bytes" or "1,610,612,736bytes" at `at`. Returns its
 * end, or MESSAGE_NOWHERE if there is none. Units are powers of 1024 in all frameworks. */
size_t message_text_size(const struct message_text *self, size_t at, struct message_figure *figure);

/* What is read of a request that is too large to be read: 2^60 bytes or more. */
extern const struct message_figure message_figure_enormous;

/* The same for a request, also of one that is enormous. */
size_t message_text_asked(const struct message_text *self, size_t at,
                          struct message_figure *figure);

/* The same, also for a number without a unit: with a shift of 0 a whole number of bytes, with 20 a
 * number of MiB, and so on. */
size_t message_text_number(const struct message_text *self, size_t at, int shift,
                           struct message_figure *figure);

/* As message_text_size, for a size that ends right before `at`. */
bool message_text_size_before(const struct message_text *self, size_t at,
                              struct message_figure *figure);

/* Whether white space stands before `at`, other than a line end in the middle of a word. */
static inline bool message_text_apart(const struct message_text *self, size_t at)
{
    return self->gaps[at] > MESSAGE_GAP_WRAP;
}

/* Whether a text begins with a date, a time, or a version of two points. */
bool message_text_is_stamp(const char *text, size_t bytes);

/* Reads a whole number of bytes at `at`. White space in the original text ends it. */
size_t message_text_count(const struct message_text *self, size_t at, uint64_t *count);

bool message_text_has(const struct message_text *self, const char *words);

/* Whether one of these words, with bars between them, is in [from, to). */
bool message_text_any(const struct message_text *self, const char *words, size_t from, size_t to);

/* Whether the words end at `at`. */
bool message_text_ends(const struct message_text *self, const char *words, size_t at);

/* Where the sentence of `at` begins and where it ends, at its last character. What a program prints
 * after "error:" is a sentence. */
size_t message_text_sentence_begin(const struct message_text *self, size_t at);
size_t message_text_sentence_end(const struct message_text *self, size_t at);

/* Whether an error that is no lack of memory is given as the reason right after words that end at
 * `at`, such as ": no CUDA-capable device is detected". */
bool message_text_other_reason(const struct message_text *self, size_t at);

/* Reads the size, or the number of bytes, after the words in [from, to); of several the first that
 * has one. Returns its end. */
size_t message_text_after(const struct message_text *self, const char *words, size_t from,
                          size_t to, struct message_figure *figure);

/* Reads the size that the words around it call a request, of several the one nearest to `failure`.
 * It needs a unit, unless the words stand for sizes alone. Returns its place. */
size_t message_text_request(const struct message_text *self, size_t failure,
                            struct message_figure *asked);

/* Whether JAX printed a message of XLA, not TensorFlow. */
bool message_text_speaks_jax(const struct message_text *self);

/* Whether the text says that the system or a launcher killed a process, most often for memory. */
bool message_text_tells_of_kill(const struct message_text *self);

/* Whether a word for a card stands in the line of `at`: a whole one, for "gpu020" is a host. */
bool message_text_in_line_of_card(const struct message_text *self, size_t at);

/* Whether the text tells, apart from this message, that a card's memory ran out. */
bool message_text_tells_of_card(const struct message_text *self, const struct message *message);

/* How to find a cause if the message does not name its program. */
extern const char message_how_unknown[];

/* The readers of the wordings. They return whether the text has such a message, and fill the
 * printed figures. If the size of the request is missing, its figure stays unknown. */
bool message_read_torch(const struct message_text *text, struct message *self);
bool message_read_forms(const struct message_text *text, struct message *self); /* a table */
bool message_read_julia(const struct message_text *text, struct message *self);
bool message_read_vllm(const struct message_text *text, struct message *self);
void message_read_vllm_log(const struct message_text *text, struct message *self);
bool message_read_xla(const struct message_text *text, struct message *self);

/* Whether this message counts, for it stands before the other one and has another request, and both
 * are of cards or both of the host. */
bool message_is_before(const struct message *self, const struct message *other);

/* Reads the request from a shape such as "32,256,62,62]andtypefloat". An empty shape has one
 * element; a result above 2^60 bytes becomes 2^60. False: not a shape. */
bool message_read_shape(const struct message_text *text, size_t at, struct message *self);
void message_read_source(const char *text, size_t bytes, struct message *self);
bool message_read_printed(const struct message_text *text, struct message *self);
bool message_read_bare(const struct message_text *text, struct message *self);
void message_read_each(const struct message_text *text, struct message *self);

/* Computes the figures that follow from those that are printed, finds contradictions, and sets the
 * cause, the confidence and the reasons. */
void message_judge(struct message *self);
