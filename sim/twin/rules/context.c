#include "sim/twin/rules/context.h"

#include <stddef.h>

#include "allocators/base/size.h"

uint64_t context_bytes(uint64_t profile_bytes, bool *measured)
{
    if (measured)
        *measured = profile_bytes != 0;
    return profile_bytes ? profile_bytes : CONTEXT_MEASURED_BYTES;
}

uint64_t context_torch_bytes(unsigned uses)
{
    static const uint64_t mib[] = {92, 66, 8, 8, 70};
    uint64_t bytes = 0;
    for (unsigned i = 0; i < sizeof mib / sizeof *mib; i++)
        bytes += uses >> i & 1 ? mib[i] * AR_MIB : 0;
    return bytes;
}

uint64_t context_cublas_workspace_bytes(uint32_t compute)
{
    return compute >= 90 ? 8 * 4096 * AR_KIB : (2 * 4096 + 8 * 16) * AR_KIB;
}
