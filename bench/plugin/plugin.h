/* What liballocrig_torch.so offers. Addresses are device memory of the card's primary context;
 * streams are cudaStream_t, which are CUstream. Any thread may call. README.md shows how the
 * frameworks do.
 *
 * The environment: ALLOCRIG_POLICY a policy spec (torch), ALLOCRIG_STATS a file for figures at exit
 * ("-": standard error), ALLOCRIG_VERBOSE=1 a few of them for people, ALLOCRIG_TRACE a file that
 * records what was asked for. "%p" in a file's name stands for the process' number. */
#ifndef BENCH_PLUGIN_PLUGIN_H
#define BENCH_PLUGIN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/base/api.h"

/* ---- PyTorch: torch.cuda.memory.CUDAPluggableAllocator --------------------------------------- */

/* Zero bytes give NULL. A request that cannot be served raises PyTorch's error where PyTorch is in
 * the process; else NULL with a sentence on standard error. */
AR_API void *allocrig_malloc(ssize_t size, int device, void *stream);
/* NULL does nothing. An address where no block starts is said on standard error, once. */
AR_API void allocrig_free(void *address, ssize_t size, int device, void *stream);

/* For the setters of the object that CUDAPluggableAllocator.allocator() gives; all optional. */
AR_API void allocrig_record_stream(void *address, void *stream);   /* set_record_stream_fn */
AR_API void allocrig_empty_cache(void);                            /* set_reset_fn */
AR_API void allocrig_memory_fraction(double fraction, int device); /* set_memory_fraction_fn */
AR_API void *allocrig_base_alloc(void *address, size_t *bytes);    /* set_base_alloc_fn */

/* MempoolId_t, std::pair<unsigned long long, unsigned long long>, which is passed as such a struct
 * is; and a std::function, by address, which is not called (card.h, rule 5). */
struct allocrig_pool_id {
    unsigned long long first, second;
};

AR_API void allocrig_begin_pool(int device, struct allocrig_pool_id id,
                                void *filter); /* set_begin_allocate_to_pool */
AR_API void allocrig_end_pool(int device,
                              struct allocrig_pool_id id); /* set_end_allocate_to_pool_fn */
AR_API void allocrig_release_pool(int device, struct allocrig_pool_id id); /* set_release_pool */

/* ---- CuPy: cupy.cuda.CFunctionAllocator ------------------------------------------------------ */

/* `stream`, CuPy's parameter, is the stream that all of the allocator's blocks are for, 0 the
 * default one. A request that cannot be served is NULL, with a MemoryError set where the
 * interpreter's lock is held, else with a sentence on standard error. */
AR_API void *allocrig_cupy_malloc(void *stream, size_t size, int device);
AR_API void allocrig_cupy_free(void *stream, void *address, int device);

/* ---- anybody --------------------------------------------------------------------------------- */

/* A figure of the card by its name in the statistics, "peak_physical_bytes"; UINT64_MAX: no such
 * name, or nothing was asked for on that card yet. */
AR_API uint64_t allocrig_figure(int device, const char *name);
/* Peaks start again from what is held now. */
AR_API void allocrig_reset_peaks(int device);
/* The statistics of the card in the names of torch.cuda.memory_stats(), a line "NAME VALUE" for
 * each: all of them under the policy `torch`, those that are known under another one. Returns how
 * many bytes that takes with the NUL; 0: nothing was requested on that card yet. Writes as much as
 * fits. */
AR_API size_t allocrig_statistics(int device, char *text, size_t text_bytes);

/* A range of memory that the policy holds: state 0 used, 1 free, 2 pending, 3 address space without
 * memory, 4 a header. `pool` names the private pool, 0, 0 is the common one. */
struct allocrig_range {
    uint64_t address, bytes, requested_bytes, segment_address;
    void *stream;
    unsigned long long pool[2];
    uint32_t state;
};

/* All ranges of the card in the order of addresses within their segment. Returns how many there are
 * and writes the first `room`. */
AR_API size_t allocrig_ranges(int device, struct allocrig_range *out, size_t room);
/* A mark in the recording; "step" ends a step. */
AR_API void allocrig_mark(const char *label);

#endif
