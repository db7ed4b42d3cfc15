/* The memory interface below a policy. A device, simulated or CUDA, implements it. Addresses are
 * numbers and are never dereferenced.
 *
 * For all calls: sizes are in bytes and above 0. REFUSED: the device has no memory for the call
 * now, and nothing has changed. INVALID: misuse (an unknown range, a size that is not a multiple of
 * the page, an unmap under pending work), with a sentence from ar_backing_problem. Output
 * parameters are written only with OK. An optional hook may be NULL; the wrapper then returns
 * UNSUPPORTED. */
#ifndef ALLOCATORS_BACKING_H
#define ALLOCATORS_BACKING_H

#include "allocators/base/status.h"

AR_BEGIN_DECLS

struct ar_backing;

/* Physical memory from `create`, named by a number that is never used again. */
typedef uint64_t ar_backing_handle;

/* A point in the work of a stream, like an event that is recorded at the call. */
struct ar_backing_ticket {
    uint32_t stream;
    uint64_t value;
};

/* The settings of the stream-ordered pool of the driver: the attributes of cuMemPool. */
struct ar_backing_pool {
    uint64_t release_threshold_bytes; /* kept at a synchronisation; UINT64_MAX: everything */
    uint64_t most_bytes;              /* maximum of reserved bytes; 0: no limit */
    bool follow_events;               /* reuse memory of another stream if events order it */
    bool opportunistic;               /* reuse memory of another stream if its work is done */
    bool internal;                    /* let a stream wait for another before a request fails */
};

struct ar_backing_ops {
    /* Driver allocation and free, cuMemAlloc and cuMemFree. Any size is allowed; the device charges
     * whole pages, which small allocations share. The free waits for the device. */
    enum ar_status (*segment_alloc)(struct ar_backing *self, uint64_t bytes, uint64_t *address);
    enum ar_status (*segment_free)(struct ar_backing *self, uint64_t address);

    /* Virtual memory, optional as a group. Sizes and addresses are multiples of page_bytes. `map`
     * maps all of a handle at `address` in a reserved range where nothing is mapped; a handle may
     * be mapped at several addresses. `access` makes a run of mapped pages usable and must be
     * called once for each run. `unmap` must not be called before the work that uses the pages is
     * done. `destroy` destroys the handle; its memory is released when it is not mapped
     * anywhere. */
    enum ar_status (*reserve)(struct ar_backing *self, uint64_t bytes, uint64_t *address);
    enum ar_status (*release)(struct ar_backing *self, uint64_t address);
    enum ar_status (*create)(struct ar_backing *self, uint64_t bytes, ar_backing_handle *handle);
    enum ar_status (*destroy)(struct ar_backing *self, ar_backing_handle handle);
    enum ar_status (*map)(struct ar_backing *self, uint64_t address, ar_backing_handle handle);
    enum ar_status (*access)(struct ar_backing *self, uint64_t address, uint64_t bytes);
    enum ar_status (*unmap)(struct ar_backing *self, uint64_t address, uint64_t bytes);

    /* Order. `fence` marks the end of the work queued on `stream` so far. `done` polls. `wait`
     * blocks the caller until the work is done; that time counts as stall. */
    struct ar_backing_ticket (*fence)(struct ar_backing *self, uint32_t stream);
    bool (*done)(struct ar_backing *self, struct ar_backing_ticket ticket);
    void (*wait)(struct ar_backing *self, struct ar_backing_ticket ticket);

    /* Optional: later work of `stream` waits for the ticket, the caller does not. Without this hook
     * the caller waits. */
    void (*order)(struct ar_backing *self, uint32_t stream, struct ar_backing_ticket ticket);

    /* The free bytes for this process, and the total (cuMemGetInfo). */
    void (*memory)(struct ar_backing *self, uint64_t *free_bytes, uint64_t *total_bytes);

    /* The stream-ordered pool of the driver, optional as a group. Used bytes are requested and not
     * freed; reserved bytes are those that the pool obtained from the device. A trim releases free
     * memory until at most `keep_bytes` are reserved. */
    enum ar_status (*pool_alloc)(struct ar_backing *self, uint64_t bytes, uint32_t stream,
                                 uint64_t *address);
    enum ar_status (*pool_free)(struct ar_backing *self, uint64_t address, uint32_t stream);
    enum ar_status (*pool_trim)(struct ar_backing *self, uint64_t keep_bytes);
    void (*pool_memory)(struct ar_backing *self, uint64_t *used_bytes, uint64_t *reserved_bytes);

    /* The sentence for the last INVALID. */
    const char *(*problem)(struct ar_backing *self);

    /* Sets up the pool, before its first allocation. */
    enum ar_status (*pool_open)(struct ar_backing *self, const struct ar_backing_pool *settings);

    /* Optional: the same as a fence and its wait for each of the streams below `count`. */
    void (*wait_streams)(struct ar_backing *self, uint32_t count);

    /* Optional: whether a limit that the policy does not know refuses it `bytes` more. A recording
     * has the effects of a limit without its value. */
    bool (*limits)(struct ar_backing *self, uint64_t bytes);

