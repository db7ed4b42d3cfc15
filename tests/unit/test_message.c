/* Out-of-memory messages: the cases of public reports (pytorch, vllm, tensorflow, jax trackers) in
 * each framework's wording, and changes by terminals, logs and versions. */
#include <math.h>

#include "allocators/base/size.h"
#include "sim/explain/message.h"
#include "sim/explain/message_account.h"
#include "sim/explain/message_text.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

/* The figures of a report, GiB; below 0: not given. */
struct reported {
    const char *name;
    double asked, total, available, allocated, unallocated, tenants[2];
    enum message_cause cause;
};

#define NO     (-1.0)
#define MIB_OF (1.0 / 1024)

static const struct reported reports[] = {
    {"22.78 of 31.47", 22.78, 31.47, 12.73, 9.08, 9.35, {0}, MESSAGE_CAPACITY},
    {"two tenants", 124.68, 95.22, NO, NO, NO, {14.91, 29.07}, MESSAGE_IMPOSSIBLE},
    {"15.52 free",
     960 * MIB_OF,
     23.99,
     15.52,
     6.78,
     76.36 * MIB_OF,
     {0},
     MESSAGE_NOT_THE_ALLOCATOR},
    {"158 MiB",
     158 * MIB_OF,
     NO,
     115.69 * MIB_OF,
     22.14,
     910.35 * MIB_OF,
     {0},
     MESSAGE_FRAGMENTATION},
    {"vllm 783", 1.63, NO, 565.31 * MIB_OF, 27.91, 0.02, {0}, MESSAGE_CAPACITY},
    {"vllm-omni 2128", 9.05, 60.95, 2.10, 42.32, 10.26, {0}, MESSAGE_FRAGMENTATION},
    {"vllm-omni 6400", 502 * MIB_OF, NO, 156.28 * MIB_OF, 57.88, 1.00, {0}, MESSAGE_FRAGMENTATION},
    {"20 MiB", 20 * MIB_OF, 4.00, 2.35, NO, NO, {0}, MESSAGE_NOT_THE_ALLOCATOR},
};

#define REPORTS (sizeof reports / sizeof *reports)

/* As PyTorch prints sizes: the largest unit of which there is more than one. */
static void add_size(struct writing *writing, const char *before, double gib, const char *after)
{
    if (gib < 0)
        return;
    writing_add(writing, gib < 1 ? "%s%.2f MiB%s" : "%s%.2f GiB%s", before,
                gib < 1 ? gib * 1024 : gib, after);
}

static double reserved_of(const struct reported *report)
{
    return report->allocated < 0 ? NO : report->allocated + report->unallocated;
}

/* 1.4 to 2.0 */
static void write_old(struct writing *writing, const struct reported *report)
{
    add_size(writing, "RuntimeError: CUDA out of memory. Tried to allocate ", report->asked,
             " (GPU 0; ");
    add_size(writing, "", report->total, " total capacity; ");
    add_size(writing, "", report->allocated, " already allocated; ");
    add_size(writing, "", report->available, " free; ");
    add_size(writing, "", reserved_of(report), " reserved in total by PyTorch)");
}

/* Up to 1.3 */
static void write_oldest(struct writing *writing, const struct reported *report)
{
    add_size(writing, "RuntimeError: CUDA out of memory. Tried to allocate ", report->asked,
             " (GPU 3; ");
    add_size(writing, "", report->total, " total capacity; ");
    add_size(writing, "", report->allocated, " already allocated; ");
    add_size(writing, "", report->available, " free; ");
    add_size(writing, "", report->unallocated, " cached)");
}

