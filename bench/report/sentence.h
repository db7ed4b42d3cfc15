/* Text in lines that fit a terminal, further lines indented. */
#ifndef BENCH_REPORT_SENTENCE_H
#define BENCH_REPORT_SENTENCE_H

#include <stdbool.h>
#include <stdio.h>

#define SENTENCE_WIDTH 80 /* columns of what a person reads at a terminal */

/* The words of a text, the first at `column`, in lines of at most `width` columns; lines after
 * the first begin at `indent`. With the line end. A line end in the text is a space. */
void sentence_wrap(FILE *stream, const char *text, int column, int indent, int width);

/* With the line end. Breaks only at spaces. */
void sentence_print(FILE *stream, const char *sentence);

#endif
