/* An out-of-memory message of PyTorch, TensorFlow, JAX, CuPy or RMM, as people paste it: what it
 * says in figures, and why the request failed, as far as the figures tell.
 *
 * 1. The text is freed of what terminals, logs and quotes put into it (message_text.h).
 * 2. The wordings of the frameworks' versions are looked for (message_torch.c,
 *    message_pools.c, message_xla.c) and read
 *    into one set of figures. Frameworks print two decimals: a figure knows how coarse it is.
 * 3. The first rule that holds is the cause, in the order of `enum message_cause`. A rule whose
 *    figures are not in the message does not hold, and `message_missing` names them. */
#ifndef SIM_EXPLAIN_MESSAGE_H
#define SIM_EXPLAIN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

#define MESSAGE_TEXT_MOST (UINT64_C(64) << 20) /* bytes of text that are looked at */

/* Name, word, when it holds. */
#define MESSAGE_CAUSES(X)                                                                          \
    X(IMPOSSIBLE, "impossible", "more was asked for than there is in all")                         \
    X(NOT_THE_ALLOCATOR, "not-the-allocator", "what was asked for is free on the card")            \
    X(FRAGMENTATION, "fragmentation", "as much lies unused inside of the pool")                    \
    X(TENANT, "tenant", "without the memory of other processes it would fit")                      \
    X(OUTSIDE, "outside", "without this process's memory outside of the pool it would fit")        \
    X(FRAGMENTATION_POSSIBLE, "fragmentation-possible",                                            \
      "free on the card and unused in the pool together are as much")                              \
    X(CAPACITY, "capacity", "nothing that the message tells of would make room for it")

enum message_cause {
#define X(name, word, meaning) MESSAGE_##name,
    MESSAGE_CAUSES(X)
#undef X
};

enum message_framework {
    MESSAGE_PYTORCH,
    MESSAGE_TENSORFLOW,
    MESSAGE_JAX,
    MESSAGE_CUPY,
    MESSAGE_RMM
};

/* Name, what it is called in a report. */
#define MESSAGE_FIGURES(X)                                                                         \
    X(ASKED, "asked for")                                                                          \
    X(TOTAL, "in all")                                                                             \
    X(FREE, "free on the card")                                                                    \
    X(ALLOWED, "allowed by a limit")                                                               \
    X(ALLOCATED, "allocated in the pool")                                                          \
    X(PRIVATE, "of that, in private pools")                                                        \
    X(RESERVED, "held by the pool")                                                                \
    X(UNALLOCATED, "held and unused")                                                              \
    X(LARGEST, "largest free piece")                                                               \
    X(PROCESS, "this process, with all outside of the pool")                                       \
    X(OUTSIDE_POOL, "of that, outside of the pool")                                                \
    X(OTHERS, "other processes")                                                                   \
    X(TEMPORARIES, "temporaries of the compiled program")

enum message_figure_name {
#define X(name, text) MESSAGE_FIGURE_##name,
    MESSAGE_FIGURES(X)
#undef X
        MESSAGE_FIGURE_COUNT
};

struct message_figure {
    uint64_t bytes;
    uint64_t coarse_bytes; /* it was rounded by up to so much; 0: exact */
    bool known;
    bool derived; /* computed from others, not printed */
};

struct message {
    enum message_framework framework;
    enum message_cause cause;
    struct message_figure figures[MESSAGE_FIGURE_COUNT];
    char allocator[32];    /* "GPU_0_bfc"; "" where the message does not name it */
    char device[16];       /* "CUDA", "HIP", "XPU", ...; "" likewise */
    unsigned count, taken; /* of messages in the text; which of them this is, from 1 */
    bool segment_asked;    /* what was asked for is a segment, not a tensor */
    bool may_fail;         /* the program said that it can do without */
    bool type_assumed;     /* a shape without a type: 4 bytes for each element */
    bool whole_limit;      /* nothing said how much of the limit was taken: all, as by default */
    bool no_figures_taken; /* the message's process figures were no possible ones, left out */
    bool process_guessed;  /* one of the listed processes is taken for this one */
    bool host;             /* it is the host's memory */
    bool card_told;        /* total and free are the card's, also where XLA prints them */
    bool incomplete;       /* it does not say how much was asked for: message_read's INVALID */
    bool close;            /* a comparison that decided is closer than the figures are exact */
};

/* Reads such a message in the text, the first (of a request that is told of more than once, where
 * it is told of in full). INVALID: there is none, or it does not say how much was asked for, with a
 * sentence. */
enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* The first rule that holds; fills `close`. message_read calls it. */
enum message_cause message_classify(struct message *self);

/* Whether a rule could not be looked at for lack of this figure. */
bool message_missing(const struct message *self, enum message_figure_name name);

const char *message_cause_name(enum message_cause cause);
const char *message_cause_meaning(enum message_cause cause);
const char *message_framework_name(enum message_framework framework);
const char *message_figure_text(enum message_figure_name name);

#endif
