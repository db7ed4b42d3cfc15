/* One deterministic stream of 2000 requests and frees under many policies: the hash of all
 * addresses, what lives at the end, the failures and the reserved bytes, as the imitated
 * allocators' own code, or a model written from it, gave them over a bump address. One row is
 * one configuration; a policy with a known line adds a row here. */
#include <inttypes.h>

#include "allocators/policies/bfc/bfc.h"
#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/test.h"

#define STEPS     2000
#define MOST_LIVE 64

struct stream {
    uint32_t x;
    struct ar_policy *policy;
    struct ar_policy_block live[MOST_LIVE];
    unsigned count;
    uint64_t hash, live_bytes, fails, peak_granted_bytes;
};

static uint32_t draw(struct stream *s)
{
    s->x = (1103515245u * s->x + 12345u) & 0x7fffffffu;
    return s->x >> 8;
}

/* FNV-1a over the eight bytes of an address, lowest first. */
static void hash_address(struct stream *s, uint64_t address)
{
    for (unsigned i = 0; i < 8; i++) {
        s->hash ^= address >> 8 * i & 0xff;
        s->hash *= UINT64_C(0x100000001b3);
    }
}

static uint64_t draw_bytes(struct stream *s)
{
    uint32_t kind = draw(s) % 10;
    if (kind < 5)
        return 1 + draw(s) % 65536;
    if (kind < 8)
        return 1 + draw(s) % 4194304;
    return 1 + (kind == 8 ? 4 : 16) * (uint64_t)draw(s);
}

static void step(struct stream *s)
{
    uint32_t a = draw(s);
    if (s->count == MOST_LIVE || (s->count > 0 && a % 100 < 40)) {
        unsigned j = draw(s) % s->count;
        s->live_bytes -= s->live[j].requested_bytes;
        assert_int_equal(ar_policy_free(s->policy, &s->live[j], 0), AR_OK);
        s->live[j] = s->live[--s->count];
        return;
    }
    struct ar_policy_request request = {.bytes = draw_bytes(s)};
    struct ar_policy_block *block = &s->live[s->count];
    if (ar_policy_alloc(s->policy, &request, block) == AR_OK) {
        hash_address(s, block->address);
        s->live_bytes += request.bytes;
        s->count++;
        if (s->policy->totals.granted_bytes > s->peak_granted_bytes)
            s->peak_granted_bytes = s->policy->totals.granted_bytes;
    } else {
        hash_address(s, UINT64_MAX);
        s->fails++;
    }
}

struct row {
    const char *spec;
    uint64_t cap_bytes; /* of the backing */
    uint64_t hash;
    unsigned live;
    uint64_t live_bytes, fails, reserved_bytes;
    /* 0: not known */
    uint64_t granted_bytes, peak_granted_bytes, flushes, largest_free_block_bytes;
    double fragmentation;                /* (free - largest) / free */
    uint64_t regions, next_region_bytes; /* of the BFC allocator */
};

static const struct row rows[] = {
    {"torch", UINT64_MAX, UINT64_C(0x80e337b9d879704f), 60, 483304663, 0,
     .reserved_bytes = 1499463680, .granted_bytes = 484027392},
    {"torch", AR_GIB, UINT64_C(0xb44753ebfab2ba9a), 60, 483335569, 10, .reserved_bytes = 1059061760,
     .granted_bytes = 483463168},
    {"torch:limit=1GiB", UINT64_MAX, UINT64_C(0xb44753ebfab2ba9a), 60, 483335569, 10,
     .reserved_bytes = 1059061760, .granted_bytes = 483463168},
    {"torch:roundup_power2_divisions=4", UINT64_MAX, UINT64_C(0xac4ddcc419800e27), 60, 483304663, 0,
     .reserved_bytes = 1470103552, .granted_bytes = 531723776},
    /* ranges of 9/8 of a card of 80 GiB: the first at 0, the second at 96636764160 */
    {"torch:expandable_segments=true", 80 * AR_GIB, UINT64_C(0x2163a9284e9127c9), 60, 483304663, 0,
     .reserved_bytes = 1224736768, .granted_bytes = 483318272},
    {"torch:expandable_segments=true", AR_GIB, UINT64_C(0x7575260358318434), 60, 518321739, 4,
     .reserved_bytes = 1012924416},
    {"torch:expandable_segments=true,max_split_size_mb=64", 2 * AR_GIB,
     UINT64_C(0x0c803c1919810a18), 60, 483304663, 0, .reserved_bytes = 2126512128},
    {"tlsf:pool=1GiB,limit=1GiB", UINT64_MAX, UINT64_C(0x9e58d0b7536756ba), 56, 736610232, 8,
     .reserved_bytes = 1073741824},
    {"cupy:ties=address", UINT64_MAX, UINT64_C(0x166c976d38385bb6), 60, 483304663, 0,
     .reserved_bytes = 1486976512, .granted_bytes = 483318272},
    {"cupy:ties=address", AR_GIB, UINT64_C(0x6ff1dbdabf0c8a30), 59, 476947259, 5,
     .reserved_bytes = 1064211456, .granted_bytes = 476961280},
    /* CuPy's std::set with the addresses of objects that CPython hands out, the last freed first */
    {"cupy", UINT64_MAX, UINT64_C(0x768703bf40d98cdb), 60, 483304663, 0,
     .reserved_bytes = 1419591680, .granted_bytes = 483318272},
    {"cupy", AR_GIB, UINT64_C(0xaf92851e0c5e36b9), 60, 476996038, 10, .reserved_bytes = 1034305536,
     .granted_bytes = 477010432},
    {"rmm-pool", UINT64_MAX, UINT64_C(0xcf269c815022ee80), 60, 483304663, 0,
     .reserved_bytes = 1483876352},
    {"rmm-pool:initial_pool_size=1GiB,limit=1GiB", UINT64_MAX, UINT64_C(0x720363bbec554f69), 58,
     750816933, 6, .reserved_bytes = 1073741824},
    {"rmm-arena:arena_size=1GiB", UINT64_MAX, UINT64_C(0xf5c7a9bde515aba4), 59, 483280129, 5,
     .reserved_bytes = 1073741824, .flushes = 5, .largest_free_block_bytes = 267275776},
    {"rmm-arena:limit=2GiB", UINT64_MAX, UINT64_C(0xe05e8c0cfa01258d), 60, 483304663, 0,
     .reserved_bytes = 2147483648},
    /* google/tsl, compiled */
    {"greedy:limit=4GiB", UINT64_MAX, UINT64_C(0xd7ec7ea8ed002e74), 60, 483304663, 0,
     .reserved_bytes = 4294967296, .granted_bytes = 618016256, .peak_granted_bytes = 1179871744,
     .largest_free_block_bytes = 3319714560, .fragmentation = 0.097156, .regions = 1},
    {"growth:limit=4GiB", UINT64_MAX, UINT64_C(0xb717cc6185f54a24), 60, 483304663, 0,
     .reserved_bytes = 2220883968, .granted_bytes = 550595584, .peak_granted_bytes = 1247297792,
     .largest_free_block_bytes = 1073741824, .fragmentation = 0.357152, .regions = 9,
     .next_region_bytes = 2147483648},
    {"growth:limit=1GiB,coalesce=true,garbage_collection=false", UINT64_MAX,
     UINT64_C(0xae59a321499b161a), 62, 653673867, 8, .reserved_bytes = 1073741824,
     .granted_bytes = 895537408, .fragmentation = 0.323971, .regions = 1},
    {"greedy:limit=1GiB", UINT64_MAX, UINT64_C(0x85f721819b4131dc), 60, 477002699, 10,
     .reserved_bytes = 1073741824, .granted_bytes = 629672192, .peak_granted_bytes = 1041217792,
     .fragmentation = 0.360818, .regions = 1},
};

