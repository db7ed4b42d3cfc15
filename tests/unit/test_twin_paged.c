/* The scheduler with a paged key-value cache: small known answers, and properties that hold for
 * random requests in each style. */
#include "allocators/base/rng.h"
#include "sim/twin/rules/paged.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"

/* A scheduler with these fields of its setup. */
#define SCHEDULER(...) scheduler(&(struct paged_setup){__VA_ARGS__})
static struct paged scheduler(const struct paged_setup *setup)
{
    struct paged out;
    assert_ok(paged_open(&out, setup, &test_error));
    return out;
}

static void add(struct paged *self, uint64_t prompt, uint64_t answer)
{
    assert_ok(paged_add(self, prompt, answer, &test_error));
}

static struct paged_step step(struct paged *self)
{
    struct paged_step out;
    assert_true(paged_step(self, &out));
    return out;
}

/* Two requests of 20 tokens share steps of 16: the prompts in chunks, the answers before them. */
TEST(chunks_share_a_step)
{
    CLOSED(paged_close)
    struct paged self =
        SCHEDULER(.style = PAGED_V1, .blocks = 11, .block_tokens = 4, .max_requests = 8,
                  .step_tokens = 16, .length = 32, .chunks = true);
    add(&self, 20, 3);
    add(&self, 12, 2);
    struct paged_step at = step(&self); /* 16 of the first prompt */
    assert_int_equal(at.tokens, 16);
    assert_int_equal(at.rows, 0);
    assert_int_equal(at.blocks, 4);
    at = step(&self); /* 4 of the first, 12 of the second */
    assert_int_equal(at.tokens, 16);
    assert_int_equal(at.sequences, 2);
    assert_int_equal(at.rows, 2);
    assert_int_equal(at.blocks, 5 + 3);
    at = step(&self); /* a token of each; the second is complete */
    assert_int_equal(at.tokens, 2);
    assert_false(at.prompts);
    assert_int_equal(at.blocks, 6 + 4);
    assert_int_equal(at.finished, 1);
    at = step(&self);
    assert_int_equal(at.tokens, 1);
    assert_int_equal(at.finished, 1);
    struct paged_step none;
    assert_false(paged_step(&self, &none));
    assert_int_equal(self.preemptions, 0);
}

/* 4 usable blocks: two requests of 8 tokens fill them, and the next token preempts the second. */
TEST(the_last_request_is_preempted)
{
    CLOSED(paged_close)
    struct paged self =
        SCHEDULER(.style = PAGED_V1, .blocks = 5, .block_tokens = 4, .max_requests = 8,
                  .step_tokens = 16, .length = 16, .chunks = true);
    add(&self, 8, 4);
    add(&self, 8, 4);
    add(&self, 1, 1);
    struct paged_step at = step(&self);
    assert_int_equal(at.rows, 2);
    assert_int_equal(at.blocks, 4);
    at = step(&self); /* a ninth token: the third request does not come in after a preemption */
    assert_int_equal(at.preempted, 1);
    assert_int_equal(at.sequences, 1);
    assert_int_equal(at.blocks, 3);
    assert_int_equal(self.recomputed, 8);
    at = step(&self); /* the preempted one waits first, and needs 3 blocks */
    assert_int_equal(at.sequences, 1);
    at = step(&self);
    assert_int_equal(at.finished, 1);
    at = step(&self); /* its prompt and its first token again, and the third request */
    assert_int_equal(at.tokens, 9 + 1);
    assert_int_equal(at.finished, 1);
}

TEST(without_chunks_prompts_come_first)
{
    CLOSED(paged_close)
    struct paged self = SCHEDULER(.style = PAGED_V0, .blocks = 100, .block_tokens = 16,
                                  .max_requests = 2, .step_tokens = 64, .length = 64);
    add(&self, 40, 3);
    add(&self, 40, 2);
    add(&self, 10, 2);
    assert_int_equal(step(&self).tokens, 40); /* 80 are more than a step has */
    assert_int_equal(step(&self).tokens, 40);
    struct paged_step at = step(&self); /* two requests run: answers */
    assert_int_equal(at.tokens, 2);
    assert_int_equal(at.finished, 1);
    at = step(&self); /* a new prompt interrupts the answer */
    assert_int_equal(at.tokens, 10);
    assert_int_equal(at.sequences, 1);
    assert_int_equal(step(&self).tokens, 2);
}

/* What a step has while one request answers and a prompt of 6 arrives. */
TEST(prompts_join_answers)
{
    const struct {
        enum paged_style style;
        bool chunks;
        uint64_t tokens;
    } table[] = {
        {PAGED_V1, true, 7},  {PAGED_V1, false, 7},    {PAGED_V0, true, 7},
        {PAGED_V0, false, 6}, {PAGED_SGLANG, true, 6}, {PAGED_SGLANG, false, 6},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        CLOSED(paged_close)
        struct paged self =
            SCHEDULER(.style = table[i].style, .blocks = 50, .block_tokens = 4, .max_requests = 8,
                      .step_tokens = 20, .length = 20, .chunks = table[i].chunks);
        add(&self, 5, 5);
        assert_int_equal(step(&self).tokens, 5);
        assert_int_equal(step(&self).tokens, 1);
        add(&self, 6, 5);
        assert_int_equal(step(&self).tokens, table[i].tokens);
        assert_int_equal(step(&self).tokens, 2);
    }
}

