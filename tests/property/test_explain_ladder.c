/* `explain` never contradicts its own figures: over generated traces that fail, under every policy,
 * the cause is that of the first step of the ladder that is enough, the ladder is cumulative and
 * agrees with the totals, and the indices agree with the cause. "returned" means that the same
 * request is served at once when it is made again, and no other cause means that. An argument: how
 * many traces. */
#include "allocators/base/rng.h"
#include "sim/explain/explain.h"
#include "tests/support/amount.h"
#include "tests/support/experiment_rig.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

static uint64_t traces = 400;

static const char *const policies[] = {
    "torch",
    "torch",
    "torch:expandable_segments=true",
    "torch:max_split_size_mb=32",
    "torch:limit=150MiB",
    "torch:roundup_power2_divisions=4",
    "greedy:framework=jax,fraction=0.9",
    "growth:framework=jax,fraction=0.9",
    "growth",
    "cupy",
    "rmm-pool",
    "rmm-arena",
    "best-fit",
    "buddy",
    "slab",
    "tlsf",
    "vmm",
    "gmlake",
    "async",
    "direct",
};

#define EVENTS    90
#define LIVE_MOST 40
#define STREAMS   3

struct maker {
    struct ar_rng rng;
    char text[EVENTS * 48];
    size_t used;
    unsigned live[LIVE_MOST], count, next;
    uint64_t outside_mib;
};

static void __attribute__((format(printf, 2, 3))) put(struct maker *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    self->used += (size_t)vsnprintf(self->text + self->used, sizeof self->text - self->used, format,
                                    arguments);
    va_end(arguments);
}

static uint64_t draw_bytes(struct ar_rng *rng)
{
    static const uint64_t kib[] = {1, 300, 900, 1500, 3000, 8000, 12000, 20480, 30000, 65536};
    uint64_t bytes = kib[ar_rng_below(rng, COUNT(kib))] * 1024;
    return ar_rng_below(rng, 2) ? bytes : bytes / 2 + ar_rng_below(rng, bytes);
}

/* Requests, frees, kernels, uses by other streams, memory beside the pool, releases. */
static void make(struct maker *self, uint64_t seed)
{
    *self = (struct maker){0};
    ar_rng_seed(&self->rng, seed);
    struct ar_rng *rng = &self->rng;
    unsigned streams = 1 + (unsigned)ar_rng_below(rng, STREAMS);
    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned what = (unsigned)ar_rng_below(rng, 20);
        unsigned at = self->count ? (unsigned)ar_rng_below(rng, self->count) : 0;
        unsigned stream = (unsigned)ar_rng_below(rng, streams);
        if (what < 9 && self->count < LIVE_MOST) {
            put(self, "a,%u,%" PRIu64 ",%u%s ", self->next, draw_bytes(rng), stream,
                ar_rng_below(rng, 8) ? "" : ",pool=1");
            self->live[self->count++] = self->next++;
        } else if (what < 14 && self->count) {
            put(self, "%c,%u ", ar_rng_below(rng, 3) ? 'f' : 'r', self->live[at]);
            self->live[at] = self->live[--self->count];
        } else if (what < 16 && self->count) {
            put(self, "k,%u,%" PRIu64 " u,%u,%u ", stream, ar_rng_below(rng, 100000000),
                self->live[at], stream);
        } else if (what == 16) {
            put(self, "k,%u,%" PRIu64 " ", stream, ar_rng_below(rng, 10000000));
        } else if (what == 17 && !ar_rng_below(rng, 2)) {
            self->outside_mib = ar_rng_below(rng, 120);
            put(self, "o,%" PRIu64 " ", self->outside_mib * AR_MIB);
        } else if (what == 18 && !ar_rng_below(rng, 3)) {
            put(self, "c ");
        }
    }
    put(self, "m,step");
}

/* One segment in pieces, of which some are freed while another stream still uses them; then a
 * request that waits for them. */
