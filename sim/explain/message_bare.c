/* Messages that only say that memory ran out, and errors of libraries that allocate beside the
 * pool. No cause follows from them; the table says how to find it. The size of a request is read if
 * one stands near. */
#include <stdio.h>
#include <string.h>

#include "sim/explain/message_text.h"

static const char how_beside[] =
    "A library asked the driver beside the pool of the framework, so nothing was left outside of "
    "it, or the card was full already. Find out: print what is free just before it "
    "(torch.cuda.mem_get_info(), nvidia-smi); leave memory free outside of the pool "
    "(torch.cuda.set_per_process_memory_fraction, TensorFlow's memory limit, "
    "XLA_PYTHON_CLIENT_MEM_FRACTION, vLLM's gpu_memory_utilization).";
const char message_how_unknown[] =
    "The message has no other figure. Find out: {tool} for other processes and for what is "
    "free just before the request, and the statistics of the program's own allocator, if it has "
    "one.";
static const char how_cpp[] =
    "C++ reports this for memory of the host, and RMM also for memory of the card. Find out: free "
    "-h and the limit of the container for the host, nvidia-smi for the card.";
static const char how_ollama[] =
    "Ollama's log says before it what it found free (\"inference compute\", \"gpu memory\"). Find "
    "out: ollama ps and nvidia-smi for other processes; a smaller num_ctx or num_gpu.";
static const char how_driver[] =
    "The driver does not print sizes. Find out: {tool} for other processes and for what is free; "
    "run the program with the statistics of its framework ({statistics}, or a recorded "
    "snapshot).";
static const char how_metal[] =
    "Metal does not print sizes. Find out: the log says at its beginning the recommended working "
    "set and the size of each buffer; sysctl iogpu.wired_limit_mb raises what the system leaves to "
    "the GPU. A smaller -c, -ub and -b, fewer layers on the GPU (-ngl), a smaller quantization.";
static const char how_buffer[] =
    "The lines before it say the size of the buffer and the error of the driver: paste them too. "
    "Find out: ollama ps and {tool} for other processes; fewer layers on the GPU (-ngl, num_gpu), "
    "a smaller context (-c, num_ctx).";
static const char how_rmm[] =
    "RMM prints sizes from 25.04 on. Find out: wrap the resource in "
    "rmm.mr.LoggingResourceAdaptor or StatisticsResourceAdaptor, and set the initial size of a "
    "pool to its maximum, so that it is one piece.";
static const char how_vllm[] =
    "vLLM had nothing left for its cache after the weights and the profiling run, within its share "
    "of the card. Find out: its log says what the weights took (\"Model loading took\") and what "
    "the share was. Raise gpu_memory_utilization if the card is otherwise empty; else lower "
    "max_model_len or max_num_seqs, set enforce_eager, or use more GPUs.";
static const char how_spark[] =
    "A batch could not be made small enough for the GPU. Find out: the log's lines of "
    "DeviceMemoryEventHandler and RmmSpark before it. Fewer "
    "spark.rapids.sql.concurrentGpuTasks, a smaller spark.rapids.sql.batchSizeBytes.";
static const char how_kv[] =
    "The cache that vLLM could make within its share of the card holds fewer tokens than "
    "max_model_len. Lower max_model_len, or raise gpu_memory_utilization if the card is otherwise "
    "empty; an fp8 cache (kv_cache_dtype) or more GPUs (tensor_parallel_size) help too.";
static const char how_sglang[] =
    "SGLang had nothing left for its cache after the weights, within its share of the card. Raise "
    "--mem-fraction-static if the card is otherwise empty; else use a smaller model or more GPUs "
    "(--tp).";

static const char how_slots[] =
    "SGLang's own pool of requests or tokens is used up, not the card. Lower "
    "--max-running-requests or --max-total-tokens, or raise --mem-fraction-static if the card is "
    "otherwise empty; a smaller --chunked-prefill-size if it happens in prefill.";

