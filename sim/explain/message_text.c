#include "sim/explain/message_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The length of an escape character, raw or escaped as in source code and JSON; 0: none. */
static size_t escape_mark(const char *text, size_t at, size_t bytes)
{
    static const char *const marks[] = {"\033", "\\u001b", "\\x1b", "\\033", "\\e"};
    if (text[at] != '\033' && text[at] != '\\')
        return 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t length = strlen(marks[i]);
        if (bytes - at >= length && memcmp(text + at, marks[i], length) == 0)
            return length;
    }
    return 0;
}

/* The length of the terminal control sequence at `at`; 0: none. Some logs have lost the escape
 * character: "[1;31m". */
static size_t escape_length(const char *text, size_t at, size_t bytes)
{
    size_t mark = escape_mark(text, at, bytes), bare = 1;
    while (!mark && text[at] == '[' && at + bare < bytes && bare < 12) {
        char c = text[at + bare++];
        if (c == 'm' && bare > 2)
            return bare;
        if (!is_digit(c) && c != ';')
            break;
    }
    if (!mark || at + mark >= bytes || text[at + mark] != '[')
        return 0;
    size_t end = at + mark + 1;
    while (end < bytes && !(text[end] >= '@' && text[end] <= '~'))
        end++;
    return (end < bytes ? end + 1 : bytes) - at;
}

static enum message_gap gap_of(char c)
{
    return c == '\n' || c == '\r' ? MESSAGE_GAP_LINE : MESSAGE_GAP_SPACE;
}

/* Spaces and box characters in UTF-8: U+00A0, U+2000 to U+200F, U+202F, U+2500 to U+257F,
 * U+FEFF. */
static size_t stroke_length(const char *text, size_t at, size_t bytes)
{
    const unsigned char *c = (const unsigned char *)text + at;
    if (bytes - at >= 2 && c[0] == 0xc2 && c[1] == 0xa0)
        return 2;
    if (bytes - at < 3)
        return 0;
    bool space = c[0] == 0xe2 && c[1] == 0x80 && (c[2] <= 0x8f || c[2] == 0xaf);
    bool box = c[0] == 0xe2 && (c[1] == 0x94 || c[1] == 0x95);
    bool mark = c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf;
    return space || box || mark ? 3 : 0;
}

/* A bar right before the end of a line belongs to a table. */
static bool is_last_bar(const char *text, size_t at, size_t bytes)
{
    if (text[at] != '|')
        return false;
    do
        at++;
    while (at < bytes &&
           (!text[at] || (is_space(text[at]) && gap_of(text[at]) == MESSAGE_GAP_SPACE)));
    return at == bytes || gap_of(text[at]) == MESSAGE_GAP_LINE;
}

/* The length of a tag of HTML or of an entity that stands for white space; 0: none. */
static size_t tag_length(const char *text, size_t at, size_t bytes, enum message_gap *gap)
{
    static const char *const names[] = {"br",     "p",  "pre", "code", "span", "div", "b",  "i",
                                        "strong", "em", "td",  "tr",   "li",   "a",   "tt", "samp"};
    size_t begin = at + 1, name;
    if (bytes - at >= 6 && memcmp(text + at, "&nbsp;", 6) == 0)
        return 6;
    if (text[at] != '<')
        return 0;
    begin += begin < bytes && text[begin] == '/';
    for (name = begin; name < bytes && ((text[name] | 0x20) >= 'a' && (text[name] | 0x20) <= 'z');)
        name++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (length != name - begin || strncasecmp(text + begin, names[i], length) != 0)
            continue;
        if (i < 3) /* they end a line */
            *gap = MESSAGE_GAP_LINE;
        size_t most = bytes - at < 200 ? bytes : at + 200;
        for (size_t end = name; end < most && text[end] != '<'; end++)
            if (text[end] == '>')
                return end + 1 - at;
    }
    return 0;
}

