/* The purpose of each block of a workload (rule 1 of player.h). */
#ifndef SIM_TWIN_PARTS_PURPOSES_H
#define SIM_TWIN_PARTS_PURPOSES_H

#include "sim/twin/parts/player.h"

/* Reads the workload once, unless it adapts itself to the policy, and sets purposes, load_end and
 * steps of the player. A workload with more events than PURPOSES_EVENTS is read so far; later
 * blocks have the purpose of their tags, or PLAYER_BLOCK. */
#define PURPOSES_EVENTS (UINT64_C(1) << 23)
enum ar_status purposes_find(struct player *player, struct ar_error *error) AR_STATUS_CHECKED;

/* The purpose that a tag names. */
bool purposes_of_tag(const char *tag, uint8_t *purpose);

#endif
