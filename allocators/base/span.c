/* The array of span records grows by a quarter, so at most a fifth of it was never used. Records
 * are taken in the order of their numbers. */
#include "allocators/base/span.h"

#define FIRST_COUNT 48u

/* A hash of the record's number, never 0 (the finaliser of MurmurHash3, Austin Appleby, public
 * domain). */
static uint16_t priority_of(uint32_t index)
{
    uint32_t x = index;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    uint16_t priority = (uint16_t)(x & 0xffffu);
    return priority ? priority : 1;
}

bool ar_spans_reserve(struct ar_spans *self, struct ar_host *host, uint32_t wanted)
{
    if (self->spare_count >= wanted)
        return true;
    uint32_t old = self->count;
    uint32_t more = old ? old / 4 : FIRST_COUNT;
    if (more < wanted)
        more = wanted;
    if (more > UINT32_MAX - old)
        return false;
    struct ar_span *grown = ar_host_grow(host, self->at, old, old + more, sizeof *grown);
    if (!grown)
        return false;
    self->at = grown;
    self->count = old + more;
    grown[0].used = 1;
    for (uint32_t i = self->count - 1; i >= old && i > 0; i--) {
        grown[i].priority = priority_of(i);
        ar_spans_drop(self, i);
    }
    return true;
}

void ar_spans_close(struct ar_spans *self, struct ar_host *host)
{
    ar_host_free(host, self->at, self->count * sizeof *self->at);
    *self = (struct ar_spans){0};
}

/* ---- the index ----------------------------------------------------------------------------------
 *
 * The treaps of the classes that hold several spans. The priority of a node is at least that of its
 * children. All walks go down once and need no links to parents.
 *
 * The walks of alloc and free are compiled twice, for an index by address and for one by record:
 * the comparison is their inner loop. */

#define APART static __attribute__((noinline))

static bool is_by_record(const struct ar_span_index *self)
{
    return __builtin_expect(self->address_flip == AR_SPAN_INDEX_BY_RECORD, 0);
}

/* Whether a node, the span of that number, is at or after the key. */
AR_INLINE bool reaches(const struct ar_span *node, uint32_t number, uint64_t flip, bool by_record,
                       uint64_t bytes, uint64_t rank)
{
    if (node->bytes != bytes)
        return node->bytes > bytes;
    return (by_record ? number : node->address ^ flip) >= rank;
}

/* The first span of `size_class` at or after the key, or NULL. */
static uint32_t *seek_in_class(struct ar_span_index *self, struct ar_span *spans, size_t size_class,
                               uint64_t bytes, uint64_t rank)
{
    uint32_t *found = NULL;
    bool by_record = is_by_record(self);
    for (uint32_t *link = &self->roots[size_class]; *link;) {
        struct ar_span *node = &spans[*link];
        if (reaches(node, *link, self->address_flip, by_record, bytes, rank)) {
            found = link;
            link = &node->left;
        } else {
            link = &node->right;
        }
    }
    return found;
}

bool ar_span_index_find(struct ar_span_index *self, struct ar_span *spans, uint64_t bytes,
                        uint64_t rank, struct ar_span_place *place)
{
    size_t size_class = ar_span_index_class(bytes | 1u); /* a key may have 0 bytes */
    place->link = seek_in_class(self, spans, size_class, bytes, rank);
    place->size_class = size_class;
    if (place->link) {
        place->children = spans[*place->link].children;
        return true;
    }
    return size_class < 63u && ar_span_index_best(self, spans, UINT64_C(2) << size_class, place);
}

/* The last span of `size_class` before the key, or 0. */
static uint32_t last_before(const struct ar_span_index *self, const struct ar_span *spans,
                            size_t size_class, uint64_t bytes, uint64_t address)
{
    uint32_t found = 0;
    for (uint32_t node = self->roots[size_class]; node;) {
        if (reaches(&spans[node], node, 0, false, bytes, address)) {
            node = spans[node].left;
        } else {
            found = node;
            node = spans[node].right;
        }
    }
    return found;
}

uint32_t ar_span_index_before(const struct ar_span_index *self, const struct ar_span *spans,
                              uint64_t bytes, uint64_t address)
{
    size_t size_class = ar_span_index_class(bytes | 1u);
    uint32_t found = last_before(self, spans, size_class, bytes, address);
    uint64_t below = self->classes & ((UINT64_C(1) << size_class) - 1u);
    if (found || !below)
        return found;
    size_class = 63u - (size_t)__builtin_clzll(below);
    found = self->roots[size_class];
    while (spans[found].right)
        found = spans[found].right;
    return found;
}

