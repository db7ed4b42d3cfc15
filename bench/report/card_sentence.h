/* Which card a page is about, as sentences. */
#ifndef BENCH_REPORT_CARD_SENTENCE_H
#define BENCH_REPORT_CARD_SENTENCE_H

#include <stdio.h>

#include "sim/experiment/recorded_card.h"

/* Prints where the capacity is from (nothing if it was asked for). `profile` names the device. */
void card_sentence_print(FILE *stream, const struct recorded_card *card, const char *profile);

/* Prints whose driver costs are charged; nothing if `costs_of` is "": the card's own. */
void card_costs_print(FILE *stream, const char *costs_of);

/* The word for JSON: asked, limit, driver, total, name, unknown. */
const char *card_source_name(enum recorded_card_source source);

#endif
