/* The wordings of CuPy's pool and of RAPIDS RMM:
 *   CuPy   Out of memory allocating N bytes [(allocated so far: N bytes[, limit set to: N bytes])]
 *          with commas between thousands; "so far" is all that the pool holds, used or not
 *   RMM    [std::bad_alloc: out_of_memory:] CUDA error | RMM failure at ...: Maximum pool size exceeded |
 *          Exceeded memory limit (failed to allocate S) [at ...] [: Not enough room to grow,
 *          current/max/try size = S, S, S]     (before 25.04 without sizes)
 *   RMM's log   [A][Stream P][Upstream NB][FAILURE maximum pool size exceeded: ...]
 * A limit stands for what there is in all, and what it leaves for what is free: more is not known. */
#include <string.h>

#include "sim/explain/message_wordings.h"

/* The size right after the words, which stand in [from, to). */
static size_t size_after(const struct message_text *text, const char *words, size_t from, size_t to,
                         struct message_figure *figure)
{
    size_t at = message_text_find(text, words, from, to);
    if (at == MESSAGE_NOWHERE)
        return at;
    return message_text_asked(text, at + strlen(words), figure);
}

/* What the limit leaves. */
static void fill_free(struct message *self)
{
    struct message_figure *figures = self->figures;
    const struct message_figure *limit = &figures[MESSAGE_FIGURE_TOTAL];
    const struct message_figure *held = &figures[MESSAGE_FIGURE_RESERVED];
    if (!limit->known || !held->known)
        return;
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = limit->bytes > held->bytes ? limit->bytes - held->bytes : 0,
        .coarse_bytes = limit->coarse_bytes + held->coarse_bytes,
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

/* XLA says "allocating" as well, after a code of its own and without what was allocated so far. */
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
        *asked = size; /* the log has it in bytes */
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
