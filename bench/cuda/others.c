/* What others hold of the card, so that the rest of what it holds is this process's.
 *
 * The driver tells only what is held by all. The management library tells the same before there is
 * a context, when none of it is ours, and again once there is one: the difference is the context,
 * and what the driver then counts beyond that belongs to others. Without the library everything
 * is taken for ours. Others that come and go later are not noticed. */
#include <stdlib.h>
#include <unistd.h>

#include "bench/cuda/state.h"
#include "bench/machine/nvml.h"

int64_t cuda_others_look(uint64_t ordinal)
{
    struct nvml *nvml = nvml_open();
    if (!nvml)
        return -1;
    struct nvml_state state = {.used_bytes = -1};
    nvml_read_state(nvml, (unsigned)ordinal, getenv("CUDA_VISIBLE_DEVICES"), (uint32_t)getpid(),
                    &state);
    nvml_close(nvml);
    return state.used_bytes;
}

uint64_t cuda_others_bytes(int64_t before_bytes, int64_t now_bytes, uint64_t driver_bytes)
{
    if (before_bytes < 0 || now_bytes < before_bytes)
        return 0;
    uint64_t ours_bytes = (uint64_t)(now_bytes - before_bytes);
    return driver_bytes > ours_bytes ? driver_bytes - ours_bytes : 0;
}
