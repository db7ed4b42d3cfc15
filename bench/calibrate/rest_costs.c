/* The cost that a rest adds to a call: the longer ago the last call of its kind, the more of the
 * driver's code and data has left the caches of the host.
 *
 * 1. During a rest the host launches short kernels and reads the clock, as a replay does between
 *    two calls. The card is idle again at its end.
 * 2. Eight calls of the same kind follow in a row. The first is rested, the fourth to seventh are
 *    not: the difference is the cost of the rest.
 * 3. The second call pays a part of this cost again. The share is its time beyond the sixth and
 *    seventh, divided by that of the first, summed over the longer rests, whose cost is largest.
 * 4. Calls that policies make in sequence are made in sequence here: a range is reserved, mapped
 *    and made accessible after one rest, and unmapped and released after another.
 * 5. The meter measures how long each kind has rested: longer for the later ones. */

#include "allocators/base/size.h"
#include "bench/calibrate/meter.h"

#define SERIES      8u
#define HOT_FROM    3u
#define LATE_FROM   5u
#define PIECE       (4 * AR_MIB)
#define SMALL_BYTES (4 * AR_KIB)
#define POOL_BYTES  AR_MIB
#define KERNEL_NS   UINT64_C(10000)
#define PAUSE_NS    UINT64_C(10000)
#define PENDING_NS  UINT64_C(5000)
#define RESTS       5u
/* Rests of at least this length count for rule 3. */
#define LONG_NS UINT64_C(3000000)
/* Calls closer than this belong to one series. */
#define NO_REST_NS UINT64_C(10000)

static const struct rest {
    uint64_t ns;
    uint32_t rounds;
} rests[RESTS] = {
    {30000, 12}, {300000, 12}, {3000000, 10}, {30000000, 8}, {300000000, 5},
};

/* The kinds, in the order of a round, by `enum sim_cost`. */
struct rested {
    struct meter_samples cold[SIM_COST_COUNT], second[SIM_COST_COUNT], hot[SIM_COST_COUNT],
        late[SIM_COST_COUNT], rest[SIM_COST_COUNT];
};

/* What the longer rests added to the first and to the second calls, by kind. */
struct added {
    int64_t first_ns[SIM_COST_COUNT], second_ns[SIM_COST_COUNT];
};

/* The memory allocated during a round. */
struct round {
    uint64_t blocks[SERIES], small[SERIES], pool[SERIES], range[SERIES];
    ar_backing_handle handles[SERIES];
    uint32_t done[SIM_COST_COUNT]; /* calls of each kind */
};

static void rest(struct meter *meter, uint64_t ns)
{
    uint64_t until_ns = meter_now(meter) + ns;
    while (meter_now(meter) < until_ns) {
        meter_kernel_op(meter, KERNEL_NS);
        cache_flush_run(meter->flush);
        meter_pause(meter, PAUSE_NS);
    }
    meter_sync(meter);
}

static bool call(struct meter *meter, enum sim_cost kind, struct round *round, uint32_t i)
{
    struct ar_backing_ticket ticket;
    uint64_t at = round->range[0] + i * PIECE;
    switch (kind) {
    case SIM_COST_alloc:
        return meter_alloc(meter, PIECE, &round->blocks[i], NULL);
    case SIM_COST_free:
        return meter_free(meter, round->blocks[i], NULL);
    case SIM_COST_alloc_shared:
        return meter_alloc(meter, SMALL_BYTES, &round->small[i], NULL);
    case SIM_COST_free_shared:
        return meter_free(meter, round->small[i], NULL);
    case SIM_COST_reserve:
        return meter_reserve(meter, SERIES * PIECE, &round->range[i], NULL);
    case SIM_COST_release:
        return meter_release(meter, round->range[i], NULL);
    case SIM_COST_create:
        return meter_create(meter, PIECE, &round->handles[i], NULL);
    case SIM_COST_destroy:
        return meter_destroy(meter, round->handles[i], NULL);
    case SIM_COST_map:
        return meter_map(meter, at, round->handles[i], NULL);
    case SIM_COST_access:
        return meter_access(meter, at, PIECE, NULL);
    case SIM_COST_unmap:
        return meter_unmap(meter, at, PIECE, NULL);
    case SIM_COST_pool_alloc:
        return meter_pool_alloc(meter, POOL_BYTES, METER_STREAM, &round->pool[i], NULL);
    case SIM_COST_pool_free:
        return meter_pool_free(meter, round->pool[i], METER_STREAM, NULL);
    case SIM_COST_event:
        meter_kernel_op(meter, PENDING_NS);
        return meter_fence(meter, METER_BUSY_STREAM, SIM_COST_event, &ticket, NULL);
    default:
        return false;
    }
}

