/* Sentences in lines of at most 95 columns, further lines indented. */
#ifndef BENCH_REPORT_SENTENCE_H
#define BENCH_REPORT_SENTENCE_H

#include <stdio.h>

/* With the line end. Breaks only at spaces. */
void sentence_print(FILE *stream, const char *sentence);

#endif