static void check_known(const char *what, uint64_t figure, uint64_t known)
{
    if (known && figure != known)
        fail_msg("%s: %" PRIu64 ", not %" PRIu64, what, figure, known);
}

static void check_regions(const struct row *row, const struct ar_policy_stats *stats,
                          const struct ar_policy *policy)
{
    double free_bytes = (double)ar_policy_free_bytes(&stats->totals);
    double fragmentation = 1 - (double)stats->largest_free_block_bytes / free_bytes;
    assert_float_equal(fragmentation, row->fragmentation, 1e-6);
    assert_int_equal(bfc_region_count(policy), row->regions);
    check_known("next region", bfc_next_region_bytes(policy), row->next_region_bytes);
}

static void check_row(void **state)
{
    const struct row *row = *state;
    FREED struct fake_backing *backing = malloc(sizeof *backing);
    struct ar_host host = {0};
    struct ar_spec spec;
    struct stream s = {.x = 12345, .hash = UINT64_C(0xcbf29ce484222325)};
    assert_non_null(backing);
    fake_backing_open(backing, row->cap_bytes);
    if (strstr(row->spec, "expandable"))
        fake_backing_virtual(backing, 2 * AR_MIB, 80 * AR_GIB);
    struct ar_policy_context context = {.backing = &backing->base, .host = &host};
    assert_ok(ar_spec_parse(row->spec, &spec, &test_error));
    assert_ok(registry_create(&spec, &context, &s.policy, &test_error));
    for (unsigned i = 0; i < STEPS; i++) {
        step(&s);
        if (ar_policy_validate(s.policy, &test_error) != AR_OK)
            fail_msg("step %u: %s", i, test_error.text);
    }
    struct ar_policy_stats stats;
    ar_policy_stats(s.policy, &stats);
    assert_int_equal(s.fails, row->fails);
    assert_int_equal(s.count, row->live);
    assert_int_equal(s.live_bytes, row->live_bytes);
    assert_int_equal(s.hash, row->hash);
    assert_int_equal(stats.count.failures, row->fails);
    assert_int_equal(stats.totals.live_bytes, row->live_bytes);
    assert_int_equal(stats.totals.live_blocks, row->live);
    assert_int_equal(stats.totals.reserved_bytes, row->reserved_bytes);
    check_known("granted", stats.totals.granted_bytes, row->granted_bytes);
    check_known("peak granted", s.peak_granted_bytes, row->peak_granted_bytes);
    check_known("flushes", stats.count.flushes, row->flushes);
    check_known("largest free", stats.largest_free_block_bytes, row->largest_free_block_bytes);
    if (row->regions)
        check_regions(row, &stats, s.policy);
    ar_policy_destroy(s.policy);
    ar_spec_close(&spec);
    assert_int_equal(host.now_bytes, 0);
    assert_int_equal(backing->held_bytes, 0);
}

int main(void)
{
    enum { COUNT = COUNT(rows) };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].spec,
                                       .test_func = check_row,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
