/* The wordings of the runtime of a TPU, where one pool has all memory of a chip, and of its
 * compiler, which plans the memory of a program:
 *
 *   - Attempting to allocate | reserve S [at the bottom of memory]. That was not possible. [There
 *     are S free[, S reserved, and S reservable].] [Due to fragmentation, the largest contiguous
 *     region of free memory is S. | The largest .. is S due to fragmentation.]
 *   - Could not allocate N bytes in memory NAME; N bytes allocatable, N bytes available
 *   - Ran out of memory in memory space hbm | vmem | smem. Used S of S hbm. Exceeded hbm capacity
 *     by S.
 *   - Scoped allocation with size S and limit S exceeded scoped vmem limit by S.
 *   - TPU TensorCore Hbm usage: S, SparseCore Hbm usage S, exceeding available bytes: S
 *   - Allocation (size=N) would exceed memory (size=N)
 *
 * "Reservable" and "allocatable" are the largest free range. JAX, TensorFlow and PyTorch/XLA print
 * the same words. */
#include <stdio.h>
#include <string.h>

#include "sim/explain/message_forms.h"

/* The figures after "That was not possible". */
static void read_free(const struct message_text *text, size_t from, size_t to, struct message *self)
{
    static const char largest[] = "largestcontiguousregionoffreememoryis";
    struct message_figure *figures = self->figures;
    struct message_figure *range = &figures[MESSAGE_FIGURE_LARGEST];
    if (message_text_after(text, "thereare", from, to, &figures[MESSAGE_FIGURE_UNALLOCATED]) ==
        MESSAGE_NOWHERE)
        return;
    self->one_pool = true;
    if (!message_field_read(text, &(struct message_field){0, NULL, "reservable"}, from, to, 0,
                            range))
        (void)message_text_after(text, largest, from, to, range);
}

static bool read_runtime(const struct message_text *text, struct message *self)
{
    if (!message_text_has(text, "thatwasnotpossible") && !message_text_has(text, "exhausted") &&
        !message_text_has(text, "hbm"))
        return false;
    static const char *const words[] = {"attemptingtoallocate", "attemptingtoreserve"};
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED], other;
    size_t at = MESSAGE_NOWHERE;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t found = message_text_find(text, words[i], 0, text->count);
        if (found < at &&
            message_text_after(text, words[i], found, found + 60, asked) != MESSAGE_NOWHERE)
            at = found;
        for (; found != MESSAGE_NOWHERE;
             found = message_text_find(text, words[i], found + 1, text->count))
            self->count +=
                message_text_after(text, words[i], found, found + 60, &other) != MESSAGE_NOWHERE;
    }
    if (at == MESSAGE_NOWHERE)
        return false;
    size_t next = message_text_find(text, "attemptingto", at + 1, at + 400);
    read_free(text, at, next == MESSAGE_NOWHERE ? at + 400 : next, self);
    return true;
}

/* "Could not allocate N bytes in memory NAME; N bytes allocatable, N bytes available" */
static bool read_allocatable(const struct message_text *text, struct message *self)
{
    static const char words[] = "couldnotallocate";
    struct message_figure *figures = self->figures;
    size_t ranges = message_text_find(text, "bytesallocatable", 0, text->count);
    if (ranges == MESSAGE_NOWHERE)
        return false;
    size_t from = ranges > 200 ? ranges - 200 : 0, to = ranges + 120;
    if (message_text_after(text, words, from, ranges, &figures[MESSAGE_FIGURE_ASKED]) ==
        MESSAGE_NOWHERE)
        return false;
    self->one_pool = message_field_read(text, &(struct message_field){0, NULL, "available"}, ranges,
                                        to, 0, &figures[MESSAGE_FIGURE_UNALLOCATED]);
    (void)message_field_read(text, &(struct message_field){0, NULL, "allocatable"}, ranges, to, 0,
                             &figures[MESSAGE_FIGURE_LARGEST]);
    self->count = 1;
    return true;
}

