/* What the files of a card call of each other. All of it with the card's lock held. */
#ifndef BENCH_PLUGIN_CARD_PARTS_H
#define BENCH_PLUGIN_CARD_PARTS_H

#include "bench/plugin/card.h"

/* card.c */
void card_enter(struct card *card);
void card_leave(struct card *card);
/* The policy gets the block back, whose record is gone then. */
enum ar_status card_give_back(struct card *card, struct card_block *block, uint32_t stream);

/* streams.c: the ordinal of a stream, which may be new. */
enum ar_status card_stream(struct card *card, CUstream stream, uint32_t *ordinal,
                           struct ar_error *error) AR_STATUS_CHECKED;
void card_streams_close(struct card *card);

/* pools.c: the pool that a request on `stream` belongs to now; 0: the common one. */
uint32_t card_pool_now(struct card *card, CUstream stream);
/* True: the block is of a pool that may use it again, and is held. */
bool card_pool_hold(struct card *card, struct card_block *block);

/* figures.c */
void card_limit_inside(struct card *card, double fraction);

#endif
