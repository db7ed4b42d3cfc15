/* Several processes on one machine: their shares of a card, failures and their causes, released
 * memory, and waits for memory. Workloads are small text traces in whole MiB. */
#include <unistd.h>

#include "bench/suite/tenants_suite.h"
#include "sim/tenants/tenants.h"
#include "tests/support/temporary_file.h"
#include "tests/support/test.h"

static struct tenants_card card_of(const char *text)
{
    struct tenants_card card = {.compute_capability = 9};
    assert_int_equal(ar_spec_parse(text, &card.device, NULL), AR_OK);
    return card;
}

/* A trace in a file that `forget` removes. */
static char *write_trace(const char *events)
{
    char *path = strdup("/tmp/allocrig-tenants-XXXXXX");
    int file = mkstemp(path);
    FILE *stream = fdopen(file, "w");
    fprintf(stream, "# allocrig-trace 1\n%s", events);
    fclose(stream);
    return path;
}

static void forget(char *path)
{
    unlink(path);
    free(path);
}

/* 1 GiB is live for three steps; each step allocates and frees 512 MiB. */
#define HOLDER                                                                                     \
    "a,0,1073741824\na,1,536870912\nf,1\nm,step\n"                                                 \
    "a,2,536870912\nf,2\nm,step\na,3,536870912\nf,3\nm,step\nf,0\n"

/* The workload of a process, of an array with one. */
#define PLAYS(paths) .workloads = (paths), .workload_count = 1

static const struct process_line greedy_lines[] = {{"framework", "tensorflow", 1}};
static const struct process_line growth_lines[] = {{"framework", "tensorflow", 1},
                                                   {"set_memory_growth", "all true", 2}};

static const struct process_line limited_lines[] = {{"framework", "tensorflow", 1},
                                                    {"set_logical_devices", "0 1100", 2}};

static enum ar_status run(struct tenants *tenants, const char *card, struct tenant_result *results,
                          struct ar_error *error)
{
    struct tenants_card machine = card_of(card);
    tenants->cards = &machine;
    tenants->card_count = 1;
    enum ar_status status = tenants_run(tenants, results, error);
    ar_spec_close(&machine.device);
    return status;
}

TEST(the_second_greedy_one_finds_too_little)
{
    char *path = write_trace(HOLDER);
    const char *workloads[] = {path};
    struct tenant_setup setups[2];
    struct tenant_result results[2];
    for (int i = 0; i < 2; i++)
        setups[i] = (struct tenant_setup){
            .name = i ? "second" : "first",
            .lines = greedy_lines,
            .line_count = COUNT(greedy_lines),
            PLAYS(workloads),
            .context_bytes = 100 * AR_MIB,
            .arrives = (uint64_t)i,
        };
    struct tenants tenants = {.setups = setups, .count = 2};
    assert_ok(run(&tenants, "sim:profile=h100,capacity=8GiB", results, &test_error));
    assert_int_equal(results[0].outcome, TENANT_PASSED);
    assert_int_equal(results[0].steps, 3);
    /* 8 GiB - 100 MiB of context - 1800 MiB for the system */
    assert_int_equal(results[0].peak_reserved_bytes, 8 * AR_GIB - 1900 * AR_MIB);
    /* 1800 MiB are left, 100 of them for its context, 225 of the rest for the system: 1475 MiB hold
     * 1 GiB, and no 512 MiB beside it. */
    assert_int_equal(results[1].outcome, TENANT_FAILED);
    assert_int_equal(results[1].cause, REPLAY_CAUSE_TENANT);
    assert_int_equal(results[1].refused_by, 0);
    assert_int_equal(results[1].refused_bytes, 512 * AR_MIB);
    assert_int_equal(results[1].failed_step, 0);
    assert_int_equal(results[1].peak_reserved_bytes, 1475 * AR_MIB);
    forget(path);
}

