/* Tables that are made when they are first used, and a step that is compiled as a whole: it takes tables
 * and gives new ones, so both are live while it runs, and has little memory of its own, since the
 * gradient is worked out in the memory of the new table. In the recorded order. */
#include "workloads/gen/jax.h"

#include <stdlib.h>

#define ID_BYTES     4u
#define NUMBER_BYTES 4u

static struct emit_block make(struct eager *eager, uint64_t bytes, const char *tag)
{
    return eager_make(eager, bytes, 0, tag, eager_set(eager_type(eager)));
}

void jax_embedding_start(struct jax_embedding *self, struct eager *eager)
{
    self->count = 0;
    self->value.held = false;
    self->key = jax_key(eager);
}

void jax_embedding_add(struct jax_embedding *self, struct eager *eager, uint64_t elements)
{
    struct jax_table *table = &self->tables[self->count++];
    struct emit_block key = jax_key(eager);
    *table = (struct jax_table){.elements = elements};
    table->rows = jax_normal(eager, &key, elements, "table");
}

/* Whole numbers between two bounds, which are arrays too. */
static struct emit_block draw_ids(struct eager *eager, uint64_t count)
{
    struct emit_block key = jax_key(eager);
    struct emit_block least = make(eager, NUMBER_BYTES, "scalar");
    struct emit_block most = make(eager, NUMBER_BYTES, "scalar");
    struct emit_block ids = make(eager, count * ID_BYTES, "ids");
    struct emit_block scratch = make(eager, count * ID_BYTES, "scratch");
    emit_free(eager->emit, &scratch);
    emit_free(eager->emit, &least);
    emit_free(eager->emit, &most);
    emit_free(eager->emit, &key);
    return ids;
}

/* The largest table first, as the compiled step asks for its results. */
static void put_in_order(struct jax_embedding *self)
{
    for (size_t i = 0; i < self->count; i++) {
        size_t at = i;
        for (; at && self->tables[self->order[at - 1]].elements < self->tables[i].elements; at--)
            self->order[at] = self->order[at - 1];
        self->order[at] = i;
    }
}

static void run_step(struct jax_embedding *self, struct eager *eager, uint64_t batch,
                     uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    struct emit_block target = jax_fill(eager, batch * width * value, "target");
    put_in_order(self);
    for (size_t i = 0; i < self->count; i++) {
        struct jax_table *table = &self->tables[self->order[i]];
        table->made = make(eager, table->elements * value, "table");
    }
    struct emit_block first = make(eager, batch * width * value, "temporary");
    struct emit_block loss = make(eager, value, "loss");
    struct emit_block second = make(eager, batch * width * value, "temporary");
    emit_free(eager->emit, &first);
    emit_free(eager->emit, &second);
    emit_free(eager->emit, &target);
    emit_free(eager->emit, &self->value);
    self->value = loss;
    for (size_t i = self->count; i-- > 0;) {
        emit_free(eager->emit, &self->tables[i].rows);
        self->tables[i].rows = self->tables[i].made;
    }
}

void jax_embedding_step(struct jax_embedding *self, struct eager *eager, uint64_t batch,
                        uint64_t width, const uint64_t *bags)
{
    for (size_t i = 0; i < self->count; i++)
        self->tables[i].made = draw_ids(eager, batch * bags[i]);
    for (size_t i = self->count; i-- > 0;) {
        emit_free(eager->emit, &self->tables[i].ids);
        self->tables[i].ids = self->tables[i].made;
    }
    run_step(self, eager, batch, width);
}

void jax_embedding_finish(struct jax_embedding *self, struct eager *eager)
{
    emit_free(eager->emit, &self->key);
    for (size_t i = self->count; i-- > 0;)
        emit_free(eager->emit, &self->tables[i].ids);
    emit_free(eager->emit, &self->value);
    for (size_t i = self->count; i-- > 0;)
        emit_free(eager->emit, &self->tables[i].rows);
}
