/* The contract of a part: something in a process that makes requests (a trainer, an engine, the
 * buffers of a library). One kind of part is one file in parts/ and one line in parts.def.
 *
 * How to write one:
 * 1. A struct whose first member is `struct twin_part`, and a struct of values for the options. The
 *    options are the keys of its section in a scenario file. The engine reads and checks them.
 * 2. A table of actions. The schedule calls them by name ("rollout.sleep 1").
 * 3. act() runs one action. It makes requests with the functions below (twin_alloc ..) and asks for
 *    the state of card and pool (twin_card ..). It is plain code from top to bottom: requests are
 *    collected and replayed when enough of them are there, and before each question, so an answer
 *    includes all that was requested before. A stream of millions of requests needs no memory.
 * 4. A long action returns after a piece of it with `*more` set and is called again, so that two
 *    actions of a phase "a.train & b.generate" run in turns. One step of a training, or some steps
 *    of a scheduler, are a good piece. An action that is never run beside another need not do so.
 * 5. A part keeps its blocks in its own struct (struct twin_block, struct twin_blocks). A request
 *    that fails ends the run with the outcome "out of memory", unless it is allowed to fail
 *    (may_fail); then twin_served tells. After a failure all calls do nothing, and act() can go on
 *    to its end without checks.
 * 6. A part has no state outside of its struct and no clock, and it draws random numbers by a seed
 *    of its options or twin_seed: the same scenario gives the same figures.
 * 7. If the real program refuses a setting or raises an exception (vLLM: "No available memory for
 *    the cache blocks"), act() returns twin_refuse(..): an outcome of the run, not an error. Wrong
 *    options and arguments return INVALID with a sentence.
 *
 * parts/buffer.c is the shortest example. */
#pragma once

#include "allocators/base/status.h"
#include "allocators/options.h"

struct twin_part;
struct twin_process; /* private to the engine */

/* One call of an action: "rollout.sleep 1" has the argument "1". */
struct twin_call {
    unsigned action; /* the index in ops->actions */
    const char *const *arguments;
    size_t argument_count;
    uint64_t turn; /* calls of this action in this phase before this one */
    /* About how many events a turn has: UINT64_MAX if no other action is in the phase. */
    uint64_t turn_events;
    uint64_t cycle; /* from 1; 0 in `start`; the last one in `end` */
};

struct twin_action {
    const char *name;      /* NULL ends a table */
    const char *arguments; /* "[STEPS]", or NULL: it has none */
    const char *help;      /* one line */
    unsigned least_arguments, most_arguments;
};

/* A change that may save memory, which `twin` tries: an option, or the arguments of an action. */
struct twin_what_if {
    char text[120];     /* "sleep at level 2" */
    const char *option; /* NULL: none */
    char value[1024];   /* of the option */
    /* Steps with this action and these arguments have others instead: "sleep", "1", "2". NULL:
     * none. */
    const char *action, *arguments, *instead;
};

/* A change that a part may offer, and whether it differs from what the part has. */
struct twin_offer {
    bool applies;
    struct twin_what_if what;
};

struct twin_part_ops {
    const char *kind;    /* "[trainer NAME]" */
    const char *summary; /* one line */
    const struct ar_option *options;
    size_t values_bytes;
    size_t part_bytes; /* of the part's own struct, which begins with struct twin_part */
    const struct twin_action *actions;

    /* Optional: checks the values and makes what the part needs; the struct is zeroed except for
     * its base. No requests here. INVALID names the option. destroy follows also after a
     * failure. */
    enum ar_status (*create)(struct twin_part *self, struct ar_error *error);
    /* Runs an action, or a piece of it (`*more`, which is false before the call). */
    enum ar_status (*act)(struct twin_part *self, const struct twin_call *call, bool *more,
                          struct ar_error *error);
    /* Optional: `bytes` of weights arrive from another part, one piece (a bucket, a layer) per
     * call; `same_process`: they are in this process's memory already. `last`: none follow. A part
     * that needs a buffer to receive them from another process allocates it here. */
    enum ar_status (*receive)(struct twin_part *self, uint64_t bytes, bool same_process, bool last,
                              struct ar_error *error);
    /* Optional: the bytes of its weights, as another part sends or receives them. 0: not known. */
    uint64_t (*weights_bytes)(struct twin_part *self);
    /* Optional. Frees what create and act took from the host. Blocks need not be freed. */
    void (*destroy)(struct twin_part *self);

    /* For the page and the what-ifs, all optional. Names of actions with blanks between: those that
     * release memory of the card ("sleep offload"), and those that take it again ("wake load"). */
    const char *releases, *restores;
    /* Whether a program could release its memory between steps, by its values; NULL: it could. */
    bool (*can_release)(const void *values);
    /* The option that sets the size of its key-value cache ("gpu_memory_utilization"). */
    const char *(*cache_option)(const void *values);
    /* A change of its options or actions, by index from 0; it must differ from what `values` has.
     * False: past the last one. */
    bool (*what_if)(const void *values, size_t index, struct twin_what_if *out);
};

