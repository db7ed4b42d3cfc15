/* Sizes and numbers in the text of a message. */
#include "sim/explain/message_text.h"

#include <ctype.h>
#include <math.h>

#define FIGURE_MOST (UINT64_C(1) << 60) /* a larger figure is from a failed query, not of a card */

const struct message_figure message_figure_enormous = {
    .known = true, .bytes = FIGURE_MOST, .or_more = true};

static bool is_digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

/* Longer spellings first. */
static const struct unit {
    const char *name;
    unsigned shift;
} units[] = {
    {"gigabytes", 30}, {"megabytes", 20}, {"gigs", 30}, {"megs", 20}, {"bytes", 0}, {"byte", 0},
    {"kib", 10},       {"mib", 20},       {"gib", 30},  {"tib", 40},  {"pib", 50},  {"kb", 10},
    {"mb", 20},        {"gb", 30},        {"tb", 40},   {"pb", 50},   {"k", 10},    {"m", 20},
    {"g", 30},         {"t", 40},         {"p", 50},    {"b", 0},     {"eib", 60},  {"eb", 60},
};

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* A single letter is a unit only at the end of a word and in the line of its number: "3 messages"
 * is not 3 MiB. Apart from it, at a line's end, it may begin a word that goes on: "from 40 t|o". */
static const struct unit *unit_at(const struct message_text *self, size_t at)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].name);
        if (strncmp(self->chars + at, units[i].name, length) == 0 &&
            (length > 1 || (self->gaps[at] != MESSAGE_GAP_LINE &&
                            (!is_letter(self->chars[at + 1]) ||
                             (message_text_apart(self, at + 1) &&
                              !(self->gaps[at] && self->gaps[at + 1] == MESSAGE_GAP_LINE))))))
            return &units[i];
    }
    return NULL;
}

/* Whether a number ends before `at`. If `across`, it may continue after a line end. */
static bool is_apart(const struct message_text *self, size_t at, bool across)
{
    return message_text_apart(self, at) && !(across && self->gaps[at] == MESSAGE_GAP_LINE);
}

/* A comma between groups of three digits, as in CuPy's messages, or another mark there. */
static bool is_group_comma(const struct message_text *self, size_t at, bool across)
{
    const char *c = self->chars + at;
    return (c[0] == ',' || c[0] == '\'' || c[0] == '_') && is_digit(c[1]) && is_digit(c[2]) &&
           is_digit(c[3]) && !is_digit(c[4]) && !is_apart(self, at + 1, across);
}

/* A comma before one or two decimals and a unit, as programs in some languages print them. */
static bool is_decimal_comma(const struct message_text *self, size_t at)
{
    const char *c = self->chars + at;
    size_t digits = 1 + (size_t)is_digit(c[1] ? c[2] : '\0');
    return c[0] == ',' && is_digit(c[1]) && !message_text_apart(self, at + 1) &&
           is_letter(c[1 + digits]);
}

/* A point between groups of three digits, as programs in some languages print them. One point alone
 * is that of a decimal number, unless a comma with decimals follows. */
static bool is_group_point(const struct message_text *self, size_t at, bool grouped, bool across)
{
    const char *c = self->chars + at;
    if (c[0] != '.' || !is_digit(c[1]) || !is_digit(c[2]) || !is_digit(c[3]) || is_digit(c[4]) ||
        is_apart(self, at + 1, across))
        return false;
    return grouped || is_decimal_comma(self, at + 4) ||
           (c[4] == '.' && is_digit(c[5]) && is_digit(c[6]) && is_digit(c[7]) && !is_digit(c[8]) &&
            !is_apart(self, at + 4, across) && !is_apart(self, at + 5, across));
}

/* Reads a decimal number, which a double cannot hold above 2^53. White space ends it unless
 * `across`. */
