/* Recordings of the stream-ordered pool of the driver on a real card (tests/golden/data/async)
 * compared with the model of the simulated device, event by event: used bytes must be equal,
 * reserved bytes within a tenth. The greatest deviation of each recording is printed. */
#include <zlib.h>

#include "allocators/registry.h"
#include "sim/device.h"
#include "tests/support/folder_tests.h"
#include "tests/support/test.h"

#define FOLDER       "tests/golden/data/async"
#define MOST_IDS     4096
#define MOST_PERCENT 10.0

struct recording {
    gzFile file;
    char line[256];
    uint64_t number; /* of the line */
    struct ar_device *device;
    struct ar_policy *policy;
    struct ar_policy_block blocks[MOST_IDS];
    uint64_t events, differ;
    double most_percent;
    uint64_t most_at, most_mine, most_theirs;
};

static void compare(struct recording *r, uint64_t used_bytes, uint64_t reserved_bytes)
{
    const struct ar_policy_totals *totals = &r->policy->totals;
    if (totals->granted_bytes != used_bytes)
        fail_msg("line %" PRIu64 " (%s): %" PRIu64 " bytes used", r->number, r->line,
                 totals->granted_bytes);
    double difference = (double)totals->reserved_bytes - (double)reserved_bytes;
    double percent = 100 * (difference < 0 ? -difference : difference) / (double)reserved_bytes;
    r->events++;
    r->differ += difference != 0;
    if (percent > r->most_percent) {
        r->most_percent = percent;
        r->most_at = r->number;
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
    if (sscanf(r->line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &request.bytes,
               &used, &reserved) == 4 &&
        id < MOST_IDS) {
        assert_int_equal(ar_policy_alloc(r->policy, &request, &r->blocks[id]), AR_OK);
    } else if (sscanf(r->line, "f,%" SCNu64 ",%" SCNu64 ",%" SCNu64, &id, &used, &reserved) == 3 &&
               id < MOST_IDS) {
        assert_int_equal(ar_policy_free(r->policy, &r->blocks[id], 0), AR_OK);
    } else if (sscanf(r->line, "s,%" SCNu64 ",%" SCNu64, &used, &reserved) == 2) {
        r->device->ops->sync(r->device, UINT32_MAX);
        ar_policy_progress(r->policy);
    } else {
        fail_msg("line %" PRIu64 ": %s", r->number, r->line);
        return;
    }
    compare(r, used, reserved);
}

static bool read_line(struct recording *r)
{
    if (!gzgets(r->file, r->line, sizeof r->line))
        return false;
    r->line[strcspn(r->line, "\n")] = '\0';
    r->number++;
    return true;
}

static void check_recording(void **state)
{
    const char *name = *state;
    FREED struct recording *r = calloc(1, sizeof *r);
    struct ar_host host = {0};
    struct ar_spec spec;
    char path[512];
    assert_non_null(r);
    snprintf(path, sizeof path, FOLDER "/%s", name);
    r->file = gzopen(path, "rb");
    assert_true(r->file && read_line(r) && r->line[0] == '#');
    assert_ok(ar_device_open_text("sim:profile=h100", &r->device, &test_error));
    assert_ok(ar_spec_parse(strstr(name, "-max") ? "async:release_threshold=max" : "async", &spec,
                            &test_error));
    struct ar_policy_context context = {.backing = r->device->backing, .host = &host};
    assert_ok(registry_create(&spec, &context, &r->policy, &test_error));
    while (read_line(r))
        do_line(r);
    print_message("%-24s %5" PRIu64 " events, %5" PRIu64 " differ, most by %5.2f %%", name,
                  r->events, r->differ, r->most_percent);
    if (r->differ)
        print_message(" (line %" PRIu64 ": %" PRIu64 " MiB, the driver %" PRIu64 ")", r->most_at,
                      r->most_mine >> 20, r->most_theirs >> 20);
    print_message("\n");
    assert_true(r->events > 100);
    assert_true(r->most_percent <= MOST_PERCENT);
    ar_policy_destroy(r->policy);
    assert_int_equal(host.now_bytes, 0);
    assert_int_equal(r->device->counters.physical_bytes, 0);
    ar_device_close(r->device);
    ar_spec_close(&spec);
    gzclose(r->file);
}

int main(void)
{
    return folder_tests_run("async", FOLDER, check_recording);
}
