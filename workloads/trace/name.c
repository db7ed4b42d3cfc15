/* A name that is too long gives way in its middle:
 * 1. It keeps as much of its beginning as leaves room for ~ and eight digits; a letter of several bytes is kept
 *    whole or not at all.
 * 2. The digits are the FNV-1a hash of all its bytes, 32 bits of it (G. Fowler, L. C. Noll, P. Vo). */
#include "workloads/trace/name.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/utf8.h"

#define MARK_BYTES 9 /* ~ and eight digits */

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = UINT32_C(0x811c9dc5);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT32_C(0x01000193);
    return hash;
}

void trace_name_put(char *name, size_t room, const char *text, size_t length)
{
    memset(name, 0, room);
    if (length < room) {
        memcpy(name, text, length);
        return;
    }
    size_t kept = room - 1 - MARK_BYTES;
    while (kept && ((unsigned char)text[kept] & 0xc0) == 0x80)
        kept--;
    memcpy(name, text, kept);
    (void)snprintf(name + kept, room - kept, "~%08" PRIx32, hash_of(text, length));
}

void trace_name_from_path(const char *path, char *name, size_t room)
{
    static const char *const endings[] = {".gz",  ".zst", ".csv",   ".txt",    ".bin", ".json",
                                          ".log", ".raw", ".trace", ".pickle", ".pkl", ".default"};
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t length = strlen(file);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t cut = strlen(endings[i]);
        if (length > cut && strncmp(file + length - cut, endings[i], cut) == 0)
            length -= cut;
    }
    trace_name_put(name, room, file, length);
    for (char *at = name; *at;) { /* a file's name may hold any bytes, a trace's is text */
        size_t bytes = ar_utf8_bytes(at);
        if (!bytes || (unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '_';
        at += bytes ? bytes : 1;
    }
}
