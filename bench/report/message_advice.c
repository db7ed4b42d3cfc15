/* What to do about a failed request, by cause, framework and platform. A setting is named only for
 * a platform that has it. */

#include "allocators/base/size.h"
#include "bench/report/message_page.h"
#include "bench/report/pages.h"

static bool is_on(const struct message *message, const char *device)
{
    return strcmp(message->device, device) == 0;
}

/* What the platform calls its tools. Texts name them as {tool}, {torch}, {statistics} and
 * {libraries}. */
struct platform {
    const char *device, *tool, *torch, *statistics, *libraries;
};

static const struct platform *platform_of(const struct message *message)
{
    static const char some[] = "NCCL, cuBLAS workspaces", nvidia[] = "nvidia-smi";
    static const char any[] = "nvidia-smi (rocm-smi, xpu-smi)";
    static const struct platform platforms[] = {
        {"CUDA", nvidia, "torch.cuda", "torch.cuda.memory_summary()", some},
        {"HIP", "rocm-smi", "torch.cuda", "torch.cuda.memory_summary()",
         "RCCL, hipBLAS workspaces"},
        {"XPU", "xpu-smi", "torch.xpu", "torch.xpu.memory_stats()", "oneCCL, oneDNN workspaces"},
        {"NPU", "npu-smi info", "torch.npu", "torch.npu.memory_summary()",
         "HCCL, workspaces of CANN"},
        {"MLU", "cnmon", "torch.mlu", "torch.mlu.memory_summary()", "CNCL, workspaces of CNNL"},
        {"MUSA", "mthreads-gmi", "torch.musa", "torch.musa.memory_summary()",
         "MCCL, muBLAS workspaces"},
        {"HPU", "hl-smi", "torch.hpu", "torch.hpu.memory_stats()", "HCCL, recipes of graphs"},
        {"D3D11", "the Task Manager (GPU)", "torch.cuda", "", some},
        {"D3D12", "the Task Manager (GPU)", "torch.cuda", "", some},
        {"Metal", "the Activity Monitor", "torch.mps", "torch.mps.driver_allocated_memory()",
         "other users of Metal"},
        {"MPS", "the Activity Monitor", "torch.mps", "torch.mps.driver_allocated_memory()",
         "other users of Metal"},
    };
    static const struct platform other = {"", any, "torch.cuda", "torch.cuda.memory_summary()",
                                          some};
    for (size_t i = 0; i < AR_COUNT(platforms); i++)
        if (is_on(message, platforms[i].device))
            return &platforms[i];
    return &other;
}

#define SHARE_LEAST 5 /* hundredths of a card that a model may be served with */

/* The share of the card that is free, rounded down. */
static void print_share(const struct message *message, char *share, size_t bytes)
{
    const struct message_figure *available = &message->figures[MESSAGE_FIGURE_FREE];
    const struct message_figure *total = &message->figures[MESSAGE_FIGURE_TOTAL];
    unsigned hundredths = 0;
    if (total->known && available->bytes > available->coarse_bytes)
        hundredths = (unsigned)(100 * (available->bytes - available->coarse_bytes) /
                                (total->bytes + total->coarse_bytes));
    if (hundredths < SHARE_LEAST)
        snprintf(share, bytes, "what is free");
    else
        snprintf(share, bytes, "%u.%02u, the part of the card that is free", hundredths / 100,
                 hundredths % 100);
}

/* Writes `text` with the names of the platform and the figures of the message in it. */
static void name_tools(const struct message *message, const char *text, char *line, size_t bytes)
{
    const struct platform *platform = platform_of(message);
    char share[64], fitting[32] = "";
    print_share(message, share, sizeof share);
    if (message->vllm.fitting_length)
        snprintf(fitting, sizeof fitting, " to %" PRIu64, message->vllm.fitting_length);
    const struct {
        const char *name, *text;
    } names[] = {{"{share}", share},
                 {"{length}", fitting},
                 {"{tool}", platform->tool},
                 {"{torch}", platform->torch},
                 {"{statistics}", platform->statistics},
                 {"{libraries}", platform->libraries}};
    size_t used = 0;
    while (*text && used + 1 < bytes) {
        size_t i = 0;
        while (i < AR_COUNT(names) && strncmp(text, names[i].name, strlen(names[i].name)) != 0)
            i++;
        if (i == AR_COUNT(names)) {
            line[used++] = *text++;
            continue;
        }
        int length = snprintf(line + used, bytes - used, "%s", names[i].text);
        used = used + (size_t)length < bytes ? used + (size_t)length : bytes - 1;
        text += strlen(names[i].name);
    }
    line[used] = '\0';
}

