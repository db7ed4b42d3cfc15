/* Reads INI files: `[section]` lines and entries below them, one on each line. A line that begins
 * with # or ; is a comment, and so is what follows " #" in a line. The caller interprets entries:
 * in some sections they are `key = value`, in others names. A file that cannot be a suite
 * (/dev/zero) is refused early. */
#pragma once

#include "allocators/base/status.h"

struct ini_line {
    const char *path;
    unsigned number; /* from 1 */
    const char *section;
    unsigned section_number; /* of the line that begins it */
    char *text;              /* without blanks around it; may be modified */
};

typedef enum ar_status ini_entry(void *argument, const struct ini_line *line,
                                 struct ar_error *error);

#define INI_SECTION_ROOM 80        /* bytes of a section's name */
#define INI_LINE_MOST    (1 << 20) /* bytes */
#define INI_LINES_MOST   1000000

/* Calls `entry` for each entry, in order. A section "tenant *" stands for every [tenant NAME]; the
 * section of the line is then the whole name, valid during the call. FORMAT and IO name file and
 * line. */
enum ar_status ini_read(const char *path, const char *const *sections, size_t section_count,
                        ini_entry *entry, void *argument, struct ar_error *error);

/* The same; also calls `begin` (NULL: not) for the first line of each section, which may be empty.
 * The line's text is then not of use. */
enum ar_status ini_read_sections(const char *path, const char *const *sections,
                                 size_t section_count, ini_entry *begin, ini_entry *entry,
                                 void *argument, struct ar_error *error);

/* Divides `key = value` in place. FORMAT if the equals sign or the key is missing. */
enum ar_status ini_split(const struct ini_line *line, const char **key, const char **value,
                         struct ar_error *error);
