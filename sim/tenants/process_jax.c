/* JAX's settings: the environment alone.
 *
 * 1. The limit is a fraction, 0.75, of the card's total memory, taken at once or, without
 *    XLA_PYTHON_CLIENT_PREALLOCATE, grown into. "0.3-0.8" under its newer name: a first region of the
 *    one part, and growth up to the other.
 * 2. The fraction has two names; both at once raise ValueError.
 * 3. XLA_PYTHON_CLIENT_ALLOCATOR: default and bfc; platform asks the driver each time; cuda_async
 *    is the driver's pool, which waits for the stream and tries once more; vmm maps pages.
 * 4. gpu_system_memory_size, an option of XLA, is the size of the pool in bytes and goes before the fraction.
 * 5. Pinned host memory is a growing pool of 64 GiB. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"
#include "sim/tenants/process_parts.h"

/* What it starts with and what it may come to, as parts of the total. */
struct fractions {
    double start, cap;
};

/* "0.3-0.8": a start and a cap, of the newest configuration. */
static bool read_range(const char *text, struct fractions *fractions)
{
    char start[32];
    const char *dash = strchr(text, '-');
    if (!dash || dash == text || (size_t)(dash - text) >= sizeof start)
        return false;
    memcpy(start, text, (size_t)(dash - text));
    start[dash - text] = '\0';
    return process_read_number(start, &fractions->start) &&
           process_read_number(dash + 1, &fractions->cap) && fractions->start > 0 &&
           fractions->start <= fractions->cap && fractions->cap <= 1;
}

static enum ar_status read_fraction(struct process_reading *self, struct fractions *fractions)
{
    const char *now = process_variable(self, "XLA_CLIENT_MEM_FRACTION");
    const char *before = process_variable(self, "XLA_PYTHON_CLIENT_MEM_FRACTION");
    const char *text = now ? now : before;
    *fractions = (struct fractions){0.75, 0.75};
    if (now && before)
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "XLA_PYTHON_CLIENT_MEM_FRACTION is the old name of "
                             "XLA_CLIENT_MEM_FRACTION; set only one of the two");
    if (!text || (now && read_range(now, fractions)))
        return AR_OK;
    if (!process_read_number(text, &fractions->cap) || !(fractions->cap > 0) || fractions->cap > 64)
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "a memory fraction of \"%s\" is no number above 0", text);
    fractions->start = fractions->cap;
    return AR_OK;
}

enum allocator { ALLOCATOR_BFC, ALLOCATOR_PLATFORM, ALLOCATOR_VMM, ALLOCATOR_ASYNC };

/* "" is what there is where none is named. */
static bool find_allocator(const char *name, enum allocator *found)
{
    static const struct {
        const char *name;
        enum allocator allocator;
    } known[] = {
        {"", ALLOCATOR_BFC},    {"default", ALLOCATOR_BFC},
        {"bfc", ALLOCATOR_BFC}, {"platform", ALLOCATOR_PLATFORM},
        {"vmm", ALLOCATOR_VMM}, {"cuda_async", ALLOCATOR_ASYNC},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) {
            *found = known[i].allocator;
            return true;
        }
    return false;
}

/* The spec of the pool of one card. */
static void choose_policy(enum allocator allocator, uint64_t start_bytes, struct process_pool *pool)
{
    char first[48] = "";
    switch (allocator) {
    case ALLOCATOR_BFC:
        if (start_bytes < pool->limit_bytes)
            snprintf(first, sizeof first, ",first_region=%" PRIu64, start_bytes);
        snprintf(pool->policy, sizeof pool->policy, "%s:framework=jax,limit=%" PRIu64 "%s",
                 pool->grows ? "growth" : "greedy", pool->limit_bytes, first);
        break;
    case ALLOCATOR_PLATFORM:
        snprintf(pool->policy, sizeof pool->policy, "direct");
        break;
    case ALLOCATOR_VMM:
        snprintf(pool->policy, sizeof pool->policy, "direct:limit=%" PRIu64, pool->limit_bytes);
        break;
    case ALLOCATOR_ASYNC:
        snprintf(pool->policy, sizeof pool->policy,
                 "async:release_threshold=%" PRIu64 ",retry=true", pool->limit_bytes);
        break;
    }
}

/* What the framework takes, and this model does without. */
static void warn_of_the_rest(struct process_reading *self, enum allocator allocator)
{
    if (process_variable(self, "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"))
        process_warn(self, "the pool for collectives is not modelled");
    if (process_variable(self, "TF_FORCE_UNIFIED_MEMORY"))
        process_warn(self, "unified memory is not modelled: a GPU has no more than its own");
    if (allocator == ALLOCATOR_VMM)
        process_warn(self, "vmm is taken for one driver allocation for each request");
}

enum ar_status process_jax(struct process_reading *self)
{
    const char *named = process_variable(self, "XLA_PYTHON_CLIENT_ALLOCATOR");
    const char *preallocate = process_variable(self, "XLA_PYTHON_CLIENT_PREALLOCATE");
    bool grows = preallocate && (!strcmp(preallocate, "false") || !strcmp(preallocate, "False") ||
                                 !strcmp(preallocate, "0"));
    struct fractions fractions;
    uint64_t pool_bytes = 0; /* 0: by the fraction */
    for (size_t i = 0; i < self->line_count; i++) {
        const char *key = self->lines[i].key;
        if (!strcmp(key, "framework") || (*key >= 'A' && *key <= 'Z'))
            continue;
        if (strcmp(key, "gpu_system_memory_size") != 0)
            return process_bad_line(self, &self->lines[i],
                                    "JAX is set by its environment, such as "
                                    "XLA_PYTHON_CLIENT_PREALLOCATE, and gpu_system_memory_size");
        if (ar_count_parse(self->lines[i].value, &pool_bytes, NULL) || !pool_bytes)
            return process_bad_line(self, &self->lines[i], "a number of bytes");
    }
    enum allocator allocator;
    if (named && !strcmp(named, "address"))
        return ar_error_set(
            self->error, AR_INVALID,
            "XLA_PYTHON_CLIENT_ALLOCATOR=address is not modelled; there are default, "
            "bfc, platform, cuda_async and vmm");
    if (!find_allocator(named ? named : "", &allocator))
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "XLA_PYTHON_CLIENT_ALLOCATOR is \"default\", \"bfc\", "
                             "\"platform\", \"cuda_async\" or \"vmm\", not \"%s\"",
                             named);
    enum ar_status status = read_fraction(self, &fractions);
    snprintf(self->process->pinned_policy, sizeof self->process->pinned_policy,
             "growth:framework=jax,limit=%" PRIu64, 64 * AR_GIB);
    if (!status)
        warn_of_the_rest(self, allocator);
    for (size_t i = 0; i < self->visible_count && !status; i++) {
        struct process_pool *pool;
        status = process_add_pool(self, (uint32_t)i, &pool);
        if (status)
            break;
        double total_bytes = (double)self->cards[self->visible[i]].total_bytes;
        pool->grows = grows || fractions.start < fractions.cap;
        pool->limit_bytes = pool_bytes ? pool_bytes : (uint64_t)(total_bytes * fractions.cap);
        choose_policy(allocator,
                      pool_bytes ? pool_bytes : (uint64_t)(total_bytes * fractions.start), pool);
    }
    return status;
}
