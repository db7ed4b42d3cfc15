#include "sim/twin/rules/compatible.h"

#include <stdbool.h>
#include <stdlib.h>

/* Releases of the texts of libc10_cuda.so are from the published packages 2.5 to 2.15. */
static const struct compatible_statement statements[] = {
    /* expandable segments and pools */
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 207, 207, COMPATIBLE_REFUSED,
     "the first request raises \"torch.cuda.MemPool doesn't currently support "
     "expandable_segments\"",
     "pytorch/pytorch#148378"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 205, 206, COMPATIBLE_WORKS,
     "the pool has a range of its own that grows by pages", "pytorch/pytorch#128068"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 208, 0, COMPATIBLE_WORKS,
     "the pool has a range of its own that grows by pages", "pytorch/pytorch#185818"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, 205, 206,
     COMPATIBLE_NO_EFFECT,
     "the allocator of the pool is never called: its memory is in a range of PyTorch",
     "pytorch/pytorch#147851"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, 207, 209, COMPATIBLE_REFUSED,
     "the first request raises \"torch.cuda.MemPool doesn't currently support "
     "expandable_segments\"",
     "pytorch/pytorch#148378"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, 210, 0, COMPATIBLE_WORKS,
     "the pool has segments of its allocator, all others grow by pages", "pytorch/pytorch#169491"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_GRAPHS, COMPATIBLE_TORCH, 0, 204, COMPATIBLE_NO_EFFECT,
     "pools of graphs have segments that do not grow", "pytorch/pytorch#128068"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_GRAPHS, COMPATIBLE_TORCH, 205, 0, COMPATIBLE_WORKS,
     "pools of graphs have ranges of their own", "pytorch/pytorch#128068"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_USE_ON_OOM, COMPATIBLE_TORCH, 208, 0, COMPATIBLE_NO_EFFECT,
     "requests outside of the pool find no free block of a range, unless the pool has an allocator "
     "of its own",
     "CUDACachingAllocator.cpp, try_mempool_fallback and get_free_block"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_NO_SPLIT, COMPATIBLE_TORCH, 210, 0, COMPATIBLE_WORKS,
     "blocks of the pool are handed out whole, also those of a range",
     "CUDACachingAllocator.cpp, should_split"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_COLLECTION, COMPATIBLE_TORCH, 0, 0, COMPATIBLE_NO_EFFECT,
     "blocks of a range are never collected, only whole segments",
     "CUDACachingAllocator.cpp, garbage_collect_cached_blocks"},
    /* sleep */
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, 0, 7, COMPATIBLE_NO_EFFECT,
     "sleep releases nothing: the memory of the pool is in a range of PyTorch",
     "vllm-project/vllm#11743, pytorch/pytorch#147851"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, 8, 19, COMPATIBLE_REFUSED,
     "vLLM asserts \"Expandable segments are not compatible with memory pool\"",
     "vllm-project/vllm#14189"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, 20, 0, COMPATIBLE_WORKS,
     "vLLM turns expandable segments off while memory goes to its pool, if PYTORCH_CUDA_ALLOC_CONF "
     "has them; it does not look at PYTORCH_ALLOC_CONF",
     "vllm-project/vllm#40812 (from 0.20.1 on), huggingface/trl#5794"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_SAVER_PRELOAD, COMPATIBLE_SAVER, 0, 0, COMPATIBLE_REFUSED,
     "torch_memory_saver raises \"expandable_segments is not supported yet\" (from July 2025 on; "
     "before, pause releases nothing, because PyTorch maps pages and calls no cudaMalloc)",
     "fzyzcjy/torch_memory_saver#24"},
    {COMPATIBLE_EXPANDABLE, COMPATIBLE_SAVER_TORCH, COMPATIBLE_SAVER, 0, 0, COMPATIBLE_REFUSED,
     "torch_memory_saver raises \"expandable_segments is not supported yet\"",
     "fzyzcjy/torch_memory_saver#24"},
    {COMPATIBLE_GRAPHS, COMPATIBLE_SAVER_TORCH, COMPATIBLE_SAVER, 0, 0, COMPATIBLE_REFUSED,
     "torch_memory_saver asserts \"Only hook_mode=preload supports pauseable CUDA Graph\"",
     "torch_memory_saver/entrypoint.py, cuda_graph"},
    {COMPATIBLE_GRAPHS, COMPATIBLE_SAVER_PRELOAD, COMPATIBLE_SAVER, 0, 0, COMPATIBLE_WORKS,
     "memory of the graphs' pool that is captured in cuda_graph() sleeps; what the driver keeps "
     "for the graphs stays",
     "torch_memory_saver/entrypoint.py, cuda_graph; sgl-project/sglang#7873"},
    {COMPATIBLE_GRAPHS, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, 0, 0, COMPATIBLE_NO_EFFECT,
     "the graphs' pool and what the driver keeps for the graphs stay on the card while vLLM sleeps",
     "vllm/device_allocator/cumem.py: only memory of its own pools is unmapped"},
    {COMPATIBLE_CUMEM_NCCL, COMPATIBLE_SLEEP, COMPATIBLE_NCCL, 0, 0, COMPATIBLE_NO_EFFECT,
     "buffers of NCCL stay on the card while vLLM sleeps",
     "vllm/device_allocator/cumem.py: only memory of its own pools is unmapped"},
    {COMPATIBLE_CUMEM_NCCL, COMPATIBLE_GRAPHS, COMPATIBLE_NCCL, 219, 221, COMPATIBLE_WORKS,
     "each operation that a graph captures keeps 2 MiB", "NVIDIA/nccl#1234"},
    /* release of the cache */
    {COMPATIBLE_EMPTY_CACHE, COMPATIBLE_GRAPHS, COMPATIBLE_TORCH, 0, 0, COMPATIBLE_NO_EFFECT,
     "the pool of graphs keeps its memory until all graphs of the pool are destroyed; then "
     "segments without a live block are released",
     "CUDACachingAllocator.cpp, release_cached_blocks and releasePool"},
    {COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, 205, 206, COMPATIBLE_REFUSED,
     "empty_cache raises an error beside a pluggable allocator", "pytorch/pytorch#145168"},
    {COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 205, 207, COMPATIBLE_NO_EFFECT,
     "inside of use_mem_pool it releases only memory of that pool, and none while the pool lives",
     "pytorch/pytorch#133602"},
    {COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 208, 212, COMPATIBLE_NO_EFFECT,
     "inside of use_mem_pool it releases no memory of the common pool", "pytorch/pytorch#158152"},
    {COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 213, 0, COMPATIBLE_WORKS,
     "it releases the common pool and pools that have ended, also inside of use_mem_pool; a live "
     "pool keeps its memory",
     "pytorch/pytorch#181830"},
    {COMPATIBLE_COLLECTION, COMPATIBLE_GRAPHS, COMPATIBLE_TORCH, 0, 0, COMPATIBLE_NO_EFFECT,
     "only cached blocks of the common large pool are collected",
     "CUDACachingAllocator.cpp, garbage_collect_cached_blocks"},
    {COMPATIBLE_COLLECTION, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, 0, 0, COMPATIBLE_NO_EFFECT,
     "only cached blocks of the common large pool are collected",
     "CUDACachingAllocator.cpp, garbage_collect_cached_blocks"},
    {COMPATIBLE_COLLECTION, COMPATIBLE_SLEEP, COMPATIBLE_TORCH, 0, 0, COMPATIBLE_NO_EFFECT,
     "sleeping memory still counts as reserved, so the threshold is reached sooner",
     "CUDACachingAllocator.cpp, total_allocated_memory"},
    {COMPATIBLE_USE_ON_OOM, COMPATIBLE_GRAPHS, COMPATIBLE_TORCH, 208, 0, COMPATIBLE_NO_EFFECT,
     "requests in a private pool, such as those of a capture, do not use the pool",
     "CUDACachingAllocator.cpp, try_mempool_fallback"},
};

const struct compatible_statement *compatible_at(size_t index)
{
    return index < sizeof statements / sizeof *statements ? &statements[index] : NULL;
}

static bool holds(const struct compatible_statement *statement, uint32_t release)
{
    if (!release)
        return !statement->last;
    return release >= statement->first && (!statement->last || release <= statement->last);
}

const struct compatible_statement *compatible_find(enum compatible_setting a,
                                                   enum compatible_setting b,
                                                   const struct compatible_releases *releases)
{
    const struct compatible_statement *best = NULL, *at;
    for (size_t i = 0; (at = compatible_at(i)) != NULL; i++) {
        bool same = (at->a == a && at->b == b) || (at->a == b && at->b == a);
        if (same && holds(at, releases->of[at->program]) && (!best || at->verdict > best->verdict))
            best = at;
    }
    return best;
}

uint32_t compatible_release(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return 0;
    unsigned long major = strtoul(text, &end, 10);
    if (*end != '.' || end[1] < '0' || end[1] > '9' || major > 99)
        return 0;
    unsigned long minor = strtoul(end + 1, &end, 10);
    return minor > 99 ? 0 : (uint32_t)(major * 100 + minor);
}
