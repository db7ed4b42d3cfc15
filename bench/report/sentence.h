/* Text broken into lines that fit a terminal; further lines are indented. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#define SENTENCE_WIDTH 80 /* columns of what a person reads at a terminal */

/* Prints the words of a text, the first at `column`, in lines of at most `width` columns; lines
 * after the first begin at `indent`. Ends the last line. A line end in the text counts as a space.
 * Text between backticks is not broken if it fits in a line. */
void sentence_wrap(FILE *stream, const char *text, int column, int indent, int width);

/* Prints one sentence, like printf, with SENTENCE_WIDTH and an indent of 2 or `indent`. Keeps the
 * leading spaces. */
void say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sentence_format(FILE *stream, int indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints a text to copy, a setting or a command, without breaking it: after the label if it fits,
 * else at the beginning of a line of its own. Several texts separated by "; " then have a line
 * each. */
void sentence_copied(FILE *stream, const char *label, const char *text);

/* Appends to a text that has so many bytes of room; what does not fit is cut off. */
void text_add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Closes a stream of open_memstream. False if the text is not whole, or the stream is NULL: the
 * text is freed and NULL then. Without memory it may be missing although fclose succeeds. */
bool text_end(FILE *stream, char **text);

/* A message of the program, an error or what it did, for standard error. On a terminal it is broken
 * to fit; in a file or a pipe it is one line, because logs are searched and filtered by lines. */
void sentence_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
