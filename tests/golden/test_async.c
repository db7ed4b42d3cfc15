/* Recordings of the stream-ordered pool of the driver on real cards (tests/golden/data/async)
 * compared with the model of the simulated device, event by event: used and reserved bytes, what
 * is refused, and, if they were recorded, the places of blocks must be equal. */
#include "sim/sim_device/state.h"
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

/* A line is reached a second after the one before it; what a call costs is less. */
static uint64_t line_ns(uint64_t number)
{
    return number * UINT64_C(1000000000);
}

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

/* A kernel that ends just before a line. */
static void hold_up(struct recording *r, uint32_t stream, uint64_t until)
{
    struct ar_device *device = r->rig.device;
    const struct sim_clock *clock = &((const struct sim_device *)device)->clock;
    uint64_t start_ns = clock->now_ns;
    if (stream < clock->stream_count)
        AR_RAISE(start_ns, clock->streams[stream].tail_ns);
    uint64_t end_ns = line_ns(until) - line_ns(1) / 2;
    device->ops->kernel(device, stream, end_ns > start_ns ? end_ns - start_ns : 0);
}

/* An allocation, a refused one, a free, or a synchronisation. False: none of them. */
static bool do_call(struct recording *r)
{
    struct ar_policy *policy = r->rig.policy.policy;
    struct ar_policy_request request = {0};
    uint64_t id = 0;
    uint64_t used;
    uint64_t reserved;
    uint64_t place;
    uint32_t stream = 0;
    const char *line = r->from.line;
    int fields =
        sscanf(line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu32, &id,
               &request.bytes, &used, &reserved, &place, &request.stream);
    if (fields >= 4 && id < MOST_IDS) {
        assert_int_equal(ar_policy_alloc(policy, &request, &r->blocks[id]), AR_OK);
        if (fields >= 5)
            compare_place(r, r->blocks[id].address, place);
    } else if (sscanf(line, "n,%" SCNu64 ",%" SCNu64 ",%" SCNu32 ",%" SCNu64 ",%" SCNu64, &id,
                      &request.bytes, &request.stream, &used, &reserved) == 5) {
        struct ar_policy_block none;
        assert_int_equal(ar_policy_alloc(policy, &request, &none), AR_NO_MEMORY);
    } else if (sscanf(line, "f,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu32, &id, &used, &reserved,
                      &stream) >= 3 &&
               id < MOST_IDS) {
        assert_int_equal(ar_policy_free(policy, &r->blocks[id], stream), AR_OK);
    } else if (sscanf(line, "s,%" SCNu64 ",%" SCNu64, &used, &reserved) == 2) {
        r->rig.device->ops->sync(r->rig.device, UINT32_MAX);
        ar_policy_progress(policy);
    } else {
        return false;
    }
    compare(r, used, reserved);
    return true;
}

static void do_line(struct recording *r)
{
    struct ar_device *device = r->rig.device;
    uint64_t number;
    uint32_t stream;
    uint64_t now_ns = device->ops->now(device);
    if (now_ns < line_ns(r->from.number))
        device->ops->advance(device, line_ns(r->from.number) - now_ns);
    if (sscanf(r->from.line, "h,%" SCNu32 ",%" SCNu64, &stream, &number) == 2)
        hold_up(r, stream, number);
    else if (sscanf(r->from.line, "e,%" SCNu64 ",%" SCNu32, &number, &stream) == 2)
        device->ops->event_record(device, number, stream);
    else if (sscanf(r->from.line, "v,%" SCNu64 ",%" SCNu32, &number, &stream) == 2)
        device->ops->stream_wait(device, stream, number);
    else if (!do_call(r))
        fail_msg("line %" PRIu64 ": %s", r->from.number, r->from.line);
}

static void check_recording(void **state)
{
    const char *name = *state;
    FREED struct recording *r = calloc(1, sizeof *r);
    assert_non_null(r);
    recorded_open(&r->from, FOLDER, name);
    assert_true(r->from.line[0] == '#');
    char policy[256];
    const char *threshold = strrchr(name, '-') + 1;
    const char *with = strstr(r->from.line, "; with ");
    snprintf(policy, sizeof policy, "async:release_threshold=%.*s%s%s",
             (int)strcspn(threshold, "."), strncmp(threshold, "zero", 4) ? threshold : "0",
             with ? "," : "", with ? with + strlen("; with ") : "");
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
