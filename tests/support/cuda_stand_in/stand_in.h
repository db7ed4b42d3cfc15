/* A stand-in for libcuda.so.1, so that the device can be tested where no card is: it keeps records
 * and no memory. It is strict where the driver is: every misuse that the records show is an error.
 *
 * Environment:
 *   STAND_IN_VERSION     what cuDriverGetVersion says (13000)
 *   STAND_IN_CARDS       how many cards there are (1)
 *   STAND_IN_BYTES       of a card (85017493504)
 *   STAND_IN_OTHERS      bytes that others hold (0)
 *   STAND_IN_SHARED      a file of 64-bit numbers, zeros at first: what all processes hold of each
 *                        card. Without it each process is alone, and all cards have one memory
 *   STAND_IN_WITHOUT     a list of functions that the driver lacks, with spaces between
 *   STAND_IN_FAIL        NAME:N[:CODE]: the N-th call of that function fails (2, out of memory)
 *   STAND_IN_TIME        1: timed kernels take their time; else all work is done at once
 *   STAND_IN_LEAKS       1: cuMemFree gives no bytes back to the card
 *   STAND_IN_REPORT      a file, with the process's number behind its name, for what the process
 *                        holds, what was left when a context was released, and for calls
 *
 *   CUDA_INJECTION64_PATH  a library whose InitializeInjection is called, as by the driver
 *
 * Memory: addresses are the lowest free ones, so they are used again; from 2 MiB on in whole pages,
 * below that several share a page. A context takes CONTEXT_BYTES. Kernels that work on a range
 * fault where it is not wholly accessible, and like a card's context, all fails from then on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/cuda/api.h"

#define STAND_IN_PAGE_BYTES    (UINT64_C(2) << 20)
#define STAND_IN_CONTEXT_BYTES (UINT64_C(500) << 20)
#define STAND_IN_CARDS_MOST    16

enum stand_in_function {
#define X(field, function, version, kind) STAND_IN_##field,
    CUDA_FUNCTIONS(X)
#undef X
        STAND_IN_FUNCTION_COUNT
};

/* What the library holds for its user, by kind. */
#define STAND_IN_THINGS(X)                                                                         \
    X(context)                                                                                     \
    X(allocation)                                                                                  \
    X(reservation)                                                                                 \
    X(physical)                                                                                    \
    X(mapping)                                                                                     \
    X(pool)                                                                                        \
    X(pool_block)                                                                                  \
    X(stream)                                                                                      \
    X(event)                                                                                       \
    X(module)                                                                                      \
    X(host_memory)

enum stand_in_thing {
#define X(name) STAND_IN_HELD_##name,
    STAND_IN_THINGS(X)
#undef X
        STAND_IN_THING_COUNT
};

/* One of anything that has addresses or a size, in a list by address. */
struct stand_in_range {
    struct stand_in_range *next;
    uint64_t start, bytes;
    struct stand_in_physical *physical; /* of a mapping */
    bool accessible;
};

struct stand_in_physical {
    uint64_t bytes;
    unsigned mappings;
    bool released;
};

struct stand_in_pool {
    uint64_t used_bytes, reserved_bytes, threshold_bytes, most_bytes;
    uint64_t unseen_bytes; /* freed, and no synchronisation since: trims and thresholds keep it */
    struct stand_in_pool *next;
};

struct stand_in_stream {
    uint64_t tail_ns;
    bool captured; /* set by a test: nothing may be queued on it or waited for then */
};

struct stand_in_event {
    bool recorded, timed;
    uint64_t time_ns;
};

/* Before each record that only its user names: the context's end frees those that are left. */
struct stand_in_kept {
    struct stand_in_kept *next, **link; /* link: what points here */
};

struct stand_in {
    uint64_t card_bytes, others_bytes, used_bytes;
    bool real_time, leaks;
    uint64_t timer_extra_ns;  /* that a kernel by the timer takes longer, as on a shared card */
    uint64_t longest_wait_ns; /* that a kernel was asked for */
    unsigned references;      /* of the primary contexts */
    unsigned card_references[STAND_IN_CARDS_MOST];
    uint64_t *shared; /* of all processes, by card; NULL: nothing is shared */
    uint64_t own_bytes[STAND_IN_CARDS_MOST];
    uint64_t latest_ns; /* the latest tail of all streams */
    CUresult sticky;
    uint64_t calls[STAND_IN_FUNCTION_COUNT];
    uint64_t held[STAND_IN_THING_COUNT];
    uint64_t at_release[STAND_IN_THING_COUNT]; /* left when the context was released */
    bool failed_as_told;
    struct stand_in_range *allocations, *reservations, *mappings, *pool_blocks;
    struct stand_in_pool *pools;
    struct stand_in_kept *kept;
};

/* The one there is; made at the first call. */
struct stand_in *stand_in(void);

/* Every call begins with it: counts, and says what the call is to return at once. */
CUresult stand_in_enter(enum stand_in_function function, bool needs_context);

uint64_t stand_in_now_ns(void);
/* The card whose context is current. */
int stand_in_card(void);
/* What is free of it. */
uint64_t stand_in_free_bytes(int card);
/* Memory of the card that is current, or of any; false: there is not that much. */
bool stand_in_take(uint64_t bytes);
bool stand_in_take_of(int card, uint64_t bytes);
void stand_in_give_of(int card, uint64_t bytes);
void stand_in_give(uint64_t bytes);
/* Whether a kernel may work on the range. */
bool stand_in_accessible(uint64_t address, uint64_t bytes);
/* A record of zeros that lives until it is dropped or the context ends; never NULL. */
void *stand_in_keep(uint64_t bytes);
void stand_in_drop(void *record);
/* Frees all that a context holds, as the driver does with its end. */
void stand_in_memory_end(void);
/* The host has synchronised: pools release what is above their thresholds. */
void stand_in_pools_settle(void);

/* ---- watched calls: watched.c --------------------------------------------------------------- */

/* Called before and after a call by the one who watches; the stand-in of CUPTI does. */
struct stand_in_call {
    bool runtime, ended;
    unsigned number; /* CUPTI's */
    const char *name;
    const void *arguments;
    CUresult result;
    uint64_t kept;
    uint32_t correlation;
};
typedef void stand_in_watcher(struct stand_in_call *call);

/* The function of that name that tells the watcher, behind a lock; NULL: it has none. */
void (*stand_in_watched(const char *name))(void);
/* Loads CUDA_INJECTION64_PATH, as the driver does when it is used first. */
void stand_in_inject(void);

#define STAND_IN_CALL(field)                                                                       \
    do {                                                                                           \
        CUresult result_ = stand_in_enter(STAND_IN_##field, true);                                 \
        if (result_ != CUDA_SUCCESS)                                                               \
            return result_;                                                                        \
    } while (0)
