/* The wording of a message as a table entry. */
#pragma once

#include "sim/explain/message_text.h"

/* A figure, between words. One of the two may be NULL. */
struct message_field {
    enum message_figure_name figure;
    const char *before, *after;
};

enum message_form_flag {
    FORM_HOST = 1,       /* the memory is the host's */
    FORM_SPARE = 2,      /* the program continues without it */
    FORM_CARD = 4,       /* total and free are those of the card */
    FORM_LAST = 8,       /* the last message counts: the earlier ones were retried */
    FORM_ON_CHIP = 16,   /* the memory is on the chip */
    FORM_BLOCK = 32,     /* the device limits the bytes of one request */
    FORM_ONE_POOL = 64,  /* the free bytes are the unused ones of the only pool */
    FORM_MIB = 128,      /* a number without a unit is one of MiB */
    FORM_ELSEWHERE = 256 /* it is not the card that is full */
};

/* All words are lower case, without white space. */
struct message_form {
    enum message_framework framework;
    const char *device;             /* NULL: not in the message */
    const char *anchor;             /* words of each such message */
    const char *near;               /* other words that it has; NULL: none */
    unsigned back, ahead;           /* how many characters around the anchor belong to it */
    struct message_field fields[5]; /* the first is the request, or the first part of it */
    unsigned flags;
    const char *how; /* how to find the cause; NULL: the framework's way */
};

/* The table, and advice that is also given by a buffer's name. */
extern const struct message_form message_forms[];
extern const size_t message_form_count;
extern const char message_how_vulkan[];
extern const char message_how_earlier[];
extern const char message_how_guess[];

/* Reads the figure of a field in [from, to). A request below zero counts as 2^60 bytes. A number
 * without a unit counts 2^shift bytes; a shift below 0: it is none. */
bool message_field_read(const struct message_text *text, const struct message_field *field,
                        size_t from, size_t to, int shift, struct message_figure *figure);

/* Reads the first message of this form (FORM_LAST: the last one). */
bool message_form_read(const struct message_text *text, const struct message_form *form,
                       struct message *self);
