#include "allocators/base/utf8.h"

#include <stdio.h>
#include <string.h>

size_t ar_utf8_bytes(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = at[0] < 0x80                     ? 1
                   : at[0] >= 0xC2 && at[0] <= 0xDF ? 2
                   : at[0] >= 0xE0 && at[0] <= 0xEF ? 3
                   : at[0] >= 0xF0 && at[0] <= 0xF4 ? 4
                                                    : 0;
    for (size_t i = 1; i < bytes; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return bytes;
}

void ar_utf8_escape(const char *text, char *out, size_t room)
{
    size_t used = 0;
    while (*text) {
        char escaped[8];
        const char *piece = text;
        size_t bytes = ar_utf8_bytes(text), length = bytes;
        unsigned char byte = (unsigned char)*text;
        if (!bytes || byte < 0x20 || byte == 0x7F) {
            length = (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", byte);
            piece = escaped;
        }
        if (used + length >= room)
            break;
        memcpy(out + used, piece, length);
        used += length;
        text += bytes ? bytes : 1;
    }
    out[used] = '\0';
}
