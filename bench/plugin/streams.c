/* Ordinals for the program's streams: rules 3 and 4 of card.h. */
#include <stdlib.h>

#include "bench/cuda/cuda_device.h"
#include "bench/plugin/card_parts.h"

/* The default stream by its other name. */
static CUstream plain_name(CUstream stream)
{
    return stream == CU_STREAM_LEGACY ? NULL : stream;
}

/* A second stream waits for all that the others were given so far: what was freed until now bears
 * no events. */
static void order_first(struct card *card, uint32_t ordinal)
{
    struct ar_backing *backing = card->memory.relay.inner;
    driver_memory_enter(&card->memory);
    for (uint32_t i = 0; i < ordinal; i++)
        ar_backing_order(backing, ordinal, ar_backing_fence(backing, i));
}

static enum ar_status stream_add(struct card *card, CUstream stream, struct ar_error *error)
{
    uint32_t ordinal = card->stream_count;
    if (ordinal == card->stream_room) {
        uint32_t room = ordinal ? 2 * ordinal : 16;
        CUstream *grown = realloc(card->streams, room * sizeof *grown);
        if (!grown)
            return ar_error_set(error, AR_HOST_MEMORY, "the host has no memory left for streams");
        card->streams = grown;
        card->stream_room = room;
    }
    if (ordinal == CARD_STREAMS_MOST ||
        !cuda_device_adopt_stream(card->memory.device, ordinal, stream))
        return ar_error_set(
            error, AR_INVALID,
            "allocrig: the program has more than %u streams on GPU %u, which is all that are "
            "told apart here",
            CARD_STREAMS_MOST, card->ordinal);
    card->streams[ordinal] = stream;
    card->stream_count++;
    card->figures.streams = card->stream_count;
    if (ordinal == 1 && !card->orders)
        order_first(card, ordinal);
    return AR_OK;
}

enum ar_status card_stream(struct card *card, CUstream stream, uint32_t *ordinal,
                           struct ar_error *error)
{
    stream = plain_name(stream);
    uint32_t found = card->stream_last;
    if (found >= card->stream_count || card->streams[found] != stream)
        for (found = 0; found < card->stream_count && card->streams[found] != stream; found++)
            ;
    if (found == card->stream_count) {
        enum ar_status status = stream_add(card, stream, error);
        if (status != AR_OK)
            return status;
    }
    *ordinal = card->stream_last = found;
    return AR_OK;
}

void card_streams_close(struct card *card)
{
    free(card->streams);
    card->streams = NULL;
}
