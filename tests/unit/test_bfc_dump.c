/* Out-of-memory dumps of TensorFlow and JAX: the words of each version of the allocator. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"
#include "workloads/formats/xla/bfc_log.h"

#define XLA      "2025-01-05 09:48:28.754214: I external/xla/xla/tsl/framework/bfc_allocator.cc:1094] "
#define TF       "2021-06-12 20:18:33.135416: I tensorflow/core/common_runtime/bfc_allocator.cc:1046] "
#define OLD      "I tensorflow/core/common_runtime/bfc_allocator.cc:661] "
#define JAX_HEAD "# recorder: xla\n"
#define TF_HEAD  "# recorder: tensorflow\n"
#define DIED     "# complete: no\n"

static bool guessed(const struct import_report *report, const char *words)
{
    for (unsigned i = 0; i < report->guess_count; i++)
        if (strstr(report->guesses[i], words))
            return true;
    return false;
}

/* Four live results of 4 GB in a pool of 18.99 GB, and a request for a fifth. */
TRACE_TEST(test_jax)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "[ Info: third call\n" XLA
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.72GiB (rounded to "
        "4000000000)requested by op \n" XLA "BFCAllocator dump for GPU_0_bfc\n" XLA
        "Bin (256): \tTotal Chunks: 0, Chunks in use: 0. 0B allocated for chunks.\n" XLA
        "Bin for 3.72GiB was 256.00MiB, Chunk State: \n" XLA
        "  Size: 2.79GiB | Requested Size: 0B | in_use: 0 | bin_num: 20\n" XLA
        "Next region of size 18995773440\n" XLA
        "InUse at 797202000000 of size 4000000000 next 1\n" XLA
        "InUse at 7972f06b2800 of size 4000000000 next 2\n" XLA
        "InUse at 7973ded65000 of size 4000000000 next 3\n" XLA
        "InUse at 7974cd417800 of size 4000000000 next 4\n" XLA
        "Free  at 7975bbaca000 of size 2995773440 next 18446744073709551615\n" XLA
        "     Summary of in-use Chunks by size: \n" XLA
        "4 Chunks of size 4000000000 totalling 14.90GiB\n" XLA
        "Sum Total of in-use chunks: 14.90GiB\n" XLA
        "Total bytes in pool: 18995773440 memory_limit_: 18995773440 available bytes: 0 "
        "curr_region_allocation_bytes_: 37991546880\n" XLA "Stats: \n"
        "Limit:                     18995773440\nInUse:                     16000000000\n"
        "MaxInUse:                  16000000001\nNumAllocs:                           4\n"
        "LargestFreeBlock:                    0\n\n" XLA "*****____\n"
        "E0105 09:48:28.755177  110350 pjrt_stream_executor_client.cc:3088] Execution of replica "
        "0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3999999999 bytes.\n",
        JAX_HEAD
        "# limit: 18995773440\n" DIED "# let-go: final\n"
        "!,segment,133530566787072,18995773440,0\n!,block,133530566787072,4000000000,0\n"
        "!,block,133534566787072,4000000000,1\n!,block,133538566787072,4000000000,2\n"
        "!,block,133542566787072,4000000000,3\n!,block,133546566787072,2995773440,free\n"
        "a,0,4000000000,initial=yes\na,1,4000000000,initial=yes\na,2,4000000000,initial=yes\n"
        "a,3,4000000000,initial=yes\na,4,3999999999\n!,oom,0\nr,4\n",
        &report);
    assert_int_equal(report.records, 5);
    assert_int_equal(report.failures, 1);
    assert_true(report.ends_in_failure);
    assert_true(guessed(&report, "add up to the allocator's own count"));
    assert_false(guessed(&report, "rounded"));
}

