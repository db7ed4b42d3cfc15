/* The virtual block of VulkanMemoryAllocator (VmaVirtualBlock; vk_mem_alloc.h at e386068, version
 * 3.4.0 in development): places blocks in one range of fixed size. Sizes are not rounded; offsets
 * are aligned as the request says.
 *
 * Free blocks that touch are always merged. The free block at the end of the range, the "null
 * block" of VMA, is in no list. The default algorithm is two-level segregated fit
 * (VmaBlockMetadata_TLSF):
 *
 * 1. There is a class for each 8 bytes up to 256 bytes, and 32 classes for each power of two above.
 *    The block that was freed last is first in its class.
 * 2. The search looks at the next class above that of the request, where every block is large
 *    enough but perhaps not aligned, at the class of the request, and at the null block. The
 *    strategy gives the order: balanced (no flag) next class, null block, own class; min_memory
 *    own class, null block, next class; min_time the first block of the next class, null block,
 *    next class, own class. "Next" and "own" are the lowest class from there on that has a block,
 *    and all of its blocks are tried. Then all classes above the next one are tried
 *    (CreateAllocationRequest, FindFreeBlock).
 * 3. min_offset takes the first free block in the order of offsets.
 * 4. The request uses the lowest aligned offset of the block. What is left before and after it
 *    stays free (Alloc).
 *
 * The linear algorithm (VmaBlockMetadata_Linear) looks at the ends of two sequences of blocks:
 *
 * 5. A request goes behind the last block of the first sequence.
 * 6. If it does not fit there, it starts a second sequence below the first, a ring buffer. From
 *    then on requests go behind the last block of the second sequence, up to the first block of the
 *    first one. When the first sequence is empty, the second one takes its place.
 * 7. A request for the upper end (VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT) goes below the
 *    last block of a second sequence at the end of the range, a double stack. In a ring buffer it
 *    fails.
 * 8. What is freed between two live blocks of a sequence cannot be used before one of these ends is
 *    freed.
 *
 * VMA looks at the blocks of a class, and for min_offset at all blocks, one by one. Once a search
 * has been long, an index finds the same block without that (`struct many_blocks`).
 *
 * VMA aligns offsets in the block. Here addresses are aligned, which is the same if the range is
 * aligned. VMA keeps its map of classes in 32 bits, so a range has less than 512 GiB here. */
#include "allocators/base/parts.h"
#include "allocators/base/range_tree.h"
#include "allocators/base/size.h"
#include "allocators/region.h"

#define SMALL_BYTES     UINT64_C(256)
#define SMALL_STEP_LOG2 3u
#define SECOND_LOG2     5u
#define UNIT_BYTES      UINT64_C(256) /* of the region */
#define MOST_BYTES      ((UINT64_C(1) << 39) - UNIT_BYTES)
/* Of the null block: above all classes of sizes, so no search finds it. */
#define NULL_CLASS (AR_CLASSES - 1)
/* A search that looks at more blocks in vain makes the index. */
#define FEW_BLOCKS 1024u

enum strategy {
    BALANCED,
    MIN_MEMORY,
    MIN_TIME,
    MIN_OFFSET,
};

/* What the second sequence of the linear algorithm is. */
enum second_mode {
    SECOND_EMPTY,
    SECOND_RING,
    SECOND_STACK,
};

struct vma_values {
    struct ar_policy_common common;
    struct region_values region;
    uint64_t alignment;
    int linear, strategy;
};

struct linear {
    uint64_t counts[2];             /* live blocks, by mark */
    uint8_t mode;                   /* enum second_mode */
    uint8_t first_mark;             /* the mark of the blocks of the first sequence, 0 or 1 */
    uint32_t first_head, first_end; /* the lowest and highest block of the first; 0: none */
    uint32_t second_end;            /* the block that was added last; 0: none */
};

/* The free blocks in the order in which they are tried, with the bytes that each has for a request
 * with the usual alignment: a tree for each class, for min_offset one tree. A block that has none
 * is left out. `extra` of a node is its block, whose mark is the node; 0: left out. */
struct many_blocks {
    struct ar_range_pool pool;
    uint64_t rank; /* of the block that was freed last, the address of its node; counts down */
    uint32_t roots[NULL_CLASS];
};

struct vma {
    struct ar_policy base;
    struct ar_backing *backing;
    struct ar_host *host;
    struct region region;
    struct ar_parts blocks;   /* mark: the sequence of a used block */
    struct many_blocks *many; /* NULL: none */
    struct linear sequences;
    uint32_t first;          /* the block at the start of the region */
    bool linear, next_first; /* next_first: rule 2 begins with the next class */
    bool wants_many;
    uint8_t strategy;
    uint64_t alignment;  /* of every request */
    uint64_t misaligned; /* bits that are clear in an address at which `serve` places: those below
                            the alignment; all if there is an index, so that `alloc_any` places */
    uint64_t failures;
};