/* A row of calls. Without `out` they are made and not counted. */
static bool series(struct meter *meter, enum sim_cost kind, struct round *round, struct rested *out)
{
    bool rested = false; /* the first one was of the kind */
    for (uint32_t i = 0; i < SERIES; i++) {
        if (!call(meter, kind, round, i))
            return false;
        round->done[kind]++;
        if (!out || meter->kind != kind) /* a small one that took a page, or gave it back */
            continue;
        if (i >= HOT_FROM && i + 1 < SERIES) /* the block made last is freed at another cost */
            meter_samples_add(&out->hot[kind], meter->ns);
        if (i >= LATE_FROM && i + 1 < SERIES)
            meter_samples_add(&out->late[kind], meter->ns);
        if (i == 0) {
            meter_samples_add(&out->cold[kind], meter->ns);
            meter_samples_add(&out->rest[kind], meter->rest_ns);
            rested = true;
        }
        if (i == 1 && rested)
            meter_samples_add(&out->second[kind], meter->ns);
    }
    return true;
}

/* What is made after one rest and released after another. Lists end with SIM_COST_COUNT. */
static const struct pair {
    enum sim_cost makes[5], gives_back[4];
    bool mapped, pool; /* needs virtual memory, the pool */
} pairs[] = {
    {{SIM_COST_alloc, SIM_COST_COUNT}, {SIM_COST_free, SIM_COST_COUNT}, false, false},
    {{SIM_COST_alloc_shared, SIM_COST_COUNT}, {SIM_COST_free_shared, SIM_COST_COUNT}, false, false},
    {{SIM_COST_reserve, SIM_COST_create, SIM_COST_map, SIM_COST_access, SIM_COST_COUNT},
     {SIM_COST_unmap, SIM_COST_destroy, SIM_COST_release, SIM_COST_COUNT},
     true,
     false},
    {{SIM_COST_pool_alloc, SIM_COST_COUNT}, {SIM_COST_pool_free, SIM_COST_COUNT}, false, true},
    {{SIM_COST_event, SIM_COST_COUNT}, {SIM_COST_COUNT}, false, false},
};

static bool kinds_go(struct meter *meter, const enum sim_cost *kinds, uint64_t rest_ns,
                     struct round *round, struct rested *out)
{
    if (*kinds != SIM_COST_COUNT)
        rest(meter, rest_ns);
    for (; *kinds != SIM_COST_COUNT; kinds++)
        if (!series(meter, *kinds, round, out))
            return false;
    return true;
}

/* What a round that was broken off has left: the device had no memory for more. */
static void clean_up(struct meter *meter, struct round *round)
{
    static const enum sim_cost made[][2] = {
        {SIM_COST_alloc, SIM_COST_free},      {SIM_COST_alloc_shared, SIM_COST_free_shared},
        {SIM_COST_map, SIM_COST_unmap},       {SIM_COST_create, SIM_COST_destroy},
        {SIM_COST_reserve, SIM_COST_release}, {SIM_COST_pool_alloc, SIM_COST_pool_free},
    };
    for (size_t i = 0; i < AR_COUNT(made); i++)
        for (uint32_t at = round->done[made[i][1]]; at < round->done[made[i][0]]; at++)
            (void)call(meter, made[i][1], round, at);
}

