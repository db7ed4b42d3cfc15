/* A text that a test puts together piece by piece; what has no room is cut. */
#ifndef TESTS_SUPPORT_WRITING_H
#define TESTS_SUPPORT_WRITING_H

struct writing {
    char text[4096];
};

/* Adds as printf would print. */
void writing_add(struct writing *writing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