static size_t read_decimal(const struct message_text *self, size_t at, bool across,
                           long double *value, long double *last_digit)
{
    size_t begin = at;
    bool fraction = false, grouped = false;
    *value = 0;
    *last_digit = 1;
    for (; at < self->count; at++) {
        char c = self->chars[at];
        if (at > begin && is_apart(self, at, across))
            break;
        if (at > begin && !fraction && is_group_point(self, at, grouped, across)) {
            grouped = true;
            continue;
        }
        bool point = c == '.' && is_digit(self->chars[at + 1]);
        if (!fraction && at > begin && (point || is_decimal_comma(self, at))) {
            fraction = true;
        } else if (at > begin && !fraction && is_group_comma(self, at, across)) {
            continue;
        } else if (is_digit(c) && fraction) {
            *last_digit /= 10;
            *value += (c - '0') * *last_digit;
        } else if (is_digit(c)) {
            *value = *value * 10 + (c - '0');
        } else {
            break;
        }
    }
    return at;
}

/* Whether a terminal broke the number in [at, end). */
static bool wraps(const struct message_text *self, size_t at, size_t end)
{
    return memchr(self->gaps + at + 1, MESSAGE_GAP_WRAP, end - at - 1) != NULL;
}

size_t message_text_size(const struct message_text *self, size_t at, struct message_figure *figure)
{
    long double value, last;
    if (at >= self->count || !is_digit(self->chars[at]))
        return MESSAGE_NOWHERE;
    size_t end = read_decimal(self, at, false, &value, &last);
    const struct unit *unit = unit_at(self, end);
    bool across = !unit; /* a line end may be inside of the number */
    if (across) {
        end = read_decimal(self, at, true, &value, &last);
        unit = unit_at(self, end);
    }
    if (!unit && self->chars[end] == '.') { /* NumPy: "262. MiB" */
        unit = unit_at(self, end + 1);
        if (unit && strlen(unit->name) == 3)
            end++;
        else
            unit = NULL;
    }
    if (!unit)
        return MESSAGE_NOWHERE;
    long double scale = (long double)(UINT64_C(1) << unit->shift);
    *figure = (struct message_figure){.known = value * scale < (long double)FIGURE_MOST};
    if (figure->known) {
        figure->cut = across || wraps(self, at, end) ? MESSAGE_CUT_AT_END : MESSAGE_UNCUT;
        figure->bytes = (uint64_t)(value * scale + 0.5L);
        figure->coarse_bytes = unit->shift ? (uint64_t)(last * scale / 2 + 0.5L) : 0;
        /* "GB" is 2^30 bytes in nearly all of them; beside "GiB" it may be 10^9. */
        if (self->binary && unit->shift && strlen(unit->name) == 2)
            figure->coarse_bytes +=
                figure->bytes - (uint64_t)(value * powl(10, 0.3L * unit->shift));
    }
    return end + strlen(unit->name);
}

bool message_text_is_stamp(const char *text, size_t bytes)
{
    static const char *const forms[] = {"0-0-0", "0/0/0", "0:0", "0.0.0"}; /* 0: digits */
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t at = 0, begin;
        const char *form = forms[i];
        for (; *form; form++) {
            for (begin = at; at < bytes && *form == '0' && is_digit(text[at]);)
                at++;
            at += *form != '0' && at < bytes && text[at] == *form;
            if (at == begin)
                break;
        }
        if (!*form)
            return true;
    }
    return false;
}

/* Whether digits may be missing: the text ends right behind the number, or the next line begins
 * with digits that are no date, time or version. A terminal broke the number before `end`: so it
 * may be. */
static enum message_cut cut_at(const struct message_text *self, size_t begin, size_t end)
{
    const char *c = self->chars + end;
    size_t digits = strspn(c, "0123456789"), after = digits;
    after += c[after] == '.' ? 1 + strspn(c + after + 1, "0123456789") : 0;
    bool breaks = digits && self->gaps[end] == MESSAGE_GAP_LINE &&
                  !message_text_is_stamp(c, self->count - end) &&
                  !(is_letter(c[after]) && !message_text_apart(self, end + after));
    if (wraps(self, begin, end) || (self->cut && end + after == self->count && (breaks || !digits)))
        return MESSAGE_CUT_AT_END;
    return breaks ? MESSAGE_CUT_AT_LINE : MESSAGE_UNCUT;
}

