#include "bench/host/locked_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "allocators/base/rng.h"
#include "sim/replay/timing.h"

#define BYTES_LIMIT (UINT64_C(1) << 60)

struct locked_pool {
    pthread_mutex_t lock; /* for all below */
    struct ar_policy *policy;
    struct ar_map blocks;             /* a struct ar_policy_block by its address */
    struct locked_pool_counts counts; /* `blocks` is the map's own count */
};

#define BLOCK_WORDS (sizeof(struct ar_policy_block) / sizeof(uint64_t))

struct locked_pool *locked_pool_open(struct ar_policy *policy, struct ar_host *host)
{
    struct locked_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        free(pool);
        return NULL;
    }
    pool->policy = policy;
    pool->blocks = (struct ar_map){.host = host, .more_words = BLOCK_WORDS - 1};
    return pool;
}

void locked_pool_close(struct locked_pool *pool)
{
    struct ar_policy_block block;
    const uint64_t *words;
    if (!pool)
        return;
    for (size_t at = 0; (words = ar_map_next(&pool->blocks, &at));)
        (void)ar_policy_free(pool->policy, memcpy(&block, words, sizeof block), 0);
    ar_map_close(&pool->blocks);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Trying first shows whether the lock is taken, and costs no more than taking it. */
static void enter(struct locked_pool *pool)
{
    bool waited = pthread_mutex_trylock(&pool->lock) != 0;
    if (waited)
        pthread_mutex_lock(&pool->lock);
    pool->counts.calls++;
    pool->counts.waits += waited;
}

static void leave(struct locked_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

static enum ar_status serve(struct locked_pool *pool, const struct ar_policy_request *request,
                            uint64_t *address)
{
    struct ar_policy_block block;
    /* A block that the map cannot store would be lost, so reserve first. */
    AR_TRY(ar_map_reserve(&pool->blocks));
    AR_TRY(ar_policy_alloc(pool->policy, request, &block));
    uint64_t *words =
        ar_map_find(&pool->blocks, block.address) ? NULL : ar_map_add(&pool->blocks, block.address);
    if (!words)
        return AR_CORRUPT;
    memcpy(words, &block, sizeof block);
    *address = block.address;
    return AR_OK;
}

enum ar_status locked_pool_alloc(struct locked_pool *pool, const struct ar_policy_request *request,
                                 uint64_t *address)
{
    if (request->bytes >= BYTES_LIMIT)
        return AR_INVALID;
    if (!request->bytes) {
        *address = LOCKED_POOL_NO_BLOCK;
        return AR_OK;
    }
    enter(pool);
    enum ar_status status = serve(pool, request, address);
    leave(pool);
    return status;
}

enum ar_status locked_pool_free(struct locked_pool *pool, uint64_t address, uint32_t stream)
{
    struct ar_policy_block block;
    if (address == LOCKED_POOL_NO_BLOCK)
        return AR_OK;
    enter(pool);
    enum ar_status status = AR_INVALID;
    const uint64_t *words = ar_map_find(&pool->blocks, address);
    if (words) {
        memcpy(&block, words, sizeof block);
        (void)ar_map_remove(&pool->blocks, address);
        status = ar_policy_free(pool->policy, &block, stream);
    } else {
        pool->counts.unknown++;
    }
    leave(pool);
    return status;
}

void locked_pool_counts(struct locked_pool *pool, struct locked_pool_counts *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->counts;
    out->blocks = pool->blocks.count;
    pthread_mutex_unlock(&pool->lock);
}

/* Copies the sentence of the policy's last CORRUPT, "" if there was none. Returns `text`. */
static const char *locked_pool_problem(struct locked_pool *pool, char *text, size_t text_bytes)
{
    pthread_mutex_lock(&pool->lock);
    snprintf(text, text_bytes, "%s", ar_policy_problem(pool->policy));
    pthread_mutex_unlock(&pool->lock);
    return text;
}

/* ---- locked_backing -------------------------------------------------------------------------- */

static enum ar_status lock_before(struct relay *relay, enum relay_hook hook AR_UNUSED)
{
    pthread_mutex_lock(((struct locked_backing *)relay)->lock);
    return AR_OK;
}

/* Other threads may change the sentence of the device, so it is copied under the lock. */
static void unlock_after(struct relay *relay, const struct relay_call *call)
{
    struct locked_backing *self = (struct locked_backing *)relay;
    if (call->status == AR_INVALID)
        snprintf(self->problem, sizeof self->problem, "%s", ar_backing_problem(relay->inner));
    pthread_mutex_unlock(self->lock);
}

static const char *problem(struct ar_backing *base)
{
    return ((struct locked_backing *)base)->problem;
}

void locked_backing_open(struct locked_backing *self, struct ar_backing *inner,
                         pthread_mutex_t *lock)
{
    *self = (struct locked_backing){
        .relay = {.before = lock_before, .after = unlock_after},
        .lock = lock,
    };
    relay_open(&self->relay, inner);
    self->relay.ops.problem = problem;
}

/* ---- threads --------------------------------------------------------------------------------- */

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

/* Does `rounds` of work in registers. Returns a value that depends on all of it. */
static uint64_t threads_think(uint64_t rounds, uint64_t value)
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
    struct ar_rng rng = ar_rng_of(config->seed + number);
    worker->addresses = calloc(config->live, sizeof *worker->addresses);
    worker->turns = calloc((size_t)config->turns + config->live, sizeof *worker->turns);
    AR_FREED bool *taken = calloc(config->live, sizeof *taken);
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
    return worker->addresses && worker->turns && taken ? AR_OK : AR_HOST_MEMORY;
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
        return ar_invalid(error, "%u threads: choose 1 to %u", config->threads, THREADS_MOST);
    if (!config->live || !config->least_bytes || config->least_bytes > config->most_bytes)
        return ar_invalid(error, "threads need at least one place and sizes from 1 byte upward");
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
            return ar_no_memory(error, "%llu calls of a thread", (unsigned long long)config->turns);
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
        AR_LOWER(begun_ns, worker->begun_ns);
        AR_RAISE(ended_ns, worker->ended_ns);
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
    AR_TRY(check(config, error));
    struct worker *workers = aligned_alloc(CACHE_LINE, config->threads * sizeof *workers);
    AR_TRY_MEMORY(workers, error, "%u threads", config->threads);
    for (unsigned i = 0; i < config->threads; i++)
        workers[i] = (struct worker){0};
    enum ar_status status = prepare(workers, config, &gate, error);
    AR_THEN(status, start_and_join(workers, config->threads, &gate, error));
    AR_THEN(status, add_up(workers, config->threads, result, error));
    for (unsigned i = 0; i < config->threads; i++) {
        free(workers[i].turns);
        free(workers[i].addresses);
    }
    free(workers);
    return status;
}
