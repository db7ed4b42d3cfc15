/* `cupy`: which of several equal free chunks a request takes. Recordings of the real pool are in
 * tests/golden/test_oracles.c. */
#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

static struct fake_backing backing;

/* Objects in the order in which CPython numbers them, o1, o2, ..: a chunk and its PooledMemory for
 * each block. After the last free o4 and o7 are chunks of 4096 bytes: o4 is the chunk of `f`, at
 * the higher address, and o7 the rest of `w`. */
static void check_ties(const char *policy, bool by_object)
{
    struct policy_rig rig;
    struct ar_policy_block w, a, f, k, j, last;
    fake_backing_open(&backing, UINT64_MAX);
    assert_int_equal(policy_rig_open(&rig, policy, &backing.base, 0), AR_OK);
    assert_int_equal(policy_rig_alloc(&rig, 8192, &w), AR_OK); /* o1, o2 */
    assert_int_equal(policy_rig_alloc(&rig, 2048, &a), AR_OK); /* o3, o4 */
    assert_int_equal(policy_rig_free(&rig, &a), AR_OK);        /* o4 is free */
    assert_int_equal(policy_rig_alloc(&rig, 4096, &f), AR_OK); /* o4, o5 */
    assert_int_equal(policy_rig_free(&rig, &w), AR_OK);        /* o2 is free */
    assert_int_equal(policy_rig_alloc(&rig, 512, &k), AR_OK);  /* of o3; the rest is o2; o6 */
    assert_int_equal(policy_rig_alloc(&rig, 4096, &j), AR_OK); /* of o1; the rest is o7; o8 */
    assert_int_equal(policy_rig_free(&rig, &f), AR_OK);
    assert_true(k.address == a.address && j.address == w.address && f.address > w.address);
    assert_int_equal(policy_rig_alloc(&rig, 4000, &last), AR_OK);
    assert_int_equal(last.address, by_object ? f.address : w.address + 4096);
    assert_int_equal(rig.policy->totals.reserved_bytes, 8192 + 2048 + 4096);
    assert_int_equal(ar_policy_validate(rig.policy, &rig.error), AR_OK);
    assert_int_equal(policy_rig_close(&rig), 0);
}

TEST(equal_chunks_are_taken_by_object)
{
    check_ties("cupy", true);
    check_ties("cupy:ties=address", false);
}
