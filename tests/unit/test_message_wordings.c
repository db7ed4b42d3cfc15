/* Every class of an out-of-memory message in every wording that can tell it: figures written into
 * the words of each framework's versions, and the class that the rules give for those of them that
 * the wording has room for. Then what terminals, logs and wrappers make of the same texts. */
#include "allocators/base/size.h"
#include "sim/explain/message.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

/* In MiB; a figure that a wording does not have is not written. */
struct figures {
    const char *name;
    enum message_cause cause; /* if the wording has all of them */
    unsigned asked, total, available, allocated, unallocated, others, outside;
};

static const struct figures classes[] = {
    {"impossible", MESSAGE_IMPOSSIBLE, 30720, 24576, 20480, 2048, 512, 512, 256},
    {"not the allocator", MESSAGE_NOT_THE_ALLOCATOR, 600, 24576, 6144, 14336, 2048, 1024, 512},
    {"fragmentation", MESSAGE_FRAGMENTATION, 3072, 24576, 512, 18432, 4096, 768, 384},
    {"tenant", MESSAGE_TENANT, 4096, 24576, 512, 10240, 1024, 12032, 512},
    {"outside", MESSAGE_OUTSIDE, 4096, 24576, 512, 16384, 1024, 1024, 5120},
    {"fragmentation possible", MESSAGE_FRAGMENTATION_POSSIBLE, 3072, 24576, 1536, 19456, 2048, 768,
     384},
    {"capacity", MESSAGE_CAPACITY, 8192, 24576, 512, 20480, 1024, 768, 384},
};

#define CLASSES (sizeof classes / sizeof *classes)

enum told {
    TELLS_TOTAL = 1,
    TELLS_FREE = 2,
    TELLS_POOL = 4,
    TELLS_OTHERS = 8,
    TELLS_OUTSIDE = 16,
    FREE_IS_LIMIT = 32,   /* the free bytes are those that the limit leaves outside of the pool */
    TELLS_ALLOCATED = 64, /* what of the driver's pool is allocated, taken as its size */
    TELLS_BOUND = 128,    /* what a bound leaves, of a pool whose reserved bytes are printed */
    ONE_POOL = 256,       /* the unused bytes of the only pool of the device */
};

#define CONTEXT_MOST 1024 /* MiB that a process holds outside of its pool in any case */

/* PyTorch's and XLA's way: the largest unit of which there is one at least. */
static const char *size_of(unsigned mib, const char *space, char *text)
{
    if (mib >= 1024)
        snprintf(text, 32, "%.2f%sGiB", mib / 1024.0, space);
    else
        snprintf(text, 32, "%.2f%sMiB", (double)mib, space);
    return text;
}

#define S(mib) size_of(mib, " ", (char[32]){0})
#define X(mib) size_of(mib, "", (char[32]){0})

static unsigned long long bytes_of(unsigned mib)
{
    return (unsigned long long)mib * AR_MIB;
}

static unsigned reserved(const struct figures *f)
{
    return f->allocated + f->unallocated;
}

static void torch_1_3(struct writing *w, const struct figures *f)
{
    writing_add(w,
                "RuntimeError: CUDA out of memory. Tried to allocate %s (GPU 2; %s total capacity; "
                "%s already allocated; %s free; %s cached)",
                S(f->asked), S(f->total), S(f->allocated), S(f->available), S(f->unallocated));
}

static void torch_1_8(struct writing *w, const struct figures *f)
{
    writing_add(w,
                "RuntimeError: CUDA out of memory. Tried to allocate %s (GPU 0; %s total capacity; "
                "%s already allocated; %s free; %s reserved in total by PyTorch)",
                S(f->asked), S(f->total), S(f->allocated), S(f->available), S(reserved(f)));
}

static void torch_1_13(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate %s (GPU 0; %s total "
        "capacity; %s already allocated; %s free; %s allowed; %s reserved in total by PyTorch) If "
        "reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
        "fragmentation.",
        S(f->asked), S(f->total), S(f->allocated), S(f->available), S(f->total), S(reserved(f)));
}

