/* The decorators: they have the hooks of the policy inside, and `checked` finds each of its faults.
 * The faults come from a decorator that spoils one result of the policy inside. What the others do:
 * tests/steps/decorators. */
#include "allocators/decorators/forward.h"
#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

static void close_rig(struct policy_rig *rig)
{
    assert_int_equal(policy_rig_close(rig), 0);
    assert_int_equal(fake_rig_backing.held_bytes, 0);
}

/* ---- shape ----------------------------------------------------------------------------------- */

TEST(looks_like_the_inner)
{
    CLOSED(close_rig) struct policy_rig rig;
    fake_rig_open(&rig, "checked+limit(bytes=1GiB)+fault(n=99)+first-fit:limit=2MiB", UINT64_MAX);
    const struct ar_policy_ops *inner = registry_find("first-fit");
    const struct ar_policy_ops *ops = rig.policy->ops;
    assert_string_equal(ops->name, "checked+limit+fault+first-fit");
    assert_int_equal(ops->capabilities, inner->capabilities);
    assert_int_equal(!ops->use, !inner->use);
    assert_int_equal(!ops->trim, !inner->trim);
    assert_null(ops->retire);
    assert_null(ops->plan);
    assert_ok(ar_policy_check(ops, &test_error));

    struct ar_policy_free_watch watch = {.unit_bytes = 1};
    struct ar_policy_block a;
    struct ar_policy_block b;
    ar_policy_watch(rig.policy, &watch);
    assert_int_equal(policy_rig_alloc(&rig, AR_MIB, &a), AR_OK);
    assert_int_equal(policy_rig_alloc(&rig, AR_MIB, &b), AR_OK);
    assert_int_equal(policy_rig_alloc(&rig, 1, &b), AR_NO_MEMORY); /* the limit of the policy */
    assert_int_equal(policy_rig_free(&rig, &a), AR_OK);
    assert_int_equal(watch.usable_bytes, AR_MIB);
    assert_int_equal(rig.policy->totals.live_bytes, AR_MIB);
    assert_int_equal(ar_policy_servable(rig.policy, AR_POLICY_EFFORT_NONE), AR_MIB);
    assert_int_equal(policy_walk_sum(rig.policy).bytes[AR_POLICY_RANGE_FREE], AR_MIB);
}

/* ---- order through fault --------------------------------------------------------------------- */

/* The calls of a policy to its memory. */
struct asked {
    struct fake_backing fake; /* first: the hooks of the fake cast to it */
    struct ar_backing_ops ops;
    unsigned orders, waits;
    uint32_t waiting; /* the stream that waits */
    struct ar_backing_ticket ticket;
};

static struct ar_backing_ticket number_fence(struct ar_backing *base, uint32_t stream)
{
    return (struct ar_backing_ticket){.stream = stream, .value = 7};
}

static bool never_done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return false;
}

static void count_wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    ((struct asked *)base)->waits++;
}

static void count_order(struct ar_backing *base, uint32_t stream, struct ar_backing_ticket ticket)
{
    struct asked *asked = (struct asked *)base;
    asked->orders++;
    asked->waiting = stream;
    asked->ticket = ticket;
}

/* A block that stream 1 freed goes to stream 0, which must wait for the work of stream 1. */
static void reuse_on_another_stream(struct asked *asked, bool has_order)
{
    struct policy_rig rig;
    struct ar_policy_block block;
    fake_backing_open(&asked->fake, 64 * AR_MIB);
    asked->ops = *asked->fake.base.ops;
    asked->ops.fence = number_fence;
    asked->ops.done = never_done;
    asked->ops.wait = count_wait;
    asked->ops.order = has_order ? count_order : NULL;
    asked->fake.base.ops = &asked->ops;
    asked->orders = asked->waits = 0;
    assert_int_equal(
        policy_rig_open(&rig, "fault(n=99)+rmm-pool:limit=64MiB", &asked->fake.base, 0), AR_OK);
    const struct ar_policy_request request = {.bytes = 60 * AR_MIB, .stream = 1};
    assert_int_equal(ar_policy_alloc(rig.policy, &request, &block), AR_OK);
    assert_int_equal(ar_policy_free(rig.policy, &block, 1), AR_OK);
    assert_int_equal(policy_rig_alloc(&rig, 60 * AR_MIB, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
    assert_int_equal(policy_rig_close(&rig), 0);
}

TEST(fault_forwards_order)
{
    static struct asked asked;
    reuse_on_another_stream(&asked, true);
    assert_int_equal(asked.orders, 1);
    assert_int_equal(asked.waiting, 0);
    assert_int_equal(asked.ticket.stream, 1);
    assert_int_equal(asked.ticket.value, 7);
    assert_int_equal(asked.waits, 0); /* the host goes on */
    reuse_on_another_stream(&asked, false);
    assert_int_equal(asked.orders, 0);
    assert_int_equal(asked.waits, 1);
}

/* ---- checked --------------------------------------------------------------------------------- */

enum lie {
    LIE_NONE,
    LIE_OVERLAP,
    LIE_SMALL,
    LIE_MISALIGNED,
    LIE_TOTALS,
    LIE_TOTALS_ON_FAILURE,
    LIE_WALK,
    LIE_VALIDATE,
};

struct liar {
    struct forward forward;
    enum lie lie;
};

static enum ar_status liar_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                 struct ar_policy_block *out)
{
    const struct liar *self = (const struct liar *)base;
    enum ar_status status = forward_alloc(base, request, out);
    if (self->lie == LIE_OVERLAP && base->totals.live_blocks > 1)
        out->address -= 64;
    if (self->lie == LIE_SMALL)
        out->granted_bytes = request->bytes - 1;
    if (self->lie == LIE_MISALIGNED)
        out->address += 1;
    if (self->lie == LIE_TOTALS)
        base->totals.live_bytes++;
    if (self->lie == LIE_TOTALS_ON_FAILURE && status)
        base->totals.granted_bytes++;
    return status;
}

static void liar_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct ar_policy_range range = {.bytes = 1, .state = AR_POLICY_RANGE_FREE};
    visit(argument, &range);
}

