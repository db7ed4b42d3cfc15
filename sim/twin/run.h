/* The state of a run, shared by the files of this folder. */
#pragma once

#include "allocators/policy.h"
#include "allocators/relay.h"
#include "sim/device.h"
#include "sim/experiment/session.h"
#include "sim/replay.h"
#include "sim/twin/part.h"
#include "sim/twin/twin.h"
#include "workloads/trace/source.h"
#include "workloads/trace/tables.h"

/* The feed of a process: a trace source whose events are written by parts while the replay waits,
 * and the blocks of the process.
 *
 * 1. Events are collected. feed_add says when there is no room for more: then the replay reads all
 *    of them, and feed_emptied makes room again.
 * 2. A slot is used again only after the replay has read the free of its block, so that what is
 *    known of a slot is about the block that the replay is at.
 * 3. The replay calls the policy once for each request and each free that the feed has noted in
 *    `calls`, in this order. feed_called returns the block of the present call. */

#define FEED_EVENTS 2048

enum feed_state { FEED_UNUSED, FEED_ASKED, FEED_LIVE, FEED_FAILED };

struct feed_block {
    uint64_t bytes;                  /* requested */
    uint64_t address, granted_bytes; /* if it is live and not pinned */
    const char *tag;                 /* NULL: none */
    uint32_t account;                /* in the process's accounts */
    uint32_t born;                   /* number of the phase (twin_phase_of) */
    uint8_t state;                   /* enum feed_state */
    bool pinned, asleep;
};

struct feed_keys {
    uint32_t pool, index;
    uint64_t alignment;
    bool pinned;
    uint8_t bits; /* AR_MEMPOOL_x */
};

struct feed {
    struct trace_source base;
    struct trace_tables tables;
    struct trace_event *events; /* room for FEED_EVENTS */
    size_t count;
    bool given;        /* the replay has the events */
    uint64_t replayed; /* events before these */
    uint32_t *calls;   /* slots; room for FEED_EVENTS */
    size_t call_count, call;
    struct feed_block *blocks; /* by slot */
    size_t slot_count, slot_room;
    uint32_t *unused; /* slots */
    size_t unused_count, unused_room;
    uint32_t *resting; /* slots that become unused when the feed is empty */
    size_t resting_count, resting_room;
    struct feed_keys *keys;
    size_t key_count, key_room;
    uint64_t next_id;
};

/* `streams`: 1 + the highest stream of any event; `one_block_stream`: all blocks are on stream 0.
 * HOST_MEMORY. */
enum ar_status feed_open(struct feed *self, const char *name, uint32_t streams,
                         bool one_block_stream, struct ar_error *error);
void feed_close(struct feed *self); /* a zeroed struct is fine */

static inline bool feed_full(const struct feed *self)
{
    return self->count == FEED_EVENTS;
}

/* Adds an event; the feed must not be full. */
static inline struct trace_event *feed_add(struct feed *self, unsigned kind)
{
    struct trace_event *event = &self->events[self->count++];
    *event = (struct trace_event){.kind = (uint8_t)kind};
    return event;
}

/* Adds a request with its block, which the caller has filled in. HOST_MEMORY. */
enum ar_status feed_request(struct feed *self, const struct feed_block *block,
                            const struct feed_keys *keys, uint32_t stream, bool may_fail,
                            uint32_t *slot, struct ar_error *error);
/* Adds the free of a block on `stream`; `own`: it is the block's own stream. HOST_MEMORY. */
enum ar_status feed_free(struct feed *self, uint32_t slot, uint32_t stream, bool own,
                         struct ar_error *error);
/* The index of a set of keys for an event; 0: none are set. */
enum ar_status feed_keys_index(struct feed *self, const struct feed_keys *keys, uint32_t *index,
                               struct ar_error *error);

/* The replay has read all events. */
void feed_emptied(struct feed *self);

/* The block of the call to the policy that is made now: a request, or a free of a block that is
 * live. */
static inline struct feed_block *feed_called(struct feed *self)
{
    struct feed_block *block;
    do
        block = &self->blocks[self->calls[self->call++]];
    while (block->state == FEED_FAILED);
    return block;
}