static const struct ar_option vma_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    REGION_OPTIONS(vma_values, region),
    {"algorithm", AR_OPTION_CHOICE, offsetof(struct vma_values, linear), "tlsf", 0, 0,
     "tlsf|linear", "segregated fit, or the ends of a ring buffer or a double stack"},
    {"strategy", AR_OPTION_CHOICE, offsetof(struct vma_values, strategy), "balanced", 0, 0,
     "balanced|min_memory|min_time|min_offset", "tlsf: which free blocks are tried first"},
    {"alignment", AR_OPTION_BYTES, offsetof(struct vma_values, alignment), "0", 0, 1073741824, NULL,
     "alignment of each request, a power of two; 0: 1 if the granule of the device is 1, else 256"},
    {0},
};

/* ---- free blocks ----------------------------------------------------------------------------- */

/* The exponent and five more bits of a size as a double are the class of a size above the small
 * ones. A size of more than 53 bits may be rounded up, to a class that has no block either. */
AR_INLINE size_t large_class(uint64_t bytes)
{
    double size = (double)(int64_t)bytes;
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    return (bits >> (52 - SECOND_LOG2)) - ((1023u + 7u) << SECOND_LOG2);
}

static inline size_t class_of(uint64_t bytes)
{
    if (__builtin_expect(bytes <= SMALL_BYTES, 0))
        return ar_part_number(bytes - 1) >> SMALL_STEP_LOG2;
    return large_class(bytes);
}

/* The next class above. */
static inline size_t class_above(uint64_t bytes)
{
    if (__builtin_expect(bytes <= SMALL_BYTES, 0))
        return ar_part_number((bytes - 1) >> SMALL_STEP_LOG2) + 1;
    return large_class(bytes) + 1;
}

static inline uint32_t null_block(const struct vma *self)
{
    return self->blocks.heads[NULL_CLASS];
}

/* What a request with the usual alignment can have of a range. */
static uint64_t aligned_part(const struct vma *self, uint64_t start, uint64_t end)
{
    uint64_t aligned = ar_size_round_up(start, self->alignment);
    return aligned < end ? end - aligned : 0;
}

/* ---- many free blocks ------------------------------------------------------------------------ */

static void many_close(struct vma *self)
{
    if (!self->many)
        return;
    ar_range_pool_close(&self->many->pool);
    ar_host_free(self->host, self->many, sizeof *self->many);
    self->many = NULL;
}

/* Any block may be freed before the next request, and that request can add three. */
static bool many_ready(struct vma *self)
{
    struct ar_range_pool *pool = &self->many->pool;
    uint32_t taken = pool->made - 1 - pool->spare_count;
    return ar_range_pool_reserve(pool, ar_parts_count(&self->blocks) + 3 - taken);
}

static uint32_t *many_root(const struct vma *self, size_t class)
{
    return &self->many->roots[self->strategy == MIN_OFFSET ? 0 : class];
}

/* A block became free. */
static void many_add(struct vma *self, size_t block, uint64_t rank)
{
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    struct ar_range_pool *pool = &self->many->pool;
    uint64_t bytes = aligned_part(self, part->address, ar_part_end(part));
    part->mark = 0;
    if (!bytes || (part->class_index == NULL_CLASS && self->strategy != MIN_OFFSET))
        return;
    part->mark = ar_range_pool_take(pool);
    pool->nodes[part->mark].address = self->strategy == MIN_OFFSET ? part->address : rank;
    pool->nodes[part->mark].bytes = bytes;
    pool->nodes[part->mark].extra = block;
    ar_range_tree_insert(pool, many_root(self, part->class_index), AR_RANGE_BY_ADDRESS, part->mark);
}

/* A block, if it is free, will be it no more. */
static void many_remove(struct vma *self, size_t block)
{
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    if (ar_part_is_used(part) || !part->mark)
        return;
    ar_range_tree_remove(&self->many->pool, many_root(self, part->class_index), AR_RANGE_BY_ADDRESS,
                         part->mark);
    ar_range_pool_give(&self->many->pool, part->mark);
    part->mark = 0;
}

/* Without memory searches remain long, and in a region at address 0, where no bit is set. A replay
 * calls the hooks that it once read, so the index must do with those. */
