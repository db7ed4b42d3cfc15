/* Recordings of real allocators, operation by operation: RMM on a card (tests/golden/data/rmm), and
 * the allocators of inference and graphics engines (tests/golden/data/engines). The policy must
 * place every block at the same address, fail at the same requests, and obtain and release the same
 * device allocations at the same operations. One test is one recording. */
#include <zlib.h>

#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/folder_tests.h"
#include "tests/support/test.h"

#define RMM      "tests/golden/data/rmm"
#define ENGINES  "tests/golden/data/engines"
#define MOST_IDS 4096

struct recording {
    gzFile file;
    char line[256];
    uint64_t number;                       /* of the line */
    uint64_t held_bytes, given_back_bytes; /* by the real allocator, so far */
    struct fake_backing *backing;
    struct ar_policy *policy;
    struct ar_policy_block blocks[MOST_IDS];
    uint64_t served, failed;
};

static bool read_line(struct recording *r)
{
    if (!gzgets(r->file, r->line, sizeof r->line))
        return false;
    r->line[strcspn(r->line, "\n")] = '\0';
    r->number++;
    return true;
}

/* The device allocation that the allocator obtains here, with its address, or releases. */
static bool read_segment(struct recording *r)
{
    uint64_t bytes;
    uint64_t address;
    if (sscanf(r->line, "segment,%" SCNu64 ",%" SCNu64, &bytes, &address) == 2) {
        r->held_bytes += bytes;
        r->backing->next = address;
        return true;
    }
    if (sscanf(r->line, "segment_free,%" SCNu64 ",%" SCNu64, &bytes, &address) == 2) {
        r->held_bytes -= bytes;
        r->given_back_bytes += bytes;
        return true;
    }
    if (sscanf(r->line, "map,%" SCNu64, &bytes) == 1) {
        r->held_bytes += bytes;
        return true;
    }
    if (sscanf(r->line, "range,%" SCNu64, &address) == 1) {
        r->backing->next = address;
        return true;
    }
    return false;
}

static void holds_the_same(const struct recording *r)
{
    if (r->backing->held_bytes != r->held_bytes)
        fail_msg("line %" PRIu64 " (%s): %" PRIu64 " bytes of the device, the real one %" PRIu64,
                 r->number, r->line, r->backing->held_bytes, r->held_bytes);
}

static void do_alloc(struct recording *r)
{
    uint64_t id;
    int64_t want;
    uint32_t upper = 0;
    struct ar_policy_request request = {0};
    if (sscanf(r->line, "a,%" SCNu64 ",%" SCNu64 ",%" SCNu32 ",%" SCNd64 ",%" SCNu64 ",%" SCNu32,
               &id, &request.bytes, &request.stream, &want, &request.alignment, &upper) < 4 ||
        id >= MOST_IDS)
        fail_msg("line %" PRIu64 ": %s", r->number, r->line);
    request.upper_end = upper != 0;
    request.stream++; /* 0 is the default stream, which the program did not use */
    enum ar_status status = ar_policy_alloc(r->policy, &request, &r->blocks[id]);
    if (status != AR_OK && status != AR_NO_MEMORY)
        fail_msg("line %" PRIu64 ": %s", r->number, ar_status_name(status));
    int64_t got = status == AR_OK ? (int64_t)r->blocks[id].address : -1;
    if (got != want)
        fail_msg("line %" PRIu64 " (%s): address %" PRId64, r->number, r->line, got);
    holds_the_same(r);
    r->served += status == AR_OK;
    r->failed += status != AR_OK;
}

static void do_free(struct recording *r)
{
    uint64_t id;
    uint32_t stream;
    if (sscanf(r->line, "r,%" SCNu64 ",%" SCNu32, &id, &stream) != 2 || id >= MOST_IDS)
        fail_msg("line %" PRIu64 ": %s", r->number, r->line);
    assert_int_equal(ar_policy_free(r->policy, &r->blocks[id], stream + 1), AR_OK);
    holds_the_same(r);
}

static void replay(struct recording *r)
{
    do {
        if (read_segment(r))
            continue;
        if (r->line[0] == 'a')
            do_alloc(r);
        else if (strcmp(r->line, "trim") != 0)
            do_free(r);
        else
            assert_int_equal(ar_policy_trim(r->policy, 0), AR_OK);
        if (r->number % 16 == 0 && ar_policy_validate(r->policy, &test_error) != AR_OK)
            fail_msg("line %" PRIu64 ": %s", r->number, test_error.text);
    } while (read_line(r));
}

static void check_recording(const char *folder, const char *name)
{
    FREED struct recording *r = calloc(1, sizeof *r);
    struct ar_host host = {0};
    struct ar_spec spec;
    char path[512];
    uint64_t page_bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_non_null(r);
    r->backing = malloc(sizeof *r->backing);
    r->file = gzopen(path, "rb");
    assert_true(r->backing && r->file);
    fake_backing_open(r->backing, UINT64_MAX);
    assert_true(read_line(r) && r->line[0] == '#');
    assert_true(read_line(r) && strncmp(r->line, "spec ", 5) == 0);
    assert_ok(ar_spec_parse(r->line + 5, &spec, &test_error));
    assert_true(read_line(r));
    if (sscanf(r->line, "cap,%" SCNu64, &r->backing->cap_bytes) == 1)
        assert_true(read_line(r));
    if (sscanf(r->line, "page,%" SCNu64, &page_bytes) == 1) {
        fake_backing_virtual(r->backing, page_bytes, UINT64_MAX);
        assert_true(read_line(r));
    }
    if (read_segment(r)) /* before the first operation: the policy may take it when it is made */
        assert_true(read_line(r));
    struct ar_policy_context context = {.backing = &r->backing->base, .host = &host};
    assert_ok(registry_create(&spec, &context, &r->policy, &test_error));
    replay(r);
    print_message("%s: %" PRIu64 " served, %" PRIu64 " failed, %" PRIu64 " bytes released\n", name,
                  r->served, r->failed, r->given_back_bytes);
    assert_true(r->served > 50);
    ar_policy_destroy(r->policy);
    ar_spec_close(&spec);
    assert_int_equal(host.now_bytes, 0);
    assert_int_equal(r->backing->held_bytes, 0);
    gzclose(r->file);
    free(r->backing);
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
