#include "sim/twin/rules/copies.h"

uint64_t copies_bytes(enum copies_by by, uint64_t segment_bytes)
{
    uint64_t bytes = 1;
    if (by != COPIES_VLLM || !segment_bytes)
        return segment_bytes;
    while (bytes < segment_bytes)
        bytes *= 2;
    return bytes;
}

bool copies_stay(enum copies_by by, uint32_t release, bool retain)
{
    return by == COPIES_VLLM || retain || (release && release <= 9);
}
