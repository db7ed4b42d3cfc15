/* One line of an Umpire replay log, whichever of the two layouts it has. */
#ifndef WORKLOADS_FORMATS_LOGS_UMPIRE_LINE_H
#define WORKLOADS_FORMATS_LOGS_UMPIRE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

enum umpire_event {
    UMPIRE_OTHER,
    UMPIRE_VERSION, /* name: "2023.6.0" */
    UMPIRE_RESOURCE,
    UMPIRE_ALLOCATOR,
    UMPIRE_ALLOCATE,
    UMPIRE_DEALLOCATE,
    UMPIRE_REALLOCATE,
    UMPIRE_RELEASE,
};

#define UMPIRE_ARGUMENTS 16

struct umpire_line {
    enum umpire_event event;
    uint64_t number; /* of the line, the caller's */
    int64_t process;
    uint64_t time_ns;
    uint64_t allocator, address, old_address, bytes;
    bool has_allocator, has_result;
    bool final;            /* no other line will tell the result */
    const char *name;      /* of a resource or allocator; never NULL */
    size_t argument_count; /* of an allocator's making: the texts among its arguments */
    const char *arguments[UMPIRE_ARGUMENTS];
    char version[32];
    void *json; /* that the texts are in */
};

/* Whether a line is of such a log. */
bool umpire_line_looks(const char *line, size_t length);

/* INVALID or FORMAT with a sentence; UNSUPPORTED where the program was built without jansson.
 * `line` is closed by the caller in any case. */
enum ar_status umpire_line_parse(const char *text, struct umpire_line *line,
                                 struct ar_error *error) AR_STATUS_CHECKED;
void umpire_line_close(struct umpire_line *line);

#endif
