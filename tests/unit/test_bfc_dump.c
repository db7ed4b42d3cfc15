/* Out-of-memory dumps of TensorFlow and JAX: long lines, and sizes as they write them. The words of
 * each version of the allocator: unit/cases/format_bfc_dump. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/xla/bfc_log.h"

#define TF      "2021-06-12 20:18:33.135416: I tensorflow/core/common_runtime/bfc_allocator.cc:1046] "
#define TF_HEAD "# recorder: tensorflow\n"
#define DIED    "# complete: no\n"

static bool guessed(const struct import_report *report, const char *words)
{
    for (unsigned i = 0; i < report->guess_count; i++)
        if (strstr(report->guesses[i], words))
            return true;
    return false;
}

/* A later failure without a dump; lines of any length; zeros. */
TRACE_TEST(test_noise)
{
    struct import_report report;
    FREED char *text = malloc(200000);
    assert_non_null(text);
    size_t length = (size_t)snprintf(text, 1000, "%sInUse at 1000 of size 256 next 1\n", TF);
    memset(text + length, 'x', 150000);
    length += 150000;
    (void)snprintf(text + length, 1000, "InUse at 2000 of size 256\n%s%s", TF,
                   "Allocator (GPU_1_bfc) ran out of memory trying to allocate 1.0KiB (rounded to "
                   "1024)requested by op x\n");
    format_rig_converts(*state, text,
                        TF_HEAD DIED "!,segment,4096,256,0\n!,block,4096,256,0\n"
                                     "a,0,256,initial=yes\n",
                        &report);
    assert_true(guessed(&report, "another request failed later"));
}

TRACE_TEST(test_sizes)
{
    uint64_t slack;
    assert_int_equal(bfc_human_bytes("512B", &slack), 512);
    assert_int_equal(slack, 0);
    assert_int_equal(bfc_human_bytes("1.0KiB", &slack), 1024);
    assert_in_range(slack, 51, 53);
    assert_int_equal(bfc_human_bytes("29.91MiB.", &slack), 31362908);
    assert_int_equal(bfc_human_bytes("4,00GiB", &slack), UINT64_C(4) << 30);
    assert_int_equal(bfc_human_bytes("x", &slack), 0);
    assert_int_equal(bfc_human_bytes("5", &slack), 0);
    assert_int_equal(bfc_human_bytes("99999999999999999999GiB", &slack), 0);
    assert_int_equal(bfc_elements("[]"), 1);
    assert_int_equal(bfc_elements("[4,2048,0]"), 0);
    assert_int_equal(bfc_elements("[4,2048] and"), 8192);
    assert_int_equal(bfc_elements("[?,3]"), 0);
    assert_int_equal(bfc_elements("[4"), 0);
    assert_int_equal(bfc_elements("[1099511627775,1099511627775]"), 0);
    assert_int_equal(bfc_type_bytes("bfloat16", 8), 2);
    assert_int_equal(bfc_type_bytes("string", 6), 0);
}
