/* Threads on a policy: 1, 2, 4, 8 and 16, on one pool with a lock (`shared`) or each with a policy
 * of its own (`own`); calling without a pause (`busy`) or with about a microsecond of other work
 * between two calls (`spaced`). First over simulated devices that cost nothing, then, without a
 * pause, on the card, where the policies of `own` share the card behind a lock.
 *
 * 1. A repetition runs the threads three times: once to warm the pools up, once for throughput,
 *    once with a clock around each call for latency.
 * 2. More threads than twice the processors would measure the scheduler. They and most policies
 *    are left out, unless `--all` is given. */

#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/cuda/cuda_device.h"
#include "bench/host/locked_pool.h"
#include "bench/micro/grid.h"
#include "bench/micro/rig.h"

/* ---- pools ----------------------------------------------------------------------------------- */

/* The pools of a benchmark with threads: one policy that all threads share, or one policy for each.
 * Each policy has its own simulated device whose calls cost nothing, or all share one device behind
 * a lock. */

struct thread_pools {
    unsigned count; /* of open members */
    struct thread_pool {
        struct rig rig;
        struct locked_backing backing; /* if they share a device */
        struct locked_pool *pool;
    } * members;
    struct locked_pool *of_thread[THREADS_MOST];
    struct ar_device *device; /* the shared device or NULL */
    pthread_mutex_t lock;     /* of the device */
};

/* The limit of a policy on a card: more than its threads need, and small enough for all
 * policies. */
#define CARD_LIMIT "2GiB"

static enum ar_status member_open(struct thread_pools *pools, struct thread_pool *member,
                                  const struct ar_policy_ops *policy, struct ar_error *error)
{
    char spec[64];
    enum ar_status status;
    if (pools->device) {
        bool limited = !(policy->capabilities & AR_POLICY_OVERLAPS);
        snprintf(spec, sizeof spec, "%s%s", policy->name, limited ? ":limit=" CARD_LIMIT : "");
        locked_backing_open(&member->backing, pools->device->backing, &pools->lock);
        status = rig_open_on(&member->rig, spec, &member->backing.relay.base, error);
    } else {
        status = rig_open(&member->rig, rig_spec(policy, spec, sizeof spec), error);
    }
    AR_TRY(status);
    pools->count++;
    member->pool = locked_pool_open(member->rig.policy, &member->rig.host);
    return member->pool ? AR_OK : ar_no_memory(error, "a pool");
}

static void thread_pools_close(struct thread_pools *pools)
{
    for (unsigned i = 0; i < pools->count; i++) {
        locked_pool_close(pools->members[i].pool);
        rig_close(&pools->members[i].rig);
    }
    pthread_mutex_destroy(&pools->lock);
    free(pools->members);
}

/* `device` may be NULL. Otherwise it stays the caller's, and no other code may call it while the
 * pools are open. `pools` must not move while open. */
static enum ar_status thread_pools_open(struct thread_pools *pools,
                                        const struct ar_policy_ops *policy, unsigned threads,
                                        bool own, struct ar_device *device, struct ar_error *error)
{
    unsigned count = own ? threads : 1;
    enum ar_status status = AR_OK;
    *pools =
        (struct thread_pools){.members = calloc(count, sizeof *pools->members), .device = device};
    AR_TRY_MEMORY(pools->members, error, "%u pools", count);
    if (pthread_mutex_init(&pools->lock, NULL) != 0) {
        free(pools->members);
        return ar_no_memory(error, "a lock");
    }
    for (unsigned i = 0; status == AR_OK && i < count; i++)
        status = member_open(pools, &pools->members[i], policy, error);
    for (unsigned i = 0; status == AR_OK && i < threads; i++)
        pools->of_thread[i] = pools->members[own ? i : 0].pool;
    if (status != AR_OK)
        thread_pools_close(pools);
    return status;
}

