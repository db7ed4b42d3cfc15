/* The wordings that a table can describe. Sources (release, file):
 *
 *   ONNX Runtime   1.5 to 1.23, core/framework/bfc_arena.cc: a limit of the arena; the driver
 *   spark-rapids   21.06 to 25.08, DeviceMemoryEventHandler.scala; the pool: GpuDeviceManager.scala
 *   ggml           b4000 to b7000, ggml-cuda.cu, ggml-alloc.c, ggml-vulkan.cpp, ggml-metal, -sycl
 *   torch-directml 0.1.13 to 0.2.5
 *   PaddlePaddle   2.0 to 3.0, memory/allocation/cuda_allocator.cc
 *   TensorRT       7 to 10; Triton Inference Server 20.03 to 25.08, pinned and CNMEM pools
 *   Triton         2.0 to 3.5, compiler/errors: shared memory of a multiprocessor
 *   Theano 0.8 to 1.0, XGBoost 1.0 to 3.0, CatBoost, Faiss 1.5 to 1.12, NCCL 2, Kokkos, tinygrad,
 *   MLX, NumPy, Ollama, MindSpore, Ascend CANN, ND4J 1.0, AMReX 20 to 25, RELION 2 to 5, MLC-LLM,
 *   bmlib of Sophon
 *   TPU            its runtime, where one pool has all memory of a chip, and its compiler;
 *                  "reservable" and "allocatable" are the largest free range
 *   CuPy           1 to 13; what is allocated "so far" is all reserved memory
 *   RMM            to 0.11 (RMM_ERROR_OUT_OF_MEMORY), later "Maximum pool size exceeded" and its
 *                  log; sizes from 25.04 on */

#include "sim/explain/message_forms.h"

static const char how_onnx[] =
    "The message does not say what of the arena is unused. Find out: raise gpu_mem_limit (CUDA "
    "provider) or max_mem (OrtArenaCfg), or create the session without a limit; if it then runs, "
    "compare the peak of nvidia-smi with the limit. Where sizes of inputs vary, the arena keeps a "
    "block for each: arena_extend_strategy=kSameAsRequested and "
    "memory.enable_memory_arena_shrinkage=gpu:0 show by their effect whether it was fragmented.";
static const char how_onnx_driver[] =
    "The message does not say what was free, nor whether the memory is a GPU's or the host's (the "
    "provider of the node tells). Find out: run nvidia-smi beside it for the free memory; set "
    "gpu_mem_limit and arena_extend_strategy=kSameAsRequested; a smaller batch or input.";
static const char how_ggml[] =
    "The message has no figure of the free memory. Find out: the log says at its beginning what is "
    "free (\"using device .. MiB free\") and then the size of each buffer; nvidia-smi or rocm-smi "
    "shows other processes. Smaller buffers: a smaller -c, -ub and -b, --flash-attn, fewer layers "
    "on the GPU (-ngl), another --tensor-split over several GPUs.";
const char message_how_vulkan[] =
    "The message has no figure of the free memory, and Vulkan also refuses a buffer above its "
    "limit for one allocation. Find out: compare the size with maxMemoryAllocationSize and with "
    "the heap sizes and budgets of vulkaninfo. Above the limit, GGML_VK_FORCE_MAX_ALLOCATION_SIZE "
    "(a lower one) splits buffers; else use fewer layers on the GPU (-ngl), or a smaller -c or "
    "-ub.";
static const char how_spark[] =
    "The log has no size of the pool in it. Find out: the line \"Initializing RMM\" at the start "
    "of the executor has it. If the device store has 0 bytes, there is nothing left to spill: "
    "fewer spark.rapids.sql.concurrentGpuTasks, smaller batches (spark.rapids.sql.batchSizeBytes), "
    "the ASYNC pool (spark.rapids.memory.gpu.pool) against fragmentation; "
    "spark.rapids.memory.gpu.debug=STDERR logs all allocations.";