/* How to find the cause if the message does not have the figures. */
static const char *find_out(const struct message *message)
{
    static const char *const texts[] = {
        [MESSAGE_PYTORCH] =
            "Paste all of it, or the whole log: after these words PyTorch says how much the card "
            "has, how much was free, and what it had allocated and reserved. Or print {statistics} "
            "and {torch}.mem_get_info() at the failure.",
        [MESSAGE_TENSORFLOW] = "Paste the log with the lines before it too: there the allocator "
                               "writes its statistics (Limit, InUse).",
        [MESSAGE_JAX] = "Paste the log with the lines around it too: there the allocator writes "
                        "its statistics (Limit, InUse). Or print "
                        "jax.local_devices()[0].memory_stats() before the failing call. By "
                        "default JAX has 75 % of the card: XLA_PYTHON_CLIENT_MEM_FRACTION=.95 "
                        "gives it more, if nothing else runs there.",
        [MESSAGE_CUPY] =
            "The message does not say what of the pool is unused. Find out: print used_bytes(), "
            "free_bytes() and total_bytes() of cupy.get_default_memory_pool() in the handler. If "
            "free_bytes() is as large as the request, call free_all_blocks() before it (a limit "
            "counts unused blocks too), or use cupy.cuda.MemoryAsyncPool; nvidia-smi shows other "
            "processes.",
        [MESSAGE_RMM] =
            "The message does not say what of the pool is unused. Find out: wrap the pool in "
            "rmm.mr.StatisticsResourceAdaptor (the bytes in use at the failure) or "
            "rmm.mr.LoggingResourceAdaptor (each request, which `allocrig run` replays). A pool "
            "whose initial size is its maximum is one piece; one that grew is several, and no "
            "request may span two. Against fragmentation: rmm.mr.CudaAsyncMemoryResource().",
        [MESSAGE_JULIA] = "Print CUDA.memory_status() (CUDA.pool_status() from 5.5) at the "
                          "failure; CUDA.reclaim() and GC.gc(true) release what is unused.",
        [MESSAGE_DIRECTML] =
            "The message has no figure of the free memory. Find out: the GPU page of the Task "
            "Manager (dedicated and shared memory), torch_directml.gpu_memory(). DirectML keeps "
            "what it has allocated: smaller batches or images, or restart the process.",
    };
    const char *text =
        (size_t)message->framework < AR_COUNT(texts) ? texts[message->framework] : NULL;
    if (message->how)
        return message->how;
    if (is_on(message, "TPU"))
        return "The message does not say what was free. Paste the rest of it, or print "
               "jax.local_devices()[0].memory_stats() before the failing call.";
    if (message->framework == MESSAGE_PYTORCH && is_on(message, "XPU") &&
        message->figures[MESSAGE_FIGURE_ALLOCATED].known)
        return "The message of this release does not say what was free. Find out: xpu-smi, or "
               "torch.xpu.mem_get_info() just before the request. Many devices give at most 4 GiB "
               "to one request (max_mem_alloc_size of torch.xpu.get_device_properties).";
    if (message->framework == MESSAGE_MLX)
        return "MLX does not say what was free. Find out: mx.get_active_memory() and "
               "mx.get_cache_memory() before it; mx.clear_cache() releases what is unused. "
               "mx.device_info() has the largest buffer and the recommended working set of the "
               "device; sysctl iogpu.wired_limit_mb raises what the system leaves to the GPU.";
    if (is_on(message, "MPS"))
        return "Print torch.mps.current_allocated_memory() and torch.mps.driver_allocated_memory() "
               "at the failure; torch.mps.empty_cache() releases what is unused.";
    if (text)
        return text;
    return message->figures[MESSAGE_FIGURE_FREE].known
               ? "The message does not say who has the rest. Find out: {tool} for other processes, "
                 "and what the program had allocated itself, just before the request."
               : "The message has no figure of the free memory. Find out: {tool} for what is free "
                 "and for other processes, just before the request.";
}

