/* The plug-in in its process: settings from the environment, one card for each GPU that the program
 * requests memory on, exit and fork.
 *
 * 1. The first call reads the settings. If they are wrong, every request fails with that error.
 * 2. At exit, before the driver shuts down, the statistics are written and the recording ends.
 *    Later frees do nothing and later requests fail: the memory ends with the process.
 * 3. A fork takes all locks, so the parent continues undisturbed. CUDA does not work in the child:
 *    its requests fail with a sentence, its frees do nothing and its exit writes nothing. */
#pragma once

#include "bench/plugin/card.h"

/* The card of that ordinal; the first call makes it. NULL with a sentence, "" at exit. */
struct card *process_card(int ordinal, struct ar_error *error);

/* The card if it was made and the process is up, else NULL. */
struct card *process_card_there(int ordinal);

/* Iterates over the cards that exist, from ordinal `from` on. NULL: no more. */
struct card *process_next_card(unsigned *from);

/* False in a forked child and at exit. */
bool process_is_up(void);

/* Limits the card, now or when it is made, to a fraction of its memory. */
void process_limit(int ordinal, double fraction);

void process_mark(const char *label);