static __attribute__((noinline)) void many_open(struct vma *self)
{
    self->wants_many = false;
    self->many = self->region.address ? ar_host_alloc(self->host, sizeof *self->many) : NULL;
    if (!self->many)
        return;
    ar_range_pool_open(&self->many->pool, self->host);
    if (!many_ready(self)) {
        many_close(self);
        return;
    }
    self->many->rank = UINT64_C(1) << 62;
    uint64_t rank = self->many->rank;
    for (size_t class = 0; class <= NULL_CLASS; class ++)
        for (size_t block = self->blocks.heads[class]; block;
             block = AR_PART(self->blocks.at, block).right)
            many_add(self, block, ++rank);
    self->misaligned = UINT64_MAX;
}

/* A block that is in no list becomes free. */
AR_INLINE void put(struct vma *self, size_t block, uint64_t bytes, const bool plain)
{
    if (__builtin_expect(AR_PART(self->blocks.at, block).next != 0, 1))
        ar_parts_put(&self->blocks, block, class_of(bytes), true);
    else
        ar_parts_push(&self->blocks, block, NULL_CLASS);
    if (!plain)
        ar_policy_free_added(&self->base, bytes);
    if (!plain && self->many)
        many_add(self, block, --self->many->rank);
}

/* Uses `bytes` of a free block from `address` on. Two records must be spare. */
static __attribute__((noinline)) size_t place(struct vma *self, size_t block, uint64_t address,
                                              uint64_t bytes)
{
    struct ar_part *at = self->blocks.at;
    uint64_t rest_bytes = AR_PART(at, block).bytes;
    ar_policy_free_removed(&self->base, rest_bytes);
    if (self->many)
        many_remove(self, block);
    ar_parts_remove(&self->blocks, block, AR_PART(at, block).class_index);
    self->base.totals.releasable_bytes = 0;
    uint64_t gap = address - AR_PART(at, block).address;
    if (gap) {
        rest_bytes -= gap;
        size_t aligned =
            ar_parts_cut(&self->blocks, block, &AR_PART(at, block), gap, rest_bytes, 0);
        put(self, block, gap, false);
        block = aligned;
    }
    AR_PART(at, block).class_index = AR_PART_USED;
    rest_bytes -= bytes;
    if (rest_bytes)
        put(self, ar_parts_cut(&self->blocks, block, &AR_PART(at, block), bytes, rest_bytes, 0),
            rest_bytes, false);
    return block;
}

/* Whether the free block holds the request. `address` is where. */
static inline bool holds(const struct vma *self, size_t block, uint64_t bytes, uint64_t alignment,
                         uint64_t *address)
{
    const struct ar_part *part = &AR_PART(self->blocks.at, block);
    *address = ar_size_round_up(part->address, alignment);
    return part->bytes >= bytes + (*address - part->address);
}

/* ---- segregated fit: rules 1 to 4 ------------------------------------------------------------ */

struct wanted {
    uint64_t bytes, alignment;
    uint64_t address; /* where it is placed */
};

static inline uint32_t in_null(const struct vma *self, struct wanted *wanted)
{
    uint32_t block = null_block(self);
    return block && holds(self, block, wanted->bytes, wanted->alignment, &wanted->address) ? block
                                                                                           : 0;
}

static inline uint32_t in_head(const struct vma *self, size_t class, struct wanted *wanted)
{
    uint32_t block = self->blocks.heads[class];
    return holds(self, block, wanted->bytes, wanted->alignment, &wanted->address) ? block : 0;
}

/* The first block of a tree that holds the request; 0: none. With the usual alignment that is the
 * first one that is looked at; with a coarser one many may be, each for a few steps. */
static uint32_t in_tree(const struct vma *self, uint32_t root, struct wanted *wanted)
{
    const struct ar_range_node *nodes = self->many->pool.nodes;
    while (root && nodes[root].most_bytes >= wanted->bytes) {
        const struct ar_range_node *node = &nodes[root];
        uint32_t block = in_tree(self, node->left, wanted);
        if (block)
            return block;
        if (node->bytes >= wanted->bytes &&
            holds(self, node->extra, wanted->bytes, wanted->alignment, &wanted->address))
            return (uint32_t)node->extra;
        root = node->right;
    }
    return 0;
}

/* The first block of a class that holds the request; 0: none. */
static inline uint32_t in_class(struct vma *self, size_t class, struct wanted *wanted)
{
    uint32_t block = self->blocks.heads[class];
    uint32_t looked = 0;
    if (self->many)
        return in_tree(self, *many_root(self, class), wanted);
    while (block && !holds(self, block, wanted->bytes, wanted->alignment, &wanted->address)) {
        block = AR_PART(self->blocks.at, block).right;
        looked++;
    }
    self->wants_many |= looked > FEW_BLOCKS;
    return block;
}

