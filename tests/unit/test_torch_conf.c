/* The keys of PYTORCH_CUDA_ALLOC_CONF by release, as the published packages have them, and how the
 * policy reads a configuration string of each. */
#include "allocators/policies/torch/conf_keys.h"

#include "tests/support/fake_backing.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

TEST(each_release_has_its_keys)
{
    EACH_ROW (row, 6) {
        const struct torch_conf_key *key = torch_conf_key_find(row.field[0], row.field[1]);
        assert_non_null(key);
        assert_false(torch_conf_key_accepted(key, torch_release_read(row.field[2])));
        assert_true(torch_conf_key_accepted(key, torch_release_read(row.field[3])));
        assert_true(torch_conf_key_accepted(key, (struct torch_release){0, 0}));
        assert_int_equal(torch_conf_key_accepted(key, TORCH_RELEASE_NEWEST), !row.field[5][0]);
        if (row.field[4][0]) {
            assert_true(torch_conf_key_accepted(key, torch_release_read(row.field[4])));
            assert_false(torch_conf_key_accepted(key, torch_release_read(row.field[5])));
        }
    }
    assert_null(torch_conf_key_find("segment_size", "1"));
    assert_null(torch_conf_key_find("max_split", NULL));
    for (size_t i = 0; torch_conf_key_at(i); i++) {
        const struct torch_conf_key *key = torch_conf_key_at(i);
        assert_true(torch_release_compare(key->first, TORCH_RELEASE_NEWEST) <= 0);
        assert_true(!key->last.major || torch_release_compare(key->first, key->last) <= 0);
        assert_ptr_equal(torch_conf_key_find(key->name, key->value), key);
    }
}

TEST(releases_are_read)
{
    EACH_ROW (row, 3) {
        struct torch_release release = torch_release_read(row.field[0]);
        assert_int_equal(release.major, cases_number(&row, 1));
        assert_int_equal(release.minor, cases_number(&row, 2));
    }
    assert_true(torch_release_compare(torch_release_read("2.10"), torch_release_read("2.9")) > 0);
    assert_true(torch_release_compare(torch_release_read("1.13"), torch_release_read("2.0")) < 0);
    assert_true(torch_release_compare(torch_release_read("2.4"), torch_release_read("2.4.1")) == 0);
}

TEST(a_string_needs_its_newest_key)
{
    EACH_ROW (row, 4) {
        const struct torch_conf_key *key;
        struct torch_release first = torch_conf_first(row.field[0], &key);
        assert_int_equal(first.major, cases_number(&row, 2));
        assert_int_equal(first.minor, cases_number(&row, 3));
        if (row.field[1])
            assert_string_equal(key->name, row.field[1]);
        else
            assert_null(key);
    }
}

