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
    {"active bytes read 3.83G, the reserved bytes of gpu0 9.35G", MESSAGE_CACHE, MESSAGE_LIKELY, 0,
     0},
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
    /* A full card, also if the last of it would be enough; the first words or the last ones
     * missing. */
    {OLD("60.00 MiB", "8.00 GiB", "7.20 GiB", "96.00 MiB", "7.40 GiB"), MESSAGE_FRAGMENTATION,
     MESSAGE_LIKELY, MIB(60), MIB(96)},
    {OLD("30.00 MiB", "8.00 GiB", "7.20 GiB", "96.00 MiB", "7.40 GiB"), MESSAGE_NOT_THE_ALLOCATOR,
     MESSAGE_SURE, MIB(30), MIB(96)},
    {"(GPU 0; 8.00 GiB total capacity; 40.00 MiB already allocated; 1.00 MiB free; 42.00 MiB "
     "reserved in total by PyTorch)",
     MESSAGE_TENANT_OR_OUTSIDE, MESSAGE_LIKELY, 0, MIB(1)},
    {"(GPU 0; 8.00 GiB total capacity; 6.00 GiB already allocated; 1.00 MiB free; 7.00 GiB "
     "reserved "
     "in total by PyTorch)",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, MIB(1)},
    {"NPU out of memory. Tried to allocate 64.00 MiB (NPU 0; 32.00 GiB total capacity; 30.00 GiB "
     "already allocated;",
     MESSAGE_CAPACITY, MESSAGE_LIKELY, MIB(64), 0},
    {"NPU out of memory. Tried to allocate 64.00 MiB (NPU 0; 32.00 GiB total capacity; 20.00 GiB "
     "already allocated;",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(64), 0},
    {"Error: CPU can't allocate memory. Tried to allocate 5000.0 GB", MESSAGE_HOST, MESSAGE_SURE,
     MIB(5000) << 10, 0},
    /* TensorFlow on a card that was full at its start, and on one that was not. */
    {"Created device /device:GPU:1 with 9 MB memory: name: X\nCreated device /device:GPU:0 with "
     "9000 "
     "MB memory: name: X\nAllocator (GPU_1_bfc) ran out of memory trying to allocate 2.00MiB",
     MESSAGE_TENANT_OR_OUTSIDE, MESSAGE_LIKELY, MIB(2), 0},
    {"Created device /device:GPU:1 with 9 MB memory: name: X\nCreated device /device:GPU:0 with "
     "9000 "
     "MB memory: name: X\nAllocator (GPU_0_bfc) ran out of memory trying to allocate 2.00MiB",
     MESSAGE_CAPACITY, MESSAGE_LIKELY, MIB(2), 0},
    /* RELION's pool: enough in pieces, not enough, and without figures. */
    {"CudaCustomAllocator out of memory\n [requestedSpace: 3000000 B]\n "
     "[largestContinuousFreeSpace: 2000000 B]\n [totalFreeSpace: 5000000 B]",
     MESSAGE_FRAGMENTATION, MESSAGE_SURE, 3000000, 0},
    {"CudaCustomAllocator out of memory\n [requestedSpace: 3000000 B]\n "
     "[largestContinuousFreeSpace: 2000000 B]\n [totalFreeSpace: 2500000 B]",
     MESSAGE_CAPACITY, MESSAGE_SURE, 3000000, 0},
    {"CudaCustomAllocator out of memory [requestedSpace: 3000000 B]", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     3000000, 0},
    /* Sums, hexadecimal numbers, and other programs' words. */
    {"Insufficient GPU memory error: The available single GPU memory is 8000.000 MB, which is less "
     "than the sum of model weight size (7000.000 MB) and temporary buffer size (1500.000 MB).",
     MESSAGE_CAPACITY, MESSAGE_LIKELY, MIB(8500), MIB(8000)},
    {"bm_alloc_gmem failed, dev_id = 0, size = 0x100000", MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(1), 0},
    {"amrex::Abort::0::Out of gpu memory. Free: 1048576 Asked: 4194304 !!!", MESSAGE_UNKNOWN,
     MESSAGE_OPEN, MIB(4), MIB(1)},
    {"Arena out of memory!!!\nBytes to allocate: 4194304 (4 MiB)", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     MIB(4), 0},
    {"Failed to allocate 4194304 bytes from DEVICE [0] memory", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     MIB(4), 0},
    {"Tactic Device request: 600MB Available: 302MB. Device memory is insufficient to use tactic.",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(600), MIB(302)},
    {"Skipping tactic 3 due to insuficient memory on requested size of 449 detected for tactic 4.",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(449), 0},
    {"ggml_tallocr_alloc: not enough space in the buffer to allocate blk.1 (needed 4194304, "
     "available 1048576)",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(4), 0},
    {"Uncaught exception: FullyFusedMLP: insufficient shared memory available on the GPU.",
     MESSAGE_IMPOSSIBLE, MESSAGE_SURE, 0, 0},
    {"OpenEncodeSessionEx failed: out of memory (10): (no details)", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     0, 0},
    {"Not enough memory to handle 2048 prefill tokens.", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    /* The host, by words of schedulers and systems; some of them have other causes as well. */
    {"3 Workers (tasks / actors) killed due to memory pressure (OOM)", MESSAGE_HOST, MESSAGE_SURE,
     0, 0},
    {"Memory on the node was 60.00GB / 64.00GB (0.9375), which exceeds the memory usage threshold "
     "of "
     "0.93. Ray killed this worker",
     MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"com.nvidia.spark.rapids.jni.CpuRetryOOM: CPU OutOfMemory", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"RuntimeException: Can't allocate [HOST] memory: 4096", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"MemoryError: bad allocation", MESSAGE_HOST, MESSAGE_LIKELY, 0, 0},
    {"vkCreateFence failed with ERROR_OUT_OF_HOST_MEMORY", MESSAGE_HOST, MESSAGE_LIKELY, 0, 0},
    {"['python', 'train.py', '--local_rank=3'] exits with return code = -9", MESSAGE_HOST,
     MESSAGE_LIKELY, 0, 0},
    {"llama runner terminated: signal: killed", MESSAGE_HOST, MESSAGE_LIKELY, 0, 0},
    {"LLVM ERROR: out of memory", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    {"warning: Failed to allocate pinned memory.", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    /* A text that is cut off in the pool's figures: the only process listed is this one. */
    {"CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 16.00 GiB of "
     "which 32.00 MiB is free. Process 7 has 15.95 GiB memory in use. Of the allocated memory "
     "15.00 GiB is allocated by PyTorch, and 500.00 MiB is reserve",
     MESSAGE_FRAGMENTATION, MESSAGE_LIKELY, MIB(64), MIB(32)},
    {"CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 16.00 GiB of "
     "which 32.00 MiB is free. Process 7 has 15.95 GiB memory in use. Of the allocated memory "
     "15.00 GiB is allocated by PyTorch, and",
     MESSAGE_CAPACITY, MESSAGE_LIKELY, MIB(64), MIB(32)},
    {"RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":1",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    /* Bounds of WebGPU; Gaudi, MIOpen, PhysX, OpenCL; workspaces and plans of servers. */
    {"Buffer size (300) exceeds the max buffer size limit (256)", MESSAGE_NOT_THE_ALLOCATOR,
     MESSAGE_SURE, 300, 0},
    {"Binding size (300) of [Buffer \"a\"] is larger than the maximum binding size (256).",
     MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, 300, 0},
    {"MODULE:SYNHELPER workspace Allocation of size ::4096 failed!", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     4096, 0},
    {"Memory not available to allocate buffer: 4096", MESSAGE_UNKNOWN, MESSAGE_OPEN, 4096, 0},
    {"fail to allocate memory 4096 bytes!! Result = 2", MESSAGE_UNKNOWN, MESSAGE_OPEN, 4096, 0},
    {"Unable to allocate memory of size 4096 for view", MESSAGE_UNKNOWN, MESSAGE_OPEN, 4096, 0},
    {"what(): Memory Object Allocation Failure", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    {"dt_opencl_alloc_device_buffer: could not allocate buffer", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0,
     0},
    {"Not enough allocatable device memory", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    {"Out of workspace memory in the allocator", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    {"Insufficient VRAM for model and cache", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
    {"dxvkMemoryAllocator: Memory allocation failed\n  Size: 4096\n  Alignment: 256",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 4096, 0},
    {"storage allocation failure, attempted to allocate 4096 at offset 0 in region that is "
     "1024bytes",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, 4096, 0},
    {"Failed to allocate a memory region of 4096 bytes. Memory info: free:200M, used:600M, "
     "total:800M, free/total:0.25",
     MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, 4096, MIB(200)},
    {"Failed to allocate a memory region of 4194304 bytes. Memory info: free:2M, used:6M, total:8M",
     MESSAGE_UNKNOWN, MESSAGE_OPEN, MIB(4), MIB(2)},
    {"No pool handles allocation of size 4096", MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, 4096, 0},
    {"clCreateBuffer(-61)", MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_SURE, 0, 0},
    {"ERROR: Failed to register pinned memory", MESSAGE_HOST, MESSAGE_SURE, 0, 0},
    /* Words of any program, beside those of a card. */
    {"my_solver: could not allocate device array, size = 4096 bytes", MESSAGE_UNKNOWN, MESSAGE_OPEN,
     4096, 0},
    {"CUDA error - cannot allocate a big buffer", MESSAGE_UNKNOWN, MESSAGE_OPEN, 0, 0},
};

/* Errors that are no lack of memory. */
TEST(others_are_refused)
{
    static const char *const texts[] = {
        "[719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED",
        "onnx runtime error 2: not enough space: expected 318080, got 314240",
        "the program exits with return code = 1", "98MiB / 1999MiB |  0%  Default |",
        "could not allocate a port for the server"};
    struct message message;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(message_read(texts[i], strlen(texts[i]), &message, NULL), AR_INVALID);
}

/* What a listing of nvidia-smi beside the message shows; progress bars and other pairs are none. */
TEST(listings_of_cards)
{
    static const struct {
        const char *text;
        unsigned cards;
        uint64_t used, total;
    } listings[] = {
        {"CUDA error: out of memory\n| 33%   34C    P8     1W /  38W |     98MiB /  1999MiB |      "
         "0%      Default |",
         1, MIB(98), MIB(1999)},
        {"CUDA error: out of memory\n|  3MiB / 40960MiB |  5% Default |\n|  7MiB / 40960MiB |  N/A "
         "|",
         2, MIB(3), MIB(40960)},
        {"CUDA error: out of memory\n 98MiB/1999MiB [00:05<00:00]", 0, 0, 0},
        {"CUDA error: out of memory\n 98.5MiB / 1999.0MiB | 10%", 0, 0, 0},
    };
    struct message message;
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
        const char *text = listings[i].text;
        assert_int_equal(message_read(text, strlen(text), &message, NULL), AR_OK);
        assert_int_equal(message.listing.cards, listings[i].cards);
        assert_int_equal(message.listing.used, listings[i].used);
        assert_int_equal(message.listing.total, listings[i].total);
    }
}

/* Where it is not the card that is full. */
TEST(other_memory_than_the_card)
{
    static const struct {
        const char *text;
        bool elsewhere;
    } texts[] = {
        {"Out of workspace memory", true},
        {"Prefill out of memory. Try to lower your batch size.", true},
        {"an illegal memory access was encountered\nUnable to allocate memory of size 12", true},
        {"Unable to allocate memory of size 12", false},
        {"CUDA error: out of memory", false},
    };
    struct message message;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i].text;
        assert_int_equal(message_read(text, strlen(text), &message, NULL), AR_OK);
        assert_int_equal(message.elsewhere, texts[i].elsewhere);
    }
}

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
