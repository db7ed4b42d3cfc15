/* Changing one key in the text of a spec. */
#ifndef BENCH_SUITE_SPEC_TEXT_H
#define BENCH_SUITE_SPEC_TEXT_H

#include "allocators/spec.h"

/* The spec `text` with `key=value` in its last link, in place of a value that is there or at
 * the end: "sim:profile=h100" and capacity=1GiB give "sim:profile=h100,capacity=1GiB". The
 * caller frees `*out`. */
enum ar_status spec_text_with(const char *text, const char *key, const char *value, char **out,
                              struct ar_error *error) AR_STATUS_CHECKED;

#endif
