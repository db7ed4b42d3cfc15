#include "tests/support/bfc_rig.h"

#include "allocators/registry.h"
#include "tests/support/test.h"

enum ar_status bfc_rig_make(const char *spec_text, const struct ar_policy_context *context,
                            struct ar_policy **out, struct ar_error *error)
{
    struct ar_spec spec;
    AR_TRY(ar_spec_parse(spec_text, &spec, error));
    enum ar_status status = registry_create(&spec, context, out, error);
    ar_spec_close(&spec);
    return status;
}

struct bfc_rig *bfc_rig_open(const char *spec, uint64_t cap_bytes)
{
    struct bfc_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    fake_backing_open(&rig->backing, cap_bytes);
    struct ar_policy_context context = {.backing = &rig->backing.base, .host = &rig->host};
    if (bfc_rig_make(spec, &context, &rig->policy, &test_error) != AR_OK)
        fail_msg("%s: %s", spec, test_error.text);
    rig->careful = true;
    return rig;
}

void bfc_rig_close(struct bfc_rig *rig)
{
    ar_policy_destroy(rig->policy);
    assert_int_equal(rig->host.now_bytes, 0);
    assert_int_equal(rig->backing.held_bytes, 0);
    free(rig);
}

void bfc_rig_check(const struct bfc_rig *rig)
{
    assert_ok(ar_policy_validate(rig->policy, &test_error));
}

uint64_t bfc_rig_alloc_at(struct bfc_rig *rig, unsigned block, uint64_t bytes, uint64_t alignment,
                          bool upper_end)
{
    assert_true(block < BFC_RIG_BLOCKS && !rig->live[block]);
    struct ar_policy_request request = {
        .bytes = bytes, .alignment = alignment, .upper_end = upper_end};
    enum ar_status status = ar_policy_alloc(rig->policy, &request, &rig->blocks[block]);
    if (rig->careful)
        bfc_rig_check(rig);
    if (status == AR_NO_MEMORY)
        return BFC_RIG_FAILED;
    assert_int_equal(status, AR_OK);
    assert_true(rig->blocks[block].granted_bytes >= bytes);
    rig->live[block] = true;
    return rig->blocks[block].address;
}

uint64_t bfc_rig_alloc(struct bfc_rig *rig, unsigned block, uint64_t bytes)
{
    return bfc_rig_alloc_at(rig, block, bytes, 0, false);
}

void bfc_rig_free(struct bfc_rig *rig, unsigned block)
{
    assert_true(rig->live[block]);
    rig->live[block] = false;
    assert_int_equal(ar_policy_free(rig->policy, &rig->blocks[block], 0), AR_OK);
    if (rig->careful)
        bfc_rig_check(rig);
}

void bfc_rig_free_all(struct bfc_rig *rig)
{
    for (unsigned i = 0; i < BFC_RIG_BLOCKS; i++) {
        if (rig->live[i])
            bfc_rig_free(rig, i);
    }
}

struct ar_policy_stats bfc_rig_stats(const struct bfc_rig *rig)
{
    struct ar_policy_stats stats;
    ar_policy_stats(rig->policy, &stats);
    return stats;
}