/* Strings as programs have set them with 1.10 to 2.15: all are read. */
TEST(strings_of_every_release_are_read)
{
    static const char *const good[] = {
        "max_split_size_mb:21",
        "garbage_collection_threshold:0.6,max_split_size_mb:128",
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "backend:native,expandable_segments:False",
        "expandable_segments:True, roundup_power2_divisions:16",
        " max_split_size_mb : 512 ,garbage_collection_threshold : 0.9,",
        ("release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,"
         "pinned_num_register_threads:8"),
        "max_non_split_rounding_mb:64,pinned_use_background_threads:True",
        "graph_capture_record_stream_reuse:True,expandable_segments:True",
        "per_process_memory_fraction:0.8,pinned_reserve_segment_size_mb:128",
        "large_segment_size_mb:64,max_split_size_mb:64",
        "throw_on_cudamalloc_oom:True,pinned_free_catch_all:True,pinned_max_cached_size_mb:64",
        "expandable_segments_reserve:0.5,expandable_segments_reserve_by_class:[a:1]"};
    static const char *const bad[] = {"roundup_bypass_threshold_mb:64",
                                      "max_split:128",
                                      "max_split_size_mb",
                                      "a:b:c",
                                      "roundup_power2_divisions:[256:1",
                                      "roundup_power2_divisions:[256:1]8"};
    const size_t goods = COUNT(good);
    for (size_t i = 0; i < goods + COUNT(bad); i++) {
        char text[256];
        struct fake_backing backing;
        struct policy_rig rig;
        fake_backing_open(&backing, 64 * AR_MIB);
        fake_backing_virtual(&backing, 2 * AR_MIB, 64 * AR_MIB);
        snprintf(text, sizeof text, "torch:conf='%s'", i < goods ? good[i] : bad[i - goods]);
        enum ar_status status = policy_rig_open(&rig, text, &backing.base, 0);
        if (status != (i < goods ? AR_OK : AR_INVALID))
            fail_msg("%s: %s", text, rig.error.text);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}

/* Of 62 MiB under a threshold of 42 MiB less a byte, 20 MiB and a byte must go: the first pass
 * releases the older free block of 20 MiB, and a second one the other. */
TEST(collection_goes_on_to_its_target)
{
    static const struct {
        const char *threshold; /* of 128 MiB */
        uint64_t reserved_bytes;
    } cases[] = {{"0.328124992549419403076171875", 46 * AR_MIB}, {"0.328125", 66 * AR_MIB}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fake_backing backing;
        struct policy_rig rig;
        struct ar_policy_block a, b, c, d;
        char spec[120];
        snprintf(spec, sizeof spec, "torch:limit=128MiB,garbage_collection_threshold=%s",
                 cases[i].threshold);
        fake_backing_open(&backing, 256 * AR_MIB);
        if (policy_rig_open(&rig, spec, &backing.base, 0))
            fail_msg("%s", rig.error.text);
        assert_int_equal(policy_rig_alloc(&rig, 20 * AR_MIB, &a), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 20 * AR_MIB, &b), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &a), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 22 * AR_MIB, &c), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &b), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 24 * AR_MIB, &d), AR_OK);
        assert_int_equal(rig.policy->totals.reserved_bytes, cases[i].reserved_bytes);
        assert_int_equal(policy_rig_free(&rig, &c), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &d), AR_OK);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}

/* The values are those of a snapshot of PyTorch 2.11 with this list. */
TEST(a_list_of_divisions)
{
    static const uint64_t recorded[16] = {8, 0, 0, 0, 0, 0, 4, 0, 2, 1, 1, 1, 1, 1, 1, 1};
    uint64_t divisions[16] = {0};
    static const char list[] = "[1:8,64:4,256:2,>:1]";
    const struct torch_release newest = {0, 0}, old = {2, 9};
    assert_ok(torch_divisions_read(list, newest, divisions, &test_error));
    assert_memory_equal(divisions, recorded, sizeof recorded);
    /* The parser before 2.10. */
    assert_ok(torch_divisions_read(list, old, divisions, &test_error));
    assert_int_equal(divisions[8], 1);
    assert_memory_equal(divisions, recorded, 8 * sizeof recorded[0]);
}

/* With large segments of 64 MiB a request that is not divided takes a block 50 MiB larger, which
 * the default of 20 MiB would not give it. */
TEST(a_block_may_be_larger_by_a_large_segment)
{
    static const struct {
        const char *spec;
        uint64_t reserved_bytes;
    } cases[] = {{"torch:max_split_size_mb=64", 250 * AR_MIB},
                 {"torch:max_split_size_mb=64,large_segment_size_mb=64", 150 * AR_MIB}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fake_backing backing;
        struct policy_rig rig;
        struct ar_policy_block block;
        fake_backing_open(&backing, 512 * AR_MIB);
        if (policy_rig_open(&rig, cases[i].spec, &backing.base, 0))
            fail_msg("%s", rig.error.text);
        assert_int_equal(policy_rig_alloc(&rig, 150 * AR_MIB, &block), AR_OK);
        assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
        assert_int_equal(policy_rig_alloc(&rig, 100 * AR_MIB, &block), AR_OK);
        assert_int_equal(rig.policy->totals.reserved_bytes, cases[i].reserved_bytes);
        assert_int_equal(policy_rig_free(&rig, &block), AR_OK);
        assert_int_equal(policy_rig_close(&rig), 0);
    }
}
