/* Scenario files: whatever the text, it is read or refused with a sentence that names the file; a
 * copy of what was read has the same hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/scenario.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const kinds[] = {"trainer", "engine", "buffer"};
    char path[64];
    struct ar_error error = {{0}};
    struct scenario read, copy;
    int file = target_file(data, bytes, path);
    enum ar_status status = scenario_read(path, kinds, 3, &read, &error);
    if (status != AR_OK && status != AR_HOST_MEMORY && !strstr(error.text, path))
        abort();
    if (status == AR_OK) {
        for (size_t i = 0; i < read.section_count; i++)
            if (scenario_find(&read, read.sections[i].name[0]
                                         ? read.sections[i].name
                                         : read.sections[i].kind) != &read.sections[i])
                abort();
        if (scenario_copy(&read, &copy, &error) == AR_OK) {
            if (scenario_hash(&copy) != scenario_hash(&read))
                abort();
            scenario_close(&copy);
        }
        scenario_close(&read);
    }
    close(file);
    return 0;
}
