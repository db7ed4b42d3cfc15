/* The common part of the tests of traces: small files in a folder of their own, whole files in
 * memory. */
#pragma once

#include <stddef.h>

#include "workloads/trace/trace.h"

struct trace_rig {
    char folder[64];
    char path[4][96]; /* folder/0 to folder/3, which need not exist */
};

/* A new empty folder; a failure stops the test. */
struct trace_rig trace_rig_open(void);
void trace_rig_close(struct trace_rig *rig); /* removes it and its files */

/* A case whose *state is a rig. */
#define TRACE_TEST(name) TEST_WITH(name, trace_rig_setup, trace_rig_teardown)
int trace_rig_setup(void **state);
int trace_rig_teardown(void **state);

size_t trace_rig_files(const struct trace_rig *rig); /* the number of its files */

void trace_rig_write(const char *path, const void *bytes, size_t count);
char *trace_rig_read(const char *path, size_t *count); /* the caller frees it; ends with a NUL */

/* The trace in a file, which must be one. */
struct trace_source *trace_rig_source(const char *path);

/* Opens `text` as a file in path[0]. */
enum ar_status trace_rig_text(struct trace_rig *rig, const char *text, struct trace_source **out,
                              struct ar_error *error);

/* The trace as canonical text, written to path[3] and read back. The caller frees it. */
char *trace_rig_print(struct trace_rig *rig, struct trace_source *source);
