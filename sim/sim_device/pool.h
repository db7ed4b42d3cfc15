/* The parts of the stream-ordered pool (async_pool.c says how it works): its row of addresses, the
 * lists of ranges that are not used, and its pages. */
#pragma once

#include "allocators/base/array.h"
#include "allocators/base/map.h"
#include "allocators/base/most_tree.h"
#include "allocators/base/size.h"
#include "allocators/base/span.h"
#include "sim/sim_device/state.h"

#define POOL_PAGE_BYTES (32 * AR_MIB)
#define UNIT_BYTES      UINT64_C(512)
#define ROW_MOST        (UINT64_C(1) << 44)
#define NO_PIECE        0u
#define NO_LIST         AR_MOST_TREE_NONE
#define FEW_LISTS       64u /* up to this number, lists are searched one by one */

/* Free ranges all of whose pages are there, and the others; then a list for each stream. */
enum { LIST_BACKED, LIST_BARE, LIST_STREAMS };

struct pool_page {
    uint32_t needed_bytes; /* used or pending */
    bool held;             /* there is memory behind it */
};

/* A point in the work of a stream. */
struct point {
    struct ar_backing_ticket ticket;
    uint64_t time_ns;
    uint64_t kernels; /* that the stream had been given */
};

/* What is known of a range that is not used. Indexed by piece of the row; record 0 is none. */
struct piece {
    uint32_t entry;     /* in its list */
    struct point freed; /* while it is pending, its last free, with the number in the stream */
    uint64_t sequence;
    uint32_t older, newer; /* in the order of the frees in one list; of all free ranges */
};

struct pool_list {
    struct ar_span_index index; /* of entries: by size, then by order */
    uint32_t oldest, newest;
    uint32_t stream;
    bool has_event;    /* one was recorded on the stream since its last free */
    bool waits;        /* nothing has followed its last wait */
    struct point wait; /* after that */
};

struct sim_pool {
    struct sim_device *device;
    struct ar_backing_pool settings;
    struct ar_host host;
    uint64_t row_address, row_bytes;
    struct ar_spans row;
    uint32_t last; /* the end of the row */
    struct piece *pieces;
    size_t piece_room;
    /* What is in a list: the order in which it came as the address, the piece as the owner. */
    struct ar_spans entries;
    uint64_t order; /* ranges that ever came to a list */
    struct pool_list *lists;
    size_t list_room;
    uint32_t list_count;
    uint32_t *stream_lists; /* by stream; 0: none yet */
    size_t stream_room;
    struct ar_most_tree largest; /* by list: its largest pending range; empty: few lists */
    struct ar_map blocks;        /* from address to piece */
    struct pool_page *pages;
    size_t page_room;
    uint64_t needed_pages, held_pages;
    uint64_t used_bytes;
    bool begun; /* it has served a request */
};

static inline struct ar_span *piece_at(const struct sim_pool *self, uint32_t piece)
{
    return &self->row.at[piece];
}

static inline bool is_free(const struct ar_span *span)
{
    return !span->used && span->owner < LIST_STREAMS;
}

static inline uint64_t page_of(const struct sim_pool *self, uint64_t address)
{
    return (address - self->row_address) / POOL_PAGE_BYTES;
}

static inline uint64_t last_page(const struct sim_pool *self, const struct ar_span *span)
{
    return page_of(self, span->address + span->bytes - 1);
}

/* pool_ranges.c */

/* Makes space for `count` lists. */
bool pool_lists_reach(struct sim_pool *self, uint32_t count);
/* The list of a stream, which begins with its first use; 0: no host memory. */
uint32_t pool_list_of(struct sim_pool *self, uint32_t stream);
/* Makes space for everything that one call can add. */
bool pool_reserve(struct sim_pool *self);
/* A range comes to a list, as the last of those of its size. */
void pool_list_put(struct sim_pool *self, uint32_t piece, uint32_t list);
void pool_list_remove(struct sim_pool *self, uint32_t piece);
/* Moves a free range to the other of the two lists. It keeps its place among its equals. */
void pool_list_move(struct sim_pool *self, uint32_t piece, uint32_t list);
/* The best fit in a list; NO_PIECE: none. */
uint32_t pool_list_best(struct sim_pool *self, uint32_t list, uint64_t bytes);
/* Its place among those of its size. */
uint64_t pool_order_of(const struct sim_pool *self, uint32_t piece);
/* The pending ranges of a list stand in the order of their last frees; the free ranges of both
 * lists in the order in which they became free. */
void pool_queue_add(struct sim_pool *self, uint32_t piece, uint32_t list);
void pool_queue_remove(struct sim_pool *self, uint32_t piece, uint32_t list);
/* `rest` remains of the pending range `piece`, and keeps its place in the queue. */
void pool_queue_replace(struct sim_pool *self, uint32_t piece, uint32_t rest, uint32_t list);
/* In the list and the queue. */
void pool_range_put(struct sim_pool *self, uint32_t piece, uint32_t list);
void pool_range_remove(struct sim_pool *self, uint32_t piece);
/* Two neighbours that are in no list become one, `left`. */
void pool_join(struct sim_pool *self, uint32_t left, uint32_t right);
/* Cuts a piece after `bytes`. The rest is in no list. */
uint32_t pool_cut(struct sim_pool *self, uint32_t piece, uint64_t bytes);

/* pool_pages.c */

/* Makes space for pages up to the end of a block. False: no host memory. */
bool pool_pages_reserve(struct sim_pool *self, uint64_t address, uint64_t bytes);
/* Adds the bytes of a block to its pages, or takes them off. */
void pool_pages_need(struct sim_pool *self, const struct ar_span *block, bool more);
bool pool_is_backed(const struct sim_pool *self, const struct ar_span *span);
/* Gives a block `count` of the pages that it lacks: `moved` from free ranges, then new ones. */
void pool_pages_fill(struct sim_pool *self, const struct ar_span *block, uint64_t moved,
                     uint64_t count);
/* Releases pages that are not needed while more than `keep_bytes` are held. */
void pool_pages_trim(struct sim_pool *self, uint64_t keep_bytes);
/* The same with the threshold as the bound. */
void pool_pages_release(struct sim_pool *self);
/* Obtains up to `count` pages from the device. Returns how many. */
uint64_t pool_pages_get(struct sim_pool *self, uint64_t count);