static enum ar_status liar_validate(const struct ar_policy *base, struct ar_error *error)
{
    return ar_error_set(error, AR_CORRUPT, "a broken invariant");
}

/* first-fit with a lie, checked. */
static void open_liar(struct policy_rig *rig, enum lie lie)
{
    fake_rig_open(rig, "first-fit:limit=1MiB", UINT64_MAX);
    struct liar *liar = forward_create(&rig->host, sizeof *liar, "liar", rig->policy, &rig->error);
    assert_non_null(liar);
    liar->lie = lie;
    liar->forward.ops.alloc = liar_alloc;
    if (lie == LIE_WALK)
        liar->forward.ops.walk = liar_walk;
    if (lie == LIE_VALIDATE)
        liar->forward.ops.validate = liar_validate;
    const struct decorator_ops *ops = registry_decorator(0);
    assert_string_equal(ops->name, "checked");
    const uint64_t values[2] = {1, 0}; /* every, small */
    assert_int_equal(
        ops->wrap(&rig->context, values, &liar->forward.base, &rig->policy, &rig->error), AR_OK);
}

TEST(finds_each_lie)
{
    static const char *const want[] = {
        [LIE_NONE] = "",
        [LIE_OVERLAP] = "overlaps the live one of 64 at 0",
        [LIE_SMALL] = "64 bytes were requested and 63 granted",
        [LIE_MISALIGNED] = "is not aligned to 64",
        [LIE_TOTALS] = "live bytes are 65, the blocks have 64",
        [LIE_TOTALS_ON_FAILURE] = "granted bytes are 129, the blocks have 128",
        [LIE_WALK] = "the walk shows 0 used ranges",
        [LIE_VALIDATE] = "validate: a broken invariant",
    };
    for (enum lie lie = LIE_NONE; lie <= LIE_VALIDATE; lie++) {
        CLOSED(close_rig) struct policy_rig rig;
        struct ar_policy_block block;
        struct ar_policy_request request = {.bytes = 64, .alignment = 64};
        open_liar(&rig, lie);
        enum ar_status status = ar_policy_alloc(rig.policy, &request, &block);
        if (status == AR_OK)
            status = ar_policy_alloc(rig.policy, &request, &block);
        if (status == AR_OK) {
            request.bytes = 2 * AR_MIB;
            status = ar_policy_alloc(rig.policy, &request, &block);
        }
        assert_int_equal(status, lie == LIE_NONE ? AR_NO_MEMORY : AR_CORRUPT);
        if (!strstr(ar_policy_problem(rig.policy), want[lie]))
            fail_msg("lie %d: %s", (int)lie, ar_policy_problem(rig.policy));
    }
}

TEST(finds_wrong_frees)
{
    struct policy_rig rig;
    struct ar_policy_block block;
    fake_rig_open(&rig, "checked+first-fit", UINT64_MAX);
    assert_int_equal(policy_rig_alloc(&rig, 64, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
    assert_int_equal(policy_rig_free(&rig, &block), AR_CORRUPT);
    assert_non_null(strstr(ar_policy_problem(rig.policy), "freed twice"));
    assert_int_equal(ar_policy_validate(rig.policy, &rig.error), AR_CORRUPT);
    assert_int_equal(policy_rig_alloc(&rig, 64, &block), AR_CORRUPT); /* it stays so */
    close_rig(&rig);

    fake_rig_open(&rig, "checked+first-fit", UINT64_MAX);
    assert_int_equal(policy_rig_alloc(&rig, 64, &block), AR_OK);
    struct ar_policy_block inside = block;
    inside.address += 8;
    assert_int_equal(policy_rig_free(&rig, &inside), AR_CORRUPT);
    close_rig(&rig);

    fake_rig_open(&rig, "checked+first-fit", UINT64_MAX);
    assert_int_equal(policy_rig_alloc(&rig, 64, &block), AR_OK);
    block.cookie++;
    assert_int_equal(ar_policy_use(rig.policy, &block, 1), AR_CORRUPT);
    assert_non_null(strstr(ar_policy_problem(rig.policy), "stale or changed"));
    close_rig(&rig);
}
