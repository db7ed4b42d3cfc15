/* Reads INI files: `[section]` lines, and entries below them, one a line. A line whose first
 * character is # or ; is a comment. What an entry means is the caller's matter: in some sections
 * it is `key = value`, in others a name. What cannot be a suite (/dev/zero) is refused early. */
#ifndef BENCH_SUITE_INI_H
#define BENCH_SUITE_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

struct ini_line {
    const char *path;
    unsigned number; /* from 1 */
    const char *section;
    unsigned section_number; /* of the line that began it */
    char *text;              /* without blanks around it; may be written to */
};

typedef enum ar_status ini_entry(void *argument, const struct ini_line *line,
                                 struct ar_error *error);

#define INI_SECTION_ROOM 80        /* bytes of a section's name */
#define INI_LINE_MOST    (1 << 20) /* bytes */
#define INI_LINES_MOST   1000000

/* Calls `entry` for each one, in order. A section "tenant *" stands for every [tenant NAME]; the
 * line's section, valid during the call, is the whole name then. FORMAT and IO name file and line. */
enum ar_status ini_read(const char *path, const char *const *sections, size_t section_count,
                        ini_entry *entry, void *argument, struct ar_error *error) AR_STATUS_CHECKED;

/* Divides `key = value` in place. FORMAT where there is no equals sign or no key. */
enum ar_status ini_split(const struct ini_line *line, const char **key, const char **value,
                         struct ar_error *error) AR_STATUS_CHECKED;

#endif
