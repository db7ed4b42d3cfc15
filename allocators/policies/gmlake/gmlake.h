/* The allocator of GMLake: PyTorch's caching allocator, plus physical pages that are mapped a
 * second time to make one block of several free ones ("stitching").
 *
 *   gmlake.c   options, the order of decisions in malloc and free, inspection
 *   pieces.c   physical blocks: made, cut, merged, released
 *   views.c    stitched blocks: made, reused, collected
 *
 * 1. Requests up to 1 MiB are served as in PyTorch, from driver allocations of 2 MiB.
 * 2. Larger requests are rounded to 2 MiB. A physical block is a piece of a reserved range; each of
 *    its pages of 2 MiB is a handle of its own. Blocks are cut if 2 MiB or more are left and merge
 *    with free neighbours.
 * 3. A view is a reserved range onto which pages of several physical blocks are mapped. It is
 *    active (handed out), free (all of its pages are free), or fragmented: some page is used at
 *    another address, and the view cannot be handed out.
 * 4. malloc takes, in this order: the best fitting free block; the best fitting free view, if it is
 *    at most reuse_limit times the request; a new view (stitch 0); new memory; a new view (stitch
 *    1); new memory after all cached blocks were released; a new view (stitch 2). defrag_level says
 *    which stitches are tried.
 * 5. A stitch takes free blocks of the stream, the largest first, until they suffice. The last one
 *    is cut. Requests below frag_limit are never stitched.
 * 6. Views are kept when they are freed. Views that are not active are destroyed when the address
 *    space of all views exceeds auto_gc, or when no more can be reserved, in the order in which
 *    they were freed, as far as the work that used them is done. */
#pragma once

#include "allocators/base/most_tree.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/deferred.h"
#include "allocators/heap.h"

#define GMLAKE_PAGE_BYTES  (2 * AR_MIB)
#define GMLAKE_UNIT_BYTES  UINT64_C(512)
#define GMLAKE_SMALL_BYTES AR_MIB

struct gmlake_page {
    ar_backing_handle handle;
    uint32_t piece; /* that starts with this page; 0: none */
    uint32_t refs;  /* the first view that maps it; 0: none */
    bool used;      /* by a block, at any address */
};

/* A view in the list of a page. */
struct gmlake_ref {
    uint32_t view, next;
};

/* What a piece has in addition to its span. */
struct gmlake_piece {
    struct gmlake_page *pages; /* its first page; NULL: a small block */
};

/* Marks of a used span. */
enum gmlake_mark { GMLAKE_HANDED_OUT, GMLAKE_PENDING, GMLAKE_IN_VIEW };

/* A reserved range with physical memory. */
struct gmlake_run {
    uint64_t address;
    uint32_t count;
    struct gmlake_page *pages;
};

enum gmlake_state { GMLAKE_FREE, GMLAKE_FRAGMENTED, GMLAKE_ACTIVE };

struct gmlake_view {
    uint64_t address;
    uint64_t requested_bytes;
    struct gmlake_page **pages;
    uint32_t count, room; /* mapped pages; pages that it was made for */
    uint32_t used;        /* of these by its block, from the first on */
    uint32_t free_pages;
    uint32_t *pieces; /* that its block uses */
    uint32_t piece_count, piece_room;
    uint32_t stream;
    uint32_t node;           /* in the tree of free views, while it is free */
    uint32_t previous, next; /* in the order of frees, while not active */
    struct ar_backing_ticket last_use;
    uint8_t state;
    bool pending; /* the free of its block is requested, and other streams use it */
    bool doomed;  /* has lost pages: destroyed when it is freed */
};

struct gmlake_slot {
    struct gmlake_view *view; /* NULL: spare */
    uint32_t next_spare;
    uint32_t by_address; /* element k: the k-th view by address */
};

/* What a stream has in addition to the lists of the heap. */
struct gmlake_stream {
    uint32_t free_views;  /* a tree by size and address */
    uint32_t first, last; /* views that are not active, in the order of frees */
};

struct gmlake_values {
    struct ar_policy_common common;
    uint64_t frag_limit_bytes, auto_gc_bytes, defrag_level;
    double reuse_limit, fraction;
    bool realloc_missing, defragment;
};

