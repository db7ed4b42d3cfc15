#include "sim/explain/message.h"

#include <string.h>

#include "allocators/base/size.h"
#include "sim/explain/message_text.h"

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

/* Derives a figure from two others if the message does not print it. */
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

/* The sum of the figures of a rule, all of which must be known. */
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

/* Whether the request fits by the printed figures. Figures are rounded, so a sum may be wrong by a
 * few bytes. */
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

/* Uses the first reader that finds a request with its size. */
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
            "the text says that memory ran out, but not the size of the request; paste "
            "all of the message, from \"Tried to allocate\", \"trying to allocate\" or \"failed to "
            "allocate\" on (the driver itself and RMM before 25.04 do not print it)");
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

/* ---- CuPy and RMM ---------------------------------------------------------------------------
 *
 * The wordings of CuPy's pool and of RAPIDS RMM:
 *
 *   CuPy       Out of memory allocating N bytes [(allocated so far: N bytes[, limit set to:
 *              N bytes])], with commas between thousands; "so far" is all reserved memory
 *   RMM        [std::bad_alloc: out_of_memory:] CUDA error | RMM failure at ...: Maximum pool size
 *              exceeded | Exceeded memory limit (failed to allocate S) [at ...] [: Not enough room
 *              to grow, current/max/try size = S, S, S]     (before 25.04 without sizes)
 *   RMM's log  [A][Stream P][Upstream NB][FAILURE maximum pool size exceeded: ...]
 *
 * The total is the limit, and the free memory is the rest of the limit, because the messages have
 * no figures of the card. */

/* Reads the size right after the words in [from, to). */
static size_t size_after(const struct message_text *text, const char *words, size_t from, size_t to,
                         struct message_figure *figure)
{
    size_t at = message_text_find(text, words, from, to);
    if (at == MESSAGE_NOWHERE)
        return at;
    return message_text_asked(text, at + strlen(words), figure);
}

/* The free memory: the rest of the limit. */
static void fill_free(struct message *self)
{
    struct message_figure *figures = self->figures;
    const struct message_figure *limit = &figures[MESSAGE_FIGURE_TOTAL];
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    if (!limit->known || !reserved->known)
        return;
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = limit->bytes > reserved->bytes ? limit->bytes - reserved->bytes : 0,
        .coarse_bytes = limit->coarse_bytes + reserved->coarse_bytes,
    };
}

static bool has(const struct message_text *text, const char *words)
{
    return message_text_find(text, words, 0, text->count) != MESSAGE_NOWHERE;
}

static bool stands_before(const struct message_text *text, const char *words, size_t at)
{
    size_t length = strlen(words);
    return at >= length && strncmp(text->chars + at - length, words, length) == 0;
}

/* XLA also prints "allocating", but after its own error code and without the allocated bytes. */
static bool read_cupy(const struct message_text *text, struct message *self)
{
    static const char words[] = "outofmemoryallocating";
    struct message_figure *figures = self->figures;
    struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    bool cupy = has(text, "cupy");
    size_t count = 0;
    for (size_t at = 0; (at = message_text_find(text, words, at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        struct message_figure size;
        size_t begin = at + strlen(words);
        size_t end = message_text_asked(text, begin, &size);
        if (end == MESSAGE_NOWHERE)
            continue;
        bool so_far = strncmp(text->chars + end, "(allocatedsofar:", 16) == 0;
        bool commas = memchr(text->chars + begin, ',', end - begin) != NULL;
        if (stands_before(text, "resource_exhausted:", at) || !(so_far || cupy || commas))
            continue;
        if (count++)
            continue;
        *asked = size;
        if (!so_far)
            continue;
        end = message_text_size(text, end + 16, &figures[MESSAGE_FIGURE_RESERVED]);
        if (end != MESSAGE_NOWHERE && strncmp(text->chars + end, ",limitsetto:", 12) == 0)
            (void)message_text_size(text, end + 12, &figures[MESSAGE_FIGURE_TOTAL]);
    }
    self->framework = MESSAGE_CUPY;
    self->count = (unsigned)count;
    return count > 0;
}

/* "current/max/try size = S, S, S" */
static void read_room(const struct message_text *text, size_t from, struct message *self)
{
    size_t at = size_after(text, "current/max/trysize=", from, from + 400,
                           &self->figures[MESSAGE_FIGURE_RESERVED]);
    if (at != MESSAGE_NOWHERE && text->chars[at] == ',')
        (void)message_text_size(text, at + 1, &self->figures[MESSAGE_FIGURE_TOTAL]);
}

static bool read_rmm(const struct message_text *text, struct message *self)
{
    static const char words[] = "(failedtoallocate", log[] = "][upstream";
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    bool said = has(text, "maximumpoolsizeexceeded") || has(text, "exceededmemorylimit(") ||
                has(text, "rmm") || has(text, "bad_alloc:");
    struct message_figure size;
    self->framework = MESSAGE_RMM;
    for (size_t at = 0; said; at++) {
        at = message_text_find(text, words, at, text->count);
        if (at == MESSAGE_NOWHERE)
            break;
        if (message_text_asked(text, at + strlen(words), &size) == MESSAGE_NOWHERE)
            continue;
        if (self->count++ == 0) {
            *asked = size;
            read_room(text, at, self);
        }
    }
    size_t at = size_after(text, log, 0, text->count, &size);
    if (at == MESSAGE_NOWHERE || strncmp(text->chars + at, "][failure", 9) != 0)
        return self->count > 0;
    if (!self->count || (asked->coarse_bytes && size.bytes < asked->bytes + asked->coarse_bytes &&
                         size.bytes + asked->coarse_bytes > asked->bytes))
        *asked = size; /* the log prints exact bytes */
    self->count += !self->count;
    if (!self->figures[MESSAGE_FIGURE_RESERVED].known)
        read_room(text, at, self);
    return true;
}

bool message_read_pools(const struct message_text *text, struct message *self)
{
    struct message cupy = {0}, rmm = {0};
    bool found = read_cupy(text, &cupy) || read_rmm(text, &rmm);
    *self = cupy.count ? cupy : rmm;
    self->taken = found;
    fill_free(self);
    return found;
}