/* Memory that can sleep: a backing between policy and device.
 *
 * 1. While a region is open, segments that the policy obtains for it are made of a reserved address
 *    range and physical memory that is mapped there. Others are driver allocations as usual.
 * 2. A region sleeps: its physical memory is unmapped and released, and the addresses stay
 *    reserved. It wakes: new memory is created and mapped at the same addresses. The policy is not
 *    told, and its reserved bytes include sleeping segments, as torch.cuda.memory_reserved does.
 * 3. A segment that is dropped never wakes: vLLM releases segments without a block when it leaves
 *    a pool (use_memory_pool in vllm/device_allocator/cumem.py), and PyTorch's pool keeps them.
 *
 * Sources: vllm/device_allocator/cumem.py and csrc/cumem_allocator.cpp (commit 010c2112 of
 * vllm-project/vllm): sizes are rounded up to the granularity of cuMemCreate, a free waits for the
 * device. csrc/core.cpp of fzyzcjy/torch_memory_saver (commit 106fe07d). */

struct regions_kind {
    enum twin_region_kind kind;
    char tag[48];
    bool backup, keeps_pool;
    uint32_t pool; /* 0: none */
};

enum regions_state { REGIONS_AWAKE, REGIONS_ASLEEP, REGIONS_DROPPED };

struct regions_segment {
    uint64_t address, bytes;
    ar_backing_handle handle; /* if it is awake */
    uint32_t region;          /* index */
    enum regions_state state;
    bool used;              /* for whoever walks the policy */
    struct twin_block copy; /* of its contents, in pinned memory of the process's pool */
    uint64_t host_address;  /* the same, of the driver; 0: none */
    uint32_t host_account;  /* of the process, of that copy */
};

struct regions {
    struct relay relay;
    struct ar_device *device;
    struct regions_kind *kinds; /* of all regions so far */
    size_t kind_count, kind_room;
    struct regions_segment *segments; /* by address */
    size_t segment_count, segment_room;
    uint32_t open;   /* 1 + index of the open region; 0: none */
    uint32_t target; /* the same, of the present request */
    uint64_t asleep_bytes;
    /* Copies of segments that were freed while they slept; the engine frees them. */
    struct twin_blocks orphans;
    /* The driver's copies that were freed with their segments. */
    void (*host_freed)(void *argument, uint32_t account, uint64_t bytes);
    void *argument;
};

/* The backing for the policy is &relay.base. Must not move. */
void regions_open(struct regions *self, struct ar_device *device);
void regions_close(struct regions *self); /* after the policy */

/* Opens a region; `pool` is new for POOL regions, and for the first SAVER region of its kind.
 * HOST_MEMORY. */
enum ar_status regions_begin(struct regions *self, const struct twin_region *region, uint32_t *pool,
                             uint32_t new_pool, struct ar_error *error);

/* The present request is for that pool. */
static inline void regions_route(struct regions *self, uint32_t pool)
{
    self->target = 0;
    if (self->open) {
        const struct regions_kind *kind = &self->kinds[self->open - 1];
        if (kind->kind != TWIN_REGION_POOL || kind->pool == pool)
            self->target = self->open;
    }
}

/* The segment that contains the address; NULL: none of a region. */
struct regions_segment *regions_find(const struct regions *self, uint64_t address);

/* Whether the address is in a segment without memory. */
static inline bool regions_asleep(const struct regions *self, uint64_t address)
{
    if (!self->asleep_bytes)
        return false;
    const struct regions_segment *segment = regions_find(self, address);
    return segment && segment->state != REGIONS_AWAKE;
}

/* One segment. Work of the device that uses it must be done. Statuses of the device: REFUSED if
 * there is no memory. */
enum ar_status regions_sleep(struct regions *self, struct regions_segment *segment,
                             enum regions_state state);
enum ar_status regions_wake(struct regions *self, struct regions_segment *segment);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* The schedule of a scenario: its texts read into calls of actions. */

struct schedule_call {
    size_t part;    /* index of the scenario; SIZE_MAX: an action of a process */
    size_t process; /* of that process */
    unsigned action;
    const char *text; /* "rollout.sleep" */
    const char **arguments;
    size_t argument_count;
};

struct schedule_phase {
    const char *text; /* "rollout.sleep 1" */
    struct schedule_call *calls;
    size_t call_count;
};

struct schedule_list {
    struct schedule_phase *phases;
    size_t count, room;
};

struct schedule {
    struct schedule_list lists[3]; /* by enum twin_stage */
    char *texts[3];                /* private */
};

/* INVALID: a sentence with the list, the phase and what is wrong. `fault` may be NULL. */
enum ar_status schedule_read(const struct twin_scenario *scenario, struct schedule *out,
                             struct twin_fault *fault, struct ar_error *error);