static void npu(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "RuntimeError: NPU out of memory. Tried to allocate %s (NPU 4; %s total capacity; %s "
        "already "
        "allocated; %s current active; %s free; %s reserved in total by PyTorch)",
        S(f->asked), S(f->total), S(f->allocated), S(f->allocated), S(f->available),
        S(reserved(f)));
}

/* Up to 2.1 "capacity" lacks a letter. */
static void begin_new(struct writing *w, const struct figures *f, const char *device,
                      const char *capacity)
{
    writing_add(
        w,
        "torch.OutOfMemoryError: %s out of memory. Tried to allocate %s. GPU 1 has a total %s of "
        "%s "
        "of which %s is free. ",
        device, S(f->asked), capacity, S(f->total), S(f->available));
}

static void end_new(struct writing *w, const struct figures *f, const char *private)
{
    writing_add(
        w,
        "Of the allocated memory %s is allocated by PyTorch, %sand %s is reserved by PyTorch but "
        "unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation",
        S(f->allocated), private, S(f->unallocated));
}

static void torch_2_1(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "CUDA", "capacty");
    writing_add(w,
                "Process 812 has %s memory in use. Process 31337 has %s memory in use. Including "
                "non-PyTorch memory, this process has %s memory in use. ",
                S(f->others / 2), S(f->others - f->others / 2), S(reserved(f) + f->outside));
    end_new(w, f, "");
}

static void torch_2_6(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "CUDA", "capacity");
    writing_add(
        w,
        "Process 812 has %s memory in use. Including non-PyTorch memory, this process has %s "
        "memory "
        "in use. %s allowed; ",
        S(f->others), S(reserved(f) + f->outside), S(f->total));
    end_new(w, f, "with 22.00 MiB allocated in private pools (e.g., CUDA Graphs), ");
}

/* A pod in which process numbers have no meaning. */
static void torch_container(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "CUDA", "capacity");
    writing_add(w, "Process 7 has %s memory in use. Process 9 has %s memory in use. ",
                S(reserved(f) + f->outside), S(f->others));
    end_new(w, f, "");
}

/* Only others are listed. */
static void torch_others(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "CUDA", "capacity");
    writing_add(w, "Process 9 has %s memory in use. ", S(f->others));
    end_new(w, f, "");
}

static void hip(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "HIP", "capacity");
    end_new(w, f, "with 17.00 MiB allocated in private pools (e.g., HIP Graphs), ");
}

static void xpu(struct writing *w, const struct figures *f)
{
    begin_new(w, f, "XPU", "capacity");
    end_new(w, f, "");
}

static void mps(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "RuntimeError: MPS backend out of memory (MPS allocated: %s, other allocations: %s, max "
        "allowed: %s). Tried to allocate %s on private pool. Use "
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations",
        S(f->total - f->available - f->outside), S(f->outside), S(f->total), S(f->asked));
}

static void torch_async(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
        "memory)\nCurrently allocated     : %s\nRequested               : %s\nDevice limit        "
        "    : %s\nFree (according to CUDA): %s\nPyTorch limit (set by user-supplied memory "
        "fraction)\n                        : 17179869184.00 GiB",
        S(f->allocated), S(f->asked), S(f->total), S(f->available));
}

static void bfc_dump(struct writing *w, const struct figures *f, const char *where)
{
    unsigned limit = reserved(f) + f->available;
    writing_add(
        w,
        "2026-02-03 04:05:06.1: I %sbfc_allocator.cc:1103] Sum Total of in-use chunks: %s\n"
        "2026-02-03 04:05:06.1: I %sbfc_allocator.cc:1105] total_region_allocated_bytes_: %llu "
        "memory_limit_: %llu available bytes: %llu curr_region_allocation_bytes_: 68719476736\n"
        "2026-02-03 04:05:06.1: I %sbfc_allocator.cc:1109] Stats: \nLimit:   %22llu\n"
        "InUse:   %22llu\nMaxInUse:   %22llu\nNumAllocs:   812\nMaxAllocSize:   1073741824\n"
        "Reserved:   0\nPeakReserved:   0\nLargestFreeBlock:   0\n\n",
        where, X(f->allocated), where, bytes_of(reserved(f)), bytes_of(limit),
        bytes_of(f->available), where, bytes_of(limit), bytes_of(f->allocated), bytes_of(limit));
}

