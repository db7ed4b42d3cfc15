/* Recordings of the stream-ordered pool of the driver on real cards (tests/golden/data/async)
 * compared with the model of the simulated device, event by event: used and reserved bytes, and, if
 * they were recorded, the places of blocks must be equal. */
#include "tests/support/folder_tests.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define FOLDER   "tests/golden/data/async"
#define MOST_IDS 4096

struct recording {
    struct recorded_lines from;
    struct device_rig rig;
    struct ar_policy_block blocks[MOST_IDS];
    uint64_t start; /* the address of the first block */
    uint64_t events, placed;
};

static void compare(struct recording *r, uint64_t used_bytes, uint64_t reserved_bytes)
{
    const struct ar_policy_totals *totals = &r->rig.policy.policy->totals;
    if (totals->granted_bytes != used_bytes || totals->reserved_bytes != reserved_bytes)
        fail_msg("line %" PRIu64 " (%s): %" PRIu64 " bytes used, %" PRIu64 " reserved",
                 r->from.number, r->from.line, totals->granted_bytes, totals->reserved_bytes);
    r->events++;
}

/* `place`: the offset from the first block, in units of 512 bytes. */
static void compare_place(struct recording *r, uint64_t address, uint64_t place)
{
    if (!r->placed++)
        r->start = address;
    if (address != r->start + 512 * place)
        fail_msg("line %" PRIu64 " (%s): the block is at %" PRIu64, r->from.number, r->from.line,
                 (address - r->start) / 512);
}

static void do_line(struct recording *r)
{
    uint64_t id;
    uint64_t used;
    uint64_t reserved;
    uint64_t place;
    struct ar_policy_request request = {0};
    int fields = sscanf(r->from.line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64,
                        &id, &request.bytes, &used, &reserved, &place);
    if (fields >= 4 && id < MOST_IDS) {
        assert_int_equal(ar_policy_alloc(r->rig.policy.policy, &request, &r->blocks[id]), AR_OK);
        if (fields == 5)
            compare_place(r, r->blocks[id].address, place);
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
    char policy[64];
    const char *threshold = strrchr(name, '-') + 1;
    snprintf(policy, sizeof policy, "async:release_threshold=%.*s", (int)strcspn(threshold, "."),
             strncmp(threshold, "zero", 4) ? threshold : "0");
    device_rig_open(&r->rig, policy, "sim:profile=h200");
    while (recorded_next(&r->from))
        do_line(r);
    print_message("%-24s %5" PRIu64 " events, %5" PRIu64 " places\n", name, r->events, r->placed);
    assert_true(r->events > 100);
    assert_int_equal(policy_rig_close(&r->rig.policy), 0);
    assert_int_equal(r->rig.device->counters.physical_bytes, 0);
    ar_device_close(r->rig.device);
    gzclose(r->from.file);
}

int main(void)
{
    return folder_tests_run("async", FOLDER, check_recording);
}