/* The link to `span`, which is in `size_class`. */
AR_INLINE uint32_t *locate(struct ar_span_index *self, struct ar_span *spans, size_t size_class,
                           uint32_t span, bool by_record)
{
    const struct ar_span *wanted = &spans[span];
    uint64_t flip = self->address_flip;
    uint64_t rank = by_record ? span : wanted->address ^ flip;
    uint32_t *link = &self->roots[size_class];
    while (*link != span) {
        struct ar_span *node = &spans[*link];
        link =
            reaches(node, *link, flip, by_record, wanted->bytes, rank) ? &node->left : &node->right;
    }
    return link;
}

/* Merges the children of the span at `link` in its place. */
AR_INLINE void unlink(struct ar_span *spans, uint32_t *link, uint64_t children)
{
    const struct ar_span parent = {.children = children};
    uint32_t left = parent.left;
    uint32_t right = parent.right;
    while (left && right) {
        if (spans[left].priority >= spans[right].priority) {
            *link = left;
            link = &spans[left].right;
            left = *link;
        } else {
            *link = right;
            link = &spans[right].left;
            right = *link;
        }
    }
    *link = left | right;
}

/* Inserts `span` into a class that has the one span *root. */
AR_INLINE void insert_second(struct ar_span *spans, uint32_t *root, uint32_t span,
                             bool node_is_after)
{
    uint32_t number = *root;
    struct ar_span *node = &spans[number], *added = &spans[span];
    added->children = 0;
    if (node->priority >= added->priority) {
        *(node_is_after ? &node->left : &node->right) = span;
    } else {
        *root = span;
        *(node_is_after ? &added->right : &added->left) = number;
    }
}

/* Inserts `span` into a class that has spans. */
AR_INLINE void insert(struct ar_span_index *self, struct ar_span *spans, size_t size_class,
                      uint32_t span, bool by_record)
{
    struct ar_span *added = &spans[span];
    uint64_t flip = self->address_flip;
    uint64_t bytes = added->bytes, rank = by_record ? span : added->address ^ flip;
    uint16_t priority = added->priority;
    uint32_t *link = &self->roots[size_class];
    if (!spans[*link].children) {
        insert_second(spans, link, span,
                      reaches(&spans[*link], *link, flip, by_record, bytes, rank));
        return;
    }
    while (spans[*link].priority >= priority) { /* that of record 0 is the lowest */
        struct ar_span *node = &spans[*link];
        link = reaches(node, *link, flip, by_record, bytes, rank) ? &node->left : &node->right;
    }
    uint32_t rest = *link; /* this subtree is divided between the two sides of the new span */
    *link = span;
    uint32_t *before = &added->left;
    uint32_t *after = &added->right;
    while (rest) {
        struct ar_span *node = &spans[rest];
        if (reaches(node, rest, flip, by_record, bytes, rank)) {
            *after = rest;
            after = &node->left;
            rest = *after;
        } else {
            *before = rest;
            before = &node->right;
            rest = *before;
        }
    }
    *before = 0;
    *after = 0;
}

/* The same, or into an empty class. */
AR_INLINE void insert_any(struct ar_span_index *self, struct ar_span *spans, uint32_t span,
                          bool by_record)
{
    size_t size_class = ar_span_index_class(spans[span].bytes);
    if (self->roots[size_class])
        insert(self, spans, size_class, span, by_record);
    else
        ar_span_index_insert(self, spans, span);
}

/* Removes the span at `link`. */
AR_INLINE void unlink_any(struct ar_span_index *self, struct ar_span *spans, uint32_t *link,
                          size_t size_class, uint64_t children)
{
    unlink(spans, link, children);
    if (!self->roots[size_class])
        ar_span_index_clear(self, size_class);
}

AR_INLINE void remove_any(struct ar_span_index *self, struct ar_span *spans, uint32_t span,
                          bool by_record)
{
    size_t size_class = ar_span_index_class(spans[span].bytes);
    unlink_any(self, spans, locate(self, spans, size_class, span, by_record), size_class,
               spans[span].children);
}

AR_INLINE void replace(struct ar_span_index *self, struct ar_span *spans, uint32_t *link,
                       size_t size_class, uint64_t children, uint32_t span, bool by_record)
{
    unlink_any(self, spans, link, size_class, children);
    insert_any(self, spans, span, by_record);
}

AR_INLINE void move(struct ar_span_index *self, struct ar_span *spans, uint32_t from, uint32_t to,
                    uint64_t bytes, bool by_record)
{
    remove_any(self, spans, from, by_record);
    spans[to].bytes = bytes;
    insert_any(self, spans, to, by_record);
}