/* Blocks that stay free when a second request is admitted. */
TEST(admission_keeps_blocks_free)
{
    const struct {
        enum paged_style style;
        uint64_t blocks, prompt, answer;
        unsigned percent;
        bool admitted;
    } table[] = {
        {PAGED_V0, 200, 98, 5, 0, true}, /* a hundredth */
        {PAGED_V0, 200, 99, 5, 0, false},
        {PAGED_V1, 201, 100, 5, 0, true}, /* one is the null block */
        {PAGED_V1, 200, 100, 5, 0, false},
        /* 4 of the first's answer are to come, after its first token; and all of the second's */
        {PAGED_SGLANG, 200, 89, 7, 100, true},
        {PAGED_SGLANG, 200, 90, 7, 100, false},
        {PAGED_SGLANG, 200, 95, 6, 50, true},
        {PAGED_SGLANG, 200, 96, 6, 50, false},
        {PAGED_SGLANG, 200, 100, 5, 0, true},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        CLOSED(paged_close)
        struct paged self =
            SCHEDULER(.style = table[i].style, .blocks = table[i].blocks, .block_tokens = 1,
                      .max_requests = 8, .step_tokens = 500, .length = 150, .chunks = true,
                      .expected_percent = table[i].percent);
        add(&self, 100, 5);
        add(&self, table[i].prompt, table[i].answer);
        if ((step(&self).sequences == 2) != table[i].admitted)
            fail_msg("row %zu", i);
    }
}

/* SGLang preempts the shortest answer, and the longest prompt among equal ones. */
TEST(the_shortest_answer_is_preempted)
{
    CLOSED(paged_close)
    struct paged self =
        SCHEDULER(.style = PAGED_SGLANG, .blocks = 22, .block_tokens = 1, .max_requests = 3,
                  .step_tokens = 100, .length = 22, .chunks = true);
    self.setup.max_requests = 1;
    add(&self, 6, 12);
    step(&self);
    step(&self);
    assert_int_equal(step(&self).blocks, 8); /* 3 tokens of the answer; the last has no block yet */
    self.setup.max_requests = 3;
    add(&self, 3, 9);
    add(&self, 5, 9);
    assert_int_equal(step(&self).blocks, 8 + 3 + 5);
    assert_int_equal(step(&self).blocks, 19);
    assert_int_equal(step(&self).blocks, 22);
    struct paged_step at = step(&self);
    assert_int_equal(at.preempted, 1);
    assert_int_equal(at.sequences, 2);
    assert_int_equal(self.requests[2].blocks, 0); /* the longer prompt of the two short answers */
    assert_int_equal(self.recomputed, 7);
    assert_int_equal(at.blocks, 22 - 7 + 2);
    while (self.preemptions == 1)
        at = step(&self);
    assert_int_equal(self.requests[1].blocks, 0); /* then the shorter answer; one stays */
    assert_int_equal(at.sequences, 1);
    while (paged_step(&self, &at))
        assert_true(at.blocks <= 22);
    assert_int_equal(self.finished, 3);
}

/* Prompts of 10 tokens with 9 in common: two whole blocks of them are there once. */
TEST(a_prefix_is_shared)
{
    CLOSED(paged_close)
    struct paged self =
        SCHEDULER(.style = PAGED_V1, .blocks = 9, .block_tokens = 4, .max_requests = 8,
                  .step_tokens = 64, .length = 32, .chunks = true, .shared_tokens = 9);
    for (unsigned i = 0; i < 4; i++)
        add(&self, 10, 2);
    add(&self, 8, 1);
    struct paged_step at = step(&self);
    assert_int_equal(at.tokens, 10 + 3 * 2 + 4); /* the last token of a prompt is computed */
    assert_int_equal(at.blocks, 2 + 4 + 1);
    assert_int_equal(self.hits, 3 * 8 + 4);
    step(&self);
    assert_int_equal(self.free, 8);
    assert_int_equal(self.prefix, 2); /* free, and known */
    add(&self, 10, 1);
    assert_int_equal(step(&self).tokens, 2);
    add(&self, 31, 1); /* 8 blocks, of which the prefix has 2 */
    assert_int_equal(step(&self).tokens, 31 - 8);
}

/* Three drafts, each accepted half of the time: 1.875 tokens in a step. */
TEST(drafts_are_accepted)
{
    CLOSED(paged_close)
    struct paged self =
        SCHEDULER(.style = PAGED_V1, .blocks = 100, .block_tokens = 4, .max_requests = 8,
                  .step_tokens = 64, .length = 100, .chunks = true, .draft_tokens = 3,
                  .lookahead_tokens = 3, .acceptance = 0.5);
    add(&self, 4, 16);
    struct paged_step at = step(&self);
    assert_int_equal(at.rows, 1); /* a prompt has no drafts */
    at = step(&self);
    assert_int_equal(at.tokens, 4);
    assert_int_equal(at.rows, 4);
    assert_int_equal(at.blocks, 3); /* for 4 + 4 + 3 tokens */
    unsigned steps = 1;
    for (; paged_step(&self, &at); steps++)
        assert_false(at.prompts);
    assert_int_equal(steps, 8); /* 15 tokens */
}