/* 2.1 on */
static void write_new(struct writing *writing, const struct reported *report)
{
    add_size(writing, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ",
             report->asked, ". ");
    add_size(writing, "GPU 0 has a total capacity of ", report->total, " of which ");
    add_size(writing, "", report->available, " is free. ");
    for (int i = 0; i < 2; i++)
        if (report->tenants[i] > 0)
            add_size(writing, "Process 41 has ", report->tenants[i], " memory in use. ");
    add_size(writing, "Of the allocated memory ", report->allocated,
             " is allocated by PyTorch, and ");
    add_size(writing, "", report->unallocated, " is reserved by PyTorch but unallocated.");
}

static void add_bytes(struct writing *writing, const char *before, double gib, const char *after)
{
    if (gib >= 0)
        writing_add(writing, "%s%.0f%s", before, round(gib * 1073741824.0), after);
}

static void write_dump(struct writing *writing, const char *where, const struct reported *report)
{
    add_bytes(writing,
              "I bfc_allocator.cc:1103] total_region_allocated_bytes_: ", reserved_of(report), " ");
    add_bytes(writing, "memory_limit_: ", report->total, " ");
    add_bytes(writing, "available bytes: ", report->available, " ");
    writing_add(writing, "curr_region_allocation_bytes_: 14730133504\n2022-10-28 04:33:01.1: I %s",
                where);
    writing_add(writing, "bfc_allocator.cc:1109] Stats: \n");
    add_bytes(writing, "Limit:   ", report->total, "\n");
    add_bytes(writing, "InUse:   ", report->allocated, "\n");
    writing_add(writing,
                "MaxInUse:     99999999999999\nNumAllocs:   5650\nLargestFreeBlock:     0\n\n2022");
}

static void write_tensorflow(struct writing *writing, const struct reported *report)
{
    writing_add(writing,
                "W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) "
                "ran out of memory trying to allocate %.2fGiB",
                report->asked);
    add_bytes(writing, " (rounded to ", report->asked, ")requested by op Add\n");
    write_dump(writing, "tensorflow/core/common_runtime/", report);
}

static void write_jax(struct writing *writing, const struct reported *report)
{
    write_dump(writing, "external/xla/xla/tsl/framework/", report);
    add_bytes(writing,
              "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory "
              "while trying to allocate ",
              report->asked, " bytes.");
}

static void read_text(const char *text, struct message *message)
{
    if (message_read(text, strlen(text), message, &test_error))
        fail_msg("%s: %s", text, test_error.text);
}

static void check_all(void (*write)(struct writing *, const struct reported *),
                      enum message_framework framework)
{
    for (size_t i = 0; i < REPORTS; i++) {
        struct writing writing = {""};
        struct message message;
        write(&writing, &reports[i]);
        read_text(writing.text, &message);
        if (message.cause != reports[i].cause)
            fail_msg("%s: %s, not %s, from: %s", reports[i].name, message_cause_name(message.cause),
                     message_cause_name(reports[i].cause), writing.text);
        assert_int_equal(message.framework, framework);
        assert_int_equal(message_missing(&message, MESSAGE_FIGURE_TOTAL), reports[i].total < 0);
    }
}

TEST(reports_in_each_wording)
{
    check_all(write_oldest, MESSAGE_PYTORCH);
    check_all(write_old, MESSAGE_PYTORCH);
    check_all(write_new, MESSAGE_PYTORCH);
    check_all(write_tensorflow, MESSAGE_TENSORFLOW);
    check_all(write_jax, MESSAGE_JAX);
}

/* With a line break after every 7th character, as on a narrow terminal, the causes are the same. */
TEST(broken_lines_change_nothing)
{
    for (size_t i = 0; i < REPORTS; i++) {
        struct writing writing = {""}, broken = {""};
        struct message message;
        write_new(&writing, &reports[i]);
        for (size_t at = 0; at < strlen(writing.text); at += 7)
            writing_add(&broken, "%.7s\n", writing.text + at);
        read_text(broken.text, &message);
        assert_int_equal(message.cause, reports[i].cause);
    }
}