/* A program that needs more than a memory of the chip has. */
static bool read_program(const struct message_text *text, struct message *self)
{
    static const char words[] = "inmemoryspace", scoped[] = "scopedallocationwithsize";
    struct message_figure *figures = self->figures, over = {0};
    struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    size_t at = message_text_find(text, words, 0, text->count);
    self->count = 1;
    size_t end = message_text_after(text, scoped, 0, text->count, asked);
    if (end != MESSAGE_NOWHERE) {
        (void)message_text_after(text, "andlimit", end, end + 40, total);
        self->on_chip = true;
        return true;
    }
    size_t over_at = message_text_find(text, "hbm.exceededhbmcapacityby", 0, text->count);
    if (at != MESSAGE_NOWHERE)
        end = message_text_after(text, ".used", at, at + strlen(words) + 60, asked);
    else if (over_at != MESSAGE_NOWHERE) /* the end of the message */
        end = message_text_after(text, "used", over_at > 40 ? over_at - 40 : 0, over_at, asked);
    if (end == MESSAGE_NOWHERE)
        return false;
    self->on_chip =
        at != MESSAGE_NOWHERE && strncmp(text->chars + at + strlen(words), "hbm", 3) != 0;
    if (strncmp(text->chars + end, "of", 2) == 0)
        end = message_text_size(text, end + 2, total);
    if (end != MESSAGE_NOWHERE && total->known && asked->bytes <= total->bytes &&
        message_text_after(text, "capacityby", end, end + 60, &over) != MESSAGE_NOWHERE) {
        asked->bytes = total->bytes + over.bytes; /* both were rounded to the same figure */
        asked->derived = true;
    }
    return true;
}

static bool read_planned(const struct message_text *text, struct message *self)
{
    static const char words[] = "wouldexceedmemory(size=";
    struct message_figure *figures = self->figures;
    size_t at = message_text_find(text, words, 0, text->count);
    if (at == MESSAGE_NOWHERE)
        return false;
    (void)message_text_after(text, words, at, text->count, &figures[MESSAGE_FIGURE_TOTAL]);
    self->count = 1;
    return message_text_after(text, "allocation(size=", at > 60 ? at - 60 : 0, at,
                              &figures[MESSAGE_FIGURE_ASKED]) != MESSAGE_NOWHERE;
}

/* The memory is shared by both cores of the chip. */
static bool read_cores(const struct message_text *text, struct message *self)
{
    static const char words[] = "exceedingavailablebytes:", usage[] = "hbmusage";
    struct message_figure *figures = self->figures, one;
    struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    size_t end = message_text_find(text, words, 0, text->count);
    size_t at = end == MESSAGE_NOWHERE || end < 160 ? 0 : end - 160;
    if (end == MESSAGE_NOWHERE ||
        message_text_after(text, words, end, text->count, &figures[MESSAGE_FIGURE_TOTAL]) ==
            MESSAGE_NOWHERE)
        return false;
    for (; (at = message_text_find(text, usage, at, end)) != MESSAGE_NOWHERE;) {
        at += strlen(usage);
        if (message_text_number(text, at + (text->chars[at] == ':'), 0, &one) == MESSAGE_NOWHERE)
            continue;
        asked->known = asked->derived = true;
        asked->bytes += one.bytes;
        asked->coarse_bytes += one.coarse_bytes;
    }
    self->count = 1;
    return asked->known;
}

bool message_read_tpu(const struct message_text *text, struct message *self)
{
    static bool (*const readers[])(const struct message_text *, struct message *) = {
        read_program, read_runtime, read_allocatable, read_planned, read_cores};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        *self = (struct message){0};
        if (!readers[i](text, self))
            continue;
        self->framework = message_text_speaks_jax(text) ? MESSAGE_JAX : MESSAGE_TENSORFLOW;
        self->taken = 1;
        snprintf(self->device, sizeof self->device, "TPU");
        return true;
    }
    return false;
}