/* The same for the lowest class from `class` on that has a block. */
static uint32_t from_class(struct vma *self, size_t class, struct wanted *wanted)
{
    struct ar_class found;
    return ar_parts_find(&self->blocks, class, &found) ? in_class(self, found.index, wanted) : 0;
}

static uint32_t by_offset(struct vma *self, struct wanted *wanted)
{
    const struct ar_part *at = self->blocks.at;
    uint32_t block = self->first;
    uint32_t looked = 0;
    if (self->many)
        return in_tree(self, *many_root(self, 0), wanted);
    while (block && (ar_part_is_used(&AR_PART(at, block)) ||
                     !holds(self, block, wanted->bytes, wanted->alignment, &wanted->address))) {
        block = AR_PART(at, block).next;
        looked++;
    }
    self->wants_many |= looked > FEW_BLOCKS;
    return block;
}

static uint32_t find_fit(struct vma *self, struct wanted *wanted)
{
    if (self->strategy == MIN_OFFSET)
        return by_offset(self, wanted);
    size_t own = class_of(wanted->bytes);
    struct ar_class next = {0};
    bool has_next = ar_parts_find(&self->blocks, own + 1, &next);
    uint32_t block = 0;
    if (!has_next)
        ar_parts_none_from(&self->blocks, own + 1);
    if (self->strategy == MIN_MEMORY) {
        block = from_class(self, own, wanted);
        if (!block)
            block = in_null(self, wanted);
        if (!block && has_next)
            block = in_class(self, next.index, wanted);
    } else {
        if (self->strategy == BALANCED && has_next)
            block = in_class(self, next.index, wanted);
        if (self->strategy == MIN_TIME && has_next)
            block = in_head(self, next.index, wanted);
        if (!block)
            block = in_null(self, wanted);
        if (!block && self->strategy == MIN_TIME && has_next)
            block = in_class(self, next.index, wanted);
        if (!block)
            block = from_class(self, own, wanted);
    }
    while (!block && has_next && ar_parts_find(&self->blocks, next.index + 1, &next))
        block = in_class(self, next.index, wanted);
    return block;
}

/* ---- the linear algorithm: rules 5 to 8 ------------------------------------------------------ */

/* A range in which a request can be placed, in one free block. */
struct space {
    uint64_t start, end;
    uint32_t block; /* may not be there if the range is empty */
};

static uint32_t first_used(const struct vma *self)
{
    const struct ar_part *first = &AR_PART(self->blocks.at, self->first);
    return ar_part_is_used(first) ? self->first : first->next;
}

static uint32_t used_after(const struct ar_part *at, uint32_t block)
{
    uint32_t next = AR_PART(at, block).next;
    return ar_part_is_used(&AR_PART(at, next)) ? next : AR_PART(at, next).next;
}

static uint32_t used_before(const struct ar_part *at, uint32_t block)
{
    uint32_t previous = AR_PART(at, block).previous;
    return ar_part_is_used(&AR_PART(at, previous)) ? previous : AR_PART(at, previous).previous;
}

/* Behind the first sequence, up to the end of the region or to the double stack. */
static bool space_behind_first(const struct vma *self, struct space *space)
{
    const struct ar_part *at = self->blocks.at;
    const struct linear *sequences = &self->sequences;
    uint32_t last = sequences->first_end;
    if (sequences->mode == SECOND_RING)
        return false;
    space->start = last ? ar_part_end(&AR_PART(at, last)) : self->region.address;
    space->end = sequences->mode == SECOND_STACK ? AR_PART(at, sequences->second_end).address
                                                 : self->region.address + self->region.bytes;
    space->block = last ? AR_PART(at, last).next : self->first;
    return true;
}

/* Below the first sequence, behind the second. */
static bool space_in_ring(const struct vma *self, struct space *space)
{
    const struct ar_part *at = self->blocks.at;
    const struct linear *sequences = &self->sequences;
    uint32_t last = sequences->second_end;
    if (sequences->mode == SECOND_STACK || !sequences->first_head)
        return false;
    space->start = last ? ar_part_end(&AR_PART(at, last)) : self->region.address;
    space->end = AR_PART(at, sequences->first_head).address;
    space->block = last ? AR_PART(at, last).next : self->first;
    return true;
}

static bool fits_space(const struct space *space, struct wanted *wanted)
{
    wanted->address = ar_size_round_up(space->start, wanted->alignment);
    return wanted->address <= space->end && space->end - wanted->address >= wanted->bytes;
}