/* A request of 125 960 192 bytes with 125 015 040 left: less than 1 % short, and still capacity. */
TEST(near_miss_is_capacity)
{
    static const char text[] =
        "W tensorflow/core/common_runtime/bfc_allocator.cc:338] Allocator (GPU_0_bfc) ran out of "
        "memory trying to allocate 488.42MiB with freed_by_count=0. The caller indicates that this "
        "is not a failure, but this may mean that there could be performance gains\n"
        "W tensorflow/core/common_runtime/bfc_allocator.cc:338] Allocator (GPU_0_bfc) ran out of "
        "memory trying to allocate 244.70MiB with freed_by_count=0. The caller indicates that this "
        "is not a failure\n"
        "W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
        "120.12MiB (rounded to 125960192)requested by op Conv2D\nIf the cause is memory "
        "fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will "
        "improve the situation.\n"
        "Stats: \nLimit:   40231108608\nInUse:   40106093568\nMaxInUse:  40200000000\n"
        "OOM when allocating tensor with shape[32,256,62,62] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]";
    struct message message;
    read_text(text, &message);
    assert_int_equal(message.cause, MESSAGE_CAPACITY);
    assert_int_equal(message.framework, MESSAGE_TENSORFLOW);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 125960192);
    assert_int_equal(message.figures[MESSAGE_FIGURE_UNALLOCATED].bytes, 125015040);
    assert_string_equal(message.allocator, "GPU_0_bfc");
    assert_false(message.may_fail);
    assert_true(message.whole_limit);
}

static enum message_cause cause_of(const char *text)
{
    struct message message;
    read_text(text, &message);
    return message.cause;
}

static uint64_t asked_by(const char *text)
{
    struct message message;
    read_text(text, &message);
    return message.figures[MESSAGE_FIGURE_ASKED].bytes;
}

TEST(shapes_are_multiplied)
{
    struct message message;
    assert_int_equal(asked_by("OOM when allocating tensor with shape[32,256,62,62] and type half"),
                     125960192 / 2);
    read_text("OOM when allocating tensor with shape[8,4]", &message);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 128);
    assert_true(message.type_assumed);
    read_text(
        "OOM when allocating tensor with shape[] and type int64 on /device:GPU:0 by allocator "
        "GPU_0_bfc",
        &message);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 8);
    assert_false(message.type_assumed);
    assert_string_equal(message.allocator, "GPU_0_bfc");
}

/* A shape or a size that wrapped around below zero requests more than any card has. */
TEST(requests_beyond_any_card)
{
    static const char *const texts[] = {
        "CUDA out of memory. Tried to allocate 17179869184.00 GiB. GPU 0 has a total capacity of "
        "8.00 GiB of which 1.00 GiB is free.",
        "CUDA out of memory. Tried to allocate 1.10 EiB (GPU 0; 8.00 GiB total capacity)",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 18446744073709551615 bytes.",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 16.00EiB (rounded to "
        "18446744073709551360)requested by op Tile",
        "OOM when allocating tensor with shape[9999999999,9999999999] and type float on /device",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(asked_by(texts[i]), UINT64_C(1) << 60);
        assert_int_equal(cause_of(texts[i]), MESSAGE_IMPOSSIBLE);
    }
}

#define FORM_ON(total)                                                                             \
    "CUDA out of memory. Tried to allocate 260.00 MiB. GPU 0 has a total capacity of " total       \
    " of which 60.31 MiB is free. "
#define NEW_FORM FORM_ON("79.10 GiB")
#define NEW_END                                                                                    \
    "Of the allocated memory 1.51 GiB is allocated by PyTorch, and 205.00 MiB is reserved by "     \
    "PyTorch but unallocated."

/* Other processes, this one's memory outside of its pool, and a container, in which this process
 * is listed by a number as any other. */
