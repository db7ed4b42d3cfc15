/* Traces written as files of other programs: the table of writers. */
#ifndef WORKLOADS_FORMATS_WRITERS_H
#define WORKLOADS_FORMATS_WRITERS_H

#include "workloads/trace/source.h"

struct format_writer {
    const char *name;    /* for --format */
    const char *ending;  /* of a file that is written so without --format */
    const char *summary; /* a line for `list formats` */
    /* Writes the whole trace. The file appears when it is whole, or not at all. `compress`: as one
     * zstd frame. */
    enum ar_status (*write)(struct trace_source *source, const char *path, bool compress,
                            struct ar_error *error);
};

extern const struct format_writer format_writer_snapshot, format_writer_rmm,
    format_writer_minimalloc, format_writer_oracle;

/* By index from 0; NULL past the last. */
const struct format_writer *format_writer_at(size_t index);

#endif
