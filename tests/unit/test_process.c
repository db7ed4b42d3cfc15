/* The settings of a process as its framework reads them: a table of lines and their results. Each
 * pool is "CARD POLICY-SPEC". */
#include "allocators/policies/bfc/bfc.h"
#include "allocators/spec.h"
#include "sim/tenants/process.h"
#include "tests/support/test.h"

/* Two cards: 40 GiB, of which 39 are free, and 8 GiB of an older kind, 7.5 free. */
static const struct process_card cards[] = {
    {40 * AR_GIB, 39 * AR_GIB, 8},
    {8 * AR_GIB, 7 * AR_GIB + 512 * AR_MIB, 6},
};

#define TF "framework=tensorflow;"

static void run(const struct process_card *machine, size_t count, const char *text,
                struct process *process, char *outcome, size_t room)
{
    char copy[1024], *rest = NULL;
    struct process_line lines[16];
    size_t line_count = 0;
    struct ar_error error = {""};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, ";", &rest); line; line = strtok_r(NULL, ";", &rest)) {
        char *equal = strchr(line, '=');
        *equal = 0;
        lines[line_count] = (struct process_line){line, equal + 1, (unsigned)line_count + 1};
        line_count++;
    }
    enum ar_status status = process_configure(machine, count, lines, line_count, process, &error);
    outcome[0] = 0;
    if (status == AR_NEGATIVE)
        snprintf(outcome, room, "%s@%u", process_exception_name(process->exception), process->line);
    else if (status)
        snprintf(outcome, room, "INVALID@%u", process->line);
    assert_true(!status == !error.text[0]);
    for (size_t i = 0; i < process->pool_count && !status; i++) {
        size_t length = strlen(outcome);
        snprintf(outcome + length, room - length, "%s%u %s", i ? ";" : "", process->pools[i].card,
                 process->pools[i].policy);
    }
}

TEST(settings_come_out_as_in_the_framework)
{
    for (struct cases row = {0}; cases_next(&row, "process", "settings", 2);) {
        const char *lines = row.field[0], *expected = row.field[1], *warning = row.field[2];
        struct process process;
        char outcome[1024];
        run(cards, 2, lines, &process, outcome, sizeof outcome);
        if (strcmp(outcome, expected) != 0)
            fail_msg("%s\n  gives    %s\n  expected %s", lines, outcome, expected);
        if ((process.warning_count == 1) != (warning != NULL) ||
            (warning && !strstr(process.warnings[0], warning)))
            fail_msg("%s: %zu warnings, the first \"%s\"", lines, process.warning_count,
                     process.warnings[0]);
    }
}

/* A policy accepts the spec of every pool. */
TEST(specs_are_policies)
{
    for (struct cases row = {0}; cases_next(&row, "process", "settings", 2);) {
        struct process process;
        char outcome[1024];
        run(cards, 2, row.field[0], &process, outcome, sizeof outcome);
        for (size_t k = 0; k < process.pool_count; k++) {
            struct ar_spec spec = spec_of(process.pools[k].policy);
            ar_spec_close(&spec);
        }
    }
}

TEST(waits_and_pinned_pools)
{
    EACH_ROW (row, 3) {
        struct process process;
        char outcome[1024];
        run(cards, 2, row.field[0], &process, outcome, sizeof outcome);
        assert_int_equal(process.retries, strcmp(row.field[1], "true") == 0);
        assert_true(!process.retries || process.retry_ms == 10000);
        assert_string_equal(process.pinned_policy, row.field[2]);
    }
}

/* tensorflow#8170: 190.3125 MiB are less than the least that the system is left, so that all of it
 * is tried. pytorch#58466: half of 10989 MB. tensorflow#22239: all of 22.38 GiB where 22.21 are
 * free. */
TEST(figures_of_reports)
{
    struct process process;
    char outcome[1024];
    const struct process_card full = {8504 * AR_MIB, 199557120, 6};
    run(&full, 1, TF, &process, outcome, sizeof outcome);
    assert_int_equal(process.pools[0].limit_bytes, 199557120);
    const struct process_card torch = {10989 * AR_MIB, 10989 * AR_MIB, 7};
    run(&torch, 1, "framework=torch;set_per_process_memory_fraction=0 0.5", &process, outcome,
        sizeof outcome);
    assert_int_equal(process.pools[0].limit_bytes, 10989 * AR_MIB / 2);
    const struct process_card whole = {22917 * AR_MIB, 22743 * AR_MIB, 6};
    run(&whole, 1, TF "per_process_gpu_memory_fraction=1", &process, outcome, sizeof outcome);
    assert_true(process.pools[0].limit_bytes == whole.total_bytes &&
                process.pools[0].limit_bytes > whole.free_bytes);
}

/* The system's part by compute capability, on both sides of 2 GiB. */
TEST(what_the_system_is_left)
{
    static const unsigned mib[] = {500, 1050, 1536, 1800, 1800};
    for (unsigned capability = 6; capability <= 10; capability++) {
        assert_int_equal(bfc_system_bytes(2 * AR_GIB, capability), mib[capability - 6] * AR_MIB);
        assert_int_equal(bfc_system_bytes(2 * AR_GIB - 1, capability), 225 * AR_MIB);
    }
    assert_int_equal(bfc_system_bytes(3 * AR_GIB, 3), 500 * AR_MIB);
    /* other builds, of a little: 255 of 1024 MiB; no less than 300 of 3072; all of 200 */
    EACH_ROW (row, 3) {
        struct process process;
        char outcome[1024];
        const struct process_card card = {8 * AR_GIB, cases_number(&row, 0) * AR_MIB, 7};
        run(&card, 1, row.field[1], &process, outcome, sizeof outcome);
        assert_int_equal(process.pools[0].limit_bytes, cases_number(&row, 2) * AR_MIB);
    }
}