/* The value of a digit of base 10 or 16; 16: it is none. */
static unsigned digit_value(char c, unsigned base)
{
    if (is_digit(c))
        return (unsigned)(c - '0');
    c = (char)(c | 0x20);
    return base == 16 && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* A space between a digit and three digits, which is a mark between groups of digits if it is one
 * that does not break lines. */
static bool is_group_space(const char *text, size_t at, size_t end, size_t bytes)
{
    if (at == 0 || !is_digit(text[at - 1]) || bytes - end < 3)
        return false;
    return is_digit(text[end]) && is_digit(text[end + 1]) && is_digit(text[end + 2]) &&
           (bytes - end == 3 || !is_digit(text[end + 3]));
}

/* Characters of UTF-8 that stand for one of ASCII: of full width, Arabic digits and their marks,
 * marks between groups of digits. Returns their length; 0: none. */
static size_t foreign_length(const char *text, size_t at, size_t bytes, char *c)
{
    const unsigned char *wide = (const unsigned char *)text + at;
    size_t left = bytes - at;
    if (wide[0] < 0x80 || left < 2)
        return 0;
    if (wide[0] == 0xd9 && wide[1] >= 0xa0 && wide[1] <= 0xac) { /* U+0660 to U+066C */
        *c = "0123456789%.,"[wide[1] - 0xa0];
        return 2;
    }
    if (wide[0] == 0xc2 && wide[1] == 0xa0 && is_group_space(text, at, at + 2, bytes)) {
        *c = '\'';
        return 2;
    }
    if (left < 3)
        return 0;
    if ((wide[0] == 0xef && wide[1] == 0xbc && wide[2] > 0x80) ||
        (wide[0] == 0xef && wide[1] == 0xbd && wide[2] < 0x9f)) { /* U+FF01 to U+FF5E */
        *c = (char)((wide[1] - 0xbc) * 64 + wide[2] - 0x80 + ' ');
        return 3;
    }
    if (wide[0] == 0xe3 && wide[1] == 0x80 && wide[2] == 0x80) { /* U+3000 */
        *c = ' ';
        return 3;
    }
    /* U+2019; U+2009 and U+202F */
    bool quote = wide[0] == 0xe2 && wide[1] == 0x80 && wide[2] == 0x99;
    bool thin = wide[0] == 0xe2 && wide[1] == 0x80 && (wide[2] == 0x89 || wide[2] == 0xaf);
    if (quote || (thin && is_group_space(text, at, at + 3, bytes))) {
        *c = '\'';
        return 3;
    }
    return 0;
}

/* The length of a character that is written by its code, "&#58;", "&#x3a;" or "\u003a", or that
 * stands for one of ASCII, and its character of ASCII; 0: none. */
static size_t code_length(const char *text, size_t at, size_t bytes, char *c)
{
    size_t left = bytes - at, begin = 2, end, most = 4;
    unsigned base = 16, code = 0;
    size_t foreign = foreign_length(text, at, bytes, c);
    if (foreign || left < 3)
        return foreign;
    bool entity = text[at] == '&' && text[at + 1] == '#';
    if (!entity && !(text[at] == '\\' && text[at + 1] == 'u'))
        return 0;
    if (entity) {
        base = (text[at + 2] | 0x20) == 'x' ? 16 : 10;
        begin += base == 16;
    }
    for (end = begin; end < left && end - begin < most && digit_value(text[at + end], base) < base;
         end++)
        code = code * base + digit_value(text[at + end], base);
    if (end == begin || (entity ? end >= left || text[at + end] != ';' : end - begin < most))
        return 0;
    code = code == 0xa0 ? ' ' : code;
    *c = (char)(code & 0x7f);
    return code == (unsigned char)*c && (is_space(*c) || *c > ' ') && *c != '\177'
               ? end + (entity ? 1 : 0)
               : 0;
}

/* The length of an entity of HTML, and the character that it stands for; 0: none. */
static size_t entity_length(const char *text, size_t at, size_t bytes, char *c)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {
        {"&gt;", '>'}, {"&lt;", '<'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; text[at] == '&' && i < sizeof entities / sizeof *entities; i++) {
        size_t length = strlen(entities[i].name);
        if (bytes - at >= length && memcmp(text + at, entities[i].name, length) == 0) {
            *c = entities[i].c;
            return length;
        }
    }
    return 0;
}

/* Marks of Markdown: emphasis, code, and the backslash before a mark; that before a quote. */
static bool is_markdown(const char *text, size_t at, size_t bytes)
{
    if (text[at] == '*' || text[at] == '`')
        return true;
    return text[at] == '\\' && at + 1 < bytes && text[at + 1] &&
           strchr("_*`.()[]#+-!<>|~\"", text[at + 1]);
}

/* The length of "Mar 04 05:06:07 gpu-7 ", time and host of syslog; 0: none. */
static size_t syslog_length(const char *text, size_t at, size_t bytes)
{
    static const char form[] = "aaa 00 00:00:00 ";
    size_t i = 0;
    for (; i < bytes - at && form[i]; i++)
        if (form[i] == 'a'   ? !isalpha((unsigned char)text[at + i])
            : form[i] == '0' ? !is_digit(text[at + i]) && !(i == 4 && text[at + i] == ' ')
                             : text[at + i] != form[i])
            return 0;
    size_t end = at + i;
    while (end < bytes && text[end] > ' ')
        end++;
    return form[i] || end == bytes || text[end] != ' ' ? 0 : end + 1 - at;
}

/* The length of what a launcher or a container's log writes before each line: "[rank3]: ", or
 * "2026-03-04T05:06:07.8Z stderr F "; 0: none. */
static size_t prefix_length(const char *text, size_t at, size_t bytes)
{
    static const char rank[] = "[rank";
    static const char *const streams[] = {" stderr F ", " stdout F ", " stderr P ", " stdout P "};
    size_t end = at;
    if (text[at] == '[' && bytes - at > strlen(rank) &&
        strncasecmp(text + at, rank, strlen(rank)) == 0) {
        end += strlen(rank);
        while (end < bytes && is_digit(text[end]))
            end++;
        return bytes - end >= 2 && memcmp(text + end, "]:", 2) == 0 ? end + 2 - at : 0;
    }
    if (isalpha((unsigned char)text[at]))
        return syslog_length(text, at, bytes);
    while (end < bytes && end - at < 40 && text[end] &&
           (is_digit(text[end]) || strchr("-:.TZ+", text[end])))
        end++;
    for (size_t i = 0; end - at >= 20 && i < sizeof streams / sizeof *streams; i++)
        if (bytes - end >= strlen(streams[i]) &&
            memcmp(text + end, streams[i], strlen(streams[i])) == 0)
            return end + strlen(streams[i]) - at;
    return 0;
}

/* The end of the digits at `at`, which are a number. */
static size_t take_number(const char *text, size_t at, size_t bytes, uint64_t *number)
{
    for (*number = 0; at < bytes && is_digit(text[at]); at++)
        *number = *number * 10 + (uint64_t)(text[at] - '0');
    return at;
}

/* The length of "101 ", "t.log:101:" or "t.log-101-" if the line before has the number before. */
static size_t numbered_length(const char *text, size_t at, size_t before, size_t bytes)
{
    uint64_t number, last;
    for (size_t i = 0; i < 80 && at + i < bytes && text[at + i] != ' '; i++) {
        size_t end = take_number(text, at + i, bytes, &number);
        size_t other = take_number(text, before + i, at, &last);
        if (end < bytes && other > before + i && number == last + 1 && text[end] == text[other] &&
            strchr(": -\t", text[end]) && text[end])
            return end + 1 - at;
        if (text[at + i] != text[before + i])
            break;
    }
    return 0;
}

/* The length of what a log writes before each line, if the line before, at `before`, begins with
 * the same but for its digits: "[1,3]<stderr>:", "(Worker pid=7) ", "Mar 04 05:06:07 node x[4]: ",
 * "name-1 | ", "2026-03-04T05:06:07Z "; 0: none. `deep`: a part of it stands before. What a program
 * prints itself has no bracket at its start and no time. */
static size_t repeated_length(const char *text, size_t at, size_t before, size_t bytes, bool deep)
{
    char close = text[at] == '[' ? ']' : text[at] == '(' ? ')' : '\0', last = ' ';
    size_t most = bytes - at < 80 ? bytes - at : 80, closed = 0;
    bool time = false, named = isalpha((unsigned char)text[at]), word = true;
    for (size_t i = 0; i + 1 < most; i++) {
        char c = text[at + i], next = text[at + i + 1];
        if (c == '\n' || (c != text[before + i] && !(is_digit(c) && is_digit(text[before + i]))))
            break;
        time |= i >= 3 && c == ':' && text[at + i - 3] == ':' && is_digit(last);
        word &= c != ' ';
        closed += closed || (close && c == close);
        if (closed > 10)
            break;
        bool ends = close ? closed && ((c == close && next == '\033') || c == ':')
                          : named && deep && c == ':' && last == ']';
        ends |= next == ' ' &&
                (close ? closed && c == close
                       : (c == '|' && named) || (c == '-' && named && deep && last == ' ') ||
                             (time && (strchr(":]>|-", c) || (word && i >= 18))));
        if (ends)
            return i + 1;
        last = c;
    }
    return numbered_length(text, at, before, bytes);
}

/* The number of bytes at `at` that are not part of words, and the gap that they leave. */
static size_t white_length(const char *text, size_t at, size_t bytes, enum message_gap *gap)
{
    size_t length = escape_length(text, at, bytes);
    *gap = MESSAGE_GAP_NONE;
    if (length)
        return length;
    *gap = MESSAGE_GAP_SPACE;
    char c = '\0';
    length = code_length(text, at, bytes, &c);
    if (length) {
        *gap = gap_of(c);
        return is_space(c) ? length : 0;
    }
    length = stroke_length(text, at, bytes);
    length = length ? length : tag_length(text, at, bytes, gap);
    if (length)
        return length;
    if (is_markdown(text, at, bytes)) {
        *gap = MESSAGE_GAP_NONE;
        return 1;
    }
    if (text[at] == '\\' && at + 1 < bytes && strchr("nrt", text[at + 1]) && text[at + 1]) {
        *gap = text[at + 1] == 't' ? MESSAGE_GAP_SPACE : MESSAGE_GAP_LINE;
        return 2;
    }
    return is_last_bar(text, at, bytes);
}

/* The fast path: most bytes of a log are plain. */
static bool is_plain(char c)
{
    static const bool marks[128] = {
        ['\\'] = true, ['|'] = true, ['>'] = true, ['#'] = true, ['<'] = true,
        ['&'] = true,  ['*'] = true, ['`'] = true, ['['] = true};
    return c > ' ' && c < '\177' && !marks[(unsigned char)c];
}

static void squeeze(const char *text, size_t bytes, struct message_text *self)
{
    enum message_gap gap = MESSAGE_GAP_LINE;
    size_t line = 0, before = 0; /* where this line and the one before begin */
    bool begun = false;
    for (size_t at = 0; at < bytes; at++) {
        char c = text[at];
        enum message_gap here = c ? gap_of(c) : MESSAGE_GAP_NONE;
        /* Logs of Windows shells are UTF-16: every other byte is 0. */
        if (!c || is_space(c)) {
            gap = here > gap ? here : gap;
            begun &= here != MESSAGE_GAP_LINE;
            continue;
        }
        size_t white = is_plain(c) ? 0 : white_length(text, at, bytes, &here);
        if (white) {
            at += white - 1;
            gap = here > gap ? here : gap;
            begun &= here != MESSAGE_GAP_LINE;
            continue;
        }
        if (!begun) {
            before = line;
            line = at;
            begun = true;
        }
        size_t prefix = gap == MESSAGE_GAP_LINE ? prefix_length(text, at, bytes) : 0;
        if (gap == MESSAGE_GAP_LINE && !prefix && before < line)
            prefix = repeated_length(text, at, before + (at - line), bytes, at > line);
        if (prefix) {
            at += prefix - 1;
            continue;
        }
        size_t entity = is_plain(c) ? 0 : entity_length(text, at, bytes, &c);
        entity = entity || is_plain(text[at]) ? entity : code_length(text, at, bytes, &c);
        at += entity ? entity - 1 : 0;
        /* The strings of source code continue: "a " "b" is "a b". */
        if (c == '"' && gap == MESSAGE_GAP_LINE && self->count &&
            self->chars[self->count - 1] == '"')
            self->count--;
        else if (!(gap == MESSAGE_GAP_LINE && strchr(">#|+", c))) {
            self->gaps[self->count] = (unsigned char)gap;
            self->chars[self->count++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
            gap = MESSAGE_GAP_NONE;
        }
    }
    self->chars[self->count] = '\0';
    self->gaps[self->count] = MESSAGE_GAP_LINE;
    size_t end = bytes > 1 && text[bytes - 1] == '.' ? bytes - 1 : bytes;
    self->cut = end && isdigit((unsigned char)text[end - 1]);
}

enum ar_status message_text_open(const char *text, size_t bytes, struct message_text *self,
                                 struct ar_error *error)
{
    if (bytes > MESSAGE_TEXT_MOST)
        bytes = MESSAGE_TEXT_MOST;
    *self = (struct message_text){malloc(bytes + 1), malloc(bytes + 1), 0, false};
    if (!self->chars || !self->gaps) {
        message_text_close(self);
        return ar_no_memory(error, "the message");
    }
    squeeze(text, bytes, self);
    return AR_OK;
}

void message_text_close(struct message_text *self)
{
    free(self->chars);
    free(self->gaps);
    *self = (struct message_text){0};
}

size_t message_text_find(const struct message_text *self, const char *words, size_t from, size_t to)
{
    size_t length = strlen(words);
    if (to > self->count)
        to = self->count;
    if (from > to || to - from < length)
        return MESSAGE_NOWHERE;
    const char *found = memmem(self->chars + from, to - from, words, length);
    return found ? (size_t)(found - self->chars) : MESSAGE_NOWHERE;
}

bool message_text_has(const struct message_text *self, const char *words)
{
    return message_text_find(self, words, 0, self->count) != MESSAGE_NOWHERE;
}

bool message_text_has_any(const struct message_text *self, const char *const *words)
{
    while (*words && !message_text_has(self, *words))
        words++;
    return *words;
}

bool message_text_ends(const struct message_text *self, const char *words, size_t at)
{
    size_t length = strlen(words);
    return at >= length && memcmp(self->chars + at - length, words, length) == 0;
}