TEST(processes_are_told_apart)
{
    struct message message;
    read_text(NEW_FORM "Process 7 has 71.97 GiB memory in use. Including non-PyTorch memory, this "
                       "process has 2.10 GiB memory in use. " NEW_END,
              &message);
    assert_int_equal(message.cause, MESSAGE_TENANT);
    assert_int_equal(message.figures[MESSAGE_FIGURE_OTHERS].bytes,
                     (uint64_t)(71.97 * 1073741824 + 0.5));
    assert_int_equal(
        cause_of(FORM_ON("4.00 GiB") "Including non-PyTorch memory, this process has 3.90 GiB "
                                     "memory in use. " NEW_END),
        MESSAGE_OUTSIDE);
    read_text(FORM_ON("1.85 GiB") "Process 31047 has 1.75 GiB memory in use. " NEW_END, &message);
    assert_false(message.figures[MESSAGE_FIGURE_OTHERS].known);
    assert_int_equal(message.cause, MESSAGE_FRAGMENTATION_POSSIBLE);
    read_text(FORM_ON("2.25 GiB") "Process 1 has 344.00 MiB memory in use. Process 2 has 1.80 GiB "
                                  "memory in use. " NEW_END,
              &message);
    assert_int_equal(message.figures[MESSAGE_FIGURE_OTHERS].bytes, 344 * AR_MIB);
    assert_int_equal(message.cause, MESSAGE_TENANT);
}

/* 2^64 - 1 and 0 are printed if the driver does not know the value. */
TEST(impossible_figures_are_left_out)
{
    struct message message;
    read_text(NEW_FORM "Including non-PyTorch memory, this process has 17179869184.00 GiB memory "
                       "in use. " NEW_END,
              &message);
    assert_true(message.no_figures_taken);
    assert_false(message.figures[MESSAGE_FIGURE_PROCESS].known);
    read_text(FORM_ON("2.30 GiB") "Including non-PyTorch memory, this process has 0 bytes memory "
                                  "in use. " NEW_END,
              &message);
    assert_true(message.no_figures_taken);
    assert_int_equal(message.cause, MESSAGE_FRAGMENTATION_POSSIBLE);
}

TEST(other_devices_and_backends)
{
    struct message message;
    read_text(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 76.00 MiB. GPU 0 has a "
        "total capacity of 255.69 GiB of which 252.82 GiB is free. 1.20 GiB allowed; Of the "
        "allocated memory 1.14 GiB is allocated by PyTorch, with 17.00 MiB allocated in "
        "private pools (e.g., HIP Graphs), and 18.63 MiB is reserved by PyTorch but unallocated.",
        &message);
    assert_string_equal(message.device, "HIP");
    assert_int_equal(message.cause, MESSAGE_NOT_THE_ALLOCATOR);
    assert_true(message.figures[MESSAGE_FIGURE_ALLOWED].known);
    assert_int_equal(message.figures[MESSAGE_FIGURE_PRIVATE].bytes, 17 * AR_MIB);
    assert_int_equal(cause_of("XPU out of memory. Tried to allocate 59.61 GiB. GPU 0 has a total "
                              "capacity of 28.55 GiB of which 12.01 GiB is free."),
                     MESSAGE_IMPOSSIBLE);
    assert_int_equal(
        cause_of(
            "MPS backend out of memory (MPS allocated: 7.64 GiB, other allocations: 68.91 GiB, "
            "max allowed: 88.13 GiB). Tried to allocate 33.92 GiB on private pool."),
        MESSAGE_OUTSIDE);
    assert_int_equal(
        cause_of("Allocation on device 0 would exceed allowed memory. (out of memory)\n"
                 "Currently allocated     : 9.30 GiB\nRequested               : 20.00 MiB\n"
                 "Device limit            : 11.99 GiB\nFree (according to CUDA): 0 bytes\n"
                 "PyTorch limit (set by user-supplied memory fraction)\n"
                 "                        : 17179869184.00 GiB"),
        MESSAGE_TENANT_OR_OUTSIDE);
    assert_int_equal(cause_of("CUDA out of memory. Tried to allocate more than 1EB memory."),
                     MESSAGE_IMPOSSIBLE);
    read_text("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
              "memory: you tried to allocate 137438953472 bytes. Error code 12",
              &message);
    assert_string_equal(message.device, "CPU");
    assert_false(message.segment_asked);
}

