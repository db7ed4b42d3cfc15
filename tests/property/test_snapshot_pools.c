/* Random programs with private pools, side streams and releases, as snapshots that do not tell the
 * pools: whichever pools are found, the policy must come to every address with them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/base/rng.h"
#include "tests/support/snapshot_layouts.h"
#include "tests/support/snapshot_runs.h"
#include "tests/support/trace_rig.h"

enum { PROGRAMS = 60, EVENTS = 400, LIVE_MOST = 40 };

struct live {
    uint64_t id;
    unsigned pool;
};

/* A program in which a pool is on a stream of its own, as graphs have it, or not. */
static void write_program(const char *path, uint64_t seed)
{
    struct live live[LIVE_MOST];
    size_t count = 0;
    uint64_t id = 0;
    struct rng rng;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    rng_seed(&rng, seed);
    fprintf(file, "# allocrig-trace 1\nt,0\n");
    for (unsigned i = 0; i < EVENTS; i++) {
        if (rng_below(&rng, 60) == 0)
            fprintf(file, "c\n");
        if (count == LIVE_MOST || (count && rng_below(&rng, 2))) {
            size_t which = rng_below(&rng, count);
            fprintf(file, "f,%" PRIu64 "\n", live[which].id);
            live[which] = live[--count];
            continue;
        }
        unsigned pool = (unsigned)(rng_below(&rng, 3) ? 0 : rng_below(&rng, 4));
        unsigned stream = pool ? (seed & 1) : (unsigned)rng_below(&rng, 2);
        uint64_t bytes = (1 + rng_below(&rng, 64)) << (9 + rng_below(&rng, 14));
        fprintf(file, "a,%" PRIu64 ",%" PRIu64 ",%u,pool=%u\n", id, bytes, stream, pool);
        live[count++] = (struct live){id++, pool};
    }
    assert_int_equal(fclose(file), 0);
}

static void pools_are_found_again(void **state)
{
    struct trace_rig rig;
    (void)state;
    trace_rig_open(&rig);
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        struct run_snapshot run;
        write_program(rig.path[0], seed);
        snapshot_run(&run, "torch", rig.path[0]);
        for (size_t i = 0; i < snapshot_layout_count; i++)
            for (size_t part = 0; part < 3; part++) {
                if (snapshot_layouts[i].keys & LAYOUT_NO_HISTORY)
                    continue;
                const struct snapshot_layout_options options = {
                    .form = SNAPSHOT_PICKLE_4, .dropped = part * run.image.entry_count / 3};
                char what[120];
                snprintf(what, sizeof what, "seed %" PRIu64 ", layout %s, %zu entries dropped",
                         seed, snapshot_layouts[i].name, options.dropped);
                snapshot_layout_write(rig.path[1], &snapshot_layouts[i], &run.image, &options);
                struct trace_source *source = snapshot_open(rig.path[1], NULL, what);
                snapshot_check_agrees(source, what);
                trace_close(source);
            }
        run_snapshot_close(&run);
    }
    trace_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
