/* Random operations on a policy, made beforehand so that offline policies can see them too. */
#ifndef TESTS_SUPPORT_OP_SCRIPT_H
#define TESTS_SUPPORT_OP_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"

enum op_kind { OP_ALLOC, OP_FREE, OP_USE, OP_TRIM };

/* Blocks are named by slots that are used again. */
struct op {
    uint64_t bytes; /* of an alloc; what a trim keeps */
    uint32_t slot;
    uint32_t stream;
    uint8_t kind;
    uint8_t alignment_log2; /* 0: no wish */
};

struct op_script {
    struct op *ops;
    size_t count;
    uint32_t slots;
};

/* What became of a run: whether it stopped, and a hash of every placement. */
struct op_result {
    enum ar_status status; /* OK, or what stopped it at operation `at` */
    size_t at;
    size_t served, refused;
    uint64_t hash;
};

/* `count` operations from a seed: sizes log-uniform from 1 byte to `most_bytes`, on three
 * streams; stretches with at most 256 blocks live and stretches with up to `most_live` take
 * turns. Everything is freed at the end (that comes on top of `count`). Fails the test where
 * there is no memory. */
void op_script_open(struct op_script *script, uint64_t seed, size_t count, uint32_t most_live,
                    uint64_t most_bytes);
void op_script_close(struct op_script *script);

/* Gives it to the policy. Alignment is asked for only where the policy honours it. */
struct op_result op_script_run(const struct op_script *script, struct ar_policy *policy);

#endif
