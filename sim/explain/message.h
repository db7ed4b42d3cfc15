/* Reads an out-of-memory message of PyTorch, JAX, llama.cpp or another program, as pasted by a
 * user: its figures, and the cause of the failure as far as the figures show it.
 *
 * 1. The text is cleaned of the additions of terminals, logs and quotes (message_text.h).
 * 2. The readers (the table `kinds` in message.c) find the wordings of the programs' versions and
 *    read them into one set of figures. Frameworks print two decimals, so each figure has its
 *    rounding error.
 * 3. message_account.c computes the figures that follow from others, finds those that contradict
 *    each other, and derives the cause and how sure it is. */
#pragma once

#include "allocators/base/status.h"

#define MESSAGE_TEXT_MOST (UINT64_C(64) << 20) /* bytes of text that are read */

/* What a process holds outside of every pool because it uses the card at all: the driver's context
 * and its code. It is no cause of its own; what is held beyond it is. */
#define MESSAGE_CONTEXT_LEAST (UINT64_C(150) << 20)
#define MESSAGE_CONTEXT_MOST  (UINT64_C(1) << 30)

/* A card with less free memory before the program began is in use by others: none is so small. */
#define MESSAGE_START_LEAST (UINT64_C(512) << 20)

/* More than any GPU has: most often the size itself is wrong. */
#define MESSAGE_ANY_CARD (UINT64_C(1) << 40)

/* Name, word, condition. */
#define MESSAGE_CAUSES(X)                                                                          \
    X(IMPOSSIBLE, "impossible", "the request is larger than the total memory")                     \
    X(NOT_THE_ALLOCATOR, "not-the-allocator", "the requested bytes are free on the card")          \
    X(FRAGMENTATION, "fragmentation", "the pool has enough unused memory")                         \
    X(TENANT, "tenant", "the request would fit without the memory of other processes")             \
    X(OUTSIDE, "outside",                                                                          \
      "the request would fit without this process's memory outside of the pool")                   \
    X(TENANT_OR_OUTSIDE, "tenant-or-outside",                                                      \
      "the request would fit without the memory that is neither free nor the pool's")              \
    X(FRAGMENTATION_POSSIBLE, "fragmentation-possible",                                            \
      "the free memory of the card and the unused memory of the pool together are enough")         \
    X(CAPACITY, "capacity", "no memory that the message names would be enough")                    \
    X(HOST, "host-memory", "the memory of the host ran out, not that of a GPU")                    \
    X(CACHE, "cached", "no request failed; the pool keeps memory that the program has freed")      \
    X(UNKNOWN, "cannot-be-told", "the message has too few figures to tell the cause")

enum message_cause {
#define X(name, word, meaning) MESSAGE_##name,
    MESSAGE_CAUSES(X)
#undef X
};

/* Sure: all figures that decide are in the message, and no other cause fits. */
enum message_confidence { MESSAGE_SURE, MESSAGE_LIKELY, MESSAGE_OPEN };

/* Why a cause is not sure. Name, text after "because". */
#define MESSAGE_REASONS(X)                                                                         \
    X(CLOSE, "two figures that were compared differ by less than their printed decimals can tell") \
    X(CONTRADICTION, "figures contradict each other")                                              \
    X(OTHER_CAUSE, "another cause would explain it as well")                                       \
    X(MISSING, "the message does not have all figures")                                            \
    X(ASSUMED, "a figure is assumed")                                                              \
    X(LAYOUT, "the message does not say whether the pool's unused memory can be released")         \
    X(TIGHT, "the card is full: its driver does not hand out the last of what it says is free")    \
    X(CONTEXT, "the message does not say how much of the rest is this process's context")          \
    X(SLACK, "only a small share of the pool is unused, as in every pool")                         \
    X(POOL,                                                                                        \
      "no pool serves the requests of another, and the message does not say which was asked")      \
    X(UNIFIED, "the total of a card that shares the host's memory may be a part of it only")       \
    X(INDIRECT, "the same words have other causes too")                                            \
    X(TOLD, "the words stand in a sentence, which may be about something else")                    \
    X(SEVERAL, "the text tells of another failure as well")                                        \
    X(EARLIER, "the program printed figures of another moment")                                    \
    X(SPARE, "the program may go on without it")                                                   \
    X(CUT, "a number stands at the end of the text or of a line, and may be cut off")

enum message_reason {
#define X(name, text) MESSAGE_REASON_##name,
    MESSAGE_REASONS(X)
#undef X
        MESSAGE_REASON_COUNT
};

