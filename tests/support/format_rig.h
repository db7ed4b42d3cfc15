/* Shared by tests of readers of other programs' files. */
#pragma once

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

/* Makes the file of a case; without one, the text is the file. */
typedef void format_rig_make(const char *path, const char *text);

/* The same for each block of a section (tests/support/cases.h); its facts are of the report. */
void format_rig_cases(void *rig, const char *file, const char *section, format_rig_make *make);

/* Each row of a section is a text that is refused, and how the sentence begins behind the name of
 * the file, or, with "@" before it, words of it. */
void format_rig_refuses(void *rig, const char *file, const char *section, format_rig_make *make);

/* A case of either kind, whose section has its name. */
#define FORMAT_CASES(file, name)   FORMAT_MADE_CASES(file, name, NULL)
#define FORMAT_REFUSES(file, name) FORMAT_MADE_REFUSES(file, name, NULL)
#define FORMAT_MADE_CASES(file, name, make)                                                        \
    TRACE_TEST(name)                                                                               \
    {                                                                                              \
        format_rig_cases(*state, file, #name, make);                                               \
    }
#define FORMAT_MADE_REFUSES(file, name, make)                                                      \
    TRACE_TEST(name)                                                                               \
    {                                                                                              \
        format_rig_refuses(*state, file, #name, make);                                             \
    }