APART void remove_by_record(struct ar_span_index *self, struct ar_span *spans, uint32_t span)
{
    remove_any(self, spans, span, true);
}

APART void insert_by_record(struct ar_span_index *self, struct ar_span *spans, size_t size_class,
                            uint32_t span)
{
    insert(self, spans, size_class, span, true);
}

APART void replace_by_record(struct ar_span_index *self, struct ar_span *spans, uint32_t *link,
                             size_t size_class, uint64_t children, uint32_t span)
{
    replace(self, spans, link, size_class, children, span, true);
}

APART void move_by_record(struct ar_span_index *self, struct ar_span *spans, uint32_t from,
                          uint32_t to, uint64_t bytes)
{
    move(self, spans, from, to, bytes, true);
}

void ar_span_index_unlink_inner(struct ar_span *spans, uint32_t *link, uint64_t children)
{
    unlink(spans, link, children);
}

void ar_span_index_remove_inner(struct ar_span_index *self, struct ar_span *spans, uint32_t span)
{
    if (is_by_record(self))
        remove_by_record(self, spans, span);
    else
        remove_any(self, spans, span, false);
}

void ar_span_index_insert_inner(struct ar_span_index *self, struct ar_span *spans,
                                size_t size_class, uint32_t span)
{
    if (is_by_record(self))
        insert_by_record(self, spans, size_class, span);
    else
        insert(self, spans, size_class, span, false);
}

void ar_span_index_replace_inner(struct ar_span_index *self, struct ar_span *spans, uint32_t *link,
                                 size_t size_class, uint64_t children, uint32_t span)
{
    if (is_by_record(self))
        replace_by_record(self, spans, link, size_class, children, span);
    else
        replace(self, spans, link, size_class, children, span, false);
}

void ar_span_index_move_inner(struct ar_span_index *self, struct ar_span *spans, uint32_t from,
                              uint32_t to, uint64_t bytes)
{
    if (is_by_record(self))
        move_by_record(self, spans, from, to, bytes);
    else
        move(self, spans, from, to, bytes, false);
}

bool ar_span_index_has(const struct ar_span_index *self, const struct ar_span *spans, uint32_t span)
{
    uint64_t bytes = spans[span].bytes;
    uint64_t rank = ar_span_index_rank(self, spans, span);
    bool by_record = is_by_record(self);
    uint32_t node = self->roots[ar_span_index_class(bytes | 1u)];
    while (node && node != span)
        node = reaches(&spans[node], node, self->address_flip, by_record, bytes, rank)
                   ? spans[node].left
                   : spans[node].right;
    return node == span;
}

/* The in-order walk over the tree of a class. */
struct tree_check {
    const struct ar_span_index *index;
    const struct ar_span *spans;
    uint64_t count, most;
    size_t size_class;
    uint32_t last;
};

/* The priorities, which are checked on the way down, keep the depth logarithmic. */
static const char *tree_fault(struct tree_check *check, uint32_t node)
{
    const struct ar_span *spans = check->spans;
    const struct ar_span *span = &spans[node];
    if (!node)
        return NULL;
    if (check->count++ >= check->most)
        return "holds more spans than are free";
    if (spans[span->left].priority > span->priority || spans[span->right].priority > span->priority)
        return "is out of shape";
    if (span->used)
        return "holds a used span";
    if (ar_span_index_class(span->bytes) != check->size_class)
        return "holds a span of another size class";
    const char *fault = tree_fault(check, span->left);
    if (!fault && check->last &&
        !reaches(span, node, check->index->address_flip, is_by_record(check->index),
                 spans[check->last].bytes,
                 ar_span_index_rank(check->index, spans, check->last) + 1))
        fault = "is out of order";
    check->last = node;
    return fault ? fault : tree_fault(check, span->right);
}

const char *ar_span_index_fault(const struct ar_span_index *self, const struct ar_span *spans,
                                uint64_t most, uint64_t *count)
{
    struct tree_check check = {.index = self, .spans = spans, .most = most};
    const char *fault = NULL;
    for (size_t size_class = 0; size_class < AR_SPAN_INDEX_CLASSES && !fault; size_class++) {
        if ((self->classes >> size_class & 1u) != (self->roots[size_class] != 0))
            return "has another bitmap than trees";
        check.size_class = size_class;
        check.last = 0;
        fault = tree_fault(&check, self->roots[size_class]);
    }
    *count = check.count;
    return fault;
}