/* Operations, two regions, a failure that was allowed, two dumps of which the last counts. */
TRACE_TEST(test_tensorflow)
{
    struct import_report report;
    format_rig_converts(
        *state,
        TF
        "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 21290 MB memory:  -> "
        "device: 0, name: NVIDIA L4, pci bus id: 0000:00:03.0, compute capability: 8.9\r\n" TF
        "device: 1, name: NVIDIA T4, pci bus id: 0000:00:04.0\r\n" TF
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure, but may mean\r\n" TF
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0KiB (rounded to "
        "1024)requested by op first\r\n" TF "Next region of size 512\r\n" TF
        "InUse at 1000 of size 512 next 1\r\n" TF
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00MiB (rounded to "
        "1048576)requested by op model/conv2d_21/Relu,1\r\nCurrent allocation summary "
        "follows.\r\n" TF "BFCAllocator dump for GPU_0_bfc\r\n" TF "Bin (256): \tTotal\r\n" TF
        "Next region of size 768\r\n" TF
        "InUse at c018b5d00 of size 256 by op Fill action_count 2716826281214 step 0 next 1\r\n" TF
        "Free  at c018b5e00 of size 512 by op  action_count 27 step 0 next 2 freed_at_count "
        "7\r\n" TF "Next region of size 256\r\n" TF
        "InUse at c028b5f00 of size 256 by op Sub action_count 2 step 3 next 3\r\n" TF
        "total_region_allocated_bytes_: 1024 memory_limit_: 4096 available bytes: 3072 "
        "curr_region_allocation_bytes_: 8192\r\n" TF "Stats: \r\nLimit:  4096\r\nInUse:  "
        "700\r\n" TF
        "OP_REQUIRES failed at conv_ops.cc:1 : RESOURCE_EXHAUSTED: OOM when allocating tensor "
        "with shape[1023,1025] and type int8 on /device:GPU:0 by allocator GPU_0_bfc\r\n",
        TF_HEAD
        "# limit: 4096\n# card: NVIDIA L4\n" DIED
        "# let-go: final\n!,segment,51565518080,768,0\n!,segment,51582295808,256,0\n"
        "!,block,51565518080,256,0\n!,block,51565518336,512,free\n!,block,51582295808,256,1\n"
        "a,0,256,tag=Fill,initial=yes\na,1,256,tag=Sub,initial=yes\n"
        "a,2,1048575,tag=model/conv2d_21/Relu_1\n!,oom,3072\nr,2\n",
        &report);
    assert_true(guessed(&report, "holds 2 dumps"));
    assert_true(guessed(&report, "1 requests that were allowed to fail"));
    assert_true(guessed(&report, "add up to 512 bytes, the allocator's own count is 700"));
}

/* TensorFlow 1: chunks in use, then free ones, no regions, the failure named again at the end, no
 * type in the tensor's sentence. */
TRACE_TEST(test_old)
{
    struct import_report report;
    format_rig_converts(
        *state,
        OLD "Bin (256): \tTotal Chunks: 4\n" OLD "Chunk at 0x905a40000 of size 1280\n" OLD
            "Chunk at 0x905a40a00 of size 256\n" OLD "Chunk at 0x905b40a00 of size 512\n" OLD
            "Free at 0x905a40500 of size 1280\n" OLD "4 Chunks of size 256 totalling 1.0KiB\n" OLD
            "Stats: \nLimit:   285474816\nInUse:   2048\n\n"
            "W tensorflow/core/common_runtime/bfc_allocator.cc:270] ****____\n"
            "W tensorflow/core/common_runtime/bfc_allocator.cc:271] Ran out of memory trying to "
            "allocate 74.16MiB.  See logs for memory state.\n"
            "W tensorflow/core/framework/op_kernel.cc:900] Resource exhausted: OOM when "
            "allocating tensor with shape[128,225,225,3]\n",
        TF_HEAD
        "# limit: 285474816\n" DIED
        "# let-go: final\n!,segment,38749339648,2816,0\n!,segment,38750390784,512,0\n"
        "!,block,38749339648,1280,0\n!,block,38749340928,1280,free\n!,block,38749342208,256,1\n"
        "!,block,38750390784,512,2\n"
        "a,0,1280,initial=yes\na,1,256,initial=yes\na,2,512,initial=yes\na,3,77760000\n!,oom\nr,"
        "3\n",
        &report);
    assert_true(guessed(&report, "names no regions"));
}

/* Chunks are missing: the summary replaces them. Windows, and no exact size. */
TRACE_TEST(test_cut_logs)
{
    struct import_report report;
    format_rig_converts(*state,
                        TF "3 Chunks of size 256 totalling 768B\n" TF
                           "1 Chunks of size 122713088 totalling 117.03MiB\n" TF
                           "Sum Total of in-use chunks: 117MiB\n",
                        TF_HEAD DIED "a,0,256,initial=yes\na,1,256,initial=yes\n"
                                     "a,2,256,initial=yes\na,3,122713088,initial=yes\n",
                        &report);
    assert_true(guessed(&report, "names no chunks"));
    assert_true(guessed(&report, "does not say which request failed"));
    format_rig_converts(*state,
                        "2018-09-18 03:28: W T:\\src\\tensorflow\\core\\common_runtime\\"
                        "bfc_allocator.cc:275] Allocator (GPU_0_bfc) ran out of memory trying to "
                        "allocate 2.00MiB.  Current allocation summary follows.\n"
                        "I T:\\bfc_allocator.cc:665] Chunk at 0000000502F41C00 of size 256\n"
                        "I T:\\bfc_allocator.cc:665] Chunk at 0000000502F41D00 of size 73728\n"
                        "I T:\\bfc_allocator.cc:665] Chunk at 0000000502F41D00 of size 73728\n",
                        TF_HEAD DIED "# let-go: final\n!,segment,21524388864,73984,0\n"
                                     "!,block,21524388864,256,0\n!,block,21524389120,73728,1\n"
                                     "a,0,256,initial=yes\na,1,73728,initial=yes\n"
                                     "a,2,2097152\n!,oom\nr,2\n",
                        &report);
    assert_int_equal(report.left_out, 1);
    assert_true(guessed(&report, "known to three digits only"));
    format_rig_converts(*state,
                        XLA "Next region of size 1024\n" XLA
                            "InUse at 1000 of size 256 next 1\n" XLA
                            "InUse at 1200 of size 256 next 1\n",
                        JAX_HEAD DIED "!,segment,4096,1024,0\n!,block,4096,256,0\n"
                                      "!,block,4608,256,1\na,0,256,initial=yes\n"
                                      "a,1,256,initial=yes\n",
                        &report);
    assert_true(guessed(&report, "leave 2 gaps in their regions"));
}

/* No dump, but XLA's list of buffers. */
TRACE_TEST(test_buffers)
{
    struct import_report report;
    format_rig_converts(
        *state,
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 6291456 bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
        "             parameter allocation:    6.00MiB\nPeak buffers:\n\tBuffer 1:\n"
        "\t\tSize: 6.00MiB\n\t\tOperator: op_name=\"jit(f)\" source_line=689\n"
        "\t\tXLA Label: a,b\n\t\tShape: f32[4096,128,3]{2,1,0}\n\t\t=====\n\n\tBuffer 2:\n"
        "\t\tSize: 384.0KiB\n\t\tEntry Parameter Subshape: bf16[256,128,5]\n\t\t=====\n\n"
        "\tBuffer 3:\n\t\tSize: 2.0KiB\n\t\tEntry Parameter Subshape: (f32[2],s32[])\n"
        "\t\t=====\n\nBuffer 9: is another matter\nTraceback\nBuffer 9:\n",
        JAX_HEAD DIED "# let-go: final\n!,planned,6291456,a_b\n"
                      "a,0,327680,tag=parameter,initial=yes\n"
                      "a,1,2048,tag=parameter,initial=yes\na,2,6291456\n!,oom\nr,2\n",
        &report);
    assert_true(guessed(&report, "largest buffers of a program"));
}

/* A later failure without a dump; lines of any length; zeros. */
TRACE_TEST(test_noise)
{
    struct import_report report;
    char *text = malloc(200000);
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
    free(text);
}

TRACE_TEST(test_refused)
{
    static const struct format_rig_refusal cases[] = {
        {TF "Loaded a library\n", ": the log holds no dump of an allocator"},
        {XLA "InUse at of size 256\n" XLA "InUse at 12345678901234567 of size 1\n" XLA
             "InUse at 10 of size 0\n",
         ": the log holds no dump of an allocator"},
        {TF "99999999 Chunks of size 256 totalling 23GiB\n", ":1: the summary names more than"},
        {TF "InUse at 10 of size 1152921504606846976 next 1\n", ": line 1: a chunk of 1152921504"},
    };
    format_rig_refuses(*state, cases, sizeof cases / sizeof cases[0]);
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
