/* Texts for LaTeX. */
#ifndef BENCH_REPORT_LATEX_H
#define BENCH_REPORT_LATEX_H

#include <stdio.h>

/* Writes a text such that LaTeX sets it as it is, whatever it holds. */
void latex_text(FILE *stream, const char *text);

#endif