static void add_to_second(struct vma *self, uint32_t block, enum second_mode mode)
{
    struct linear *sequences = &self->sequences;
    sequences->mode = (uint8_t)mode;
    sequences->second_end = block;
    AR_PART(self->blocks.at, block).mark = !sequences->first_mark;
    sequences->counts[!sequences->first_mark]++;
}

static uint32_t place_upper(struct vma *self, struct wanted *wanted)
{
    struct space space;
    if (!space_behind_first(self, &space) || space.end - space.start < wanted->bytes)
        return 0;
    wanted->address = ar_size_round_down(space.end - wanted->bytes, wanted->alignment);
    if (wanted->address < space.start)
        return 0;
    uint32_t block = (uint32_t)place(self, space.block, wanted->address, wanted->bytes);
    add_to_second(self, block, SECOND_STACK);
    return block;
}

static uint32_t place_lower(struct vma *self, struct wanted *wanted)
{
    struct linear *sequences = &self->sequences;
    struct space space;
    if (space_behind_first(self, &space) && fits_space(&space, wanted)) {
        uint32_t block = (uint32_t)place(self, space.block, wanted->address, wanted->bytes);
        AR_PART(self->blocks.at, block).mark = sequences->first_mark;
        sequences->counts[sequences->first_mark]++;
        sequences->first_end = block;
        if (!sequences->first_head)
            sequences->first_head = block;
        return block;
    }
    if (!space_in_ring(self, &space) || !fits_space(&space, wanted))
        return 0;
    uint32_t block = (uint32_t)place(self, space.block, wanted->address, wanted->bytes);
    add_to_second(self, block, SECOND_RING);
    return block;
}