/* Name, sentence. */
#define MESSAGE_CONTRADICTIONS(X)                                                                  \
    X(FREE_ABOVE_TOTAL, "More is free than there is in total, so the total is not a bound: the "   \
                        "device shares the memory of the host (an APU, unified memory), or the "   \
                        "two figures are of different devices.")                                   \
    X(POOL_ABOVE_TOTAL, "The pool is larger than the card, so the total is not a bound: the "      \
                        "driver moves memory to the host (shared memory under Windows), or the "   \
                        "memory is managed.")                                                      \
    X(ALLOCATED_ABOVE_RESERVED, "More is allocated than reserved: the two figures are of "         \
                                "different moments.")                                              \
    X(SUM_ABOVE_TOTAL, "What is free, in the pool and in use by others is together more than "     \
                       "the total: the figures are of different moments, or the driver moves "     \
                       "memory to the host.")                                                      \
    X(LARGEST_FITS, "The largest free range is at least as large as the request.")

enum message_contradiction {
#define X(name, text) MESSAGE_##name,
    MESSAGE_CONTRADICTIONS(X)
#undef X
        MESSAGE_CONTRADICTION_COUNT
};

/* Name, text in a report, what is read of it. */
#define MESSAGE_FRAMEWORKS(X)                                                                      \
    X(PYTORCH, "PyTorch", "CUDA, HIP, XPU, MPS, NPU out of memory since 0.4; printed counters")    \
    X(TENSORFLOW, "TensorFlow", "the BFC allocator and its statistics, shapes, TPU")               \
    X(JAX, "JAX", "RESOURCE_EXHAUSTED on GPU and TPU, with the statistics around it")              \
    X(CUPY, "CuPy", "Out of memory allocating N bytes (allocated so far: ..)")                     \
    X(RMM, "RMM", "Maximum pool size exceeded, Exceeded memory limit, its log")                    \
    X(SPARK, "spark-rapids", "DeviceMemoryEventHandler: Device allocation of N bytes failed")      \
    X(ONNX, "ONNX Runtime", "BFCArena: Available memory of N is smaller than .., Failed to ..")    \
    X(JULIA, "CUDA.jl", "Out of GPU memory trying to allocate S, memory_status()")                 \
    X(GGML, "ggml (llama.cpp)", "CUDA, HIP, Vulkan, Metal, SYCL buffers, pinned memory")           \
    X(VLLM, "vLLM", "Free memory on device .. is less than desired, cache blocks, KV cache")       \
    X(SGLANG, "SGLang", "--mem-fraction-static, its pools of requests and tokens")                 \
    X(DIRECTML, "DirectML", "Could not allocate tensor with N bytes")                              \
    X(PADDLE, "PaddlePaddle", "Out of memory error on GPU N. Cannot allocate S")                   \
    X(MINDSPORE, "MindSpore", "TotalUsedMemStatistics .. plus alloc size is more than total")      \
    X(TENSORRT, "TensorRT", "Requested amount of GPU memory (N bytes) could not be allocated")     \
    X(TRITON_SERVER, "Triton Inference Server", "Failed to allocate CUDA memory with byte size N") \
    X(MLX, "MLX", "metal::malloc, malloc_or_wait")                                                 \
    X(TRITON, "Triton", "out of resource: shared memory")                                          \
    X(TGI, "Text Generation Inference", "Not enough memory to handle N prefill tokens")            \
    X(MLC, "MLC-LLM", "Insufficient GPU memory error: The available single GPU memory is ..")      \
    X(LIBRARY, "library", "cuBLAS, NCCL, NVENC, Faiss, XGBoost, CatBoost, Theano, AMReX, RELION")  \
    X(HOST_PROGRAM, "host program", "NumPy, Ollama, Ray, the kernel's out-of-memory killer")       \
    X(DRIVER, "driver", "CUDA error: out of memory, hipErrorOutOfMemory, Vulkan, OpenCL")

enum message_framework { /* 0: PyTorch */
#define X(name, text, read) MESSAGE_##name,
                         MESSAGE_FRAMEWORKS(X)
#undef X
                             MESSAGE_FRAMEWORK_COUNT
};

/* Name, text in a report. */
#define MESSAGE_FIGURES(X)                                                                         \
    X(ASKED, "requested")                                                                          \
    X(TOTAL, "in total")                                                                           \
    X(FREE, "free on the card")                                                                    \
    X(START, "free before it began")                                                               \
    X(ALLOWED, "allowed by a limit")                                                               \
    X(ALLOCATED, "allocated in the pool")                                                          \
    X(PEAK, "allocated at most, so far")                                                           \
    X(PRIVATE, "of that, unused in private pools")                                                 \
    X(RESERVED, "reserved by the pool")                                                            \
    X(UNALLOCATED, "reserved and unused")                                                          \
    X(UNRELEASABLE, "of that, between live blocks")                                                \
    X(LARGEST, "largest free range")                                                               \
    X(PROCESS, "this process, in and outside of the pool")                                         \
    X(OUTSIDE_POOL, "of that, outside of the pool")                                                \
    X(OTHERS, "other processes")                                                                   \
    X(REMAINDER, "neither free nor in the pool")                                                   \
    X(PROGRAM, "needed by the compiled program")                                                   \
    X(TEMPORARIES, "temporaries of the compiled program")