#define TRY_TORCH(variable)                                                                        \
    "Try " variable "=expandable_segments:True; if it is not enough, max_split_size_mb:128 "       \
    "instead. A recorded snapshot and `allocrig advise` say which setting fits."

/* The settings of PyTorch depend on the device, the system and the version. */
static const char *unfragment_torch(const struct message *message)
{
    static const struct {
        const char *device, *text;
    } devices[] = {
        {"MPS", "Try torch.mps.empty_cache() before it; PYTORCH_MPS_HIGH_WATERMARK_RATIO (0.0: no "
                "limit) and PYTORCH_MPS_LOW_WATERMARK_RATIO set when MPS releases its cache."},
        {"HIP",
         "Try PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128 (PyTorch 2.9 on: PYTORCH_ALLOC_CONF), "
         "and torch.cuda.empty_cache() before it. expandable_segments:True helps in builds for "
         "ROCm that support it; the others warn \"not supported on this platform\"."},
        {"NPU", TRY_TORCH("PYTORCH_NPU_ALLOC_CONF")},
        {"XPU", "Try torch.xpu.empty_cache() before it; from PyTorch 2.9 on "
                "PYTORCH_ALLOC_CONF=expandable_segments:True, where the release supports it."},
    };
    for (size_t i = 0; i < AR_COUNT(devices); i++)
        if (is_on(message, devices[i].device))
            return devices[i].text;
    if (message->windows && message->torch != MESSAGE_TORCH_TO_1_3)
        return "Try PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 (PyTorch 1.10 on), or "
               "backend:cudaMallocAsync (2.0 on). expandable_segments is not supported under "
               "Windows. A recorded snapshot and `allocrig advise` say which setting fits.";
    if (message->torch == MESSAGE_TORCH_TO_1_3)
        return "This message is of PyTorch 1.3 or older, which has no settings: call "
               "torch.cuda.empty_cache() before it, or update; from 2.1 on "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps.";
    if (message->torch == MESSAGE_TORCH_TO_2_0)
        return "Try PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 (PyTorch 1.10 on), or update: "
               "this message is of 2.0 or older, and expandable_segments:True needs 2.1. A "
               "recorded snapshot and `allocrig advise` say which setting fits.";
    return message->new_variable ? TRY_TORCH("PYTORCH_ALLOC_CONF")
                                 : TRY_TORCH("PYTORCH_CUDA_ALLOC_CONF");
}

static const char *unfragment(const struct message *message)
{
    switch (message->framework) {
    case MESSAGE_TENSORFLOW:
    case MESSAGE_JAX:
        if (is_on(message, "TPU"))
            return "A TPU has one pool and no setting for it: delete arrays that are not needed "
                   "before the request (.delete(), del), donate arguments (donate_argnums), put "
                   "large and lasting arrays first, or restart the process; a smaller request fits "
                   "too.";
        return message->framework == MESSAGE_TENSORFLOW
                   ? "Try TF_GPU_ALLOCATOR=cuda_malloc_async; or leave memory growth off, so that "
                     "the pool is one segment."
                   : "Try a larger XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 by default), then "
                     "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, then platform (slow).";
    case MESSAGE_CUPY:
        return "Try cupy.get_default_memory_pool().free_all_blocks() before it, or CuPy's "
               "MemoryAsyncPool.";
    case MESSAGE_RMM:
    case MESSAGE_SPARK:
        return "Try rmm.mr.CudaAsyncMemoryResource() (Spark: spark.rapids.memory.gpu.pool=ASYNC), "
               "or a pool whose initial size is its maximum.";
    case MESSAGE_JULIA:
        return "Try GC.gc(true) and CUDA.reclaim() before it; CUDA.unsafe_free!() on arrays that "
               "are not needed any more; JULIA_CUDA_MEMORY_POOL=none to compare without the pool.";
    default:
        return unfragment_torch(message);
    }
}

