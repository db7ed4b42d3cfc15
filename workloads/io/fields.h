/* Fields of text rows: what the readers of text logs share. */
#ifndef WORKLOADS_IO_FIELDS_H
#define WORKLOADS_IO_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "workloads/io/input.h"

/* Gives each line that is not empty to `take`, which may write into it. Errors of `take` are
 * told with file and line before them. */
enum ar_status fields_lines(struct trace_input *input,
                            enum ar_status (*take)(void *self, char *line, uint64_t number,
                                                   struct ar_error *error),
                            void *self, struct ar_error *error) AR_STATUS_CHECKED;

/* Cuts `line` at each `separator` in place: up to `room` fields; returns how many there are, also
 * those past the room. */
size_t fields_split(char *line, char separator, char **fields, size_t room);

/* Copies a text that another program wrote, as much as there is room for; control bytes and what
 * is no UTF-8 become underscores. */
void field_text(const char *text, char *out, size_t room);

/* An address or handle as programs print it: "0x7f00", "7f00", "(nil)", "NULL", "nullptr". Below
 * UINT64_MAX. INVALID otherwise, with a sentence. */
enum ar_status field_pointer(const char *text, uint64_t *value,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* A time of day "HH:MM:SS.ffffff" (or a colon before the fraction, as older logs have it), with
 * a date "YYYY-MM-DD" before it or without, or seconds since any moment "1634567890.123456".
 * `*dated`: the time is since 1970 (or that moment), else since midnight. INVALID otherwise. */
enum ar_status field_time(const char *text, uint64_t *time_ns, bool *dated,
                          struct ar_error *error) AR_STATUS_CHECKED;

#endif