/* Before a used block is freed: removes it from its sequence. */
static void leave_sequence(struct vma *self, uint32_t block)
{
    const struct ar_part *at = self->blocks.at;
    struct linear *sequences = &self->sequences;
    uint8_t first_mark = sequences->first_mark;
    sequences->counts[AR_PART(at, block).mark]--;
    if (block == sequences->first_head)
        sequences->first_head = used_after(at, block);
    if (block == sequences->first_end)
        sequences->first_end = used_before(at, block);
    if (block == sequences->second_end)
        sequences->second_end =
            sequences->mode == SECOND_RING ? used_before(at, block) : used_after(at, block);
    if (!sequences->counts[!first_mark]) {
        sequences->mode = SECOND_EMPTY;
        sequences->second_end = 0;
    }
    if (sequences->counts[first_mark])
        return;
    sequences->first_head = 0;
    sequences->first_end = 0;
    if (sequences->mode == SECOND_RING) {
        uint32_t lowest = first_used(self);
        sequences->first_head = lowest == block ? used_after(at, block) : lowest;
        sequences->first_end = sequences->second_end;
        sequences->second_end = 0;
        sequences->mode = SECOND_EMPTY;
        sequences->first_mark = !first_mark;
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The region, as one free block. */
static enum ar_status open_region(struct vma *self, uint64_t least_bytes)
{
    AR_TRY(region_obtain(&self->region, &self->base, self->backing, UNIT_BYTES, least_bytes));
    self->first = ar_parts_new(&self->blocks, self->region.address, self->region.bytes,
                               class_of(self->region.bytes));
    self->base.totals.releasable_bytes = self->region.bytes;
    put(self, self->first, self->region.bytes, false);
    return AR_OK;
}

static uint32_t find_and_place(struct vma *self, const struct ar_policy_request *request,
                               struct wanted *wanted)
{
    if (self->linear)
        return request->upper_end ? place_upper(self, wanted) : place_lower(self, wanted);
    uint32_t block = find_fit(self, wanted);
    return block ? (uint32_t)place(self, block, wanted->address, wanted->bytes) : 0;
}

static __attribute__((noinline)) enum ar_status
alloc_any(struct vma *self, const struct ar_policy_request *request, struct ar_policy_block *out)
{
    struct wanted wanted = {.bytes = request->bytes,
                            .alignment = ar_most(request->alignment, self->alignment)};
    AR_TRY_HOST(ar_parts_reserve(&self->blocks, self->host, 3, UINT32_MAX));
    if (__builtin_expect(self->wants_many, 0))
        many_open(self);
    if (self->many)
        AR_TRY_HOST(many_ready(self));
    enum ar_status status = self->region.bytes ? AR_OK : open_region(self, request->bytes);
    uint32_t block = status == AR_OK ? find_and_place(self, request, &wanted) : 0;
    if (!block) {
        self->failures += status == AR_OK || status == AR_NO_MEMORY;
        return status == AR_OK ? AR_NO_MEMORY : status;
    }
    AR_PART(self->blocks.at, block).requested_bytes = request->bytes;
    ar_policy_grant(&self->base, out, wanted.address, request->bytes, block);
    return AR_OK;
}

/* What is tried next if no class above has a block: the null block. It becomes smaller. */
static __attribute__((noinline)) enum ar_status
serve_last(struct vma *self, const struct ar_policy_request *request, struct ar_policy_block *out)
{
    uint64_t bytes = request->bytes;
    size_t block = null_block(self);
    struct ar_part *part = &AR_PART(self->blocks.at, block);
    ar_parts_none_from(&self->blocks, class_above(bytes));
    if (!block || part->address & self->misaligned || part->bytes <= bytes)
        return alloc_any(self, request, out);
    ar_policy_grant(&self->base, out, part->address, bytes, block);
    self->base.totals.releasable_bytes = 0;
    ar_parts_use(&self->blocks, part, NULL_CLASS, NULL_CLASS / 64, bytes);
    uint64_t rest_bytes = part->bytes - bytes;
    ar_parts_push(&self->blocks, ar_parts_cut(&self->blocks, block, part, bytes, rest_bytes, 0),
                  NULL_CLASS);
    return AR_OK;
}

/* What is served most often is served here: from the start of the first block of the next class,
 * which is larger and not the null block. `plain` is without a watch of free blocks; its path has
 * no cases, so few registers are saved. */
AR_INLINE enum ar_status serve(struct vma *self, const struct ar_policy_request *request,
                               struct ar_policy_block *out, const bool plain)
{
    struct ar_parts *blocks = &self->blocks;
    uint64_t bytes = request->bytes;
    struct ar_class found;
    if (!blocks->spare || request->alignment)
        return alloc_any(self, request, out);
    if (!ar_parts_find(blocks, class_above(bytes), &found))
        return plain ? serve_last(self, request, out) : alloc_any(self, request, out);
    size_t class = ar_part_number(found.index), block = ar_part_number(blocks->heads[class]);
    struct ar_part *part = &AR_PART(blocks->at, block);
    if (part->address & self->misaligned)
        return alloc_any(self, request, out);
    AR_READ_AGAIN(part->address);
    ar_policy_grant(&self->base, out, part->address, bytes, block);
    ar_parts_use(blocks, part, class, found.word, bytes);
    AR_READ_AGAIN(blocks->at);
    AR_READ_AGAIN(part->address);
    uint64_t rest_bytes = part->bytes - bytes;
    if (!plain)
        ar_policy_free_replaced(&self->base, bytes + rest_bytes, rest_bytes);
    size_t rest = ar_parts_cut(blocks, block, part, bytes, rest_bytes, 0);
    ar_parts_push(blocks, rest, class_of(rest_bytes));
    return AR_OK;
}

AR_INLINE enum ar_status take_back(struct vma *self, size_t block, const bool plain)
{
    struct ar_merge merge;
    const struct ar_part *part = &AR_PART(self->blocks.at, block);
    ar_policy_ungrant(&self->base, part->requested_bytes, part->bytes);
    if (__builtin_expect(!self->base.totals.live_blocks, 0)) /* all will be one free block */
        self->base.totals.releasable_bytes = self->region.bytes;
    if (!plain && self->linear)
        leave_sequence(self, (uint32_t)block);
    if (!plain && self->many) {
        many_remove(self, part->next);
        many_remove(self, part->previous);
    }
    block = ar_parts_merge(&self->blocks, block, 0, &self->base.totals.overhead_bytes, &merge);
    if (!plain) {
        ar_policy_free_removed(&self->base, merge.next_bytes);
        ar_policy_free_removed(&self->base, merge.previous_bytes);
    }
    put(self, block, merge.bytes, plain);
    return AR_OK;
}

static enum ar_status general_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct vma *self = (struct vma *)base;
    return self->next_first ? serve(self, request, out, false) : alloc_any(self, request, out);
}

static enum ar_status general_free(struct ar_policy *base, const struct ar_policy_block *given,
                                   uint32_t stream AR_UNUSED)
{
    return take_back((struct vma *)base, given->cookie, false);
}

static enum ar_status vma_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                struct ar_policy_block *out)
{
    return serve((struct vma *)base, request, out, true);
}

static enum ar_status vma_free(struct ar_policy *base, const struct ar_policy_block *given,
                               uint32_t stream)
{
    struct vma *self = (struct vma *)base;
    if (__builtin_expect(self->many != NULL, 0))
        return general_free(base, given, stream);
    return take_back(self, given->cookie, true);
}