/* The backing of the heap: driver allocations for small blocks, pages for large ones. */
struct gmlake_memory {
    struct ar_backing base;
    struct ar_backing *below;
    struct ar_host *host;
    struct gmlake_run *runs; /* by address */
    uint32_t run_count, run_room;
    bool paged; /* the next segment has pages */
};

struct gmlake {
    struct ar_policy base;
    struct gmlake_memory memory;
    struct heap heap; /* list 2 s + 1: small blocks of stream s; 2 s: large ones */
    struct gmlake_piece *pieces;
    uint32_t piece_room, stream_room;
    struct gmlake_slot *slots; /* of views; slot 0 is not used */
    uint32_t slot_count, slot_room, spare_slot, view_count;
    struct gmlake_ref *refs;                             /* record 0 is not used */
    uint32_t ref_count, ref_room, spare_ref, spare_refs; /* made, allocated; spare */
    struct gmlake_stream *streams;
    struct ar_most_tree *largest; /* free block, by list; NULL: lists are few, or the host has no
                                     memory for it */
    struct ar_range_pool nodes;
    struct deferred deferred;
    struct gmlake_values values;
    uint64_t limit_bytes;
    uint64_t view_bytes; /* address space of all views */
    uint64_t stitches, views_freed, flushes, retries, failures;
    uint32_t last_stream;
    enum ar_status fault; /* of the backing, other than REFUSED: stops the run */
};

static inline uint32_t gmlake_list(uint32_t stream, bool small)
{
    return 2 * stream + small;
}

/* Called after every change of a list of free blocks. */
static inline void gmlake_list_changed(struct gmlake *self, uint32_t list)
{
    if (__builtin_expect(self->largest != NULL, 0))
        ar_most_tree_set(self->largest, list, heap_largest(&self->heap, list));
}

/* pieces.c */
void gmlake_memory_open(struct gmlake_memory *self, const struct ar_policy_context *context);
void gmlake_memory_close(struct gmlake_memory *self);
bool gmlake_reserve_more(struct gmlake *self, uint32_t count);
void gmlake_split(struct gmlake *self, uint32_t piece, uint64_t bytes);
void gmlake_give(struct gmlake *self, uint32_t piece);
void gmlake_use_pages(struct gmlake *self, uint32_t piece);
void gmlake_free_pages(struct gmlake *self, uint32_t piece);
enum ar_status gmlake_grow(struct gmlake *self, uint32_t list, uint64_t bytes, uint32_t *piece);
enum ar_status gmlake_release_cached(struct gmlake *self);
void gmlake_wait(struct gmlake *self);

/* Makes sure that `count` pieces can be made. */
static inline bool gmlake_reserve_pieces(struct gmlake *self, uint32_t count)
{
    const struct ar_spans *spans = &self->heap.spans;
    bool there = spans->spare_count >= count && self->piece_room >= spans->count;
    return __builtin_expect(there, 1) || gmlake_reserve_more(self, count);
}

/* views.c: view 0 means none. */
enum ar_status gmlake_stitch(struct gmlake *self, uint32_t stream, uint64_t bytes, uint32_t *view);
enum ar_status gmlake_reuse(struct gmlake *self, uint32_t stream, uint64_t bytes, uint32_t *view);
void gmlake_view_freed(struct gmlake *self, uint32_t view);
void gmlake_collect(struct gmlake *self, unsigned round, uint64_t wanted_bytes);
void gmlake_view_page_used(struct gmlake *self, const struct gmlake_page *page);
void gmlake_view_page_freed(struct gmlake *self, const struct gmlake_page *page);
void gmlake_forget_page(struct gmlake *self, struct gmlake_page *page);

/* Most pages are in no view. */
static inline void gmlake_page_used(struct gmlake *self, struct gmlake_page *page)
{
    page->used = true;
    if (__builtin_expect(page->refs != 0, 0))
        gmlake_view_page_used(self, page);
}

static inline void gmlake_page_freed(struct gmlake *self, struct gmlake_page *page)
{
    page->used = false;
    if (__builtin_expect(page->refs != 0, 0))
        gmlake_view_page_freed(self, page);
}

void gmlake_views_close(struct gmlake *self);
