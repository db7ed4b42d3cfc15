#include "bench/host/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "allocators/base/rng.h"
#include "sim/replay/latency.h"

#define CACHE_LINE 64

struct turn {
    uint64_t bytes; /* 0: the block of the place is freed */
    uint32_t place;
};

/* Threads wait here until all have arrived, or until one could not be started. */
enum gate_state { GATE_CLOSED, GATE_OPEN, GATE_GIVEN_UP };

struct gate {
    _Atomic unsigned arrived;
    _Atomic int state;
};

struct worker {
    const struct threads_config *config;
    struct gate *gate;
    struct locked_pool *pool;
    struct turn *turns;
    uint64_t turn_count;
    uint64_t *addresses; /* by place */
    uint64_t clock_ns, sink;
    pthread_t thread;
    enum ar_status status;
    uint64_t begun_ns, ended_ns;
    struct threads_result counts; /* its own part */
} __attribute__((aligned(CACHE_LINE)));

uint64_t threads_think(uint64_t rounds, uint64_t value)
{
    for (uint64_t i = 0; i < rounds; i++) {
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        __asm__ volatile("" : "+r"(value)); /* keeps the compiler from folding the chain */
    }
    return value;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* Rule 1. */
static enum ar_status make_turns(struct worker *worker, unsigned number)
{
    const struct threads_config *config = worker->config;
    struct ar_rng rng;
    ar_rng_seed(&rng, config->seed + number);
    worker->addresses = calloc(config->live, sizeof *worker->addresses);
    worker->turns = calloc((size_t)config->turns + config->live, sizeof *worker->turns);
    bool *taken = calloc(config->live, sizeof *taken);
    if (worker->addresses && worker->turns && taken) {
        for (uint64_t i = 0; i < config->turns; i++) {
            uint32_t place = (uint32_t)ar_rng_below(&rng, config->live);
            uint64_t bytes = ar_rng_log_uniform(&rng, config->least_bytes, config->most_bytes);
            worker->turns[worker->turn_count++] =
                (struct turn){.bytes = taken[place] ? 0 : bytes, .place = place};
            taken[place] = !taken[place];
        }
        for (uint32_t place = 0; place < config->live; place++)
            if (taken[place])
                worker->turns[worker->turn_count++] = (struct turn){.place = place};
    }
    enum ar_status status = worker->addresses && worker->turns && taken ? AR_OK : AR_HOST_MEMORY;
    free(taken);
    return status;
}

static enum ar_status take_turn(struct worker *worker, const struct turn *turn)
{
    uint64_t *address = &worker->addresses[turn->place];
    enum ar_status status;
    if (turn->bytes) {
        struct ar_policy_request request = {.bytes = turn->bytes};
        status = locked_pool_alloc(worker->pool, &request, address);
        if (status == AR_OK)
            worker->counts.allocs++;
        else if (status == AR_NO_MEMORY)
            *address = LOCKED_POOL_NO_BLOCK;
    } else {
        status = locked_pool_free(worker->pool, *address, 0);
        if (status == AR_OK && *address != LOCKED_POOL_NO_BLOCK)
            worker->counts.frees++;
    }
    if (status != AR_NO_MEMORY)
        return status;
    worker->counts.failed++;
    return AR_OK;
}

static enum ar_status timed_turn(struct worker *worker, const struct turn *turn)
{
    uint64_t begun_ns = latency_clock_ns();
    enum ar_status status = take_turn(worker, turn);
    uint64_t passed_ns = latency_clock_ns() - begun_ns;
    passed_ns = passed_ns > worker->clock_ns ? passed_ns - worker->clock_ns : 0;
    ar_hist_add(turn->bytes ? &worker->counts.alloc_ns : &worker->counts.free_ns, passed_ns, 1);
    return status;
}

static void take_all(struct worker *worker)
{
    const struct threads_config *config = worker->config;
    for (uint64_t i = 0; worker->status == AR_OK && i < worker->turn_count; i++) {
        const struct turn *turn = &worker->turns[i];
        worker->status = config->latency ? timed_turn(worker, turn) : take_turn(worker, turn);
        if (config->think)
            worker->sink = threads_think(config->think, worker->sink);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    if (worker->config->enter)
        worker->config->enter(worker->config->argument);
    atomic_fetch_add(&worker->gate->arrived, 1);
    int state;
    while ((state = atomic_load(&worker->gate->state)) == GATE_CLOSED)
        sched_yield();
    if (state == GATE_GIVEN_UP)
        return NULL;
    worker->begun_ns = latency_clock_ns();
    take_all(worker);
    worker->ended_ns = latency_clock_ns();
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum ar_status check(const struct threads_config *config, struct ar_error *error)
{
    if (!config->threads || config->threads > THREADS_MOST)
        return ar_error_set(error, AR_INVALID, "%u threads: choose 1 to %u", config->threads,
                            THREADS_MOST);
    if (!config->live || !config->least_bytes || config->least_bytes > config->most_bytes)
        return ar_error_set(error, AR_INVALID,
                            "threads need at least one place and sizes from 1 byte upward");
    return AR_OK;
}

static enum ar_status prepare(struct worker *workers, const struct threads_config *config,
                              struct gate *gate, struct ar_error *error)
{
    uint64_t clock_ns = config->latency ? latency_clock_cost_ns() : 0;
    for (unsigned i = 0; i < config->threads; i++) {
        struct worker *worker = &workers[i];
        worker->config = config;
        worker->gate = gate;
        worker->pool = config->pools[i];
        worker->clock_ns = clock_ns;
        worker->sink = i;
        if (make_turns(worker, i) != AR_OK)
            return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %llu calls of a thread",
                                (unsigned long long)config->turns);
    }
    return AR_OK;
}

static enum ar_status start_and_join(struct worker *workers, unsigned count, struct gate *gate,
                                     struct ar_error *error)
{
    unsigned started = 0;
    while (started < count &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    while (atomic_load(&gate->arrived) < started)
        sched_yield();
    atomic_store(&gate->state, started == count ? GATE_OPEN : GATE_GIVEN_UP);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (started < count)
        return ar_error_set(error, AR_HOST_MEMORY, "thread %u of %u could not be started",
                            started + 1, count);
    return AR_OK;
}

static enum ar_status add_up(const struct worker *workers, unsigned count,
                             struct threads_result *result, struct ar_error *error)
{
    uint64_t begun_ns = UINT64_MAX, ended_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct worker *worker = &workers[i];
        if (worker->status != AR_OK) {
            char problem[256];
            (void)locked_pool_problem(worker->pool, problem, sizeof problem);
            return ar_error_set(error, worker->status, "thread %u: %s%s%s", i + 1,
                                ar_status_meaning(worker->status), problem[0] ? ": " : "", problem);
        }
        result->allocs += worker->counts.allocs;
        result->frees += worker->counts.frees;
        result->failed += worker->counts.failed;
        ar_hist_merge(&result->alloc_ns, &worker->counts.alloc_ns);
        ar_hist_merge(&result->free_ns, &worker->counts.free_ns);
        if (worker->begun_ns < begun_ns)
            begun_ns = worker->begun_ns;
        if (worker->ended_ns > ended_ns)
            ended_ns = worker->ended_ns;
    }
    result->wall_ns = ended_ns - begun_ns;
    result->clock_ns = workers[0].clock_ns;
    return AR_OK;
}

enum ar_status threads_run(const struct threads_config *config, struct threads_result *result,
                           struct ar_error *error)
{
    struct gate gate = {0};
    *result = (struct threads_result){0};
    enum ar_status status = check(config, error);
    if (status != AR_OK)
        return status;
    struct worker *workers = aligned_alloc(CACHE_LINE, config->threads * sizeof *workers);
    if (!workers)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for %u threads",
                            config->threads);
    for (unsigned i = 0; i < config->threads; i++)
        workers[i] = (struct worker){0};
    status = prepare(workers, config, &gate, error);
    if (status == AR_OK)
        status = start_and_join(workers, config->threads, &gate, error);
    if (status == AR_OK)
        status = add_up(workers, config->threads, result, error);
    for (unsigned i = 0; i < config->threads; i++) {
        free(workers[i].turns);
        free(workers[i].addresses);
    }
    free(workers);
    return status;
}
