/* Nanoseconds per operation (one alloc or one free) of every policy, over a device whose calls
 * cost nothing. `make micro` runs it; bench/README.md says how to read it.
 *
 * 1. `pair`: alloc and free of one size, again and again: the shortest way through a policy.
 * 2. `replay`: the allocs and frees of a recorded program from an array in memory, the same policy
 *    looped over it, so warm.
 * 3. `(loop only)` is the same loop with no allocator: it reads each operation and writes the
 *    table of blocks. It is measured in the same run and not subtracted.
 * Each is repeated; the table shows the least, since noise only ever adds time. All repetitions
 * are in the JSON file, in Google Benchmark's own form.
 *
 * Usage: micro [TRACE...] [--benchmark_...] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/micro/micro.h"
#include "bench/micro/ops.h"
#include "bench/micro/rig.h"
#include "bench/suite/build_info.h"

enum { MAX_TRACES = 8, PAIR_SIZES = 3, MAX_COLUMNS = PAIR_SIZES + MAX_TRACES, MAX_ROWS = 64 };
enum { PAIRS_A_ROUND = 256 };

static const uint64_t pair_bytes[PAIR_SIZES] = {512, 64 * KIB, 4 * MIB};
static const char loop_only[] = "(loop only)";

/* One benchmark: a row (policy or reference) and a column (size or trace) of the table. */
struct cell {
    char name[160];
    const struct policy_ops *policy; /* NULL: the loop only */
    const struct micro_ops *ops;     /* NULL: pairs */
    uint64_t bytes;                  /* of pairs */
    double least_ns;                 /* 0: not run */
    bool failed;
};

struct table {
    size_t columns, rows;
    char column[MAX_COLUMNS][32];
    const char *row[MAX_ROWS];
    struct cell cell[MAX_ROWS][MAX_COLUMNS];
    struct micro_ops ops[MAX_TRACES];
};

/* ---- what is measured ------------------------------------------------------------------------ */

/* The compiler must not leave the stores of the reference loop out. */
static void keep(void *memory)
{
    __asm__ volatile("" : : "g"(memory) : "memory");
}

static bool replay_pass(struct policy *policy, const struct micro_ops *ops,
                        struct policy_block *blocks)
{
    for (size_t i = 0; i < ops->count; i++) {
        const struct micro_op *op = &ops->at[i];
        enum status status;
        if (op->bytes) {
            struct policy_request request = {.bytes = op->bytes, .stream = op->stream};
            status = policy_alloc(policy, &request, &blocks[op->slot]);
        } else {
            status = policy_free(policy, &blocks[op->slot], op->stream);
        }
        if (status != STATUS_OK)
            return false;
    }
    return true;
}

static void loop_pass(const struct micro_ops *ops, struct policy_block *blocks)
{
    for (size_t i = 0; i < ops->count; i++) {
        const struct micro_op *op = &ops->at[i];
        if (op->bytes)
            blocks[op->slot] = (struct policy_block){
                .address = i, .granted_bytes = op->bytes, .requested_bytes = op->bytes};
        else
            keep(&blocks[op->slot]);
    }
    keep(blocks);
}

static void run_replay(struct micro_state *state, const struct cell *cell, struct policy *policy)
{
    struct policy_block *blocks = calloc(cell->ops->slots, sizeof *blocks);
    if (!blocks) {
        micro_fail(state, "no host memory for the table of blocks");
        return;
    }
    /* The first pass grows what the policy keeps. */
    if (policy && !replay_pass(policy, cell->ops, blocks)) {
        micro_fail(state, "a request could not be served");
    } else {
        while (micro_next(state)) {
            if (!policy)
                loop_pass(cell->ops, blocks);
            else if (!replay_pass(policy, cell->ops, blocks))
                micro_fail(state, "a request could not be served in a later pass");
        }
        micro_operations(state, cell->ops->count);
    }
    free(blocks);
}

static void run_pairs(struct micro_state *state, const struct cell *cell, struct policy *policy)
{
    struct policy_request request = {.bytes = cell->bytes};
    struct policy_block block = {0};
    if (policy && policy_alloc(policy, &request, &block) == STATUS_OK &&
        policy_free(policy, &block, 0) != STATUS_OK) {
        micro_fail(state, "a block could not be freed");
        return;
    }
    while (micro_next(state)) {
        for (int i = 0; i < PAIRS_A_ROUND; i++) {
            if (!policy) {
                block = (struct policy_block){.granted_bytes = request.bytes};
                keep(&block);
            } else if (policy_alloc(policy, &request, &block) != STATUS_OK ||
                       policy_free(policy, &block, 0) != STATUS_OK) {
                micro_fail(state, "a request could not be served");
                break;
            }
        }
    }
    micro_operations(state, 2 * PAIRS_A_ROUND);
}

