/* `learned:trace=FILE,steps=N,seed=S`: a workload that goes on as a recording did. The recorded
 * steps come first, unchanged; then steps are drawn from them by the rules of learned.md. Memory is
 * that of the recording and of the blocks live at once. */
#pragma once

#include "allocators/options.h"
#include "workloads/learned/model.h"

struct learned_values {
    const char *trace; /* owned by the spec */
    uint64_t steps, seed;
};

extern const struct ar_option learned_options[];
#define LEARNED_NAME    "learned"
#define LEARNED_SUMMARY "a recording that goes on: steps drawn with the variation of its steps"
#define LEARNED_PAGE    "workloads/learned/learned.md"

/* A trace of `values->steps` steps. The source takes the model, also if it fails. */
enum ar_status learned_open(struct learned_model *model, const struct learned_values *values,
                            struct trace_source **out, struct ar_error *error);

/* The same for a long run that only memory matters in. The model still belongs to the caller and
 * must outlive the source, and
 * - a span is one step and the end comes after each; the next pull continues;
 * - there are no times, marks and tags, and no kernels, waits and uses if blocks live on one
 *   stream: only what a policy is told of;
 * - events are not checked and not counted. */
enum ar_status learned_open_lean(const struct learned_model *model, uint64_t steps, uint64_t seed,
                                 struct trace_source **out, struct ar_error *error);

/* Of a lean source: a live block by its slot. False: the slot has none. */
struct learned_live {
    uint64_t bytes, id;
    uint32_t born;   /* its step, from 0 */
    const char *tag; /* NULL: none */
};
size_t learned_slots(const struct trace_source *source);
bool learned_slot(const struct trace_source *source, size_t slot, struct learned_live *out);
/* The events of the last step. */
size_t learned_span(const struct trace_source *source);

/* The recorded step that comes after `ahead` others, 0 to LEARNED_AHEAD - 1; LEARNED_NEW_SIZES if
 * it, or one before it, gets sizes that were not recorded. */
#define LEARNED_AHEAD     64
#define LEARNED_NEW_SIZES SIZE_MAX
size_t learned_peek(struct trace_source *source, size_t ahead);
/* Counts the next steps, which were peeked at, without their events. The steps after them must find
 * the state in which these would have left it. */
void learned_skip(struct trace_source *source, size_t count);
/* Gives the carried blocks the steps of their requests (`born`), of which some may have been
 * skipped. */
void learned_settle(struct trace_source *source);
/* The slots of the blocks carried to the next step, in their order, valid until then; their roles
 * are mixed into `*hash`. */
size_t learned_carried(struct trace_source *source, const uint32_t **slots, uint64_t *hash);

/* Steps so far whose list of carried blocks had to be changed to fit the next one. */
uint64_t learned_misfits(const struct trace_source *source);

/* Which recorded step comes next, with which sizes: learned.md, "Order" and "Sizes". */

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