static void tensorflow(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "2026-02-03 04:05:06.1: W tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator "
        "(GPU_1_bfc) ran out of memory trying to allocate 7.25MiB with freed_by_count=0. The "
        "caller "
        "indicates that this is not a failure, but this may mean that there could be performance "
        "gains if more memory were available.\n"
        "2026-02-03 04:05:16.1: W tensorflow/core/common_runtime/bfc_allocator.cc:491] Allocator "
        "(GPU_1_bfc) ran out of memory trying to allocate %s (rounded to %llu)requested by op "
        "gradients/dense/MatMul\nIf the cause is memory fragmentation maybe the environment "
        "variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \nCurrent "
        "allocation summary follows.\nBin (256): \tTotal Chunks: 41, Chunks in use: 40. 10.2KiB "
        "allocated for chunks. 10.0KiB in use in bin.\n",
        X(f->asked), bytes_of(f->asked));
    bfc_dump(w, f, "tensorflow/core/common_runtime/");
    writing_add(
        w,
        "W tensorflow/core/framework/op_kernel.cc:1753] OP_REQUIRES failed at matmul_op.cc:198 : "
        "Resource exhausted: OOM when allocating tensor with shape[%u,262144] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc\n",
        f->asked);
}

/* Of the dump only its end was kept, and the error of the Python side. */
static void tensorflow_error(struct writing *w, const struct figures *f)
{
    bfc_dump(w, f, "external/local_xla/xla/tsl/framework/");
    writing_add(
        w,
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node f}} OOM "
        "when allocating tensor with shape[%u,262144] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]",
        f->asked);
}

static void jax(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "2026-02-03 04:05:06.1: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator "
        "(GPU_0_bfc) ran out of memory trying to allocate %s (rounded to %llu)requested by op \n",
        X(f->asked), bytes_of(f->asked));
    bfc_dump(w, f, "external/xla/xla/tsl/framework/");
    writing_add(
        w,
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate %llu bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
        "             parameter allocation:    6.00MiB\n",
        bytes_of(f->asked));
}

static void jax_new(struct writing *w, const struct figures *f)
{
    bfc_dump(w, f, "external/xla/xla/tsl/framework/");
    writing_add(
        w,
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "%s. "
        "[executable_name='jit_step']",
        X(f->asked));
}

static void cuda_async(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "E tensorflow/stream_executor/gpu/gpu_cudamallocasync_allocator.cc:304] gpu_async_0 "
        "cuMemAllocAsync failed to allocate %llu bytes: CUDA error: out of memory "
        "(CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: %llu/%llu\n"
        "Stats: Limit:   4294967296\nInUse:   %llu\n",
        bytes_of(f->asked), bytes_of(f->available), bytes_of(f->total), bytes_of(f->allocated));
}

static void jax_bare(struct writing *w, const struct figures *f)
{
    writing_add(w, "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating %llu bytes.",
                bytes_of(f->asked));
}

static void tensorflow_driver(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:924] failed to allocate %.2fG (%llu "
        "bytes) "
        "from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        f->asked / 1024.0, bytes_of(f->asked));
}

static void tpu(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to "
        "allocate "
        "%.2fM. That was not possible. There are %.2fM free.; (0x0x0_HBM0)",
        (double)f->asked, (double)f->unallocated);
}

/* With the commas of CuPy. */
static void add_commas(struct writing *w, unsigned long long bytes)
{
    if (bytes >= 1000) {
        add_commas(w, bytes / 1000);
        writing_add(w, ",%03llu", bytes % 1000);
    } else {
        writing_add(w, "%llu", bytes);
    }
}

