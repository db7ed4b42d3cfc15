#include "sim/explain/message.h"

#include "allocators/base/size.h"
#include "sim/explain/message_wordings.h"

const char *message_cause_name(enum message_cause cause)
{
    static const char *const names[] = {
#define X(name, word, meaning) word,
        MESSAGE_CAUSES(X)
#undef X
    };
    return names[cause];
}

const char *message_cause_meaning(enum message_cause cause)
{
    static const char *const meanings[] = {
#define X(name, word, meaning) meaning,
        MESSAGE_CAUSES(X)
#undef X
    };
    return meanings[cause];
}

const char *message_framework_name(enum message_framework framework)
{
    static const char *const names[] = {"PyTorch", "TensorFlow", "JAX", "CuPy", "RMM"};
    return names[framework];
}

const char *message_figure_text(enum message_figure_name name)
{
    static const char *const texts[] = {
#define X(figure, text) text,
        MESSAGE_FIGURES(X)
#undef X
    };
    return texts[name];
}

/* One figure from two others, where the message does not print it. */
static void derive(struct message *self, enum message_figure_name name, bool plus,
                   enum message_figure_name first, enum message_figure_name second)
{
    struct message_figure *figure = &self->figures[name];
    const struct message_figure *a = &self->figures[first], *b = &self->figures[second];
    if (figure->known || !a->known || !b->known)
        return;
    *figure = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = plus                  ? a->bytes + b->bytes
                 : a->bytes > b->bytes ? a->bytes - b->bytes
                                       : 0,
        .coarse_bytes = a->coarse_bytes + b->coarse_bytes,
    };
}

static void derive_all(struct message *self)
{
    derive(self, MESSAGE_FIGURE_RESERVED, true, MESSAGE_FIGURE_ALLOCATED,
           MESSAGE_FIGURE_UNALLOCATED);
    derive(self, MESSAGE_FIGURE_UNALLOCATED, false, MESSAGE_FIGURE_RESERVED,
           MESSAGE_FIGURE_ALLOCATED);
    derive(self, MESSAGE_FIGURE_OUTSIDE_POOL, false, MESSAGE_FIGURE_PROCESS,
           MESSAGE_FIGURE_RESERVED);
}

/* A rule's bytes: the sum of figures, all of which must be known. */
struct room {
    bool known;
    uint64_t bytes, coarse_bytes;
};

static struct room room_of(const struct message *self, enum message_figure_name first,
                           enum message_figure_name second)
{
    const struct message_figure *a = &self->figures[first], *b = &self->figures[second];
    if (!a->known || !b->known)
        return (struct room){0};
    if (first == second)
        return (struct room){true, a->bytes, a->coarse_bytes};
    return (struct room){true, a->bytes + b->bytes, a->coarse_bytes + b->coarse_bytes};
}

/* Whether what was asked for fits, by the printed figures. Each stands for a whole number of bytes
 * only after rounding, so that sums may be a few bytes off. */
static bool fits(struct message *self, struct room room)
{
    const struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    uint64_t slack = room.coarse_bytes ? 4 : 0;
    uint64_t coarse = room.coarse_bytes + asked->coarse_bytes;
    if (!room.known)
        return false;
    bool fitting = asked->bytes <= room.bytes + slack;
    uint64_t apart =
        asked->bytes > room.bytes ? asked->bytes - room.bytes : room.bytes - asked->bytes;
    if (coarse && apart < coarse)
        self->close = true;
    return fitting;
}

enum message_cause message_classify(struct message *self)
{
    static const struct rule {
        enum message_cause cause;
        enum message_figure_name first, second;
    } rules[] = {
        {MESSAGE_NOT_THE_ALLOCATOR, MESSAGE_FIGURE_FREE, MESSAGE_FIGURE_FREE},
        {MESSAGE_FRAGMENTATION, MESSAGE_FIGURE_UNALLOCATED, MESSAGE_FIGURE_UNALLOCATED},
        {MESSAGE_TENANT, MESSAGE_FIGURE_FREE, MESSAGE_FIGURE_OTHERS},
        {MESSAGE_OUTSIDE, MESSAGE_FIGURE_FREE, MESSAGE_FIGURE_OUTSIDE_POOL},
        {MESSAGE_FRAGMENTATION_POSSIBLE, MESSAGE_FIGURE_FREE, MESSAGE_FIGURE_UNALLOCATED},
    };
    const struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    struct room total = room_of(self, MESSAGE_FIGURE_TOTAL, MESSAGE_FIGURE_TOTAL);
    self->close = false;
    if ((total.known && !fits(self, total)) || asked->bytes >= UINT64_C(1) << 60)
        return MESSAGE_IMPOSSIBLE;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (fits(self, room_of(self, rules[i].first, rules[i].second)))
            return rules[i].cause;
    return MESSAGE_CAPACITY;
}

bool message_missing(const struct message *self, enum message_figure_name name)
{
    switch (name) {
    case MESSAGE_FIGURE_TOTAL:
    case MESSAGE_FIGURE_FREE:
    case MESSAGE_FIGURE_UNALLOCATED:
    case MESSAGE_FIGURE_OTHERS:
    case MESSAGE_FIGURE_OUTSIDE_POOL:
        return !self->figures[name].known;
    default:
        return false;
    }
}

/* The first of the readers that finds a request with its size. */
static bool read_wordings(const struct message_text *text, struct message *self)
{
    static bool (*const readers[])(const struct message_text *, struct message *) = {
        message_read_torch, message_read_pools, message_read_xla};
    bool found = false;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct message other = {0};
        if (!readers[i](text, &other))
            continue;
        *self = other;
        found = true;
        if (other.figures[MESSAGE_FIGURE_ASKED].known)
            break;
    }
    return found;
}

static enum ar_status read_text(const struct message_text *text, struct message *self,
                                struct ar_error *error)
{
    bool found = read_wordings(text, self);
    if (found && self->figures[MESSAGE_FIGURE_ASKED].known) {
        derive_all(self);
        self->cause = message_classify(self);
        return AR_OK;
    }
    self->incomplete = found ||
                       message_text_find(text, "outofmemory", 0, text->count) != MESSAGE_NOWHERE ||
                       message_text_find(text, "out_of_memory", 0, text->count) != MESSAGE_NOWHERE;
    if (self->incomplete)
        return ar_error_set(
            error, AR_INVALID,
            "the text says that memory ran out, but not how much was asked for; paste "
            "all of the message, from \"Tried to allocate\", \"trying to allocate\" or \"failed to "
            "allocate\" on (the driver itself and RMM before 25.04 do not tell)");
    return ar_error_set(
        error, AR_INVALID,
        "the text holds no out-of-memory message of PyTorch, TensorFlow, JAX, CuPy or "
        "RMM");
}

enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error)
{
    struct message_text squeezed;
    *self = (struct message){0};
    enum ar_status status = message_text_open(text, bytes, &squeezed, error);
    if (status)
        return status;
    status = read_text(&squeezed, self, error);
    message_text_close(&squeezed);
    return status;
}
