#include "tests/support/planning_rig.h"

#include "tests/support/test.h"

struct packing_block *planning_rig_read(const char *path, size_t *count)
{
    char line[256];
    FILE *file = fopen(path, "r");
    struct packing_block *blocks = calloc(PLANNING_RIG_MOST, sizeof *blocks);
    assert_non_null(file);
    assert_non_null(blocks);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "id,lower,upper,size\n");
    *count = 0;
    while (fgets(line, sizeof line, file)) {
        struct packing_block *block = &blocks[(*count)++];
        assert_true(*count <= PLANNING_RIG_MOST);
        assert_int_equal(sscanf(line, "%*u,%" SCNu64 ",%" SCNu64 ",%" SCNu64, &block->born,
                                &block->dies, &block->bytes),
                         3);
    }
    fclose(file);
    return blocks;
}

void planning_rig_draw(struct ar_rng *rng, struct packing_block *blocks, size_t count,
                       uint64_t bytes_most, uint64_t moments)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t a = ar_rng_below(rng, moments), b = ar_rng_below(rng, moments);
        blocks[i] = (struct packing_block){.bytes = 1 + ar_rng_below(rng, bytes_most),
                                           .born = a < b ? a : b,
                                           .dies = (a < b ? b : a) + 1};
    }
}

size_t planning_rig_fill(struct ar_rng *rng, struct packing_block *blocks, size_t most,
                         uint64_t full_bytes, uint64_t bytes_most, uint64_t moments)
{
    size_t count = 0;
    for (int tries = 0; tries < 400 && count < most; tries++) {
        planning_rig_draw(rng, &blocks[count], 1, bytes_most, moments);
        bool fits = true;
        for (uint64_t moment = blocks[count].born; moment < blocks[count].dies; moment++) {
            uint64_t live_bytes = blocks[count].bytes;
            for (size_t i = 0; i < count; i++)
                if (blocks[i].born <= moment && moment < blocks[i].dies)
                    live_bytes += blocks[i].bytes;
            fits = fits && live_bytes <= full_bytes;
        }
        count += fits;
    }
    return count;
}

uint64_t planning_rig_peak(const struct packing_block *blocks, size_t count)
{
    uint64_t peak_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t live_bytes = 0;
        for (size_t j = 0; j < count; j++)
            if (blocks[j].born <= blocks[i].born && blocks[i].born < blocks[j].dies)
                live_bytes += blocks[j].bytes;
        peak_bytes = live_bytes > peak_bytes ? live_bytes : peak_bytes;
    }
    return peak_bytes;
}

bool planning_rig_is_plan(const struct packing_block *blocks, size_t count, const uint64_t *offsets,
                          uint64_t top_bytes)
{
    uint64_t top = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = offsets[i] + blocks[i].bytes;
        top = end > top ? end : top;
        if (blocks[i].alignment > 1 && offsets[i] % blocks[i].alignment)
            return false;
        for (size_t j = 0; j < i; j++)
            if (blocks[i].born < blocks[j].dies && blocks[j].born < blocks[i].dies &&
                offsets[i] < offsets[j] + blocks[j].bytes && offsets[j] < end)
                return false;
    }
    return top == top_bytes;
}
