/* Plays a workload (a recording, a traced program, a generator) as the requests of a part.
 *
 * 1. Blocks get a purpose. A tag of the workload decides if it names one. Else the lifetime does: a
 *    block that no end of a step finds live is an activation, and one that lives over one end of a
 *    step is a gradient. A block of the first step that stays is a weight if it comes before the
 *    first forward pass, where activations begin that are live when the gradients begin. It is a
 *    state of the optimizer if it comes after the first gradient and has the size of a weight (in
 *    this type or another). Without gradients the peak of the first step divides them. The rest are
 *    other state, such as workspaces of libraries.
 * 2. After its last step the workload is played again from the step `repeat`. The blocks that the
 *    program had at the begin of that step and those that it has now are compared: blocks of the
 *    same size take each other's place, others are freed or allocated.
 * 3. Blocks can be away (offloaded): they are freed, and allocated again by player_onload. */
#pragma once

#include "sim/twin/part.h"
#include "workloads/trace/source.h"

enum player_purpose {
    PLAYER_ACTIVATION,
    PLAYER_WEIGHT,
    PLAYER_GRADIENT,
    PLAYER_OPTIMIZER,
    PLAYER_STATE,
    PLAYER_BLOCK, /* not known: the workload adapts itself to the policy */
    PLAYER_PURPOSES
};
#define PLAYER_ALL ((1u << PLAYER_PURPOSES) - 1)

extern const char *const player_purpose_names[PLAYER_PURPOSES];

struct player_block {
    struct twin_block block;
    struct twin_block copy; /* in pinned memory, while it is away */
    uint64_t id;            /* of the workload */
    uint32_t stream, pool;
    const char *tag;
    uint8_t purpose;
    bool known, away; /* known: the program has the block */
};

struct player {
    struct twin_part *part;
    struct trace_source *source;
    const struct trace_event *events; /* pulled and not played */
    size_t count;
    uint64_t played;             /* events of this pass */
    struct player_block *blocks; /* by slot of the workload */
    size_t block_count;
    uint8_t *purposes; /* by id; enum player_purpose */
    size_t purpose_count;
    uint64_t load_end;     /* event after the last weight */
    uint32_t block_stream; /* of the first request */
    uint64_t steps;        /* in a pass; 0: not known, or no steps */
    uint64_t repeat;       /* the step from which later passes begin, from 1 */
    uint64_t step;         /* ended in this pass */
    uint32_t owners[PLAYER_PURPOSES];
    uint32_t outside_owner;
    uint32_t *streams, *pools; /* of the process, by those of the workload */
    size_t stream_count, pool_count;
    bool one_stream; /* all requests are made on stream 0 of the process */
    bool ended;      /* the pass */
    bool in_step;    /* events of a step were played and not its end */
    /* Of a caller that plays events itself (player_play): */
    const uint32_t *owner_of; /* by id; NULL: by purpose */
    uint64_t region_pools;    /* a bit for each pool of the workload that is an open region's */
};

/* In create. Takes over the source, also if it fails. */
enum ar_status player_open(struct player *self, struct twin_part *part, struct trace_source *source,
                           uint64_t repeat, bool one_stream, struct ar_error *error);
void player_close(struct player *self); /* a zeroed struct is fine */

/* Plays the workload until its weights are there. */
enum ar_status player_load(struct player *self, struct ar_error *error);
/* Plays at most so many events of a step; `*more` if it is not at its end. */
enum ar_status player_step(struct player *self, uint64_t events, bool *more,
                           struct ar_error *error);
/* Plays on until a mark with this label, at most so many events; `*more` if it was not reached.
 * INVALID: the rest of the workload has no such mark. */
enum ar_status player_to_mark(struct player *self, const char *label, uint64_t events, bool *more,
                              struct ar_error *error);
/* Plays one event of the workload, whose slot may be any number that is the block's alone. */
enum ar_status player_play(struct player *self, const struct trace_event *event,
                           struct ar_error *error);
/* Frees all blocks. The next step is the first one of a new pass. */
enum ar_status player_reset(struct player *self, struct ar_error *error);

/* Frees the live blocks of these purposes (a bit for each); `pinned`: their copies are in pinned
 * host memory. Both return the number of blocks that moved. */
size_t player_offload(struct player *self, unsigned purposes, bool pinned);
size_t player_onload(struct player *self, unsigned purposes);
/* Whether a block of these purposes is away. */
bool player_is_away(const struct player *self, unsigned purposes);

/* The live blocks of a purpose in the order of their requests: calls `take` for each. */
void player_each(struct player *self, unsigned purposes,
                 void (*take)(void *argument, struct player_block *block), void *argument);

/* The purpose of each block of a workload (rule 1 of player.h). */

/* Reads the workload once, unless it adapts itself to the policy, and sets purposes, load_end and
 * steps of the player. A workload with more events than PURPOSES_EVENTS is read so far; later
 * blocks have the purpose of their tags, or PLAYER_BLOCK. */
#define PURPOSES_EVENTS (UINT64_C(1) << 23)
enum ar_status purposes_find(struct player *player, struct ar_error *error);

/* The purpose that a tag names. */
bool purposes_of_tag(const char *tag, uint8_t *purpose);
