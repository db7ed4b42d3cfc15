/* What `learned` knows of a program: the recorded steps in a form in which any of them can follow
 * any other, and which may follow which. learned.md states the rules; this is their second stage
 * (the recording is the first, learned.h the generator). A model does not change once it is made,
 * so several sources can use it at once. */
#pragma once

#include "allocators/base/rng.h"
#include "workloads/trace/tables.h"

/* ---- recording.c ---- */

/* A recording in memory, divided into steps, with the life of each block. The first stage of
 * `learned`; the model is the second.
 *
 * 1. Notes are left out, and so are the keys of kernels, which name blocks by their ids.
 * 2. A step ends at a mark `step`. A recording without such marks is divided by its live bytes: a
 *    step is one rise and fall. A rise is complete when live bytes have passed half of the way from
 *    the level of the valleys to that of the peaks, a fall when they are back at a quarter. The
 *    step ends at the last event with the fewest live bytes in between.
 * 3. Events after the last step are left out. */

#define LEARNED_STEPS_LEAST 4          /* in a recording */
#define LEARNED_NEVER       UINT32_MAX /* a step: the block is not freed in the recording */

struct learned_block {
    uint64_t bytes;
    uint32_t attributes, stream;
    uint32_t born;             /* step of its request, from 0 */
    uint32_t freed, completed; /* steps of the free request and of the last event, or NEVER */
};

struct learned_event {
    struct trace_event event; /* attributes and texts by the recording's own tables */
    uint32_t block;           /* index of the block, for the kinds that have one */
};

struct learned_recording {
    struct trace_info info;
    struct trace_tables tables;
    struct learned_event *events;
    size_t event_count, event_room;
    struct learned_block *blocks;
    size_t block_count, block_room;
    size_t *step_ends; /* the index after the last event of each step */
    size_t step_count, step_room;
    uint64_t *step_ns; /* duration of each step: recorded, or of its kernels on their streams */
    bool marked;       /* steps are marked; else found by rule 2 */
    bool timed;        /* step_ns is from recorded times; else the sum of the kernels' lengths */
    bool free_requested_final; /* no completion follows a free request */
    bool has_uses;
};

/* Called after each marked step that is read. */
struct learned_watch {
    void (*read)(void *argument);
    void *argument;
};

/* Pulls all of `source`, which still belongs to the caller. INVALID for an adaptive source, for
 * several GPUs, and if there are fewer than LEARNED_STEPS_LEAST steps. `watch`: NULL: none. */
enum ar_status learned_recording_read(struct trace_source *source,
                                      const struct learned_watch *watch,
                                      struct learned_recording *self, struct ar_error *error);
void learned_recording_close(struct learned_recording *self);

/* How a block lives (learned.md, "Blocks"). */
enum learned_fate {
    LEARNED_LOCAL,     /* freed in the step of its request */
    LEARNED_CARRIED,   /* freed in a later step */
    LEARNED_PERMANENT, /* made once, never freed */
    LEARNED_LEAKED,    /* such a block is made again and again, and never freed */
};

/* How an event of a step finds its block. */
enum learned_reference {
    LEARNED_NO_BLOCK,
    LEARNED_OF_STEP, /* the number of the request in the step */
    LEARNED_OF_LIST, /* the place in the list of blocks carried into the step */
    LEARNED_OF_ALL,  /* the number of a permanent block */
};

struct learned_action {
    uint8_t kind, flags, reference;
    uint32_t stream, number, attributes;
    uint64_t value; /* as in the event; times from the begin of the step */
};

/* An entry of the list of carried blocks at the end of a step. */
struct learned_out {
    uint32_t from_step; /* 1: `number` is a request of the step; 0: a place in the list before */
    uint32_t number;
};

/* What a carried block is: blocks with equal values stand for each other, the oldest first. */
struct learned_role {
    uint32_t attributes, stream;
    uint32_t pending; /* its free is requested */
    uint32_t zero;
    uint64_t bytes; /* 0 if sizes do not count, see learned_model.sized */
};

struct learned_list {
    struct learned_role *roles;
    uint64_t *bytes; /* of the recorded blocks */
    size_t count;
    uint32_t state; /* equal for lists with equal roles */
};

