/* `plan` and `stalloc`: requests that match the plan get their addresses, all others fall back. */
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define CAP_BYTES 100000

struct bench {
    struct fake_backing *backing;
    struct policy_rig rig;
};

/* Three blocks: 0 dies before 2 is born, 1 lives through. In 1000 bytes they fit exactly. */
static const struct ar_policy_lifetime three[] = {{200, 0, 2}, {500, 1, 9}, {500, 3, 8}};

static void open_bench(struct bench *b, const char *text, uint64_t cap_bytes)
{
    b->backing = calloc(1, sizeof *b->backing);
    assert_non_null(b->backing);
    fake_backing_open(b->backing, cap_bytes);
    assert_int_equal(policy_rig_open(&b->rig, text, &b->backing->base, 0), AR_OK);
    assert_int_equal(b->rig.policy->ops->plan(b->rig.policy, three, 3), AR_OK);
}

static void close_bench(struct bench *b)
{
    assert_int_equal(policy_rig_close(&b->rig), 0);
    assert_int_equal(b->backing->held_bytes, 0);
    free(b->backing);
}

static struct ar_policy_block ask(struct bench *b, uint64_t bytes)
{
    struct ar_policy_block block;
    assert_int_equal(policy_rig_alloc(&b->rig, bytes, &block), AR_OK);
    assert_int_equal(ar_policy_validate(b->rig.policy, &b->rig.error), AR_OK);
    return block;
}

static void free_requested(struct bench *b, const struct ar_policy_block *block)
{
    assert_int_equal(policy_rig_free(&b->rig, block), AR_OK);
    assert_int_equal(ar_policy_validate(b->rig.policy, &b->rig.error), AR_OK);
}

TEST(planned_requests_fill_the_arena)
{
    CLOSED(close_bench) struct bench b;
    open_bench(&b, "plan:granule=1", 1000); /* exactly the live peak */
    struct ar_policy_block first = ask(&b, 200), second = ask(&b, 500);
    free_requested(&b, &first);
    struct ar_policy_block third = ask(&b, 500);
    assert_int_equal(b.rig.policy->totals.reserved_bytes, 1000);
    assert_int_equal(b.backing->made, 1);
    assert_int_equal(policy_rig_figure(&b.rig, "plan_bytes"), 1000);
    assert_int_equal(policy_rig_figure(&b.rig, "planned_requests"), 3);
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_requests"), 0);
    free_requested(&b, &second);
    free_requested(&b, &third);
}

TEST(another_size_falls_back)
{
    CLOSED(close_bench) struct bench b;
    open_bench(&b, "plan:granule=1", CAP_BYTES);
    struct ar_policy_block first = ask(&b, 200), odd = ask(&b, 501);
    free_requested(&b, &first);
    struct ar_policy_block third = ask(&b, 500);
    struct ar_policy_block beyond = ask(&b, 10); /* the plan has no fourth */
    assert_int_equal(policy_rig_figure(&b.rig, "planned_requests"), 2);
    assert_int_equal(policy_rig_figure(&b.rig, "planned_bytes"), 700);
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_requests"), 2);
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_bytes"), 511);
    assert_int_equal(b.rig.policy->totals.reserved_bytes, 1000 + 501 + 10);
    free_requested(&b, &odd); /* cached, and cut for the next one */
    struct ar_policy_block again = ask(&b, 400);
    assert_int_equal(again.address, odd.address);
    assert_int_equal(b.rig.policy->totals.reserved_bytes, 1000 + 501 + 10);
    free_requested(&b, &third);
    free_requested(&b, &beyond);
    free_requested(&b, &again);
    assert_int_equal(ar_policy_trim(b.rig.policy, 0), AR_OK);
    assert_int_equal(b.rig.policy->totals.reserved_bytes, 0);
}

/* The block that should have been freed is live: nothing may overlap it. */
TEST(a_taken_place_falls_back)
{
    CLOSED(close_bench) struct bench b;
    open_bench(&b, "plan:granule=1", CAP_BYTES);
    struct ar_policy_block first = ask(&b, 200), second = ask(&b, 500), third = ask(&b, 500);
    assert_true(third.address + 500 <= first.address || first.address + 200 <= third.address);
    assert_true(third.address + 500 <= second.address || second.address + 500 <= third.address);
    assert_int_equal(policy_rig_figure(&b.rig, "fallbacks_of_taken_places"), 1);
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_requests"), 1);
    free_requested(&b, &first);
    free_requested(&b, &second);
    free_requested(&b, &third);
}

TEST(no_arena_is_no_end)
{
    CLOSED(close_bench) struct bench b;
    open_bench(&b, "plan:granule=1", 900); /* the arena needs 1000 */
    struct ar_policy_block first = ask(&b, 200), second = ask(&b, 500), third;
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_requests"), 2);
    assert_int_equal(policy_rig_alloc(&b.rig, 500, &third), AR_NO_MEMORY);
    assert_int_equal(ar_policy_validate(b.rig.policy, &b.rig.error), AR_OK);
    free_requested(&b, &first);
    free_requested(&b, &second);
}

TEST(stalloc_rounds_to_512)
{
    CLOSED(close_bench) struct bench b;
    open_bench(&b, "stalloc", CAP_BYTES);
    struct ar_policy_block first = ask(&b, 129); /* rounds to the same as 200 */
    assert_int_equal(first.granted_bytes, 512);
    assert_int_equal(policy_rig_figure(&b.rig, "plan_bytes"), 1024);
    assert_int_equal(policy_rig_figure(&b.rig, "planned_requests"), 1);
    struct ar_policy_block second = ask(&b, 513);
    assert_int_equal(second.granted_bytes, 1024);
    assert_int_equal(policy_rig_figure(&b.rig, "fallback_requests"), 1);
    free_requested(&b, &first);
    free_requested(&b, &second);
}
