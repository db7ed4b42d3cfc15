/* Which bytes are text: names and input may hold any, and what is written must be readable. */
#ifndef ALLOCATORS_BASE_UTF8_H
#define ALLOCATORS_BASE_UTF8_H

#include <stddef.h>

#include "allocators/base/api.h"

AR_BEGIN_DECLS

/* What stands for a byte that belongs to no character: U+FFFD. */
#define AR_UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Bytes of the well-formed UTF-8 character at `text`, which ends with NUL, or 0: overlong forms,
 * surrogates and what lies above U+10FFFF are refused as strict readers refuse them. */
AR_API size_t ar_utf8_bytes(const char *text);

/* Writes `text` with \xNN for control bytes and for bytes that belong to no character, so that it
 * is one line and can be read. Cut to the room, which counts the NUL, and never inside of one. */
AR_API void ar_utf8_escape(const char *text, char *out, size_t room);

AR_END_DECLS

#endif
