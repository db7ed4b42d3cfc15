/* What readers look for in the first bytes of a file. */
#ifndef WORKLOADS_IO_HEAD_H
#define WORKLOADS_IO_HEAD_H

#include <stdbool.h>
#include <stddef.h>

/* The place of the first byte from `at` on that is no white space, `count` where there is none; a
 * byte-order mark at the front is passed over. */
size_t head_blanks(const char *head, size_t count, size_t at);

/* Whether `text` stands anywhere in it. */
bool head_holds(const char *head, size_t count, const char *text);

#endif
