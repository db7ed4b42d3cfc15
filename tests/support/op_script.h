/* Random operations on a policy, made beforehand so that offline policies can see them too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"

enum op_kind { OP_ALLOC, OP_FREE, OP_USE, OP_TRIM };

/* Blocks are named by slots, which are reused. */
struct op {
    uint64_t bytes; /* of an alloc; the bytes that a trim keeps */
    uint32_t slot;
    uint32_t stream;
    uint8_t kind;
    uint8_t alignment_log2; /* 0: any */
};

struct op_script {
    struct op *ops;
    size_t count;
    uint32_t slots;
};

/* The result of a run: whether it stopped, and a hash of every placement. */
struct op_result {
    enum ar_status status; /* OK, or what stopped it at operation `at` */
    size_t at;
    size_t served, refused;
    uint64_t hash;
};

/* `count` operations from a seed: sizes log-uniform from 1 byte to `most_bytes`, on three
 * streams. Phases with at most 256 live blocks alternate with phases of up to `most_live`.
 * Everything is freed at the end (in addition to `count`). Fails the test if the host has no
 * memory. */
void op_script_open(struct op_script *script, uint64_t seed, size_t count, uint32_t most_live,
                    uint64_t most_bytes);
void op_script_close(struct op_script *script);

/* Runs it on the policy. It requests alignment only if the policy supports it. */
struct op_result op_script_run(const struct op_script *script, struct ar_policy *policy);

/* Goes on with an FNV-1a hash (allocators/base/fnv.h) over the bytes of a value, lowest first. */
void op_script_hash(uint64_t *hash, uint64_t value);
