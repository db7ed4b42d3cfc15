/* Escapes of source code, JSON and HTML, also those of a log within a log. */

#include "allocators/base/utf8.h"
#include "sim/explain/message_text.h"
#include "workloads/io/fields.h"

/* The end of the digits at `at`, of which there are at most `most`. */
static size_t read_code(const char *text, size_t at, size_t bytes, unsigned base, size_t most,
                        unsigned *code)
{
    size_t begin = at;
    for (*code = 0; at < bytes && at - begin < most && field_hex_digit(text[at]) < base; at++)
        *code = *code * base + field_hex_digit(text[at]);
    return at;
}

/* The length of an escape of source code or JSON, and its character; 0: none. A log within a log
 * has more backslashes before the same. */
static size_t backslash_length(const char *text, size_t at, size_t bytes, unsigned *code)
{
    static const char *const marks[] = {"x1b[", "033[", "e["};
    size_t end = at, low;
    unsigned other;
    while (end < bytes && text[end] == '\\')
        end++;
    size_t left = bytes - end;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (left >= strlen(marks[i]) && memcmp(text + end, marks[i], strlen(marks[i])) == 0) {
            *code = '\033';
            return end + strlen(marks[i]) - 1 - at;
        }
    const char *plain = left && text[end] ? strchr("n\nr\rt\t\"\"''", text[end]) : NULL;
    if (plain) {
        *code = (unsigned char)(strchr("nrt", text[end]) ? plain[1] : plain[0]);
        return end + 1 - at;
    }
    if (left >= 5 && text[end] == 'u' && read_code(text, end + 1, bytes, 16, 4, code) == end + 5) {
        low = end + 5;
        while (low < bytes && text[low] == '\\')
            low++;
        if (*code >> 10 == 0x36 && low + 5 <= bytes && text[low] == 'u' &&
            read_code(text, low + 1, bytes, 16, 4, &other) == low + 5) { /* two halves of one */
            *code = 0x10000 + ((*code & 0x3ff) << 10 | (other & 0x3ff));
            return low + 5 - at;
        }
        return end + 5 - at;
    }
    *code = '\\';
    return end - at > 1 ? 2 : 0;
}

/* The length of an entity of HTML, and the character that it stands for; 0: none. */
static size_t entity_length(const char *text, size_t at, size_t bytes, unsigned *code)
{
    static const struct {
        const char *name;
        unsigned code;
    } entities[] = {{"gt;", '>'},   {"lt;", '<'},    {"amp;", '&'},
                    {"quot;", '"'}, {"apos;", '\''}, {"nbsp;", 0xa0}};
    size_t begin = at + 1;
    while (bytes - begin > 4 && memcmp(text + begin, "amp;", 4) == 0 && text[begin + 4] != ' ')
        begin += 4; /* an entity within an entity */
    if (begin < bytes && text[begin] == '#') {
        bool hex = begin + 1 < bytes && (text[begin + 1] | 0x20) == 'x';
        size_t first = begin + 1 + hex;
        size_t end = read_code(text, first, bytes, hex ? 16 : 10, 6, code);
        return end > first && end < bytes && text[end] == ';' && *code ? end + 1 - at : 0;
    }
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        size_t length = strlen(entities[i].name);
        *code = entities[i].code;
        if (bytes - begin >= length && memcmp(text + begin, entities[i].name, length) == 0)
            return begin + length - at;
    }
    *code = '&';
    return begin > at + 1 ? begin - at : 0;
}

/* The length of a line end that a mail has in the middle of a word (quoted-printable); 0: none. */
static size_t soft_end_length(const char *text, size_t at, size_t bytes)
{
    size_t end = at + 1;
    end += end < bytes && text[end] == '\r';
    bool soft = end + 1 < bytes && text[end] == '\n' && at > 0 && text[at - 1] > ' ';
    return soft && text[end + 1] > ' ' ? end + 1 - at : 0;
}

size_t message_text_decode(const char *text, size_t bytes, char *out)
{
    size_t left = 0, count = 0;
    for (size_t at = 0; at < bytes; at++)
        if (text[at])
            out[left++] = text[at];
    for (size_t at = 0; at < left;) {
        unsigned code = 0;
        size_t length = out[at] == '\\'  ? backslash_length(out, at, left, &code)
                        : out[at] == '&' ? entity_length(out, at, left, &code)
                        : out[at] == '=' ? soft_end_length(out, at, left)
                                         : 0;
        if (length && code)
            count += ar_utf8_put(code, out + count); /* never longer than its escapes */
        else if (!length)
            out[count++] = out[at];
        at += length ? length : 1;
    }
    return count;
}
