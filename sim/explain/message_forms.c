/* Reads messages by the table of their wordings, and what a table cannot describe. */
#include <ctype.h>

#include "sim/explain/message_forms.h"

static const char how_spark_spills[] =
    "The device store still has bytes to spill, so the request is tried again after that: this is "
    "a failure only if an out-of-memory error follows.";

#define GAP_MOST 400 /* characters of '*' */

/* Letters of the figures in patterns, and E for another part of the request. */
static const char letters[MESSAGE_FIGURE_COUNT] = {
    [MESSAGE_FIGURE_ASKED] = 'A',        [MESSAGE_FIGURE_TOTAL] = 'T',
    [MESSAGE_FIGURE_FREE] = 'F',         [MESSAGE_FIGURE_START] = 'S',
    [MESSAGE_FIGURE_ALLOWED] = 'W',      [MESSAGE_FIGURE_ALLOCATED] = 'P',
    [MESSAGE_FIGURE_PEAK] = 'K',         [MESSAGE_FIGURE_PRIVATE] = 'V',
    [MESSAGE_FIGURE_RESERVED] = 'R',     [MESSAGE_FIGURE_UNALLOCATED] = 'U',
    [MESSAGE_FIGURE_UNRELEASABLE] = 'N', [MESSAGE_FIGURE_LARGEST] = 'L',
    [MESSAGE_FIGURE_PROCESS] = 'I',      [MESSAGE_FIGURE_OUTSIDE_POOL] = 'O',
    [MESSAGE_FIGURE_OTHERS] = 'H',       [MESSAGE_FIGURE_REMAINDER] = 'Y',
    [MESSAGE_FIGURE_PROGRAM] = 'Q',      [MESSAGE_FIGURE_TEMPORARIES] = 'M',
};

static bool is_letter(char c)
{
    return c >= 'A' && c <= 'Z';
}

static size_t figure_of(char letter)
{
    const char *found = memchr(letters, letter, sizeof letters);
    return found ? (size_t)(found - letters) : MESSAGE_FIGURE_ASKED;
}

/* A size that no double holds, if it is printed in bytes; of a larger one 2^63. */
static void read_enormous(const struct message_text *text, size_t at, size_t end,
                          struct message_figure *figure)
{
    static const uint64_t most = UINT64_C(1) << 63;
    uint64_t bytes = 0;
    for (; at < end && isdigit((unsigned char)text->chars[at]); at++)
        bytes = bytes < most / 10 ? bytes * 10 + (uint64_t)(text->chars[at] - '0') : most;
    if (at < end && text->chars[at] != 'b')
        return;
    figure->bytes = bytes;
    figure->or_more = bytes >= most;
}

static size_t read_figure(const struct message_text *text, size_t at, char letter, int shift,
                          struct message_figure *figure)
{
    size_t end = shift >= 0      ? message_text_number(text, at, shift, figure)
                 : letter == 'A' ? message_text_asked(text, at, figure)
                                 : message_text_size(text, at, figure);
    if (letter == 'A' && text->chars[at] == '-' &&
        (end = message_text_number(text, at + 1, shift, figure)) != MESSAGE_NOWHERE) {
        figure->bytes = message_figure_enormous.bytes; /* a size that wrapped around below zero */
        figure->or_more = true;
    } else if (letter == 'A' && end != MESSAGE_NOWHERE && figure->or_more) {
        read_enormous(text, at, end, figure);
    }
    if (letter != 'A' && end != MESSAGE_NOWHERE)
        figure->known &= figure->bytes < UINT64_C(1) << 60; /* else from a failed query */
    return end;
}

/* The next place in [at, last] where a pattern that begins with `first` may begin. */
static size_t candidate(const struct message_text *text, size_t at, size_t last, char first)
{
    if (is_letter(first) || first == '#' || at > last)
        return at;
    const char *found = memchr(text->chars + at, first, last + 1 - at);
    return found ? (size_t)(found - text->chars) : MESSAGE_NOWHERE;
}

