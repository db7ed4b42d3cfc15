/* Files that are recognised and not read: what they are, and which file to give in their place. */
#ifndef WORKLOADS_FORMATS_KNOWN_FILES_H
#define WORKLOADS_FORMATS_KNOWN_FILES_H

#include <stddef.h>

#include "allocators/base/status.h"

/* For a file that no reader takes, by its first bytes: FORMAT with a sentence; OK if they may be a
 * trace in text, or are of no known form. */
enum ar_status known_file_refuse(const char *path, const char *head, size_t count,
                                 struct ar_error *error) AR_STATUS_CHECKED;

#endif
