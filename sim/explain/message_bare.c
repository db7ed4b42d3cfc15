/* Messages that only say that memory ran out, and errors of libraries that allocate beside the
 * pool. No cause follows from them; the table says how to find it. The size of a request is read if
 * one stands near. */
#include <ctype.h>

#include "sim/explain/message_claim.h"
#include "sim/explain/message_forms.h"

static const char how_beside[] =
    "A library takes its memory from the driver, not from the pool of the framework. The pool left "
    "too little, or the card was full already. Find out: print what is free just before it "
    "(torch.cuda.mem_get_info(), nvidia-smi); leave memory free outside of the pool "
    "(torch.cuda.set_per_process_memory_fraction, TensorFlow's memory limit, "
    "XLA_PYTHON_CLIENT_MEM_FRACTION, vLLM's gpu_memory_utilization).";
const char message_how_unknown[] =
    "The message has no other figure. Find out: {tool} for other processes and for what is free "
    "just before the request, and the statistics of the program's own allocator, if it has one.";
static const char how_cpp[] =
    "C++ reports this for memory of the host, and RMM also for memory of the card. Find out: free "
    "-h and the limit of the container for the host, nvidia-smi for the card.";
static const char how_ollama[] =
    "Ollama's log says before it what it found free (\"inference compute\", \"gpu memory\"). Find "
    "out: ollama ps and nvidia-smi for other processes; a smaller num_ctx or num_gpu.";
static const char how_driver[] =
    "The driver does not print sizes. Find out: {tool} for other processes and for what is free; "
    "run the program with the statistics of its framework ({statistics}, or a recorded snapshot).";
static const char how_driver_of_others[] =
    "The message has no sizes. Find out: {tool} for other processes and for what is free just "
    "before the request, and the statistics of the program's own allocator, if it has one. If no "
    "other process has much of the card, most often the program needs more than there is: give it "
    "a smaller input, batch or scene.";
static const char how_metal[] =
    "Metal does not print sizes. Find out: the log says at its beginning the recommended working "
    "set and the size of each buffer; sysctl iogpu.wired_limit_mb raises what the system leaves to "
    "the GPU. A smaller -c, -ub and -b, fewer layers on the GPU (-ngl), a smaller quantization.";
static const char how_buffer[] =
    "The lines before it say the size of the buffer and the error of the driver: paste them too. "
    "Find out: ollama ps and {tool} for other processes; fewer layers on the GPU (-ngl, num_gpu), "
    "a smaller context (-c, num_ctx).";
static const char how_rmm[] = "RMM prints sizes from 25.04 on. Find out: wrap the resource in "
                              "rmm.mr.LoggingResourceAdaptor or StatisticsResourceAdaptor, and set "
                              "the initial size of a pool to its maximum, so that it is one piece.";
static const char how_vllm[] =
    "vLLM had nothing left for its cache after the weights and the profiling run, within its share "
    "of the card. Find out: its log says what the weights took (\"Model loading took\") and what "
    "the share was. Raise gpu_memory_utilization if the card is otherwise empty; else lower "
    "max_model_len or max_num_seqs, set enforce_eager, or use more GPUs.";
static const char how_wakes[] =
    "vLLM's sleep mode could not map its memory again: what it gave up while it slept, others have "
    "taken, most often the trainer beside it. Find out: nvidia-smi just before the wake-up; free "
    "or "
    "offload there, and empty its cache, before wake_up(), or lower gpu_memory_utilization. "
    "`allocrig twin` plays both (workloads/scenarios/WAKE_UP.md).";
static const char how_spark[] =
    "A batch could not be made small enough for the GPU. Find out: the log's lines of "
    "DeviceMemoryEventHandler and RmmSpark before it. Fewer spark.rapids.sql.concurrentGpuTasks, a "
    "smaller spark.rapids.sql.batchSizeBytes.";
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
static const char how_exllama[] =
    "The loader plans the weights and the cache before it loads them, and they do not fit into "
    "what is free. A smaller max_seq_len or cache_size, a quantized cache (cache_mode Q8 or Q4), "
    "fewer bits for each weight, or another gpu_split. Find out: {tool} for other processes.";
static const char how_nvml[] =
    "PyTorch was out of memory, and NVML then failed to give it the figures for its message (on a "
    "Jetson, in a container or after an update of the driver). Find out: {statistics} and "
    "{torch}.mem_get_info() just before the request.";
static const char how_workspace[] =
    "It is a workspace of fixed size, made beforehand, not the card: make it larger (FlashInfer: "
    "the buffer that is given to the wrapper), update the server, or use a smaller batch.";
static const char how_limit_of_workspace[] =
    "No tactic fits into the workspace that the builder may use; the card itself may have room. "
    "Raise the limit (memory_pool_limit, max_workspace_size, trtexec --memPoolSize=workspace:N); "
    "if that does not help, the model's layer is not supported there.";
static const char how_nvenc[] =
    "NVENC also reports this if too many sessions are open: consumer cards allow 3 to 12 of them "
    "(nvidia-smi encodersessions lists them). Find out: nvidia-smi for the free memory. Close "
    "sessions, or use fewer surfaces (-surfaces 8) and less lookahead.";
static const char how_tgi[] =
    "The server tries its largest batch at its start, beside the weights. Find out: its log says "
    "the free memory; nvidia-smi shows other processes. Lower --max-batch-prefill-tokens, "
    "--max-input-tokens or --max-batch-size, quantize the weights, or use more GPUs (--num-shard).";
static const char how_spark_host[] =
    "It is the off-heap memory of the executor on the host. Raise "
    "spark.rapids.memory.host.offHeapLimit.size and spark.executor.memoryOverhead, or lower "
    "spark.rapids.memory.pinnedPool.size and the number of tasks.";
static const char how_handles[] =
    "Drivers also report this if another resource of the host runs out: file descriptors (ulimit "
    "-n), locked memory (ulimit -l), /dev/shm, or the address space. Find out: free -h and the "
    "limit of the container first; if there is enough, look at those, and update the driver.";
static const char how_killed[] =
    "The process was ended by signal 9. On Linux that is most often the out-of-memory killer of "
    "the system or of the container. Find out: dmesg | grep -i oom, memory.events of its cgroup, "
    "kubectl describe pod (OOMKilled), sacct (OUT_OF_MEMORY).";
static const char how_count[] =
    "Metal limits the number of buffers of a process (its message has the limit), not their bytes. "
    "The program keeps too many small arrays: call mx.eval() more often, so that graphs do not "
    "pile up, and mx.clear_cache(); update mlx.";
static const char how_mapped[] =
    "The browser had no memory left for a buffer that is mapped at its creation; browsers use "
    "memory of the host for it. Close other tabs, make fewer or smaller buffers, and destroy() "
    "those that are not needed any more.";
static const char how_hami[] =
    "HAMi gives a container a share of the card (nvidia.com/gpumem), which its processes would "
    "pass with this request; the figures behind OOM are their use and the share. Raise the share, "
    "or let the program take less.";
static const char how_shm[] =
    "NCCL makes files in /dev/shm, and there was no room for one. Find out: df -h /dev/shm. Give a "
    "container more (docker run --shm-size=1g or --ipc=host), or delete old nccl-* files there.";
static const char how_workers[] =
    "Workers hand over tensors in /dev/shm, and it is full; a container has 64 MiB of it by "
    "default. Give it more (docker run --shm-size=8g or --ipc=host, a memory volume at /dev/shm in "
    "Kubernetes); else fewer workers, or "
    "torch.multiprocessing.set_sharing_strategy(\"file_system\"). Find out: df -h /dev/shm; if it "
    "has room, look at the limits of open files (ulimit -n) and of mappings (sysctl "
    "vm.max_map_count).";
static const char how_pinned[] =
    "It is pinned memory, which the driver locks in the host's RAM. Find out: free -h, ulimit -l "
    "(in a container --ulimit memlock=-1). Fewer workers and prefetched batches, or less "
    "offloading to the host; WSL 2 limits it (memory= of .wslconfig).";