TEST(bad_setups_are_refused)
{
    struct paged self;
    struct paged_setup small = {.style = PAGED_V1,
                                .blocks = 4,
                                .block_tokens = 16,
                                .max_requests = 1,
                                .step_tokens = 64,
                                .length = 65};
    assert_says(paged_open(&self, &small, &test_error), AR_INVALID,
                "4 blocks cannot hold a request of 65 tokens");
    paged_close(&self);
    struct paged_setup narrow = {.style = PAGED_V0,
                                 .blocks = 40,
                                 .block_tokens = 16,
                                 .max_requests = 1,
                                 .step_tokens = 64,
                                 .length = 65};
    assert_says(paged_open(&self, &narrow, &test_error), AR_INVALID, "without chunked prefill");
    paged_close(&self);
}

/* Never more blocks than exist; each has as many as its tokens need; every request ends; tokens of
 * answers are neither lost nor made twice. */
static void any_requests(uint64_t seed)
{
    struct ar_rng rng = ar_rng_of(seed);
    struct paged_setup setup = {
        .style = (enum paged_style)ar_rng_below(&rng, 3),
        .block_tokens = UINT64_C(1) << ar_rng_below(&rng, 5),
        .max_requests = ar_rng_between(&rng, 1, 40),
        .length = ar_rng_between(&rng, 2, 300),
        .chunks = ar_rng_below(&rng, 2) != 0,
        .expected_percent = (unsigned)ar_rng_below(&rng, 101),
    };
    setup.step_tokens =
        setup.chunks ? ar_rng_between(&rng, 1, 400) : ar_rng_between(&rng, setup.length, 600);
    if (setup.style == PAGED_V1) {
        setup.chunks = true;
        setup.shared_tokens = ar_rng_below(&rng, 2) ? ar_rng_below(&rng, 200) : 0;
        setup.draft_tokens = ar_rng_below(&rng, 2) ? ar_rng_below(&rng, 6) : 0;
        setup.lookahead_tokens = ar_rng_below(&rng, 2) ? setup.draft_tokens : 0;
        setup.acceptance = ar_rng_unit(&rng);
    }
    bool drafts = setup.draft_tokens != 0;
    uint64_t least = (setup.length + setup.block_tokens - 1) / setup.block_tokens;
    setup.blocks = ar_rng_between(&rng, least, 6 * least) + (setup.style == PAGED_V1);
    CLOSED(paged_close) struct paged self = scheduler(&setup);
    uint64_t count = ar_rng_between(&rng, 0, 60), answers = 0, prompts = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t prompt = ar_rng_between(&rng, 1, 350);
        add(&self, prompt, ar_rng_between(&rng, 1, 350));
        assert_true(self.requests[i].prompt + self.requests[i].answer <= setup.length);
        answers += self.requests[i].answer;
        prompts += self.requests[i].prompt;
    }
    struct paged_step at;
    uint64_t tokens = 0, rows = 0, finished = 0;
    for (uint64_t steps = 0; paged_step(&self, &at); steps++) {
        if (steps > 200000)
            fail_msg("seed %" PRIu64 ": no end", seed);
        assert_true(at.blocks <= setup.blocks);
        assert_true(at.sequences <= setup.max_requests);
        assert_true(at.tokens > 0);
        assert_true(at.tokens <= setup.step_tokens || !at.prompts);
        uint64_t used = 0;
        for (uint64_t i = 0; i < count; i++) {
            const struct paged_request *request = &self.requests[i];
            assert_true(request->produced <= request->answer);
            uint64_t needed = (request->computed + setup.block_tokens - 1) / setup.block_tokens;
            if (request->blocks)
                assert_true(drafts ? request->blocks >= needed : request->blocks == needed);
            assert_true(request->shared <= request->blocks && request->shared <= self.prefix);
            used += request->blocks - request->shared;
        }
        used += self.held;
        assert_true(self.prefix - self.held <= self.free);
        assert_int_equal(used + self.free, setup.blocks - (setup.style == PAGED_V1));
        tokens += at.tokens;
        rows += at.rows;
        finished += at.finished;
    }
    assert_int_equal(finished, count);
    /* the last token of an answer is not computed */
    uint64_t all = prompts + answers - count + self.recomputed - self.hits;
    assert_true(drafts ? tokens >= all : tokens == all);
    assert_true(drafts ? rows >= answers : rows == answers);
    if (!self.preemptions)
        assert_int_equal(self.recomputed, 0);
}

TEST(properties_hold_for_any_requests)
{
    uint64_t amount = test_amount(30000, 1500);
    for (uint64_t seed = 1; seed <= amount; seed++)
        any_requests(seed);
}
