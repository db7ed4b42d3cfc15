/* MiniMalloc's lifetimes (tests/golden/data/planning): the live peak, and what placing the
 * largest first comes to, as measured with other code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "allocators/planning/exact.h"
#include "allocators/planning/orders.h"
#include "tests/support/planning_rig.h"

#define FOLDER "tests/golden/data/planning/"

static void look(const char *path, size_t wanted_count, uint64_t peak_bytes, double by_size)
{
    size_t count;
    uint64_t top_bytes;
    struct host host = {0};
    struct packing packing;
    struct error error;
    struct packing_block *blocks = planning_rig_read(path, &count);
    uint64_t *offsets = calloc(count, sizeof *offsets);
    assert_non_null(offsets);
    assert_int_equal(count, wanted_count);
    assert_int_equal(packing_open(&packing, &host, blocks, count, &error), STATUS_OK);
    assert_int_equal(packing.peak_bytes, peak_bytes);
    assert_int_equal(
        packing_place_by(&packing, PACKING_ORDER_size, PACKING_NOWHERE, offsets, &top_bytes, NULL),
        STATUS_OK);
    assert_true(planning_rig_is_plan(blocks, count, offsets, top_bytes));
    double ratio = (double)top_bytes / (double)peak_bytes;
    assert_true(ratio > by_size - 0.0005 && ratio < by_size + 0.0005);
    packing_close(&packing);
    assert_int_equal(host.now_bytes, 0);
    free(offsets);
    free(blocks);
}

static void a_has_its_peak_and_ratio(void **state)
{
    (void)state;
    look(FOLDER "A.1048576.csv", 154, 1048576, 1.290);
}

static void c_has_its_peak_and_ratio(void **state)
{
    (void)state;
    look(FOLDER "C.1048576.csv", 203, 1039360, 1.3635);
}

static void j_has_its_peak_and_ratio(void **state)
{
    (void)state;
    look(FOLDER "J.1048576.csv", 409, 989184, 1.318);
}

/* The search without a clock: the same steps everywhere. */
static void solve(const char *path)
{
    size_t count;
    struct host host = {0};
    struct packing packing;
    struct packing_best best;
    struct packing_exact exact;
    const struct packing_exact_options options = {.steps_most = 50000};
    struct packing_block *blocks = planning_rig_read(path, &count);
    uint64_t *offsets = calloc(count, sizeof *offsets);
    assert_non_null(offsets);
    assert_int_equal(packing_open(&packing, &host, blocks, count, NULL), STATUS_OK);
    assert_int_equal(packing_best_order(&packing, offsets, &best), STATUS_OK);
    exact.top_bytes = best.top_bytes;
    assert_int_equal(packing_exact(&packing, &options, offsets, &exact), STATUS_OK);
    assert_int_equal(exact.end, PACKING_EXACT_MEETS_BOUND);
    assert_int_equal(exact.top_bytes, packing.peak_bytes);
    assert_true(planning_rig_is_plan(blocks, count, offsets, packing.peak_bytes));
    packing_close(&packing);
    assert_int_equal(host.now_bytes, 0);
    free(offsets);
    free(blocks);
}

static void a_and_c_need_no_more_than_their_peak(void **state)
{
    (void)state;
    solve(FOLDER "A.1048576.csv");
    solve(FOLDER "C.1048576.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_has_its_peak_and_ratio),
        cmocka_unit_test(c_has_its_peak_and_ratio),
        cmocka_unit_test(j_has_its_peak_and_ratio),
        cmocka_unit_test(a_and_c_need_no_more_than_their_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