TEST(xla_wordings)
{
    assert_int_equal(asked_by("RESOURCE_EXHAUSTED: Out of memory allocating 13307782216 bytes."),
                     13307782216);
    assert_int_equal(asked_by("Failed to allocate request for 8.00GiB (8589934592B) on device "
                              "ordinal 0"),
                     8589934592);
    assert_int_equal(
        asked_by("RESOURCE_EXHAUSTED: Out of memory while\ntrying to allocate 12.50GiB. "
                 "[executable_name='jit_f']"),
        (uint64_t)(12.5 * 1073741824));
    assert_int_equal(cause_of("Attempting to allocate 50.00M. That was not possible. There are "
                              "27.86M free.; (0x0x0_HBM0)"),
                     MESSAGE_CAPACITY);
    assert_int_equal(
        cause_of("Attempting to allocate 50.00M. That was not possible. There are 87.86M "
                 "free. The largest contiguous region of free memory is 27.00M due to "
                 "fragmentation."),
        MESSAGE_FRAGMENTATION);
    assert_int_equal(cause_of("XLA:TPU compile permanent error. Ran out of memory in memory space "
                              "hbm. Used 49.34G of 32.00G hbm. Exceeded hbm capacity by 17.34G."),
                     MESSAGE_IMPOSSIBLE);
    assert_int_equal(
        cause_of("Allocation (size=21474836480) would exceed memory (size=17179869184) "
                 ":: #allocation14167"),
        MESSAGE_IMPOSSIBLE);
    struct message message;
    read_text(
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9,813,289,240 bytes (9.8 "
        "GB)",
        &message);
    assert_int_equal(message.framework, MESSAGE_JAX);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 9813289240);
    read_text("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.69GiB. "
              "[tf-allocator-allocation-error='']",
              &message);
    assert_int_equal(message.framework, MESSAGE_JAX);
    assert_int_equal(asked_by("JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory trying to "
                              "allocate 8.00GiB."),
                     8589934592);
    assert_int_equal(cause_of("failed to allocate 2.20G (2360344832 bytes) from device: "
                              "CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
                     MESSAGE_UNKNOWN);
}

/* A dump's bins and chunks are not its statistics; the driver's own pool does tell of the card. */
TEST(dumps_are_read_by_their_statistics)
{
    struct message message;
    read_text(
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 286.00MiB.  Current allocation "
        "summary follows.\nBin (256):   Total Chunks: 0, Chunks in use: 0 0B allocated for chunks.",
        &message);
    assert_false(message.figures[MESSAGE_FIGURE_ALLOCATED].known);
    assert_int_equal(message.cause, MESSAGE_UNKNOWN);
    read_text(
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 800.00MiB (rounded to "
        "838860800)requested by op Add\nSum Total of in-use chunks: 6.00GiB\n"
        "total_region_allocated_bytes_: 7365066752 memory_limit_: 7365066752 available bytes: 0",
        &message);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ALLOCATED].bytes, 6 * AR_GIB);
    assert_int_equal(message.cause, MESSAGE_FRAGMENTATION);
    read_text("gpu_async_0 cuMemAllocAsync failed to allocate 3221225472 bytes: CUDA error: out of "
              "memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: "
              "17301504/8368685056\n Stats: Limit:   6292504576\nInUse:   5292504576\n",
              &message);
    assert_int_equal(message.figures[MESSAGE_FIGURE_TOTAL].bytes, 8368685056);
    assert_int_equal(message.figures[MESSAGE_FIGURE_FREE].bytes, 17301504);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ALLOCATED].bytes, 5292504576);
    assert_int_equal(message.cause, MESSAGE_CAPACITY);
}

