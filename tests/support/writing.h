/* A text that a test puts together piece by piece; what has no room is cut. And what is printed to
 * a stream, as a text. */
#pragma once

#include <stdio.h>

struct writing {
    char text[4096];
};

/* Adds as printf would print. */
void writing_add(struct writing *writing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A stream into memory. The caller frees the text that capture_end returns; capture_is compares and
 * frees it. */
struct capture {
    FILE *stream;
    char *text;
    size_t length;
};

FILE *capture_begin(struct capture *self);
char *capture_end(struct capture *self);
void capture_is(struct capture *self, const char *wanted);