static const char how_limit[] =
    "The process was killed for memory of the host. Raise the limit (resources.limits.memory of a "
    "pod, docker run -m, --mem of Slurm), or lower the number of workers and the data that is "
    "loaded at once. Find out how much it needs: memory.peak of its cgroup, sacct -o MaxRSS.";
static const char how_ray[] =
    "Ray kills tasks when a node uses 95 % of its memory (RAY_memory_usage_threshold). Run fewer "
    "at a time: a higher num_cpus or a memory= for each task, or fewer workers.";
static const char how_paging[] =
    "Windows promises programs no more memory than RAM and paging file together, and that is used "
    "up, even if RAM is free. Enlarge the paging file (System, Advanced, Performance, Virtual "
    "memory); or fewer workers, as each loads the libraries of CUDA, or a smaller model.";
static const char how_heap[] =
    "The heap of the language's runtime is at its limit, not the host. Raise it: -Xmx for Java "
    "(-XX:MaxDirectMemorySize for direct buffers, -XX:MaxMetaspaceSize for classes), "
    "spark.executor.memory for Spark, --max-old-space-size for Node.js.";
static const char how_shared[] =
    "A kernel needs more shared memory than a multiprocessor has; no allocator is in it. Use "
    "smaller blocks or layers, or a build for this architecture.";

static const char how_neuron[] =
    "It is the memory of a NeuronCore, or another resource of it. Find out: the lines of TDRV "
    "around it have the size and what the core has in use; neuron-top shows other processes. A "
    "smaller batch or sequence, or more cores (tp_degree).";
static const char how_dask[] =
    "A worker of Dask came near its limit. Raise it (memory_limit=, --memory-limit), or use fewer "
    "workers and threads or smaller partitions; what is not in Dask's arrays (\"unmanaged memory\" "
    "on its dashboard) cannot be spilled.";
static const char how_jittor[] =
    "Jittor takes memory of the host if the card is full, and stops if that is too much as well: "
    "\"Used\" is both. A smaller batch; device_mem_limit and cpu_mem_limit set what it may use. "
    "Find out: nvidia-smi for other processes.";
const char message_how_warm[] =
    "vLLM tries its largest batch at its start, after the cache took its share. Lower "
    "max_num_seqs, max_num_batched_tokens or gpu_memory_utilization.";

#define OTHER_LANGUAGES                                                                            \
    "\xe5\x86\x85\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3|"                                            \
    "\xe3\x83\xa1\xe3\x83\xa2\xe3\x83\xaa\xe4\xb8\x8d\xe8\xb6\xb3|"                                \
    "\xe3\x83\xa1\xe3\x83\xa2\xe3\x83\xaa\xe3\x81\x8c\xe4\xb8\x8d\xe8\xb6\xb3|"                    \
    "\xe3\x83\xa1\xe3\x83\xa2\xe3\x83\xaa\xe3\x83\xbc\xe3\x81\x8c\xe4\xb8\x8d\xe8\xb6\xb3|"        \
    "\xeb\xa9\x94\xeb\xaa\xa8\xeb\xa6\xac\xeb\xb6\x80\xec\xa1\xb1|"                                \
    "\xeb\xa9\x94\xeb\xaa\xa8\xeb\xa6\xac\xea\xb0\x80\xeb\xb6\x80\xec\xa1\xb1|"                    \
    "nichtgen\xc3\xbcgendarbeitsspeicher|nichtgen\xc3\xbcgendspeicher|"                            \
    "memoriainsuficiente|memoriainsufficiente|m\xc3\xa9moireinsuffisante|"                         \
    "mem\xc3\xb3riainsuficiente|"                                                                  \
    "\xd0\xb5\xd0\xb4\xd0\xbe\xd1\x81\xd1\x82\xd0\xb0\xd1\x82\xd0\xbe\xd1\x87\xd0\xbd\xd0"         \
    "\xbe\xd0"                                                                                     \
    "\xbf\xd0\xb0\xd0\xbc\xd1\x8f\xd1\x82\xd0\xb8|"                                                \
    "\xd0\xbd\xd0\xb5\xd1\x85\xd0\xb2\xd0\xb0\xd1\x82\xd0\xb0\xd0\xb5\xd1\x82\xd0\xbf\xd0"         \
    "\xb0\xd0"                                                                                     \
    "\xbc\xd1\x8f\xd1\x82\xd0\xb8|"                                                                \
    "\xd0\xbd\xd0\xb5\xd1\x85\xd0\xb2\xd0\xb0\xd1\x82\xd0\xb0\xd0\xb5\xd1\x82\xd0\xbe\xd0"         \
    "\xbf\xd0"                                                                                     \
    "\xb5\xd1\x80\xd0\xb0\xd1\x82\xd0\xb8\xd0\xb2\xd0\xbd\xd0\xbe\xd0\xb9\xd0\xbf\xd0\xb0"         \
    "\xd0\xbc"                                                                                     \
    "\xd1\x8f\xd1\x82\xd0\xb8|"                                                                    \
    "pasassezdem\xc3\xa9moire|"                                                                    \
    "nohaysuficientememoria|"                                                                      \
    "nichtgenugspeicher|"                                                                          \
    "nichtgenugarbeitsspeicher|"                                                                   \
    "zuwenigspeicher|"                                                                             \
    "zuwenigarbeitsspeicher"

/* In German, French, Spanish, Portuguese, Italian and Russian: memory, and words that say that
 * there was too little of it. */
#define OTHER_MEMORY                                                                               \
    "|speicher|grafikspeicher|videospeicher|m\xc3\xa9moire|memoria|mem\xc3\xb3ria|"                \
    "\xd0\xb0\xd0\xbc\xd1\x8f\xd1\x82"
#define OTHER_TOO_LITTLE                                                                           \
    "|reichtnicht|nichtgen|istvoll|insuffisant|insuficient|ersch\xc3\xb6pft|agotad|esgotad|"       \
    "esaurit|"                                                                                     \
    "\xc3\xa9puis\xc3\xa9|"                                                                        \
    "\xd0\xb5\xd1\x85\xd0\xb2\xd0\xb0\xd1\x82|"                                                    \
    "\xd0\xb5\xd0\xb4\xd0\xbe\xd1\x81\xd1\x82\xd0\xb0\xd1\x82"

/* In Chinese: memory of a card, memory of the host, and words that say that it was used up. */
#define CHINESE_VRAM      "\xe6\x98\xbe\xe5\xad\x98"
#define CHINESE_RAM       "\xe5\x86\x85\xe5\xad\x98"
#define CHINESE_CARD_RAM  "\xe6\x98\xbe\xe5\x8d\xa1" CHINESE_RAM
#define CHINESE_CARDS_RAM "\xe6\x98\xbe\xe5\x8d\xa1\xe7\x9a\x84" CHINESE_RAM
#define CHINESE_USED_UP                                                                            \
    "\xe4\xb8\x8d\xe8\xb6\xb3|"                                                                    \
    "\xe4\xb8\x8d\xe5\xa4\x9f|"                                                                    \
    "\xe6\xba\xa2\xe5\x87\xba|"                                                                    \
    "\xe7\x88\x86|"                                                                                \
    "\xe8\x80\x97\xe5\xb0\xbd|"                                                                    \
    "\xe5\x8d\xa0\xe6\xbb\xa1|"                                                                    \
    "\xe7\x82\xb8"

