/* The description of a trace: its name, its header lines, and the statistics of a recorded
 * allocator. */
#pragma once

#include "allocators/base/status.h"

struct trace_info;
struct trace_source;

/* ---- names ---- */

/* Writes `text` of `length` bytes to `name` of `room` bytes (16 or more). A text that is too long
 * is cut and ends in ~ and eight digits of its hash, so that two long names that differ stay
 * different. The rest of `name` becomes 0, so that equal names are equal bytes. */
void trace_name_put(char *name, size_t room, const char *text, size_t length);

/* The name of a trace that has none in its header: the file's name without folder and endings;
 * ".default" counts as an ending. */
void trace_name_from_path(const char *path, char *name, size_t room);

/* ---- statistics ---- */

/* The final statistics of a recorded allocator, under its own names. They belong to a whole
 * recording: the results of filters and merges have none. */
struct trace_stat {
    char *name;
    uint64_t value;
};

/* A zeroed struct is empty. */
struct trace_stats {
    struct trace_stat *items;
    size_t count, room;
};

/* HOST_MEMORY; INVALID for a name that is empty or contains blanks or control bytes. */
enum ar_status trace_stats_add(struct trace_stats *self, const char *name, size_t length,
                               uint64_t value, struct ar_error *error);
void trace_stats_close(struct trace_stats *self);

/* ---- header lines ---- */

#define TRACE_TEXT_FIRST_LINE "# allocrig-trace 1"

/* Writes the header lines "# key: value" of `info` (without its counts) and of `stats`, each with
 * its newline; returns their length, whatever the room, as snprintf. `free_requested_final`: see
 * FORMAT.md, key `let-go`. */
size_t trace_header_print(const struct trace_info *info, const struct trace_stats *stats,
                          bool free_requested_final, char *out, size_t room);

/* Reads one header line, without its newline, into info and stats of a source. A line that is not a
 * known "# key: value" is a comment. INVALID if the value is unusable. `*given` has a bit for each
 * key so far. */
enum ar_status trace_header_parse(const char *line, struct trace_source *source,
                                  bool *free_requested_final, unsigned *given,
                                  struct ar_error *error);
