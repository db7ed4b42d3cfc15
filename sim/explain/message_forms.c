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
 *   MLX, NumPy, Ollama; RMM to 0.11 (a call failed with result RMM_ERROR_OUT_OF_MEMORY) */
#include "sim/explain/message_forms.h"

#include <stdio.h>
#include <string.h>

#define ASKED(before, after)                                                                       \
    {                                                                                              \
        MESSAGE_FIGURE_ASKED, before, after                                                        \
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
static const char how_vulkan[] =
    "The message has no figure of the free memory, and Vulkan also refuses a buffer above its "
    "limit "
    "for one allocation. Find out: compare the size with maxMemoryAllocationSize and with the heap "
    "sizes and budgets of vulkaninfo. Above the limit, GGML_VK_FORCE_MAX_ALLOCATION_SIZE (a lower "
    "one) splits buffers; else use fewer layers on the GPU (-ngl), or a smaller -c or -ub.";
static const char how_spark[] =
    "The log has no size of the pool in it. Find out: the line \"Initializing RMM\" at the start "
    "of "
    "the executor has it. If the device store has 0 bytes, there is nothing left to spill: fewer "
    "spark.rapids.sql.concurrentGpuTasks, smaller batches (spark.rapids.sql.batchSizeBytes), the "
    "ASYNC pool (spark.rapids.memory.gpu.pool) against fragmentation; "
    "spark.rapids.memory.gpu.debug=STDERR logs all allocations.";
static const char how_spark_spills[] =
    "The device store still has bytes to spill, so the request is tried again after that: this is "
    "a failure only if an out-of-memory error follows.";
static const char how_paddle[] =
    "The message does not say what of the allocated memory is unused. Find out: "
    "paddle.device.cuda.memory_allocated() beside memory_reserved(); nvidia-smi for other "
    "processes; FLAGS_allocator_strategy=auto_growth, and paddle.device.cuda.empty_cache().";
static const char how_nccl[] =
    "NCCL asks the driver beside the pool of the framework, so too little was left outside of it. "
    "Find out: nvidia-smi, or torch.cuda.mem_get_info() just before the first collective. Leave "
    "memory free outside of the pool (torch.cuda.set_per_process_memory_fraction, "
    "gpu_memory_utilization), call torch.cuda.empty_cache() before it, or lower NCCL_BUFFSIZE and "
    "NCCL_MAX_NCHANNELS.";
static const char how_shared[] =
    "It is the shared memory of a multiprocessor, which a kernel needs at once; no allocator is in "
    "it. Use smaller block sizes, or fewer num_stages.";

static const struct message_form forms[] = {
    {MESSAGE_ONNX,
     NULL,
     "issmallerthanrequestedbytesof",
     "availablememoryof",
     60,
     80,
     {ASKED("issmallerthanrequestedbytesof", NULL),
      {MESSAGE_FIGURE_FREE, "availablememoryof", "issmaller"}},
     0,
     how_onnx},
    {MESSAGE_ONNX,
     NULL,
     "failedtoallocatememoryforrequestedbufferofsize",
     NULL,
     0,
     80,
     {ASKED("requestedbufferofsize", NULL)},
     0,
     how_onnx_driver},
    {MESSAGE_SPARK,
     NULL,
     "deviceallocationof",
     "bytesfailed,devicestorehas",
     0,
     260,
     {ASKED("deviceallocationof", "failed,devicestore"),
      {MESSAGE_FIGURE_ALLOCATED, "totalrmmallocatedis", NULL}},
     FORM_LAST,
     how_spark},
    {MESSAGE_SPARK,
     NULL,
     "devicestoreexhausted,unabletoallocate",
     NULL,
     0,
     120,
     {ASKED("unabletoallocate", NULL), {MESSAGE_FIGURE_ALLOCATED, "totalrmmallocatedis", NULL}},
     FORM_LAST,
     how_spark},
    /* The exact bytes; the line before has them in MiB. */
    {MESSAGE_GGML,
     NULL,
     "bufferofsize",
     "failedtoallocate",
     60,
     40,
     {ASKED("bufferofsize", NULL)},
     0,
     how_ggml},
    {MESSAGE_GGML,
     "Vulkan",
     "ggml_vulkan:devicememoryallocationofsize",
     NULL,
     0,
     200,
     {ASKED("allocationofsize", NULL)},
     0,
     how_vulkan},
    {MESSAGE_GGML,
     NULL,
     "cudamallocfailed",
     "allocating",
     60,
     40,
     {ASKED("allocating", "ondevice")},
     0,
     how_ggml},
    {MESSAGE_GGML,
     NULL,
     "ofpinnedmemory",
     "failedtoallocate",
     60,
     0,
     {ASKED("failedtoallocate", "ofpinnedmemory")},
     FORM_HOST | FORM_SPARE,
     NULL},
    {MESSAGE_GGML,
     "Metal",
     "islargerthanbuffermaximumof",
     "size",
     60,
     60,
     {ASKED("size", "islargerthan"), {MESSAGE_FIGURE_LARGEST, "buffermaximumof", NULL}},
     FORM_BLOCK,
     NULL},
    {MESSAGE_GGML,
     "Metal",
     "buffer,size=",
     "failedtoallocate",
     60,
     60,
     {ASKED("size=", NULL)},
     0,
     "The message has no figure of the free memory. Find out: the log has "
     "recommendedMaxWorkingSetSize at its beginning, the most that Metal gives to one program "
     "(about three quarters of the memory; sysctl iogpu.wired_limit_mb raises it). Use a smaller "
     "-c or -ub, or a smaller quantization."},
    {MESSAGE_GGML,
     "SYCL",
     "bytesofmemoryondevice",
     "can'tallocate",
     60,
     20,
     {ASKED("can'tallocate", "ofmemoryondevice")},
     0,
     how_ggml},
    {MESSAGE_DIRECTML,
     "DirectML",
     "thereisnotenoughgpuvideomemory",
     "couldnotallocatetensorwith",
     120,
     0,
     {ASKED("couldnotallocatetensorwith", NULL)},
     0,
     NULL},
    {MESSAGE_PADDLE,
     NULL,
     "outofmemoryerrorongpu",
     "cannotallocate",
     0,
     400,
     {ASKED("cannotallocate", "memoryongpu"),
      {MESSAGE_FIGURE_RESERVED, NULL, "memoryhasbeenallocated"},
      {MESSAGE_FIGURE_FREE, "availablememoryisonly", NULL}},
     FORM_CARD,
     how_paddle},
    {MESSAGE_PADDLE,
     NULL,
     "outofmemoryerrorongpu",
     "cannotallocate",
     0,
     400,
     {ASKED("cannotallocate", NULL), {MESSAGE_FIGURE_FREE, "availablememoryis", NULL}},
     FORM_CARD,
     how_paddle},
    {MESSAGE_TENSORRT,
     NULL,
     ")couldnotbeallocated",
     "requestedamountof",
     60,
     0,
     {ASKED("memory(", ")couldnot")},
     0,
     NULL},
    {MESSAGE_TENSORRT,
     NULL,
     "requestedsizewas",
     "outofmemory",
     200,
     40,
     {ASKED("requestedsizewas", NULL)},
     0,
     NULL},
    {MESSAGE_TRITON_SERVER,
     NULL,
     "failedtoallocatecudamemorywithbytesize",
     NULL,
     0,
     120,
     {ASKED("bytesize", "ongpu")},
     FORM_SPARE,
     "The pool of the server, not the card, is used up; its size is set by "
     "--cuda-memory-pool-byte-size=GPU:BYTES. The server then uses pinned memory of the host."},
    {MESSAGE_TRITON_SERVER,
     NULL,
     "failedtoallocatepinnedsystemmemory",
     NULL,
     0,
     120,
     {ASKED("bytesize", NULL)},
     FORM_HOST | FORM_SPARE,
     NULL},
    {MESSAGE_TRITON,
     NULL,
     "outofresource:sharedmemory",
     NULL,
     0,
     120,
     {ASKED("required:", NULL), {MESSAGE_FIGURE_TOTAL, "hardwarelimit:", NULL}},
     FORM_ON_CHIP,
     how_shared},
    {MESSAGE_LIBRARY,
     NULL,
     "bytesofdevicememory(",
     "errorallocating",
     60,
     200,
     {ASKED("errorallocating", "ofdevicememory"),
      {MESSAGE_FIGURE_FREE, "driverreport", "free"},
      {MESSAGE_FIGURE_TOTAL, "freeand", "total"}},
     FORM_CARD,
     NULL},
    {MESSAGE_LIBRARY,
     NULL,
     "-requestedmemory:",
     "-freememory:",
     120,
     60,
     {ASKED("-requestedmemory:", NULL), {MESSAGE_FIGURE_FREE, "-freememory:", NULL}},
     FORM_CARD,
     NULL},
    {MESSAGE_LIBRARY,
     NULL,
     "outofmemory.requested",
     "free",
     0,
     80,
     {ASKED("requested", NULL), {MESSAGE_FIGURE_FREE, "free", NULL}},
     FORM_CARD,
     NULL},
    {MESSAGE_LIBRARY,
     "CUDA",
     "failedtocudacalloc",
     NULL,
     0,
     60,
     {ASKED("cudacalloc", NULL)},
     0,
     how_nccl},
    {MESSAGE_LIBRARY,
     "CUDA",
     "failedtocudamalloc",
     NULL,
     0,
     60,
     {ASKED("cudamalloc", NULL)},
     0,
     NULL},
    {MESSAGE_LIBRARY,
     NULL,
     "(label=",
     "failedtoallocate",
     60,
     0,
     {ASKED("failedtoallocate", NULL)},
     0,
     NULL},
    {MESSAGE_LIBRARY,
     NULL,
     "failedon",
     "allocationof",
     40,
     80,
     {ASKED("allocationof", "failedon"), {MESSAGE_FIGURE_RESERVED, "used:", NULL}},
     0,
     NULL},
    {MESSAGE_MLX,
     "Metal",
     "greaterthanthemaximumallowedbuffersizeof",
     "attemptingtoallocate",
     80,
     60,
     {ASKED("attemptingtoallocate", NULL),
      {MESSAGE_FIGURE_LARGEST, "maximumallowedbuffersizeof", NULL}},
     FORM_BLOCK,
     NULL},
    {MESSAGE_MLX,
     "Metal",
     "[malloc_or_wait]unabletoallocate",
     NULL,
     0,
     60,
     {ASKED("unabletoallocate", NULL)},
     0,
     NULL},
    {MESSAGE_RMM,
     NULL,
     "attemptedtoallocate:",
     NULL,
     0,
     60,
     {ASKED("attemptedtoallocate:", NULL)},
     0,
     NULL},
    {MESSAGE_TENSORFLOW,
     NULL,
     "onhost:cuda_error_out_of_memory",
     "failedtoalloc",
     60,
     0,
     {ASKED("failedtoalloc", "onhost")},
     FORM_HOST,
     NULL},
    {MESSAGE_TENSORFLOW,
     NULL,
     "couldnotallocatepinnedhostmemoryofsize:",
     NULL,
     0,
     60,
     {ASKED("ofsize:", NULL)},
     FORM_HOST,
     NULL},
    {MESSAGE_LIBRARY,
     NULL,
     "allocfailtype",
     "size",
     0,
     200,
     {ASKED("size", "(")},
     0,
     "Faiss asks the driver beside its temporary memory. Find out: nvidia-smi for the free memory; "
     "StandardGpuResources.setTempMemory with less, a smaller batch of queries, float16 storage."},
    {MESSAGE_HOST_PROGRAM,
     NULL,
     "modelrequiresmoresystemmemory(",
     NULL,
     0,
     120,
     {ASKED("systemmemory(", NULL), {MESSAGE_FIGURE_FREE, "isavailable(", NULL}},
     FORM_HOST,
     NULL},
    {MESSAGE_HOST_PROGRAM,
     NULL,
     "foranarraywithshape",
     "unabletoallocate",
     60,
     0,
     {ASKED("unabletoallocate", "foranarray")},
     FORM_HOST,
     NULL},
};

bool message_field_read(const struct message_text *text, const struct message_field *field,
                        size_t from, size_t to, struct message_figure *figure)
{
    const char *words = field->before ? field->before : field->after;
    for (size_t at = from; (at = message_text_find(text, words, at, to)) != MESSAGE_NOWHERE; at++) {
        if (!field->before) {
            if (message_text_size_before(text, at, figure))
                return true;
            continue;
        }
        size_t begin = at + strlen(words);
        size_t end = message_text_number(text, begin, 0, figure);
        if (field->figure == MESSAGE_FIGURE_ASKED && text->chars[begin] == '-' &&
            (end = message_text_number(text, begin + 1, 0, figure)) != MESSAGE_NOWHERE)
            figure->bytes = UINT64_C(1) << 60; /* a size that wrapped around below zero */
        if (end == MESSAGE_NOWHERE)
            continue;
        if (!field->after || strncmp(text->chars + end, field->after, strlen(field->after)) == 0)
            return true;
    }
    return false;
}

static bool read_at(const struct message_text *text, const struct message_form *form, size_t at,
                    struct message *self)
{
    size_t next = message_text_find(text, form->anchor, at + 1, text->count);
    size_t from = at > form->back ? at - form->back : 0;
    size_t to = at + strlen(form->anchor) + form->ahead;
    to = next < to ? next : to;
    if (form->near && message_text_find(text, form->near, from, to) == MESSAGE_NOWHERE)
        return false;
    if (!message_field_read(text, &form->fields[0], from, to, &self->figures[MESSAGE_FIGURE_ASKED]))
        return false;
    for (size_t i = 1; i < sizeof form->fields / sizeof *form->fields; i++)
        if (form->fields[i].before || form->fields[i].after)
            (void)message_field_read(text, &form->fields[i], from, to,
                                     &self->figures[form->fields[i].figure]);
    self->framework = form->framework;
    self->host = form->flags & FORM_HOST;
    self->may_fail = form->flags & FORM_SPARE;
    self->card_told = form->flags & FORM_CARD;
    self->on_chip = form->flags & FORM_ON_CHIP;
    self->block_limit = form->flags & FORM_BLOCK;
    self->one_pool = form->flags & FORM_ONE_POOL;
    self->how = form->how;
    if (form->device)
        snprintf(self->device, sizeof self->device, "%s", form->device);
    return true;
}

bool message_form_read(const struct message_text *text, const struct message_form *form,
                       struct message *self)
{
    unsigned count = 0;
    for (size_t at = 0;
         (at = message_text_find(text, form->anchor, at, text->count)) != MESSAGE_NOWHERE; at++) {
        struct message other = {0};
        if (!read_at(text, form, at, &other))
            continue;
        count++;
        if (count > 1 && !(form->flags & FORM_LAST))
            continue;
        *self = other;
        self->taken = count;
    }
    self->count = count;
    return count > 0;
}

/* ---- what a table cannot describe ----------------------------------------------------------- */

/* The name of a buffer's device, such as "cuda1", "rocm0" or "cpu". */
static void read_ggml_name(const struct message_text *text, char name[16])
{
    static const char before[] = "failedtoallocate", after[] = "bufferofsize";
    size_t end = message_text_find(text, after, 0, text->count);
    size_t begin = end == MESSAGE_NOWHERE
                       ? end
                       : message_text_find(text, before, end > 60 ? end - 60 : 0, end);
    name[0] = '\0';
    if (begin == MESSAGE_NOWHERE)
        return;
    begin += strlen(before);
    if (end - begin < 16)
        snprintf(name, 16, "%.*s", (int)(end - begin), text->chars + begin);
}

/* What was free at the start, and the buffers that the program has allocated since. */
static void read_ggml_log(const struct message_text *text, const char *name, struct message *self)
{
    struct message_figure *figures = self->figures;
    struct message_figure *start = &figures[MESSAGE_FIGURE_START], size;
    struct message_figure *allocated = &figures[MESSAGE_FIGURE_ALLOCATED];
    char words[40];
    snprintf(words, sizeof words, "usingdevice%s(", name);
    size_t at = message_text_find(text, words, 0, text->count);
    size_t end = at == MESSAGE_NOWHERE ? at : message_text_find(text, "free", at, at + 160);
    if (end == MESSAGE_NOWHERE || !message_text_size_before(text, end, start))
        return;
    allocated->known = true;
    for (at = 0; (at = message_text_find(text, "buffersize=", at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        size_t length = strlen(name), from = at > 24 ? at - 24 : 0;
        size_t named = message_text_find(text, name, from, at);
        if (named != MESSAGE_NOWHERE && text->chars[named + length] >= 'a' &&
            message_text_size(text, at + strlen("buffersize="), &size) != MESSAGE_NOWHERE) {
            allocated->bytes += size.bytes;
            allocated->coarse_bytes += size.coarse_bytes;
        }
    }
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = start->bytes > allocated->bytes ? start->bytes - allocated->bytes : 0,
        .coarse_bytes = start->coarse_bytes + allocated->coarse_bytes,
    };
}

static void finish_ggml(const struct message_text *text, struct message *self)
{
    char name[16];
    read_ggml_name(text, name);
    if (strncmp(name, "cpu", 3) == 0 || strstr(name, "host") ||
        message_text_has(text, "cpu_buffer_type_alloc_buffer"))
        self->host = true;
    else if (strncmp(name, "rocm", 4) == 0)
        snprintf(self->device, sizeof self->device, "HIP");
    else if (strncmp(name, "vulkan", 6) == 0)
        snprintf(self->device, sizeof self->device, "Vulkan");
    else if (strncmp(name, "cuda", 4) == 0)
        snprintf(self->device, sizeof self->device, "CUDA");
    if (strncmp(name, "vulkan", 6) == 0)
        self->how = how_vulkan;
    if (strcmp(self->device, "Vulkan") == 0 &&
        (message_text_has(text, "exceedsdevicememoryallocationlimit") ||
         message_text_has(text, "exceedsdevicebuffersizelimit")))
        self->block_limit = true;
    if (name[0] && !self->host)
        read_ggml_log(text, name, self);
}

/* The size of the pool is in another line of the log, and whether there is something to spill. */
static void finish_spark(const struct message_text *text, struct message *self)
{
    static const struct message_field maximum = {MESSAGE_FIGURE_TOTAL, "maxsize=", NULL};
    static const struct message_field store = {MESSAGE_FIGURE_FREE, "devicestorehas", NULL};
    struct message_figure *figures = self->figures, spill = {0};
    size_t pool = message_text_find(text, "initializingrmm", 0, text->count);
    size_t at = 0, last = MESSAGE_NOWHERE;
    while ((at = message_text_find(text, store.before, at, text->count)) != MESSAGE_NOWHERE)
        last = at++;
    if (last != MESSAGE_NOWHERE && message_field_read(text, &store, last, last + 80, &spill) &&
        spill.bytes) {
        self->may_fail = true;
        self->how = how_spark_spills;
    }
    if (pool == MESSAGE_NOWHERE ||
        !message_field_read(text, &maximum, pool, pool + 200, &figures[MESSAGE_FIGURE_TOTAL]))
        return;
    figures[MESSAGE_FIGURE_RESERVED] = figures[MESSAGE_FIGURE_TOTAL];
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){.known = true, .derived = true};
}

bool message_read_forms(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!message_form_read(text, &forms[i], self))
            continue;
        if (self->framework == MESSAGE_GGML)
            finish_ggml(text, self);
        if (self->framework == MESSAGE_SPARK)
            finish_spark(text, self);
        return true;
    }
    return false;
}
