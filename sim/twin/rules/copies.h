/* Pinned host memory that a sleeping region takes for the contents of one of its segments.
 *
 * vLLM (device_allocator/cumem.py, CuMemAllocator.sleep) makes one pinned tensor for each segment,
 * of the size of the segment. PyTorch's cache of pinned memory rounds it up to a power of two
 * (ATen/core/CachingHostAllocator.h). wake_up drops the tensors; the cache keeps their blocks.
 *
 * torch_memory_saver (csrc/core.cpp, the header cpu_backup) calls cudaMallocHost for each segment,
 * of its size. Before November 2025 (up to 0.0.9) resume kept the copies until the segment was
 * freed; from then on it frees them, unless retain_cpu_backup is set (July 2026). */
#ifndef SIM_TWIN_RULES_COPIES_H
#define SIM_TWIN_RULES_COPIES_H

#include <stdbool.h>
#include <stdint.h>

enum copies_by { COPIES_VLLM, COPIES_MEMORY_SAVER };

/* Host bytes for the copy of a segment of that size. */
uint64_t copies_bytes(enum copies_by by, uint64_t segment_bytes);

/* Whether the bytes stay pinned after the wake-up. `release` is that of torch_memory_saver: 9 for
 * 0.0.9, 0: the newest; `retain`: retain_cpu_backup. */
bool copies_stay(enum copies_by by, uint32_t release, bool retain);

#endif
