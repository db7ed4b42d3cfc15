/* The cost of the policy's own bookkeeping, over a device whose calls cost nothing.
 *
 * 1. `pair`: repeated alloc and free of one size, the shortest path through a policy.
 * 2. `replay`: the allocs and frees of a recorded program from an array in memory, repeated on the
 *    same warm policy.
 * 3. `(loop only)` is the same loop without an allocator: it reads each operation and writes the
 *    table of blocks. It is measured in the same run and not subtracted. */
#include "bench/micro/grid.h"

#include "allocators/base/size.h"
#include "bench/micro/rig.h"

enum { PAIR_SIZES = 3, PAIRS_A_ROUND = 256 };

static const uint64_t pair_bytes[PAIR_SIZES] = {512, 64 * AR_KIB, 4 * AR_MIB};

struct own_cell {
    const struct ar_policy_ops *policy; /* NULL: the loop only */
    const struct micro_ops *ops;        /* NULL: pairs */
    uint64_t bytes;                     /* of pairs */
};

/* Keeps the compiler from removing the stores of the reference loop. */
static void keep(void *memory)
{
    __asm__ volatile("" : : "g"(memory) : "memory");
}

static bool replay_pass(struct ar_policy *policy, const struct micro_ops *ops,
                        struct ar_policy_block *blocks)
{
    for (size_t i = 0; i < ops->count; i++) {
        const struct micro_op *op = &ops->at[i];
        enum ar_status status;
        if (op->bytes) {
            struct ar_policy_request request = {.bytes = op->bytes, .stream = op->stream};
            status = ar_policy_alloc(policy, &request, &blocks[op->slot]);
        } else {
            status = ar_policy_free(policy, &blocks[op->slot], op->stream);
        }
        if (status != AR_OK)
            return false;
    }
    return true;
}

static void loop_pass(const struct micro_ops *ops, struct ar_policy_block *blocks)
{
    for (size_t i = 0; i < ops->count; i++) {
        const struct micro_op *op = &ops->at[i];
        if (op->bytes)
            blocks[op->slot] = (struct ar_policy_block){
                .address = i, .granted_bytes = op->bytes, .requested_bytes = op->bytes};
        else
            keep(&blocks[op->slot]);
    }
    keep(blocks);
}

static void run_replay(struct micro_state *state, const struct own_cell *cell,
                       struct ar_policy *policy)
{
    struct ar_policy_block *blocks = calloc(cell->ops->slots, sizeof *blocks);
    if (!blocks) {
        micro_fail(state, "no host memory for the table of blocks");
        return;
    }
    /* The first pass grows the policy's memory. */
    if (policy && !replay_pass(policy, cell->ops, blocks)) {
        micro_fail(state, "a request could not be served");
    } else {
        while (micro_next(state))
            if (!policy)
                loop_pass(cell->ops, blocks);
            else if (!replay_pass(policy, cell->ops, blocks))
                micro_fail(state, "a request could not be served in a later pass");
        micro_operations(state, cell->ops->count);
    }
    free(blocks);
}

static void run_pairs(struct micro_state *state, const struct own_cell *cell,
                      struct ar_policy *policy)
{
    struct ar_policy_request request = {.bytes = cell->bytes};
    struct ar_policy_block block = {0};
    if (policy && ar_policy_alloc(policy, &request, &block) == AR_OK &&
        ar_policy_free(policy, &block, 0) != AR_OK) {
        micro_fail(state, "a block could not be freed");
        return;
    }
    while (micro_next(state)) {
        for (int i = 0; i < PAIRS_A_ROUND; i++) {
            if (!policy) {
                block = (struct ar_policy_block){.granted_bytes = request.bytes};
                keep(&block);
            } else if (ar_policy_alloc(policy, &request, &block) != AR_OK ||
                       ar_policy_free(policy, &block, 0) != AR_OK) {
                micro_fail(state, "a request could not be served");
                break;
            }
        }
    }
    micro_operations(state, 2 * PAIRS_A_ROUND);
}

static void run(struct micro_state *state, void *argument)
{
    const struct own_cell *cell = argument;
    struct rig rig = {0};
    struct ar_error error = {0};
    char spec[64];
    if (cell->policy &&
        rig_open(&rig, rig_spec(cell->policy, spec, sizeof spec), &error) != AR_OK) {
        micro_fail(state, error.text);
        return;
    }
    if (cell->ops)
        run_replay(state, cell, rig.policy);
    else
        run_pairs(state, cell, rig.policy);
    rig_close(&rig);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add_row(struct sections *sections, struct grid *grid,
                    const struct ar_policy_ops *policy, const struct micro_ops *traces)
{
    size_t row = grid_row(grid, policy ? policy->name : "(loop only)");
    for (size_t i = 0; row < GRID_ROWS && i < grid->columns; i++) {
        struct own_cell what = {.policy = policy};
        if (i < PAIR_SIZES)
            what.bytes = pair_bytes[i];
        else
            what.ops = &traces[i - PAIR_SIZES];
        void *cell = sections_cell(sections, &what, sizeof what);
        if (!cell)
            return;
        micro_register(grid_name(grid, row, i, "%s/%s/%s", what.ops ? "replay" : "pair",
                                 grid->column[i], policy ? policy->name : "loop_only"),
                       run, cell);
    }
}

void bookkeeping_register(struct sections *sections, const struct micro_ops *traces, size_t count)
{
    struct grid *grid =
        sections_grid(sections, "nanoseconds of processor time per operation, the device taken out",
                      "policy", "ns_per_op");
    if (!grid)
        return;
    for (size_t i = 0; i < PAIR_SIZES; i++)
        grid_column(grid, AR_SIZE_EXACT(pair_bytes[i]));
    for (size_t i = 0; i < count; i++)
        grid_column(grid, traces[i].name);
    add_row(sections, grid, NULL, traces);
    const struct ar_policy_ops *policy;
    for (size_t i = 0; (policy = sections_policy(i)); i++)
        add_row(sections, grid, policy, traces);
}
