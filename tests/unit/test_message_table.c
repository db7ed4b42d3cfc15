/* Single messages with the cause, the confidence and the figures that they give: how sure a cause
 * is at its bounds, ways to write numbers, and wordings of which a program prints only one. */
#include "sim/explain/message.h"
#include "tests/support/test.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define OLD(asked, total, allocated, available, reserved)                                          \
    "CUDA out of memory. Tried to allocate " asked " (GPU 0; " total " total capacity; " allocated \
    " already allocated; " available " free; " reserved " reserved in total by PyTorch)"
#define PROCESSES(asked, available, used)                                                          \
    "CUDA out of memory. Tried to allocate " asked ". GPU 0 has a total capacity of 16.00 GiB of " \
    "which " available " is free. Process 7 has " used                                             \
    " memory in use. Of the allocated memory 0 "                                                   \
    "bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."

static const struct row {
    const char *text;
    enum message_cause cause;
    enum message_confidence confidence;
    uint64_t asked, available; /* 0: not compared */
} rows[] = {
    /* The program alone would not fit; it would, if its context is small; others may have it. */
    {OLD("2.00 GiB", "8.00 GiB", "6.00 GiB", "1.00 GiB", "6.05 GiB"), MESSAGE_CAPACITY,
     MESSAGE_SURE, MIB(2048), MIB(1024)},
    {OLD("1.71 GiB", "6.00 GiB", "3.49 GiB", "1.04 GiB", "3.50 GiB"), MESSAGE_CAPACITY,
     MESSAGE_LIKELY, 0, 0},
    {OLD("1.12 GiB", "15.77 GiB", "13.52 GiB", "1.05 GiB", "13.52 GiB"), MESSAGE_TENANT_OR_OUTSIDE,
     MESSAGE_LIKELY, 0, 0},
    /* 1.7 % of the pool, which is usual, and 30 %. */
    {OLD("20.00 MiB", "4.00 GiB", "3.40 GiB", "0 bytes", "3.46 GiB"), MESSAGE_FRAGMENTATION,
     MESSAGE_LIKELY, MIB(20), 0},
    {OLD("1.00 GiB", "4.00 GiB", "2.40 GiB", "0 bytes", "3.46 GiB"), MESSAGE_FRAGMENTATION,
     MESSAGE_SURE, MIB(1024), 0},
    /* Marks between groups of digits, and decimal commas. */
    {OLD("1,536.00 MiB", "7,977.00 MiB", "5,632.00 MiB", "1,256.00 MiB", "6,570.00 MiB"),
     MESSAGE_FRAGMENTATION_POSSIBLE, MESSAGE_LIKELY, MIB(1536), MIB(1256)},
    {OLD("1,50 GiB", "7,79 GiB", "5,50 GiB", "0,25 GiB", "7,10 GiB"), MESSAGE_FRAGMENTATION,
     MESSAGE_SURE, MIB(1536), MIB(256)},
    {OLD("1.536,00 MiB", "7.977,00 MiB", "5.632,00 MiB", "1.256,00 MiB", "6.570,00 MiB"),
     MESSAGE_FRAGMENTATION_POSSIBLE, MESSAGE_LIKELY, MIB(1536), MIB(1256)},
    {OLD("1\xe2\x80\xaf"
         "536,00 MiB",
         "7\xc2\xa0"
         "977,00 MiB",
         "5\xe2\x80\x89"
         "632,00 MiB",
         "1\xe2\x80\x99"
         "256.00 MiB",
         "6\xd9\xac"
         "570\xd9\xab"
         "00 MiB"),
     MESSAGE_FRAGMENTATION_POSSIBLE, MESSAGE_LIKELY, MIB(1536), MIB(1256)},
    {"Out of memory allocating 200.000.000.000 bytes (allocated so far: 4.096 bytes)",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, UINT64_C(200000000000), 0},
    {"Out of memory allocating \xd9\xa2\xd9\xa0\xd9\xac\xd9\xa0\xd9\xa0\xd9\xa0 bytes (allocated "
     "so far: 0 "
     "bytes)",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 20000, 0},
    /* More than any GPU has. */
    {"rocm_driver.cc:606] failed to allocate 127.99TiB (140729850295296 bytes) from device: "
     "HIP_ERROR_OutOfMemory",
     MESSAGE_IMPOSSIBLE, MESSAGE_SURE, UINT64_C(140729850295296), 0},
    /* NCCL's asynchronous request, and the last line of llama.cpp alone. */
    {"ncclUnhandledCudaError: Call to CUDA function failed. Last error: Failed to CUDA calloc "
     "async 608 bytes",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 608, 0},
    {"error loading model: unable to allocate CUDA0 buffer", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    /* A printed pair, the label behind the number. */
    {"GPU memory: 5021 MiB allocated, 14336 MiB reserved", MESSAGE_CACHE, MESSAGE_LIKELY, 0, 0},
    /* CatBoost prints MiB without a unit. */
    {"Out of memory. Requested 17476.96875; Free 2255.542871", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     MIB(17476) + 31 * MIB(1) / 32, 0},
    {"not enough memory for tree-ctrs: 2666.5 available, need at least 4902.5", MESSAGE_UNKNOWN,
     MESSAGE_OPEN, MIB(4902) + MIB(1) / 2, MIB(2666) + MIB(1) / 2},
    /* Both cores of a TPU. */
    {"TPU TensorCore Hbm usage: 34.50G, SparseCore Hbm usage 174.00G, exceeding available bytes: "
     "95.50G",
     MESSAGE_IMPOSSIBLE, MESSAGE_SURE, MIB(213504), 0},
    /* The share of vLLM may be the cause, too. */
    {"(24.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.18 GiB)",
     MESSAGE_CAPACITY, MESSAGE_LIKELY, MIB(24576), 0},
    /* One process is listed and nothing is left for a second: it is this one, although its pool is
     * empty. With 1 GiB left, this process may be another. */
    {PROCESSES("2.00 MiB", "1.00 MiB", "15.99 GiB"), MESSAGE_OUTSIDE, MESSAGE_LIKELY, MIB(2), 0},
    {PROCESSES("2.00 MiB", "1.00 MiB", "14.99 GiB"), MESSAGE_TENANT, MESSAGE_SURE, MIB(2), 0},
    /* The host, and words of any program. */
    {"cudaHostAlloc failed, ret[2], out of memory", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"OSError: [Errno 12] Cannot allocate memory", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"OSError: [WinError 1455] The paging file is too small for this operation to complete",
     MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"java.lang.OutOfMemoryError: Java heap space", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"[GPU] Exceeded max size of memory object allocation: requested 6442450944 bytes, but max "
     "alloc size supported by device is 4294959104 bytes.",
     MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, MIB(6144), 0},
    {"Buffer size (1073741824) exceeds the max buffer size limit (268435456).",
     MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, MIB(1024), 0},
    {"FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::1073741824 (1024)MB",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(1024), 0},
    {"com.nvidia.spark.rapids.jni.RetryOOM: task should retry operation", MESSAGE_UNKNOWN,
     MESSAGE_OPEN, 0, 0},
    {"Failed to allocate 4096 MB of GPU memory", MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(4096), 0},
    {"cudaMalloc of size 8589934592 failed: out of memory", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     MIB(8192), 0},
    {"Not enough VRAM. Required 6.0 GB, available 4.0 GB", MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(6144),
     0},
    {"RuntimeError: Invalid buffer size: 24.50 GB", MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE,
     MIB(25088), 0},
};

TEST(each_message_has_its_cause)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct message message;
        struct ar_error error = {0};
        if (message_read(row->text, strlen(row->text), &message, &error))
            fail_msg("%s: %s", row->text, error.text);
        if (message.cause != row->cause || message.confidence != row->confidence)
            fail_msg("%s: %s, %d", row->text, message_cause_name(message.cause),
                     (int)message.confidence);
        if (row->asked)
            assert_int_equal(message.figures[MESSAGE_FIGURE_ASKED].bytes, row->asked);
        if (row->available)
            assert_int_equal(message.figures[MESSAGE_FIGURE_FREE].bytes, row->available);
    }
}