static void cupy(struct writing *w, const struct figures *f)
{
    writing_add(w, "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating ");
    add_commas(w, bytes_of(f->asked));
    writing_add(w, " bytes (allocated so far: ");
    add_commas(w, bytes_of(reserved(f)));
    writing_add(w, " bytes, limit set to: ");
    add_commas(w, bytes_of(reserved(f) + f->available));
    writing_add(w, " bytes).");
}

static void rmm(struct writing *w, const struct figures *f)
{
    double limit = (reserved(f) + f->available) / 1024.0;
    writing_add(
        w,
        "MemoryError: std::bad_alloc: out_of_memory: RMM failure "
        "at:/x/pool_memory_resource_impl.cpp:73: Maximum pool size exceeded (failed to allocate %f "
        "GiB): Not enough room to grow, current/max/try size = %f GiB, %f GiB, %f GiB",
        f->asked / 1024.0, reserved(f) / 1024.0, limit, f->asked / 1024.0);
}

static void rmm_driver(struct writing *w, const struct figures *f)
{
    writing_add(
        w,
        "MemoryError: std::bad_alloc: out_of_memory: CUDA error (failed to allocate %llu bytes) "
        "at: "
        "/x/rmm/mr/device/cuda_memory_resource.hpp:62: cudaErrorMemoryAllocation out of memory",
        bytes_of(f->asked));
}

#define CARD    (TELLS_TOTAL | TELLS_FREE)
#define LIMITED (TELLS_TOTAL | TELLS_FREE | FREE_IS_LIMIT)

static const struct wording {
    const char *name;
    enum message_framework framework;
    unsigned told;
    void (*write)(struct writing *, const struct figures *);
} wordings[] = {
    {"torch 1.3", MESSAGE_PYTORCH, CARD | TELLS_POOL, torch_1_3},
    {"torch 1.8", MESSAGE_PYTORCH, CARD | TELLS_POOL, torch_1_8},
    {"torch 1.13", MESSAGE_PYTORCH, CARD | TELLS_POOL, torch_1_13},
    {"npu", MESSAGE_PYTORCH, CARD | TELLS_POOL, npu},
    {"torch 2.1", MESSAGE_PYTORCH, CARD | TELLS_POOL | TELLS_OTHERS | TELLS_OUTSIDE, torch_2_1},
    {"torch 2.6", MESSAGE_PYTORCH, CARD | TELLS_POOL | TELLS_OTHERS | TELLS_OUTSIDE, torch_2_6},
    {"container", MESSAGE_PYTORCH, CARD | TELLS_POOL | TELLS_OTHERS | TELLS_OUTSIDE,
     torch_container},
    {"others", MESSAGE_PYTORCH, CARD | TELLS_POOL | TELLS_OTHERS, torch_others},
    {"hip", MESSAGE_PYTORCH, CARD | TELLS_POOL, hip},
    {"xpu", MESSAGE_PYTORCH, CARD | TELLS_POOL, xpu},
    {"mps", MESSAGE_PYTORCH, CARD | TELLS_OUTSIDE | TELLS_BOUND, mps},
    {"torch async", MESSAGE_PYTORCH, CARD | TELLS_ALLOCATED, torch_async},
    {"tensorflow", MESSAGE_TENSORFLOW, LIMITED | TELLS_POOL, tensorflow},
    {"tensorflow error", MESSAGE_TENSORFLOW, LIMITED | TELLS_POOL, tensorflow_error},
    {"jax", MESSAGE_JAX, LIMITED | TELLS_POOL, jax},
    {"jax 0.7", MESSAGE_JAX, LIMITED | TELLS_POOL, jax_new},
    {"cuda_malloc_async", MESSAGE_TENSORFLOW, CARD | TELLS_ALLOCATED, cuda_async},
    {"jax bare", MESSAGE_JAX, 0, jax_bare},
    {"tensorflow driver", MESSAGE_TENSORFLOW, 0, tensorflow_driver},
    {"tpu", MESSAGE_JAX, TELLS_POOL | ONE_POOL, tpu},
    {"cupy", MESSAGE_CUPY, LIMITED, cupy},
    {"rmm", MESSAGE_RMM, LIMITED, rmm},
    {"rmm driver", MESSAGE_RMM, 0, rmm_driver},
};