/* Where the pattern ends if it begins at `at`. */
static size_t match(const struct message_text *text, size_t at, const char *pattern, int shift,
                    struct message_figure *figures)
{
    for (; *pattern && *pattern != '|' && *pattern != '&'; pattern++) {
        struct message_figure figure;
        size_t begin = at, end = MESSAGE_NOWHERE;
        if (is_letter(*pattern)) {
            at = read_figure(text, at, *pattern, shift, &figure);
            if (at != MESSAGE_NOWHERE)
                end = match(text, at, pattern + 1, shift, figures);
            if (end == MESSAGE_NOWHERE)
                return end;
            struct message_figure *into = &figures[figure_of(*pattern)];
            figure.derived = *pattern == 'E';
            if (into->derived) { /* another part of the request */
                figure.bytes += into->bytes;
                figure.coarse_bytes += into->coarse_bytes;
                figure.derived = true;
            }
            *into = figure;
            return end;
        }
        if (*pattern == '*') {
            size_t last = begin + GAP_MOST < text->count ? begin + GAP_MOST : text->count;
            for (; end == MESSAGE_NOWHERE && (at = candidate(text, at, last, pattern[1])) <= last;
                 at++)
                end = match(text, at, pattern + 1, shift, figures);
            return end;
        }
        at +=
            *pattern == '#' ? strspn(text->chars + at, "0123456789") : text->chars[at] == *pattern;
        if (at == begin)
            return MESSAGE_NOWHERE;
    }
    return at;
}

size_t message_pattern_find(const struct message_text *text, const char *pattern, size_t from,
                            size_t to, int shift, struct message_figure *figures, size_t *end)
{
    struct message_figure before;
    char first[80];
    const char *words = pattern + is_letter(*pattern);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(words, "#*&|ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
             words);
    for (size_t at = from; (at = message_text_find(text, first, at, to)) != MESSAGE_NOWHERE; at++) {
        bool sized = words > pattern;
        if (sized && !message_text_size_before(text, at, &before))
            continue;
        *end = match(text, at, words, shift, figures);
        if (*end == MESSAGE_NOWHERE || message_text_find(text, first, at + 1, *end) < *end)
            continue;
        if (sized)
            figures[figure_of(*pattern)] = before;
        return at;
    }
    return MESSAGE_NOWHERE;
}

const char *message_pattern_next(const char *pattern)
{
    pattern += strcspn(pattern, "|&");
    return *pattern == '|' ? pattern + 1 : NULL;
}

bool message_pattern_read(const struct message_text *text, const char *patterns, size_t from,
                          size_t to, int shift, struct message_figure *figures)
{
    size_t end;
    bool first = false;
    for (const char *part = patterns; *part; part += strcspn(part, "&"), part += *part == '&')
        for (const char *pattern = part; pattern; pattern = message_pattern_next(pattern))
            if (message_pattern_find(text, pattern, from, to, shift, figures, &end) !=
                MESSAGE_NOWHERE) {
                first |= part == patterns;
                break;
            }
    return first;
}

void message_form_apply(const struct message_form *form, struct message *self)
{
    self->framework = form->framework;
    self->indirect = form->flags & FORM_LIKELY;
    self->host = form->flags & FORM_HOST;
    self->may_fail = form->flags & FORM_SPARE;
    self->card_told = form->flags & FORM_CARD;
    self->on_chip = form->flags & FORM_CHIP;
    self->elsewhere = form->flags & FORM_ELSEWHERE;
    self->block_limit = form->flags & FORM_BLOCK;
    self->one_pool = form->flags & FORM_ONE_POOL;
    self->how = form->how;
    snprintf(self->device, sizeof self->device, "%s", form->device);
}

/* Reads the messages of one pattern. What may be missing is looked for up to the next of them. */
static bool read_pattern(const struct message_text *text, const struct message_form *form,
                         const char *pattern, struct message *self)
{
    int shift = form->flags & FORM_GIB ? 30 : form->flags & FORM_MIB ? 20 : 0;
    size_t end, rest, at = 0, next = 0;
    for (; next != MESSAGE_NOWHERE; at = next) {
        struct message other = {0};
        at = message_pattern_find(text, pattern, at, text->count, shift, other.figures, &end);
        if (at == MESSAGE_NOWHERE)
            break;
        next = message_pattern_find(text, pattern, at + 1, text->count, shift,
                                    (struct message_figure[MESSAGE_FIGURE_COUNT]){{0}}, &rest);
        if (message_text_other_reason(text, end))
            continue;
        size_t to = next < end + GAP_MOST ? next : end + GAP_MOST;
        const char *more = strchr(form->pattern, '&');
        if (more)
            (void)message_pattern_read(text, more + 1, at, to, shift, other.figures);
        self->count++;
        if (self->count > 1 && !(form->flags & FORM_LAST))
            continue;
        memcpy(self->figures, other.figures, sizeof self->figures);
        self->taken = self->count;
        self->at = at;
        self->end = end;
    }
    return self->count;
}