static void run_cell(struct micro_state *state, void *argument)
{
    const struct cell *cell = argument;
    struct rig rig = {0};
    struct error error = {0};
    char spec[64];
    if (cell->policy &&
        rig_open(&rig, rig_spec(cell->policy, spec, sizeof spec), &error) != STATUS_OK) {
        micro_fail(state, error.text);
        return;
    }
    if (cell->ops)
        run_replay(state, cell, rig.policy);
    else
        run_pairs(state, cell, rig.policy);
    rig_close(&rig);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void add_row(struct table *table, const struct policy_ops *policy)
{
    size_t row = table->rows++;
    table->row[row] = policy ? policy->name : loop_only;
    for (size_t i = 0; i < table->columns; i++) {
        struct cell *cell = &table->cell[row][i];
        cell->policy = policy;
        if (i < PAIR_SIZES)
            cell->bytes = pair_bytes[i];
        else
            cell->ops = &table->ops[i - PAIR_SIZES];
        snprintf(cell->name, sizeof cell->name, "%s/%s/%s", i < PAIR_SIZES ? "pair" : "replay",
                 table->column[i], policy ? policy->name : "loop_only");
        micro_register(cell->name, run_cell, cell);
    }
}

static void take_report(void *argument, const struct micro_report *report)
{
    struct table *table = argument;
    for (size_t i = 0; i < table->rows * MAX_COLUMNS; i++) {
        struct cell *cell = &table->cell[i / MAX_COLUMNS][i % MAX_COLUMNS];
        if (strcmp(cell->name, report->name) != 0)
            continue;
        if (report->problem) {
            if (!cell->failed)
                fprintf(stderr, "%s: %s\n", report->name, report->problem);
            cell->failed = true;
        } else if (cell->least_ns <= 0 || report->ns_per_op < cell->least_ns) {
            cell->least_ns = report->ns_per_op;
        }
    }
}

static void print_table(const struct table *table)
{
    printf("nanoseconds of processor time per operation, least of the repetitions\n%-14s",
           "policy");
    for (size_t i = 0; i < table->columns; i++)
        printf(" %16s", table->column[i]);
    printf("\n");
    for (size_t row = 0; row < table->rows; row++) {
        printf("%-14s", table->row[row]);
        for (size_t i = 0; i < table->columns; i++) {
            const struct cell *cell = &table->cell[row][i];
            if (cell->failed || cell->least_ns <= 0)
                printf(" %16s", cell->failed ? "failed" : "-");
            else
                printf(" %16.1f", cell->least_ns);
        }
        printf("\n");
    }
}

/* "a/b/gpt2_train.default.csv.gz" is the column "gpt2_train". */
static void column_name(const char *path, char *name, size_t name_bytes)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, name_bytes, "%s", slash ? slash + 1 : path);
    name[strcspn(name, ".")] = '\0';
}

/* Takes the traces out of the arguments. Returns false after a message. */
static bool read_traces(struct table *table, int *argc, char **argv)
{
    int kept = 1;
    size_t traces = 0;
    for (int i = 1; i < *argc; i++) {
        struct error error;
        if (argv[i][0] == '-' || traces == MAX_TRACES) {
            argv[kept++] = argv[i];
            continue;
        }
        if (micro_ops_read(argv[i], &table->ops[traces], &error) != STATUS_OK) {
            fprintf(stderr, "micro: %s\n", error.text);
            return false;
        }
        column_name(argv[i], table->column[PAIR_SIZES + traces], sizeof table->column[0]);
        traces++;
    }
    *argc = kept;
    table->columns = PAIR_SIZES + traces;
    return true;
}

int main(int argc, char **argv)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return 4;
    for (size_t i = 0; i < PAIR_SIZES; i++)
        size_print_exact(pair_bytes[i], table->column[i], sizeof table->column[i]);
    if (!read_traces(table, &argc, argv)) {
        free(table);
        return 2;
    }
    micro_context("allocrig_version", build_info()->version);
    micro_context("allocrig_commit", build_info()->commit);
    micro_context("allocrig_flags", build_info()->flags);
    add_row(table, NULL);
    for (size_t i = 0; registry_policy(i) && table->rows < MAX_ROWS; i++)
        if (!(registry_policy(i)->capabilities & POLICY_OFFLINE))
            add_row(table, registry_policy(i));
    int status = micro_run(argc, argv, take_report, table);
    if (status == 0)
        print_table(table);
    for (size_t i = 0; i < MAX_TRACES; i++)
        micro_ops_close(&table->ops[i]);
    free(table);
    return status;
}