/* All rounds of one rest. What the driver has at hand of frees before is taken by a block of its
 * own while new ones are made, and a small block keeps the page of the others. */
static bool rounds_go(struct meter *meter, const struct pair *pair, const struct rest *rest,
                      struct rested *out)
{
    uint64_t plug, page;
    bool done = meter_alloc(meter, SMALL_BYTES, &page, NULL);
    if (!done)
        return false;
    for (uint32_t i = 0; i <= rest->rounds && done; i++) {
        struct round round = {.range = {0}};
        struct rested *into = i ? out : NULL; /* the first rest began when the last pair ended */
        if (!meter_alloc(meter, PIECE, &plug, NULL))
            break;
        done = kinds_go(meter, pair->makes, rest->ns, &round, into) &&
               kinds_go(meter, pair->gives_back, rest->ns, &round, into);
        if (!done)
            clean_up(meter, &round);
        done = meter_free(meter, plug, NULL) && done;
    }
    meter_sync(meter);
    return meter_free(meter, page, NULL) && done;
}

/* One more point of each kind; none where the rests were no longer than those before. `added` is
 * NULL after shorter rests. */
static void points_add(struct sim_profile *points, struct rested *rested, struct added *added)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        struct sim_curve *curve = &points->rest_costs[kind];
        if (!rested->cold[kind].count || !rested->hot[kind].count)
            continue;
        uint64_t cold_ns = meter_samples_usual(&rested->cold[kind]);
        uint64_t hot_ns = meter_samples_usual(&rested->hot[kind]);
        if (!curve->count)
            (void)sim_curve_add(curve, NO_REST_NS, 0);
        (void)sim_curve_add(curve, meter_samples_median(&rested->rest[kind]),
                            cold_ns > hot_ns ? cold_ns - hot_ns : 0);
        if (!added || !rested->second[kind].count || !rested->late[kind].count)
            continue;
        int64_t late_ns = (int64_t)meter_samples_usual(&rested->late[kind]);
        added->first_ns[kind] += (int64_t)cold_ns - late_ns;
        added->second_ns[kind] += (int64_t)meter_samples_usual(&rested->second[kind]) - late_ns;
    }
}

/* To the nearest percent, no less than none of it and no more than all. What the sixth and seventh
 * calls still pay is taken as theirs, which makes 49 percent of 50. */
static void shares_add(struct sim_profile *points, const struct added *added)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        int64_t first_ns = added->first_ns[kind], second_ns = added->second_ns[kind];
        if (first_ns <= 0 || second_ns <= 0)
            continue;
        points->rest_again_percent[kind] =
            second_ns < first_ns ? (uint64_t)((200 * second_ns + first_ns) / (2 * first_ns)) : 100;
    }
}

void parts_rested(struct meter *meter, struct sim_profile *out, uint64_t bytes AR_UNUSED)
{
    const struct ar_device_props *props = &meter->device->props;
    if (meter_room(meter, PIECE, 4 * SERIES) < 4 * SERIES)
        return;
    if (props->has_pool && !parts_pool_open(meter))
        return;
    /* The profile gets them at the end: what is measured here is not less by them. */
    struct sim_profile points = {.name = ""};
    struct added added = {.first_ns = {0}};
    for (size_t i = 0; i < AR_COUNT(pairs); i++) {
        bool done =
            (props->has_virtual_memory || !pairs[i].mapped) && (props->has_pool || !pairs[i].pool);
        for (uint32_t j = 0; j < RESTS && done; j++) {
            struct rested rested = {.cold = {{0}}};
            done = rounds_go(meter, &pairs[i], &rests[j], &rested);
            if (done)
                points_add(&points, &rested, rests[j].ns >= LONG_NS ? &added : NULL);
        }
    }
    shares_add(&points, &added);
    if (props->has_pool)
        (void)meter_pool_trim(meter, NULL);
    memcpy(out->rest_costs, points.rest_costs, sizeof out->rest_costs);
    memcpy(out->rest_again_percent, points.rest_again_percent, sizeof out->rest_again_percent);
}