    /* Optional as a group: copies of mapped memory to other mapped memory, to host memory and from
     * it, after all work of the device. The caller waits for their end. */
    enum ar_status (*copy)(struct ar_backing *self, uint64_t to, uint64_t from, uint64_t bytes);
    enum ar_status (*copy_out)(struct ar_backing *self, void *to, uint64_t from, uint64_t bytes);
    enum ar_status (*copy_in)(struct ar_backing *self, uint64_t to, const void *from,
                              uint64_t bytes);
};

struct ar_backing {
    const struct ar_backing_ops *ops;
    uint64_t granule_bytes; /* driver allocations start at multiples of this; sizes need not be */
    uint64_t page_bytes;    /* of virtual memory; 0: there is none */
    bool adjacent;          /* segments may touch, so a supply can coalesce them */
};

/* For a backing that forwards to another one: clears the optional hooks that `has` lacks, because
 * policies test for them. */
static inline void ar_backing_ops_offer(struct ar_backing_ops *ops,
                                        const struct ar_backing_ops *has)
{
#define OFFER(hook) (ops->hook = has->hook ? ops->hook : NULL)
    OFFER(reserve);
    OFFER(release);
    OFFER(create);
    OFFER(destroy);
    OFFER(map);
    OFFER(access);
    OFFER(unmap);
    OFFER(order);
    OFFER(copy);
    OFFER(copy_out);
    OFFER(copy_in);
    OFFER(pool_open);
    OFFER(pool_alloc);
    OFFER(pool_free);
    OFFER(pool_trim);
    OFFER(pool_memory);
    OFFER(limits);
#undef OFFER
}

static inline enum ar_status ar_backing_segment_alloc(struct ar_backing *self, uint64_t bytes,
                                                      uint64_t *address)
{
    return self->ops->segment_alloc(self, bytes, address);
}

static inline enum ar_status ar_backing_segment_free(struct ar_backing *self, uint64_t address)
{
    return self->ops->segment_free(self, address);
}

static inline enum ar_status ar_backing_reserve(struct ar_backing *self, uint64_t bytes,
                                                uint64_t *address)
{
    return self->ops->reserve ? self->ops->reserve(self, bytes, address) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_release(struct ar_backing *self, uint64_t address)
{
    return self->ops->release ? self->ops->release(self, address) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_create(struct ar_backing *self, uint64_t bytes,
                                               ar_backing_handle *handle)
{
    return self->ops->create ? self->ops->create(self, bytes, handle) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_destroy(struct ar_backing *self, ar_backing_handle handle)
{
    return self->ops->destroy ? self->ops->destroy(self, handle) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_map(struct ar_backing *self, uint64_t address,
                                            ar_backing_handle handle)
{
    return self->ops->map ? self->ops->map(self, address, handle) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_access(struct ar_backing *self, uint64_t address,
                                               uint64_t bytes)
{
    return self->ops->access ? self->ops->access(self, address, bytes) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_unmap(struct ar_backing *self, uint64_t address,
                                              uint64_t bytes)
{
    return self->ops->unmap ? self->ops->unmap(self, address, bytes) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_copy(struct ar_backing *self, uint64_t to, uint64_t from,
                                             uint64_t bytes)
{
    return self->ops->copy ? self->ops->copy(self, to, from, bytes) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_copy_out(struct ar_backing *self, void *to, uint64_t from,
                                                 uint64_t bytes)
{
    return self->ops->copy_out ? self->ops->copy_out(self, to, from, bytes) : AR_UNSUPPORTED;
}

static inline enum ar_status ar_backing_copy_in(struct ar_backing *self, uint64_t to,
                                                const void *from, uint64_t bytes)
{
    return self->ops->copy_in ? self->ops->copy_in(self, to, from, bytes) : AR_UNSUPPORTED;
}

static inline struct ar_backing_ticket ar_backing_fence(struct ar_backing *self, uint32_t stream)
{
    return self->ops->fence(self, stream);
}

static inline bool ar_backing_done(struct ar_backing *self, struct ar_backing_ticket ticket)
{
    return self->ops->done(self, ticket);
}

static inline void ar_backing_wait(struct ar_backing *self, struct ar_backing_ticket ticket)
{
    self->ops->wait(self, ticket);
}

static inline void ar_backing_wait_streams(struct ar_backing *self, uint32_t count)
{
    if (self->ops->wait_streams) {
        self->ops->wait_streams(self, count);
        return;
    }
    for (uint32_t stream = 0; stream < count; stream++)
        ar_backing_wait(self, ar_backing_fence(self, stream));
}

static inline void ar_backing_order(struct ar_backing *self, uint32_t stream,
                                    struct ar_backing_ticket ticket)
{
    if (self->ops->order)
        self->ops->order(self, stream, ticket);
    else
        self->ops->wait(self, ticket);
}

static inline void ar_backing_memory(struct ar_backing *self, uint64_t *free_bytes,
                                     uint64_t *total_bytes)
{
    self->ops->memory(self, free_bytes, total_bytes);
}

static inline const char *ar_backing_problem(struct ar_backing *self)
{
    return self->ops->problem(self);
}

AR_END_DECLS

#endif
