/* Host memory, handed in: whoever keeps metadata takes it from here, so that the
 * bytes it costs are measured and a test can make any of these calls fail. */
#ifndef ALLOCATORS_BASE_HOST_H
#define ALLOCATORS_BASE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

struct ar_host {
    uint64_t now_bytes;  /* asked for and not given back */
    uint64_t peak_bytes; /* the most of it so far */
    uint64_t calls;      /* allocations made so far */
    uint64_t fail_at;    /* the call with this number (from 1) returns NULL; 0: none does */
};

/* Zeroed memory of `bytes`, or NULL. The caller gives it back with ar_host_free and
 * the same number of bytes. */
AR_API void *ar_host_alloc(struct ar_host *host, size_t bytes);
AR_API void ar_host_free(struct ar_host *host, void *memory, size_t bytes);

/* Grows an array of `old_count` elements to `new_count`, keeping what is there and
 * zeroing the rest. NULL leaves the old one as it was. */
AR_API void *ar_host_grow(struct ar_host *host, void *memory, size_t old_count, size_t new_count,
                          size_t element_bytes);

AR_END_DECLS

#endif