static const char how_paddle[] =
    "The message does not say what of the allocated memory is unused. Find out: "
    "paddle.device.cuda.memory_allocated() beside memory_reserved(); nvidia-smi for other "
    "processes; FLAGS_allocator_strategy=auto_growth, and paddle.device.cuda.empty_cache().";
static const char how_paddle_chunk[] =
    "Paddle asks for one chunk, by default 0.92 of the card, and not for a tensor. If nvidia-smi "
    "shows other processes, they have the rest; else the program has used up its first chunk and "
    "asks for a second one. FLAGS_fraction_of_gpu_memory_to_use sets the size.";
static const char how_nccl[] =
    "NCCL takes its memory from the driver, not from the pool of the framework, and the pool left "
    "too little. Find out: nvidia-smi, or torch.cuda.mem_get_info() just before the first "
    "collective. Leave memory free outside of the pool "
    "(torch.cuda.set_per_process_memory_fraction, gpu_memory_utilization), call "
    "torch.cuda.empty_cache() before it, or lower NCCL_BUFFSIZE and NCCL_MAX_NCHANNELS.";
static const char how_ascend[] =
    "The driver does not say what was free. Find out: npu-smi info for the free memory and for "
    "other processes; torch.npu.memory_summary(), or MindSpore's max_device_memory and "
    "mindspore.hal.memory_summary().";
static const char how_shared[] =
    "It is the shared memory of a multiprocessor, which a kernel needs at once; no allocator is in "
    "it. Use smaller block sizes, or fewer num_stages.";

static const char how_ggml_plan[] =
    "ggml plans its buffers before it uses them, and this plan was too small: it is an error of "
    "the program, not a lack of memory on the card. Update llama.cpp, or report it with the model.";
static const char how_relion[] =
    "Each MPI rank on a GPU has a pool of its own, of what is free at the start. Fewer ranks or "
    "threads for each GPU, a smaller box (--skip_padding), --maxsig, or --free_gpu_memory for "
    "other users of the card.";
static const char how_amrex[] =
    "AMReX takes three quarters of the card at its start. Find out: {tool} for other processes, "
    "and the arenas in its output (\"Total GPU global memory\", the_arena). Set "
    "amrex.the_arena_init_size=0 if others share the card; smaller boxes, more GPUs.";
static const char how_mlc[] =
    "The available memory is the card times gpu_memory_utilization (0.85). Raise it, lower "
    "prefill_chunk_size or context_window_size (the temporary buffers), use a smaller "
    "quantization, or more GPUs (tensor_parallel_shards).";
static const char how_tactic[] =
    "The builder leaves out a tactic that does not fit, and takes another one. If no tactic fits "
    "(\"Could not find any implementation\"), free memory of the card (on a Jetson that of the "
    "host, too), or lower the workspace (memory_pool_limit, --memPoolSize=workspace:N).";

static const char how_physx[] =
    "PhysX asks the driver for the buffers of its scene, beside the pool of the framework. Find "
    "out: {tool} for other processes and for what is free; fewer environments, or smaller buffers "
    "of the scene (gpu_max_rigid_contact_count, gpu_found_lost_pairs_capacity and the like).";

static const char how_kaldi[] =
    "Kaldi asks for half of what is free, again and again, so processes that share the card fail: "
    "give each a card of its own (nvidia-smi -c 3 and --use-gpu=wait), or lower "
    "--cuda-memory-proportion.";
static const char how_dxvk[] =
    "DXVK asks the driver for chunks of up to 256 MiB. If a heap of the table after it is near its "
    "budget, the card is full: lower the settings of the game. If none is, a 32-bit game has no "
    "addresses left (WINE_LARGE_ADDRESS_AWARE=1, PROTON_FORCE_LARGE_ADDRESS_AWARE=1).";