/* The patterns have no figures. */
static const struct message_form bares[] = {
    {"openencodesessionexfailed:outofmemory|createbitstreambufferfailed:outofmemory|"
     "nvencopenencodesessionex:10(",
     MESSAGE_LIBRARY, "CUDA", how_nvenc, 0},
    {"outofworkspacememory", MESSAGE_LIBRARY, "CUDA", how_workspace, FORM_ELSEWHERE},
    {"nvml_success==rinternalassertfailed", MESSAGE_PYTORCH, "CUDA", how_nvml, 0},
    {"[metal::malloc]resourcelimit(", MESSAGE_MLX, "Metal", how_count, FORM_ELSEWHERE},
    {"hami-coreerror*oom", MESSAGE_LIBRARY, "CUDA", how_hami, FORM_ELSEWHERE},
    {"cudadeviceisat|cudadevicememoryuseishigh", MESSAGE_LIBRARY, "CUDA", message_how_unknown, 0},
    {"increasingtheworkspacesize*couldnotfindanyimplementation|"
     "sufficientworkspacememory*couldnotfindanyimplementation|duetoinsufficientworkspace",
     MESSAGE_TENSORRT, "CUDA", how_limit_of_workspace, FORM_ELSEWHERE},
    {"perhapsoutofmemory", MESSAGE_HOST_PROGRAM, "", how_killed, FORM_HOST | FORM_LIKELY},
    {"llvmerror:outofmemory", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"notenoughmemorytohandle", MESSAGE_TGI, "", how_tgi, 0},
    {"cpuretryoom|cpusplitandretryoom", MESSAGE_SPARK, "", how_spark_host, FORM_HOST},
    {"outofmemoryoccurredwhenwarmingup", MESSAGE_VLLM, "CUDA", message_how_warm, 0},
    {"leavenogpumemoryforthekvcache", MESSAGE_SGLANG, "", how_sglang, 0},
    {"noavailablememoryforthecacheblocks|memoryreservedforkvcacheis-|availablekvcachememory:-|"
     "blocks:0,*cpublocks",
     MESSAGE_VLLM, "", how_vllm, 0},
    {"outofmemoryat*csrc/cumem_allocator", MESSAGE_VLLM, "CUDA", how_wakes, 0},
    {"thanthemaximumnumberoftokensthatcanbestoredinkvcache", MESSAGE_VLLM, "", how_kv, 0},
    {"alloc_req_slotsrunsoutofmemory|prefilloutofmemory|decodeoutofmemory", MESSAGE_SGLANG, "",
     how_slots, FORM_ELSEWHERE},
    {"increase--mem-fraction-static|increasemem_fraction_static", MESSAGE_SGLANG, "", how_sglang,
     0},
    {"cublas_status_alloc_failed|cudnn_status_alloc_failed|cusolver_status_alloc_failed|"
     "nvjpeg_status_allocator_failure|cufft_alloc_failed|cusparse_status_alloc_failed|"
     "curand_status_allocation_failed|custatevec_status_alloc_failed|cutensor_status_alloc_failed|"
     "cutensornet_status_alloc_failed|"
     "cusparse_status_insufficient_resources|status:2cumemcreatefailed|internal_error_device_"
     "allocation_failed",
     MESSAGE_LIBRARY, "CUDA", how_beside, 0},
    {"rocblas_status_memory_error|hipblas_status_alloc_failed|hipsparse_status_alloc_failed|"
     "hipsolver_status_alloc_failed|hipfft_alloc_failed|miopenstatusallocfailed",
     MESSAGE_LIBRARY, "HIP", how_beside, 0},
    {"cudafailure2'outofmemory'|cudafailure'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, 0},
    {"cnmem_status_out_of_memory", MESSAGE_LIBRARY, "CUDA", how_driver, 0},
    {"outofgpumemoryerror", MESSAGE_JULIA, "", NULL, 0},
    {"mpsbackendoutofmemory", MESSAGE_PYTORCH, "MPS", NULL, 0},
    {"cudaoutofmemory", MESSAGE_PYTORCH, "CUDA", NULL, 0},
    {"hipoutofmemory", MESSAGE_PYTORCH, "HIP", NULL, 0},
    {"xpuoutofmemory", MESSAGE_PYTORCH, "XPU", NULL, 0},
    {"npuoutofmemory", MESSAGE_PYTORCH, "NPU", NULL, 0},
    {"[metal]commandbufferexecutionfailed", MESSAGE_MLX, "Metal", NULL, 0},
    {"kiogpucommandbuffercallbackerroroutofmemory", MESSAGE_GGML, "Metal", how_metal, 0},
    {"unabletoallocatecuda", MESSAGE_GGML, "CUDA", how_buffer, 0},
    {"unabletoallocaterocm", MESSAGE_GGML, "HIP", how_buffer, 0},
    {"unabletoallocatevulkan", MESSAGE_GGML, "Vulkan", how_buffer, 0},
    {"unabletoallocatemetal", MESSAGE_GGML, "Metal", how_metal, 0},
    {"unabletoallocatesycl", MESSAGE_GGML, "XPU", how_buffer, 0},
    {"unabletoallocatebackendbuffer|failedtofitparamstofreedevicememory|cannotmeetfreememorytarget",
     MESSAGE_GGML, "", how_buffer, 0},
    {"failedtoallocatepinnedmemory*outofdevicememory", MESSAGE_HOST_PROGRAM, "", how_pinned,
     FORM_HOST | FORM_LIKELY}, /* of a card that shares the host's memory it may be the same */
    {"failedtoallocatepinnedmemory|failedtoregisterpinnedmemory", MESSAGE_HOST_PROGRAM, "",
     how_pinned, FORM_HOST},
    {"exceedsdevicememoryallocationlimit|exceedsdevicebuffersizelimit", MESSAGE_GGML, "Vulkan",
     message_how_vulkan, FORM_BLOCK},
    {"erroroutofdevicememory|vkallocatememoryfailed|vkallocatememory:outofdevice", MESSAGE_DRIVER,
     "Vulkan", how_driver, 0},
    {"cudahostregister|cumemhostregister|cudahostalloc|cumemhostalloc|"
     "cumemallochost|cudamallochost|hiphostmalloc",
     MESSAGE_HOST_PROGRAM, "", how_pinned, FORM_HOST | FORM_FAILS},
    {"outofhostmemory|out_of_host_memory", MESSAGE_HOST_PROGRAM, "", how_handles,
     FORM_HOST | FORM_LIKELY},
    {"errno12]cannotallocatememory", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"failedtoallocatepinnedsystemmemory", MESSAGE_TRITON_SERVER, "", NULL, FORM_HOST},
    {"maximumvariablesizeallowedonthedevice", MESSAGE_LIBRARY, "CUDA", NULL, FORM_BLOCK},
    {"totalbytesofndarray>2", MESSAGE_PYTORCH, "MPS", NULL, FORM_BLOCK},
    {"largefortheimplementationwhenmapped", MESSAGE_LIBRARY, "WebGPU", how_mapped,
     FORM_HOST | FORM_LIKELY},
    {"invalid_buffer_size|clcreatebuffer(-61)", MESSAGE_DRIVER, "OpenCL", NULL, FORM_BLOCK},
    {"mem_object_allocation_failure|memoryobjectallocationfailure|"
     "opencl_alloc_device_buffer",
     MESSAGE_DRIVER, "OpenCL", how_driver, 0},
    {"ur_result_error_out_of_device_memory|ze_result_error_out_of_device_memory", MESSAGE_DRIVER,
     "XPU", how_driver, 0},
    {"error_out_of_device_memory", MESSAGE_DRIVER, "Vulkan", how_driver, 0},
    {"pi_error_out_of_resources|ur_result_error_out_of_resources", MESSAGE_DRIVER, "XPU",
     how_driver, 0},
    {"hiperroroutofmemory|hiperrormemoryallocation|hiperror:outofmemory|[hiperror](2)|hsa_status_"
     "error_out_of_resources",
     MESSAGE_DRIVER, "HIP", how_driver, 0},
    {"cuda_error_out_of_memory|cudaoom|cudaerrormemoryallocation|cudaruntimeerror(2)|"
     "cudaerror:outofmemory|cudadrivererror:outofmemory|cudafailure2:outofmemory|"
     "cudaerror2:outofmemory",
     MESSAGE_DRIVER, "CUDA", how_driver, 0},
    {"errorcode2:outofmemory", MESSAGE_TENSORRT, "CUDA", how_driver, 0},
    {"cudamallocfailed:outofmemory|cudamallocretryfailed:outofmemory|"
     "cudasuccess(2vs.0)outofmemory",
     MESSAGE_DRIVER, "CUDA", how_driver, 0},
    {"exceededmemorylimit(#>#|memory:usage#kb,limit#kb,failcnt#", MESSAGE_HOST_PROGRAM, "",
     how_limit, FORM_HOST},
    {"maximumpoolsizeexceeded|exceededmemorylimit|bad_alloc:out_of_memory|"
     "bad_alloc:cudaerrorat",
     MESSAGE_RMM, "", how_rmm, 0},
    {"couldnotsplitinputsandretry|retryoom", MESSAGE_SPARK, "", how_spark, 0},
    {"nerr_resource|nrt_resource|tdrv:dma_mp_alloc|tdrv:dmem_alloc", MESSAGE_DRIVER, "Neuron",
     how_neuron, 0},
    {"notenoughmemoryleft", MESSAGE_DRIVER, "", how_driver, 0},
    {"attemptingtoreserve", MESSAGE_JAX, "TPU", NULL, 0},
    {"outofmemoryinmemoryspacevmem|outofmemoryinmemoryspacesmem", MESSAGE_JAX, "TPU", NULL,
     FORM_CHIP},
    {"resource_exhausted:outofmemory", MESSAGE_JAX, "", NULL, 0},
    {"causedbyinsufficientsharedmemory|insufficientsharedmemory(shm)|"
     "unabletoopensharedmemoryobject|"
     "file</torch_|nospaceleftondevice:'/dev/shm|unabletommap",
     MESSAGE_HOST_PROGRAM, "", how_workers, FORM_HOST | FORM_LIKELY},
    {"toomuchshareddata", MESSAGE_LIBRARY, "", how_shared, FORM_CHIP},
    {"outofresource:sharedmemory", MESSAGE_TRITON, "", how_shared, FORM_CHIP},
    {"insufficientsharedmemory*/dev/shm|insufficientsharedmemory*shm-size", MESSAGE_HOST_PROGRAM,
     "", how_workers, FORM_HOST | FORM_LIKELY},
    {"insufficientsharedmemory|sharedmemoryallocationexceeded", MESSAGE_LIBRARY, "", how_shared,
     FORM_CHIP | FORM_NEAR},
    {"insufficientsharedmemory|sharedmemoryallocationexceeded", MESSAGE_HOST_PROGRAM, "",
     how_workers, FORM_HOST | FORM_LIKELY},
    {"rayoutofmemoryerror|systemmemorylowatnode|killedduetomemorypressure|"
     "killedduetothenoderunninglowonmemory|"
     "exceedsthememoryusagethreshold|ray-oom-prevention",
     MESSAGE_HOST_PROGRAM, "", how_ray, FORM_HOST},
    {"mayhaveexceededk8spodmemorylimit", MESSAGE_HOST_PROGRAM, "", how_limit,
     FORM_HOST | FORM_LIKELY},
    {"couldnotallocatenativememory", MESSAGE_RMM, "", how_rmm, 0},
    {"outofmemoryerror:directbuffermemory|outofmemoryerror:metaspace|"
     "java.lang.outofmemoryerror|javaheapspace|gcoverheadlimitexceeded|heapoutofmemory",
     MESSAGE_HOST_PROGRAM, "", how_heap, FORM_HOST},
    {"task#:outofmemory|exceededstepmemorylimit|exceededjobmemorylimit|pbs:jobkilled:mem|"
     "exceedingmemorylimits|["
     "memorypressure]|"
     "lowonresource:memory|killedoutofmemory|outofmemory:kill|systemd-oomdkilled|"
     "killedprocess#(*)total-vm:|"
     "oom-kill|byoomkiller|bytheoomkiller|outofmemorysrun:|oomkilled",
     MESSAGE_HOST_PROGRAM, "", how_limit, FORM_HOST},
    {"exceeded#%memorybudget", MESSAGE_HOST_PROGRAM, "", how_dask, FORM_HOST},
    {"workermemorylimit:", MESSAGE_HOST_PROGRAM, "", how_dask, FORM_HOST | FORM_LIKELY},
    {"unabletocreatenewnativethread|unabletocreatenativethread|fork:cannotallocatememory|"
     "mmapfailed:cannotallocatememory|mmap:cannotallocatememory",
     MESSAGE_HOST_PROGRAM, "", how_handles, FORM_HOST | FORM_LIKELY},
    {"unabletoallocatearraywithshape(", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"system.outofmemoryexception|virtualmemoryexhausted|finallinkfailed:memoryexhausted|"
     "enoughhostmemory|outofcpumemory|outofram|usingallavailableram|memoryquotaexceeded|host_"
     "allocation_failed|error_host_out_of_memory|fatalerror:runtime:outofmemory|systemoutofmemory!|"
     "memoryresourcesareavailabletoprocess|cannotallocatevectorofsize|allocate[host]memory|"
     "allocatecpumemory|"
     "physicalmemoryusageistoohigh|cannotallocatememory(oserror12)|defaultcpuallocator|"
     "mkl_malloc:failedtoallocate|posix_memalign(*12vs0",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"cannotallocatememory", MESSAGE_HOST_PROGRAM, "", how_handles,
     FORM_HOST | FORM_LIKELY | FORM_FAR},
    {"creatingsharedmemorysegment", MESSAGE_HOST_PROGRAM, "", how_shm, FORM_HOST | FORM_LIKELY},
    {"winerror1455|thepagingfileistoosmall", MESSAGE_HOST_PROGRAM, "", how_paging, FORM_HOST},
    {"outofsharedmemory", MESSAGE_HOST_PROGRAM, "", how_workers, FORM_HOST | FORM_LIKELY},
    {"cpuoom|oomoncpu|cpuoutofmemory|outofcpumemory|cpumemoryexhaust|hostmemoryexhaust|"
     "systemmemoryexhaust|hostoom|oomonhost|ramoom|hostranoutofmemory|systemranoutofmemory|"
     "noderanoutofmemory|cpuranoutofmemory|ramwasfull|ramisfull|ramexhausted|"
     "systemoutofmemory|ramoutofmemory|outofsystemram|outofcpuram|outofhostram|cgroupout-of-"
     "memoryhandler",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    {"-4:insufficientmemory|cv::outofmemoryerror", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"cl_out_of_resources|(outofresources)", MESSAGE_DRIVER, "OpenCL", how_driver, 0},
    {"curesulterrorresult=2file", MESSAGE_DRIVER, "CUDA", how_driver, 0},
    {"8007000enotenoughmemory", MESSAGE_DIRECTML, "DirectML", NULL, 0},
    {"pt_devmemallocationfailed", MESSAGE_DRIVER, "HPU", how_driver, 0},
    {"insufficientvraminsplitformodel|insufficientvramformodel", MESSAGE_LIBRARY, "", how_exllama,
     0},
    {"gpumemoryisoverflow", MESSAGE_LIBRARY, "", how_jittor, 0},
    {"insufficientsystemresources|notenoughresourcestoloadthemodel", MESSAGE_LIBRARY, "",
     message_how_guess, 0},
    {"insufficientvram", MESSAGE_DRIVER, "", how_ollama, 0},
    {"oomwhenallocating|tensorswhenoomhappens|dsttensorisnotinitialized", MESSAGE_TENSORFLOW, "",
     NULL, 0},
    {"outofmemoryerror|outofmemory|out_of_memory|outofdevicememory|outofmem|gpuoom|vramoom|"
     "!allocationondevice",
     MESSAGE_DRIVER, "", how_driver, 0},
    /* In Chinese, Japanese, Korean, Russian, and then others: of a card if one is named near. */
    {"\xe6\x98\xbe\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3|"
     "\xd0\xb5\xd0\xb4\xd0\xbe\xd1\x81\xd1\x82\xd0\xb0\xd1\x82\xd0\xbe\xd1\x87\xd0\xbd\xd0\xbe\xd0"
     "\xb2\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe\xd0\xbf\xd0\xb0\xd0\xbc\xd1\x8f\xd1\x82\xd0\xb8",
     MESSAGE_DRIVER, "", message_how_unknown, 0},
    {OTHER_LANGUAGES, MESSAGE_DRIVER, "", message_how_unknown, FORM_NEAR},
    {OTHER_LANGUAGES, MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    {"outofvideomemory|morevideomemorythancurrentlyavailable|ranoutofmemory|memoryexhausted|"
     "memorylimitexceeded",
     MESSAGE_DRIVER, "", message_how_unknown, 0},
    {"outofram|ramwasfull|ramisfull|ramexhausted|ramoom", MESSAGE_DRIVER, "", message_how_unknown,
     FORM_NEAR},
    {"hresult=8007000e|0x8007000e|[8007000e]", MESSAGE_DRIVER, "D3D12", message_how_unknown, 0},
    {"enoughavailablememory", MESSAGE_DRIVER, "", how_ollama, 0},
    {"failedtoallocatebuffer|insufficientmemory|notenoughmemory|notenoughfreememory|outofgpu|"
     "outofvram|failedtoallocatememory|couldnotallocatememory|cannotallocatememory|"
     "allocationfailed|allocationfailure|memoryallocationerror",
     MESSAGE_DRIVER, "", message_how_unknown, 0},
    {"std::bad_alloc", MESSAGE_DRIVER, "", how_cpp, 0},
    {"tcmalloc:largealloc|badallocation", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    {"bfcarena::allocaterawinternal", MESSAGE_ONNX, "", message_how_unknown, 0},
    {"bytesfromdevice[|freeingmemorycacheandretrying", MESSAGE_LIBRARY, "", message_how_unknown, 0},
    {"regionfailed:freeingsomememory", MESSAGE_LIBRARY, "CUDA", message_how_unknown, 0},
    {"memoryerror", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY | FORM_ONE_WORD},
    {"iskilledbysignal:killed|returncode=-9|negsignal.sigkill|exitcode:-9|exitcode-9|{sigkill(-9)|"
     "excessivememoryusagecausing|code137|code:"
     "137|code=137|code\":137|code(137|codeis137|codeof137|exit137|exits137|exited137|exit(137|"
     "exitedwith137|exitingwith137|exitswith137|exitingdueto137|status137|status=137|"
     "status(137|signal9(sigkill)|bysignal9|onsignal9|withsignal9|withsignal-9|bysignal-9|"
     "receivedsignal9|"
     "signal-9(sigkill)|bysigkill|withsigkill|signalsigkill|signals.sigkill:9|signal:killed|"
     "task#:killed|killedsignalterminatedprogram|duetosignal9|line#:#killed|]+#killed|]#killed",
     MESSAGE_HOST_PROGRAM, "", how_killed, FORM_HOST | FORM_LIKELY},
    {"memory|vram|videomem|gpumem|devicemem|alloc|" CHINESE_VRAM "|" CHINESE_CARD_RAM
     "|" CHINESE_CARDS_RAM OTHER_MEMORY,
     MESSAGE_DRIVER, "", message_how_unknown, FORM_FAILS},
    {"outofm|out_of_m", MESSAGE_DRIVER, "", how_driver, FORM_END},
    {"outof", MESSAGE_DRIVER, "", how_driver, FORM_END | FORM_NEAR},
    {"out-of-memory", MESSAGE_DRIVER, "", how_driver, FORM_NEAR},
    {"ram|systemmemory|hostmemory|cpumemory|" CHINESE_RAM, MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST | FORM_LIKELY | FORM_FAILS | FORM_WORD},
    {"oom|out-of-memory", MESSAGE_DRIVER, "", message_how_unknown, FORM_FAILS | FORM_WORD},
    {"oomson|oomswith|oomsduring|oomsafter|oomswhile|oomstrying|oomswhen|oomsat|oomsin|oomsif|"
     "oomsbefore",
     MESSAGE_DRIVER, "", message_how_unknown, FORM_WORD},
    {"jobwaskilled|jobgotkilled|processwaskilled|processgotkilled|processiskilled|itgetskilled|"
     "itgotkilled|itwaskilled|getskilled|gotkilled|scriptwaskilled|"
     "trainingwaskilled|processeswerekilled|\"killed\"|'killed'|exitsignal9",
     MESSAGE_HOST_PROGRAM, "", how_killed, FORM_HOST | FORM_LIKELY},
    {"killed|killed:9|\xe5\xb7\xb2\xe6\x9d\x80\xe6\xad\xbb|processusarr\xc3\xaat\xc3\xa9|"
     "get\xc3\xb6tet|terminado(killed)|ucciso|\xd0\xa3\xd0\xb1\xd0\xb8\xd1\x82\xd0\xbe|"
     "\xe5\xbc\xb7\xe5\x88\xb6\xe7\xb5\x82\xe4\xba\x86",
     MESSAGE_HOST_PROGRAM, "", how_killed, FORM_HOST | FORM_LIKELY | FORM_LINE},
};

static bool is_rmm(const struct message_text *text)
{
    return message_text_has(text, "/rmm/") || message_text_has(text, "rmm.") ||
           message_text_has(text, "rmmallocation") || message_text_has(text, "rmmfailure");
}

#define NEAR_CHARACTERS 100
#define NEAR_CLAUSE     16 /* characters on each side of a size */
#define NEAR_CAPACITY   200
#define NEAR_SHAPE      24

/* Words for a card or its memory in German, Spanish, French, Portuguese, Italian, Russian, Chinese,
 * Japanese and Korean. A letter with an accent is cut if a digit of its escape could follow. */
static const char other_cards[] =
    "grafik|videospeicher|tarjeta|cartegraphique|cartesgraphiques|cartevid\xc3\xa9o|"
    "m\xc3\xa9moiregraphique|m\xc3\xa9moirevid\xc3\xa9o|placadevideo|memoriadevideo|schedavideo|"
    "schedagrafica|memoriavideo|memoriagrafica|placadev\xc3|placagr\xc3|mem\xc3\xb3riadev\xc3|"
    "mem\xc3\xb3riagr\xc3|memoriadev\xc3|memoriagr\xc3|\xd0\xb2\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe|"
    "\xd0\x92\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe|"
    "\xe3\x82\xb0\xe3\x83\xa9\xe3\x83\x95\xe3\x82\xa3\xe3\x83\x83\xe3\x82\xaf|"
    "\xe3\x83\x93\xe3\x83\x87\xe3\x82\xaa\xe3\x83\xa1\xe3\x83\xa2\xe3\x83\xaa|"
    "\xe3\x83\x93\xe3\x83\x87\xe3\x82\xaa\xe3\x82\xab\xe3\x83\xbc\xe3\x83\x89|"
    "\xea\xb7\xb8\xeb\x9e\x98\xed\x94\xbd|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xeb\xa9\x94\xeb\xaa\xa8\xeb\xa6\xac|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xec\xb9\xb4\xeb\x93\x9c|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xeb\x9e\xa8|" CHINESE_CARD_RAM "|" CHINESE_CARDS_RAM;

/* The device that words near `at` name; "" for an unknown one, NULL for none: a failure to allocate
 * may be one of anything else. What imitates CUDA stands before it. */
static const char *card_near(const struct message_text *text, size_t at, size_t reach)
{
    static const struct {
        const char *words, *device;
    } cards[] = {{"rocm", "HIP"},      {"[hip]", "HIP"},
                 {"hipmalloc", "HIP"}, {"hiperror", "HIP"},
                 {"vulkan", "Vulkan"}, {"vkallocate", "Vulkan"},
                 {"d3d12", "D3D12"},   {"directx", "D3D12"},
                 {"opencl", "OpenCL"}, {"clcreate", "OpenCL"},
                 {"sycl", "XPU"},      {"level_zero", "XPU"},
                 {"mtl", "Metal"},     {".hip", "HIP"},
                 {".cu", "CUDA"},      {"metal", ""},
                 {"cuda", "CUDA"},     {"gpu", ""},
                 {"hip", ""},          {"device", ""},
                 {"vram", ""},         {CHINESE_VRAM, ""},
                 {"videomemory", ""},  {"videoram", ""},
                 {"videocard", ""},    {"graphicscard", ""},
                 {"graphicsmem", ""},  {"graphicmem", ""}};
    size_t from = at > reach ? at - reach : 0;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (message_text_find(text, cards[i].words, from, at + reach) != MESSAGE_NOWHERE)
            return cards[i].device;
    return message_text_any(text, other_cards, from, at + reach) ? "" : NULL;
}

/* Whether "out of memory" is cut within its last word. */
static bool is_cut_word(const struct message_text *text, size_t at)
{
    const char *whole = text->chars[at + 3] == '_' ? "out_of_memory" : "outofmemory";
    size_t end = at;
    while (*whole && text->chars[end] == *whole &&
           (end == at || text->gaps[end] != MESSAGE_GAP_LINE))
        end++, whole++;
    if (end == at + strlen("outof")) /* of anything, but behind an error */
        return text->gaps[end] == MESSAGE_GAP_LINE &&
               message_text_any(text, "error", at > NEAR_CHARACTERS ? at - NEAR_CHARACTERS : 0, at);
    return text->gaps[end] == MESSAGE_GAP_LINE || !isalpha((unsigned char)text->chars[end]);
}

/* Words that say that there was too little of something, or that it was not given. */
static const char fails[] =
    "fail|exhaust|notenough|insufficient|unable|cannot|can't|couldnot|couldn't|ranout|runsout|"
    "outof|"
    "errorwhenalloc|errorwhilealloc|errorinalloc|erroralloc|"
    "overbudget|toolittle|shortage|notavailable|nothaveenough|depleted|n'thaveenough|noenough|"
    "notsufficient|isfull|overflow|exceed|islargerthan|notprovideenough|thanisavailable|"
    "thanavailable|" CHINESE_USED_UP OTHER_TOO_LITTLE;

/* Words that say that memory of the host was used up, and that an "OOM" was an event. */
static const char used_up[] =
    "notenough|insufficient|exceed|exhaust|ranout|runsout|outof|isfull|overflow|depleted|"
    "nothaveenough|n'thaveenough|noenough|notsufficient|toolittle|shortage|"
    "thanavailable|" CHINESE_USED_UP;
static const char events[] = "error|crash|occur|happen|encounter|got|getting|hit|caus|throw|rais|"
                             "issue|goes|went|killed|failed|reported|oomwith|oomon|oomduring|"
                             "oomwhile";

static const char *fails_of(const struct message_form *form)
{
    return !(form->flags & FORM_WORD) ? fails : form->flags & FORM_HOST ? used_up : events;
}

/* The characters before a word for memory in which they may stand; behind it, half as many more.
 * Words for pinned memory are of a card, and are not of anything else. */
static size_t fails_reach(const struct message_form *form)
{
    return form->flags & FORM_WORD ? 20 : form->flags & FORM_HOST ? NEAR_CHARACTERS : 40;
}

#define FAILS_AHEAD 400 /* characters that are looked through at once */

/* `at`, if one of them is near it; else a place before which there is none. */
static size_t find_fails(const struct message_text *text, const struct message_form *form,
                         size_t at)
{
    size_t before = fails_reach(form), after = before * 3 / 2;
    size_t from = at > before ? at - before : 0, nearest = at + FAILS_AHEAD;
    if (message_text_any(text, fails_of(form), from, at + after))
        return at;
    for (const char *word = fails_of(form); word; word = message_pattern_next(word)) {
        char copy[24];
        snprintf(copy, sizeof copy, "%.*s", (int)strcspn(word, "|"), word);
        size_t found = message_text_find(text, copy, from, nearest);
        nearest = found < nearest ? found : nearest;
    }
    return nearest > at + after ? nearest - after : at + 1;
}

/* Whether the word of `at` is in a cell of a table: "gpu memory | failing". */
static bool is_column(const struct message_text *text, size_t at)
{
    size_t end = at;
    while (end < text->count && isalpha((unsigned char)text->chars[end]))
        end++;
    return text->chars[end] == '|';
}

/* Whether words near a word for memory of a card, with some of `fails`, are a failure. A program
 * that then takes less has not failed, and who allocates nodes has no memory. */
static bool is_failure(const struct message_text *text, const struct message_form *form, size_t at)
{
    static const char others[] =
        "access|memcpy|memset|invalidargument|.reducing|resource|rpcerror|nodesare|numberofdev|/"
        "alloc|com/gpu|driverversion|kubernetes|capabledevice|%ofsystem|%offreesystem|releas|"
        "can'tfree|cannotfree|unabletofree|bedetected|todetect|toquery|todetermine|toread";
    size_t before = fails_reach(form), after = before * 3 / 2;
    size_t from = at > before ? at - before : 0, to = at + after;
    bool pinned = form->flags & FORM_HOST && !(form->flags & FORM_WORD);
    size_t begin = pinned ? from : message_text_sentence_begin(text, at);
    size_t end = pinned ? to : message_text_sentence_end(text, at) + 1;
    char last = at > 0 && !text->gaps[at] ? text->chars[at - 1] : ' ';
    bool inside = isalpha((unsigned char)last) || last == '_'; /* of a name in a program */
    return !inside && !message_claim_is_feared(text, at) && !message_text_ends(text, "(not", at) &&
           !message_text_ends(text, ",not", at) &&
           (form->flags & (FORM_HOST | FORM_WORD) || card_near(text, at, NEAR_CHARACTERS)) &&
           message_text_any(text, fails_of(form), from > begin ? from : begin,
                            to < end ? to : end) &&
           !message_text_any(text, others, from, to) && !is_column(text, at);
}

/* Whether the code of another error than a lack of memory is named: cudaErrorNotSupported. */
static bool names_other_error(const struct message_text *text, size_t from, size_t to)
{
    static const char *const codes[] = {"cudaerror", "hiperror"};
    static const char *const memory[] = {"memory", "outofmemory"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (size_t at = from;
             (at = message_text_find(text, codes[i], at, to)) != MESSAGE_NOWHERE;) {
            const char *name = text->chars + (at += strlen(codes[i]));
            bool lack = false;
            for (size_t j = 0; j < sizeof memory / sizeof *memory; j++)
                lack |= strncmp(name, memory[j], strlen(memory[j])) == 0;
            if (isalpha((unsigned char)*name) && text->gaps[at] == MESSAGE_GAP_NONE && !lack)
                return true;
        }
    return false;
}

/* Whether a word for a card stands in the line of `at`: a whole one, for "gpu020" is a host. */
static bool is_in_line_of_card(const struct message_text *text, size_t at)
{
    static const char *const cards[] = {"gpu", "gpus", "cuda", "device", "graphicscard"};
    size_t from = at, to = at + 1;
    while (from > 0 && at - from < NEAR_CHARACTERS && text->gaps[from] != MESSAGE_GAP_LINE)
        from--;
    while (to < text->count && to - at < NEAR_CHARACTERS && text->gaps[to] != MESSAGE_GAP_LINE)
        to++;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        for (size_t card = from;
             (card = message_text_find(text, cards[i], card, to)) != MESSAGE_NOWHERE; card++) {
            size_t end = card + strlen(cards[i]);
            if ((text->gaps[card] || !isalnum((unsigned char)text->chars[card - 1])) &&
                (text->gaps[end] || strchr(":,)]\"'", text->chars[end])))
                return true;
        }
    return false;
}

/* Whether words for a card, or for its memory, stand beside words for that of the host. */
static bool is_beside_card(const struct message_text *text, size_t at)
{
    size_t from = at > NEAR_CHARACTERS ? at - NEAR_CHARACTERS : 0;
    return message_text_any(text, "vram|videomem|amdgpu|drm", from, at + NEAR_CHARACTERS) ||
           is_in_line_of_card(text, at);
}

/* Whether words for the memory of the host are of a card's, which stands just before them: "GPU
 * memory quota exceeded", "GPU ran out of RAM", "VRAM is full". */
static bool is_of_card(const struct message_text *text, size_t at, size_t end)
{
    static const char *const cards[] = {"gpu", "cuda", "device", "video", "card"};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (text->gaps[at] != MESSAGE_GAP_LINE && message_text_ends(text, cards[i], at))
            return true;
    size_t ram = message_text_find(text, "ram", at, end);
    if (ram == MESSAGE_NOWHERE || at == 0)
        return false;
    return (ram == at && isalpha((unsigned char)text->chars[at - 1]) && !text->gaps[at]) ||
           message_text_any(text, "gpu|cuda|video|card", at > 12 ? at - 12 : 0, at);
}

/* Whether no letter, digit or mark of a name stands right before or behind [at, end). */
static bool is_whole(const struct message_text *text, size_t at, size_t end)
{
    static const char marks[] = "_-/.=";
    char before = at > 0 && !text->gaps[at] ? text->chars[at - 1] : ' ';
    char after = text->gaps[end] ? ' ' : text->chars[end];
    return !isalnum((unsigned char)before) && !strchr(marks, before) &&
           !isalnum((unsigned char)after) && (after == '.' || !strchr(marks, after));
}

/* Whether a whole word of these ends at `at`. */
static bool is_behind(const struct message_text *text, const char *words, size_t at)
{
    for (; words; words = message_pattern_next(words)) {
        char word[16];
        size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (message_text_ends(text, word, at) &&
            (at == length || message_text_apart(text, at - length)))
            return true;
    }
    return false;
}

/* Before "killed" in quotes: what shows the word, or what was killed. */
static const char shows[] = "is|was|get|gets|got|getting|shows|showed|says|said|say|saying|prints|"
                            "printed|just|only|simply|see|seeing|message|process|job|script|"
                            "training|error|with|reports|output|output:|message:|then|state";
/* Before "OOMs", if they are events that are counted or prevented. */
static const char counts[] = "no|zero|0|of|many|any|fewer|more|for|from|fix|fixes|causes|analyze|"
                             "debug|handle|detect|explain";

/* Whether words of this length are a message, and not a flag which is off ("OOMKilled": false), a
 * failure of something else, or part of a sentence. */
static bool is_said(const struct message_text *text, const struct message_form *form, size_t at,
                    size_t length)
{
    static const struct {
        const char *before, *after;
    } others[] = {{"gc(", ")"},        {"young(", ")"},      {"full(", ")"}, /* Java */
                  {"", "instatictls"}, {"", "ateafreeport"}, {"", "ateport"},
                  {"", "ateaport"},    {"--", "-"},          {"", "]extendingbfcarena"},
                  {"", "snapshot"},    {"", "observer"},     {"", "handl"},
                  {"test_", ""}};
    const char *rest = text->chars + at + length;
    if (strncmp(rest + strspn(rest, "\":="), "false", 5) == 0)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (message_text_ends(text, others[i].before, at) &&
            strncmp(rest, others[i].after, strlen(others[i].after)) == 0)
            return false;
    if (form->framework == MESSAGE_TRITON_SERVER && message_text_has(text, "isinsufficientforcuda"))
        return false;
    if (message_claim_is_code(text, at) || message_claim_is_task(text, at) ||
        message_claim_is_template(text, at) || message_claim_is_defined(text, at + length) ||
        message_text_other_reason(text, at + length) ||
        (form->how == message_how_unknown && names_other_error(text, at, at + 4 * NEAR_CHARACTERS)))
        return false;
    if (form->how == how_killed && strchr("\"'", text->chars[at]) && !is_behind(text, shows, at))
        return false;
    bool code = memchr(text->chars + at, '_', length) != NULL; /* the name of an error */
    if ((!code && message_claim_is_feared(text, at)) ||
        (message_text_ends(text, "oom", at + length) && *rest == 's'))
        return false; /* "CUDA OOMs: 1" is a counter */
    if (strncmp(rest - length, "ooms", 4) == 0 && is_behind(text, counts, at))
        return false;
    if (form->flags & FORM_HOST && is_of_card(text, at, at + length))
        return false;
    if (at > 0 && isdigit((unsigned char)text->chars[at - 1]) &&
        strncmp(text->chars + at, "insufficient", 12) == 0)
        return false; /* "4 Insufficient memory" counts nodes */
    return (!(form->flags & FORM_END) || is_cut_word(text, at)) &&
           (!(form->flags & FORM_FAILS) || is_failure(text, form, at)) &&
           (!(form->flags & FORM_NEAR) || card_near(text, at, NEAR_CHARACTERS)) &&
           (!(form->flags & FORM_FAR) || !card_near(text, at, NEAR_CHARACTERS)) &&
           (!(form->flags & FORM_WORD) || is_whole(text, at, at + length)) &&
           (!(form->flags & FORM_ONE_WORD) ||
            !memchr(text->gaps + at + 1, MESSAGE_GAP_SPACE, length - 1)) &&
           (!(form->flags & FORM_LINE) ||
            (text->gaps[at] % 2 && text->gaps[at + length] % 2)); /* LINE or WRAP */
}

static size_t find_said(const struct message_text *text, const struct message_form *form,
                        const char *words, size_t at)
{
    size_t end;
    while ((at = message_pattern_find(text, words, at, text->count, -1, NULL, &end)) !=
           MESSAGE_NOWHERE) {
        size_t near = form->flags & FORM_FAILS ? find_fails(text, form, at) : at;
        if (near == at && is_said(text, form, at, end - at))
            return at;
        at = near > at ? near : at + 1;
    }
    return MESSAGE_NOWHERE;
}

/* Whether a clause ends at a mark, which is none within "4,096". */
static bool ends_clause(const struct message_text *text, size_t at, const char *marks)
{
    return strchr(marks, text->chars[at]) &&
           !(at > 0 && isdigit((unsigned char)text->chars[at - 1]) && !text->gaps[at + 1] &&
             isdigit((unsigned char)text->chars[at + 1]));
}

/* Whether a size at [at, end) is one of the disk, of the host, or of a part, as the words of its
 * clause say. */
static bool is_beside_other(const struct message_text *text, size_t at, size_t end)
{
    static const char others[] = "disk|swap|host|cpu|systemmem|systemram|mainmem|pool|arena|"
                                 "batch|container";
    size_t from = at, to = end;
    while (from > 0 && at - from < NEAR_CLAUSE && !ends_clause(text, from - 1, ",;:"))
        from--;
    while (to < text->count && to - end < NEAR_CLAUSE && !ends_clause(text, to, ",;"))
        to++;
    if (message_text_any(text, others, from, to))
        return true;
    size_t ram = message_text_find(text, "ram", from, to);
    return ram != MESSAGE_NOWHERE && !is_of_card(text, ram, ram + strlen("ram"));
}

/* Reads the first figure of these patterns that is one of the card. */
static void read_of_card(const struct message_text *text, const char *patterns, size_t from,
                         size_t to, enum message_figure_name name, struct message *self)
{
    for (const char *words = patterns; words; words = message_pattern_next(words)) {
        struct message_figure figures[MESSAGE_FIGURE_COUNT] = {0};
        size_t at = from, end;
        while ((at = message_pattern_find(text, words, at, to, -1, figures, &end)) !=
                   MESSAGE_NOWHERE &&
               is_beside_other(text, at, end))
            at++;
        if (at != MESSAGE_NOWHERE) {
            self->figures[name] = figures[name];
            return;
        }
    }
}

/* The size that these patterns give a card, where one is named: "device: 0, capacity: 24GB". Of two
 * cards it is not known which one was asked. What a program needs is not what a card has. */
static struct message_figure card_size(const struct message_text *text, const char *words,
                                       size_t from, size_t to)
{
    static const char parts[] = "use|using|need|requir|take|weight|model|cache|shard";
    struct message_figure figures[MESSAGE_FIGURE_COUNT] = {0}, found = {0};
    const struct message_figure *size = &figures[MESSAGE_FIGURE_TOTAL];
    for (; words; words = message_pattern_next(words))
        for (size_t end, at = from;
             (at = message_pattern_find(text, words, at, to, -1, figures, &end)) != MESSAGE_NOWHERE;
             at++) {
            size_t clause = at > 2 * NEAR_CLAUSE ? at - 2 * NEAR_CLAUSE : 0;
            if (!is_in_line_of_card(text, at) || is_beside_other(text, clause, end) ||
                message_text_any(text, parts, clause, at))
                continue;
            if (found.known && found.bytes != size->bytes)
                return (struct message_figure){0};
            found = *size;
        }
    return found;
}

/* What a person says that each card has, if the request is larger: "(80GB per A100 GPU)". */
void message_read_each(const struct message_text *text, struct message *self)
{
    struct message_figure *total = &self->figures[MESSAGE_FIGURE_TOTAL];
    if (self->host || total->known || !self->figures[MESSAGE_FIGURE_ASKED].known)
        return;
    *total = card_size(text, "(Tper|(Teach|withTper|withTeach", 0, text->count);
    total->known &= total->bytes < self->figures[MESSAGE_FIGURE_ASKED].bytes;
    self->told |= total->known;
}

/* What the sentence of a request says of the card: "needs 6 GB, but the device has only 4 GB". A
 * size that the request does not exceed is not the reason of the failure, so it is left out. */
static void read_card_beside(const struct message_text *text, size_t at, struct message *self)
{
    static const char words[] = "onlyFfree|onlyFavail|onlyFleft|onlyFis|onlyFare|availableF|"
                                "available:F|freememory:F|freeF|free:F|Favailable|Fisavailable|"
                                "Fareavailable|Ffree|Fisfree|Fleft";
    static const char totals[] = "hasonlyT|onlyhasT|haveonlyT|freeofT|leftofT|availableofT";
    struct message_figure *figures = self->figures;
    struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    uint64_t asked = figures[MESSAGE_FIGURE_ASKED].bytes;
    size_t from = message_text_sentence_begin(text, at), to = message_text_sentence_end(text, at);
    read_of_card(text, words, from, to + 1, MESSAGE_FIGURE_FREE, self);
    read_of_card(text, totals, from, to + 1, MESSAGE_FIGURE_TOTAL, self);
    if (!total->known)
        *total = card_size(text, "capacity:T", at > NEAR_CAPACITY ? at - NEAR_CAPACITY : 0,
                           at + NEAR_CAPACITY);
    available->known &= available->bytes < asked;
    total->known &= total->bytes != asked && total->bytes != available->bytes;
    self->card_told = total->known || available->known;
}

/* The words around a message that names no program. */
static void read_around(const struct message_text *text, size_t at, struct message *self)
{
    /* What is free may be a pool's. */
    static const char listed[] = "requested=Afree=F|requested=A,free=F|requested:A,free:F";
    const char *card = card_near(text, at, NEAR_CHARACTERS / 3);
    card = card && *card ? card : card_near(text, at, 3 * NEAR_CHARACTERS);
    size_t request = message_text_request(text, at, &self->figures[MESSAGE_FIGURE_ASKED]);
    if (is_rmm(text)) {
        self->framework = MESSAGE_RMM;
        self->how = how_rmm;
        return;
    }
    if (card && !self->device[0])
        snprintf(self->device, sizeof self->device, "%s", card);
    bool list = message_pattern_read(text, listed, message_text_sentence_begin(text, at),
                                     message_text_sentence_end(text, at) + 1, 0, self->figures);
    if (request != MESSAGE_NOWHERE && !self->host && !list)
        read_card_beside(text, request, self);
    size_t shape = message_text_find(text, "size([", self->end, self->end + NEAR_SHAPE);
    if (request == MESSAGE_NOWHERE && shape != MESSAGE_NOWHERE)
        (void)message_read_shape(text, shape + strlen("size(["), self);
}

/* Whether a user asks if there is too little memory. Words that programs print themselves are a
 * question only if it is in the same line. */
static bool is_question(const struct message_text *text, const struct message_form *form, size_t at)
{
    size_t end = message_text_sentence_end(text, at);
    bool programs = form->how != message_how_unknown && !(form->flags & FORM_FAILS);
    return text->chars[end] == '?' &&
           !(programs && memchr(text->gaps + at + 1, MESSAGE_GAP_LINE, end - at));
}

/* `asked`: questions, and failures after which the program tried again, are passed over, and it is
 * set; NULL: they count. */
static bool read_words(const struct message_text *text, const struct message_form *form,
                       const char *words, bool *asked, struct message *self)
{
    size_t first = find_said(text, form, words, 0);
    while (asked && first != MESSAGE_NOWHERE &&
           (is_question(text, form, first) ||
            (!(form->flags & FORM_HOST) && message_claim_is_survived(text, first)))) {
        *asked = true;
        first = find_said(text, form, words, first + 1);
    }
    if (first == MESSAGE_NOWHERE)
        return false;
    message_form_apply(form, self);
    self->indirect |=
        self->host && (message_claim_is_guess(text, first) || is_beside_card(text, first));
    self->bare = true;
    self->taken = 1;
    self->at = first;
    self->end = first + strcspn(words, "|");
    for (size_t at = first; at != MESSAGE_NOWHERE && (at == first || !(form->flags & FORM_FAILS));
         at = find_said(text, form, words, at + 1))
        self->count++;
    if (self->how == how_driver && !message_text_has(text, "torch"))
        self->how = how_driver_of_others;
    if (self->framework == MESSAGE_DRIVER)
        read_around(text, first, self);
    else if (message_text_ends(text, "withshape(", self->end))
        (void)message_read_shape(text, self->end, self);
    if (self->how == how_driver_of_others || self->how == message_how_unknown)
        self->how =
            self->figures[MESSAGE_FIGURE_ASKED].known ? message_how_unknown : how_driver_of_others;
    return true;
}

bool message_text_tells_of_kill(const struct message_text *text)
{
    for (size_t i = 0; i < sizeof bares / sizeof *bares; i++)
        for (const char *words = bares[i].pattern;
             words &&
             (bares[i].how == how_limit || bares[i].how == how_killed || bares[i].how == how_ray);
             words = message_pattern_next(words))
            if (find_said(text, &bares[i], words, 0) != MESSAGE_NOWHERE)
                return true;
    return false;
}

#define NEAR_ITSELF 40

bool message_text_tells_of_card(const struct message_text *text, const struct message *message)
{
    static const char bfc[] = "allocator(gpu_|exhausted:outofmemory|fromdevice:cuda_error|"
                              "outofmemorywhiletrying";
    if (message_text_any(text, bfc, 0, text->count))
        return true;
    for (size_t i = 0; i < sizeof bares / sizeof *bares; i++)
        for (const char *words =
                 bares[i].device[0] && !(bares[i].flags & FORM_HOST) ? bares[i].pattern : NULL;
             words; words = message_pattern_next(words)) {
            size_t at = 0;
            while ((at = find_said(text, &bares[i], words, at)) != MESSAGE_NOWHERE &&
                   (message_text_ends(text, "onhost:", at) ||
                    (at + NEAR_ITSELF >= message->at && at <= message->end + NEAR_ITSELF)))
                at++;
            if (at != MESSAGE_NOWHERE)
                return true;
        }
    return false;
}

/* `host`: only the forms for memory of the host. */
static bool read_bares(const struct message_text *text, bool host, bool *asked,
                       struct message *self)
{
    for (size_t i = 0; i < sizeof bares / sizeof *bares; i++)
        for (const char *words = host && !(bares[i].flags & FORM_HOST) ? NULL : bares[i].pattern;
             words; words = message_pattern_next(words))
            if (read_words(text, &bares[i], words, asked, self))
                return true;
    return false;
}

bool message_read_bare(const struct message_text *text, struct message *self)
{
    bool asked = false;
    return (message_claim_denies_card(text) && read_bares(text, true, &asked, self)) ||
           read_bares(text, false, &asked, self) || (asked && read_bares(text, false, NULL, self));
}