TEST(text_around_it_does_not_matter)
{
    assert_int_equal(
        cause_of(
            "Traceback (most recent call last):\n  File \"x.py\", line 12, in <module>\n"
            "\033[31m[rank0]: RuntimeError:\033[0m CUDA out of memory. Tried to allocate 20.00 "
            "MiB (GPU 0;\n> 11.17 GiB total capacity; 10.60 GiB already allocated; 3.19 MiB "
            "free;\n> 10.68 GiB reserved in total by PyTorch)\n"),
        MESSAGE_FRAGMENTATION);
    assert_int_equal(
        cause_of("{\"error\": \"CUDA out of memory. Tried to allocate 20.00 MiB.\\nGPU 0 "
                 "has a total capacty of 4.00 GiB of which 2.35 GiB is free.\\n\"}"),
        MESSAGE_NOT_THE_ALLOCATOR);
    struct message message;
    read_text(NEW_FORM NEW_END "\nDuring handling: " NEW_FORM NEW_END, &message);
    assert_int_equal(message.count, 2);
}

#define SHORT "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 4.00 GiB total capacity)"

#define HOLDERS(asked, process, other)                                                             \
    "CUDA out of memory. Tried to allocate " asked                                                 \
    ". GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Process 7 has " other      \
    " memory in use. Including non-PyTorch memory, this process has " process                      \
    " memory in use. Of the allocated memory 5.90 GiB is allocated by PyTorch, and 10.00 MiB is "  \
    "reserved by PyTorch but unallocated."

/* A request of what another process holds may be a few bytes less or more; processes cannot hold
 * more than the card. */
