/* The plug-in in its process: what the environment asks for, one card each, made when a program
 * first asks for memory on it, and the end.
 *
 * 1. The settings are read once, at the first call. What is wrong with them is the answer to every
 *    request.
 * 2. At exit, before the driver goes, the statistics are written and the recording ends. After that
 *    memory goes with the process: frees are heard and do nothing, requests get nothing.
 * 3. A fork takes all locks, so that the parent goes on as it was. In the child CUDA does not work:
 *    requests are refused with a sentence, frees do nothing, and its end writes nothing. */
#ifndef BENCH_PLUGIN_PROCESS_H
#define BENCH_PLUGIN_PROCESS_H

#include "bench/plugin/card.h"

/* The card of that ordinal, made if it is new. NULL with a sentence, "" where the process ends. */
struct card *process_card(int ordinal, struct ar_error *error);

/* That card, where something was asked for on it and the process is up; else NULL. */
struct card *process_card_there(int ordinal);

/* The cards there are now, from `from` on, for what concerns all of them. NULL: no more. */
struct card *process_next_card(unsigned *from);

/* False in a forked child, and once the process ends. */
bool process_is_up(void);

/* A share of that card's memory, for a card that is there or to come. */
void process_limit(int ordinal, double fraction);

void process_mark(const char *label);

#endif
