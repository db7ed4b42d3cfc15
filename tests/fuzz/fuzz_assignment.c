/* XLA's buffer assignments as text. */
#include "tests/fuzz/trace_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return trace_bytes_run(data, bytes);
}