static void make_pieces(struct maker *self, uint64_t seed)
{
    *self = (struct maker){0};
    ar_rng_seed(&self->rng, seed);
    struct ar_rng *rng = &self->rng;
    unsigned pieces = 2 + (unsigned)ar_rng_below(rng, 5);
    uint64_t bytes = (11 + ar_rng_below(rng, 20)) * 2 * AR_MIB;
    put(self, "a,0,%" PRIu64 " f,0 ", pieces * bytes);
    for (unsigned i = 1; i <= pieces; i++)
        put(self, "a,%u,%" PRIu64 " ", i, bytes);
    for (unsigned i = 1; i <= pieces; i++)
        switch (ar_rng_below(rng, 4)) {
        case 0:
            put(self, "f,%u ", i);
            break;
        case 1:
            break;
        default:
            put(self, "k,1,%" PRIu64 " u,%u,1 r,%u ", 1000000 + ar_rng_below(rng, 50000000), i, i);
        }
    put(self, "a,%u,%" PRIu64 ",%u m,step", pieces + 1, bytes * (1 + ar_rng_below(rng, 2)),
        (unsigned)ar_rng_below(rng, 4) / 3);
    self->outside_mib = pieces * bytes / AR_MIB;
}

/* The number of the failures if the failed request is made twice. */
static unsigned failures_if_repeated(const char *policy, const char *device, const char *text,
                                     uint64_t event)
{
    char again[EVENTS * 48 + 64];
    const char *at = text, *end;
    struct experiment_rig rig;
    size_t words = 0;
    unsigned ids = 0;
    for (uint64_t i = 0; i < event; i++) {
        words += *at == 'a';
        at = strchr(at, ' ') + 1;
    }
    end = at + strcspn(at, " ");
    ids = (unsigned)words;
    const char *fields = strchr(at + 2, ',');
    snprintf(again, sizeof again, "%.*s a,%u%.*s", (int)(end - text), text, ids + 1,
             (int)(end - fields), fields);
    experiment_rig_over(&rig, policy, device, tiny_trace(again));
    rig.experiment.measure = REPLAY_METRICS_NONE;
    experiment_rig_run(&rig);
    unsigned failures = (unsigned)rig.result.metrics.at[METRIC_failed_allocs].integer;
    experiment_rig_close(&rig);
    return failures;
}

static unsigned seen[REPLAY_CAUSE_DRIVER + 1];

static void is_cumulative(const struct cause_ladder *ladder)
{
    const uint64_t steps[] = {ladder->obtainable_bytes, ladder->cached_bytes,  ladder->same_bytes,
                              ladder->other_bytes,      ladder->pending_bytes, ladder->tenant_bytes,
                              ladder->outside_bytes};
    for (size_t i = 1; i < COUNT(steps); i++)
        assert_true(steps[i] >= steps[i - 1]);
}

/* What the page says of the cause, against the figures on the same page. */
static void agrees(const struct explain_result *r)
{
    const struct cause_ladder *ladder = &r->ladder;
    bool by_pool = ladder->other_bytes >= r->bytes;
    is_cumulative(ladder);
    if (r->kind == EXPLAIN_REQUEST && !r->opaque && !ladder->barred)
        assert_int_equal(ladder->other_bytes, ladder->obtainable_bytes + r->free_block_bytes);
    switch (r->cause) {
    case REPLAY_CAUSE_RETURNED:
        assert_true(r->kind == EXPLAIN_REQUEST && r->largest_same_bytes >= r->bytes);
        assert_true(r->servable_bytes[AR_POLICY_EFFORT_NONE] >= r->bytes);
        assert_true(r->indices.fragmentation < 0 && r->indices.unusable < 1);
        return;
    case REPLAY_CAUSE_FRAGMENTATION:
        assert_true(by_pool && r->kind == EXPLAIN_REQUEST);
        if (!r->opaque)
            assert_true(r->indices.external > 0 && r->indices.unusable >= 1 &&
                        r->indices.fragmentation >= 0);
        return;
    case REPLAY_CAUSE_CACHE:
        assert_true(by_pool && r->kind == EXPLAIN_BESIDE);
        assert_true(r->bytes > r->device_free_bytes);
        return;
    case REPLAY_CAUSE_PENDING:
        assert_true(!by_pool && ladder->pending_bytes >= r->bytes && r->totals.pending_bytes);
        return;
    case REPLAY_CAUSE_TENANT:
        assert_true(ladder->pending_bytes < r->bytes && ladder->tenant_bytes >= r->bytes &&
                    r->others_bytes);
        return;
    case REPLAY_CAUSE_OUTSIDE:
        assert_true(ladder->tenant_bytes < r->bytes && ladder->outside_bytes >= r->bytes &&
                    r->outside_bytes);
        return;
    default:
        assert_int_equal(r->cause, REPLAY_CAUSE_CAPACITY);
        assert_true(ladder->outside_bytes < r->bytes && !ladder->again);
    }
}