static const char *enlarge(const struct message *message)
{
    if (is_on(message, "TPU"))
        return "The program needs more than the chip has: a smaller batch, donated arguments "
               "(donate_argnums), rematerialisation (jax.checkpoint), fewer bytes for each number, "
               "or sharding over more chips.";
    if (is_on(message, "MPS"))
        return "The program needs more than MPS allows: a smaller batch, fewer bytes for each "
               "number, torch.mps.empty_cache(). PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the limit "
               "(0.0: none); the system then swaps, and may become unstable.";
    if (message->framework == MESSAGE_GGML || message->framework == MESSAGE_VLLM ||
        message->framework == MESSAGE_MLC || message->framework == MESSAGE_LIBRARY ||
        message->vllm.warming_up)
        return find_out(message);
    uint64_t together, missing = message_page_short_by(message, &together);
    if (missing && missing < message_page_bytes(message, MESSAGE_FIGURE_TOTAL) / 50)
        return "Little is missing for this request, though later ones may need more: a slightly "
               "smaller batch or sequence, or recomputation of a part.";
    if (message->windows)
        return "The program needs more than there is: a smaller batch, recomputation, fewer bytes "
               "for each number, or a larger card. Under Windows the desktop needs some of it, and "
               "the driver may move memory to the host (slow) if its fallback is on.";
    return "The program needs more than there is: a smaller batch, recomputation, fewer bytes for "
           "each number, or a larger card.";
}

static const char wrong_size[] = "No setting helps: most often such a size was computed wrongly, "
                                 "from an overflow, a negative number or a wrong shape.";

static const char *impossible(const struct message *message)
{
    if (message->on_chip && message->how)
        return message->how;
    if (message->on_chip)
        return "The compiler plans this memory of the chip; no allocator is in it. Use smaller "
               "blocks in the kernel, or a smaller batch; --xla_tpu_scoped_vmem_limit_kib raises "
               "the limit of vmem.";
    if (message_page_program_passes(message))
        return enlarge(message);
    if (is_on(message, "TPU"))
        return "The compiled program needs more than the chip has, whatever else is on it: a "
               "smaller batch, rematerialisation (jax.checkpoint), donated arguments, or sharding "
               "over more chips.";
    if (is_on(message, "HIP"))
        return "No setting helps if the total is right: look at the shape or the batch size of "
               "this request. An APU reports only the memory that the firmware or the driver sets "
               "aside for it (UMA size, amdgpu.gttsize, ttm.pages_limit).";
    if (message_page_bytes(message, MESSAGE_FIGURE_ASKED) >= MESSAGE_ANY_CARD)
        return wrong_size;
    return "No setting helps: look at the shape or the batch size of this request. Often it is a "
           "full attention matrix, or a broadcast that was not meant.";
}

static const char *not_the_allocator(const struct message *message)
{
    if (message_page_passes_limit(message))
        return "Raise that limit, or keep the program within it: `allocrig advise --limit` names "
               "the settings that do.";
    if (message->framework == MESSAGE_MLC ||
        (message->framework == MESSAGE_LIBRARY && message->how))
        return find_out(message);
    if (message->reasons & (1u << MESSAGE_REASON_TIGHT))
        return "End other processes that {tool} shows; if there are none, the program needs "
               "more than there is: a smaller batch, recomputation, fewer bytes for each number, "
               "or a larger card.";
    if (message->block_limit && is_on(message, "Metal"))
        return "Metal limits the bytes of one buffer (maxBufferLength): use a smaller tensor or "
               "batch, a smaller quantization, or a newer release, which splits the weights.";
    if (message->block_limit && message->framework == MESSAGE_GGML)
        return "The device limits the bytes of one allocation: split buffers with "
               "GGML_VK_FORCE_MAX_ALLOCATION_SIZE, or use a smaller -ub.";
    if (is_on(message, "WebGPU"))
        return "WebGPU gives 256 MiB to one buffer, and 128 MiB to one binding, unless the page "
               "asks requestDevice for more (requiredLimits: maxBufferSize, "
               "maxStorageBufferBindingSize; webgpureport.org shows the most). Or split the "
               "buffer.";
    if (message->block_limit && is_on(message, "OpenCL"))
        return "OpenCL's devices limit the bytes of one buffer (CL_DEVICE_MAX_MEM_ALLOC_SIZE of "
               "clinfo, often a quarter of the memory; AMD: GPU_MAX_ALLOC_PERCENT=100, "
               "GPU_SINGLE_ALLOC_PERCENT=100): use smaller buffers.";
    if (message->block_limit)
        return "The device limits the bytes of one request: use several smaller tensors.";
    if (is_on(message, "XPU"))
        return "Look at the most that the device gives to one request (max_mem_alloc_size of "
               "torch.xpu.get_device_properties; 4 GiB on some), for a memory fraction, or for "
               "another process that used memory for a short time.";
    if (is_on(message, "HIP"))
        return "Look for a limit (a memory fraction, a container, the GTT size of an APU), for "
               "another process that used memory for a short time, or for a driver that fails for "
               "another reason (dmesg).";
    if (is_on(message, "MPS"))
        return "Metal refused a request that MPS allows: the system has too little memory left for "
               "it. Find out: the memory pressure in {tool}; end "
               "other programs, or use a smaller model. A higher "
               "PYTORCH_MPS_HIGH_WATERMARK_RATIO does not help, as the limit was not reached.";
    if (!message->card_told)
        return "The driver refused a request within the limit: other processes or libraries use "
               "the card's memory, or the system has a limit.";
    if (message->windows)
        return "Under Windows the driver (WDDM) also needs memory of the host for each request: "
               "look at the size of the page file and at free host memory, for a memory fraction, "
               "or for another process that used memory for a short time.";
    return "Look for a limit (a memory fraction, MIG, a container, WDDM on Windows), or for "
           "another process that used memory for a short time.";
}

