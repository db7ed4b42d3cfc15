/* A figure that is worse as a line that GitHub shows beside a commit: a workflow command. */
#ifndef BENCH_REGRESS_ANNOTATION_H
#define BENCH_REGRESS_ANNOTATION_H

#include <stdio.h>

/* `level`: "error" or "warning". Signs of workflow commands in the other two stand as percent codes. */
void annotation_worse(FILE *stream, const char *level, const char *figure, const char *text);

#endif