TEST(holders_are_added_up)
{
    static const struct {
        const char *text;
        bool close, contradicts;
    } cases[] = {
        {HOLDERS("2.00 GiB", "6.00 GiB", "2.00 GiB"), true, false},
        {HOLDERS("1.50 GiB", "6.00 GiB", "2.00 GiB"), false, false},
        {HOLDERS("1.50 GiB", "6.00 GiB", "2.10 GiB"), false, true},
        {HOLDERS("1.50 GiB", "6.20 GiB", "2.00 GiB"), false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message message;
        read_text(cases[i].text, &message);
        assert_int_equal(message.close, cases[i].close);
        assert_int_equal(message.contradictions,
                         cases[i].contradicts ? 1u << MESSAGE_SUM_ABOVE_TOTAL : 0);
    }
}

/* Of a character that the end of the text cuts off, the first byte stays. */
TEST(a_cut_character_stays)
{
    static const char *const texts[] = {"x \xc2\xa0", "x \xe2\x94\x82", "x \xef\xbb\xbf"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t bytes = 2; bytes <= strlen(texts[i]); bytes++) {
            struct message_text text;
            struct ar_error error;
            assert_int_equal(message_text_open(texts[i], bytes, &text, &error), AR_OK);
            assert_int_equal(text.count, bytes == strlen(texts[i]) ? 1 : bytes - 1);
            message_text_close(&text);
        }
}

/* A drive is a letter alone before the colon: advice for Windows depends on it. */
TEST(paths_of_windows_are_recognised)
{
    static const struct {
        const char *text;
        bool windows;
    } cases[] = {
        {"C:\\Users\\x\\train.py: " SHORT, true},
        {"File \"D:\\x\\train.py\", line 1\n" SHORT, true},
        {"[WinError 10054]\n" SHORT, true},
        {"/venv\\Lib\\site-packages/x " SHORT, true},
        {"ab:\\x " SHORT, false},
        {"rpc:\\x " SHORT, false},
        {"a line\\nanother " SHORT, false},
        {"\\\\server\\share " SHORT, false},
        {SHORT, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message message;
        read_text(cases[i].text, &message);
        if (message.windows != cases[i].windows)
            fail_msg("%s: Windows is %d", cases[i].text, message.windows);
    }
}

/* What a browser, a terminal or a log puts between the words is left out: tags in capitals, box
 * characters, no-break spaces, the prefixes of ranks and of containers. */
TEST(words_are_found_between_marks)
{
    static const char *const texts[] = {
        "<P>CUDA out<BR>of memory. <CODE>Tried</CODE> to allocate 20.00 MiB</P>",
        "<p>CUDA out<br>of memory. <code>Tried</code> to allocate 20.00&nbsp;MiB</p>",
        "CUDA out of memory.\u00a0Tried to allocate\u00a020.00\u00a0MiB",
        "\u2502 CUDA out of memory. Tried to \u2502\n\u2502 allocate 20.00 MiB \u2502\n\u00a0",
        "[rank0]:CUDA out of memory. Tried to allocate 20.00\n[rank0]:MiB",
        "[rank12]: CUDA out of memory. Tried to allocate 20.00\n[rank12]: MiB",
        "CUDA out of memory. Tried to allocate 20.00 MiB \u00a0",
        "CUDA out of memory. Tried to allocate 20.00<td_1>MiB</td_1>",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct message message;
        read_text(texts[i], &message);
        assert_int_equal(message.framework, MESSAGE_PYTORCH);
        assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 20 * AR_MIB);
    }
}

/* Exact figures decide to the byte: what others hold is enough, or one byte too little. */
TEST(one_byte_decides_whose_memory_it_is)
{
    static const struct {
        uint64_t asked;
        enum message_cause cause;
    } cases[] = {{5 * AR_GIB, MESSAGE_TENANT}, {5 * AR_GIB + 1, MESSAGE_CAPACITY}};
    for (size_t i = 0; i < 2; i++) {
        struct message message;
        memset(&message, 0, sizeof message);
        message.framework = MESSAGE_DRIVER;
        const struct {
            enum message_figure_name name;
            uint64_t bytes;
        } figures[] = {
            {MESSAGE_FIGURE_ASKED, cases[i].asked}, {MESSAGE_FIGURE_TOTAL, 16 * AR_GIB},
            {MESSAGE_FIGURE_FREE, 1 * AR_GIB},      {MESSAGE_FIGURE_ALLOCATED, 11 * AR_GIB},
            {MESSAGE_FIGURE_RESERVED, 11 * AR_GIB}, {MESSAGE_FIGURE_OTHERS, 4 * AR_GIB}};
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
            message.figures[figures[f].name] =
                (struct message_figure){.known = true, .bytes = figures[f].bytes};
        message_judge(&message);
        assert_string_equal(message_cause_name(message.cause), message_cause_name(cases[i].cause));
    }
}

/* A log of llama.cpp says what was free at its start, and the buffers that it made since. */
TEST(a_log_of_ggml_is_summed_up)
{
#define GGML_END                                                                                   \
    "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4000.00 MiB on device 0: cudaMalloc "  \
    "failed: out of memory\n"                                                                      \
    "alloc_tensor_range: failed to allocate CUDA0 buffer of size 4194304000\n"
    static const struct {
        const char *text;
        uint64_t start_mib, allocated_mib;
    } cases[] = {
        {"using device CUDA0 (NVIDIA L4) - 8000 MiB free\n"
         "load_tensors: CUDA0 model buffer size = 5000.00 MiB\n"
         "load_tensors: CUDA1 model buffer size = 300.00 MiB\n"
         "llama_kv_cache: CUDA0 KV buffer size = 500.00 MiB\n" GGML_END,
         8000, 5500},
        {"llama_model_load: using device CUDA0 (NVIDIA L4) - 8000 MiB free\n"
         "load_tensors: CUDA0 model buffer size = many\n"
         "load_tensors: CUDA0 model buffer size = 5000.00 MiB\n" GGML_END,
         8000, 5000},
        {"llama_model_load: using device CUDA1 (NVIDIA L4) - 8000 MiB free\n" GGML_END, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message message;
        read_text(cases[i].text, &message);
        const struct message_figure *figures = message.figures;
        assert_int_equal(message.framework, MESSAGE_GGML);
        assert_int_equal(figures[MESSAGE_FIGURE_START].bytes, cases[i].start_mib * AR_MIB);
        assert_int_equal(figures[MESSAGE_FIGURE_ALLOCATED].bytes, cases[i].allocated_mib * AR_MIB);
    }
}

/* 1.00 GiB unused, 1 GiB + 2 MiB requested: two decimals do not decide it. */
TEST(closeness_is_said)
{
    struct message message;
    read_text(
        "CUDA out of memory. Tried to allocate 1026.00 MiB. GPU 0 has a total capacity of 8.00 GiB "
        "of which 2.00 MiB is free. Of the allocated memory 6.00 GiB is allocated by PyTorch, "
        "and 1.00 GiB is reserved by PyTorch but unallocated.",
        &message);
    assert_true(message.close);
    read_text(NEW_FORM NEW_END, &message);
    assert_false(message.close);
}

/* Bytes from the log of a pool have priority over the rounded figures of its error. */
TEST(logs_of_rmm)
{
    struct message message;
    struct ar_error error;
    static const char log[] =
        "[error ] [A][Stream 0x1][Upstream 11136000000B][FAILURE maximum pool size exceeded: Not "
        "enough room to grow, current/max/try size = 60.000000 GiB, 78.000000 GiB, 10.371208 GiB]";
    assert_int_equal(message_read(log, strlen(log), &message, &error), AR_OK);
    assert_int_equal(message.framework, MESSAGE_RMM);
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 11136000000);
    assert_int_equal(message.figures[MESSAGE_FIGURE_FREE].bytes, 18 * AR_GIB);
    assert_int_equal(message.cause, MESSAGE_NOT_THE_ALLOCATOR);
    static const char old[] = "MemoryError: std::bad_alloc: CUDA error at: "
                              "../include/rmm/mr/device/cuda_memory_resource.hpp68: "
                              "cudaErrorMemoryAllocation out of memory";
    assert_int_equal(message_read(old, strlen(old), &message, &error), AR_OK);
    assert_int_equal(message.framework, MESSAGE_RMM);
    assert_int_equal(message.cause, MESSAGE_UNKNOWN);
    assert_non_null(strstr(message.how, "25.04"));
}

TEST(host_memory_is_told)
{
    struct message message;
    static const char text[] =
        "W tensorflow/core/framework/op_kernel.cc:1763] OP_REQUIRES failed at cast_op.cc:109 : "
        "Resource exhausted: OOM when allocating tensor with shape[1,559,512,3] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu\n\t [[{{node Cast}}]]";
    assert_ok(message_read(text, strlen(text), &message, &test_error));
    assert_true(message.host);
    assert_string_equal(message.allocator, "cpu");
    assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, 559 * 512 * 3 * 4);
}

TEST(what_is_no_message_is_refused)
{
    static const char *const texts[] = {"", "segmentation fault", "Tried to allocate the afternoon",
                                        "OOM when allocating tensor with shape[?,4]"};
    struct message message;
    struct ar_error error;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(message_read(texts[i], strlen(texts[i]), &message, &error), AR_INVALID);
        assert_non_null(strstr(error.text, "the text"));
    }
    const char *torn = "Tried to allocate";
    assert_int_equal(message_read(torn, strlen(torn), &message, &error), AR_INVALID);
    assert_non_null(strstr(error.text, "not the size of the request"));
    const char *bare = "RuntimeError: CUDA error: out of memory";
    assert_int_equal(message_read(bare, strlen(bare), &message, &error), AR_OK);
    assert_true(message.bare);
    assert_int_equal(message.cause, MESSAGE_UNKNOWN);
    assert_int_equal(message.confidence, MESSAGE_OPEN);
}
