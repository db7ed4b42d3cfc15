/* Replays a recording of the XLA allocator on an H100 (data/xla/README.md) and compares each
 * address, the bytes in use, the largest free chunk and the bytes of the pool after each step. The
 * backing returns regions at the recorded addresses and fails the test if a size differs. */
#include "tests/support/bfc_rig.h"
#include "tests/support/test.h"

#define MOST_BLOCKS 4096

struct recorded_backing {
    struct ar_backing base;
    uint64_t bytes, address; /* of the expected region; bytes 0: none */
};

static enum ar_status recorded_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct recorded_backing *self = (struct recorded_backing *)base;
    if (bytes != self->bytes)
        fail_msg("a region of %" PRIu64 " bytes is asked for, recorded was %" PRIu64, bytes,
                 self->bytes);
    *address = self->address;
    self->bytes = 0;
    return AR_OK;
}

static enum ar_status recorded_free(struct ar_backing *base, uint64_t address)
{
    return AR_OK;
}

static void recorded_memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    *free_bytes = UINT64_MAX;
    *total_bytes = UINT64_MAX;
}

static const struct ar_backing_ops recorded_ops = {
    .segment_alloc = recorded_alloc,
    .segment_free = recorded_free,
    .memory = recorded_memory,
};

struct replay {
    struct recorded_backing backing;
    struct ar_host host;
    struct ar_policy *policy;
    struct ar_policy_block blocks[MOST_BLOCKS];
    bool live[MOST_BLOCKS];
    uint64_t pool_bytes, rows, allocs, failures;
    const char *path;
};

static void check_row(const struct replay *r, uint64_t in_use, uint64_t largest)
{
    struct ar_policy_stats stats;
    ar_policy_stats(r->policy, &stats);
    if (stats.totals.granted_bytes != in_use || stats.largest_free_block_bytes != largest ||
        stats.totals.reserved_bytes != r->pool_bytes || r->backing.bytes != 0)
        fail_msg("%s, row %" PRIu64 ": in use %" PRIu64 " for %" PRIu64 ", largest %" PRIu64
                 " for %" PRIu64 ", pool %" PRIu64 " for %" PRIu64,
                 r->path, r->rows, stats.totals.granted_bytes, in_use,
                 stats.largest_free_block_bytes, largest, stats.totals.reserved_bytes,
                 r->pool_bytes);
    if (ar_policy_validate(r->policy, &test_error) != AR_OK)
        fail_msg("%s, row %" PRIu64 ": %s", r->path, r->rows, test_error.text);
}

static void replay_alloc(struct replay *r, uint64_t id, uint64_t bytes, int64_t address)
{
    assert_true(id < MOST_BLOCKS && !r->live[id]);
    struct ar_policy_request request = {.bytes = bytes};
    enum ar_status status = ar_policy_alloc(r->policy, &request, &r->blocks[id]);
    int64_t got = status == AR_OK ? (int64_t)r->blocks[id].address : -1;
    if (got != address)
        fail_msg("%s, row %" PRIu64 ": %" PRIu64 " bytes at %" PRId64 ", recorded %" PRId64,
                 r->path, r->rows, bytes, got, address);
    assert_true(status == AR_OK || status == AR_NO_MEMORY);
    r->live[id] = status == AR_OK;
    r->allocs++;
    r->failures += status != AR_OK;
}

static void replay_line(struct replay *r, const char *line)
{
    uint64_t id, bytes, in_use, largest;
    int64_t address;
    if (sscanf(line, "r,%" SCNu64 ",%" SCNu64, &r->backing.bytes, &r->backing.address) == 2) {
        r->pool_bytes += r->backing.bytes;
        return;
    }
    r->rows++;
    if (sscanf(line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNd64 ",%" SCNu64 ",%" SCNu64, &id, &bytes,
               &address, &in_use, &largest) == 5) {
        replay_alloc(r, id, bytes, address);
    } else if (sscanf(line, "f,%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &in_use, &largest) == 3) {
        assert_true(id < MOST_BLOCKS);
        if (r->live[id])
            assert_int_equal(ar_policy_free(r->policy, &r->blocks[id], 0), AR_OK);
        r->live[id] = false;
    } else {
        fail_msg("%s, row %" PRIu64 ": cannot read \"%s\"", r->path, r->rows, line);
    }
    check_row(r, in_use, largest);
}

static void replay_file(const char *path, const char *policy, uint64_t rows, uint64_t failures)
{
    FREED struct replay *r = calloc(1, sizeof *r);
    assert_non_null(r);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s: run the tests from the root of the repository", path);
    r->path = path;
    r->backing.base = (struct ar_backing){.ops = &recorded_ops, .granule_bytes = 512};
    char line[256], spec[128];
    uint64_t limit;
    assert_non_null(fgets(line, sizeof line, file)); /* the comment */
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(sscanf(line, "limit,%" SCNu64, &limit), 1);
    snprintf(spec, sizeof spec, "%s:framework=jax,limit=%" PRIu64, policy, limit);
    struct ar_policy_context context = {.backing = &r->backing.base, .host = &r->host};
    if (bfc_rig_make(spec, &context, &r->policy, &test_error) != AR_OK)
        fail_msg("%s: %s", spec, test_error.text);
    while (fgets(line, sizeof line, file))
        replay_line(r, line);
    fclose(file);
    assert_int_equal(r->rows, rows);
    assert_int_equal(r->failures, failures);
    ar_policy_destroy(r->policy);
    assert_int_equal(r->host.now_bytes, 0);
}

#define DATA "tests/golden/data/xla/"

TEST(test_growing)
{
    replay_file(DATA "growth-edges.csv", "growth", 175, 0);
    replay_file(DATA "growth-holes.csv", "growth", 224, 0);
    replay_file(DATA "growth-random_small.csv", "growth", 3000, 0);
    replay_file(DATA "growth-embedding_growth.csv", "growth", 498, 0);
    replay_file(DATA "growth-tape.csv", "growth", 780, 0);
}

TEST(test_growing_past_the_limit)
{
    replay_file(DATA "growth-past_limit.csv", "growth", 357, 2);
}

TEST(test_preallocating)
{
    replay_file(DATA "prealloc-edges.csv", "greedy", 175, 0);
    replay_file(DATA "prealloc-holes.csv", "greedy", 224, 0);
    replay_file(DATA "prealloc-tape.csv", "greedy", 780, 0);
}