#define WORDINGS (sizeof wordings / sizeof *wordings)

/* What is neither free nor in the pool, nor in a process that the wording names. */
static unsigned remainder_of(const struct figures *f, unsigned told)
{
    unsigned pool = told & TELLS_ALLOCATED ? f->allocated : reserved(f);
    unsigned named = f->available + pool + (told & TELLS_OTHERS ? f->others : 0) +
                     (told & TELLS_OUTSIDE ? f->outside : 0);
    return f->total > named ? f->total - named : 0;
}

static unsigned beyond_context(unsigned mib)
{
    return mib > CONTEXT_MOST ? mib - CONTEXT_MOST : 0;
}

/* If no memory would be enough. */
static enum message_cause expected_rest(unsigned told)
{
    return told & (TELLS_POOL | TELLS_BOUND | TELLS_ALLOCATED) ? MESSAGE_CAPACITY : MESSAGE_UNKNOWN;
}

/* The rules again, on the figures that the wording has. Unused memory of the pool comes first, if
 * no other holder has most of the card; else the holder with the most memory. */
static enum message_cause expected(const struct figures *f, unsigned told)
{
    bool has_free = told & TELLS_FREE, has_pool = told & TELLS_POOL;
    bool card =
        has_free && (has_pool || (told & TELLS_ALLOCATED)) && !(told & (FREE_IS_LIMIT | ONE_POOL));
    unsigned total = told & FREE_IS_LIMIT ? reserved(f) + f->available : f->total;
    unsigned rest = card ? beyond_context(remainder_of(f, told)) : 0;
    unsigned outside = beyond_context(f->outside);
    struct {
        enum message_cause cause;
        unsigned gain;
    } holders[] = {
        {MESSAGE_TENANT, told & TELLS_OTHERS ? f->others : 0},
        {MESSAGE_OUTSIDE, told & TELLS_OUTSIDE ? outside : 0},
        {told & TELLS_OUTSIDE ? MESSAGE_TENANT : MESSAGE_TENANT_OR_OUTSIDE, rest},
        {MESSAGE_FRAGMENTATION_POSSIBLE, has_pool ? f->unallocated : 0},
    };
    size_t best = 4;
    if ((told & TELLS_TOTAL) && f->asked > total)
        return MESSAGE_IMPOSSIBLE;
    if (has_free && !(told & TELLS_BOUND) && f->asked <= f->available)
        return MESSAGE_NOT_THE_ALLOCATOR;
    for (size_t i = 0; i < 4 && has_free; i++)
        if (holders[i].gain && f->asked <= f->available + holders[i].gain &&
            (best == 4 || holders[i].gain > holders[best].gain))
            best = i;
    bool most = best < 3 && 2 * holders[best].gain > f->total;
    if (has_pool && !most && f->asked <= f->unallocated)
        return MESSAGE_FRAGMENTATION;
    return best < 4 ? holders[best].cause : expected_rest(told);
}

static void check(const char *text, size_t bytes, const struct wording *wording,
                  const struct figures *figures)
{
    struct message message;
    enum message_cause cause = expected(figures, wording->told);
    if (message_read(text, bytes, &message, &test_error))
        fail_msg("%s, %s: %s, of: %s", wording->name, figures->name, test_error.text, text);
    if (message.cause != cause)
        fail_msg("%s, %s: %s, not %s, of: %s", wording->name, figures->name,
                 message_cause_name(message.cause), message_cause_name(cause), text);
    if (message.framework != wording->framework)
        fail_msg("%s: from %s: %s", wording->name, message_framework_name(message.framework), text);
    const struct message_figure *asked = &message.figures[MESSAGE_FIGURE_ASKED];
    assert_in_range(asked->bytes, bytes_of(figures->asked) - asked->coarse_bytes,
                    bytes_of(figures->asked) + asked->coarse_bytes);
    assert_int_equal(message.count, 1);
    assert_int_equal(message.taken, 1);
}

