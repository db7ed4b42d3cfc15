/* The wordings of messages as patterns, which say where the figures stand.
 *
 *   a..z etc.  the same characters: text is lower case, without white space
 *   #          a number
 *   *          at most 400 characters
 *   A, F, ..   the size of a figure, by its letter (message_forms.c)
 *   |          between patterns for the same, of which the first one that fits is taken
 *   &          what follows may be missing; it is looked for in the rest of the message */
#pragma once

#include "sim/explain/message_text.h"

enum message_form_flag {
    FORM_HOST = 1,        /* the memory is the host's */
    FORM_SPARE = 2,       /* the program continues without it */
    FORM_CARD = 4,        /* total and free are those of the card */
    FORM_LAST = 8,        /* the last message counts: the earlier ones were retried */
    FORM_CHIP = 16,       /* the memory is on the chip */
    FORM_BLOCK = 32,      /* the device limits the bytes of one request */
    FORM_ONE_POOL = 64,   /* the free bytes are the unused ones of the only pool */
    FORM_MIB = 128,       /* a number without a unit is one of MiB */
    FORM_ELSEWHERE = 256, /* it is not the card that is full */
    FORM_LIKELY = 512,    /* the same words have other causes too */
    FORM_GIB = 1024,      /* a number without a unit is one of GiB */
    FORM_SUM = 65536,     /* what is reserved counts the request */
    FORM_NAMED = 131072,  /* only if the text names the program elsewhere too */
    /* Only if the words are one word, a line of their own, beside words for a card, beside words
     * for a failure, or cut within the last one. */
    FORM_ONE_WORD = 2048,
    FORM_LINE = 4096,
    FORM_NEAR = 8192,
    FORM_FAILS = 16384,
    FORM_END = 32768,
    FORM_WORD = 262144, /* only as a whole word */
    FORM_FAR = 524288   /* only if no word for a card stands near */
};

struct message_form {
    const char *pattern;
    enum message_framework framework;
    const char *device; /* "": not in the message */
    const char *how;    /* how to find the cause; NULL: the framework's way */
    unsigned flags;
};

/* The table, and advice that is also given by a buffer's name. */
extern const struct message_form message_forms[];
extern const size_t message_form_count;
extern const char message_how_vulkan[];
extern const char message_how_guess[];
extern const char message_how_warm[];
extern const char message_how_web[];
extern const char message_how_workspace[];

/* The next place in [from, to) where one pattern begins, without what may be missing. A number
 * without a unit counts 2^shift bytes; a shift below 0: it is none. A request below zero counts as
 * 2^60 bytes. `end`: where it ends; `figures` may be NULL if it has none. */
size_t message_pattern_find(const struct message_text *text, const char *pattern, size_t from,
                            size_t to, int shift, struct message_figure *figures, size_t *end);

/* The next of several patterns for the same; NULL: there is none. */
const char *message_pattern_next(const char *pattern);

/* Reads the figures of all parts that are in [from, to). Returns whether the first one is. */
bool message_pattern_read(const struct message_text *text, const char *patterns, size_t from,
                          size_t to, int shift, struct message_figure *figures);

/* Reads the first message of this form (FORM_LAST: the last one). */
bool message_form_read(const struct message_text *text, const struct message_form *form,
                       struct message *self);

/* Sets what a form says of a message beside its figures. */
void message_form_apply(const struct message_form *form, struct message *self);
