/* Alloc and free as a program calls them: through a lock and a map from addresses to blocks, which
 * a real allocator has and a replay does not need.
 *
 * 1. The pool resembles a program in the middle of its run: a thousand live blocks with a thousand
 *    free blocks between them.
 * 2. `warm`: repeated pairs. A sample is a batch, because one pair takes as long as reading the
 *    clock.
 * 3. `cold`: before each alloc and each free, outside of the timed part, a buffer twice as large as
 *    the processor's outer caches is written. So every cache line of the policy's metadata comes
 *    from memory, as in a program that computes between its calls. A sample is one pair. */
#include "bench/micro/grid.h"

#include <unistd.h>

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "bench/host/locked_pool.h"
#include "bench/micro/rig.h"
#include "sim/replay/timing.h"

enum { BATCH = 64, BLOCKS = 2000, LINE_BYTES = 64 };
/* Without `all`, cold caches are measured at one size only: writing the buffer is slow. */
enum { SOME_COLUMNS = 4 };
#define WARM_NS (10 * UINT64_C(1000000))
#define COLD_NS (40 * UINT64_C(1000000))

struct pool_cell {
    const struct ar_policy_ops *policy;
    uint64_t bytes;
    bool cold;
    unsigned char *buffer; /* of the sections; writing it evicts everything else from the caches */
    size_t buffer_bytes;
};

/* ---- caches ---------------------------------------------------------------------------------- */

static void evict(const struct pool_cell *cell)
{
    volatile unsigned char *buffer = cell->buffer;
    for (size_t i = 0; i < cell->buffer_bytes; i += LINE_BYTES)
        buffer[i]++;
}

/* ---- one benchmark --------------------------------------------------------------------------- */

static enum ar_status pair(struct locked_pool *pool, uint64_t bytes)
{
    struct ar_policy_request request = {.bytes = bytes};
    uint64_t address;
    AR_TRY(locked_pool_alloc(pool, &request, &address));
    return locked_pool_free(pool, address, 0);
}

/* Rule 1. Closing the pool frees the live blocks. */
static enum ar_status furnish(struct locked_pool *pool)
{
    uint64_t addresses[BLOCKS];
    struct ar_rng rng = ar_rng_of(1);
    for (size_t i = 0; i < BLOCKS; i++) {
        struct ar_policy_request request = {.bytes = ar_rng_log_uniform(&rng, 512, AR_MIB)};
        AR_TRY(locked_pool_alloc(pool, &request, &addresses[i]));
    }
    for (size_t i = 0; i < BLOCKS; i += 2)
        AR_TRY(locked_pool_free(pool, addresses[i], 0));
    return AR_OK;
}

static enum ar_status sample_warm(struct samples *samples, struct locked_pool *pool,
                                  const struct pool_cell *cell, uint64_t clock_ns)
{
    enum ar_status status = AR_OK;
    samples_begin(samples, WARM_NS, 5);
    while (status == AR_OK && samples_more(samples)) {
        uint64_t begun_ns = latency_clock_ns();
        for (int i = 0; status == AR_OK && i < BATCH; i++)
            status = pair(pool, cell->bytes);
        samples_add(samples, latency_clock_ns() - begun_ns, clock_ns);
    }
    return status;
}

static enum ar_status sample_cold(struct samples *samples, struct locked_pool *pool,
                                  const struct pool_cell *cell, uint64_t clock_ns)
{
    struct ar_policy_request request = {.bytes = cell->bytes};
    enum ar_status status = AR_OK;
    uint64_t address = LOCKED_POOL_NO_BLOCK;
    samples_begin(samples, COLD_NS, 2);
    while (status == AR_OK && samples_more(samples)) {
        evict(cell);
        uint64_t begun_ns = latency_clock_ns();
        status = locked_pool_alloc(pool, &request, &address);
        uint64_t alloc_ns = latency_clock_ns() - begun_ns;
        if (status != AR_OK)
            break;
        evict(cell);
        begun_ns = latency_clock_ns();
        status = locked_pool_free(pool, address, 0);
        samples_add(samples, alloc_ns + latency_clock_ns() - begun_ns, 2 * clock_ns);
    }
    return status;
}