/* For what_if: the change with that index among those of the list that apply. False: past them. */
bool twin_offer_at(const struct twin_offer *list, size_t count, size_t index,
                   struct twin_what_if *out);

/* The base of every part. The engine fills it before create. */
struct twin_part {
    const struct twin_part_ops *ops;
    const char *name;
    const void *values; /* the struct of the options; texts in it live as long as the scenario */
    struct twin_process *process;
    unsigned index;       /* among all parts of the scenario */
    uint32_t rank, ranks; /* of its process: one rank for each card */
    uint32_t card, cards; /* of the machine */
    /* Set it in create if its requests depend on `rank`. Cards with the same processes are computed
     * once unless a part of theirs has it set. */
    bool depends_on_rank;
    struct twin_part *next; /* of its process */
};

const struct twin_part_ops *twin_part_at(size_t index); /* NULL past the end */
const struct twin_part_ops *twin_part_find(const char *kind);

/* ---- owners ---------------------------------------------------------------------------------- */

/* The number of the owner PART/PURPOSE ("actor/weights"). The text is copied; the same purpose
 * gives the same number. Cheap enough for each request, but a part may keep the number. */
uint32_t twin_owner(struct twin_part *self, const char *purpose);

/* ---- requests -------------------------------------------------------------------------------- */

/* A block of the process's pool, or of pinned host memory. `held` is false before the request and
 * after the free. */
struct twin_block {
    uint64_t bytes;
    uint32_t slot; /* private to the engine */
    uint32_t stream;
    bool held, pinned;
};

/* Fields that are zero have their usual meaning: stream 0, the common pool, device memory. */
struct twin_request {
    uint64_t bytes; /* 0: no block is made */
    uint32_t owner; /* from twin_owner */
    const char
        *tag; /* what exactly it is ("layers.3.mlp"), for pinning blocks; must live as long as
                      * the part; NULL: the purpose */
    uint32_t stream; /* 0, or from twin_stream */
    uint32_t pool;   /* 0, or from twin_pool; in an open region with a pool 0 means that pool */
    uint64_t alignment;
    bool may_fail;
    bool pinned; /* of pinned host memory */
};

void twin_alloc(struct twin_part *self, const struct twin_request *request, struct twin_block *out);
/* The same with a purpose instead of an owner. */
void twin_alloc_for(struct twin_part *self, uint64_t bytes, const char *purpose,
                    struct twin_block *out);
/* Frees a block, in the order of its own stream. Nothing happens if it is not held. */
void twin_free(struct twin_part *self, struct twin_block *block);
/* In the order of another stream. */
void twin_free_on(struct twin_part *self, struct twin_block *block, uint32_t stream);
/* The block is used on another stream too (record_stream). */
void twin_use(struct twin_part *self, const struct twin_block *block, uint32_t stream);
/* Whether a request that may fail was served. If not, the block is not held any more. */
bool twin_served(struct twin_part *self, struct twin_block *block);
/* What the policy granted, and where; 0 if the block is not held. */
uint64_t twin_granted_bytes(struct twin_part *self, const struct twin_block *block);
uint64_t twin_address(struct twin_part *self, const struct twin_block *block);

/* Another stream of the process, for all of the run. Only in create. */
uint32_t twin_stream(struct twin_part *self);
/* The same for a stream with kernels only: no block is requested, used or freed on it. Processes
 * whose blocks are all on stream 0 are replayed faster. */
uint32_t twin_kernel_stream(struct twin_part *self);
void twin_kernel(struct twin_part *self, uint32_t stream, uint64_t ns);
/* An event is recorded on a stream; a stream waits for it. The numbers of events are the process's:
 * those of a part have its index + 1 above bit 40. */
void twin_record(struct twin_part *self, uint64_t event, uint32_t stream);
void twin_wait(struct twin_part *self, uint32_t stream, uint64_t event);
/* The host waits for the device. */
void twin_sync(struct twin_part *self);
/* empty_cache of the process: the policy releases its cached memory. */
void twin_trim(struct twin_part *self);
/* The end of a step: pending frees are polled. */
void twin_step(struct twin_part *self);

/* A private pool (of CUDA graphs, a MemPool). `mempool`: AR_MEMPOOL_x, 0 for graphs. */
uint32_t twin_pool(struct twin_part *self, uint8_t mempool);
/* The program deletes the pool: a MemPool's free memory is released now, that of graphs may be
 * released with other cached memory from now on. */
void twin_pool_end(struct twin_part *self, uint32_t pool);

/* Memory of the card outside of the pool, for that owner: the total from now on. Driver and
 * libraries take it: contexts, NCCL, graphs. If the card has not as much, the run ends. */
void twin_outside(struct twin_part *self, uint32_t owner, uint64_t bytes);

/* A list of blocks; a zeroed struct is an empty list. */
struct twin_blocks {
    struct twin_block *items;
    size_t count, room;
};
/* Makes a request and adds its block to the list. */
void twin_blocks_alloc(struct twin_part *self, struct twin_blocks *list,
                       const struct twin_request *request);
