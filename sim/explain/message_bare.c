/* Messages that only say that memory ran out, and errors of libraries that allocate beside the
 * pool. No cause follows from them; the table says how to find it. The size of a request is read if
 * one stands near. */
#include <stdio.h>
#include <string.h>

#include "sim/explain/message_text.h"

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

static const struct bare {
    const char *words;
    enum message_framework framework;
    const char *device, *how;
    enum { CARD, HOST, HOST_LIKELY, ONE_WORD, CHIP, ELSEWHERE, BLOCK, NEAR } memory;
} bares[] = {
    {"openencodesessionexfailed:outofmemory", MESSAGE_LIBRARY, "CUDA", how_nvenc, CARD},
    {"createbitstreambufferfailed:outofmemory", MESSAGE_LIBRARY, "CUDA", how_nvenc, CARD},
    {"outofworkspacememory", MESSAGE_LIBRARY, "CUDA", how_workspace, ELSEWHERE},
    {"nvml_success==rinternalassertfailed", MESSAGE_PYTORCH, "CUDA", how_nvml, CARD},
    {"[metal::malloc]resourcelimit(", MESSAGE_MLX, "Metal", how_count, ELSEWHERE},
    {"llvmerror:outofmemory", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"notenoughmemorytohandle", MESSAGE_TGI, "", how_tgi, CARD},
    {"cpuretryoom", MESSAGE_SPARK, "", how_spark_host, HOST},
    {"cpusplitandretryoom", MESSAGE_SPARK, "", how_spark_host, HOST},
    {"noavailablememoryforthecacheblocks", MESSAGE_VLLM, "", how_vllm, CARD},
    {"thanthemaximumnumberoftokensthatcanbestoredinkvcache", MESSAGE_VLLM, "", how_kv, CARD},
    {"alloc_req_slotsrunsoutofmemory", MESSAGE_SGLANG, "", how_slots, ELSEWHERE},
    {"prefilloutofmemory", MESSAGE_SGLANG, "", how_slots, ELSEWHERE},
    {"decodeoutofmemory", MESSAGE_SGLANG, "", how_slots, ELSEWHERE},
    {"increase--mem-fraction-static", MESSAGE_SGLANG, "", how_sglang, CARD},
    {"increasemem_fraction_static", MESSAGE_SGLANG, "", how_sglang, CARD},
    {"cublas_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cudnn_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cusolver_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"nvjpeg_status_allocator_failure", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cufft_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cusparse_status_alloc_failed", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cusparse_status_insufficient_resources", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"rocblas_status_memory_error", MESSAGE_LIBRARY, "HIP", how_beside, CARD},
    {"cudafailure2'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cudafailure'outofmemory'", MESSAGE_LIBRARY, "CUDA", how_beside, CARD},
    {"cnmem_status_out_of_memory", MESSAGE_LIBRARY, "CUDA", how_driver, CARD},
    {"outofgpumemoryerror", MESSAGE_JULIA, "", NULL, CARD},
    {"mpsbackendoutofmemory", MESSAGE_PYTORCH, "MPS", NULL, CARD},
    {"cudaoutofmemory", MESSAGE_PYTORCH, "CUDA", NULL, CARD},
    {"hipoutofmemory", MESSAGE_PYTORCH, "HIP", NULL, CARD},
    {"xpuoutofmemory", MESSAGE_PYTORCH, "XPU", NULL, CARD},
    {"npuoutofmemory", MESSAGE_PYTORCH, "NPU", NULL, CARD},
    {"[metal]commandbufferexecutionfailed", MESSAGE_MLX, "Metal", NULL, CARD},
    {"kiogpucommandbuffercallbackerroroutofmemory", MESSAGE_GGML, "Metal", how_metal, CARD},
    {"unabletoallocatecuda", MESSAGE_GGML, "CUDA", how_buffer, CARD},
    {"unabletoallocaterocm", MESSAGE_GGML, "HIP", how_buffer, CARD},
    {"unabletoallocatevulkan", MESSAGE_GGML, "Vulkan", how_buffer, CARD},
    {"unabletoallocatemetal", MESSAGE_GGML, "Metal", how_metal, CARD},
    {"unabletoallocatesycl", MESSAGE_GGML, "XPU", how_buffer, CARD},
    {"unabletoallocatebackendbuffer", MESSAGE_GGML, "", how_buffer, CARD},
    {"erroroutofdevicememory", MESSAGE_DRIVER, "Vulkan", how_driver, CARD},
    {"cudahostalloc", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"cumemhostalloc", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"cumemallochost", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"cudamallochost", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"hiphostmalloc", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"outofhostmemory", MESSAGE_HOST_PROGRAM, "", how_handles, HOST_LIKELY},
    {"out_of_host_memory", MESSAGE_HOST_PROGRAM, "", how_handles, HOST_LIKELY},
    {"errno12]cannotallocatememory", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"failedtoallocatepinnedsystemmemory", MESSAGE_TRITON_SERVER, "", NULL, HOST},
    {"failedtoallocatepinnedmemory", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"failedtoregisterpinnedmemory", MESSAGE_HOST_PROGRAM, "", how_pinned, HOST},
    {"maximumvariablesizeallowedonthedevice", MESSAGE_LIBRARY, "CUDA", NULL, BLOCK},
    {"largefortheimplementationwhenmapped", MESSAGE_LIBRARY, "WebGPU", how_mapped, HOST_LIKELY},
    {"cl_invalid_buffer_size", MESSAGE_DRIVER, "OpenCL", NULL, BLOCK},
    {"clcreatebuffer(-61)", MESSAGE_DRIVER, "OpenCL", NULL, BLOCK},
    {"mem_object_allocation_failure", MESSAGE_DRIVER, "OpenCL", how_driver, CARD},
    {"memoryobjectallocationfailure", MESSAGE_DRIVER, "OpenCL", how_driver, CARD},
    {"opencl_alloc_device_buffer", MESSAGE_DRIVER, "OpenCL", how_driver, CARD},
    {"ur_result_error_out_of_device_memory", MESSAGE_DRIVER, "XPU", how_driver, CARD},
    {"ze_result_error_out_of_device_memory", MESSAGE_DRIVER, "XPU", how_driver, CARD},
    {"error_out_of_device_memory", MESSAGE_DRIVER, "Vulkan", how_driver, CARD},
    {"pi_error_out_of_resources", MESSAGE_DRIVER, "XPU", how_driver, CARD},
    {"ur_result_error_out_of_resources", MESSAGE_DRIVER, "XPU", how_driver, CARD},
    {"hiperroroutofmemory", MESSAGE_DRIVER, "HIP", how_driver, CARD},
    {"hiperror:outofmemory", MESSAGE_DRIVER, "HIP", how_driver, CARD},
    {"cuda_error_out_of_memory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudaerrormemoryallocation", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudaruntimeerror(2)", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudaerror:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudadrivererror:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudafailure2:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudaerror2:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"errorcode2:outofmemory", MESSAGE_TENSORRT, "CUDA", how_driver, CARD},
    {"cudamallocfailed:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudamallocretryfailed:outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"cudasuccess(2vs.0)outofmemory", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"maximumpoolsizeexceeded", MESSAGE_RMM, "", how_rmm, CARD},
    {"exceededmemorylimit", MESSAGE_RMM, "", how_rmm, CARD},
    {"bad_alloc:out_of_memory", MESSAGE_RMM, "", how_rmm, CARD},
    {"bad_alloc:cudaerrorat", MESSAGE_RMM, "", how_rmm, CARD},
    {"couldnotsplitinputsandretry", MESSAGE_SPARK, "", how_spark, CARD},
    {"retryoom", MESSAGE_SPARK, "", how_spark, CARD},
    {"notenoughmemoryleft", MESSAGE_DRIVER, "", how_driver, CARD},
    {"attemptingtoreserve", MESSAGE_JAX, "TPU", NULL, CARD},
    {"resource_exhausted:outofmemory", MESSAGE_JAX, "", NULL, CARD},
    {"insufficientsharedmemory(shm)", MESSAGE_HOST_PROGRAM, "", how_workers, HOST_LIKELY},
    {"unabletoopensharedmemoryobject", MESSAGE_HOST_PROGRAM, "", how_workers, HOST_LIKELY},
    {"unabletowritetofile</torch_", MESSAGE_HOST_PROGRAM, "", how_workers, HOST_LIKELY},
    {"nospaceleftondevice:'/dev/shm", MESSAGE_HOST_PROGRAM, "", how_workers, HOST_LIKELY},
    {"unabletommap", MESSAGE_HOST_PROGRAM, "", how_workers, HOST_LIKELY},
    {"insufficientsharedmemory", MESSAGE_LIBRARY, "", how_shared, CHIP},
    {"sharedmemoryallocationexceeded", MESSAGE_LIBRARY, "", how_shared, CHIP},
    {"toomuchshareddata", MESSAGE_LIBRARY, "", how_shared, CHIP},
    {"rayoutofmemoryerror", MESSAGE_HOST_PROGRAM, "", how_ray, HOST},
    {"outofmemoryerror:directbuffermemory", MESSAGE_HOST_PROGRAM, "", how_heap, HOST},
    {"outofmemoryerror:metaspace", MESSAGE_HOST_PROGRAM, "", how_heap, HOST},
    {"runtime:outofmemory", MESSAGE_HOST_PROGRAM, "", NULL, HOST}, /* Go */
    {"systemoutofmemory!", MESSAGE_HOST_PROGRAM, "", NULL, HOST},  /* Unity */
    {"exceedingmemorylimits", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"lowonresource:memory", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"memoryresourcesareavailabletoprocess", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"cannotallocatevectorofsize", MESSAGE_HOST_PROGRAM, "", NULL, HOST}, /* R */
    {"killedduetomemorypressure", MESSAGE_HOST_PROGRAM, "", how_ray, HOST},
    {"killedduetothenoderunninglowonmemory", MESSAGE_HOST_PROGRAM, "", how_ray, HOST},
    {"exceedsthememoryusagethreshold", MESSAGE_HOST_PROGRAM, "", how_ray, HOST},
    {"killedoutofmemory", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"allocate[host]memory", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"physicalmemoryusageistoohigh", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"outofmemory:killedprocess", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"systemd-oomdkilled", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"creatingsharedmemorysegment", MESSAGE_HOST_PROGRAM, "", how_shm, HOST_LIKELY},
    {"winerror1455", MESSAGE_HOST_PROGRAM, "", how_paging, HOST},
    {"thepagingfileistoosmall", MESSAGE_HOST_PROGRAM, "", how_paging, HOST},
    {"outofsharedmemory", MESSAGE_HOST_PROGRAM, "", how_workers, HOST},
    {"iskilledbysignal:killed", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"javaheapspace", MESSAGE_HOST_PROGRAM, "", how_heap, HOST},
    {"gcoverheadlimitexceeded", MESSAGE_HOST_PROGRAM, "", how_heap, HOST},
    {"heapoutofmemory", MESSAGE_HOST_PROGRAM, "", how_heap, HOST},
    {"cannotallocatememory(oserror12)", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"oom-kill", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"byoomkiller", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"bytheoomkiller", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"outofmemorysrun:", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"defaultcpuallocator:", MESSAGE_HOST_PROGRAM, "", NULL, HOST},
    {"oomkilled", MESSAGE_HOST_PROGRAM, "", how_limit, HOST},
    {"cl_out_of_resources", MESSAGE_DRIVER, "OpenCL", how_driver, CARD},
    {"(outofresources)", MESSAGE_DRIVER, "OpenCL", how_driver, CARD},
    {"curesulterrorresult=2file", MESSAGE_DRIVER, "CUDA", how_driver, CARD},
    {"8007000enotenoughmemory", MESSAGE_DIRECTML, "DirectML", NULL, CARD},
    {"pt_devmemallocationfailed", MESSAGE_DRIVER, "HPU", how_driver, CARD},
    {"insufficientvraminsplitformodel", MESSAGE_LIBRARY, "", how_exllama, CARD},
    {"insufficientvramformodel", MESSAGE_LIBRARY, "", how_exllama, CARD},
    {"insufficientvram", MESSAGE_DRIVER, "", how_ollama, CARD},
    {"outofmemoryerror", MESSAGE_DRIVER, "", how_driver, CARD},
    {"outofmemory", MESSAGE_DRIVER, "", how_driver, CARD},
    {"out_of_memory", MESSAGE_DRIVER, "", how_driver, CARD},
    {"outofdevicememory", MESSAGE_DRIVER, "", how_driver, CARD},
    {"\xe6\x98\xbe\xe5\xad\x98\xe4\xb8\x8d\xe8\xb6\xb3", MESSAGE_DRIVER, "", message_how_unknown,
     CARD}, /* in Chinese */
    {"outofvideomemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"ranoutofmemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"memoryexhausted", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"memorylimitexceeded", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"hresult=8007000e", MESSAGE_DRIVER, "D3D12", message_how_unknown, CARD},
    {"0x8007000e", MESSAGE_DRIVER, "D3D12", message_how_unknown, CARD},
    {"enoughavailablememory", MESSAGE_DRIVER, "", how_ollama, CARD},
    {"insufficientmemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"insufficientdevicememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"insufficientgpumemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughmemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughdevicememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughallocatabledevicememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughgpumemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"noenoughgpumemory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughvram", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"outofgpu", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"outofvram", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"failedtoallocatememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"couldnotallocatememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"cannotallocatememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"allocationfailed", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"allocationfailure", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"memoryallocationerror", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"notenoughfreememory", MESSAGE_DRIVER, "", message_how_unknown, CARD},
    {"std::bad_alloc", MESSAGE_DRIVER, "", how_cpp, CARD},
    {"badallocation", MESSAGE_HOST_PROGRAM, "", NULL, HOST_LIKELY}, /* Windows' std::bad_alloc */
    {"bfcarena::allocaterawinternal", MESSAGE_ONNX, "", message_how_unknown, CARD},
    {"bytesfromdevice[", MESSAGE_LIBRARY, "", message_how_unknown, CARD},
    {"freeingmemorycacheandretrying", MESSAGE_LIBRARY, "", message_how_unknown, CARD},
    {"regionfailed:freeingsomememory", MESSAGE_LIBRARY, "CUDA", message_how_unknown, CARD},
    {"allocatingstorage", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"failedtoallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"failtoallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"cannotallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"can'tallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"couldnotallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"unabletoallocate", MESSAGE_DRIVER, "", message_how_unknown, NEAR},
    {"memoryerror", MESSAGE_HOST_PROGRAM, "", NULL, ONE_WORD}, /* Python */
    {"returncode=-9", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"exitcode:-9", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"exitcode-9", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"code137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"code:137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"code=137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"code\":137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"status137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"status=137", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"signal9(sigkill)", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"bysignal9", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"signals.sigkill:9", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
    {"signal:killed", MESSAGE_HOST_PROGRAM, "", how_killed, HOST_LIKELY},
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
        "allocate", "allocating", "allocationof", "ofsize",     "requested", "required",
        "need",     "size:",      "size=",        "requesting", "oflength"};
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

#define NEAR_CHARACTERS 100

/* Whether words of a card stand near; a failure to allocate may be one of anything else. */
static bool names_card(const struct message_text *text, size_t at)
{
    static const char *const words[] = {"gpu",    "cuda", "hip",   "device", "vram",
                                        "vulkan", "sycl", "metal", "opencl"};
    size_t from = at > NEAR_CHARACTERS ? at - NEAR_CHARACTERS : 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (message_text_find(text, words[i], from, at + NEAR_CHARACTERS) != MESSAGE_NOWHERE)
            return true;
    return false;
}

/* The next words that are not a flag which is off: "OOMKilled": false. */
static size_t find_said(const struct message_text *text, const char *words, size_t at)
{
    while ((at = message_text_find(text, words, at, text->count)) != MESSAGE_NOWHERE) {
        const char *rest = text->chars + at++ + strlen(words);
        if (strncmp(rest + strspn(rest, "\":="), "false", 5) != 0)
            return at - 1;
    }
    return at;
}

bool message_read_bare(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < sizeof bares / sizeof *bares; i++) {
        size_t at = find_said(text, bares[i].words, 0);
        if (at == MESSAGE_NOWHERE || (bares[i].memory == NEAR && !names_card(text, at)) ||
            (bares[i].memory == ONE_WORD &&
             memchr(text->gaps + at + 1, MESSAGE_GAP_SPACE, strlen(bares[i].words) - 1)))
            continue;
        self->framework = bares[i].framework;
        self->how = bares[i].how;
        self->bare = true;
        self->taken = 1;
        for (; at != MESSAGE_NOWHERE; at = find_said(text, bares[i].words, at + 1))
            self->count++;
        snprintf(self->device, sizeof self->device, "%s", bares[i].device);
        self->indirect = bares[i].memory == HOST_LIKELY || bares[i].memory == ONE_WORD;
        self->host = bares[i].memory == HOST || self->indirect;
        self->on_chip = bares[i].memory == CHIP;
        self->elsewhere = bares[i].memory == ELSEWHERE;
        self->block_limit = bares[i].memory == BLOCK;
        if (self->how == how_driver && !message_text_has(text, "torch"))
            self->how = how_driver_of_others;
        if (self->framework == MESSAGE_DRIVER && is_rmm(text)) {
            self->framework = MESSAGE_RMM;
            self->how = how_rmm;
        }
        if (self->framework == MESSAGE_DRIVER)
            read_size(text, self);
        if (self->how == how_driver_of_others || self->how == message_how_unknown)
            self->how = self->figures[MESSAGE_FIGURE_ASKED].known ? message_how_unknown
                                                                  : how_driver_of_others;
        return true;
    }
    return false;
}