bool message_form_read(const struct message_text *text, const struct message_form *form,
                       struct message *self)
{
    for (const char *pattern = form->pattern; pattern; pattern = message_pattern_next(pattern)) {
        struct message other = {0};
        if (read_pattern(text, form, pattern, &other) && (!self->count || other.end <= self->at))
            *self = other;
    }
    if (self->count)
        message_form_apply(form, self);
    return self->count;
}

/* ---- what a table cannot describe ----------------------------------------------------------- */

/* The name of a buffer's device, such as "cuda1", "rocm0" or "cpu". */
static void read_ggml_name(const struct message_text *text, char name[16])
{
    static const char before[] = "failedtoallocate", after[] = "bufferofsize";
    size_t end = message_text_find(text, after, 0, text->count);
    size_t begin = end == MESSAGE_NOWHERE
                       ? end
                       : message_text_find(text, before, end > 60 ? end - 60 : 0, end);
    name[0] = '\0';
    if (begin == MESSAGE_NOWHERE)
        return;
    begin += strlen(before);
    if (end - begin < 16)
        snprintf(name, 16, "%.*s", (int)(end - begin), text->chars + begin);
}

/* What was free at the start, and the buffers that the program has allocated since. */
static void read_ggml_log(const struct message_text *text, const char *name, struct message *self)
{
    struct message_figure *figures = self->figures;
    struct message_figure *start = &figures[MESSAGE_FIGURE_START], size;
    struct message_figure *allocated = &figures[MESSAGE_FIGURE_ALLOCATED];
    char words[40];
    snprintf(words, sizeof words, "usingdevice%s(*Sfree", name);
    if (!message_pattern_read(text, words, 0, text->count, -1, figures))
        return;
    allocated->known = true;
    for (size_t at = 0;
         (at = message_text_find(text, "buffersize=", at, text->count)) != MESSAGE_NOWHERE; at++) {
        size_t length = strlen(name), from = at > 24 ? at - 24 : 0;
        size_t named = message_text_find(text, name, from, at);
        if (named != MESSAGE_NOWHERE && text->chars[named + length] >= 'a' &&
            message_text_size(text, at + strlen("buffersize="), &size) != MESSAGE_NOWHERE) {
            allocated->bytes += size.bytes;
            allocated->coarse_bytes += size.coarse_bytes;
        }
    }
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = start->bytes > allocated->bytes ? start->bytes - allocated->bytes : 0,
        .coarse_bytes = start->coarse_bytes + allocated->coarse_bytes,
    };
}

static void finish_ggml(const struct message_text *text, struct message *self)
{
    char name[16];
    read_ggml_name(text, name);
    if (strncmp(name, "cpu", 3) == 0 || strstr(name, "host") ||
        message_text_has(text, "cpu_buffer_type_alloc_buffer"))
        self->host = true;
    else if (strncmp(name, "rocm", 4) == 0)
        snprintf(self->device, sizeof self->device, "HIP");
    else if (strncmp(name, "vulkan", 6) == 0)
        snprintf(self->device, sizeof self->device, "Vulkan");
    else if (strncmp(name, "cuda", 4) == 0 ||
             (!name[0] && !self->device[0] && message_text_has(text, "cudamallocfailed") &&
              !message_text_has(text, "rocm")))
        snprintf(self->device, sizeof self->device, "CUDA");
    if (strncmp(name, "vulkan", 6) == 0)
        self->how = message_how_vulkan;
    if (strcmp(self->device, "Vulkan") == 0 &&
        (message_text_has(text, "exceedsdevicememoryallocationlimit") ||
         message_text_has(text, "exceedsdevicebuffersizelimit")))
        self->block_limit = true;
    if (name[0] && !self->host)
        read_ggml_log(text, name, self);
}