static const struct bare {
    const char *words;
    enum message_framework framework;
    const char *device, *how;
    bool host;
} bares[] = {
    {"noavailablememoryforthecacheblocks", MESSAGE_VLLM, "", how_vllm, false},
    {"thanthemaximumnumberoftokensthatcanbestoredinkvcache", MESSAGE_VLLM, "", how_kv, false},
    {"alloc_req_slotsrunsoutofmemory", MESSAGE_SGLANG, "", how_slots, false},
    {"prefilloutofmemory", MESSAGE_SGLANG, "", how_slots, false},
    {"decodeoutofmemory", MESSAGE_SGLANG, "", how_slots, false},
    {"increase--mem-fraction-static", MESSAGE_SGLANG, "", how_sglang, false},
    {"increasemem_fraction_static", MESSAGE_SGLANG, "", how_sglang, false},
    {"cublas_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cudnn_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cusolver_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cufft_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cusparse_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cusparse_status_insufficient_resources", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"rocblas_status_memory_error", MESSAGE_LIBRARY, "HIP", how_beside, false},
    {"cudafailure2'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cudafailure'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, false},
    {"cnmem_status_out_of_memory", MESSAGE_LIBRARY, "CUDA", how_driver, false},
    {"outofgpumemoryerror", MESSAGE_JULIA, "", NULL, false},
    {"mpsbackendoutofmemory", MESSAGE_PYTORCH, "MPS", NULL, false},
    {"cudaoutofmemory", MESSAGE_PYTORCH, "CUDA", NULL, false},
    {"hipoutofmemory", MESSAGE_PYTORCH, "HIP", NULL, false},
    {"xpuoutofmemory", MESSAGE_PYTORCH, "XPU", NULL, false},
    {"npuoutofmemory", MESSAGE_PYTORCH, "NPU", NULL, false},
    {"kiogpucommandbuffercallbackerroroutofmemory", MESSAGE_GGML, "Metal", how_metal, false},
    {"unabletoallocatecuda", MESSAGE_GGML, "CUDA", how_buffer, false},
    {"unabletoallocaterocm", MESSAGE_GGML, "HIP", how_buffer, false},
    {"unabletoallocatevulkan", MESSAGE_GGML, "Vulkan", how_buffer, false},
    {"unabletoallocatemetal", MESSAGE_GGML, "Metal", how_metal, false},
    {"unabletoallocatesycl", MESSAGE_GGML, "XPU", how_buffer, false},
    {"unabletoallocatebackendbuffer", MESSAGE_GGML, "", how_buffer, false},
    {"erroroutofdevicememory", MESSAGE_DRIVER, "Vulkan", how_driver, false},
    {"vk_error_out_of_device_memory", MESSAGE_DRIVER, "Vulkan", how_driver, false},
    {"cudahostalloc", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cumemhostalloc", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cumemallochost", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cudamallochost", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"hiphostmalloc", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cl_out_of_host_memory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"erroroutofhostmemory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"vk_error_out_of_host_memory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"errno12]cannotallocatememory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"failedtoallocatepinnedsystemmemory", MESSAGE_TRITON_SERVER, "", NULL, true},
    {"mem_object_allocation_failure", MESSAGE_DRIVER, "OpenCL", how_driver, false},
    {"ur_result_error_out_of_device_memory", MESSAGE_DRIVER, "XPU", how_driver, false},
    {"ze_result_error_out_of_device_memory", MESSAGE_DRIVER, "XPU", how_driver, false},
    {"pi_error_out_of_resources", MESSAGE_DRIVER, "XPU", how_driver, false},
    {"ur_result_error_out_of_resources", MESSAGE_DRIVER, "XPU", how_driver, false},
    {"hiperroroutofmemory", MESSAGE_DRIVER, "HIP", how_driver, false},
    {"hiperror:outofmemory", MESSAGE_DRIVER, "HIP", how_driver, false},
    {"cuda_error_out_of_memory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudaerrormemoryallocation", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudaruntimeerror(2)", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudaerror:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudadrivererror:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudafailure2:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudaerror2:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"errorcode2:outofmemory", MESSAGE_TENSORRT, "CUDA", how_driver, false},
    {"cudamallocfailed:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudamallocretryfailed:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"cudasuccess(2vs.0)outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, false},
    {"maximumpoolsizeexceeded", MESSAGE_RMM, "", how_rmm, false},
    {"exceededmemorylimit", MESSAGE_RMM, "", how_rmm, false},
    {"bad_alloc:out_of_memory", MESSAGE_RMM, "", how_rmm, false},
    {"bad_alloc:cudaerrorat", MESSAGE_RMM, "", how_rmm, false},
    {"couldnotsplitinputsandretry", MESSAGE_SPARK, "", how_spark, false},
    {"retryoom", MESSAGE_SPARK, "", how_spark, false},
    {"notenoughmemoryleft", MESSAGE_DRIVER, "", how_driver, false},
    {"attemptingtoreserve", MESSAGE_JAX, "TPU", NULL, false},
    {"resource_exhausted:outofmemory", MESSAGE_JAX, "", NULL, false},
    {"outofmemory:killedprocess", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"winerror1455", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"thepagingfileistoosmall", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"outofsharedmemory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"iskilledbysignal:killed", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"javaheapspace", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"gcoverheadlimitexceeded", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"heapoutofmemory", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cannotallocatememory(oserror12)", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"oom-kill", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"oomkilled", MESSAGE_HOST_PROGRAM, "", NULL, true},
    {"cl_out_of_resources", MESSAGE_DRIVER, "OpenCL", how_driver, false},
    {"8007000enotenoughmemory", MESSAGE_DIRECTML, "DirectML", NULL, false},
    {"pt_devmemallocationfailed", MESSAGE_DRIVER, "HPU", how_driver, false},
    {"insufficientvram", MESSAGE_DRIVER, "", how_ollama, false},
    {"outofmemoryerror", MESSAGE_DRIVER, "", how_driver, false},
    {"outofmemory", MESSAGE_DRIVER, "", how_driver, false},
    {"out_of_memory", MESSAGE_DRIVER, "", how_driver, false},
    {"insufficientmemory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"insufficientdevicememory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"insufficientgpumemory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"notenoughmemory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"notenoughdevicememory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"notenoughgpumemory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"noenoughgpumemory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"notenoughvram", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"outofgpu", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"outofvram", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"failedtoallocatememory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"couldnotallocatememory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"cannotallocatememory", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"allocationfailed", MESSAGE_DRIVER, "", message_how_unknown, false},
    {"std::bad_alloc", MESSAGE_DRIVER, "", how_cpp, false},
};

static bool is_rmm(const struct message_text *text)
{
    return message_text_has(text, "/rmm/") || message_text_has(text, "rmm.") ||
           message_text_has(text, "rmmfailure");
}

/* The first size, with its unit, that stands right after a word for a request. */
static void read_size(const struct message_text *text, struct message *self)
{
    static const char *const words[] = {
        "allocate", "allocating", "allocationof", "ofsize",     "requested",
        "required", "need",       "size:",        "requesting", "oflength"};
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t at = 0;
             (at = message_text_find(text, words[i], at, text->count)) != MESSAGE_NOWHERE;) {
            at += strlen(words[i]);
            at += strspn(text->chars + at, ":=(");
            bool size = strcmp(words[i], "ofsize") == 0;
            size_t end = message_text_asked(text, at, asked);
            if (end == MESSAGE_NOWHERE && size)
                end = message_text_number(text, at, 0, asked);
            if (end != MESSAGE_NOWHERE)
                return;
        }
    *asked = (struct message_figure){0};
}

bool message_read_bare(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < sizeof bares / sizeof *bares; i++) {
        size_t at = message_text_find(text, bares[i].words, 0, text->count);
        if (at == MESSAGE_NOWHERE)
            continue;
        self->framework = bares[i].framework;
        self->how = bares[i].how;
        self->bare = true;
        self->taken = 1;
        for (; at != MESSAGE_NOWHERE;
             at = message_text_find(text, bares[i].words, at + 1, text->count))
            self->count++;
        snprintf(self->device, sizeof self->device, "%s", bares[i].device);
        self->host = bares[i].host;
        if (self->framework == MESSAGE_DRIVER && is_rmm(text)) {
            self->framework = MESSAGE_RMM;
            self->how = how_rmm;
        }
        if (self->framework == MESSAGE_DRIVER)
            read_size(text, self);
        return true;
    }
    return false;
}
