/* Recordings of the stream-ordered pool of the driver on a real card (tests/golden/data/async)
 * compared with the model of the simulated device, event by event: used bytes must be equal,
 * reserved bytes within a tenth. The greatest deviation of each recording is printed. */
#include "tests/support/folder_tests.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define FOLDER       "tests/golden/data/async"
#define MOST_IDS     4096
#define MOST_PERCENT 10.0

struct recording {
    struct recorded_lines from;
    struct device_rig rig;
    struct ar_policy_block blocks[MOST_IDS];
    uint64_t events, differ;
    double most_percent;
    uint64_t most_at, most_mine, most_theirs;
};

static void compare(struct recording *r, uint64_t used_bytes, uint64_t reserved_bytes)
{
    const struct ar_policy_totals *totals = &r->rig.policy.policy->totals;
    if (totals->granted_bytes != used_bytes)
        fail_msg("line %" PRIu64 " (%s): %" PRIu64 " bytes used", r->from.number, r->from.line,
                 totals->granted_bytes);
    double difference = (double)totals->reserved_bytes - (double)reserved_bytes;
    double percent = 100 * (difference < 0 ? -difference : difference) / (double)reserved_bytes;
    r->events++;
    r->differ += difference != 0;
    if (percent > r->most_percent) {
        r->most_percent = percent;
        r->most_at = r->from.number;
        r->most_mine = totals->reserved_bytes;
        r->most_theirs = reserved_bytes;
    }
}

static void do_line(struct recording *r)
{
    uint64_t id;
    uint64_t used;
    uint64_t reserved;
    struct ar_policy_request request = {0};
    if (sscanf(r->from.line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &request.bytes,
               &used, &reserved) == 4 &&
        id < MOST_IDS) {
        assert_int_equal(ar_policy_alloc(r->rig.policy.policy, &request, &r->blocks[id]), AR_OK);
    } else if (sscanf(r->from.line, "f,%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &used, &reserved) ==
                   3 &&
               id < MOST_IDS) {
        assert_int_equal(ar_policy_free(r->rig.policy.policy, &r->blocks[id], 0), AR_OK);
    } else if (sscanf(r->from.line, "s,%" SCNu64 ",%" SCNu64, &used, &reserved) == 2) {
        r->rig.device->ops->sync(r->rig.device, UINT32_MAX);
        ar_policy_progress(r->rig.policy.policy);
    } else {
        fail_msg("line %" PRIu64 ": %s", r->from.number, r->from.line);
        return;
    }
    compare(r, used, reserved);
}

static void check_recording(void **state)
{
    const char *name = *state;
    FREED struct recording *r = calloc(1, sizeof *r);
    assert_non_null(r);
    recorded_open(&r->from, FOLDER, name);
    assert_true(r->from.line[0] == '#');
    device_rig_open(&r->rig, strstr(name, "-max") ? "async:release_threshold=max" : "async",
                    "sim:profile=h100");
    while (recorded_next(&r->from))
        do_line(r);
    print_message("%-24s %5" PRIu64 " events, %5" PRIu64 " differ, most by %5.2f %%", name,
                  r->events, r->differ, r->most_percent);
    if (r->differ)
        print_message(" (line %" PRIu64 ": %" PRIu64 " MiB, the driver %" PRIu64 ")", r->most_at,
                      r->most_mine >> 20, r->most_theirs >> 20);
    print_message("\n");
    assert_true(r->events > 100);
    assert_true(r->most_percent <= MOST_PERCENT);
    assert_int_equal(policy_rig_close(&r->rig.policy), 0);
    assert_int_equal(r->rig.device->counters.physical_bytes, 0);
    ar_device_close(r->rig.device);
    gzclose(r->from.file);
}

int main(void)
{
    return folder_tests_run("async", FOLDER, check_recording);
}
