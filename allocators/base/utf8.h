/* Names and input may have any bytes; output must be readable text. */
#ifndef ALLOCATORS_BASE_UTF8_H
#define ALLOCATORS_BASE_UTF8_H

#include <stddef.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

/* U+FFFD, which replaces a byte that belongs to no character. */
#define AR_UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Bytes of the well-formed UTF-8 character at `text`, which ends with NUL. 0: not well-formed.
 * Overlong forms, surrogates and characters above U+10FFFF are not well-formed. */
AR_API size_t ar_utf8_bytes(const char *text);

/* Writes `text` with \xNN for control bytes and for bytes that belong to no character. Cut to the
 * room, which counts the NUL, and never inside a character. */
AR_API void ar_utf8_escape(const char *text, char *out, size_t room);

/* Writes the character of a code point below 2^21 and returns its bytes, 1 to 4. No NUL follows. */
static inline size_t ar_utf8_put(unsigned code, char *out)
{
    static const unsigned char first[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[count] | code);
    return count;
}

AR_END_DECLS

#endif
