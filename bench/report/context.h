/* Where and how a result was made, for the JSON record and, of a card, for people. */
#ifndef BENCH_REPORT_CONTEXT_H
#define BENCH_REPORT_CONTEXT_H

#include <stdio.h>

#include "bench/report/json_writer.h"
#include "bench/machine/environment.h"

/* The object `context`. */
void context_json_write(struct json_writer *json, const struct environment *environment);

/* The card, and warnings where it was throttled or others were on it. Nothing without a card. */
void context_card_print(FILE *stream, const struct environment *environment);

#endif
