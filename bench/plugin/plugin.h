/* What liballocrig_torch.so offers. Addresses are device memory of the card's primary context;
 * streams are cudaStream_t, which are CUstream. Any thread may call. README.md shows how to use it
 * in each framework.
 *
 * The environment: ALLOCRIG_POLICY a policy spec (torch), ALLOCRIG_STATS a file for the figures at
 * exit ("-": standard error), ALLOCRIG_VERBOSE=1 prints the main ones, ALLOCRIG_TRACE a file that
 * records the requests. "%p" in a file name is replaced by the process number. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/base/api.h"

/* ---- PyTorch: torch.cuda.memory.CUDAPluggableAllocator --------------------------------------- */

/* Zero bytes give NULL. A request that fails raises PyTorch's error if PyTorch is in the process;
 * else it returns NULL and writes a sentence to standard error. */
AR_API void *allocrig_malloc(ssize_t size, int device, void *stream);
/* NULL does nothing. The first address where no block starts is reported on standard error. */
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
 * default one. A request that fails returns NULL and sets a MemoryError if the thread has the
 * interpreter's lock, else it writes a sentence to standard error. */
AR_API void *allocrig_cupy_malloc(void *stream, size_t size, int device);
AR_API void allocrig_cupy_free(void *stream, void *address, int device);

/* ---- any program ----------------------------------------------------------------------------- */

/* A figure of the card by its name in the statistics, "peak_physical_bytes"; UINT64_MAX: no such
 * name, or no request on that card yet. */
AR_API uint64_t allocrig_figure(int device, const char *name);
/* Sets the peaks to the current values. */
AR_API void allocrig_reset_peaks(int device);
/* The statistics of the card in the names of torch.cuda.memory_stats(), a line "NAME VALUE" for
 * each: all of them under the policy `torch`, the known ones under any other. Returns the
 * number of bytes of the text with its NUL; 0: no request on that card yet. Writes as much as
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

/* All ranges of the card in the order of addresses within their segment. Returns their number and
 * writes the first `room`. */
AR_API size_t allocrig_ranges(int device, struct allocrig_range *out, size_t room);
/* A mark in the recording; "step" ends a step. */
AR_API void allocrig_mark(const char *label);
