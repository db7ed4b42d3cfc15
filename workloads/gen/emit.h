/* The common base of the generators: a program that is run one chunk at a time, and whose
 * requests become the events of a trace source.
 *
 * 1. A generator is a struct that begins with `struct emit`, and an `emit_program` whose
 *    advance() writes the next few events with the emit_ functions below: one operation, one
 *    layer, one training step. Nothing is kept of the chunks that were given out, so memory is
 *    bounded by a chunk and by the blocks that the program holds.
 * 2. Ids are dense; a slot is taken again, the latest freed first, once its block is free.
 * 3. Counts and the hash of the stream are known, and set in info, when it has come to its end.
 * 4. An emit function that finds no host memory remembers that; the source reports it. */
#ifndef WORKLOADS_GEN_EMIT_H
#define WORKLOADS_GEN_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "workloads/trace/source.h"

struct emit;

struct emit_program {
    const char *name;    /* of the generator, for errors */
    size_t source_bytes; /* of the generator's struct, which begins with struct emit */
    bool adaptive;       /* events are given one by one, and served() is called */
    /* Puts the program to its start; before the first chunk and after every rewind. */
    enum status (*start)(struct emit *self, struct error *error);
    /* Writes the next events. None written: the program has ended. */
    enum status (*advance)(struct emit *self, struct error *error);
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
    bool held;
};

struct emit_state; /* events, slots, texts: private to emit.c */

struct emit {
    struct trace_source source;
    const struct emit_program *program;
    struct emit_state *state;
};

/* A zeroed struct of program->source_bytes that is a source; the generator then fills in the
 * rest of it. trace_close frees it. HOST_MEMORY. */
enum status emit_create(const struct emit_program *program, struct emit **out,
                        struct error *error) STATUS_CHECKED;

/* A request; `tag` says what for and lives as long as the program (a literal), or is NULL. */
struct emit_block emit_alloc(struct emit *self, uint64_t bytes, const char *tag);
/* A request that may fail; the program goes on. */
struct emit_block emit_probe(struct emit *self, uint64_t bytes, const char *tag);
/* Let go and complete at once. Does nothing where the block is not held. */
void emit_free(struct emit *self, struct emit_block *block);
/* A kernel on stream 0 that runs for so long. */
void emit_kernel(struct emit *self, uint64_t time_ns);
/* Memory held outside of the pool from here on, all of it in bytes. */
void emit_outside(struct emit *self, uint64_t bytes);
/* The end of a training step. */
void emit_step(struct emit *self);
/* Any other mark; `label` lives as long as the program. */
void emit_mark(struct emit *self, const char *label);

/* Events written so far, and bytes live now. */
uint64_t emit_events(const struct emit *self);
uint64_t emit_live_bytes(const struct emit *self);

#endif
