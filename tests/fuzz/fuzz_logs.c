/* Logs of other programs that are lines of text: RMM (both logs), MiniMalloc, Umpire, STAlloc.
 * Which one, the first lines say. */
#include "tests/fuzz/trace_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return trace_bytes_run(data, bytes);
}
