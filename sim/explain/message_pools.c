/* The wordings of CuPy's pool and of RAPIDS RMM:
 *
 *   CuPy       Out of memory allocating N bytes [(allocated so far: N bytes[, limit set to:
 *              N bytes])], with commas between thousands; "so far" is all reserved memory
 *   CuPy to 6  out of memory to allocate N bytes (total N bytes[, limit set to N bytes]); the total
 *              is what would be reserved if the request succeeded
 *   RMM        [std::bad_alloc: out_of_memory:] CUDA error | RMM failure at ...: Maximum pool size
 *              exceeded | Exceeded memory limit (failed to allocate S) [at ...] [: Not enough room
 *              to grow, current/max/try size = S, S, S]     (before 25.04 without sizes)
 *   RMM's log  [A][Stream P][Upstream NB][FAILURE maximum pool size exceeded: ...]
 *
 * The total is the limit, and the free memory is the rest of the limit, because the messages have
 * no figures of the card. They do not say what of the pool is unused. */
#include <string.h>

#include "sim/explain/message_forms.h"

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

/* XLA also prints "allocating", but after its own error code and without the allocated bytes. */
static bool read_cupy(const struct message_text *text, struct message *self)
{
    static const char words[] = "outofmemoryallocating";
    struct message_figure *figures = self->figures;
    struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    bool cupy = message_text_has(text, "cupy");
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
        if (message_text_ends(text, "resource_exhausted:", at) || !(so_far || cupy || commas))
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
    size_t at = message_text_after(text, "current/max/trysize=", from, from + 400,
                                   &self->figures[MESSAGE_FIGURE_RESERVED]);
    if (at != MESSAGE_NOWHERE && text->chars[at] == ',')
        (void)message_text_size(text, at + 1, &self->figures[MESSAGE_FIGURE_TOTAL]);
}

/* "out of memory to allocate N bytes (total N bytes, limit set to N bytes)" */
static bool read_old_cupy(const struct message_text *text, struct message *self)
{
    static const char words[] = "outofmemorytoallocate", sum[] = "(total", bound[] = ",limitsetto";
    struct message_figure *figures = self->figures, size, total;
    for (size_t at = 0; (at = message_text_find(text, words, at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        size_t end = message_text_asked(text, at + strlen(words), &size);
        if (end == MESSAGE_NOWHERE || strncmp(text->chars + end, sum, strlen(sum)) != 0)
            continue;
        end = message_text_size(text, end + strlen(sum), &total);
        if (end == MESSAGE_NOWHERE || !total.known || self->count++)
            continue;
        figures[MESSAGE_FIGURE_ASKED] = size;
        figures[MESSAGE_FIGURE_RESERVED] = (struct message_figure){
            .known = true,
            .derived = true,
            .bytes = total.bytes > size.bytes ? total.bytes - size.bytes : 0,
        };
        if (strncmp(text->chars + end, bound, strlen(bound)) == 0)
            (void)message_text_size(text, end + strlen(bound), &figures[MESSAGE_FIGURE_TOTAL]);
    }
    self->framework = MESSAGE_CUPY;
    return self->count > 0;
}

/* Words that only RMM and its users have; "rmm" alone is also within "layer norm module". */
static bool speaks_rmm(const struct message_text *text)
{
    static const char *const words[] = {"maximumpoolsizeexceeded",
                                        "exceededmemorylimit(",
                                        "bad_alloc:",
                                        "rmm/",
                                        "rmmfailure",
                                        "rmm.mr",
                                        "rmm._lib",
                                        "rmm::",
                                        "rmm_",
                                        NULL};
    return message_text_any(text, words, 0, text->count);
}

const char message_how_earlier[] =
    "It is no lack of memory: the driver reports here that an earlier kernel has failed (an "
    "illegal memory access). Find out: compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1.";

static bool read_rmm(const struct message_text *text, struct message *self)
{
    static const char words[] = "(failedtoallocate", log[] = "][upstream";
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    bool said = speaks_rmm(text);
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
            bool other =
                message_text_find(text, "illegalmemoryaccess", at, at + 400) != MESSAGE_NOWHERE;
            self->how = other ? message_how_earlier : NULL;
            self->elsewhere = other;
        }
    }
    size_t at = message_text_after(text, log, 0, text->count, &size);
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
    bool found = read_cupy(text, &cupy) || read_old_cupy(text, &cupy) || read_rmm(text, &rmm);
    *self = cupy.count ? cupy : rmm;
    self->taken = found;
    fill_free(self);
    return found;
}
