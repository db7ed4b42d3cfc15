/* The words of messages that only say that memory ran out, and of errors of libraries that allocate
 * beside the pool: which memory it is, and how to find the cause. */
#include "sim/explain/message_bares.h"

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
const char message_how_driver[] =
    "The driver does not print sizes. Find out: {tool} for other processes and for what is free; "
    "run the program with the statistics of its framework ({statistics}, or a recorded snapshot).";
const char message_how_driver_of_others[] =
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
const char message_how_rmm[] =
    "RMM prints sizes from 25.04 on. Find out: wrap the resource in "
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
static const char how_preempts[] =
    "The requests that run have used up the cache of keys and values, not the card. The server "
    "goes "
    "on: it takes one of them back and computes it again later. Fewer of them at a time "
    "(max_num_seqs, --max-running-requests), or a larger cache (gpu_memory_utilization, "
    "--mem-fraction-static), if the card is otherwise empty.";
static const char how_exllama[] =
    "The loader plans the weights and the cache before it loads them, and they do not fit into "
    "what is free. A smaller max_seq_len or cache_size, a quantized cache (cache_mode Q8 or Q4), "
    "fewer bits for each weight, or another gpu_split. Find out: {tool} for other processes.";
static const char how_nvml[] =
    "PyTorch was out of memory, and NVML then failed to give it the figures for its message (on a "
    "Jetson, in a container or after an update of the driver). Find out: {statistics} and "
    "{torch}.mem_get_info() just before the request.";
const char message_how_workspace[] =
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
const char message_how_killed[] =
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
const char message_how_limit[] =
    "The process was killed for memory of the host. Raise the limit (resources.limits.memory of a "
    "pod, docker run -m, --mem of Slurm), or lower the number of workers and the data that is "
    "loaded at once. Find out how much it needs: memory.peak of its cgroup, sacct -o MaxRSS.";
const char message_how_ray[] =
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
const char message_how_web[] = "A program in a browser has a heap of its own (WebAssembly), of at "
                               "most 4 GiB and often of less; "
                               "more memory of the host or of the card does not raise it. Smaller "
                               "weights (q4, q8, fp16), files "
                               "of external data, or a device such as WebGPU take less of it.";
static const char how_jetson[] =
    "A Jetson's GPU shares the memory of the host, so other programs and a desktop count too. Find "
    "out: tegrastats or free -h before it; swap does not serve the GPU. Smaller weights or a "
    "smaller "
    "context, or end the desktop (sudo systemctl isolate multi-user).";
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
    "\xe5\x86\x85\xe5\xad\x98\xe6\xba\xa2\xe5\x87\xba|"                                            \
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