/* The size of the pool is in another line of the log, and whether there is something to spill. */
static void finish_spark(const struct message_text *text, struct message *self)
{
    static const char store[] = "devicestorehas";
    struct message_figure *figures = self->figures, spill = {0};
    for (size_t at = 0; (at = message_text_find(text, store, at, text->count)) != MESSAGE_NOWHERE;)
        (void)message_text_number(text, at += strlen(store), 0, &spill);
    if (spill.bytes) {
        self->may_fail = true;
        self->how = how_spark_spills;
    }
    size_t end;
    if (message_pattern_find(text, "initializingrmm*maxsize=T", 0, text->count, 0, figures, &end) ==
        MESSAGE_NOWHERE)
        return;
    figures[MESSAGE_FIGURE_RESERVED] = figures[MESSAGE_FIGURE_TOTAL];
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){.known = true, .derived = true};
}

/* Other frameworks print the words of a TPU's runtime too. The request and the total of a program
 * may be rounded to the same figure; what it exceeds is not. */
static void finish_tpu(const struct message_text *text, struct message *self)
{
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED], over;
    const struct message_figure *total = &self->figures[MESSAGE_FIGURE_TOTAL];
    self->framework = message_text_speaks_jax(text) ? MESSAGE_JAX : MESSAGE_TENSORFLOW;
    self->one_pool &= self->figures[MESSAGE_FIGURE_UNALLOCATED].known;
    if (total->known && asked->bytes <= total->bytes &&
        message_text_after(text, "capacityby", 0, text->count, &over) != MESSAGE_NOWHERE) {
        asked->bytes = total->bytes + over.bytes;
        asked->derived = true;
    }
}

/* Whether the text has words that only these programs and their users have. A comma in the size is
 * CuPy's. */
static bool is_named(const struct message_text *text, const struct message_form *form)
{
    static const char rmm[] = "maximumpoolsizeexceeded|exceededmemorylimit(|bad_alloc:|rmm/"
                              "|rmmfailure|rmm.mr|rmm._lib|rmm::|rmm_";
    static const char allocating[] = "outofmemoryallocating";
    if (form->framework == MESSAGE_RMM)
        return message_text_any(text, rmm, 0, text->count);
    size_t at = message_text_find(text, allocating, 0, text->count);
    return at != MESSAGE_NOWHERE && !message_text_ends(text, "resource_exhausted:", at) &&
           (message_text_has(text, "cupy") ||
            message_text_find(text, ",", at, at + strlen(allocating) + 4) != MESSAGE_NOWHERE);
}

/* CuPy and RMM print no figures of the card: what is free is the rest of the limit. They do not
 * say what of the pool is unused. */
static void finish_limit(const struct message_form *form, struct message *self)
{
    struct message_figure *figures = self->figures;
    const struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    const struct message_figure *limit = &figures[MESSAGE_FIGURE_TOTAL];
    struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    if (form->flags & FORM_SUM) {
        reserved->bytes = reserved->bytes > asked->bytes ? reserved->bytes - asked->bytes : 0;
        reserved->derived = true;
    }
    if (limit->known && reserved->known)
        figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
            .known = true,
            .derived = true,
            .bytes = limit->bytes > reserved->bytes ? limit->bytes - reserved->bytes : 0,
            .coarse_bytes = limit->coarse_bytes + reserved->coarse_bytes,
        };
}

/* Whether words of the host's programs are those of a card, which their line names: "Unable to
 * allocate 1 GiB for an array on the GPU". */
static bool is_of_card(const struct message_text *text, const struct message *self)
{
    return self->host && message_text_in_line_of_card(text, self->at) &&
           !message_text_any(text, "host|pinned|cpu|system", self->at, self->end);
}

static bool read_form(const struct message_text *text, const struct message_form *form,
                      struct message *self)
{
    if ((form->flags & FORM_NAMED && !is_named(text, form)) ||
        !message_form_read(text, form, self) || is_of_card(text, self))
        return false;
    if (self->framework == MESSAGE_CUPY || self->framework == MESSAGE_RMM)
        finish_limit(form, self);
    if (self->framework == MESSAGE_GGML)
        finish_ggml(text, self);
    if (self->framework == MESSAGE_SPARK)
        finish_spark(text, self);
    if (strcmp(self->device, "TPU") == 0)
        finish_tpu(text, self);
    return true;
}

bool message_read_forms(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < message_form_count; i++) {
        struct message other = {0};
        if (read_form(text, &message_forms[i], &other) &&
            (!self->count || message_is_before(&other, self)))
            *self = other;
    }
    return self->count;
}
