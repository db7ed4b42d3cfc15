/* The host memory of metadata. Policies and indices take it from an ar_host, so that its bytes are
 * measured and a test can make any of the calls fail. */
#ifndef ALLOCATORS_BASE_HOST_H
#define ALLOCATORS_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

struct ar_host {
    uint64_t now_bytes;  /* allocated and not freed */
    uint64_t peak_bytes; /* the maximum of now_bytes */
    uint64_t calls;      /* allocations so far */
    uint64_t fail_at;    /* the call with this number (from 1) returns NULL; 0: none does */
    uint64_t failed;     /* calls that returned NULL: a policy may have done without */
};

/* Zeroed memory of `bytes`, or NULL. The caller frees it with ar_host_free and the same number of
 * bytes. */
AR_API void *ar_host_alloc(struct ar_host *host, size_t bytes);
AR_API void ar_host_free(struct ar_host *host, void *memory, size_t bytes);

/* Grows an array from `old_count` to `new_count` elements, keeps the old ones and zeroes the new
 * ones. NULL: the array is unchanged. */
AR_API void *ar_host_grow(struct ar_host *host, void *memory, size_t old_count, size_t new_count,
                          size_t element_bytes);

/* The same for an array that a struct holds by a pointer and a count of elements: `array` is the
 * address of the pointer. False: both are unchanged. */
AR_API bool ar_host_extend(struct ar_host *host, void *array, uint32_t *room, uint32_t new_room,
                           size_t element_bytes);

AR_END_DECLS

#endif
