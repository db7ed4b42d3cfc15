/* What a trace is called: the name that tables, figures and files of results tell it by. */
#ifndef WORKLOADS_TRACE_NAME_H
#define WORKLOADS_TRACE_NAME_H

#include <stddef.h>

/* The name `text`, of `length` bytes, put into `name`, of `room` (16 or more). One that is too long is cut, and
 * ends in ~ and eight digits that come of all of it: two long names that differ stay different. What is left of
 * `name` becomes 0, so that equal names are equal bytes. */
void trace_name_put(char *name, size_t room, const char *text, size_t length);

/* What to call a trace that does not say it: the file's name without folder and endings;
 * ".default" counts as one. */
void trace_name_from_path(const char *path, char *name, size_t room);

#endif
