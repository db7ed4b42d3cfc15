/* Which settings of allocators work together, by release: checked statements, each with its source.
 * The twin uses them to refuse a scenario or to say why a phase does not do what one expects. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum compatible_setting {
    COMPATIBLE_EXPANDABLE,    /* expandable_segments:True */
    COMPATIBLE_MEMPOOL,       /* torch.cuda.MemPool() */
    COMPATIBLE_MEMPOOL_OWN,   /* MemPool(allocator=CUDAPluggableAllocator(..)) */
    COMPATIBLE_USE_ON_OOM,    /* MemPool(use_on_oom=True) */
    COMPATIBLE_NO_SPLIT,      /* MemPool(no_split=True) */
    COMPATIBLE_GRAPHS,        /* the pool of captured CUDA graphs */
    COMPATIBLE_EMPTY_CACHE,   /* torch.cuda.empty_cache() */
    COMPATIBLE_COLLECTION,    /* garbage_collection_threshold */
    COMPATIBLE_SLEEP,         /* vLLM's sleep mode */
    COMPATIBLE_SAVER_PRELOAD, /* torch_memory_saver, hook_mode="preload" */
    COMPATIBLE_SAVER_TORCH,   /* torch_memory_saver, hook_mode="torch" */
    COMPATIBLE_CUMEM_NCCL,    /* NCCL with cuMem */
    COMPATIBLE_SETTING_COUNT
};

enum compatible_program { COMPATIBLE_TORCH, COMPATIBLE_VLLM, COMPATIBLE_SAVER, COMPATIBLE_NCCL };

enum compatible_verdict {
    COMPATIBLE_WORKS,
    COMPATIBLE_NO_EFFECT, /* accepted, and one of the two does nothing */
    COMPATIBLE_REFUSED    /* the program stops with an exception */
};

struct compatible_statement {
    enum compatible_setting a, b;
    enum compatible_program program; /* whose releases `first` and `last` are */
    uint32_t first, last;            /* major x 100 + minor, inclusive; 0: no bound */
    enum compatible_verdict verdict;
    const char *what;   /* what happens: a sentence */
    const char *source; /* a pull request or an issue, or a file and function */
};

/* NULL past the end. */
const struct compatible_statement *compatible_at(size_t index);

/* The statement on two settings, in either order, that holds for these releases (0: the newest).
 * A statement that refuses comes before one that has no effect, and that before one that works.
 * NULL: nothing is known. */
struct compatible_releases {
    uint32_t of[4]; /* by compatible_program */
};
const struct compatible_statement *compatible_find(enum compatible_setting a,
                                                   enum compatible_setting b,
                                                   const struct compatible_releases *releases);

/* "2.11", "2.11.0+cu130" or "0.9": major x 100 + minor; 0: the text is not a release. */
uint32_t compatible_release(const char *text);