static const char *host(const struct message *message)
{
    if (message->how)
        return message->how;
    if (message_page_bytes(message, MESSAGE_FIGURE_ASKED) >= MESSAGE_ANY_CARD)
        return wrong_size;
    if (message->allocator[0] && strstr(message->allocator, "host"))
        return "It is pinned memory of the host: TF_GPU_HOST_MEM_LIMIT_IN_MB sets its limit; or "
               "feed smaller batches.";
    if (message->framework == MESSAGE_GGML)
        return "The program goes on without pinned memory, with slower copies; "
               "GGML_CUDA_NO_PINNED=1 turns it off.";
    return "No setting of a GPU's allocator helps: look at the memory of the host (free, the limit "
           "of the container, ulimit -v; the paging file of Windows), the size of the data that is "
           "loaded at once, and the number of workers.";
}

static const char *cached(const struct message *message)
{
    if (message->framework == MESSAGE_JULIA)
        return "This is no failure. The pool keeps freed memory for later; GC.gc(true) and "
               "CUDA.reclaim() release it.";
    return "This is no failure. PyTorch keeps freed memory for later requests. "
           "torch.cuda.empty_cache() releases what is in segments without live blocks; the rest is "
           "fragmentation. Find out how much each is: torch.cuda.max_memory_allocated() (reserved "
           "memory up to it was once in use), \"Non-releasable memory\" of "
           "torch.cuda.memory_summary(), or a snapshot with `allocrig advise`.";
}

static const char *advice_of(const struct message *message)
{
    switch (message->cause) {
    case MESSAGE_IMPOSSIBLE:
        return impossible(message);
    case MESSAGE_NOT_THE_ALLOCATOR:
        return not_the_allocator(message);
    case MESSAGE_FRAGMENTATION:
    case MESSAGE_FRAGMENTATION_POSSIBLE:
        return unfragment(message);
    case MESSAGE_TENANT:
        return "Let the other processes end, or give this one a card of its own.";
    case MESSAGE_TENANT_OR_OUTSIDE:
        return message->framework == MESSAGE_VLLM
                   ? find_out(message)
                   : "Find out who has it: on the host (not in a container) {tool} lists the "
                     "processes of a card. If it is another process, let it end, or use another "
                     "card; if it is this one, look for libraries that allocate by themselves "
                     "({libraries}, another framework).";
    case MESSAGE_OUTSIDE:
        return is_on(message, "MPS")
                   ? "Look for Metal memory outside of the allocator of PyTorch: compiled graphs "
                     "of MPS, other frameworks in the process; torch.mps.empty_cache(). "
                     "PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the limit (0.0: none)."
                   : "Look for libraries that allocate by themselves: {libraries}, another "
                     "framework in the same process.";
    case MESSAGE_HOST:
        return host(message);
    case MESSAGE_CACHE:
        return cached(message);
    case MESSAGE_UNKNOWN:
        return find_out(message);
    default:
        return enlarge(message);
    }
}

const char *message_page_advice(const struct message *message, char *line, size_t line_bytes)
{
    name_tools(message, advice_of(message), line, line_bytes);
    return line;
}

const char *message_page_unfragment(const struct message *message, char *line, size_t line_bytes)
{
    name_tools(message, unfragment(message), line, line_bytes);
    return line;
}