enum message_figure_name {
#define X(name, text) MESSAGE_FIGURE_##name,
    MESSAGE_FIGURES(X)
#undef X
        MESSAGE_FIGURE_COUNT
};

/* Where the digits of a number without a unit may be missing. */
enum message_cut { MESSAGE_UNCUT, MESSAGE_CUT_AT_END, MESSAGE_CUT_AT_LINE };

struct message_figure {
    uint64_t bytes;
    uint64_t coarse_bytes; /* the largest rounding error; 0: exact */
    bool known;
    bool derived; /* computed from others, not printed */
    bool or_more; /* the printed one is too large for `bytes`: it is that or more */
    enum message_cut cut;
};

/* The versions of PyTorch that print a wording. */
enum message_torch { MESSAGE_TORCH_ANY, MESSAGE_TORCH_TO_1_3, MESSAGE_TORCH_TO_2_0 };

struct message {
    enum message_framework framework;
    enum message_cause cause;
    enum message_confidence confidence;
    unsigned reasons;        /* bits of enum message_reason */
    unsigned contradictions; /* bits of enum message_contradiction */
    struct message_figure figures[MESSAGE_FIGURE_COUNT];
    enum message_torch torch;
    char allocator[32];    /* "GPU_0_bfc"; "": not in the message */
    char device[16];       /* "CUDA", "HIP", "TPU", ...; "": not in the message */
    const char *how;       /* how to find the cause, for this message alone; NULL: see framework */
    unsigned count, taken; /* messages in the text; the number of this one, from 1 */
    size_t at, end;        /* of its words in the squeezed text; 0: not known */
    unsigned causes[16];   /* how many of them have each cause, if more than one was judged */
    bool segment_asked;    /* the request is of a segment, not of a tensor */
    bool may_fail;         /* the message says that the program does not need it */
    bool goes_on;          /* the text says that the program has done so */
    bool type_assumed;     /* a shape without a type: 4 bytes for each element */
    bool whole_limit;      /* the reserved part of the limit is not printed: all of it is assumed */
    bool earlier;          /* the program printed the statistics itself, before or afterwards */
    bool no_figures_taken; /* impossible figures of processes were left out */
    bool async_pool;       /* the driver's pool: what it has allocated is taken as its size */
    bool others_hidden;    /* other processes are listed, all with 0 bytes */
    bool process_guessed;  /* one of the listed processes is assumed to be this one */
    bool host;             /* host memory ran out */
    bool indirect;         /* the words have other causes too */
    bool told;             /* the words stand in a sentence about something */
    bool several;          /* the text has words for a failure of another kind too */
    bool killed;           /* the text also says that a process was killed */
    bool limit_passed;     /* the pool and the rest are above the limit of MPS */
    bool elsewhere;        /* not the card is full, but a part that the program made, or none */
    bool on_chip;          /* memory on the chip (vmem, shared memory) is too small for a program */
    bool block_limit;      /* the device has a limit on one request, and this one is above it */
    bool one_pool;         /* all memory of the device is one pool, whose unused bytes are known */
    bool windows;          /* paths or words of Windows are in the text */
    bool new_variable;     /* the text names PYTORCH_ALLOC_CONF, PyTorch 2.9 on */
    bool printed;          /* counters that a program printed; no request failed */
    bool bare;             /* memory ran out, and nothing else is said */
    bool card_told;        /* total and free are those of the card, also in XLA's messages */
    bool incomplete;       /* the size of the request is missing; message_read returns INVALID */
    bool close;            /* the deciding comparison is within the rounding errors */
    struct {
        uint64_t weights;        /* bytes that loading the model took; 0: not in the text */
        uint64_t fitting_length; /* tokens: the longest model length that fits; 0: not there */
        bool warming_up;         /* it tried its largest batch */
    } vllm;
    struct {
        uint64_t bytes;  /* of the largest buffer of a compiled program; 0: not in the text */
        char source[64]; /* "train.py:41"; "": not in the text */
    } buffer;
    struct {
        unsigned cards;       /* 0: the text has no listing of nvidia-smi */
        uint64_t used, total; /* of the first card, at another moment */
    } listing;
};

/* Reads the first message in the text. If the request is printed several times, the most complete
 * message is used. If the text only says that memory ran out, `bare` is set. INVALID: there is no
 * message, or the size of the request is missing. */
enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error);

/* Whether a rule was skipped because this figure is missing. */
bool message_missing(const struct message *self, enum message_figure_name name);

const char *message_cause_name(enum message_cause cause);
const char *message_cause_meaning(enum message_cause cause);
const char *message_confidence_name(enum message_confidence confidence);
const char *message_reason_text(enum message_reason reason);
const char *message_contradiction_text(enum message_contradiction contradiction);
const char *message_framework_name(enum message_framework framework);
const char *message_framework_summary(enum message_framework framework);
const char *message_figure_text(enum message_figure_name name);
