/* The scheduler and the block manager of an inference engine with a paged key-value cache: which
 * tokens of which requests are computed in each step, and how many blocks that takes. There is no
 * memory here: blocks are numbers.
 *
 * 1. Requests wait in the order in which they came. In each step a number of tokens is shared out:
 *    a decoding request gets one, a prompt gets the rest, in pieces if chunks are allowed.
 * 2. A request has as many blocks as its computed tokens need. If a running request needs a block
 *    and none is free, another one is preempted: its blocks are freed, it waits again before all
 *    others, and its tokens are computed again later (recomputation; there is no swapping).
 * 3. A request ends when its answer is complete. Its blocks are free then.
 *
 * Styles. vLLM V1 (v1/core/sched/scheduler.py, 0.8 to 0.11): running requests first, then waiting
 * ones unless one was preempted in this step; the last running request is preempted; one block is
 * the null block. V0 (core/scheduler.py): a step has prompts, or tokens of answers, and prompts
 * come first; a hundredth of the blocks stays free when a request is admitted; with chunks, as V1.
 * SGLang (managers/scheduler.py, schedule_policy.py PrefillAdder, schedule_batch.py
 * retract_decode): prompts first, one prompt in chunks at a time; a request is admitted if the free
 * tokens hold its prompt and the expected rest of all running answers, which is `expected_percent`
 * of it; the request with the shortest answer so far is preempted.
 *
 * Shared prefix (V1; v1/core/kv_cache_manager.py, get_computed_blocks): all prompts begin with the
 * same `shared_tokens` tokens. Whole blocks of them that a request has computed are used by others,
 * but for the last token of a prompt. They are held while a running request uses them; else they
 * are free, and known until other requests need the blocks.
 *
 * Speculative decoding (V1; scheduler.py): a request that decodes computes its next token and
 * `draft_tokens` more, and has blocks for `lookahead_tokens` beyond them (EAGLE: as many again). Of
 * the drafts, each is accepted with the same probability if the one before it was; a request gets
 * the expected number of them.
 *
 * Left out: priorities, windows (a request keeps all of its blocks). */
#pragma once

#include "allocators/base/status.h"

enum paged_style { PAGED_V1, PAGED_V0, PAGED_SGLANG };

struct paged_setup {
    enum paged_style style;
    uint64_t blocks, block_tokens;
    uint64_t max_requests; /* that run at a time */
    uint64_t step_tokens;  /* of one step; with SGLang of one prompt's chunk */
    uint64_t length;       /* of a request, prompt and answer; longer answers are cut */
    bool chunks;           /* a prompt may be computed in pieces */
    unsigned expected_percent;
    uint64_t shared_tokens;                  /* 0: prompts have nothing in common */
    uint64_t draft_tokens, lookahead_tokens; /* 0: no speculative decoding */
    double acceptance;                       /* of a draft, from 0 to 1 */
};

struct paged_request {
    uint32_t prompt, answer;     /* tokens */
    uint32_t computed, produced; /* `produced`: of the answer */
    uint32_t blocks, shared;     /* `shared`: those of `blocks` that are of the prefix */
    float accepted;              /* a part of a token that is left over */
};

struct paged {
    struct paged_setup setup;
    uint64_t free;                  /* blocks */
    struct paged_request *requests; /* in the order in which they came */
    size_t count, room;
    size_t next;       /* the first request that never ran */
    uint32_t *running; /* in the order of admission */
    size_t running_count;
    uint32_t *again; /* preempted requests: a stack, the next one last */
    size_t again_count;
    uint64_t prefix, held; /* blocks of the prefix that are known, and used by running requests */
    uint64_t preemptions, finished, recomputed; /* recomputed: tokens */
    uint64_t hits;                              /* tokens that were not computed */
};

struct paged_step {
    uint64_t tokens;    /* computed in this step */
    uint64_t sequences; /* requests that compute a token */
    uint64_t rows;      /* requests whose next token is sampled */
    bool prompts;       /* some of the tokens are of prompts */
    uint64_t blocks;    /* in use after the step, before those of finished requests are free */
    uint64_t preempted, finished;
};

/* INVALID if a request of `length` tokens would not fit into the blocks. */
enum ar_status paged_open(struct paged *self, const struct paged_setup *setup,
                          struct ar_error *error);
/* Adds a request of at least one token each; what exceeds the length is cut. HOST_MEMORY. */
enum ar_status paged_add(struct paged *self, uint64_t prompt, uint64_t answer,
                         struct ar_error *error);
/* One step; false: all requests are finished. */
bool paged_step(struct paged *self, struct paged_step *out);
void paged_close(struct paged *self); /* a zeroed struct is fine */