/* A context of the driver is current in one thread. */
/* For threads_config.enter: tells the device that this thread uses it. */
static void thread_pools_enter(void *argument)
{
    struct thread_pools *pools = argument;
    if (!pools->device || strcmp(pools->device->props.kind, "cuda") != 0)
        return;
    pthread_mutex_lock(&pools->lock);
    cuda_kind_enter(pools->device);
    pthread_mutex_unlock(&pools->lock);
}

/* The share of calls that found the lock of their pool taken. */
static double thread_pools_waits(const struct thread_pools *pools)
{
    double calls = 0, waits = 0;
    for (unsigned i = 0; i < pools->count; i++) {
        struct locked_pool_counts counts;
        locked_pool_counts(pools->members[i].pool, &counts);
        calls += (double)counts.calls;
        waits += (double)counts.waits;
    }
    return calls > 0 ? waits / calls : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { TURNS = 10000, LIVE = 64, SPACED_ROUNDS = 1000, COUNTS = 5 };

static const unsigned thread_counts[COUNTS] = {1, 2, 4, 8, 16};
static const char *const some_policies[] = {"null", "growth", "torch", "cupy", "rmm-arena", "vmm"};

struct thread_cell {
    const struct ar_policy_ops *policy;
    unsigned threads;
    bool own, spaced;
    struct ar_device *device; /* NULL: simulated ones of the pools' own */
};

/* A way to run threads, with its names. */
struct thread_mode {
    bool own, spaced;
    const char *titles[3]; /* of its grids: throughput, median, tail */
};

/* Rule 1. */
static enum ar_status measure(struct micro_state *state, struct thread_pools *pools,
                              const struct thread_cell *cell, struct threads_result *result,
                              struct ar_error *error)
{
    struct threads_config config = {.threads = cell->threads,
                                    .pools = pools->of_thread,
                                    .turns = TURNS,
                                    .live = LIVE,
                                    .least_bytes = 512,
                                    .most_bytes = 4 * AR_MIB,
                                    .think = cell->spaced ? SPACED_ROUNDS : 0,
                                    .seed = 1,
                                    .enter = thread_pools_enter,
                                    .argument = pools};
    AR_TRY(threads_run(&config, result, error));
    AR_TRY(threads_run(&config, result, error));
    double calls = (double)(result->allocs + result->frees);
    double failed = (double)result->failed;
    double wall_ns = (double)(result->wall_ns ? result->wall_ns : 1);
    config.latency = true;
    AR_TRY(threads_run(&config, result, error));
    ar_hist_merge(&result->alloc_ns, &result->free_ns);
    micro_time(state, wall_ns);
    micro_counter(state, "ns_per_op", wall_ns / calls);
    micro_counter(state, "ops_per_s", calls * 1e9 / wall_ns);
    micro_counter(state, "p50_ns", (double)ar_hist_quantile(&result->alloc_ns, 0.5));
    micro_counter(state, "p99_ns", (double)ar_hist_quantile(&result->alloc_ns, 0.99));
    micro_counter(state, "p999_ns", (double)ar_hist_quantile(&result->alloc_ns, 0.999));
    micro_counter(state, "waits", thread_pools_waits(pools));
    micro_counter(state, "failed", failed);
    micro_counter(state, "clock_ns", (double)result->clock_ns);
    return AR_OK;
}

static void run(struct micro_state *state, void *argument)
{
    const struct thread_cell *cell = argument;
    struct ar_error error = {{0}};
    struct threads_result *result = malloc(sizeof *result);
    enum ar_status status = AR_OK;
    while (result && status == AR_OK && micro_next(state)) {
        struct thread_pools pools;
        status =
            thread_pools_open(&pools, cell->policy, cell->threads, cell->own, cell->device, &error);
        if (status != AR_OK)
            break;
        status = measure(state, &pools, cell, result, &error);
        thread_pools_close(&pools);
    }
    if (status != AR_OK && cell->device && cell->device->ops->problem(cell->device)[0])
        (void)ar_error_set(&error, status, "%s", cell->device->ops->problem(cell->device));
    if (!result)
        micro_fail(state, "no host memory for histograms");
    else if (status != AR_OK)
        micro_fail(state, error.text);
    free(result);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool is_chosen(const struct sections *sections, const struct ar_policy_ops *policy)
{
    for (size_t i = 0; i < AR_COUNT(some_policies); i++)
        if (strcmp(some_policies[i], policy->name) == 0)
            return true;
    return sections->all;
}

static unsigned most_threads(const struct sections *sections)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned most = processors > 0 ? 2 * (unsigned)processors : 2;
    return sections->all ? thread_counts[COUNTS - 1] : most;
}

/* Columns of a grid. There is one grid for each figure, all of the same benchmarks. */
static void add_row(struct sections *sections, struct grid *const grids[3],
                    const struct ar_policy_ops *policy, const struct thread_mode *mode,
                    struct ar_device *device)
{
    size_t row = GRID_ROWS;
    for (size_t g = 0; g < 3; g++)
        row = grid_row(grids[g], policy->name);
    for (size_t i = 0; row < GRID_ROWS && i < grids[0]->columns; i++) {
        struct thread_cell what = {policy, thread_counts[i], mode->own, mode->spaced, device};
        void *cell = sections_cell(sections, &what, sizeof what);
        if (!cell)
            return;
        const char *name = NULL;
        for (size_t g = 0; g < 3; g++)
            name = grid_name(grids[g], row, i, "%s%sthreads/%s/%s/%u/%s",
                             device ? device->props.kind : "", device ? "/" : "",
                             mode->own ? "own" : "shared", mode->spaced ? "spaced" : "busy",
                             what.threads, policy->name);
        micro_register_timed(name, run, cell);
    }
}

static void add_mode(struct sections *sections, const struct thread_mode *mode,
                     struct ar_device *device)
{
    static const char *const counters[3] = {"ops_per_s", "p50_ns", "p999_ns"};
    struct grid *grids[3];
    for (size_t g = 0; g < 3; g++) {
        grids[g] = sections_grid(sections, mode->titles[g], "policy", counters[g]);
        if (!grids[g])
            return;
        grids[g]->median = true;
        for (size_t i = 0; i < COUNTS && thread_counts[i] <= most_threads(sections); i++) {
            char name[32];
            snprintf(name, sizeof name, "%u", thread_counts[i]);
            grid_column(grids[g], name);
        }
    }
    grids[0]->scale = 1e-6;
    const struct ar_policy_ops *policy;
    for (size_t p = 0; (policy = sections_policy(p)); p++)
        if (is_chosen(sections, policy))
            add_row(sections, grids, policy, mode, device);
}

#define TITLES(how)                                                                                \
    {                                                                                              \
        "million operations a second, by number of threads, " how,                                 \
            "nanoseconds of an operation, median, by number of threads, " how,                     \
            "nanoseconds of an operation, 99.9 %, by number of threads, " how                      \
    }

static const struct thread_mode free_modes[] = {
    {false, false, TITLES("one policy with a lock, no pause between calls")},
    {false, true, TITLES("one policy with a lock, about 1 us of work between calls")},
    {true, false, TITLES("a policy for each thread, no pause between calls")},
    {true, true, TITLES("a policy for each thread, about 1 us of work between calls")},
};

static const struct thread_mode card_modes[] = {
    {false, false, TITLES("one policy with a lock, on the card")},
    {true, false, TITLES("a policy for each thread, on one card with a lock")},
};

void thread_rows_register(struct sections *sections)
{
    for (size_t i = 0; i < AR_COUNT(free_modes); i++)
        add_mode(sections, &free_modes[i], NULL);
    if (!sections->device)
        return;
    for (size_t i = 0; i < AR_COUNT(card_modes); i++)
        add_mode(sections, &card_modes[i], sections->device);
}