static const char how_tvm[] =
    "TVM plans its buffers when it compiles a model, and this request is larger than the plan: it "
    "is not the card that is full. Compile with larger bounds (context_window_size, "
    "prefill_chunk_size), or give a smaller input.";

static const char how_system[] =
    "Ollama keeps what does not fit on the GPU in the host's memory. Close other programs, use a "
    "smaller model or quantization, or a smaller context (num_ctx).";

static const char how_heap[] =
    "It is the size of one heap of Vulkan: often the part of the card that the host can map (256 "
    "MiB without resizable BAR). Ask for memory without HOST_VISIBLE, or use smaller buffers; "
    "vulkaninfo lists the heaps.";
const char message_how_earlier[] =
    "It is no lack of memory: the driver reports here that an earlier kernel has failed (an "
    "illegal memory access). Find out: compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1.";
const char message_how_guess[] =
    "The program guessed what the model needs, of the GPU and the host together, before it loaded "
    "it. A smaller model, quantization or context, fewer layers on the GPU; if the guess is wrong, "
    "its settings turn the check off (LM Studio: model loading guardrails).";
static const char how_metal[] =
    "The message has no figure of the free memory. Find out: the log has "
    "recommendedMaxWorkingSetSize at its beginning, the most that Metal gives to one program "
    "(about three quarters of the memory; sysctl iogpu.wired_limit_mb raises it). Use a "
    "smaller -c or -ub, or a smaller quantization.";
static const char how_server_pool[] =
    "The pool of the server, not the card, is used up; its size is set by "
    "--cuda-memory-pool-byte-size=GPU:BYTES. The server then uses pinned memory of the host.";
static const char how_faiss[] =
    "Faiss prints what each of its allocators holds behind it (\"Outstanding allocations\"). "
    "If enough was free, an earlier call of the program failed most likely: "
    "CUDA_LAUNCH_BLOCKING=1 shows which.";
static const char how_old_faiss[] =
    "Faiss asks the driver beside its temporary memory. Find out: nvidia-smi for the free "
    "memory; StandardGpuResources.setTempMemory with less, a smaller batch of queries, "
    "float16 storage.";
static const char how_cache[] = "The cache of one request of max_model_len tokens needs more than "
                                "gpu_memory_utilization leaves after the weights: lower "
                                "max_model_len{length}, raise gpu_memory_utilization, use an fp8 "
                                "cache (kv_cache_dtype), or more GPUs (tensor_parallel_size).";
static const char how_shadow[] =
    "A sanitizer maps terabytes of address space beside the program's own. Raise the limit of the "
    "address space (ulimit -v), or allow more of it than there is (sysctl vm.overcommit_memory=1).";
static const char how_store[] =
    "Ray's object store is part of /dev/shm. Delete references that are not needed, raise "
    "object_store_memory, or let it spill to disk.";