/* ---- from outside ---------------------------------------------------------------------------- */

/* A request that is served now: the largest under the linear algorithm; else the larger one of the
 * null block and the first block of the highest class. A later block of that class may serve a
 * little more; to find it takes a walk over the list. */
static uint64_t largest_request(const struct vma *self)
{
    const struct ar_part *at = self->blocks.at;
    struct space space;
    uint64_t bytes = 0;
    unsigned class;
    if (!self->region.bytes)
        return 0;
    if (self->linear) {
        if (space_behind_first(self, &space))
            bytes = aligned_part(self, space.start, space.end);
        if (space_in_ring(self, &space))
            bytes = ar_most(bytes, aligned_part(self, space.start, space.end));
        return bytes;
    }
    const struct ar_part *last = &AR_PART(at, null_block(self));
    if (null_block(self))
        bytes = aligned_part(self, last->address, ar_part_end(last));
    if (ar_parts_highest(&self->blocks, bytes ? class_of(bytes) : 0, &class)) {
        const struct ar_part *head = &AR_PART(at, self->blocks.heads[class]);
        bytes = ar_most(bytes, aligned_part(self, head->address, ar_part_end(head)));
    }
    return bytes;
}

static void vma_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    ar_policy_room_fill(out, largest_request((const struct vma *)base), 0, 0);
}

static void vma_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct vma *self = (const struct vma *)base;
    *out = (struct ar_policy_stats){.totals = base->totals};
    out->count.splits = self->blocks.splits;
    out->count.merges = self->blocks.merges;
    out->count.segments_made = self->region.bytes != 0;
    out->count.failures = self->failures;
}

static void vma_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct vma *self = (const struct vma *)base;
    for (uint32_t b = self->first; b; b = AR_PART(self->blocks.at, b).next) {
        const struct ar_part *part = &AR_PART(self->blocks.at, b);
        const struct ar_policy_range range = {
            .address = part->address,
            .bytes = part->bytes,
            .requested_bytes = ar_part_is_used(part) ? part->requested_bytes : 0,
            .segment_address = self->region.address,
            .state = ar_part_is_used(part) ? AR_POLICY_RANGE_USED : AR_POLICY_RANGE_FREE,
        };
        if (!visit(argument, &range))
            return;
    }
}

/* What validate counts. */
struct audit {
    uint64_t end, releasable_bytes, listed, indexed; /* listed: free blocks */
    uint64_t counts[2];
    uint32_t lowest[2], highest[2]; /* used blocks, by mark */
};

static bool many_fault(const struct vma *self, uint32_t block, struct audit *audit)
{
    const struct ar_part *part = &AR_PART(self->blocks.at, block);
    const struct ar_range_node *node = &self->many->pool.nodes[part->mark];
    uint64_t bytes = aligned_part(self, part->address, ar_part_end(part));
    if (part->class_index == NULL_CLASS && self->strategy != MIN_OFFSET)
        bytes = 0;
    audit->indexed += bytes != 0;
    return bytes ? !part->mark || node->extra != block || node->bytes != bytes : part->mark != 0;
}

static const char *many_count_fault(const struct vma *self, uint64_t indexed)
{
    uint64_t sum = 0, count;
    for (size_t class = 0; class < NULL_CLASS; class ++) {
        if (!ar_range_tree_check(&self->many->pool, self->many->roots[class], AR_RANGE_BY_ADDRESS,
                                 &count))
            return "a tree of the index is broken";
        sum += count;
    }
    return sum == indexed ? NULL : "the index holds another number of blocks than the region";
}

static const char *audit_block(const struct vma *self, uint32_t block, struct audit *audit)
{
    const struct ar_part *at = self->blocks.at;
    const struct ar_part *part = &AR_PART(at, block);
    if (part->address != audit->end || !part->bytes)
        return "a block is empty or does not follow the one before it";
    audit->end = ar_part_end(part);
    if (part->next && AR_PART(at, part->next).previous != block)
        return "the links of two neighbours differ";
    if (ar_part_is_used(part)) {
        unsigned mark = self->linear ? part->mark & 1u : 0;
        audit->lowest[mark] = audit->counts[mark]++ ? audit->lowest[mark] : block;
        audit->highest[mark] = block;
        return NULL;
    }
    if (part->next && !ar_part_is_used(&AR_PART(at, part->next)))
        return "two free blocks are not merged";
    audit->listed++;
    audit->releasable_bytes += part->previous | part->next ? 0 : part->bytes;
    if (self->many && many_fault(self, block, audit))
        return "a free block is not in the index as it is";
    if (!part->next)
        return null_block(self) == block ? NULL : "the last block is free and not the null block";
    return ar_parts_has(&self->blocks, class_of(part->bytes), block) ? NULL
                                                                     : "a free block is in no list";
}