TEST(every_class_in_every_wording)
{
    for (size_t i = 0; i < WORDINGS; i++)
        for (size_t j = 0; j < CLASSES; j++) {
            struct writing writing = {""};
            wordings[i].write(&writing, &classes[j]);
            check(writing.text, strlen(writing.text), &wordings[i], &classes[j]);
        }
}

/* With all figures of PyTorch's current messages, the rules give all seven classes. */
TEST(all_classes_are_told_apart)
{
    for (size_t i = 0; i < WORDINGS; i++)
        for (size_t j = 0; j < CLASSES; j++)
            if (wordings[i].told == (CARD | TELLS_POOL | TELLS_OTHERS | TELLS_OUTSIDE))
                assert_int_equal(expected(&classes[j], wordings[i].told), classes[j].cause);
}

static void in_lines_of(size_t width, const char *before, const char *after, const char *text,
                        struct writing *out)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += width)
        writing_add(out, "%s%.*s%s\n", before, (int)width, text + at, after);
}

/* As JSON and a program's source write it. */
static void escaped(const char *text, struct writing *out)
{
    writing_add(out, "{\"message\": \"\\u001b[31mRuntimeError\\u001b[0m: ");
    for (const char *c = text; *c; c++)
        if (*c == '\n')
            writing_add(out, "\\n");
        else if (*c == '\t')
            writing_add(out, "\\t");
        else
            writing_add(out, "%c", *c);
    writing_add(out, "\", \"rank\": 3}");
}

TEST(wrapped_texts_are_the_same)
{
    for (size_t i = 0; i < WORDINGS; i++)
        for (size_t j = 0; j < CLASSES; j++) {
            struct writing plain = {""}, made[5] = {{""}};
            wordings[i].write(&plain, &classes[j]);
            writing_add(&made[0],
                        "\033[1;31m(RayWorker pid=41)\033[0m ERROR 02-03 04:05:06 engine.py:140] "
                        "[rank1]: \033[31m%s\033[0m\r\n\r\nDuring handling of the above",
                        plain.text);
            escaped(plain.text, &made[1]);
            if (strchr(plain.text, '\n')) { /* such texts come line by line; their lines stay */
                writing_add(&made[2], "%s", plain.text);
                writing_add(&made[3], "%s", plain.text);
            } else {
                in_lines_of(61, "\xe2\x94\x82 ", " \xe2\x94\x82", plain.text, &made[2]);
                in_lines_of(72, "> ", "\r", plain.text, &made[3]);
                in_lines_of(40, "| ", " |", plain.text, &made[4]);
            }
            for (size_t k = 0; k < 5; k++)
                if (made[k].text[0])
                    check(made[k].text, strlen(made[k].text), &wordings[i], &classes[j]);
        }
}

/* A log in which a wrapper prints the message cut before the whole of it follows. */
TEST(the_message_in_full_is_taken)
{
    struct writing whole = {""}, log = {""};
    struct message message;
    torch_2_6(&whole, &classes[3]);
    writing_add(&log, "WARNING request failed: %.120s...\nTraceback (most recent call last):\n%s\n",
                whole.text, whole.text);
    assert_ok(message_read(log.text, strlen(log.text), &message, &test_error));
    assert_int_equal(message.count, 2);
    assert_int_equal(message.taken, 2);
    assert_int_equal(message.cause, MESSAGE_TENANT);
    /* A later one for other bytes is another failure. */
    log.text[0] = '\0';
    torch_2_6(&log, &classes[6]);
    writing_add(&log, "\n%s", whole.text);
    assert_ok(message_read(log.text, strlen(log.text), &message, &test_error));
    assert_int_equal(message.count, 2);
    assert_int_equal(message.taken, 1);
    assert_int_equal(message.cause, MESSAGE_CAPACITY);
}

