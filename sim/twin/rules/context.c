#include "sim/twin/rules/context.h"

#include <stddef.h>
#include <string.h>

#include "allocators/base/size.h"

uint64_t context_of_card(const char *name)
{
    static const struct {
        const char *name;
        uint64_t processors, threads; /* that a multiprocessor holds */
    } cards[] = {
        {"a100", 108, 2048},   {"b200", 148, 2048},    {"h100", 132, 2048},
        {"h200", 132, 2048},   {"l40s", 142, 1536},    {"l4", 58, 1536},
        {"rtx3090", 82, 1536}, {"rtx4090", 128, 1536}, {"rtx5090", 170, 1536},
    };
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (strncmp(name, cards[i].name, strlen(cards[i].name)) == 0)
            return CONTEXT_BASE_BYTES +
                   cards[i].processors * cards[i].threads * CONTEXT_THREAD_BYTES;
    return 0;
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
