/* Vector clocks, compared with plain arrays: sharing between clocks is not visible, and learned
 * sequences are not visited again. */
#include "allocators/base/rng.h"
#include "sim/sim_device/clock.h"
#include "tests/support/test.h"

enum { CLOCKS = 12, STREAMS = 5000, TURNS = 20000 };

struct model {
    struct vector_clock clocks[CLOCKS];
    uint64_t plain[CLOCKS][STREAMS];
    uint64_t known[STREAMS], learned[STREAMS];
    uint64_t shown;
};

static void learn(void *argument, uint32_t stream, uint64_t sequence)
{
    struct model *model = argument;
    model->shown++;
    assert_true(stream < STREAMS);
    if (sequence > model->learned[stream])
        model->learned[stream] = sequence;
}

/* Near each other, and now and then far away, so that trees of all heights meet. */
static uint32_t any_stream(struct ar_rng *rng)
{
    static const uint32_t bounds[] = {3, 20, 300, STREAMS};
    return (uint32_t)ar_rng_below(rng, bounds[ar_rng_below(rng, 4)]);
}

static void turn(struct model *model, struct ar_rng *rng)
{
    size_t one = (size_t)ar_rng_below(rng, CLOCKS);
    size_t other = (size_t)ar_rng_below(rng, CLOCKS);
    uint32_t stream = any_stream(rng);
    uint64_t sequence = ar_rng_below(rng, 1000);
    switch (ar_rng_below(rng, 8)) {
    case 0: /* a copy takes the other's place */
        if (one != other) {
            vector_clock_drop(&model->clocks[one]);
            model->clocks[one] = vector_clock_copy(&model->clocks[other]);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
            model->plain[one][i] = model->plain[other][i];
        break;
    case 1:
        assert_true(vector_clock_raise_all(&model->clocks[one], &model->clocks[other]));
        for (uint32_t i = 0; i < STREAMS; i++)
            if (model->plain[other][i] > model->plain[one][i])
                model->plain[one][i] = model->plain[other][i];
        break;
    case 2:
        vector_clock_learn(&model->clocks[one], learn, model);
        for (uint32_t i = 0; i < STREAMS; i++)
            if (model->plain[one][i] > model->known[i])
                model->known[i] = model->plain[one][i];
        assert_memory_equal(model->known, model->learned, sizeof model->known);
        break;
    case 3:
        if (ar_rng_below(rng, 8) == 0) {
            vector_clock_drop(&model->clocks[one]);
            for (uint32_t i = 0; i < STREAMS; i++)
                model->plain[one][i] = 0;
        }
        break;
    default:
        assert_true(vector_clock_raise(&model->clocks[one], stream, sequence));
        if (sequence > model->plain[one][stream])
            model->plain[one][stream] = sequence;
    }
    stream = any_stream(rng);
    for (size_t i = 0; i < CLOCKS; i++)
        assert_int_equal(vector_clock_at(&model->clocks[i], stream), model->plain[i][stream]);
}

TEST(clocks_are_what_arrays_are)
{
    struct ar_rng rng = ar_rng_of(11);
    FREED struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(model, &rng);
    for (size_t i = 0; i < CLOCKS; i++)
        for (uint32_t stream = 0; stream < STREAMS; stream++)
            assert_int_equal(vector_clock_at(&model->clocks[i], stream), model->plain[i][stream]);
    assert_int_equal(vector_clock_at(&model->clocks[0], UINT32_MAX), 0);
    for (size_t i = 0; i < CLOCKS; i++)
        vector_clock_drop(&model->clocks[i]);
}

/* Each of 65,536 streams waits for the one before it, and each such moment is learned: a plain
 * array for each would hold 34 GB and show two thousand million sequences. */
TEST(a_long_chain_is_shared)
{
    enum { CHAIN = 65536 };
    FREED struct vector_clock *clocks = calloc(CHAIN, sizeof *clocks);
    FREED struct model *model = calloc(1, sizeof *model);
    assert_non_null(clocks);
    assert_non_null(model);
    for (uint32_t i = 1; i < CHAIN; i++) {
        assert_true(vector_clock_raise_all(&clocks[i], &clocks[i - 1]));
        assert_true(vector_clock_raise(&clocks[i], i - 1, i));
        if (i < STREAMS)
            vector_clock_learn(&clocks[i], learn, model);
    }
    assert_true(model->shown < 16 * STREAMS);
    for (uint32_t i = 0; i < CHAIN; i += 37) {
        assert_int_equal(vector_clock_at(&clocks[i], i), 0);
        for (uint32_t earlier = 0; earlier < i; earlier += 1013)
            assert_int_equal(vector_clock_at(&clocks[i], earlier), earlier + 1);
    }
    for (uint32_t i = 0; i < CHAIN; i++)
        vector_clock_drop(&clocks[i]);
}