static const char *sequence_fault(const struct vma *self, const struct audit *audit)
{
    const struct linear *sequences = &self->sequences;
    uint8_t first = sequences->first_mark;
    uint8_t second = !first;
    if (sequences->counts[first] != audit->counts[first] ||
        sequences->counts[second] != audit->counts[second])
        return "the blocks of a sequence were counted wrongly";
    if (sequences->first_head != audit->lowest[first] ||
        sequences->first_end != audit->highest[first])
        return "the first sequence has other ends";
    if ((sequences->mode == SECOND_EMPTY) != (audit->counts[second] == 0) ||
        sequences->second_end !=
            (sequences->mode == SECOND_RING ? audit->highest[second] : audit->lowest[second]))
        return "the second sequence has another end";
    return NULL;
}

static enum ar_status vma_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct vma *self = (const struct vma *)base;
    struct audit audit = {.end = self->region.address};
    const char *fault = NULL;
    uint64_t listed;
    for (uint32_t b = self->first; b && !fault; b = AR_PART(self->blocks.at, b).next)
        fault = audit_block(self, b, &audit);
    if (!fault && audit.end != self->region.address + self->region.bytes)
        fault = "the blocks do not fill the region";
    if (!fault && self->linear)
        fault = sequence_fault(self, &audit);
    if (!fault && self->many)
        fault = many_count_fault(self, audit.indexed);
    if (!fault)
        fault = ar_parts_fault(&self->blocks, &listed);
    if (!fault && listed != audit.listed)
        fault = "the lists hold another number of blocks than the region";
    if (fault)
        return ar_policy_broken(base, fault, audit.end, error);
    return ar_policy_check_totals(base, audit.releasable_bytes, error);
}

static void vma_destroy(struct ar_policy *base)
{
    struct vma *self = (struct vma *)base;
    region_close(&self->region, self->backing);
    many_close(self);
    ar_parts_close(&self->blocks, self->host);
    ar_host_free(self->host, self, sizeof *self);
}

static void vma_watched(struct ar_policy *base);
static enum ar_status vma_create(const struct ar_policy_context *context, const void *given,
                                 struct ar_policy **out, struct ar_error *error);

#define VMA_OPS                                                                                    \
    .summary = "VulkanMemoryAllocator's virtual block: one region, segregated fit or linear",      \
    .reference = "VulkanMemoryAllocator 3.4.0-development, vk_mem_alloc.h at e386068 (2026)",      \
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_HONOURS_ALIGNMENT, .options = vma_options,  \
    .values_bytes = sizeof(struct vma_values), .create = vma_create, .room = vma_room,             \
    .watched = vma_watched

const struct ar_policy_ops vma_virtual_policy = {
    .name = "vma-virtual",
    AR_POLICY_HOOKS(vma),
    VMA_OPS,
};

static const struct ar_policy_ops general_ops = {
    .name = "vma-virtual",
    AR_POLICY_HOOKS_WITH(vma, general_alloc, general_free),
    VMA_OPS,
};

/* Which copy of `serve` and `take_back` is used. */
static void vma_watched(struct ar_policy *base)
{
    const struct vma *self = (const struct vma *)base;
    base->ops = base->watch || !self->next_first ? &general_ops : &vma_virtual_policy;
}

static enum ar_status vma_create(const struct ar_policy_context *context, const void *given,
                                 struct ar_policy **out, struct ar_error *error)
{
    const struct vma_values *values = given;
    uint64_t alignment = values->alignment;
    if (!alignment)
        alignment = context->backing->granule_bytes == 1 ? 1 : 256;
    if (!ar_size_is_power_of_two(alignment))
        return ar_invalid(error, "policy vma-virtual: alignment is not a power of two; write one, "
                                 "such as 256, or 0 for the default");
    struct vma *self = ar_policy_new(context, &general_ops, sizeof *self, error);
    AR_TRY_HOST(self);
    self->backing = context->backing;
    self->host = context->host;
    region_open(&self->region, &values->region, &values->common);
    if (self->region.most_bytes > MOST_BYTES)
        self->region.most_bytes = MOST_BYTES;
    self->alignment = alignment;
    self->misaligned = alignment - 1;
    self->linear = values->linear != 0;
    self->strategy = (uint8_t)values->strategy;
    self->next_first = !self->linear && (self->strategy == BALANCED || self->strategy == MIN_TIME);
    vma_watched(&self->base);
    *out = &self->base;
    return AR_OK;
}
