#include "sim/explain/message_text.h"

#include <ctype.h>
#include <limits.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The length of the terminal control sequence at `at`; 0: none. Some logs have lost the escape
 * character: "[1;31m". */
static size_t escape_length(const char *text, size_t at, size_t bytes)
{
    size_t bare = 1;
    while (text[at] == '[' && at + bare < bytes && bare < 12) {
        char c = text[at + bare++];
        if (c == 'm' && bare > 2)
            return bare;
        if (!is_digit(c) && c != ';')
            break;
    }
    if (text[at] != '\033' || at + 1 >= bytes || text[at + 1] != '[')
        return 0;
    size_t end = at + 2;
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
    while (at < bytes && is_space(text[at]) && gap_of(text[at]) == MESSAGE_GAP_SPACE);
    return at == bytes || gap_of(text[at]) == MESSAGE_GAP_LINE;
}

/* The length of a tag of HTML; 0: none. */
static size_t tag_length(const char *text, size_t at, size_t bytes, enum message_gap *gap)
{
    static const char *const names[] = {"br",     "p",  "pre", "code", "span", "div", "b",  "i",
                                        "strong", "em", "td",  "tr",   "li",   "a",   "tt", "samp"};
    size_t begin = at + 1, name;
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

/* A space between a digit and three digits, which is a mark between groups of digits if it is one
 * that does not break lines and no fourth digit follows (message_numbers.c). */
static bool is_group_space(const char *text, size_t at, size_t end, size_t bytes)
{
    return at > 0 && is_digit(text[at - 1]) && bytes - end >= 3 && is_digit(text[end]) &&
           is_digit(text[end + 1]) && is_digit(text[end + 2]);
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

/* The length of what Docker and Fluent Bit write before a line in JSON, up to its text. */
static size_t json_length(const char *text, size_t at, size_t bytes)
{
    static const char key[] = "\"log\":\"";
    if (text[at] != '{')
        return 0;
    const char *found = memmem(text + at, bytes - at < 300 ? bytes - at : 300, key, strlen(key));
    return found && !memchr(text + at, '\n', (size_t)(found - (text + at)))
               ? (size_t)(found - (text + at)) + strlen(key)
               : 0;
}

/* The length of the rest of such a line, with its end, if its text ends at `at`: a quote, and the
 * keys that follow or a brace. */
static size_t json_rest_length(const char *text, size_t at, size_t bytes)
{
    size_t key = at + 3;
    const char *end = memchr(text + at, '\n', bytes - at);
    size_t length = end ? (size_t)(end - (text + at)) : bytes - at;
    if (text[at] != '"' || length < 2 || text[at + length - 1] != '}')
        return 0;
    while (key < at + length && (isalpha((unsigned char)text[key]) || text[key] == '_'))
        key++;
    bool next = text[at + 1] == ',' && text[at + 2] == '"' && key + 1 < at + length &&
                text[key] == '"' && text[key + 1] == ':';
    return length == 2 || next ? length + (end != NULL) : 0;
}

#define RANK "[rank"

/* The length of what a launcher or a container's log writes before each line: "[rank3]: ", or
 * "2026-03-04T05:06:07.8Z stderr F "; 0: none. */
static size_t prefix_length(const char *text, size_t at, size_t bytes)
{
    static const char *const streams[] = {" stderr F ", " stdout F ", " stderr P ", " stdout P "};
    size_t end = at;
    if (text[at] == '[' && bytes - at > strlen(RANK) &&
        strncasecmp(text + at, RANK, strlen(RANK)) == 0) {
        end += strlen(RANK);
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

/* The length of "101 ", "t.log:101:" or "t.log-101-" if the line before has the number before, and
 * of "3: " if it has the same one (srun --label). */
static size_t numbered_length(const char *text, size_t at, size_t before, size_t bytes)
{
    uint64_t number, last;
    for (size_t i = 0; i < 80 && at + i < bytes && text[at + i] != ' '; i++) {
        size_t end = take_number(text, at + i, bytes, &number);
        size_t other = take_number(text, before + i, at, &last);
        bool same = end + 1 < bytes && other > before + i && text[end] == text[other];
        if (same && number == last + 1 && strchr(": -\t", text[end]) && text[end] &&
            (i == 0 || text[at + i - 1] == text[end]))
            return end + 1 - at;
        if (same && number == last && i == 0 && text[end] == ':' && text[end + 1] == ' ')
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
    length = foreign_length(text, at, bytes, &c);
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
    return is_last_bar(text, at, bytes);
}

/* The fast path: most bytes of a log are plain. */
static bool is_plain(char c)
{
    static const bool marks[128] = {
        ['\\'] = true, ['|'] = true, ['>'] = true, ['#'] = true, ['<'] = true, ['&'] = true,
        ['*'] = true,  ['`'] = true, ['['] = true, ['"'] = true, ['{'] = true};
    return c > ' ' && c < '\177' && !marks[(unsigned char)c];
}

/* The width of a line on a terminal. */
static size_t columns(const char *line, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes && line[i] != '\n' && line[i] != '\r'; i++) {
        unsigned char c = (unsigned char)line[i];
        count += c >= 0xe3 ? 2 : c < 0x80 || c >= 0xc0; /* from U+3000 on they are wide */
    }
    return count;
}

#define NARROWEST 20

/* The width at which a terminal broke the lines: that of the widest, if several have it. */
static size_t wrap_width(const char *text, size_t bytes)
{
    size_t widest = NARROWEST, lines = 0;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - (text + at)) : bytes - at;
        size_t width = length >= widest ? columns(text + at, length) : 0;
        lines = width > widest ? 1 : lines + (width == widest);
        widest = width > widest ? width : widest;
        at += length + 1;
    }
    return lines > 1 ? widest : SIZE_MAX;
}

/* Whether the line that ends at `end` has no room for another character: a terminal or a box broke
 * it there. */
static bool is_full(const char *text, size_t line, size_t end, size_t widest)
{
    static const char stroke[] = "\xe2\x94\x82";
    size_t at = end - (end > line && text[end - 1] == '\r');
    size_t bar = at - line > 3 && memcmp(text + at - 3, stroke, 3) == 0
                     ? 3
                     : at > line && text[at - 1] == '|';
    if (!bar)
        return columns(text + line, at - line) == widest && text[at - 1] != ' ';
    at -= bar;
    return at - line > 2 && (text[at - 1] != ' ' || text[at - 2] != ' ');
}

struct squeezer {
    struct message_text *into;
    const char *text;
    size_t bytes, at, width;
    size_t start;        /* of the line on the terminal */
    size_t line, before; /* where the words of this line and of the one before begin */
    size_t indent;       /* spaces since the line's start or quote mark */
    enum message_gap gap;
    unsigned char rank; /* see struct message_text */
    bool begun;         /* the line has words */
    bool json;          /* within the text of a line of JSON */
    bool full;          /* the line before was */
};

static void end_line(struct squeezer *self)
{
    self->full = is_full(self->text, self->start, self->at, self->width);
    self->start = self->at + 1;
    self->indent = 0;
}

/* Passes over what is not part of words. */
static bool skip_white(struct squeezer *self)
{
    const char *text = self->text;
    size_t at = self->at, bytes = self->bytes, length = 1;
    char c = text[at];
    enum message_gap here = gap_of(c);
    if (c == '\n')
        end_line(self);
    else if (is_space(c))
        self->full &= c == '\r' || !self->indent++;
    else if (is_plain(c))
        return false;
    else if (self->json && c == '"' && (length = json_rest_length(text, at, bytes)) > 0)
        self->json = false, self->start = at + length;
    else if (self->gap == MESSAGE_GAP_LINE && (length = json_length(text, at, bytes)) > 0)
        self->json = true;
    else if ((length = white_length(text, at, bytes, &here)) == 0)
        return false;
    self->at += length;
    self->gap = here > self->gap ? here : self->gap;
    self->begun &= here != MESSAGE_GAP_LINE;
    return true;
}

/* Passes over what logs write before the words of a line. */
static bool skip_prefix(struct squeezer *self)
{
    static const char *const owners[] = {RANK, "[gpu"};
    size_t at = self->at;
    if (!self->begun) {
        self->before = self->line;
        self->line = at;
        self->begun = true;
        self->rank = 0;
    }
    if (self->gap != MESSAGE_GAP_LINE)
        return false;
    size_t length = prefix_length(self->text, at, self->bytes);
    if (!length && self->before < self->line)
        length = repeated_length(self->text, at, self->before + (at - self->line), self->bytes,
                                 at > self->line);
    for (size_t i = 0; length && i < AR_COUNT(owners); i++)
        if (strncasecmp(self->text + at, owners[i], strlen(owners[i])) == 0)
            self->rank =
                (unsigned char)(strtoul(self->text + at + strlen(owners[i]), NULL, 10) % UCHAR_MAX +
                                1);
    self->at += length;
    return length;
}

static void put_character(struct squeezer *self)
{
    struct message_text *into = self->into;
    char c = self->text[self->at];
    size_t foreign = is_plain(c) ? 0 : foreign_length(self->text, self->at, self->bytes, &c);
    self->at += foreign ? foreign : 1;
    if (self->gap == MESSAGE_GAP_LINE && strchr(">#|+", c)) {
        self->indent = 0;
        return;
    }
    /* The strings of source code continue: "a " "b" is "a b". */
    if (c == '"' && self->gap == MESSAGE_GAP_LINE && into->count &&
        into->chars[into->count - 1] == '"') {
        into->count--;
        return;
    }
    if (self->gap == MESSAGE_GAP_LINE && self->full &&
        !message_text_is_stamp(self->text + self->at - 1, self->bytes - self->at + 1))
        self->gap = MESSAGE_GAP_WRAP;
    into->gaps[into->count] = (unsigned char)self->gap;
    into->ranks[into->count] = self->rank;
    into->chars[into->count++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    self->gap = MESSAGE_GAP_NONE;
}

static void squeeze(const char *text, size_t bytes, struct message_text *self)
{
    struct squeezer state = {.into = self,
                             .text = text,
                             .bytes = bytes,
                             .width = wrap_width(text, bytes),
                             .gap = MESSAGE_GAP_LINE};
    while (state.at < bytes)
        if (!skip_white(&state) && !skip_prefix(&state))
            put_character(&state);
    self->chars[self->count] = '\0';
    self->binary = message_text_has(self, "gib") || message_text_has(self, "mib");
    self->gaps[self->count] = MESSAGE_GAP_LINE;
    self->cut = bytes && (is_digit(text[bytes - 1]) || text[bytes - 1] == '.');
}

enum ar_status message_text_open(const char *text, size_t bytes, struct message_text *self,
                                 struct ar_error *error)
{
    if (bytes > MESSAGE_TEXT_MOST)
        bytes = MESSAGE_TEXT_MOST;
    *self = (struct message_text){
        .chars = malloc(bytes + 1), .gaps = malloc(bytes + 1), .ranks = malloc(bytes + 1)};
    char *plain = malloc(bytes + 1);
    bool made = self->chars && self->gaps && self->ranks && plain;
    if (made)
        squeeze(plain, message_text_decode(text, bytes, plain), self);
    else
        message_text_close(self);
    free(plain);
    return made ? AR_OK : ar_no_memory(error, "the message");
}

void message_text_close(struct message_text *self)
{
    free(self->chars);
    free(self->gaps);
    free(self->ranks);
    *self = (struct message_text){0};
}

#define NEAR 1000 /* characters that are searched faster without memmem's preparation */

static size_t find_words(const struct message_text *self, const char *words, size_t length,
                         size_t from, size_t to)
{
    if (to > self->count)
        to = self->count;
    if (from > to || to - from < length)
        return MESSAGE_NOWHERE;
    const char *found, *at = self->chars + from, *last = self->chars + to - length;
    if (to - from > NEAR) {
        found = memmem(at, to - from, words, length);
        return found ? (size_t)(found - self->chars) : MESSAGE_NOWHERE;
    }
    for (; at <= last && (found = memchr(at, *words, (size_t)(last + 1 - at))); at = found + 1)
        if (length == 1 || (found[1] == words[1] && memcmp(found, words, length) == 0))
            return (size_t)(found - self->chars);
    return MESSAGE_NOWHERE;
}

size_t message_text_find(const struct message_text *self, const char *words, size_t from, size_t to)
{
    return find_words(self, words, strlen(words), from, to);
}

bool message_text_has(const struct message_text *self, const char *words)
{
    return message_text_find(self, words, 0, self->count) != MESSAGE_NOWHERE;
}

bool message_text_any(const struct message_text *self, const char *words, size_t from, size_t to)
{
    for (; *words; words += strcspn(words, "|"), words += *words == '|')
        if (find_words(self, words, strcspn(words, "|"), from, to) != MESSAGE_NOWHERE)
            return true;
    return false;
}

bool message_text_ends(const struct message_text *self, const char *words, size_t at)
{
    size_t length = strlen(words);
    return at >= length && memcmp(self->chars + at - length, words, length) == 0;
}

#define SENTENCE_MOST 300 /* characters on each side of a message's words */

size_t message_text_sentence_begin(const struct message_text *self, size_t at)
{
    size_t least = at > SENTENCE_MOST ? at - SENTENCE_MOST : 0;
    while (at > least && !(message_text_apart(self, at) && strchr(".?!;:", self->chars[at - 1])))
        at--;
    return at;
}

size_t message_text_sentence_end(const struct message_text *self, size_t at)
{
    size_t most = self->count - at < SENTENCE_MOST ? self->count : at + SENTENCE_MOST;
    while (at < most && !(message_text_apart(self, at + 1) && strchr(".?!;", self->chars[at])))
        at++;
    return at;
}

bool message_text_other_reason(const struct message_text *self, size_t at)
{
    static const char reasons[] =
        ":nocuda-capabledevice|:norocm-capabledevice|:cudadriverversion|:cuda_error_no_device|:"
        "cuda_error_not_init|:initializationerror|:driverisnotinit|:drivernotinit|:invaliddevice|:"
        "operationnotpermit|:invalidargument|:anillegalmemory|:unspecifiedlaunch";
    return message_text_any(self, reasons, at, at + 60);
}
