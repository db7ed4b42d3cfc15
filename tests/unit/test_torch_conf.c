/* The keys of PYTORCH_CUDA_ALLOC_CONF by release, as the published packages have them, how strings
 * are read, and the release of a recording. What settings and releases do: tests/steps/torch_conf,
 * torch_version. */
#include "allocators/policies/torch/conf_keys.h"

#include "sim/fidelity/fidelity.h"
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

/* A recording of an older release is compared with the rules of that release. */
TEST(recordings_have_a_release)
{
    EACH_ROW (row, 3) {
        struct trace_info info = {.limit_bytes = 7};
        char text[256];
        snprintf(info.recorder, sizeof info.recorder, "%s", row.field[0]);
        snprintf(info.conf, sizeof info.conf, "%s", row.field[1]);
        assert_ok(fidelity_default_spec(&info, text, sizeof text, &test_error));
        assert_string_equal(text, row.field[2]);
    }
}
