/* Comma-separated values: a header line, then one line for each row. A field with a comma, a quote
 * or a line end is written in double quotes; an unknown value is an empty field; bytes that are not
 * UTF-8 (file names may contain any) become U+FFFD. */
#ifndef BENCH_REPORT_CSV_H
#define BENCH_REPORT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/metrics/metrics.h"

/* One field, quoted if necessary. */
void csv_text(FILE *stream, const char *text);

/* Writes rows field by field. */
struct csv_writer {
    FILE *stream;
    bool filled; /* the row has a field */
};

void csv_put_text(struct csv_writer *self, const char *text);
void csv_put_integer(struct csv_writer *self, uint64_t integer);
void csv_put_real(struct csv_writer *self, double real);
void csv_put_empty(struct csv_writer *self);
void csv_put_metric(struct csv_writer *self, const struct metric_value *value);
/* A field that needs no quotes: a fixed name, or several fields with their commas. */
void csv_put_plain(struct csv_writer *self, const char *text);
void csv_end_row(struct csv_writer *self);

/* Divides a line into its fields, in place, and removes quotes and the line end. Returns the number
 * of fields, at most `room`. */
size_t csv_split(char *line, char **fields, size_t room);

/* SHA-256 or other bytes as lower-case hexadecimal digits. Returns `text`, 2 * count + 1 bytes. */
const char *hex_print(const uint8_t *bytes, size_t count, char *text);

#endif
