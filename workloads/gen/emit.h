/* The base of all generators: a program that runs one chunk at a time, and whose requests become
 * the events of a trace source.
 *
 * 1. A generator's struct begins with `struct emit` (struct gen_ops describes the rest). Its
 *    advance() writes the next few events with the emit_ functions: one operation, one layer, one
 *    training step. Chunks that were given out are not kept, so memory is bounded by a chunk and by
 *    the blocks that the program holds.
 * 2. Ids are dense. A slot is used again as soon as its block is free, the latest freed first.
 * 3. Counts and the hash of the stream are known, and set in info, when the program has ended.
 * 4. An emit function that finds no host memory records that; the source reports it.
 * 5. A kernel names the blocks of the current step by the number of requests since they were made,
 *    and older ones by their ids. A program that repeats its steps then repeats its keys, and the
 *    table of keys does not grow with the number of steps.
 * 6. A program with several streams sets gen_ops.free_requested: it requests frees, and policy and
 *    device determine when the block is complete. It puts the number of its streams into
 *    source.info.streams in open(). */
#pragma once

#include "allocators/base/rng.h"
#include "workloads/gen/gen.h"
#include "workloads/trace/kernel_op_keys.h"

/* ---- samples ---- */

/* Numbers that vary from step to step: a list such as '2048;4096;8192' or '1-19;64'. An entry is a
 * number or a range. Entries are taken in turn, again from the first after the last, or one is
 * drawn at random each time; a number from a range is always drawn at random. */

struct emit;

enum samples_order { SAMPLES_RANDOM, SAMPLES_CYCLE };
#define SAMPLES_CHOICES "random|cycle"

struct samples_range {
    uint64_t least, most;
};

struct samples {
    const struct samples_range *ranges; /* owned by the generator's source */
    size_t count;
    size_t turn; /* entries taken in turn; 0 at each start of the generator */
    enum samples_order order;
    struct samples *other; /* the generator's other lists */
};

/* Reads the list from the text of `option`; every number must lie in [least, most]. Only in the
 * open() of a generator; errors go to emit_fail. */
void samples_open(struct emit *emit, struct samples *samples, const char *text,
                  enum samples_order order, uint64_t least, uint64_t most, const char *option);

/* The next number; from a range uniformly, or so that every doubling is equally likely. */
uint64_t samples_next(struct samples *samples, struct ar_rng *rng);
uint64_t samples_next_log(struct samples *samples, struct ar_rng *rng);

/* The largest number that can come. */
uint64_t samples_most(const struct samples *samples);

/* A block that the program holds; `held` is false before the request and after the free. */
struct emit_block {
    uint64_t id;
    uint64_t bytes;
    uint32_t slot;
    uint32_t stream;
    bool held;
};

/* Blocks in the order in which they were pushed. A zeroed struct is an empty list; a list is part
 * of a generator's state, and the source frees its memory. */
struct emit_list {
    struct emit_block *items;
    size_t count, room;
    struct emit_list *other; /* the generator's other lists */
};

struct emit_state; /* events, slots, texts: private to emit.c */

struct emit {
    struct trace_source source;
    const struct gen_ops *ops;
    struct ar_rng rng; /* seeded with the option `seed` at each start */
    struct samples *samples;
    struct emit_list *lists;
    struct emit_state *state;
};

/* Reports a failure; the first one counts. The name of the generator is put before the sentence. */
void emit_fail(struct emit *self, enum ar_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A zeroed array that lives as long as the source, for open(). NULL after a failure is reported. */
void *emit_array(struct emit *self, size_t count, size_t item_bytes);
/* No call of advance follows this one. */
void emit_end(struct emit *self);

/* A request. `tag` names its purpose and must be a literal, or NULL. */
struct emit_block emit_alloc(struct emit *self, uint64_t bytes, const char *tag);
/* A request on another stream than 0. */
struct emit_block emit_alloc_on(struct emit *self, uint64_t bytes, uint32_t stream,
                                const char *tag);
/* A request that may fail; the program goes on. */
struct emit_block emit_probe(struct emit *self, uint64_t bytes, const char *tag);
/* Frees a block, on its own stream; with gen_ops.free_requested, only requests the free. Does
 * nothing if the block is not held. */
void emit_free(struct emit *self, struct emit_block *block);
/* The block is used on another stream than its own. */
void emit_use(struct emit *self, const struct emit_block *block, uint32_t stream);
/* A kernel of that duration, on stream 0 or on another one. */
void emit_kernel(struct emit *self, uint64_t time_ns);
void emit_kernel_on(struct emit *self, uint32_t stream, uint64_t time_ns);
/* A kernel on stream 0 and what it does with which blocks (workloads/trace/kernel_op_keys.h).
 * Inputs that are NULL or not held are left out; without a held output the kernel has no keys. */
struct emit_kernel_op {
    const char *op, *type; /* literals; type may be NULL */
    const struct emit_block *out;
    const struct emit_block *in[TRACE_KERNEL_OP_INPUTS];
    uint64_t shape[TRACE_KERNEL_OP_DIMENSIONS]; /* up to the first 0 */
};
void emit_kernel_op(struct emit *self, uint64_t time_ns, const struct emit_kernel_op *kernel_op);
/* Event number `event` is recorded on a stream; a stream waits for it. */
void emit_record(struct emit *self, uint64_t event, uint32_t stream);
void emit_wait(struct emit *self, uint32_t stream, uint64_t event);
/* The host waits for the device. */
void emit_sync(struct emit *self);
/* The program asks that cached memory be released. */
void emit_trim(struct emit *self);
/* The total memory held outside of the pool from here on. */
void emit_outside(struct emit *self, uint64_t bytes);
/* The end of a training step. */
void emit_step(struct emit *self);
/* Any other mark; `label` must be a literal. */
void emit_mark(struct emit *self, const char *label);

/* Puts a block at the end of the list. */
void emit_list_push(struct emit *self, struct emit_list *list, struct emit_block block);
/* Takes the last one off; from an empty list, a block that is not held. */
struct emit_block emit_list_pop(struct emit_list *list);
/* Takes the last `count` blocks off, the last one first, and frees those that are held. */
void emit_list_free(struct emit *self, struct emit_list *list, size_t count);

/* Events written so far, and bytes live now. */
uint64_t emit_events(const struct emit *self);
uint64_t emit_live_bytes(const struct emit *self);