/* The patterns have no figures. */
const struct message_form message_bares[] = {
    {"openencodesessionexfailed:outofmemory|createbitstreambufferfailed:outofmemory|"
     "nvencopenencodesessionex:10(",
     MESSAGE_LIBRARY, "CUDA", how_nvenc, 0},
    {"outofworkspacememory", MESSAGE_LIBRARY, "CUDA", message_how_workspace, FORM_ELSEWHERE},
    {"nvml_success==rinternalassertfailed", MESSAGE_PYTORCH, "CUDA", how_nvml, 0},
    {"[metal::malloc]resourcelimit(", MESSAGE_MLX, "Metal", how_count, FORM_ELSEWHERE},
    {"hami-coreerror*oom", MESSAGE_LIBRARY, "CUDA", how_hami, FORM_ELSEWHERE},
    {"cudadeviceisat|cudadevicememoryuseishigh", MESSAGE_LIBRARY, "CUDA", message_how_unknown, 0},
    {"increasingtheworkspacesize*couldnotfindanyimplementation|"
     "sufficientworkspacememory*couldnotfindanyimplementation|duetoinsufficientworkspace",
     MESSAGE_TENSORRT, "CUDA", how_limit_of_workspace, FORM_ELSEWHERE},
    {"perhapsoutofmemory", MESSAGE_HOST_PROGRAM, "", message_how_killed, FORM_HOST | FORM_LIKELY},
    /* LLVM, ptxas, Microsoft's compiler and linker */
    {"llvmerror:outofmemory|ptxasfatal:memoryallocationfailure|compilerisoutofheapspace|"
     "lnk1102:outofmemory",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
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
    {"notenoughkvcachespace|notenoughkvblocks", MESSAGE_VLLM, "", how_preempts,
     FORM_ELSEWHERE | FORM_SPARE},
    {"kvcachepoolisfull.retract|kvcachepoolisfull,retract", MESSAGE_SGLANG, "", how_preempts,
     FORM_ELSEWHERE | FORM_SPARE},
    {"increase--mem-fraction-static|increasemem_fraction_static", MESSAGE_SGLANG, "", how_sglang,
     0},
    {"cublas_status_alloc_failed|cudnn_status_alloc_failed|cusolver_status_alloc_failed|"
     "nvjpeg_status_allocator_failure|cufft_alloc_failed|cusparse_status_alloc_failed|"
     "curand_status_allocation_failed|custatevec_status_alloc_failed|cutensor_status_alloc_failed|"
     "cutensornet_status_alloc_failed|"
     "npp_memory_allocation_err|npp_memory_alloc_err|cusparse_status_insufficient_resources|status:"
     "2cumemcreatefailed|internal_error_device_"
     "allocation_failed",
     MESSAGE_LIBRARY, "CUDA", how_beside, 0},
    {"rocblas_status_memory_error|hipblas_status_alloc_failed|hipsparse_status_alloc_failed|"
     "hipsolver_status_alloc_failed|hipfft_alloc_failed|miopenstatusallocfailed",
     MESSAGE_LIBRARY, "HIP", how_beside, 0},
    {"cudafailure2'outofmemory'|cudafailure'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, 0},
    {"cnmem_status_out_of_memory", MESSAGE_LIBRARY, "CUDA", message_how_driver, 0},
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
    {"unabletoallocatebackendbuffer|failedtoallocatecompute|failedtoallocatethecomputebuffer|"
     "failedtofitparamstofreedevicememory|cannotmeetfreememorytarget",
     MESSAGE_GGML, "", how_buffer, 0},
    {"failedtoallocatepinnedmemory*outofdevicememory", MESSAGE_HOST_PROGRAM, "", how_pinned,
     FORM_HOST | FORM_LIKELY}, /* of a card that shares the host's memory it may be the same */
    {"failedtoallocatepinnedmemory|failedtoregisterpinnedmemory", MESSAGE_HOST_PROGRAM, "",
     how_pinned, FORM_HOST},
    {"exceedsdevicememoryallocationlimit|exceedsdevicebuffersizelimit", MESSAGE_GGML, "Vulkan",
     message_how_vulkan, FORM_BLOCK},
    {"erroroutofdevicememory|vkallocatememoryfailed|vkallocatememory:outofdevice", MESSAGE_DRIVER,
     "Vulkan", message_how_driver, 0},
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
    {"clcreatebuffer(-4)|clcreatebuffer(-5)|clcreatebufferfailedwitherrorcode-4|"
     "clcreatebufferfailedwitherror-4|clcreatebufferfailed:-4|clcreatebuffererror:-4",
     MESSAGE_DRIVER, "OpenCL", message_how_driver, FORM_WORD},
    {"hiperror2|hiperror:2|hiperrorcode:2", MESSAGE_DRIVER, "HIP", message_how_driver, FORM_WORD},
    {"clcreatebuffer(-6)|clcreatebufferfailed:-6(", MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST | FORM_LIKELY},
    {"invalid_buffer_size|clcreatebuffer(-61)|clcreatebufferfailed:-61|clcreatebuffererror:-61|"
     "clcreatebufferfailedwitherrorcode-61",
     MESSAGE_DRIVER, "OpenCL", NULL, FORM_BLOCK},
    {"mem_object_allocation_failure|memoryobjectallocationfailure|"
     "opencl_alloc_device_buffer",
     MESSAGE_DRIVER, "OpenCL", message_how_driver, 0},
    {"pyopencl.memoryerror|pyopencl._cl.memoryerror", MESSAGE_DRIVER, "OpenCL", message_how_driver,
     0},
    {"ur_result_error_out_of_device_memory|ze_result_error_out_of_device_memory", MESSAGE_DRIVER,
     "XPU", message_how_driver, 0},
    {"error_out_of_device_memory|suitableheapsareexhausted|vmacreatebufferfailedwitherror-2|"
     "vmacreateimagefailedwitherror-2",
     MESSAGE_DRIVER, "Vulkan", message_how_driver, 0},
    {"pi_error_out_of_resources|ur_result_error_out_of_resources", MESSAGE_DRIVER, "XPU",
     message_how_driver, 0},
    {"hiperroroutofmemory|hiperrormemoryallocation|hiperror:outofmemory|[hiperror](2)|hsa_status_"
     "error_out_of_resources",
     MESSAGE_DRIVER, "HIP", message_how_driver, 0},
    {"cuda_error_out_of_memory|cudaoom|cudaerrormemoryallocation|cudaruntimeerror(2)|"
     "cudaerror:outofmemory|cudadrivererror:outofmemory|cudafailure2:outofmemory|"
     "cudaerror2:outofmemory",
     MESSAGE_DRIVER, "CUDA", message_how_driver, 0},
    /* By its number alone. */
    {"cudaerror2|cudaerror:2|cudaerror(2)|cudaerrorcode2|cudaerrorcode:2|cudadrivererror2|"
     "cudadrivererror:2|cudaruntimeerror2|cudaruntimeerror:2|error2incudamalloc|"
     "cudainitializationfailurewitherror:2",
     MESSAGE_DRIVER, "CUDA", message_how_driver, FORM_WORD},
    {"errorcode2:outofmemory", MESSAGE_TENSORRT, "CUDA", message_how_driver, 0},
    {"cudamallocfailed:outofmemory|cudamallocretryfailed:outofmemory|"
     "cudasuccess(2vs.0)outofmemory",
     MESSAGE_DRIVER, "CUDA", message_how_driver, 0},
    {"sortexceededmemorylimit|hash.k2d:cannotallocatememory", MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST},
    {"exceededmemorylimit(#>#|memory:usage#kb,limit#kb,failcnt#", MESSAGE_HOST_PROGRAM, "",
     message_how_limit, FORM_HOST},
    {"maximumpoolsizeexceeded|exceededmemorylimit|bad_alloc:out_of_memory|"
     "bad_alloc:cudaerrorat",
     MESSAGE_RMM, "", message_how_rmm, 0},
    {"couldnotsplitinputsandretry|retryoom", MESSAGE_SPARK, "", how_spark, 0},
    {"nerr_resource|nrt_resource|tdrv:dma_mp_alloc|tdrv:dmem_alloc|tdrv:dma_ring_allocate|"
     "status=4message=allocationfailure|status=4message=\"allocationfailure",
     MESSAGE_DRIVER, "Neuron", how_neuron, 0},
    {"notenoughmemoryleft|cnrt_ret_err_nomem|cnrterrornomem|_error_mem_alloc|egl_bad_alloc|"
     "cannotallocategpumemory|musaerrormemoryallocation",
     MESSAGE_DRIVER, "", message_how_driver, 0},
    {"variabledataontooneormoretiles|outofmemoryontile", MESSAGE_LIBRARY, "IPU", NULL, FORM_CHIP},
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
     MESSAGE_HOST_PROGRAM, "", message_how_ray, FORM_HOST},
    {"lowsystemmemory*killed|kill*lowsystemmemory|lowonmemory,kill|killed:hostmemorylow|"
     "mayhaveexceededk8spodmemorylimit",
     MESSAGE_HOST_PROGRAM, "", message_how_limit, FORM_HOST | FORM_LIKELY},
    {"couldnotallocatenativememory", MESSAGE_RMM, "", message_how_rmm, 0},
    {"outofmemoryerror:directbuffermemory|outofmemoryerror:metaspace|"
     "java.lang.outofmemoryerror|javaheapspace|gcoverheadlimitexceeded|heapoutofmemory|"
     "jvmheapspaceisexhausted|jvmtenuredspaceisexhausted|jvmmetaspaceisexhausted|"
     "runningoutofjvmheapspace|runningoutofjvmmetaspace|jvmgarbagecollectoristhrashing|"
     "call_and_retry_lastallocationfailed|sparkoutofmemoryerror|"
     "bytesofmemory,got#",
     MESSAGE_HOST_PROGRAM, "", how_heap, FORM_HOST},
    {"(averagemu=", MESSAGE_HOST_PROGRAM, "", how_heap, FORM_HOST | FORM_LIKELY},
    {"webassembly.memory():couldnotallocatememory|aborted(oom).build|runtimeerror:abort(oom)|"
     "cannotenlargememoryarrays",
     MESSAGE_HOST_PROGRAM, "", message_how_web, FORM_HOST},
    {"couldnotreserveenoughspacefor|circuit_breaking_exception|circuitbreakingexception",
     MESSAGE_HOST_PROGRAM, "", how_heap, FORM_HOST | FORM_LIKELY},
    /* Slurm, PBS, LSF, SGE, HTCondor, Kubernetes, YARN, the kernel, systemd, earlyoom, iOS */
    {"state:out_of_memory|out_of_me+|out_of_memory0:125|term_memlimit|reachinglsfmemoryusagelimit|"
     "exceedsjobhardlimit\"h_vmem|exceedsjobhardlimit\"h_rss|goneovermemorylimitof|"
     "runningbeyondphysicalmemorylimits|runningbeyondvirtualmemorylimits|'physical'memorylimit|"
     "'virtual'memorylimit|systemd-oomd[#]:killed|lowmemory!atorbelow|badness#,vmrss|"
     "watermarkmemorylimitexceeded|terminatedduetomemoryissue|becauseitisusingtoomuchmemory|"
     "ranout-of-memoryandexited|pbs:jobkilled:vmem|ranoutofmemory(usedover|"
     "memorylimitexceeded(#gi)|memorylimitexceeded(#mi)|exc_resourceresource_type_memory|"
     "containerkilledduetomemory|memorylimitof#mibexceeded|"
     "memorylimitof#gibexceeded|"
     "exceededsoftmemorylimit|exceededhardmemorylimit",
     MESSAGE_HOST_PROGRAM, "", message_how_limit, FORM_HOST},
    {"task#:outofmemory|exceededstepmemorylimit|exceededjobmemorylimit|pbs:jobkilled:mem|"
     "exceedingmemorylimits|["
     "memorypressure]|"
     "lowonresource:memory|killedoutofmemory|outofmemory:kill|systemd-oomdkilled|"
     "killedprocess#(*)total-vm:|"
     "oom-kill|byoomkiller|bytheoomkiller|outofmemorysrun:|oomkilled",
     MESSAGE_HOST_PROGRAM, "", message_how_limit, FORM_HOST},
    {"exceeded#%memorybudget", MESSAGE_HOST_PROGRAM, "", how_dask, FORM_HOST},
    {"workermemorylimit:", MESSAGE_HOST_PROGRAM, "", how_dask, FORM_HOST | FORM_LIKELY},
    {"unabletocreatenewnativethread|unabletocreatenativethread|fork:cannotallocatememory|"
     "mmapfailed:cannotallocatememory|mmap:cannotallocatememory",
     MESSAGE_HOST_PROGRAM, "", how_handles, FORM_HOST | FORM_LIKELY},
    {"unabletoallocatearraywithshape(", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"insufficientsystemresourcesexist|pageallocationfailure:order|pageallocationfailure.order|"
     "arraybufferallocationfailed",
     MESSAGE_HOST_PROGRAM, "", how_handles, FORM_HOST | FORM_LIKELY},
    /* Julia, Stata, Redis, vLLM, TensorFlow, PostgreSQL, sanitizers */
    {"53200:outofmemory|sqlstate53200|code:'53200'|libfuzzer:out-of-memory(used:|"
     "memorysanitizer:out-of-memory|hardrsslimitexhausted|"
     "error:outofmemoryerror()|noroomtoaddmore|oomcommandnotallowedwhen|lackofcpuswapspace|"
     "couldn'tallocatememoryforbam|"
     "device:cpu:0}}failedtoallocatememory",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    /* STAR, Bowtie, GAP, Mathematica, CPLEX, Lua, OCaml, SQL Server, Trino, BigQuery, COMSOL, ORCA,
     * After Effects, Chrome, Android */
    {"notenoughmemoryforbamsorting|tryingtoallocategenomearrays|outofmemoryallocatingtheebwt|"
     "reachedthepre-setmemorylimit|nomorememoryavailable.mathematica|cplexerror1001|"
     "lua:notenoughmemory|luaapi(notenoughmemory|fatalerror:exceptionout_of_memory|"
     "insufficientsystemmemoryinresourcepool|exceededper-nodememorylimit|"
     "exceededdistributedusermemorylimit|"
     "executedintheallottedmemory|outofmemoryduringlufactorization|qcmem.cpp|"
     "allocateenoughmemorytorenderthecurrentframe|webpage.errorcode:outofmemory",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"lowmemorykiller:kill|lmkd:reclaim|lmkd:kill", MESSAGE_HOST_PROGRAM, "", message_how_limit,
     FORM_HOST},
    {"finishedabnormally,osreturnvalue:-9", MESSAGE_HOST_PROGRAM, "", message_how_killed,
     FORM_HOST | FORM_LIKELY},
    {"gurobierror:outofmemory|thistaskwithavailableresources", MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST | FORM_LIKELY},
    {"nvmapmemallocinternaltagged:", MESSAGE_DRIVER, "CUDA", how_jetson, 0},
    /* pandas, xz, MySQL */
    {"tokenizingdata.cerror:outofmemory|memoryusagelimitreached|"
     "checkifmysqldorsomeotherprocessuses",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    /* VirtualBox, SageMaker, Windows */
    {"verr_no_memory|instancetypewithmorememory,or|status_no_memory", MESSAGE_HOST_PROGRAM, "",
     NULL, FORM_HOST | FORM_LIKELY},
    {"0xc0000017", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY | FORM_WORD},
    /* R, Stata, SAS, MATLAB, Octave, Java, Ruby, Perl, Haskell, Lisp, MySQL, ClickHouse, Conda,
     * Kaggle, Fortran, GROMACS, macOS, Windows */
    {"calloc'couldnotallocatememory(|vectormemoryexhausted(limit|vectormemorylimitof|"
     "memoryexhausted(limitreached|"
     "refusestoprovidememory|thisstepbecauseofinsufficientmemory|typehelpmemory|type\"helpmemory|"
     "dimensiontoolargeforoctave|insufficientmemoryforthejavaruntime|nomemoryerror|"
     "outofmemoryinperl|notenoughmemory(ram)|outofmemoryattemptingtoserialize|heapexhausted|"
     "outofmemory(needed#|memory_limit_exceeded|"
     "memorylimit(forquery)exceeded|memorylimit(total)exceeded|memorylimitexceeded:woulduse|"
     "condamemoryerror|"
     "condaprocessranoutofmemory|triedtoallocatemorememorythanisavailable|"
     "insufficientvirtualmemory|allocationwouldexceedmemorylimit|failedtocalloc#elementsofsize|"
     "runoutofapplicationmemory|lowvirtualmemorycondition|computerislowonmemory",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"system.outofmemoryexception|virtualmemoryexhausted|finallinkfailed:memoryexhausted|"
     "enoughhostmemory|outofcpumemory|outofram|usingallavailableram|memoryquotaexceeded|host_"
     "allocation_failed|error_host_out_of_memory|fatalerror:runtime:outofmemory|"
     "outofmemoryruntimestack:|"
     "systemoutofmemory!|"
     "allocate[host]memory|"
     "allocatecpumemory|"
     "physicalmemoryusageistoohigh|cannotallocatememory(oserror12)|defaultcpuallocator|"
     "mkl_malloc:failedtoallocate|posix_memalign(*12vs0",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"enomem|-enomem", MESSAGE_HOST_PROGRAM, "", how_handles,
     FORM_HOST | FORM_LIKELY | FORM_FAR | FORM_WORD},
    {"enomem|-enomem", MESSAGE_DRIVER, "", message_how_unknown, FORM_NEAR | FORM_WORD},
    {"memoryresourcesareavailabletoprocess", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_FAR},
    {"cannotallocatememory", MESSAGE_HOST_PROGRAM, "", how_handles,
     FORM_HOST | FORM_LIKELY | FORM_FAR},
    {"creatingsharedmemorysegment", MESSAGE_HOST_PROGRAM, "", how_shm, FORM_HOST | FORM_LIKELY},
    {"winerror1455|thepagingfileistoosmall", MESSAGE_HOST_PROGRAM, "", how_paging, FORM_HOST},
    {"outofsharedmemory|notenoughspacein/dev/shm", MESSAGE_HOST_PROGRAM, "", how_workers,
     FORM_HOST | FORM_LIKELY},
    {"cpuoom|oomoncpu|cpuoutofmemory|outofcpumemory|cpumemoryexhaust|hostmemoryexhaust|"
     "systemmemoryexhaust|hostoom|oomonhost|ramoom|hostranoutofmemory|systemranoutofmemory|"
     "noderanoutofmemory|cpuranoutofmemory|ramwasfull|ramisfull|ramexhausted|"
     "systemoutofmemory|ramoutofmemory|outofsystemram|outofcpuram|outofhostram|cgroupout-of-"
     "memoryhandler",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    {"-4:insufficientmemory|cv::outofmemoryerror", MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"cl_out_of_resources|(outofresources)", MESSAGE_DRIVER, "OpenCL", message_how_driver, 0},
    {"curesulterrorresult=2file", MESSAGE_DRIVER, "CUDA", message_how_driver, 0},
    {"8007000enotenoughmemory", MESSAGE_DIRECTML, "DirectML", NULL, 0},
    {"pt_devmemallocationfailed", MESSAGE_DRIVER, "HPU", message_how_driver, 0},
    {"insufficientvraminsplitformodel|insufficientvramformodel", MESSAGE_LIBRARY, "", how_exllama,
     0},
    {"makesureyouhaveenoughgpuram", MESSAGE_LIBRARY, "", message_how_unknown, 0},
    {"gpumemoryisoverflow", MESSAGE_LIBRARY, "", how_jittor, 0},
    {"insufficientsystemresources|notenoughresourcestoloadthemodel", MESSAGE_LIBRARY, "",
     message_how_guess, 0},
    {"insufficientvram", MESSAGE_DRIVER, "", how_ollama, 0},
    {"oomwhenallocating|tensorswhenoomhappens|dsttensorisnotinitialized", MESSAGE_TENSORFLOW, "",
     NULL, 0},
    {"outofmemoryerror|outofmemory|out_of_memory|outofdevicememory|outofdeviceheap|outofmem|gpuoom|"
     "vramoom|"
     "!allocationondevice",
     MESSAGE_DRIVER, "", message_how_driver, 0},
    /* In Chinese, Japanese, Korean, Russian, and then others: of a card if one is named near. */
    {"\xe6\x98\xbe\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3|"
     "\xd0\xb5\xd0\xb4\xd0\xbe\xd1\x81\xd1\x82\xd0\xb0\xd1\x82\xd0\xbe\xd1\x87\xd0\xbd\xd0\xbe\xd0"
     "\xb2\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe\xd0\xbf\xd0\xb0\xd0\xbc\xd1\x8f\xd1\x82\xd0\xb8",
     MESSAGE_DRIVER, "", message_how_unknown, 0},
    {OTHER_LANGUAGES, MESSAGE_DRIVER, "", message_how_unknown, FORM_NEAR},
    {OTHER_LANGUAGES, MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST | FORM_LIKELY},
    {"outofvideomemory|outofadaptermemory|morevideomemorythancurrentlyavailable|ranoutofmemory|"
     "memoryexhausted|"
     "devouredallofthememory|lowvideomemory|"
     "memorylimitexceeded",
     MESSAGE_DRIVER, "", message_how_unknown, 0},
    {"outofram|ramwasfull|ramisfull|ramexhausted|ramoom", MESSAGE_DRIVER, "", message_how_unknown,
     FORM_NEAR},
    {"hresult=8007000e|0x8007000e", MESSAGE_DRIVER, "D3D12", message_how_unknown, 0},
    {"8007000e", MESSAGE_DRIVER, "", message_how_unknown, FORM_WORD},
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
     "status(137|status:137|errno137|sigkill:kill|signal\"sigkill|signal'sigkill|signal9(sigkill)|"
     "bysignal9|onsignal9|withsignal9|withsignal-9|bysignal-9|"
     "receivedsignal9|bysignal:9|killed(signal9)|"
     "signal-9(sigkill)|bysigkill|withsigkill|signalsigkill|signals.sigkill:9|signal:killed|"
     "task#:killed|killedsignalterminatedprogram|duetosignal9|line#:#killed|]+#killed|]#killed",
     MESSAGE_HOST_PROGRAM, "", message_how_killed, FORM_HOST | FORM_LIKELY},
    {"memory|vram|videomem|gpumem|devicemem|alloc|" CHINESE_VRAM "|" CHINESE_CARD_RAM
     "|" CHINESE_CARDS_RAM OTHER_MEMORY,
     MESSAGE_DRIVER, "", message_how_unknown, FORM_FAILS},
    {"outofm|out_of_m", MESSAGE_DRIVER, "", message_how_driver, FORM_END},
    {"outof", MESSAGE_DRIVER, "", message_how_driver, FORM_END | FORM_NEAR},
    {"out-of-memory", MESSAGE_DRIVER, "", message_how_driver, FORM_NEAR},
    {"ram|systemmemory|hostmemory|cpumemory|" CHINESE_RAM, MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST | FORM_LIKELY | FORM_FAILS | FORM_WORD},
    {"oom|out-of-memory", MESSAGE_DRIVER, "", message_how_unknown, FORM_FAILS | FORM_WORD},
    {"oomson|oomswith|oomsduring|oomsafter|oomswhile|oomstrying|oomswhen|oomsat|oomsin|oomsif|"
     "oomsbefore",
     MESSAGE_DRIVER, "", message_how_unknown, FORM_WORD},
    {"jobwaskilled|jobgotkilled|processwaskilled|processgotkilled|processiskilled|itgetskilled|"
     "itgotkilled|itwaskilled|getskilled|gotkilled|scriptwaskilled|"
     "trainingwaskilled|processeswerekilled|\"killed\"|'killed'|exitsignal9",
     MESSAGE_HOST_PROGRAM, "", message_how_killed, FORM_HOST | FORM_LIKELY},
    {"killed|killed:9|\xe5\xb7\xb2\xe6\x9d\x80\xe6\xad\xbb|processusarr\xc3\xaat\xc3\xa9|"
     "get\xc3\xb6tet|terminado(killed)|ucciso|\xd0\xa3\xd0\xb1\xd0\xb8\xd1\x82\xd0\xbe|"
     "\xe5\xbc\xb7\xe5\x88\xb6\xe7\xb5\x82\xe4\xba\x86",
     MESSAGE_HOST_PROGRAM, "", message_how_killed, FORM_HOST | FORM_LIKELY | FORM_LINE},
};

const size_t message_bare_count = sizeof message_bares / sizeof *message_bares;
