/* One layer under jax.value_and_grad, not compiled as a whole: each operation is a program of its own
 * and makes a new array. The table below is the recorded order of a step, in which 30 arrays are
 * made; what each of them is follows from the operations and is an assumption where two orders would
 * do. What a step leaves (input, loss, gradients, parameters) the next one lets go of. */
#include "workloads/gen/jax.h"

#include <string.h>

enum size { SHEET, SQUARE, ROW, NUMBER, SIZE_COUNT };
enum act { MAKE, DROP, DROP_OLD };

enum {
    INPUT = 3,
    PRODUCT,
    RESULT = 6,
    DIFFERENCE,
    LOSS = 12,
    OF_BIAS = 20,
    TRANSPOSED = 21,
    OF_WEIGHT = 23,
    WEIGHT = 26,
    BIAS = 29
};

struct deed {
    uint8_t act, block, size;
    const char *tag;
};

static const struct deed forward_deeds[] = {
    {MAKE, RESULT, SHEET, "output"},
    {DROP, PRODUCT, 0, NULL},
    {MAKE, DIFFERENCE, SHEET, "difference"},
    {MAKE, 8, SHEET, "power"},
    {MAKE, 9, SHEET, "squares"},
    {MAKE, 10, NUMBER, "scalar"},
    {MAKE, 11, SHEET, "tape"}, /* twice the difference: kept for the backward pass */
    {DROP, 10, 0, NULL},
    {DROP, 8, 0, NULL},
    {DROP, DIFFERENCE, 0, NULL},
    {MAKE, LOSS, NUMBER, "loss"},
    {DROP, 9, 0, NULL},
    {DROP, RESULT, 0, NULL},
};

static const struct deed backward_deeds[] = {
    {MAKE, 13, NUMBER, "gradient"},
    {MAKE, 14, SHEET, "gradient"},
    {DROP, 13, 0, NULL},
    {MAKE, 15, NUMBER, "scalar"},
    {MAKE, 16, SHEET, "gradient"},
    {MAKE, 17, NUMBER, "scalar"},
    {MAKE, 18, SHEET, "gradient"},
    {DROP, 17, 0, NULL},
    {DROP, 15, 0, NULL},
    {MAKE, 19, ROW, "gradient"},
    {MAKE, OF_BIAS, ROW, "gradient"},
    {DROP, 19, 0, NULL},
    {DROP, 18, 0, NULL},
};

static const struct deed update_deeds[] = {
    {MAKE, OF_WEIGHT, SQUARE, "gradient"},
    {DROP, TRANSPOSED, 0, NULL},
    {DROP, 16, 0, NULL},
    {DROP, 14, 0, NULL},
    {DROP, 11, 0, NULL},
    {DROP_OLD, LOSS, 0, NULL},
    {DROP_OLD, OF_WEIGHT, 0, NULL},
    {DROP_OLD, OF_BIAS, 0, NULL},
    {MAKE, 24, NUMBER, "scalar"},
    {MAKE, 25, SQUARE, "step"},
    {DROP, 24, 0, NULL},
    {MAKE, WEIGHT, SQUARE, "weight"},
    {DROP, 25, 0, NULL},
    {MAKE, 27, NUMBER, "scalar"},
    {MAKE, 28, ROW, "step"},
    {DROP, 27, 0, NULL},
    {MAKE, BIAS, ROW, "bias"},
    {DROP, 28, 0, NULL},
    {DROP_OLD, BIAS, 0, NULL},
    {DROP_OLD, WEIGHT, 0, NULL},
};

struct playing {
    struct eager *eager;
    struct emit_block *blocks, *old;
    uint64_t sizes[SIZE_COUNT];
};

static void play(const struct playing *playing, const struct deed *deeds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct deed *deed = &deeds[i];
        if (deed->act == MAKE)
            playing->blocks[deed->block] =
                eager_make(playing->eager, playing->sizes[deed->size], 0, deed->tag,
                           eager_set(eager_type(playing->eager)));
        else
            emit_free(playing->eager->emit, deed->act == DROP ? &playing->blocks[deed->block]
                                                              : &playing->old[deed->block]);
    }
}

#define PLAY(playing, deeds) play(playing, deeds, sizeof(deeds) / sizeof *(deeds))

void jax_tape_start(struct jax_tape *tape, struct eager *eager, uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    memset(tape, 0, sizeof *tape);
    tape->blocks[WEIGHT] = jax_fill(eager, width * width * value, "weight");
    tape->blocks[BIAS] = jax_fill(eager, width * value, "bias");
}

void jax_tape_step(struct jax_tape *tape, struct eager *eager, uint64_t rows, uint64_t width)
{
    uint64_t value = numeric_value_bytes(eager->type);
    struct jax_tape old = *tape;
    const struct playing playing = {
        .eager = eager,
        .blocks = tape->blocks,
        .old = old.blocks,
        .sizes = {[SHEET] = rows * width * value,
                  [SQUARE] = width * width * value,
                  [ROW] = width * value,
                  [NUMBER] = value},
    };
    struct emit_block *blocks = tape->blocks;
    struct emit_block key = jax_key(eager);
    blocks[INPUT] = jax_normal(eager, &key, rows * width, "input");
    emit_free(eager->emit, &old.blocks[INPUT]);
    blocks[PRODUCT] = jax_multiply(eager, (struct eager_shape){rows, width, width}, "product",
                                   &blocks[INPUT], &old.blocks[WEIGHT]);
    PLAY(&playing, forward_deeds);
    PLAY(&playing, backward_deeds);
    blocks[TRANSPOSED] = jax_multiply(eager, (struct eager_shape){width, width, rows}, "gradient",
                                      &blocks[16], &blocks[INPUT]);
    PLAY(&playing, update_deeds);
}

void jax_tape_finish(struct jax_tape *tape, struct eager *eager)
{
    static const uint8_t last[] = {INPUT, LOSS, OF_WEIGHT, OF_BIAS, BIAS, WEIGHT};
    for (size_t i = 0; i < sizeof last; i++)
        emit_free(eager->emit, &tape->blocks[last[i]]);
}
