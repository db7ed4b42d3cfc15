#include "bench/report/card_sentence.h"

#include <inttypes.h>

#include "bench/report/sentence.h"

const char *card_source_name(enum recorded_card_source source)
{
    static const char *const names[] = {
        [RECORDED_CARD_ASKED] = "asked",   [RECORDED_CARD_LIMIT] = "limit",
        [RECORDED_CARD_DRIVER] = "driver", [RECORDED_CARD_TOTAL] = "total",
        [RECORDED_CARD_NAME] = "name",     [RECORDED_CARD_UNKNOWN] = "unknown",
    };
    return names[source];
}

void card_sentence_print(FILE *stream, const struct recorded_card *card, const char *profile)
{
    const char *name = card->name[0] ? card->name : "the recorded card";
    switch (card->source) {
    case RECORDED_CARD_DRIVER:
        sentence_format(stream, 2,
                        "Capacity: as recorded; the bytes that were reserved when event %" PRIu64
                        " failed, and those that the driver said were free.%s",
                        card->event,
                        card->full ? ""
                                   : " They were enough for the request: it failed because of a "
                                     "limit of the program, or for another reason.");
        return;
    case RECORDED_CARD_LIMIT:
        sentence_print(stream, "Capacity: the recorded limit of the allocator.");
        return;
    case RECORDED_CARD_TOTAL:
        sentence_format(stream, 2, "Capacity: the memory of %s, as recorded.", name);
        return;
    case RECORDED_CARD_NAME:
        sentence_format(stream, 2, "Capacity: that of %s, the recorded card, by the profile %s.",
                        name, profile);
        return;
    case RECORDED_CARD_UNKNOWN:
        if (card->name[0])
            sentence_format(stream, 2,
                            "Card unknown: there is no profile of %s, so the capacity is that of "
                            "the profile %s; give -d sim:capacity=BYTES or -d sim:profile=NAME.",
                            name, profile);
        else
            sentence_format(stream, 2,
                            "Card unknown: none is recorded, so the capacity is that of the "
                            "profile %s; give -d sim:capacity=BYTES or -d sim:profile=NAME.",
                            profile);
        return;
    default:
        return;
    }
}

void card_costs_print(FILE *stream, const char *costs_of)
{
    if (costs_of[0])
        sentence_format(stream, 2, "Costs of driver calls: those of the profile %s.", costs_of);
}