struct learned_step {
    const struct learned_action *actions;
    size_t action_count;
    const uint64_t *bytes; /* of its requests */
    size_t request_count;
    const struct learned_list *before; /* carried into the step */
    const struct learned_list *after;
    const struct learned_out *out; /* after->count */
    uint32_t class_;               /* steps of a class differ in sizes and times alone */
    uint32_t varies_as;            /* the class that says how its sizes vary, and the place there */
    uint32_t member;
    uint64_t duration_ns;
};

/* How the sizes of some steps vary (learned.md, "Sizes"): of the steps of a class, if they are
 * LEARNED_MEMBERS_LEAST or more, or of all loose steps, those of smaller classes. Without members
 * their sizes are drawn as recorded. */
struct learned_class {
    size_t member_count;
    uint32_t *members; /* by the bytes of all requests of the step */
    uint64_t *grain;   /* of each request: recorded sizes are multiples of it apart; 0: all equal.
                          NULL: loose steps, whose requests do not correspond */
    double *mean;      /* of each request */
    double unseen;     /* the probability that a step has sizes that were not recorded */
    /* For each member the places of LEARNED_NEIGHBOURS members that are like it; itself if there
     * are fewer. */
    uint32_t *neighbours;
    /* The steps with the most bytes, members[member_count - tail_count ..]: how far the bytes are
     * above those of the largest other step. 0: no tail. */
    size_t tail_count;
    double threshold, mean_total;
};
#define LEARNED_MEMBERS_LEAST 20
#define LEARNED_NEIGHBOURS    4

/* A generalized Pareto distribution of the excess of a tail. */
struct learned_tail {
    double shape, scale; /* scale 0: no tail */
};

/* How the next step is chosen. */
enum learned_order {
    LEARNED_REPEAT, /* the recording repeats itself exactly, every `period` steps */
    LEARNED_PERIOD, /* the classes do: one of the recorded steps of the same phase */
    LEARNED_FOLLOW, /* a step that followed one of the same class and list, see `run_length` */
    LEARNED_REPLAY, /* sizes or live bytes have a trend: the steady part again and again */
};

struct learned_model {
    struct learned_recording recording;
    uint8_t *fates;             /* of each block */
    struct learned_list *lists; /* lists[s]: before step s; step_count + 1 of them */
    struct learned_step *steps;
    size_t step_count;
    size_t warmup; /* steps of the start-up */
    bool sized;    /* carried blocks stand for each other only if they have the same size */
    enum learned_order order;
    size_t period;
    double run_length;             /* mean number of recorded steps that stay together */
    struct learned_class *classes; /* the one after the last is that of the loose steps */
    size_t class_count;
    uint32_t *groups; /* of each step: what the choice of the next one depends on */
    size_t group_count;
    size_t permanent_count;
    double leaked_bytes; /* a step, in the steady part */
    double step_ns;      /* mean duration of a steady step; 0: not known */
    uint64_t *bytes;     /* of the requests of all steps, which their `bytes` point into */
    uint8_t *fixed;      /* of each of these in loose steps: the size does not vary */
    void *memory[6];     /* private: what the pointers above point into */
};

/* Learns from all of `source`, which still belongs to the caller. See learned_recording_read. */
enum ar_status learned_model_make(struct trace_source *source, const struct learned_watch *watch,
                                  struct learned_model **out, struct ar_error *error);
void learned_model_close(struct learned_model *model);

const char *learned_order_name(enum learned_order order);

/* model_fates.c: fills `fates`, `warmup`, `permanent_count`. False: no memory. */
bool learned_find_fates(struct learned_model *model);
/* model_order.c: fills the rest but the sizes, from the compiled steps. False: no memory. */
bool learned_find_order(struct learned_model *model);
/* model_sizes.c: fills the classes. False: no memory. */
bool learned_find_sizes(struct learned_model *model);

double learned_total(const struct learned_step *step); /* bytes of all requests */

/* One of the tails that agree with the recorded excesses, each as likely as it makes them. */
struct ar_rng;
struct learned_tail learned_tail_draw(const struct learned_model *model,
                                      const struct learned_class *class_, struct ar_rng *rng);