/* tensorflow#8170: 190.3125 MiB are free when the second one comes, all of it is tried. */
TEST(all_of_little_is_tried)
{
    char *holder = write_trace(HOLDER), *small = write_trace("a,0,1048576\nm,step\n");
    const char *holds[] = {holder}, *asks[] = {small};
    const struct tenant_setup setups[] = {
        {.name = "first", .policy = "greedy:framework=tf,limit=8388608000", PLAYS(holds)},
        {.name = "second",
         .lines = greedy_lines,
         .line_count = COUNT(greedy_lines),
         PLAYS(asks),
         .arrives = 1},
    };
    struct tenants tenants = {.setups = setups, .count = 2};
    struct tenant_result results[2];
    /* 8000 MiB and 190 MiB in whole pages of 2 MiB */
    assert_ok(run(&tenants, "sim:profile=h100,capacity=8190MiB", results, &test_error));
    assert_int_equal(results[0].outcome, TENANT_PASSED);
    assert_int_equal(results[1].outcome, TENANT_PASSED);
    assert_int_equal(results[1].peak_reserved_bytes, 190 * AR_MIB);
    forget(holder);
    forget(small);
}

TEST(growth_lets_two_in)
{
    char *path = write_trace(HOLDER);
    const char *workloads[] = {path};
    struct tenant_setup setups[2];
    struct tenant_result results[2];
    for (int i = 0; i < 2; i++)
        setups[i] = (struct tenant_setup){.name = i ? "second" : "first",
                                          .lines = growth_lines,
                                          .line_count = COUNT(growth_lines),
                                          PLAYS(workloads),
                                          .arrives = (uint64_t)i};
    struct tenants tenants = {.setups = setups, .count = 2};
    assert_ok(run(&tenants, "sim:profile=h100,capacity=8GiB", results, &test_error));
    assert_int_equal(results[0].outcome, TENANT_PASSED);
    assert_int_equal(results[1].outcome, TENANT_PASSED);
    forget(path);
}

/* The first one gives its memory back when it ends. The second's framework waits ten seconds for a
 * request, free: the first one ends within them. PyTorch does not wait and fails. */
TEST(a_request_waits_for_memory)
{
    char *holder =
        write_trace("a,0,1073741824\nk,0,1000000000\nm,step\nk,0,1000000000\nm,step\nf,0\n");
    char *asker = write_trace("k,0,1000\na,0,1073741824\nm,step\n");
    const char *holds[] = {holder}, *asks[] = {asker};
    for (int waits = 0; waits < 2; waits++) {
        const struct tenant_setup setups[] = {
            {.name = "holder", .policy = "direct", PLAYS(holds)},
            {.name = "asker",
             .policy = waits ? NULL : "direct",
             .lines = waits ? limited_lines : NULL,
             .line_count = 2,
             PLAYS(asks)},
        };
        struct tenants tenants = {
            .setups = setups, .count = 2, .free = true, .seed = 1, .turn_events = 1};
        struct tenant_result results[2];
        struct tenants_card machine = card_of("sim:profile=h100,capacity=1536MiB");
        tenants.cards = &machine;
        tenants.card_count = 1;
        assert_ok(tenants_run(&tenants, results, &test_error));
        ar_spec_close(&machine.device);
        assert_int_equal(results[0].outcome, TENANT_PASSED);
        if (waits) {
            assert_int_equal(results[1].retries_waited, 1);
            assert_int_equal(results[1].outcome, TENANT_PASSED);
        } else {
            assert_int_equal(results[1].outcome, TENANT_FAILED);
            assert_int_equal(results[1].cause, REPLAY_CAUSE_TENANT);
        }
    }
    forget(holder);
    forget(asker);
}

