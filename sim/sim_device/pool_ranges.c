/* What is not used of the row: ranges in lists, by size and in the order of their frees. */
#include "sim/sim_device/pool.h"

bool pool_lists_reach(struct sim_pool *self, uint32_t count)
{
    if (!AR_ARRAY_REACH(self->lists, self->list_room, count - 1))
        return false;
    if (count <= FEW_LISTS)
        return true;
    bool is_new = !self->largest.room;
    if (!ar_most_tree_reserve(&self->largest, &self->host, count))
        return false;
    for (uint32_t list = LIST_STREAMS; is_new && list < self->list_count; list++)
        ar_most_tree_set(&self->largest, list,
                         ar_span_index_largest(&self->lists[list].index, self->entries.at));
    return true;
}

uint32_t pool_list_of(struct sim_pool *self, uint32_t stream)
{
    if (stream < self->stream_room && self->stream_lists[stream])
        return self->stream_lists[stream];
    if (!AR_ARRAY_REACH(self->stream_lists, self->stream_room, stream) ||
        !pool_lists_reach(self, self->list_count + 1))
        return 0;
    self->lists[self->list_count].stream = stream;
    self->lists[self->list_count].has_event = true; /* perhaps */
    return self->stream_lists[stream] = self->list_count++;
}

bool pool_reserve(struct sim_pool *self)
{
    return ar_spans_reserve(&self->row, &self->host, 2) &&
           AR_ARRAY_REACH(self->pieces, self->piece_room, self->row.count - 1) &&
           ar_spans_reserve(&self->entries, &self->host, 2);
}

/* Updates a list after a change. */
static inline void list_changed(struct sim_pool *self, uint32_t list)
{
    if (self->largest.room && list >= LIST_STREAMS)
        ar_most_tree_set(&self->largest, list,
                         ar_span_index_largest(&self->lists[list].index, self->entries.at));
}

void pool_list_put(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct ar_span *span = piece_at(self, piece);
    uint32_t entry = ar_spans_new(&self->entries, ++self->order, span->bytes);
    self->entries.at[entry].owner = piece;
    ar_span_index_insert(&self->lists[list].index, self->entries.at, entry);
    self->pieces[piece].entry = entry;
    span->used = 0;
    span->owner = list;
    list_changed(self, list);
}

void pool_list_remove(struct sim_pool *self, uint32_t piece)
{
    struct ar_span *span = piece_at(self, piece);
    uint32_t entry = self->pieces[piece].entry;
    ar_span_index_remove(&self->lists[span->owner].index, self->entries.at, entry);
    ar_spans_drop(&self->entries, entry);
    span->used = 1;
    list_changed(self, span->owner);
}

void pool_list_move(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct ar_span *span = piece_at(self, piece);
    uint32_t entry = self->pieces[piece].entry;
    ar_span_index_remove(&self->lists[span->owner].index, self->entries.at, entry);
    ar_span_index_insert(&self->lists[list].index, self->entries.at, entry);
    span->owner = list;
}

uint32_t pool_list_best(struct sim_pool *self, uint32_t list, uint64_t bytes)
{
    struct ar_span_place place;
    return ar_span_index_best(&self->lists[list].index, self->entries.at, bytes, &place)
               ? self->entries.at[*place.link].owner
               : NO_PIECE;
}

uint64_t pool_order_of(const struct sim_pool *self, uint32_t piece)
{
    return self->entries.at[self->pieces[piece].entry].address;
}

/* ---- order in time -------------------------------------------------------------------------- */

/* The pending ranges of a list stand in the order of their last frees; the free ranges of both
 * lists in the order in which they became free, in the queue of LIST_BACKED. */
static struct pool_list *queue_of(struct sim_pool *self, uint32_t list)
{
    return &self->lists[list == LIST_BARE ? LIST_BACKED : list];
}

void pool_queue_add(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct pool_list *queue = queue_of(self, list);
    struct piece *added = &self->pieces[piece];
    added->older = queue->newest;
    added->newer = NO_PIECE;
    if (queue->newest)
        self->pieces[queue->newest].newer = piece;
    else
        queue->oldest = piece;
    queue->newest = piece;
}

void pool_queue_remove(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    struct pool_list *queue = queue_of(self, list);
    const struct piece *gone = &self->pieces[piece];
    if (gone->older)
        self->pieces[gone->older].newer = gone->newer;
    else
        queue->oldest = gone->newer;
    if (gone->newer)
        self->pieces[gone->newer].older = gone->older;
    else
        queue->newest = gone->older;
}

void pool_queue_replace(struct sim_pool *self, uint32_t piece, uint32_t rest, uint32_t list)
{
    struct pool_list *queue = queue_of(self, list);
    struct piece *kept = &self->pieces[rest];
    uint32_t entry = kept->entry;
    *kept = self->pieces[piece];
    kept->entry = entry;
    if (kept->older)
        self->pieces[kept->older].newer = rest;
    else
        queue->oldest = rest;
    if (kept->newer)
        self->pieces[kept->newer].older = rest;
    else
        queue->newest = rest;
}

void pool_range_put(struct sim_pool *self, uint32_t piece, uint32_t list)
{
    pool_list_put(self, piece, list);
    pool_queue_add(self, piece, list);
}

void pool_range_remove(struct sim_pool *self, uint32_t piece)
{
    pool_queue_remove(self, piece, piece_at(self, piece)->owner);
    pool_list_remove(self, piece);
}

void pool_join(struct sim_pool *self, uint32_t left, uint32_t right)
{
    piece_at(self, left)->bytes += piece_at(self, right)->bytes;
    (void)ar_spans_join(&self->row, left, right);
    if (self->last == right)
        self->last = left;
}

uint32_t pool_cut(struct sim_pool *self, uint32_t piece, uint64_t bytes)
{
    uint32_t rest = ar_spans_cut(&self->row, piece, bytes, 0);
    piece_at(self, rest)->used = 1;
    if (self->last == piece)
        self->last = rest;
    return rest;
}
