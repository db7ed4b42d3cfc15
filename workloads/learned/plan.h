/* Which recorded step comes next, with which sizes: learned.md, "Order" and "Sizes". */
#ifndef WORKLOADS_LEARNED_PLAN_H
#define WORKLOADS_LEARNED_PLAN_H

#include "allocators/base/rng.h"
#include "workloads/learned/learned.h"

struct learned_planned {
    size_t step;    /* of the recording */
    bool new_sizes; /* its requests have the sizes in `bytes` of the plan, not the recorded ones */
};

struct learned_plan {
    const struct learned_model *model;
    uint64_t seed;
    struct ar_rng rng;
    double *weights;            /* of each recorded step, as this seed draws them */
    struct learned_tail *tails; /* of each class, as this seed draws them */
    double above;               /* the part of a tail above its draw in this run; 0: not drawn */
    uint32_t *choice;           /* room for the steps to choose from */
    uint64_t *bytes;            /* of the requests of the last planned step */
    /* Steps that are chosen and not yet taken, the first at `first` modulo the room. After one with
     * new sizes no more are chosen. */
    struct learned_planned ahead[LEARNED_AHEAD];
    size_t first, count;
    uint64_t step; /* the number of the next one to choose, and the step chosen before it */
    size_t last;
};

/* False: no memory; the plan must be closed in any case. */
bool learned_plan_open(struct learned_plan *self, const struct learned_model *model, uint64_t seed);
void learned_plan_restart(struct learned_plan *self);
void learned_plan_close(struct learned_plan *self);

/* The step after `ahead` others; NULL: the sizes of one before it are new. */
const struct learned_planned *learned_plan_peek(struct learned_plan *self, size_t ahead);
struct learned_planned learned_plan_take(struct learned_plan *self);

#endif