/* Frees all blocks, the last one first, and empties the list. */
void twin_blocks_free(struct twin_part *self, struct twin_blocks *list);
void twin_blocks_close(struct twin_blocks *list);

/* ---- regions: memory that can sleep (regions.c) ---------------------------------------------- */

enum twin_region_kind {
    /* vLLM's CuMemAllocator: requests go to a MemPool of their own for each twin_region_begin.
     * Segments without a block are released at twin_region_end; the pool still counts them. Copies
     * are pinned memory of the process's own pool, and freed when the region wakes. */
    TWIN_REGION_POOL,
    /* torch_memory_saver: one MemPool for each tag and `backup`, used again by later regions.
     * Driver allocations for any other pool, such as that of a graph, are of the region too. Copies
     * are pinned memory from the driver, and kept after the region wakes. */
    TWIN_REGION_SAVER,
    /* The same before it had pools: requests go to their usual pool, and driver allocations that
     * are made while the region is open are of the region. */
    TWIN_REGION_PRELOAD,
};

struct twin_region {
    enum twin_region_kind kind;
    const char *tag;
    bool backup;         /* see `keep` of twin_sleep */
    const char *release; /* of vLLM or torch_memory_saver; NULL: the newest */
    bool keeps_pool;     /* not as vLLM: one MemPool for the tag, which keeps empty segments */
};

/* Segments that are obtained until twin_region_end are of the region. One region at a time.
 * NEGATIVE if the real program refuses it with the policy's settings, which act() returns then;
 * UNSUPPORTED if it has no meaning with the policy or the card. */
enum ar_status twin_region_begin(struct twin_part *self, const struct twin_region *region,
                                 struct ar_error *error);
void twin_region_end(struct twin_part *self);
/* Unmaps and releases the memory of all awake segments of the process with the tag (NULL: of all
 * regions); their addresses stay reserved. First the contents of segments with the tag `keep` are
 * copied to pinned host memory (NULL: none; "*": those of regions with `backup`). Returns how many
 * segments fell asleep. */
size_t twin_sleep(struct twin_part *self, const char *tag, const char *keep);
/* Creates and maps memory for all sleeping segments with the tag (NULL: all), at their addresses.
 * If the card has not as much, the run ends. Returns how many there were. */
size_t twin_wake(struct twin_part *self, const char *tag);

/* ---- questions: each replays first all that was requested ------------------------------------ */

/* Free and total bytes of the card, as cuMemGetInfo reports them to this process. */
void twin_card(struct twin_part *self, uint64_t *free_bytes, uint64_t *total_bytes);
/* The profile of the card: "h100". */
const char *twin_card_name(struct twin_part *self);

struct twin_pool_state {
    uint64_t live_bytes;      /* requested */
    uint64_t allocated_bytes; /* granted: torch.cuda.memory_allocated */
    uint64_t reserved_bytes;  /* torch.cuda.memory_reserved */
    /* Since the last twin_reset_peaks: torch.cuda.max_memory_allocated, _reserved. */
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
};
struct twin_pool_state twin_pool_state(struct twin_part *self);
/* reset_peak_memory_stats. */
void twin_reset_peaks(struct twin_part *self);
/* Whether the run has failed, so that a long action can return early. */
bool twin_over(struct twin_part *self);

/* ---- other parts ----------------------------------------------------------------------------- */

/* The part with that name in the same process; or in another process on the same card; or on
 * another card, that of the same rank if there is one. NULL: there is none, and `error` says so. */
struct twin_part *twin_peer(struct twin_part *self, const char *name, struct ar_error *error);
/* Calls peer->ops->receive. UNSUPPORTED if it has none. On another card only one rank sends to
 * each rank of the peer; the others' calls do nothing. `ipc`: the peer maps the sender's memory
 * (cudaIpcOpenMemHandle), as if both were one process; INVALID if it is on another card. */
enum ar_status twin_send(struct twin_part *self, struct twin_part *peer, uint64_t bytes, bool last,
                         bool ipc, struct ar_error *error);

/* ---- what a part reports --------------------------------------------------------------------- */

/* A figure of the part for the page and for [reported] ("kv blocks", "kv tokens"): the value from
 * now on. `name` must live as long as the part. */
void twin_figure(struct twin_part *self, const char *name, double value);
/* A line that the real program would log, or why it did what it did. */
void twin_say(struct twin_part *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first argument of a call as the number of times that it repeats something, up to 10^6.
 * Without an argument `*times` stays. */
enum ar_status twin_repeats(const struct twin_call *call, uint64_t *times, struct ar_error *error);
/* The real program refuses. Returns NEGATIVE, for act to return. */
enum ar_status twin_refuse(struct twin_part *self, struct ar_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The seed of the scenario, the same on all cards, because ranks draw the same requests. */
uint64_t twin_seed(const struct twin_part *self);
