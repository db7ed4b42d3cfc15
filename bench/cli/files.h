/* The files that a command line names: what is read is not written over, and two outputs are two
 * files. */
#ifndef BENCH_CLI_FILES_H
#define BENCH_CLI_FILES_H

#include <stddef.h>

#include "allocators/base/status.h"
#include "bench/cli/cli.h"

struct cli_file {
    const struct cli_option *option; /* NULL: an argument that is no option */
    const char *value;
};

/* INVALID where an output is named twice, or is also one of the others. Looks at files, opens
 * none. */
enum ar_status cli_files_check(const struct cli_file *files, size_t count,
                               struct ar_error *error) AR_STATUS_CHECKED;

#endif
