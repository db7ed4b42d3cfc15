#include "tests/support/op_script.h"

#include <stdlib.h>

#include "allocators/base/fnv.h"
#include "allocators/base/rng.h"

#define STRETCHES  16
#define SMALL_MOST 256

/* While the script is made: live slots in front, free ones behind. */
struct maker {
    struct ar_rng rng;
    uint32_t *slots;
    uint32_t live;
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static struct op make_op(struct maker *m, uint32_t target, uint64_t most_bytes)
{
    struct op op = {.stream = ar_rng_below(&m->rng, 8) ? 0 : (uint32_t)ar_rng_below(&m->rng, 3)};
    uint64_t kind = ar_rng_below(&m->rng, 1000);
    uint64_t allocs = m->live < target ? 600 : 400;
    if (kind == 999 && ar_rng_below(&m->rng, 4) == 0) {
        op.kind = OP_TRIM;
        op.bytes = ar_rng_below(&m->rng, 2) ? 0 : ar_rng_log_uniform(&m->rng, 1, 1 << 30);
    } else if (kind >= 980 && m->live) {
        op.kind = OP_USE;
        op.slot = m->slots[ar_rng_below(&m->rng, m->live)];
    } else if (kind % 980 < allocs || m->live == 0) {
        op.kind = OP_ALLOC;
        op.bytes = ar_rng_log_uniform(&m->rng, 1, most_bytes);
        op.slot = m->slots[m->live++];
        op.alignment_log2 = ar_rng_below(&m->rng, 16) ? 0 : (uint8_t)ar_rng_below(&m->rng, 17);
    } else {
        uint64_t at = ar_rng_below(&m->rng, m->live);
        op.kind = OP_FREE;
        op.slot = m->slots[at];
        m->live--;
        m->slots[at] = m->slots[m->live];
        m->slots[m->live] = op.slot;
    }
    return op;
}

void op_script_open(struct op_script *script, uint64_t seed, size_t count, uint32_t most_live,
                    uint64_t most_bytes)
{
    uint32_t slots = 2 * most_live + 2 * SMALL_MOST;
    struct maker m = {.slots = must(calloc(slots, sizeof *m.slots))};
    uint32_t target = 0;
    ar_rng_seed(&m.rng, seed);
    for (uint32_t i = 0; i < slots; i++)
        m.slots[i] = i;
    script->slots = slots;
    script->ops = must(calloc(count + slots, sizeof *script->ops));
    for (script->count = 0; script->count < count; script->count++) {
        size_t stretch = script->count * STRETCHES / count;
        bool large = stretch % 4 == 3;
        if (script->count % 512 == 0)
            target = large ? most_live : (uint32_t)ar_rng_between(&m.rng, 1, SMALL_MOST - 56);
        /* Beyond the target by chance, but never so far that a slot is missing. */
        uint32_t most = m.live + 1 >= slots ? 0 : target;
        /* A large phase ends quickly: the excess is freed at once. */
        if (!large && m.live > SMALL_MOST) {
            m.live--;
            script->ops[script->count] = (struct op){.kind = OP_FREE, .slot = m.slots[m.live]};
            continue;
        }
        script->ops[script->count] = make_op(&m, most, most_bytes);
    }
    while (m.live) {
        m.live--;
        script->ops[script->count++] = (struct op){.kind = OP_FREE, .slot = m.slots[m.live]};
    }
    free(m.slots);
}

void op_script_close(struct op_script *script)
{
    free(script->ops);
    script->ops = NULL;
}

static enum ar_status give_plan(const struct op_script *script, struct ar_policy *policy)
{
    struct ar_policy_lifetime *lives = must(calloc(script->count, sizeof *lives));
    size_t *life_of = must(calloc(script->slots, sizeof *life_of));
    size_t count = 0;
    for (size_t i = 0; i < script->count; i++) {
        const struct op *op = &script->ops[i];
        if (op->kind == OP_ALLOC) {
            life_of[op->slot] = count;
            lives[count++] = (struct ar_policy_lifetime){op->bytes, i, script->count};
        } else if (op->kind == OP_FREE) {
            lives[life_of[op->slot]].dies = i;
        }
    }
    enum ar_status status = policy->ops->plan(policy, lives, count);
    free(lives);
    free(life_of);
    return status;
}

void op_script_hash(uint64_t *hash, uint64_t value)
{
    for (unsigned i = 0; i < 64; i += 8) {
        const uint8_t byte = (uint8_t)(value >> i);
        *hash = ar_fnv64(*hash, &byte, 1);
    }
}

static enum ar_status run_op(const struct op *op, struct ar_policy *policy,
                             struct ar_policy_block *block, struct op_result *result)
{
    bool aligns = policy->ops->capabilities & AR_POLICY_HONOURS_ALIGNMENT;
    struct ar_policy_request request = {.bytes = op->bytes, .stream = op->stream};
    if (op->alignment_log2 && aligns)
        request.alignment = UINT64_C(1) << op->alignment_log2;
    enum ar_status status = AR_OK;
    bool live = block->requested_bytes != 0;
    switch ((enum op_kind)op->kind) {
    case OP_ALLOC:
        status = ar_policy_alloc(policy, &request, block);
        if (status)
            block->requested_bytes = 0;
        result->served += status == AR_OK;
        result->refused += status == AR_NO_MEMORY;
        op_script_hash(&result->hash, status ? UINT64_MAX : block->address);
        op_script_hash(&result->hash, status ? 0 : block->granted_bytes);
        return status == AR_NO_MEMORY ? AR_OK : status;
    case OP_FREE:
        if (live)
            status = ar_policy_free(policy, block, op->stream);
        block->requested_bytes = 0;
        return status;
    case OP_USE:
        return live ? ar_policy_use(policy, block, op->stream) : AR_OK;
    case OP_TRIM:
        return ar_policy_trim(policy, op->bytes);
    }
    return AR_INVALID;
}

struct op_result op_script_run(const struct op_script *script, struct ar_policy *policy)
{
    struct op_result result = {.hash = AR_FNV64_SEED};
    if ((policy->ops->capabilities & AR_POLICY_OFFLINE) && policy->ops->plan) {
        result.status = give_plan(script, policy);
        if (result.status)
            return result;
    }
    struct ar_policy_block *blocks = must(calloc(script->slots, sizeof *blocks));
    for (size_t i = 0; i < script->count && !result.status; i++) {
        const struct op *op = &script->ops[i];
        result.at = i;
        result.status = run_op(op, policy, &blocks[op->slot], &result);
    }
    free(blocks);
    return result;
}
