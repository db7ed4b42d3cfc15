/* The common base of the generators: a program that is run one chunk at a time, and whose
 * requests become the events of a trace source.
 *
 * 1. A generator is a struct that begins with `struct emit`, and an `emit_program` whose
 *    advance() writes the next few events with the emit_ functions below: one operation, one
 *    layer, one training step. Nothing is kept of the chunks that were given out, so memory is
 *    bounded by a chunk and by the blocks that the program holds.
 * 2. Ids are dense; a slot is taken again, the latest freed first, once its block is free.
 * 3. Counts and the hash of the stream are known, and set in info, when it has come to its end.
 * 4. An emit function that finds no host memory remembers that; the source reports it.
 * 5. A kernel names blocks of the step at hand by how many requests ago they were made and older
 *    ones by their ids: a program that does the same in each step then has the same keys in each,
 *    and the table of keys does not grow with the steps.
 * 6. A program with several streams lets go where it says so (emit_free_requested): when a block is
 *    complete is then up to policy and device. Such a program sets `free_requested`, never frees, and
 *    puts the number of its streams into source.info.streams when it is created. */
#ifndef WORKLOADS_GEN_EMIT_H
#define WORKLOADS_GEN_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "workloads/trace/source.h"
#include "workloads/trace/kernel_op_keys.h"

struct emit;

struct emit_program {
    const char *name;    /* of the generator, for errors */
    size_t source_bytes; /* of the generator's struct, which begins with struct emit */
    bool adaptive;       /* events are given one by one, and served() is called */
    bool free_requested; /* blocks are let go, never freed whole */
    /* Puts the program to its start; before the first chunk and after every rewind. */
    enum ar_status (*start)(struct emit *self, struct ar_error *error);
    /* Writes the next events. None written: the program has ended. */
    enum ar_status (*advance)(struct emit *self, struct ar_error *error);
    /* Adaptive only: what became of a request. */
    void (*served)(struct emit *self, uint64_t id, const struct trace_served *served);
    /* Gives back what the generator holds beside its struct; NULL: nothing. */
    void (*release)(struct emit *self);
};

/* A block that the program holds; `held` is false before it is made and after its free. */
struct emit_block {
    uint64_t id;
    uint64_t bytes;
    uint32_t slot;
    uint32_t stream;
    bool held;
};

/* Blocks in the order in which they were put there; memory is kept when it empties. */
struct emit_list {
    struct emit_block *items;
    size_t count, room;
};

struct emit_state; /* events, slots, texts: private to emit.c */

struct emit {
    struct trace_source source;
    const struct emit_program *program;
    struct emit_state *state;
};

/* A zeroed struct of program->source_bytes that is a source; the generator then fills in the
 * rest of it. trace_close frees it. HOST_MEMORY. */
enum ar_status emit_create(const struct emit_program *program, struct emit **out,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* A request; `tag` says what for and lives as long as the program (a literal), or is NULL. */
struct emit_block emit_alloc(struct emit *self, uint64_t bytes, const char *tag);
/* The same on another stream than 0. */
struct emit_block emit_alloc_on(struct emit *self, uint64_t bytes, uint32_t stream,
                                const char *tag);
/* A request that may fail; the program goes on. */
struct emit_block emit_probe(struct emit *self, uint64_t bytes, const char *tag);
/* Let go and complete at once. Does nothing where the block is not held. */
void emit_free(struct emit *self, struct emit_block *block);
/* Let go on the block's own stream. Does nothing where the block is not held. */
void emit_free_requested(struct emit *self, struct emit_block *block);
/* The block is used on another stream than its own. */
void emit_use(struct emit *self, const struct emit_block *block, uint32_t stream);
/* A kernel on stream 0, or on another, that runs for so long. */
void emit_kernel(struct emit *self, uint64_t time_ns);
void emit_kernel_on(struct emit *self, uint32_t stream, uint64_t time_ns);
/* A kernel on stream 0 with what it does to which blocks (workloads/trace/kernel_op_keys.h). Inputs that
 * are NULL or not held are left out; without an output it is just a kernel. */
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
/* Memory held outside of the pool from here on, all of it in bytes. */
void emit_outside(struct emit *self, uint64_t bytes);
/* The end of a training step. */
void emit_step(struct emit *self);
/* Any other mark; `label` lives as long as the program. */
void emit_mark(struct emit *self, const char *label);

/* Puts a block at the end of the list. */
void emit_list_push(struct emit *self, struct emit_list *list, struct emit_block block);
/* Takes the last one off; of an empty list a block that is not held. */
struct emit_block emit_list_pop(struct emit_list *list);
/* Frees, or lets go where the program does that, the last so many, the last one first; those
 * that are not held are only taken off. */
void emit_list_free(struct emit *self, struct emit_list *list, size_t count);
/* Empties the list without any event. */
void emit_list_clear(struct emit_list *list);
void emit_list_close(struct emit_list *list); /* gives its memory back */

/* Events written so far, and bytes live now. */
uint64_t emit_events(const struct emit *self);
uint64_t emit_live_bytes(const struct emit *self);

#endif
