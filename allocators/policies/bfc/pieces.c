/* The steps of pieces.h as functions, with the gap and the two ends taken care of. */
#include "allocators/policies/bfc/pieces.h"

static struct ar_span_index *index_of(struct bfc *self, const struct ar_span *chunk)
{
    return chunk->mark == BFC_UPPER ? self->upper : &self->index;
}

void bfc_free_block_add(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *added = &self->chunks.at[chunk];
    bfc_account_added(self, added);
    if (added->mark == BFC_GAP)
        self->gap = chunk;
    else
        ar_span_index_insert(index_of(self, added), self->chunks.at, chunk);
}

void bfc_free_block_remove(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *removed = &self->chunks.at[chunk];
    bfc_account_removed(self, removed);
    if (removed->mark == BFC_GAP)
        self->gap = 0;
    else
        ar_span_index_remove(index_of(self, removed), self->chunks.at, chunk);
}

uint32_t bfc_cut(struct bfc *self, uint32_t chunk, uint64_t bytes)
{
    return bfc_cut_inline(self, chunk, bytes);
}

void bfc_hand_out(struct bfc *self, uint32_t chunk, const struct ar_policy_request *request,
                  struct ar_policy_block *out)
{
    bfc_hand_out_inline(self, chunk, request, out);
}

static void join(struct bfc *self, uint32_t first, uint32_t second)
{
    struct ar_span *into = &self->chunks.at[first];
    const struct ar_span *from = &self->chunks.at[second];
    into->bytes += from->bytes;
    if (into->mark != from->mark)
        into->mark = BFC_GAP;
    bfc_join_inline(self, first, second);
}

uint32_t bfc_merge(struct bfc *self, uint32_t chunk)
{
    const struct ar_span *chunks = self->chunks.at;
    uint32_t next = chunks[chunk].next;
    if (!chunks[next].used) {
        bfc_free_block_remove(self, next);
        join(self, chunk, next);
    }
    uint32_t previous = chunks[chunk].previous;
    if (!chunks[previous].used) {
        bfc_free_block_remove(self, previous);
        join(self, previous, chunk);
        return previous;
    }
    return chunk;
}