TEST(settings_that_are_refused_keep_a_process_away)
{
    static const struct process_line late[] = {{"framework", "tensorflow", 1},
                                               {"initialize", "yes", 2},
                                               {"set_memory_growth", "all true", 3}};
    char *path = write_trace(HOLDER);
    const char *workloads[] = {path};
    const struct tenant_setup setups[] = {
        {.name = "late", .lines = late, .line_count = 3, PLAYS(workloads)},
        {.name = "big", .policy = "torch", PLAYS(workloads), .context_bytes = 16 * AR_GIB},
        {.name = "unplaced",
         .policy = "torch",
         PLAYS(workloads),
         .placement = TENANT_FIRST_FIT,
         .needs_bytes = 9 * AR_GIB},
        {.name = "fine", .policy = "torch", PLAYS(workloads)},
    };
    struct tenants tenants = {.setups = setups, .count = 4};
    struct tenant_result results[4];
    assert_ok(run(&tenants, "sim:profile=h100,capacity=8GiB", results, &test_error));
    assert_int_equal(results[0].outcome, TENANT_REFUSED_SETTINGS);
    assert_non_null(strstr(results[0].why, "RuntimeError"));
    assert_int_equal(results[1].outcome, TENANT_NO_ROOM);
    assert_int_equal(results[2].outcome, TENANT_NO_ROOM);
    assert_int_equal(results[3].outcome, TENANT_PASSED);
    forget(path);
}

/* A process that stays keeps its memory and leaves at its given round. */
TEST(what_stays_is_held_until_it_leaves)
{
    char *path = write_trace(HOLDER);
    const char *workloads[] = {path};
    struct tenant_setup setups[] = {
        {.name = "stays", .policy = "torch", PLAYS(workloads), .stays = true, .leaves = 6},
        {.name = "early", .policy = "torch", PLAYS(workloads), .arrives = 4},
        {.name = "late", .policy = "torch", PLAYS(workloads), .arrives = 6},
    };
    struct tenants tenants = {.setups = setups, .count = 3};
    struct tenant_result results[3];
    assert_ok(run(&tenants, "sim:profile=h100,capacity=2GiB", results, &test_error));
    assert_int_equal(results[0].outcome, TENANT_PASSED);
    assert_int_equal(results[0].end_physical_bytes, 1536 * AR_MIB);
    assert_int_equal(results[1].outcome, TENANT_FAILED);
    assert_int_equal(results[1].refused_by, 0);
    assert_int_equal(results[2].outcome, TENANT_PASSED);
    forget(path);
}

/* The same seed gives the same bytes, and each pool of a process has its own workload. */
TEST(runs_repeat)
{
    char *path = write_trace(HOLDER);
    const char *workloads[] = {path, "linear_ramp"};
    static const struct process_line pools[] = {{"framework", "tensorflow", 1},
                                                {"set_logical_devices", "0 2048 1024", 2}};
    const struct tenant_setup setups[] = {
        {.name = "two_pools",
         .lines = pools,
         .line_count = 2,
         .workloads = workloads,
         .workload_count = 2,
         .context_bytes = 10 * AR_MIB},
        {.name = "other", .policy = "vmm", PLAYS(workloads)},
    };
    struct tenant_result results[2][2];
    for (int i = 0; i < 2; i++) {
        struct tenants tenants = {.setups = setups, .count = 2, .free = true, .seed = 7};
        assert_ok(run(&tenants, "sim:profile=h100,capacity=8GiB", results[i], &test_error));
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_int_equal(results[0][0].peak_reserved_bytes, 3072 * AR_MIB);
    forget(path);
}

/* The events of a turn, in a suite of tenants. */
TEST(turns_have_a_bound)
{
    static const char *const counts[] = {"0", "1073741824", "1073741823"};
    static struct tenants_suite suite;
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "[run]\nturn_events = %s\n", counts[i]);
        struct temporary_file file = temporary_file(text);
        assert_says(tenants_suite_read(file.path, &suite, &test_error), AR_FORMAT,
                    i < 2 ? "1 to 2^30 events" : "a machine has cards");
        unlink(file.path);
    }
}
