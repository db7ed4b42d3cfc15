/* Shared by tests of readers of other programs' files. */
#ifndef TESTS_SUPPORT_FORMAT_RIG_H
#define TESTS_SUPPORT_FORMAT_RIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/support/trace_rig.h"
#include "workloads/formats/import_report.h"

/* A file that holds `text` becomes the trace `events`: its canonical text without the first line
 * and the name. The report goes to `report` unless that is NULL. */
void format_rig_converts(void *rig, const char *text, const char *events,
                         struct import_report *report);

/* The same for a binary file. */
void format_rig_converts_bytes(void *rig, const void *bytes, size_t count, const char *events,
                               struct import_report *report);

struct format_rig_refusal {
    const char *text, *part; /* the start of the sentence after the name of the file */
};
void format_rig_refuses(void *rig, const struct format_rig_refusal *cases, size_t count);

#endif
