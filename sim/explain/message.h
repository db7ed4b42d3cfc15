/* Reads an out-of-memory message of PyTorch, TensorFlow, JAX, CuPy or RMM, as pasted by a user: its
 * figures, and the cause of the failure as far as the figures show it.
 *
 * 1. The text is cleaned of the additions of terminals, logs and quotes (message_text.h).
 * 2. The readers (message_torch.c, message_xla.c, and CuPy and RMM in message.c) find the wordings
 *    of the frameworks' versions and read them into one set of figures. Frameworks print two
 *    decimals, so each figure has its rounding error.
 * 3. The first rule that holds, in the order of `enum message_cause`, is the cause. A rule does not
 *    hold if its figures are not in the message; `message_missing` names them. */
#ifndef SIM_EXPLAIN_MESSAGE_H
#define SIM_EXPLAIN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

#define MESSAGE_TEXT_MOST (UINT64_C(64) << 20) /* bytes of text that are read */

/* Name, word, condition. */
#define MESSAGE_CAUSES(X)                                                                          \
    X(IMPOSSIBLE, "impossible", "the request is larger than the total memory")                     \
    X(NOT_THE_ALLOCATOR, "not-the-allocator", "the requested bytes are free on the card")          \
    X(FRAGMENTATION, "fragmentation", "the pool has enough unused memory")                         \
    X(TENANT, "tenant", "without the memory of other processes it would be served")                \
    X(OUTSIDE, "outside", "without this process's memory outside of the pool it would be served")  \
    X(FRAGMENTATION_POSSIBLE, "fragmentation-possible",                                            \
      "the free memory of the card and the unused memory of the pool together are enough")         \
    X(CAPACITY, "capacity", "no memory that the message names would be enough")

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

/* Name, text in a report. */
#define MESSAGE_FIGURES(X)                                                                         \
    X(ASKED, "requested")                                                                          \
    X(TOTAL, "in total")                                                                           \
    X(FREE, "free on the card")                                                                    \
    X(ALLOWED, "allowed by a limit")                                                               \
    X(ALLOCATED, "allocated in the pool")                                                          \
    X(PRIVATE, "of that, in private pools")                                                        \
    X(RESERVED, "reserved by the pool")                                                            \
    X(UNALLOCATED, "reserved and unused")                                                          \
    X(LARGEST, "largest free range")                                                               \
    X(PROCESS, "this process, in and outside of the pool")                                         \
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
    uint64_t coarse_bytes; /* the largest rounding error; 0: exact */
    bool known;
    bool derived; /* computed from others, not printed */
};

struct message {
    enum message_framework framework;
    enum message_cause cause;
    struct message_figure figures[MESSAGE_FIGURE_COUNT];
    char allocator[32];    /* "GPU_0_bfc"; "": not in the message */
    char device[16];       /* "CUDA", "HIP", "XPU", ...; "": not in the message */
    unsigned count, taken; /* messages in the text; the number of this one, from 1 */
    bool segment_asked;    /* the request is of a segment, not of a tensor */
    bool may_fail;         /* the message says that the program does not need it */
    bool type_assumed;     /* a shape without a type: 4 bytes for each element */
    bool whole_limit;      /* the reserved part of the limit is not printed: all of it is assumed */
    bool no_figures_taken; /* impossible figures of processes were left out */
    bool process_guessed;  /* one of the listed processes is assumed to be this one */
    bool host;             /* host memory ran out */
    bool card_told;        /* total and free are those of the card, also in XLA's messages */
    bool incomplete;       /* the size of the request is missing; message_read returns INVALID */
    bool close;            /* the deciding comparison is within the rounding errors */
};

/* Reads the first message in the text. If the request is printed several times, the most complete
 * message is used. INVALID: there is no message, or the size of the request is missing. */
enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error) AR_STATUS_CHECKED;

/* Returns the first rule that holds and sets `close`. message_read calls it. */
enum message_cause message_classify(struct message *self);

/* Whether a rule was skipped because this figure is missing. */
bool message_missing(const struct message *self, enum message_figure_name name);

const char *message_cause_name(enum message_cause cause);
const char *message_cause_meaning(enum message_cause cause);
const char *message_framework_name(enum message_framework framework);
const char *message_figure_text(enum message_figure_name name);

#endif