static void examine(uint64_t seed, const char *policy, const char *text, uint64_t capacity_mib,
                    uint64_t others_mib)
{
    char device[96];
    struct experiment_rig rig;
    struct explain_result result;
    snprintf(device, sizeof device, "sim:capacity=%" PRIu64 "MiB,others=%" PRIu64 "MiB",
             capacity_mib, others_mib);
    experiment_rig_over(&rig, policy, device, tiny_trace(text));
    enum ar_status status = explain_failure(&rig.experiment, &result, &rig.error);
    if (status == AR_UNSUPPORTED || status == AR_NO_MEMORY || status == AR_REFUSED) {
        experiment_rig_close(&rig); /* the policy cannot begin on such a small card */
        return;
    }
    if (status)
        fail_msg("seed %" PRIu64 ", %s, %s: %s\n%s", seed, policy, device, rig.error.text, text);
    if (!result.passed) {
        rig.experiment.stop_on_failure = true;
        experiment_rig_run(&rig);
        if (rig.result.cause != result.cause)
            fail_msg("seed %" PRIu64 ", %s, %s: run says %s, explain %s", seed, policy, device,
                     replay_cause_name(rig.result.cause), replay_cause_name(result.cause));
        agrees(&result);
        seen[result.cause]++;
        if (result.kind == EXPLAIN_REQUEST &&
            (failures_if_repeated(policy, device, text, result.event) == 1) !=
                (result.cause == REPLAY_CAUSE_RETURNED))
            fail_msg("seed %" PRIu64 ", %s, %s, event %" PRIu64 ": cause %s, again %d\n%s", seed,
                     policy, device, result.event, replay_cause_name(result.cause),
                     result.cause != REPLAY_CAUSE_RETURNED, text);
    }
    explain_result_close(&result);
    experiment_rig_close(&rig);
}

TEST(no_contradiction)
{
    struct maker *maker = malloc(sizeof *maker);
    assert_non_null(maker);
    for (uint64_t seed = 1; seed <= traces; seed++) {
        const char *policy = policies[seed % COUNT(policies)];
        bool in_pieces = (seed / COUNT(policies)) % 4 == 0;
        (in_pieces ? make_pieces : make)(maker, seed);
        uint64_t capacity_mib = in_pieces ? maker->outside_mib + ar_rng_below(&maker->rng, 20)
                                          : 90 + ar_rng_below(&maker->rng, 200);
        uint64_t others_mib =
            in_pieces || ar_rng_below(&maker->rng, 3) ? 0 : 5 + ar_rng_below(&maker->rng, 60);
        examine(seed, policy, maker->text, capacity_mib, others_mib);
    }
    free(maker);
    /* every cause was seen, so the checks above could fail */
    for (int cause = REPLAY_CAUSE_RETURNED; cause <= REPLAY_CAUSE_CAPACITY; cause++)
        if (traces >= 400 && !seen[cause])
            fail_msg("no trace failed by %s", replay_cause_name((enum replay_cause)cause));
}

int main(int argc, char **argv)
{
    traces = argc > 1 ? strtoull(argv[1], NULL, 10) : test_amount(20000, traces);
    return test_run(__FILE__);
}
