/* A grid written into specs: `torch:max_split_size_mb=32|64|128,limit=4GiB|8GiB` stands for six. */
#ifndef BENCH_SUITE_GRID_H
#define BENCH_SUITE_GRID_H

#include "bench/suite/suite.h"

/* Replaces each text of the list by all that it stands for, the first value varying slowest. A bar
 * within quotes is none. INVALID for a bar that is in no value, and for too many texts. */
enum ar_status grid_expand(struct text_list *list, struct ar_error *error) AR_STATUS_CHECKED;

/* Adds one spec of a grid. INVALID where there are too many. */
enum ar_status grid_add(struct text_list *list, const char *text,
                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
