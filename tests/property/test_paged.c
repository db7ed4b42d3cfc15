/* Properties of the scheduler with a paged key-value cache, for random requests in each style.
 * Small known answers are in tests/steps/twin_paged. */
#include "allocators/base/rng.h"
#include "sim/twin/rules/paged.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"

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
    CLOSED(paged_close) struct paged self;
    assert_ok(paged_open(&self, &setup, &test_error));
    uint64_t count = ar_rng_between(&rng, 0, 60), answers = 0, prompts = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t prompt = ar_rng_between(&rng, 1, 350);
        assert_ok(paged_add(&self, prompt, ar_rng_between(&rng, 1, 350), &test_error));
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