size_t message_text_number(const struct message_text *self, size_t at, int shift,
                           struct message_figure *figure)
{
    long double value, last;
    if (at < self->count && strncmp(self->chars + at, "0x", 2) == 0) {
        uint64_t bytes = 0;
        size_t begin = at += 2;
        for (; isxdigit((unsigned char)self->chars[at]) &&
               (at == begin || !message_text_apart(self, at));
             at++) {
            char c = self->chars[at];
            uint64_t digit = (uint64_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
            bytes = bytes < FIGURE_MOST ? bytes * 16 + digit : bytes;
        }
        *figure = bytes < FIGURE_MOST ? (struct message_figure){.known = true, .bytes = bytes}
                                      : message_figure_enormous;
        return at;
    }
    size_t end = message_text_asked(self, at, figure);
    if (end != MESSAGE_NOWHERE || at >= self->count || !is_digit(self->chars[at]))
        return end;
    end = read_decimal(self, at, false, &value, &last);
    long double scale = (long double)(UINT64_C(1) << (shift < 0 ? 0 : shift));
    if (last < 1 && shift <= 0)
        return MESSAGE_NOWHERE;
    *figure =
        value * scale < (long double)FIGURE_MOST
            ? (struct message_figure){.known = true, .bytes = (uint64_t)(value * scale + 0.5L)}
            : message_figure_enormous;
    figure->coarse_bytes = shift > 0 ? (uint64_t)(last * scale / 2 + 0.5L) : 0;
    figure->cut = cut_at(self, at, end);
    return end;
}

size_t message_text_asked(const struct message_text *self, size_t at, struct message_figure *figure)
{
    size_t end = message_text_size(self, at, figure);
    if (end != MESSAGE_NOWHERE && !figure->known)
        *figure = message_figure_enormous;
    return end;
}

bool message_text_size_before(const struct message_text *self, size_t at,
                              struct message_figure *figure)
{
    size_t begin = at;
    while (begin > 0 && at - begin < 5 && self->chars[begin - 1] >= 'a' &&
           self->chars[begin - 1] <= 'z')
        begin--;
    while (begin > 0 && at - begin < 32 &&
           (is_digit(self->chars[begin - 1]) || strchr(".,'_", self->chars[begin - 1])))
        begin--;
    while (begin < at && self->chars[begin] == '.')
        begin++;
    for (; begin < at; begin++) /* the word before it may end in a digit */
        if (message_text_size(self, begin, figure) == at)
            return true;
    return false;
}

size_t message_text_count(const struct message_text *self, size_t at, uint64_t *count)
{
    size_t begin = at;
    *count = 0;
    for (; at < self->count && is_digit(self->chars[at]); at++) {
        if (at > begin && message_text_apart(self, at))
            break;
        if (*count > FIGURE_MOST)
            return MESSAGE_NOWHERE;
        *count = *count * 10 + (uint64_t)(self->chars[at] - '0');
    }
    return at > begin ? at : MESSAGE_NOWHERE;
}

size_t message_text_after(const struct message_text *self, const char *words, size_t from,
                          size_t to, struct message_figure *figure)
{
    for (size_t at = from; (at = message_text_find(self, words, at, to)) != MESSAGE_NOWHERE;) {
        at += strlen(words);
        size_t end = message_text_number(self, at, 0, figure);
        if (end != MESSAGE_NOWHERE)
            return end;
    }
    return MESSAGE_NOWHERE;
}

/* Where the last of these words, with bars between them, ends in the `reach` characters before
 * `at`, behind the number before; 0: none is there. */
static size_t last_of(const struct message_text *text, const char *words, size_t at, size_t reach)
{
    size_t from = at, last = 0;
    while (from > 0 && at - from < reach && !is_digit(text->chars[from - 1]))
        from--;
    for (; *words; words += strcspn(words, "|"), words += *words == '|') {
        size_t length = strcspn(words, "|");
        for (size_t i = at; i >= from + length && i > last; i--)
            if (memcmp(text->chars + i - length, words, length) == 0)
                last = i;
    }
    return last;
}

static bool begins_any(const struct message_text *text, const char *words, size_t at)
{
    for (; *words; words += strcspn(words, "|"), words += *words == '|')
        if (strncmp(text->chars + at, words, strcspn(words, "|")) == 0)
            return true;
    return false;
}

/* Whether the number is the size of a chunk in TensorFlow's dump: "next 12 of size 4096", or the
 * other way round. */
static bool is_chunk(const struct message_text *text, size_t at)
{
    static const char size[] = "ofsize";
    if (begins_any(text, "next", at + strspn(text->chars + at, "0123456789")))
        return true;
    at -= message_text_ends(text, size, at) ? strlen(size) : 0;
    while (at > 0 && is_digit(text->chars[at - 1]))
        at--;
    return message_text_ends(text, "next", at) || message_text_ends(text, "chunks", at);
}

/* Words beside a size which is no request. */
static const char not_asked[] =
    "free|avail|total|capacity|limit|max|used|inuse|only|left|budget|allocated|than|has|have|~|"
    "roughly|"
    "upto|idle|torun|ofvram|ofram|buffer(s)|allocates|>|memrequired|ctxsize|modelsize|filesize|"
    "selfsize|totalsize|"
    "buffersize=|"
    "memorysize=";

/* Whether the size is one of several that were tried: "set it to 1G, 2G, 5G". */
static bool is_listed(const struct message_text *text, size_t at, size_t end)
{
    struct message_figure other;
    size_t next =
        text->chars[end] == ',' ? message_text_size(text, end + 1, &other) : MESSAGE_NOWHERE;
    return (next != MESSAGE_NOWHERE && !begins_any(text, not_asked, next)) ||
           (at > 0 && text->chars[at - 1] == ',' && message_text_size_before(text, at - 1, &other));
}

/* "0x13ffffffe8 bytes". */
static size_t read_hex_bytes(const struct message_text *text, size_t at,
                             struct message_figure *size)
{
    size_t end = message_text_number(text, at, 0, size);
    return end > at + 2 && begins_any(text, "bytes", end) ? end : MESSAGE_NOWHERE;
}

#define REQUEST_REACH 4000 /* characters between a failure and its request */

size_t message_text_request(const struct message_text *text, size_t failure,
                            struct message_figure *asked)
{
    static const char asks[] = "alloc|request|requir|need|estimat|buffer(|tofind|size|asked";
    static const char sizes[] =
        "(size=|.size=|,size=|requestedbytes:[|ofsize|oflength|sz=|malloc(|managed(|memorysize|"
        "buffersize|cl_mem_read_write,|requirements(";
    struct message_figure size;
    size_t found = MESSAGE_NOWHERE, nearest = REQUEST_REACH,
           from = failure > nearest ? failure - nearest : 0;
    for (size_t at = from; at < text->count && at < failure + REQUEST_REACH; at++) {
        size_t apart = at > failure ? at - failure : failure - at;
        if (!is_digit(text->chars[at]) || apart >= nearest ||
            (at > 0 && isalnum((unsigned char)text->chars[at - 1]) && !text->gaps[at]))
            continue;
        bool hex = strncmp(text->chars + at, "0x", 2) == 0;
        size_t end = hex ? read_hex_bytes(text, at, &size) : message_text_asked(text, at, &size);
        bool unit = end != MESSAGE_NOWHERE;
        size_t after = unit ? end : at + strspn(text->chars + at, "0123456789");
        bool said = (unit || after > at + 4) && /* "41 layers requested" */
                    begins_any(text, "requested|needed|required", after);
        bool named = hex && !unit ? last_of(text, "size", at, 5)
                     : unit ? last_of(text, asks, at, 32) > last_of(text, not_asked, at, 32) &&
                                  !begins_any(text, not_asked, end)
                            : last_of(text, sizes, at, 18) > last_of(text, "than|upto", at, 18) &&
                                  !is_chunk(text, at);
        if (!said && (!named || (unit && is_listed(text, at, end))))
            continue;
        if (!unit)
            end = message_text_number(text, at, 0, &size);
        bool model = unit && size.bytes < 1024 && text->chars[end - 1] == 'b'; /* "a 13B model" */
        if (end == MESSAGE_NOWHERE || !size.bytes || model)
            continue;
        nearest = apart;
        *asked = size;
        found = at;
    }
    return found;
}