void schedule_close(struct schedule *self); /* a zeroed struct is fine */

/* ---- watch.c --------------------------------------------------------------------------------- */

/* The outermost policy of a process: it forwards every call, and keeps the bytes of each owner and
 * the peaks up to date, so that the engine can divide the memory of the card at any call. */

struct regions;

/* What an owner has in one process. */
struct account {
    uint32_t owner; /* number of the run */
    uint64_t live_bytes;
    uint64_t asleep_live_bytes, asleep_granted_bytes; /* the part that is in sleeping segments */
    uint64_t outside_bytes;
    uint64_t pinned_bytes; /* requested, of all requests so far */
};

struct watch {
    struct feed *feed;
    struct regions *regions;
    const struct ar_device *device;
    struct account *accounts; /* of the process; moves when one is added */
    /* In this phase, and since the program's last reset. */
    uint64_t phase_allocated_bytes, phase_reserved_bytes;
    uint64_t allocated_bytes, reserved_bytes;
    /* Called after a request if the process has more on the card than `high_bytes`, which the
     * callee raises. */
    uint64_t high_bytes;
    void (*higher)(void *argument);
    void *argument;
    bool sleeper_used; /* a request got a block in a sleeping segment */
};

/* Makes the policy around `inner`, which it owns. HOST_MEMORY: `inner` is the caller's. */
enum ar_status watch_open(struct watch *watch, struct ar_host *host, struct ar_policy *inner,
                          struct ar_policy **out, struct ar_error *error);

/* The policy inside. */
struct ar_policy *watch_inside(const struct ar_policy *outer);

/* The bytes of the card that the process has. */
static inline uint64_t watch_used(const struct watch *self)
{
    return self->device->counters.physical_bytes + self->device->counters.outside_bytes;
}

struct twin_run;

/* One rank of a process, on one card. Several ranks that do the same are one (`times`). */
struct twin_process {
    struct twin_run *run;
    const struct twin_process_setup *setup;
    size_t number; /* of the scenario */
    uint32_t rank, ranks, card;
    uint64_t times;
    struct twin_part *parts; /* in the order of the scenario */
    bool begun, ended;       /* its context is on the card; it has ended */

    struct ar_device *device;
    struct ar_host host, pinned_host;
    struct regions regions;
    struct watch watch;
    struct ar_policy *policy, *pinned;
    struct relay pinned_relay; /* refuses what all processes together may not pin */
    struct feed feed;
    struct replay_config config;
    struct replay *replay;

    struct account *accounts;
    size_t account_count, account_room;
    uint32_t streams, pools;
    bool several_block_streams;
    uint8_t *pool_bits; /* AR_MEMPOOL_x by pool */
    size_t pool_room;
    uint32_t region_pool; /* of the open region; 0: none */
    uint64_t context_bytes, outside_bytes;
    uint32_t context_account;
    uint64_t pinned_live_bytes;
    uint64_t phase_events, phase_ns; /* at the begin of the phase */
    struct twin_rank_state state;    /* at the end of the last phase */
};

/* One card of those that are computed. */
struct twin_card {
    uint32_t number;
    uint64_t high_bytes;      /* most in this phase */
    struct twin_amount *high; /* at that moment */
    size_t high_count, high_room;
};

struct twin_owner_key {
    size_t process, part;
    enum twin_owner_kind kind;
    uint32_t text; /* index of the purpose */
};

struct twin_run {
    const struct twin_scenario *scenario;
    struct ar_spec device_spec;   /* as the scenario has it */
    struct session_device device; /* the same with the whole card as its capacity */
    uint64_t context_bytes;       /* of a process, unless it says */
    struct schedule schedule;
    struct twin_process *processes; /* computed ranks, by card and then by number */
    size_t process_count;
    struct twin_card *cards;
    size_t card_count;
    uint32_t shown_as[TWIN_CARDS];      /* of each card of the machine: index of the computed one */
    uint64_t total_bytes, usable_bytes; /* usable: in whole pages */
    char card_name[64];
    bool dependent[TWIN_CARDS]; /* a part of that card depends on its rank */

    struct texts texts; /* names of owners, lines */
    struct twin_owner *owners;
    struct twin_owner_key *owner_keys;
    size_t owner_count, owner_room, owner_key_room;