static enum ar_status sample(struct samples *samples, struct rig *rig, const struct pool_cell *cell)
{
    struct locked_pool *pool = locked_pool_open(rig->policy, &rig->host);
    AR_TRY_HOST(pool);
    uint64_t clock_ns = latency_clock_cost_ns();
    enum ar_status status = furnish(pool);
    AR_THEN(status, pair(pool, cell->bytes));
    AR_THEN(status, (cell->cold ? sample_cold : sample_warm)(samples, pool, cell, clock_ns));
    locked_pool_close(pool);
    return status;
}

static void run(struct micro_state *state, void *argument)
{
    const struct pool_cell *cell = argument;
    struct rig rig;
    struct ar_error error = {{0}};
    struct samples samples;
    char spec[64];
    while (micro_next(state)) {
        if (rig_open(&rig, rig_spec(cell->policy, spec, sizeof spec), &error) != AR_OK) {
            micro_fail(state, error.text);
            return;
        }
        enum ar_status status = sample(&samples, &rig, cell);
        rig_close(&rig);
        if (status != AR_OK) {
            micro_fail(state, ar_status_meaning(status));
            return;
        }
        samples_report(&samples, state, cell->cold ? 2 : 2 * BATCH);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add_row(struct sections *sections, struct grid *grid, const struct pool_cell *columns,
                    const struct ar_policy_ops *policy)
{
    size_t row = grid_row(grid, policy->name);
    for (size_t i = 0; row < GRID_ROWS && i < grid->columns; i++) {
        struct pool_cell what = columns[i];
        what.policy = policy;
        void *cell = sections_cell(sections, &what, sizeof what);
        if (!cell)
            return;
        micro_register_timed(grid_name(grid, row, i, "pool/%s/%s/%s", AR_SIZE_EXACT(what.bytes),
                                       what.cold ? "cold" : "warm", policy->name),
                             run, cell);
    }
}

void host_pool_register(struct sections *sections)
{
    static const struct pool_cell columns[] = {
        {.bytes = 512},
        {.bytes = 64 * AR_KIB},
        {.bytes = 4 * AR_MIB},
        {.bytes = 64 * AR_KIB, .cold = true},
        {.bytes = 512, .cold = true},
        {.bytes = 4 * AR_MIB, .cold = true},
    };
    enum { COLUMNS = AR_COUNT(columns) };
    long caches = sysconf(_SC_LEVEL2_CACHE_SIZE) + sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t count = sections->all ? COLUMNS : SOME_COLUMNS,
           buffer_bytes = caches > 0 ? 2 * (size_t)caches : 64 * AR_MIB; /* 0: not told */
    struct pool_cell filled[COLUMNS];
    struct grid *grid = sections_grid(sections,
                                      "nanoseconds per operation through a lock and a map of "
                                      "addresses, warm and with cold caches",
                                      "policy", "ns_per_op");
    sections->cold_buffer = calloc(1, buffer_bytes);
    sections->full |= !sections->cold_buffer;
    if (!grid || sections->full)
        return;
    for (size_t i = 0; i < count; i++) {
        char name[32];
        filled[i] = columns[i];
        filled[i].buffer = sections->cold_buffer;
        filled[i].buffer_bytes = buffer_bytes;
        snprintf(name, sizeof name, "%s %s", AR_SIZE_EXACT(columns[i].bytes),
                 columns[i].cold ? "cold" : "warm");
        grid_column(grid, name);
    }
    const struct ar_policy_ops *policy;
    for (size_t p = 0; (policy = sections_policy(p)); p++)
        add_row(sections, grid, filled, policy);
}
