/* Which blocks are carried from step to step, permanent, or leaked: learned.md, "Blocks". */

#include "allocators/base/map.h"
#include "workloads/learned/model.h"

/* Blocks of one kind: equal keys, stream and size; and the same without the size. */
struct kin {
    uint64_t longest;     /* steps that a freed one lived; 0: none outlived its step */
    uint64_t quarters;    /* a bit for each quarter of the recording in which one that is not freed
                          is made; without the size, of those that count_varied counts */
    uint64_t least, most; /* bytes of these in all quarters but the first */
};

static uint64_t kin_key(const struct learned_block *block, bool sized)
{
    uint64_t key = ((uint64_t)block->attributes << 32 | block->stream) * 0x9e3779b97f4a7c15u;
    return (key ^ (sized ? (block->bytes + 1) * 0xbf58476d1ce4e5b9u : 0)) >> 1;
}

static struct kin *kin_of(struct ar_map *map, const struct learned_block *block, bool sized)
{
    return (struct kin *)(void *)ar_map_add(map, kin_key(block, sized));
}

static uint64_t quarter_of(const struct learned_recording *recording,
                           const struct learned_block *block)
{
    return UINT64_C(1) << 4 * (size_t)block->born / recording->step_count;
}

static bool count_kin(const struct learned_recording *recording, struct ar_map *map)
{
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        for (int sized = 0; sized < 2; sized++) {
            struct kin *kin = kin_of(map, block, sized);
            if (!kin)
                return false;
            if (block->freed == LEARNED_NEVER) {
                if (sized)
                    kin->quarters |= quarter_of(recording, block);
            } else if (block->freed - block->born > kin->longest &&
                       (sized || block->born >= recording->step_count / 4)) {
                kin->longest = block->freed - block->born;
            }
        }
    }
    return true;
}

/* Blocks that leak may vary in size, such as results that are kept. Counts those that are not freed
 * and whose size alone is not made in each quarter. */
static void count_varied(const struct learned_recording *recording, struct ar_map *map)
{
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        if (block->freed != LEARNED_NEVER || kin_of(map, block, true)->quarters == 15)
            continue;
        struct kin *kin = kin_of(map, block, false);
        uint64_t quarter = quarter_of(recording, block);
        if (quarter > 1) {
            kin->least = kin->most && kin->least < block->bytes ? kin->least : block->bytes;
            AR_RAISE(kin->most, block->bytes);
        }
        kin->quarters |= block->born ? quarter : 0;
    }
}

static bool leaks(struct ar_map *map, const struct learned_block *block)
{
    const struct kin *varied = kin_of(map, block, false);
    return kin_of(map, block, true)->quarters == 15 ||
           (varied->quarters == 15 && block->born && block->bytes >= varied->least &&
            block->bytes <= varied->most);
}

/* The fate of a block that is not freed, from the lives of its kin. */
static enum learned_fate judge(const struct learned_recording *recording, struct ar_map *map,
                               const struct learned_block *block)
{
    const struct kin *kin = kin_of(map, block, true);
    uint64_t age = recording->step_count - 1 - block->born;
    uint64_t longest = kin->longest ? kin->longest : kin_of(map, block, false)->longest;
    if (age <= longest)
        return LEARNED_CARRIED;
    return leaks(map, block) ? LEARNED_LEAKED : LEARNED_PERMANENT;
}

/* A block that is not freed and young may be one that leaks: it is if the same request of the
 * latest earlier step with as many requests of its kind leaked. */
static bool compare_places(struct learned_model *model)
{
    const struct learned_recording *recording = &model->recording;
    struct ar_map counts = {0}, leaked = {0};
    bool done = true;
    for (size_t i = 0; done && i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        if (i == 0 || block->born != recording->blocks[i - 1].born) {
            ar_map_clear(&counts);
            for (size_t j = i;
                 j < recording->block_count && recording->blocks[j].born == block->born; j++) {
                uint64_t *count = ar_map_add(&counts, kin_key(&recording->blocks[j], true));
                if (count)
                    ++*count;
            }
        }
        uint64_t *count = ar_map_add(&counts, kin_key(block, true));
        if (!count)
            break;
        /* The upper half of the count is the number of the request. */
        uint64_t number = *count >> 32, all = *count & UINT32_MAX;
        *count += UINT64_C(1) << 32;
        if (block->freed != LEARNED_NEVER && block->freed == block->born)
            continue;
        uint64_t place =
            (kin_key(block, true) ^ (number * 0x94d049bb133111ebu + all * 0xd6e8feb86659fd93u)) >>
            1;
        uint64_t *leak = ar_map_add(&leaked, place);
        done = leak != NULL;
        if (leak && model->fates[i] == LEARNED_CARRIED && block->freed == LEARNED_NEVER && *leak)
            model->fates[i] = LEARNED_LEAKED;
        if (leak)
            *leak = model->fates[i] == LEARNED_LEAKED;
    }
    ar_map_close(&counts);
    ar_map_close(&leaked);
    return done;
}

bool learned_find_fates(struct learned_model *model)
{
    const struct learned_recording *recording = &model->recording;
    struct ar_map map = {.more_words = sizeof(struct kin) / sizeof(uint64_t) - 1};
    bool done = count_kin(recording, &map);
    if (done)
        count_varied(recording, &map);
    for (size_t i = 0; done && i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        if (block->freed == LEARNED_NEVER)
            model->fates[i] = (uint8_t)judge(recording, &map, block);
        else
            model->fates[i] =
                block->completed == block->born ||
                        (block->completed == LEARNED_NEVER && block->freed == block->born)
                    ? LEARNED_LOCAL
                    : LEARNED_CARRIED;
    }
    ar_map_close(&map);
    done = done && compare_places(model);
    for (size_t i = 0; done && i < recording->block_count; i++) {
        const struct learned_block *block = &recording->blocks[i];
        if (model->fates[i] == LEARNED_PERMANENT) {
            model->permanent_count++;
            if (block->born < recording->step_count / 2 && block->born >= model->warmup)
                model->warmup = block->born + 1u;
        }
    }
    return done;
}
