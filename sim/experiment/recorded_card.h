/* The card of a recording: how much memory the program had, by what the recording states.
 *
 * 1. A device with a capacity or a profile in its spec is that card, whatever was recorded.
 * 2. A recorded limit of the allocator is what the program could have.
 * 3. If a request failed and the recording has the free bytes that the driver reported then
 *    (`device_free` in PyTorch's snapshots), the program could have those, the bytes that the
 *    allocator had reserved, and those outside of it. The last such request counts.
 * 4. Else the recorded total of the card counts, without what a process cannot have of it (Kineto,
 *    Nsight Systems, traces of `record`).
 * 5. Else a built-in profile of the recorded card's name.
 * 6. Else the card is not known, and the default profile stands in for it.
 *
 * In cases 1, 4, 5 and 6 the notes `driver` of the trace count too: what the driver takes for the
 * kernels of the program is not the allocator's. A capacity in the spec stays as it is.
 *
 * The recorded name also decides whose driver costs are charged, if a profile has it. */
#pragma once

#include "allocators/spec.h"
#include "workloads/trace/source.h"

enum recorded_card_source {
    RECORDED_CARD_ASKED,  /* the spec of the device says it */
    RECORDED_CARD_LIMIT,  /* of the allocator */
    RECORDED_CARD_DRIVER, /* free bytes at a failed request */
    RECORDED_CARD_TOTAL,
    RECORDED_CARD_NAME,
    RECORDED_CARD_UNKNOWN
};

struct recorded_card {
    enum recorded_card_source source;
    uint64_t capacity_bytes; /* for the process; 0: that of the device or of `profile` */
    uint64_t driver_bytes;   /* that it is without: what the driver takes for kernels */
    uint64_t event;          /* DRIVER: the failed request */
    bool whole;              /* TOTAL: nothing is kept from the process */
    bool full;           /* DRIVER: the free bytes were too few for it; else a limit was in force,
                                or another failure */
    const char *profile; /* a built-in one, for the spec; NULL: the spec stays */
    char name[sizeof((struct trace_info *)0)->card]; /* as recorded; or "" */
};

/* The driver's own memory by the notes of a trace: of each thread of a card at the start and at the
 * end; and in all. */
struct recorded_driver {
    uint64_t local_first, local_most, took_bytes;
};

/* Follows the text of a note; other notes change nothing. */
void recorded_driver_follow(const char *text, struct recorded_driver *self);

struct sim_profile;
/* What the driver takes of a card for the kernels, in pages; it leaves one. */
uint64_t recorded_driver_bytes(const struct recorded_driver *self, const struct sim_profile *card);

/* Rewinds the source and reads it to its end, unless it is adaptive. */
enum ar_status recorded_card_find(struct trace_source *source, const struct ar_spec *device,
                                  struct recorded_card *out, struct ar_error *error);

/* The spec of the device for the recorded card, without its capacity: by its name, or the
 * default. */
#define RECORDED_CARD_SPEC_ROOM 96
void recorded_card_spec(const struct trace_info *info, char spec[RECORDED_CARD_SPEC_ROOM]);

/* What a process can have of the recorded total of the card: without what the profile of that card
 * keeps from one, or else the default profile, which is mostly its context. 0: no total is
 * recorded. */
uint64_t recorded_card_usable(const struct trace_info *info);

/* Follows the reserved bytes of a recording by the text of a note; other notes change nothing. */
void recorded_reserved_follow(const char *text, uint64_t *reserved_bytes);
