/* Recordings of real allocators, operation by operation: RMM on a card (tests/golden/data/rmm), and
 * the allocators of inference and graphics engines (tests/golden/data/engines). The policy must
 * place every block at the same address, fail at the same requests, and obtain and release the same
 * device allocations at the same operations. One test is one recording. */
#include "tests/support/folder_tests.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

#define RMM      "tests/golden/data/rmm"
#define ENGINES  "tests/golden/data/engines"
#define MOST_IDS 4096

struct recording {
    struct recorded_lines from;
    uint64_t held_bytes, given_back_bytes; /* by the real allocator, so far */
    struct policy_rig rig;
    struct ar_policy_block blocks[MOST_IDS];
    uint64_t served, failed;
};

/* The device allocation that the allocator obtains here, with its address, or releases. */
static bool read_segment(struct recording *r)
{
    uint64_t bytes;
    uint64_t address;
    if (sscanf(r->from.line, "segment,%" SCNu64 ",%" SCNu64, &bytes, &address) == 2) {
        r->held_bytes += bytes;
        fake_rig_backing.next = address;
        return true;
    }
    if (sscanf(r->from.line, "segment_free,%" SCNu64 ",%" SCNu64, &bytes, &address) == 2) {
        r->held_bytes -= bytes;
        r->given_back_bytes += bytes;
        return true;
    }
    if (sscanf(r->from.line, "map,%" SCNu64, &bytes) == 1) {
        r->held_bytes += bytes;
        return true;
    }
    if (sscanf(r->from.line, "range,%" SCNu64, &address) == 1) {
        fake_rig_backing.next = address;
        return true;
    }
    return false;
}

static void holds_the_same(const struct recording *r)
{
    if (fake_rig_backing.held_bytes != r->held_bytes)
        fail_msg("line %" PRIu64 " (%s): %" PRIu64 " bytes of the device, the real one %" PRIu64,
                 r->from.number, r->from.line, fake_rig_backing.held_bytes, r->held_bytes);
}

static void do_alloc(struct recording *r)
{
    uint64_t id;
    int64_t want;
    uint32_t upper = 0;
    struct ar_policy_request request = {0};
    if (sscanf(r->from.line,
               "a,%" SCNu64 ",%" SCNu64 ",%" SCNu32 ",%" SCNd64 ",%" SCNu64 ",%" SCNu32, &id,
               &request.bytes, &request.stream, &want, &request.alignment, &upper) < 4 ||
        id >= MOST_IDS)
        fail_msg("line %" PRIu64 ": %s", r->from.number, r->from.line);
    request.upper_end = upper != 0;
    request.stream++; /* 0 is the default stream, which the program did not use */
    enum ar_status status = ar_policy_alloc(r->rig.policy, &request, &r->blocks[id]);
    if (status != AR_OK && status != AR_NO_MEMORY)
        fail_msg("line %" PRIu64 ": %s", r->from.number, ar_status_name(status));
    int64_t got = status == AR_OK ? (int64_t)r->blocks[id].address : -1;
    if (got != want)
        fail_msg("line %" PRIu64 " (%s): address %" PRId64, r->from.number, r->from.line, got);
    holds_the_same(r);
    r->served += status == AR_OK;
    r->failed += status != AR_OK;
}

static void do_free(struct recording *r)
{
    uint64_t id;
    uint32_t stream;
    if (sscanf(r->from.line, "r,%" SCNu64 ",%" SCNu32, &id, &stream) != 2 || id >= MOST_IDS)
        fail_msg("line %" PRIu64 ": %s", r->from.number, r->from.line);
    assert_int_equal(ar_policy_free(r->rig.policy, &r->blocks[id], stream + 1), AR_OK);
    holds_the_same(r);
}

static void replay(struct recording *r)
{
    do {
        if (read_segment(r))
            continue;
        if (r->from.line[0] == 'a')
            do_alloc(r);
        else if (strcmp(r->from.line, "trim") != 0)
            do_free(r);
        else
            assert_int_equal(ar_policy_trim(r->rig.policy, 0), AR_OK);
        if (r->from.number % 16 == 0 && ar_policy_validate(r->rig.policy, &test_error) != AR_OK)
            fail_msg("line %" PRIu64 ": %s", r->from.number, test_error.text);
    } while (recorded_next(&r->from));
}

static void check_recording(const char *folder, const char *name)
{
    FREED struct recording *r = calloc(1, sizeof *r);
    uint64_t page_bytes;
    char spec[512];
    assert_non_null(r);
    recorded_open(&r->from, folder, name);
    fake_backing_open(&fake_rig_backing, UINT64_MAX);
    assert_true(r->from.line[0] == '#');
    assert_true(recorded_next(&r->from) && strncmp(r->from.line, "spec ", 5) == 0);
    snprintf(spec, sizeof spec, "%s", r->from.line + 5);
    assert_true(recorded_next(&r->from));
    if (sscanf(r->from.line, "cap,%" SCNu64, &fake_rig_backing.cap_bytes) == 1)
        assert_true(recorded_next(&r->from));
    if (sscanf(r->from.line, "page,%" SCNu64, &page_bytes) == 1) {
        fake_backing_virtual(&fake_rig_backing, page_bytes, UINT64_MAX);
        assert_true(recorded_next(&r->from));
    }
    if (read_segment(r)) /* before the first operation: the policy may take it when it is made */
        assert_true(recorded_next(&r->from));
    if (policy_rig_open(&r->rig, spec, &fake_rig_backing.base, 0))
        fail_msg("%s: %s", spec, r->rig.error.text);
    replay(r);
    print_message("%s: %" PRIu64 " served, %" PRIu64 " failed, %" PRIu64 " bytes released\n", name,
                  r->served, r->failed, r->given_back_bytes);
    assert_true(r->served > 50);
    assert_int_equal(policy_rig_close(&r->rig), 0);
    assert_int_equal(fake_rig_backing.held_bytes, 0);
    gzclose(r->from.file);
}

static void check_rmm(void **state)
{
    check_recording(RMM, *state);
}

static void check_engine(void **state)
{
    check_recording(ENGINES, *state);
}

int main(void)
{
    int failed = folder_tests_run("rmm", RMM, check_rmm);
    return folder_tests_run("engines", ENGINES, check_engine) || failed;
}
