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
 *   bmlib of Sophon; RMM to 0.11 (a call failed with result
 *   RMM_ERROR_OUT_OF_MEMORY) */
#include <stddef.h>

#include "sim/explain/message_forms.h"

#define FIELD(figure, before, after)                                                               \
    {                                                                                              \
        MESSAGE_FIGURE_##figure, before, after                                                     \
    }
#define ASKED(before, after) FIELD(ASKED, before, after)
#define FORM(framework, device, anchor, near, back, ahead, flags, how, ...)                        \
    {                                                                                              \
        MESSAGE_##framework, device, anchor, near, back, ahead, {__VA_ARGS__}, flags, how          \
    }

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
const char message_how_guess[] =
    "The program guessed what the model needs, of the GPU and the host together, before it loaded "
    "it. A smaller model, quantization or context, fewer layers on the GPU; if the guess is wrong, "
    "its settings turn the check off (LM Studio: model loading guardrails).";

const struct message_form message_forms[] = {
    FORM(ONNX, NULL, "issmallerthanrequestedbytesof", "availablememoryof", 60, 80, 0, how_onnx,
         ASKED("issmallerthanrequestedbytesof", NULL),
         FIELD(FREE, "availablememoryof", "issmaller")),
    FORM(ONNX, NULL, "failedtoallocatememoryforrequestedbufferofsize", NULL, 0, 80, 0,
         how_onnx_driver, ASKED("requestedbufferofsize", NULL)),
    FORM(SPARK, NULL, "deviceallocationof", "bytesfailed,devicestorehas", 0, 260, FORM_LAST,
         how_spark, ASKED("deviceallocationof", "failed,devicestore"),
         FIELD(ALLOCATED, "totalrmmallocatedis", NULL)),
    FORM(SPARK, NULL, "devicestoreexhausted,unabletoallocate", NULL, 0, 120, FORM_LAST, how_spark,
         ASKED("unabletoallocate", NULL), FIELD(ALLOCATED, "totalrmmallocatedis", NULL)),
    /* The exact bytes; the line before has them in MiB. */
    FORM(GGML, NULL, "bufferofsize", "failedtoallocate", 60, 40, 0, how_ggml,
         ASKED("bufferofsize", NULL)),
    FORM(GGML, "Vulkan", "ggml_vulkan:devicememoryallocationofsize", NULL, 0, 200, 0,
         message_how_vulkan, ASKED("allocationofsize", NULL)),
    FORM(GGML, NULL, "cudamallocfailed", "allocating", 60, 40, 0, how_ggml,
         ASKED("allocating", "ondevice")),
    FORM(GGML, NULL, "notenoughspaceinthebuffer", NULL, 0, 200, FORM_ELSEWHERE, how_ggml_plan,
         ASKED("needed", NULL), FIELD(LARGEST, "available", NULL)),
    FORM(GGML, NULL, "notenoughspaceinthecontext'smemorypool", NULL, 0, 200, FORM_ELSEWHERE,
         how_ggml_plan, ASKED("needed", NULL), FIELD(LARGEST, "available", NULL)),
    FORM(GGML, "OpenCL", "opencl_buffer_type_alloc_buffer:failedtoallocate", NULL, 0, 60, 0,
         how_ggml, ASKED("failedtoallocate", NULL)),
    FORM(GGML, NULL, "ofpinnedmemory", "failedtoallocate", 60, 0, FORM_HOST | FORM_SPARE, NULL,
         ASKED("failedtoallocate", "ofpinnedmemory")),
    FORM(GGML, "Metal", "islargerthanbuffermaximumof", "size", 60, 60, FORM_BLOCK, NULL,
         ASKED("size", "islargerthan"), FIELD(LARGEST, "buffermaximumof", NULL)),
    FORM(GGML, "Metal", "buffer,size=", "failedtoallocate", 60, 60, 0,
         "The message has no figure of the free memory. Find out: the log has "
         "recommendedMaxWorkingSetSize at its beginning, the most that Metal gives to one program "
         "(about three quarters of the memory; sysctl iogpu.wired_limit_mb raises it). Use a "
         "smaller -c or -ub, or a smaller quantization.",
         ASKED("size=", NULL)),
    /* A warning; the command buffer fails later, without a size. */
    FORM(GGML, "Metal", "currentallocatedsizeisgreaterthantherecommendedmaxworkingsetsize", "/",
         110, 0, FORM_LAST | FORM_MIB, NULL, ASKED("size=", NULL), FIELD(ALLOCATED, "(", "/"),
         FIELD(TOTAL, "/", ")")),
    FORM(GGML, "SYCL", "bytesofmemoryondevice", "can'tallocate", 60, 20, 0, how_ggml,
         ASKED("can'tallocate", "ofmemoryondevice")),
    FORM(DIRECTML, "DirectML", "thereisnotenoughgpuvideomemory", "couldnotallocatetensorwith", 120,
         0, 0, NULL, ASKED("couldnotallocatetensorwith", NULL)),
    FORM(PADDLE, NULL, "outofmemoryerrorongpu", "cannotallocate", 0, 400, FORM_CARD, how_paddle,
         ASKED("cannotallocate", "memoryongpu"), FIELD(RESERVED, NULL, "memoryhasbeenallocated"),
         FIELD(FREE, "availablememoryisonly", NULL)),
    FORM(PADDLE, NULL, "outofmemoryerrorongpu", "cannotallocate", 0, 400, FORM_CARD, how_paddle,
         ASKED("cannotallocate", NULL), FIELD(FREE, "availablememoryis", NULL)),
    FORM(PADDLE, NULL, "failtoallocmemoryof", NULL, 0, 60, FORM_HOST, NULL,
         ASKED("memoryof", "size")),
    /* To 1.4: a condition of gpu_info.cc, with its two sides. */
    FORM(PADDLE, NULL, "enforceallocating<=availablefailed,", NULL, 0, 60, FORM_CARD,
         how_paddle_chunk, ASKED("failed,", NULL), FIELD(FREE, ">", NULL)),
    FORM(TENSORRT, NULL, ")couldnotbeallocated", "requestedamountof", 60, 0, 0, NULL,
         ASKED("memory(", ")couldnot")),
    FORM(TENSORRT, NULL, "requestedsizewas", "outofmemory", 200, 40, 0, NULL,
         ASKED("requestedsizewas", NULL)),
    /* The builder tries tactics, and leaves out those that do not fit. */
    FORM(TENSORRT, "CUDA", "devicememoryisinsufficienttousetactic", "tacticdevicerequest:", 60, 0,
         FORM_SPARE, how_tactic, ASKED("tacticdevicerequest:", NULL),
         FIELD(FREE, "available:", NULL)),
    FORM(TENSORRT, "CUDA", "insufficientmemoryonrequestedsizeof", NULL, 0, 40, FORM_SPARE,
         how_tactic, ASKED("requestedsizeof", NULL)),
    FORM(TENSORRT, "CUDA", "insuficientmemoryonrequestedsizeof", NULL, 0, 40, FORM_SPARE | FORM_MIB,
         how_tactic, ASKED("requestedsizeof", NULL)),
    FORM(TRITON_SERVER, NULL, "failedtoallocatecudamemorywithbytesize", NULL, 0, 120,
         FORM_SPARE | FORM_ELSEWHERE,
         "The pool of the server, not the card, is used up; its size is set by "
         "--cuda-memory-pool-byte-size=GPU:BYTES. The server then uses pinned memory of the host.",
         ASKED("bytesize", "ongpu")),
    FORM(TRITON_SERVER, NULL, "failedtoallocatepinnedsystemmemory", NULL, 0, 120,
         FORM_HOST | FORM_SPARE, NULL, ASKED("bytesize", NULL)),
    FORM(TRITON, NULL, "outofresource:sharedmemory", NULL, 0, 120, FORM_ON_CHIP, how_shared,
         ASKED("required:", NULL), FIELD(TOTAL, "hardwarelimit:", NULL)),
    FORM(LIBRARY, NULL, "bytesofdevicememory(", "errorallocating", 60, 200, FORM_CARD, NULL,
         ASKED("errorallocating", "ofdevicememory"), FIELD(FREE, "driverreport", "free"),
         FIELD(TOTAL, "freeand", "total")),
    FORM(LIBRARY, NULL, "-requestedmemory:", "-freememory:", 120, 60, FORM_CARD, NULL,
         ASKED("-requestedmemory:", NULL), FIELD(FREE, "-freememory:", NULL)),
    FORM(LIBRARY, NULL, "outofmemory.requested", "free", 0, 80, FORM_CARD | FORM_MIB, NULL,
         ASKED("requested", NULL), FIELD(FREE, "free", NULL)),
    FORM(LIBRARY, NULL, "available,needatleast", "notenoughmemory", 80, 40, FORM_MIB, NULL,
         ASKED("needatleast", NULL), FIELD(FREE, "fortree-ctrs:", NULL)),
    FORM(LIBRARY, NULL, "outofmemory-requested:", "available:", 0, 80, 0, NULL,
         ASKED("requested:", NULL), FIELD(FREE, "available:", NULL)),
    FORM(LIBRARY, NULL, "nomemoryisavailable", "cannotallocate", 60, 0, 0, NULL,
         ASKED("cannotallocate", NULL)),
    /* RELION: its pool is one range. */
    FORM(LIBRARY, "CUDA", "[requestedspace:", "outofmemory", 60, 200, FORM_ONE_POOL, how_relion,
         ASKED("[requestedspace:", NULL), FIELD(LARGEST, "[largestcontinuousfreespace:", NULL),
         FIELD(UNALLOCATED, "[totalfreespace:", NULL)),
    FORM(LIBRARY, NULL, "outofgpumemory.free:", NULL, 0, 80, FORM_CARD, how_amrex,
         ASKED("asked:", NULL), FIELD(FREE, "free:", NULL)),
    FORM(LIBRARY, NULL, "bytestoallocate:", "outofmemory", 60, 60, 0, how_amrex,
         ASKED("bytestoallocate:", NULL)),
    /* Sophon */
    FORM(LIBRARY, NULL, "bm_alloc_gmemfailed", NULL, 0, 60, 0, message_how_unknown,
         ASKED("size=", NULL)),
    /* ND4J */
    FORM(LIBRARY, "CUDA", "bytesfromdevice[", "failedtoallocate", 60, 20, 0, message_how_unknown,
         ASKED("failedtoallocate", "fromdevice[")),
    FORM(MLC, NULL, "whichislessthanthesumofmodelweightsize(", "theavailablesinglegpumemoryis", 100,
         120, FORM_ONE_POOL, how_mlc, ASKED("modelweightsize(", NULL),
         ASKED("temporarybuffersize(", NULL), FIELD(FREE, "singlegpumemoryis", NULL)),
    FORM(MINDSPORE, "NPU", "ismorethantotalmemsize:", "plusallocsize:", 160, 40, FORM_ONE_POOL,
         how_ascend, ASKED("allocsize:", NULL), FIELD(ALLOCATED, "totalusedmemstatistics:", NULL),
         FIELD(TOTAL, "totalmemsize:", NULL)),
    FORM(MINDSPORE, NULL, "memoryisn'tenoughandallocfailed", NULL, 0, 200, 0, message_how_unknown,
         ASKED("allocsize:", NULL)),
    FORM(MINDSPORE, NULL, "mallocdevicememoryfailed", NULL, 0, 60, 0, message_how_unknown,
         ASKED("size[", NULL)),
    FORM(DRIVER, "NPU", "callrtmallocfail", NULL, 0, 300, 0, how_ascend, ASKED("size:", NULL)),
    FORM(DRIVER, "NPU", "memory_allocation_failure(el0004)", NULL, 0, 700, 0, how_ascend,
         ASKED("size:", NULL)),
    FORM(LIBRARY, "CUDA", "failedtocudacalloc", NULL, 0, 60, 0, how_nccl,
         ASKED("cudacalloc", NULL)),
    FORM(LIBRARY, "CUDA", "failedtocudacallocasync", NULL, 0, 60, 0, how_nccl,
         ASKED("cudacallocasync", NULL)),
    FORM(LIBRARY, "CUDA", "failedtocudamalloc", NULL, 0, 60, 0, NULL, ASKED("cudamalloc", NULL)),
    FORM(LIBRARY, NULL, "(label=", "failedtoallocate", 60, 0, 0, NULL,
         ASKED("failedtoallocate", NULL)),
    FORM(LIBRARY, NULL, "failedon", "allocationof", 40, 80, 0, NULL,
         ASKED("allocationof", "failedon"), FIELD(RESERVED, "used:", NULL)),
    FORM(MLX, "Metal", "greaterthanthemaximumallowedbuffersize", "attemptingtoallocate", 80, 60,
         FORM_BLOCK, NULL, ASKED("attemptingtoallocate", NULL),
         FIELD(LARGEST, "maximumallowedbuffersizeof", NULL)),
    FORM(MLX, "Metal", "[malloc_or_wait]unabletoallocate", NULL, 0, 60, 0, NULL,
         ASKED("unabletoallocate", NULL)),
    FORM(DRIVER, "HPU", "pt_devmemallocationfailed", NULL, 0, 60, 0, message_how_unknown,
         ASKED("forsize::", NULL)),
    FORM(DRIVER, "HPU", "workspaceallocationofsize::", NULL, 0, 60, 0, message_how_unknown,
         ASKED("ofsize::", NULL)),
    FORM(LIBRARY, "CUDA", "failedtoallocateamemoryregionof", NULL, 0, 500, FORM_CARD, how_kaldi,
         ASKED("regionof", NULL), FIELD(FREE, "memoryinfo:free:", NULL),
         FIELD(TOTAL, ",total:", NULL)),
    FORM(LIBRARY, "Vulkan", "dxvkmemoryallocator:memoryallocationfailed", NULL, 0, 80, 0, how_dxvk,
         ASKED("size:", NULL)),
    FORM(LIBRARY, NULL, "storageallocationfailure,attemptedtoallocate", NULL, 0, 120,
         FORM_ELSEWHERE, how_tvm, ASKED("attemptedtoallocate", "atoffset"),
         FIELD(LARGEST, "regionthatis", NULL)),
    /* CubeCL */
    FORM(LIBRARY, NULL, "nopoolhandlesallocationofsize", NULL, 0, 60, FORM_BLOCK, NULL,
         ASKED("ofsize", NULL)),
    /* MIOpen, PhysX */
    FORM(LIBRARY, "HIP", "memorynotavailabletoallocatebuffer:", NULL, 0, 60, 0, message_how_unknown,
         ASKED("buffer:", NULL)),
    FORM(LIBRARY, "CUDA", "failtoallocatememory", NULL, 0, 60, 0, how_physx, ASKED("memory", NULL)),
    FORM(LIBRARY, "CUDA", "unabletoallocatememoryofsize", "illegalmemoryaccess", 400, 60,
         FORM_ELSEWHERE, message_how_earlier, ASKED("ofsize", NULL)),
    FORM(LIBRARY, "CUDA", "unabletoallocatememoryofsize", NULL, 0, 60, 0, how_physx,
         ASKED("ofsize", NULL)),
    FORM(DRIVER, "Vulkan", "butsizeofthatheapisonly", "fromheap", 60, 60, FORM_BLOCK, how_heap,
         ASKED(NULL, "fromheap"), FIELD(TOTAL, "heapisonly", NULL)),
    FORM(LIBRARY, NULL, "requiresapproximately", "insufficientsystemresources", 160, 60, 0,
         message_how_guess, ASKED("requiresapproximately", NULL)),
    FORM(TENSORFLOW, NULL, "oomwhenallocatingabufferof", NULL, 0, 60, 0, NULL,
         ASKED("bufferof", NULL)),
    /* OpenVINO */
    FORM(LIBRARY, NULL, "exceededmaxsizeofmemoryobjectallocation", NULL, 0, 160, FORM_BLOCK, NULL,
         ASKED("requested", NULL), FIELD(LARGEST, "supportedbydeviceis", NULL)),
    FORM(LIBRARY, "WebGPU", "exceedsthemaxbuffersizelimit", "buffersize(", 60, 40, FORM_BLOCK, NULL,
         ASKED("buffersize(", NULL), FIELD(LARGEST, "sizelimit(", NULL)),
    FORM(LIBRARY, "WebGPU", "islargerthanthemaximumbindingsize(", "bindingsize(", 120, 60,
         FORM_BLOCK, NULL, ASKED("bindingsize(", NULL),
         FIELD(LARGEST, "maximumbindingsize(", NULL)),
    FORM(PYTORCH, "MPS", "invalidbuffersize:", NULL, 0, 40, FORM_BLOCK, NULL,
         ASKED("buffersize:", NULL)),
    FORM(HOST_PROGRAM, NULL, "modelrequesttoolargeforsystem", NULL, 0, 160, FORM_HOST, how_system,
         ASKED("requested=\"", NULL), FIELD(FREE, "available=", NULL)),
    FORM(RMM, NULL, "attemptedtoallocate:", NULL, 0, 60, 0, NULL,
         ASKED("attemptedtoallocate:", NULL)),
    FORM(TENSORFLOW, NULL, "onhost:cuda_error_out_of_memory", "failedtoalloc", 60, 0, FORM_HOST,
         NULL, ASKED("failedtoalloc", "onhost")),
    FORM(TENSORFLOW, NULL, "couldnotallocatepinnedhostmemoryofsize:", NULL, 0, 60, FORM_HOST, NULL,
         ASKED("ofsize:", NULL)),
    FORM(LIBRARY, "CUDA", "allocatorfailtype", "devicefreememory:", 0, 300, FORM_CARD,
         "Faiss prints what each of its allocators holds behind it (\"Outstanding allocations\"). "
         "If enough was free, an earlier call of the program failed most likely: "
         "CUDA_LAUNCH_BLOCKING=1 shows which.",
         ASKED("size", NULL), FIELD(FREE, "devicefreememory:", NULL)),
    FORM(LIBRARY, NULL, "allocfailtype", "size", 0, 200, 0,
         "Faiss asks the driver beside its temporary memory. Find out: nvidia-smi for the free "
         "memory; StandardGpuResources.setTempMemory with less, a smaller batch of queries, "
         "float16 storage.",
         ASKED("size", "(")),
    FORM(HOST_PROGRAM, NULL, "modelrequiresmoresystemmemory(", NULL, 0, 120, FORM_HOST, how_system,
         ASKED("systemmemory(", NULL), FIELD(FREE, "isavailable(", NULL)),
    FORM(DRIVER, "Metal", "mustnotexceed", "newbufferwith", 120, 40, FORM_BLOCK, NULL,
         ASKED("length", NULL), FIELD(LARGEST, "mustnotexceed", NULL)),
    /* Warp */
    FORM(LIBRARY, "CUDA", "memoryallocationfailedondevice:cuda", NULL, 0, 60, 0,
         message_how_unknown, ASKED("for", NULL)),
    FORM(HOST_PROGRAM, NULL, "ggml_aligned_malloc:insufficientmemory", NULL, 0, 80, FORM_HOST, NULL,
         ASKED("attemptedtoallocate", NULL)),
    /* GCC, MATLAB, Ray */
    FORM(HOST_PROGRAM, NULL, "outofmemoryallocating", "afteratotalof", 0, 120, FORM_HOST, NULL,
         ASKED("allocating", "afteratotalof")),
    FORM(HOST_PROGRAM, NULL, "arrayexceedsmaximumarraysize", "requested", 60, 60, FORM_HOST, NULL,
         ASKED(NULL, ")arrayexceeds"), FIELD(ALLOWED, "preference(", NULL)),
    FORM(HOST_PROGRAM, NULL, "inobjectstorebecauseitisfull", NULL, 0, 160, FORM_HOST,
         "Ray's object store is part of /dev/shm. Delete references that are not needed, raise "
         "object_store_memory, or let it spill to disk.",
         ASKED("objectsizeis", NULL)),
    /* Rust, Unity, Dr.Jit */
    FORM(HOST_PROGRAM, NULL, "memoryallocationof", NULL, 0, 60, FORM_HOST, NULL,
         ASKED("memoryallocationof", "failed")),
    FORM(HOST_PROGRAM, NULL, "tryingtoallocate:", "systemoutofmemory", 80, 40, FORM_HOST, NULL,
         ASKED("tryingtoallocate:", NULL)),
    FORM(HOST_PROGRAM, NULL, "ofhost-pinnedmemory", "couldnotallocate", 60, 0, FORM_HOST, NULL,
         ASKED("couldnotallocate", "ofhost-pinnedmemory")),
    FORM(HOST_PROGRAM, NULL, "arraymemoryerror:unabletoallocate", NULL, 0, 60, FORM_HOST, NULL,
         ASKED("unabletoallocate", NULL)),
    FORM(HOST_PROGRAM, NULL, "foranarraywithshape", "unabletoallocate", 60, 0, FORM_HOST, NULL,
         ASKED("unabletoallocate", "foranarray")),
};

const size_t message_form_count = sizeof message_forms / sizeof *message_forms;
