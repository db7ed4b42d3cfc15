/* Text in lines that fit a terminal, further lines indented. */
#ifndef BENCH_REPORT_SENTENCE_H
#define BENCH_REPORT_SENTENCE_H

#include <stdbool.h>
#include <stdio.h>

#define SENTENCE_WIDTH 80 /* columns of what a person reads at a terminal */

/* The words of a text, the first at `column`, in lines of at most `width` columns; lines after
 * the first begin at `indent`. With the line end. A line end in the text is a space. What stands
 * between backticks is not broken where it fits in a line. */
void sentence_wrap(FILE *stream, const char *text, int column, int indent, int width);

/* With the line end. Breaks only at spaces. */
void sentence_print(FILE *stream, const char *sentence);

/* What printf would print, with the spaces that it begins with; further lines at `indent`. */
void sentence_format(FILE *stream, int indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A text to be copied, a setting or a command, is never broken: behind the label where it fits,
 * else at the beginning of a line of its own, however long. Several, separated by "; ", are
 * then set below each other. */
void sentence_copied(FILE *stream, const char *label, const char *text);

/* A sentence of the program about itself, an error or what was done, on standard error. On a
 * terminal it is broken to fit; in a file or a pipe it stays one line, since logs are searched
 * and filtered by lines. */
void sentence_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
