/* Parts of the simulated device, compared with slow copies: the tree of ranges, and the uses. */
#include <unistd.h>

#include "allocators/base/rng.h"
#include "sim/device_memory/device_memory.h"
#include "tests/support/test.h"

#define SPACE 512

TEST(ranges_against_a_list)
{
    static struct range nodes[SPACE];
    struct ranges ranges = {NULL, 0};
    struct range *owner[SPACE] = {NULL}; /* of each number */
    struct ar_rng rng = ar_rng_of(1);
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        uint64_t start = ar_rng_below(&rng, SPACE), end = start + 1 + ar_rng_below(&rng, 8);
        if (end > SPACE)
            end = SPACE;
        bool taken = false;
        for (uint64_t i = start; i < end; i++)
            taken |= owner[i] != NULL;
        assert_int_equal(ranges_overlap(&ranges, start, end), taken);
        if (owner[start]) {
            struct range *gone = owner[start];
            for (uint64_t i = gone->start; i < gone->end; i++)
                owner[i] = NULL;
            ranges_remove(&ranges, gone);
            count--;
        } else if (!taken) {
            nodes[start].start = start;
            nodes[start].end = end;
            ranges_insert(&ranges, &nodes[start]);
            for (uint64_t i = start; i < end; i++)
                owner[i] = &nodes[start];
            count++;
        }
        assert_int_equal(ranges.count, count);
        uint64_t at = ar_rng_below(&rng, SPACE);
        assert_ptr_equal(ranges_find(&ranges, at), owner[at]);
        while (at < SPACE && !owner[at])
            at++;
        assert_ptr_equal(ranges_from(&ranges, at), at < SPACE ? owner[at] : NULL);
    }
}

static int tree_depth(const struct range *range)
{
    if (!range)
        return 0;
    int left = tree_depth(range->left), right = tree_depth(range->right);
    return 1 + (left > right ? left : right);
}

TEST(rising_addresses_make_no_list)
{
    enum { COUNT = 100000 };
    FREED struct range *nodes = calloc(COUNT, sizeof *nodes);
    struct ranges ranges = {NULL, 0};
    assert_non_null(nodes);
    for (uint64_t i = 0; i < COUNT; i++) {
        nodes[i].start = i << 21;
        nodes[i].end = (i + 1) << 21;
        ranges_insert(&ranges, &nodes[i]);
    }
    assert_in_range(tree_depth(ranges.root), 17, 60);
}

/* The last use of each number by each stream, as a table. */
struct table {
    uint64_t sequence[SPACE][3];
    uint64_t seen[SPACE][3];
};

static bool see(void *argument, const struct sim_use *use, uint64_t start, uint64_t end)
{
    struct table *table = argument;
    for (uint64_t i = start; i < end; i++)
        table->seen[i][use->stream] = use->sequence;
    return true;
}

TEST(uses_against_a_table)
{
    static struct table table;
    CLOSED(sim_hazards_close) struct sim_hazards hazards = {{NULL, 0}};
    struct ar_rng rng = ar_rng_of(2);
    memset(&table, 0, sizeof table);
    for (uint64_t step = 1; step < 20000; step++) {
        uint64_t start = ar_rng_below(&rng, SPACE - 64), end = start + 1 + ar_rng_below(&rng, 64);
        uint32_t stream = (uint32_t)ar_rng_below(&rng, 3);
        bool use = ar_rng_below(&rng, 2);
        memset(table.seen, 0, sizeof table.seen);
        assert_true(sim_hazards_visit(&hazards, start, end, see, &table));
        for (uint64_t i = start; i < end; i++)
            for (uint32_t s = 0; s < 3; s++) {
                assert_int_equal(table.seen[i][s], table.sequence[i][s]);
                if (!use)
                    table.sequence[i][s] = 0;
                else if (s == stream)
                    table.sequence[i][s] = step;
            }
        if (use)
            assert_true(sim_hazards_use(&hazards, start, end,
                                        &(struct sim_use){.sequence = step, .stream = stream}));
        else
            assert_true(sim_hazards_forget(&hazards, start, end));
    }
    assert_true(sim_hazards_forget(&hazards, 0, SPACE));
    assert_int_equal(hazards.ranges.count, 0);
}

/* Freed memory is cleaned at 1.5 bytes each ns, also within a microsecond: a request for all of it
 * waits for what is left, rounded up to a whole ns. */
TEST(freed_memory_is_cleaned_all_the_time)
{
    EACH_ROW (row, 3) {
        struct sim_ledger ledger = {
            .unit_bytes = 1, .capacity_bytes = 1000000, .cleaning_bytes_per_us = 1500};
        sim_ledger_charge(&ledger, 900000);
        sim_ledger_release(&ledger, 900000, 0);
        assert_int_equal(
            sim_ledger_cleaning_ns(&ledger, cases_number(&row, 1), 0, cases_number(&row, 0)),
            cases_number(&row, 2));
    }
}
