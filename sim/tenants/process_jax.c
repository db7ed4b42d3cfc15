/* JAX's settings: the environment alone.
 *
 * 1. The limit is a fraction, 0.75, of the card's total memory, taken at once or, without
 *    XLA_PYTHON_CLIENT_PREALLOCATE, grown into.
 * 2. The fraction has two names; both at once raise ValueError.
 * 3. XLA_PYTHON_CLIENT_ALLOCATOR: default and bfc; platform asks the driver each time; cuda_async
 *    is the driver's pool; vmm maps pages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/tenants/process_parts.h"

static enum status read_fraction(struct process_reading *self, double *fraction)
{
    const char *now = process_variable(self, "XLA_CLIENT_MEM_FRACTION");
    const char *before = process_variable(self, "XLA_PYTHON_CLIENT_MEM_FRACTION");
    const char *text = now ? now : before;
    *fraction = 0.75;
    if (now && before)
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "XLA_PYTHON_CLIENT_MEM_FRACTION is the old name of "
                             "XLA_CLIENT_MEM_FRACTION; set only one of the two");
    if (text && (!process_read_number(text, fraction) || !(*fraction > 0) || *fraction > 64))
        return process_raise(self, NULL, PROCESS_VALUE_ERROR,
                             "a memory fraction of \"%s\" is no number above 0", text);
    return STATUS_OK;
}

/* The spec of the pool of one card; false: no such allocator. */
static bool choose_policy(const char *allocator, bool grows, struct process_pool *pool)
{
    if (!strcmp(allocator, "default") || !strcmp(allocator, "bfc"))
        snprintf(pool->policy, sizeof pool->policy, "%s:framework=jax,limit=%" PRIu64,
                 grows ? "growth" : "greedy", pool->limit_bytes);
    else if (!strcmp(allocator, "platform"))
        snprintf(pool->policy, sizeof pool->policy, "direct");
    else if (!strcmp(allocator, "cuda_async"))
        snprintf(pool->policy, sizeof pool->policy, "async:release_threshold=%" PRIu64,
                 pool->limit_bytes);
    else
        return false;
    return true;
}

enum status process_jax(struct process_reading *self)
{
    const char *allocator = process_variable(self, "XLA_PYTHON_CLIENT_ALLOCATOR");
    const char *preallocate = process_variable(self, "XLA_PYTHON_CLIENT_PREALLOCATE");
    bool grows = preallocate && (!strcmp(preallocate, "false") || !strcmp(preallocate, "False") ||
                                 !strcmp(preallocate, "0"));
    double fraction;
    for (size_t i = 0; i < self->line_count; i++) {
        const char *key = self->lines[i].key;
        if (strcmp(key, "framework") != 0 && (*key < 'A' || *key > 'Z'))
            return process_bad_line(self, &self->lines[i],
                                    "JAX is set by its environment, such as "
                                    "XLA_PYTHON_CLIENT_PREALLOCATE");
    }
    enum status status = read_fraction(self, &fraction);
    for (size_t i = 0; i < self->visible_count && !status; i++) {
        struct process_pool *pool;
        status = process_add_pool(self, (uint32_t)i, &pool);
        if (status)
            break;
        pool->grows = grows;
        pool->limit_bytes =
            (uint64_t)((double)self->cards[self->visible[i]].total_bytes * fraction);
        if (!choose_policy(allocator ? allocator : "default", grows, pool))
            status = process_raise(self, NULL, PROCESS_VALUE_ERROR,
                                   "XLA_PYTHON_CLIENT_ALLOCATOR is \"default\", \"bfc\", "
                                   "\"platform\" or \"cuda_async\", not \"%s\"",
                                   allocator);
    }
    return status;
}
