/* Binary traces. A fuzzer cannot guess hashes, so the inputs that pass the header are seeds with
 * bytes changed; the check sees the records before the hash is compared. */
#include "tests/fuzz/trace_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return trace_bytes_run(data, bytes);
}