    size_t phase;           /* its index in the result */
    uint64_t number;        /* of the phase, see twin_phase_of */
    uint64_t cycles;        /* 0: the cycle has no phases */
    uint64_t highest_bytes; /* of a card in any phase */
    bool last_cycle;
    const struct schedule_call *call; /* that runs now */
    uint64_t turn_events;
    struct twin_part *acting;
    bool over; /* it has failed, or `status` is not OK */
    enum ar_status status;
    struct ar_error *error;
    struct twin_failure failure;
    enum twin_outcome outcome;

    /* Arrays of the result. */
    struct twin_rank *ranks;
    const struct twin_process **rank_process; /* that computes it */
    size_t rank_count, rank_room, rank_process_room;
    struct twin_phase *phases;
    size_t phase_count, phase_room;
    struct twin_card_state *card_states;
    size_t card_state_count, card_state_room;
    struct twin_rank_state *rank_states;
    size_t rank_state_count, rank_state_room;
    struct twin_amount *amounts;
    size_t amount_count, amount_room;
    struct twin_figure *figures;
    size_t figure_count, figure_room;
    struct twin_pin *pins;
    size_t pin_count, pin_room;
    struct twin_line *lines;
    size_t line_count, line_room;
    uint64_t events;
};

/* Ends the run with an error; the first one counts. Returns its status. */
enum ar_status twin_run_error(struct twin_run *run, enum ar_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum ar_status twin_no_memory(struct twin_run *run);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* The phase with a number: from 0, of all that the schedule has, also of those that the result
 * leaves out. Without its states. */
struct twin_phase twin_phase_of(const struct twin_run *run, uint64_t number);

/* ---- regions.c ------------------------------------------------------------------------------- */

/* Whether empty_cache inside of use_mem_pool releases the common pool: by PyTorch's release. */
bool twin_trims_in_pool(const struct twin_process *process);

static inline unsigned twin_card_count(const struct twin_scenario *scenario)
{
    return scenario->cards ? scenario->cards : 1;
}

/* ---- open.c ---------------------------------------------------------------------------------- */

/* Checks the scenario, and makes the ranks that are computed with their parts. */
enum ar_status twin_run_open(struct twin_run *run, struct ar_error *error);

/* ---- process.c ------------------------------------------------------------------------------- */

/* Puts the process on its card: device, policy, context. Does nothing if it has begun. */
void twin_process_begin(struct twin_process *self);
/* Tells the device what the others on the card hold. */
void twin_process_tell(struct twin_process *self);
/* Replays all that was requested. */
void twin_process_settle(struct twin_process *self);
/* The program ends: its memory is released. */
void twin_process_end(struct twin_process *self);
void twin_process_close(struct twin_process *self);
/* The process has more on the card than before in this phase. */
void twin_process_look(struct twin_process *self);
/* The cause by a shorter ladder than that of sim/replay.h, from totals: free memory that sleeps is
 * not counted, nor is the context, which stays as long as its process. `beside`: it is not a
 * request to the policy. */
enum replay_cause twin_process_cause(const struct twin_process *self, uint64_t bytes, bool beside);
/* A request of `bytes` failed that no event of the replay made. */
void twin_process_failed(struct twin_process *self, uint64_t bytes, uint32_t account,
                         enum replay_cause cause);
/* The index of the account of an owner, which is added if it is new. */
uint32_t twin_process_account(struct twin_process *self, const struct twin_owner_key *key,
                              const char *purpose);
/* Pinned host memory of an account: so much more and so much less. */
void twin_process_pin(struct twin_process *self, uint32_t account, uint64_t more, uint64_t less);
/* Sets the bytes outside of the pool of an account. */
void twin_process_outside(struct twin_process *self, uint32_t account, uint64_t bytes);
static inline uint64_t twin_process_used(const struct twin_process *self)
{
    return self->device ? watch_used(&self->watch) : 0;
}

/* ---- accounts.c ------------------------------------------------------------------------------ */

/* Adds the amounts of a process to an array. CORRUPT if they do not add up. */
enum ar_status twin_amounts_add(struct twin_process *self, struct twin_amount **items,
                                size_t *count, size_t *room);
/* What all other processes have on the card of this one. */
uint64_t twin_others(const struct twin_process *self);
/* Records the state of everything at the end of a phase. */
void twin_record_phase(struct twin_run *run);
/* Adds the pinning blocks of a process. */
void twin_record_pins(struct twin_process *self);
/* A copy of a text that lives as long as the result; NULL stays NULL. */
const char *twin_text(struct twin_run *run, const char *text);
/* The number of an owner. */
uint32_t twin_owner_number(struct twin_run *run, const struct twin_owner_key *key,
                           const char *purpose);