const struct message_form message_forms[] = {
    {"availablememoryofFissmallerthanrequestedbytesofA", MESSAGE_ONNX, "", how_onnx, 0},
    {"failedtoallocatememoryforrequestedbufferofsizeA", MESSAGE_ONNX, "", how_onnx_driver, 0},
    {"deviceallocationofAfailed,devicestorehas&totalrmmallocatedisP", MESSAGE_SPARK, "", how_spark,
     FORM_LAST},
    {"devicestoreexhausted,unabletoallocateA&totalrmmallocatedisP", MESSAGE_SPARK, "", how_spark,
     FORM_LAST},
    {"can'tcreateasession.failedtoallocateabufferofsizeA|"
     "cannotenlargememoryarraystosizeA",
     MESSAGE_HOST_PROGRAM, "", message_how_web, FORM_HOST},
    /* The exact bytes; the line before has them in MiB. */
    {"failedtoallocate*bufferofsizeA", MESSAGE_GGML, "", how_ggml, 0},
    {"ggml_vulkan:devicememoryallocationofsizeA", MESSAGE_GGML, "Vulkan", message_how_vulkan, 0},
    {"allocatingAondevice*cudamallocfailed", MESSAGE_GGML, "", how_ggml, 0},
    {"notenoughspaceinthebuffer*neededA|notenoughspaceinthecontext'smemorypool*neededA&availableL",
     MESSAGE_GGML, "", how_ggml_plan, FORM_ELSEWHERE},
    {"opencl_buffer_type_alloc_buffer:failedtoallocateA", MESSAGE_GGML, "OpenCL", how_ggml, 0},
    {"failedtoallocateAofpinnedmemory", MESSAGE_GGML, "", NULL, FORM_HOST | FORM_SPARE},
    {"sizeAislargerthanbuffermaximumofL", MESSAGE_GGML, "Metal", NULL, FORM_BLOCK},
    {"failedtoallocate*buffer,size=A", MESSAGE_GGML, "Metal", how_metal, 0},
    /* A warning; the command buffer fails later, without a size. */
    {"size=A,(P/T)*currentallocatedsizeisgreaterthantherecommendedmaxworkingsetsize", MESSAGE_GGML,
     "Metal", NULL, FORM_LAST | FORM_MIB},
    {"can'tallocateAofmemoryondevice", MESSAGE_GGML, "SYCL", how_ggml, 0},
    {"couldnotallocatetensorwithA*thereisnotenoughgpuvideomemory", MESSAGE_DIRECTML, "DirectML",
     NULL, 0},
    {"outofmemoryerrorongpu*cannotallocateAmemoryongpu&Rmemoryhasbeenallocated&"
     "availablememoryisonlyF",
     MESSAGE_PADDLE, "", how_paddle, FORM_CARD},
    {"outofmemoryerrorongpu*cannotallocateA&availablememoryisF", MESSAGE_PADDLE, "", how_paddle,
     FORM_CARD},
    {"failtoallocmemoryofAsize", MESSAGE_PADDLE, "", NULL, FORM_HOST},
    /* To 1.4: a condition of gpu_info.cc, with its two sides. */
    {"enforceallocating<=availablefailed,A>F", MESSAGE_PADDLE, "", how_paddle_chunk, FORM_CARD},
    {"requestedamountof*memory(A)couldnotbeallocated", MESSAGE_TENSORRT, "", NULL, 0},
    {"outofmemory*requestedsizewasA", MESSAGE_TENSORRT, "", NULL, 0},
    /* The builder tries tactics, and leaves out those that do not fit. */
    {"tacticdevicerequest:A*devicememoryisinsufficienttousetactic&available:F", MESSAGE_TENSORRT,
     "CUDA", how_tactic, FORM_SPARE},
    {"allocatingA-bytebuffer", MESSAGE_TENSORRT, "CUDA", how_tactic, FORM_SPARE},
    {"insufficientmemoryonrequestedsizeofA", MESSAGE_TENSORRT, "CUDA", how_tactic, FORM_SPARE},
    {"insuficientmemoryonrequestedsizeofA", MESSAGE_TENSORRT, "CUDA", how_tactic,
     FORM_SPARE | FORM_MIB},
    {"failedtoallocatecudamemorywithbytesizeAongpu", MESSAGE_TRITON_SERVER, "", how_server_pool,
     FORM_SPARE | FORM_ELSEWHERE},
    {"failedtoallocatepinnedsystemmemory*bytesizeA", MESSAGE_TRITON_SERVER, "", NULL,
     FORM_HOST | FORM_SPARE},
    {"outofresource:sharedmemory*required:A&hardwarelimit:T", MESSAGE_TRITON, "", how_shared,
     FORM_CHIP},
    {"errorallocatingAofdevicememory(&driverreportFfree&freeandTtotal", MESSAGE_LIBRARY, "", NULL,
     FORM_CARD},
    {"-freememory:F*-requestedmemory:A", MESSAGE_LIBRARY, "", NULL, FORM_CARD},
    {"outofmemory.requestedA*freeF", MESSAGE_LIBRARY, "", NULL, FORM_CARD | FORM_MIB},
    {"notenoughmemoryfortree-ctrs:F*available,needatleastA", MESSAGE_LIBRARY, "", NULL, FORM_MIB},
    {"outofmemory-requested:A*available:F", MESSAGE_LIBRARY, "", NULL, 0},
    {"cannotallocateA*nomemoryisavailable", MESSAGE_LIBRARY, "", NULL, 0},
    /* RELION: its pool is one range. */
    {"outofmemory*[requestedspace:A&[largestcontinuousfreespace:L&[totalfreespace:U",
     MESSAGE_LIBRARY, "CUDA", how_relion, FORM_ONE_POOL},
    {"outofgpumemory.free:F*asked:A", MESSAGE_LIBRARY, "", how_amrex, FORM_CARD},
    {"outofmemory*bytestoallocate:A|bytestoallocate:A*outofmemory", MESSAGE_LIBRARY, "", how_amrex,
     0},
    {"Akvcacheisneeded*availablekvcachememory(U", MESSAGE_VLLM, "", how_cache, FORM_ONE_POOL},
    {"sharedmemorysizelimitexceeded:requestedA,available:T", MESSAGE_JAX, "", how_shared,
     FORM_CHIP},
    {"scopedallocationwithsizeA&andlimitT", MESSAGE_JAX, "TPU", NULL, FORM_CHIP},
    {"inmemoryspacehbm*.usedA|usedA*hbm.exceededhbmcapacityby&usedAofT", MESSAGE_JAX, "TPU", NULL,
     0},
    {"inmemoryspace*.usedA&usedAofT", MESSAGE_JAX, "TPU", NULL, FORM_CHIP},
    {"attemptingtoreserveA|attemptingtoallocateA*thatwasnotpossible|exhausted:"
     "attemptingtoallocateA&thereareU&Lreservable|largestcontiguousregionoffreememoryisL",
     MESSAGE_JAX, "TPU", NULL, FORM_ONE_POOL},
    {"couldnotallocateA*Lallocatable&Uavailable", MESSAGE_JAX, "TPU", NULL, FORM_ONE_POOL},
    {"allocation(size=A)wouldexceedmemory(size=T", MESSAGE_JAX, "TPU", NULL, 0},
    {"hbmusage:A*sparsecorehbmusageE*exceedingavailablebytes:T", MESSAGE_JAX, "TPU", NULL, 0},
    /* Legion, Godot, PyTorch, stable-diffusion-webui */
    {"mapperfailedallocationofsizeA", MESSAGE_LIBRARY, "", message_how_unknown, 0},
    {"can'tcreatebufferofsize:A,error-2", MESSAGE_DRIVER, "Vulkan", message_how_unknown, 0},
    {"failedtoallocateprivatemtlbufferforsizeA", MESSAGE_PYTORCH, "MPS", NULL, 0},
    {"lowerresolution*need:Afree,have:F", MESSAGE_LIBRARY, "", NULL, FORM_CARD},
    /* FluidX3D */
    {"allocatinganotherAwoulduseatotalof*/T", MESSAGE_LIBRARY, "OpenCL", message_how_unknown,
     FORM_CARD},
    /* HeavyDB */
    {"allocationfailedtofindA*throwingoutofmemorycpu_mgr", MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST | FORM_LIKELY},
    /* FlashInfer */
    {"whenallocatingmemoryfor*withsizeA", MESSAGE_LIBRARY, "CUDA", message_how_workspace,
     FORM_ELSEWHERE},
    /* Sophon */
    {"bm_alloc_gmemfailed*size=A", MESSAGE_LIBRARY, "", message_how_unknown, 0},
    /* ND4J */
    {"failedtoallocateAfromdevice[", MESSAGE_LIBRARY, "CUDA", message_how_unknown, 0},
    {"theavailablesinglegpumemoryisF*whichislessthanthesumofmodelweightsize(A*temporarybuffersize("
     "E",
     MESSAGE_MLC, "", how_mlc, FORM_ONE_POOL},
    {"totalusedmemstatistics:P*plusallocsize:A*ismorethantotalmemsize:T", MESSAGE_MINDSPORE, "NPU",
     how_ascend, FORM_ONE_POOL},
    {"memoryisn'tenoughandallocfailed*allocsize:A|mallocdevicememoryfailed*size[A",
     MESSAGE_MINDSPORE, "", message_how_unknown, 0},
    {"callrtmallocfail*size:A|memory_allocation_failure(el0004)*size:A", MESSAGE_DRIVER, "NPU",
     how_ascend, 0},
    {"failedtocudacallocA|failedtocudacallocasyncA", MESSAGE_LIBRARY, "CUDA", how_nccl, 0},
    {"failedtocudamallocA", MESSAGE_LIBRARY, "CUDA", NULL, 0},
    {"failedtoallocateA*(label=", MESSAGE_LIBRARY, "", NULL, 0},
    {"allocationofAfailedon&used:R", MESSAGE_LIBRARY, "", NULL, 0},
    {"attemptingtoallocateA*greaterthanthemaximumallowedbuffersize&buffersizeofL", MESSAGE_MLX,
     "Metal", NULL, FORM_BLOCK},
    {"[malloc_or_wait]unabletoallocateA", MESSAGE_MLX, "Metal", NULL, 0},
    {"pt_devmemallocationfailed*forsize::A|workspaceallocationofsize::A", MESSAGE_DRIVER, "HPU",
     message_how_unknown, 0},
    {"failedtoallocateamemoryregionofA&memoryinfo:free:F&,total:T", MESSAGE_LIBRARY, "CUDA",
     how_kaldi, FORM_CARD},
    {"dxvkmemoryallocator:memoryallocationfailed*size:A", MESSAGE_LIBRARY, "Vulkan", how_dxvk, 0},
    {"storageallocationfailure,attemptedtoallocateAatoffset&regionthatisL", MESSAGE_LIBRARY, "",
     how_tvm, FORM_ELSEWHERE},
    /* CubeCL */
    {"nopoolhandlesallocationofsizeA", MESSAGE_LIBRARY, "", NULL, FORM_BLOCK},
    /* MIOpen, PhysX */
    {"memorynotavailabletoallocatebuffer:A", MESSAGE_LIBRARY, "HIP", message_how_unknown, 0},
    /* PhoenixMiner; the brackets hide its unit. */
    {"allocatingdag(A)gb*outofmemory&memory:Ttotal,Ffree", MESSAGE_LIBRARY, "", message_how_unknown,
     FORM_CARD | FORM_GIB},
    {"failtoallocatememoryA", MESSAGE_LIBRARY, "CUDA", how_physx, 0},
    {"illegalmemoryaccess*unabletoallocatememoryofsizeA", MESSAGE_LIBRARY, "CUDA",
     message_how_earlier, FORM_ELSEWHERE},
    {"unabletoallocatememoryofsizeA", MESSAGE_LIBRARY, "CUDA", how_physx, 0},
    {"Afromheap#*butsizeofthatheapisonlyT", MESSAGE_DRIVER, "Vulkan", how_heap, FORM_BLOCK},
    {"insufficientsystemresources*requiresapproximatelyA", MESSAGE_LIBRARY, "", message_how_guess,
     0},
    {"oomwhenallocatingabufferofA", MESSAGE_TENSORFLOW, "", NULL, 0},
    /* OpenVINO */
    {"exceededmaxsizeofmemoryobjectallocation*requestedA&supportedbydeviceisL", MESSAGE_LIBRARY, "",
     NULL, FORM_BLOCK},
    {"buffersize(A*exceedsthemaxbuffersizelimit&sizelimit(L", MESSAGE_LIBRARY, "WebGPU", NULL,
     FORM_BLOCK},
    {"bindingsize(A*islargerthanthemaximumbinding&maximumbindingsize(L", MESSAGE_LIBRARY, "WebGPU",
     NULL, FORM_BLOCK},
    {"invalidbuffersize:A", MESSAGE_PYTORCH, "MPS", NULL, FORM_BLOCK},
    {"modelrequesttoolargeforsystem*requested=\"A&available=F", MESSAGE_HOST_PROGRAM, "",
     how_system, FORM_HOST},
    {"attemptedtoallocate:A", MESSAGE_RMM, "", NULL, 0},
    {"failedtoallocAonhost:cuda_error_out_of_memory|couldnotallocatepinnedhostmemoryofsize:A",
     MESSAGE_TENSORFLOW, "", NULL, FORM_HOST},
    {"allocationofAexceeds#%offreesystemmemory.killed|allocationofAexceeds#%ofsystemmemory.killed",
     MESSAGE_TENSORFLOW, "", NULL, FORM_HOST | FORM_LIKELY},
    {"allocatorfailtype*sizeA*devicefreememory:F", MESSAGE_LIBRARY, "CUDA", how_faiss, FORM_CARD},
    {"allocfailtype*sizeA(", MESSAGE_LIBRARY, "", how_old_faiss, 0},
    {"modelrequiresmoresystemmemory(A&isavailable(F", MESSAGE_HOST_PROGRAM, "", how_system,
     FORM_HOST},
    {"newbufferwith*lengthAmustnotexceedL", MESSAGE_DRIVER, "Metal", NULL, FORM_BLOCK},
    /* Warp */
    {"memoryallocationfailedondevice:cuda*forA", MESSAGE_LIBRARY, "CUDA", message_how_unknown, 0},
    /* OpenCV, ggml, Kokkos to 2.9, GCC, Unreal Engine, Blender */
    {"insufficientmemory)failedtoallocateA*outofmemoryerror|"
     "ggml_aligned_malloc:insufficientmemory*attemptedtoallocateA|hostspace::allocate[*](A)failed|"
     "outofmemoryallocatingAafteratotalof|ranoutofmemoryallocatingAwithalignment|"
     "allocreturnsnull:len=A|requirementexceedsavailablememory--req:A|"
     "requirementexceedavailablememory--req:A",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    /* DALI, Bash, Dart, Neo4j */
    {"unabletoallocateAofhostmemory|failedtoallocateAofhostmemory|cannotallocateAofhostmemory|"
     "couldnotallocateAofhostmemory|unabletoallocateAofcpumemory|failedtoallocateAofcpumemory|"
     "unabletoallocateAofsystemmemory|failedtoallocateAofsystemmemory|can'tallocateAonhost|xmalloc:"
     "cannotallocateA|xrealloc:cannotallocateA|"
     "exhaustedheapspace,tryingtoallocateA|allocationofanextraAwouldusemorethanthelimit",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    /* MATLAB, Ray */
    {"requested*(A)arrayexceedsmaximumarraysize&preference(W", MESSAGE_HOST_PROGRAM, "", NULL,
     FORM_HOST},
    {"inobjectstorebecauseitisfull*objectsizeisA", MESSAGE_HOST_PROGRAM, "", how_store, FORM_HOST},
    /* Rust, Unity, Dr.Jit, NumPy */
    {"memoryallocationofAfailed|systemoutofmemory*tryingtoallocate:A|"
     "couldnotallocateAofhost-pinnedmemory|arraymemoryerror:unabletoallocateA|"
     "unabletoallocateAforanarray",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    /* LAMMPS, Arrow, DuckDB, Java, gfortran, Kokkos, Erlang, PostgreSQL, OpenVINO, GROMACS, R,
     * vLLM, Unreal Engine */
    {"failedtoallocateAforarray*memory.cpp|failedtoreallocateAforarray|arrowmemoryerror:"
     "mallocofsizeA|"
     "arrowmemoryerror:reallocofsizeA|couldnotallocateblockofsizeA|failedtoallocatedataofsizeA|"
     "os::commit_memory(*,A,#)failed|nativememoryallocation(mmap)failedtomapA|"
     "nativememoryallocation(malloc)failedtoallocateA|errorallocatingA*errortermination|"
     "memoryspacenamed\"host\"failed*allocationofsizeA|heap_alloc:cannotallocateA|"
     "binary_alloc:cannotallocateA|failedonrequestofsizeA*inmemorycontext|"
     "detail:'failedonrequestofsizeA|detail:failedonrequestofsizeA|"
     "cannotallocateAforusmhost|failedtoreallocA|cudamallochostofsizeA|"
     "cannotallocatevectorofsizeA|toolargeswapspace.A*totalcpumemory|getmemoryforlargeallocationA|"
     "ranoutofmemoryallocatingA*withalignment",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    /* sanitizers, libFuzzer, Valgrind, Go, R, mimalloc, PETSc, Oracle */
    {"sanitizerfailedtoallocateA", MESSAGE_HOST_PROGRAM, "", how_shadow, FORM_HOST},
    {"sanitizer:allocatorisoutofmemorytryingtoallocateA|"
     "sanitizer:outofmemory:allocatoristryingtoallocateA|libfuzzer:out-of-memory(malloc(A|"
     "newsuperblock'srequestforA|runtime:outofmemory:cannotallocateA-byte|"
     "'realloc'couldnotre-allocatememory(A|"
     "unabletoallocateosmemory(A|ora-04031:unabletoallocateA|petscerror:memoryrequestedA|"
     "ora-04030:outofprocessmemorywhentryingtoallocateA",
     MESSAGE_HOST_PROGRAM, "", NULL, FORM_HOST},
    {"buffersizeAisgreaterthanthemaximumbuffer&maximumbuffersize(L", MESSAGE_LIBRARY, "WebGPU",
     NULL, FORM_BLOCK},
    {"cannotallocateAforusmdevice*error:-61", MESSAGE_LIBRARY, "OpenCL", NULL, FORM_BLOCK},
    {"halmemallocfailed:size=A", MESSAGE_DRIVER, "NPU", how_ascend, 0},
    {"outofmemoryontile#:Aused*tilesonlyhaveT|tile#needsAbutonlyTareavailable", MESSAGE_LIBRARY,
     "IPU", NULL, FORM_CHIP},
    /* NVIDIA's compilers, OpenACC */
    {"outofmemoryallocatingAofdevicememory&total/freecudamemory:T/F", MESSAGE_LIBRARY, "CUDA",
     message_how_unknown, FORM_CARD},
    /* CuPy, also to 6: there the total is what would be reserved if the request succeeded. */
    {"outofmemoryallocatingA(allocatedsofar:R&allocatedsofar:R,limitsetto:T", MESSAGE_CUPY, "",
     NULL, 0},
    {"outofmemorytoallocateA(totalR&A(totalR,limitsettoT", MESSAGE_CUPY, "", NULL, FORM_SUM},
    {"outofmemoryallocatingA", MESSAGE_CUPY, "", NULL, FORM_NAMED},
    /* RMM: its log, which has exact bytes, and its errors, before 25.04 without sizes. */
    {"][upstreamA][failure&trysize=R&trysize=R,T", MESSAGE_RMM, "", NULL, 0},
    {"(failedtoallocateA*illegalmemoryaccess", MESSAGE_RMM, "", message_how_earlier,
     FORM_NAMED | FORM_ELSEWHERE},
    {"(failedtoallocateA&trysize=R&trysize=R,T", MESSAGE_RMM, "", NULL, FORM_NAMED},
};

const size_t message_form_count = sizeof message_forms / sizeof *message_forms;