/* If a message is cut within a figure, that figure and those after it are not known. */
TEST(a_cut_message_says_what_is_missing)
{
    struct message message;
    static const char cut[] = "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total "
                              "capacity of 24.00 GiB of which 512...";
    assert_ok(message_read(cut, strlen(cut), &message, &test_error));
    assert_int_equal(message.cause, MESSAGE_UNKNOWN);
    assert_false(message_missing(&message, MESSAGE_FIGURE_TOTAL));
    assert_true(message_missing(&message, MESSAGE_FIGURE_FREE));
    assert_true(message_missing(&message, MESSAGE_FIGURE_UNALLOCATED));
    assert_true(message_missing(&message, MESSAGE_FIGURE_OTHERS));
    static const char words[] =
        "# CUDA out of memory. Tried to allocate all of it, see below\ntorch.OutOfMemoryError: "
        "CUDA "
        "out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
        "which 6.00 GiB is free.";
    assert_ok(message_read(words, strlen(words), &message, &test_error));
    assert_int_equal(message.cause, MESSAGE_NOT_THE_ALLOCATOR);
    assert_int_equal(message.count, 1);
}

/* Equal to the last printed digit: it fits by the figures, and that it is close is known. */
TEST(equal_figures_are_close)
{
    static const struct figures equal = {
        "equal", MESSAGE_FRAGMENTATION, 2048, 24576, 512, 18432, 2048, 768, 384};
    for (size_t i = 0; i < WORDINGS; i++) {
        struct writing writing = {""};
        struct message message;
        struct ar_error error;
        if (!(wordings[i].told & TELLS_POOL) || wordings[i].framework != MESSAGE_PYTORCH)
            continue;
        wordings[i].write(&writing, &equal);
        assert_int_equal(message_read(writing.text, strlen(writing.text), &message, &error), AR_OK);
        assert_int_equal(message.cause, MESSAGE_FRAGMENTATION);
        assert_true(message.close);
    }
}

/* A program's own print: a digit may follow the label at once, and devices have numbers too. */
TEST(printed_counters_are_read_whole)
{
    static const char *const texts[] = {
        "Memory allocated: 1024.5 MB, reserved: 4096.0 MB, max_allocated 3072.5 MB",
        "memory allocated on cuda:10 = 1024.5 MB; max_allocated 3072.5 MB, reserved gpu7: 4 GB",
        "gpu12 memory allocated 1024.5 MB peak_allocated=3072.5MB reserved 4GB",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct message message;
        struct ar_error error;
        assert_int_equal(message_read(texts[i], strlen(texts[i]), &message, &error), AR_OK);
        assert_int_equal(message.figures[MESSAGE_FIGURE_ALLOCATED].bytes, UINT64_C(2049) << 19);
        assert_int_equal(message.figures[MESSAGE_FIGURE_PEAK].bytes, UINT64_C(6145) << 19);
        assert_int_equal(message.figures[MESSAGE_FIGURE_RESERVED].bytes, UINT64_C(4) << 30);
    }
}

/* With the unit in its label, a number is exact to half of its last digit. */
TEST(a_unit_in_a_label_is_as_coarse_as_its_number)
{
    static const struct {
        const char *text;
        uint64_t allocated_bytes, coarse_bytes;
    } cases[] = {
        {"memory allocated (MB): 1024, reserved (MB): 4096", AR_GIB, AR_MIB / 2},
        {"memory allocated [MB]: 1024.0, reserved [MB]: 4096.0", AR_GIB, AR_MIB / 20 + 1},
        {"memory allocated (GB): 1.00, reserved (GB): 4.00", AR_GIB, AR_GIB / 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message message;
        struct ar_error error;
        if (message_read(cases[i].text, strlen(cases[i].text), &message, &error))
            fail_msg("%s", error.text);
        assert_int_equal(message.figures[MESSAGE_FIGURE_ALLOCATED].bytes, cases[i].allocated_bytes);
        assert_int_equal(message.figures[MESSAGE_FIGURE_ALLOCATED].coarse_bytes,
                         cases[i].coarse_bytes);
    }
}
