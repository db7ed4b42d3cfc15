/* Suite files: whatever the text, it is read or refused with a sentence that names the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/suite.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    struct ar_error error = {{0}};
    struct suite suite = SUITE_DEFAULTS;
    int file = target_file(data, bytes, path);
    enum ar_status status = suite_read(&suite, path, &error);
    if (status == AR_OK && (suite.policies.count == 0 || suite.workloads.count == 0))
        abort();
    if (status != AR_OK && status != AR_HOST_MEMORY && !strstr(error.text, path))
        abort();
    if (suite.ratio_count > SUITE_RATIOS_MOST || suite.timeout_s == 0 || suite.replicates == 0)
        abort();
    suite_close(&suite);
    close(file);
    return 0;
}
