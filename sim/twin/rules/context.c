#include "sim/twin/rules/context.h"

#include "allocators/base/size.h"
#include "sim/sim_device/profile.h"

/* The text of a key in the lines of a profile; "": it has none. */
static const char *text_of(const char *const *lines, const char *key)
{
    size_t length = strlen(key);
    for (; *lines; lines++)
        if (strncmp(*lines, key, length) == 0 && strncmp(*lines + length, ": ", 2) == 0)
            return *lines + length + 2;
    return "";
}

struct card card_of(const char *profile)
{
    const char *const *lines = profile ? sim_profile_builtin(profile) : NULL;
    const char *of = lines ? sim_profile_of_card(text_of(lines, "card")) : NULL;
    lines = of ? sim_profile_builtin(of) : NULL; /* h100 for h100-rested */
    if (!lines || !*text_of(lines, "processors"))
        return (struct card){.compute = 90, .link = "nvlink"};
    struct card card = {
        .compute = (uint32_t)(10 * strtod(text_of(lines, "compute"), NULL) + 0.5),
        .processors = strtoull(text_of(lines, "processors"), NULL, 10),
        .threads = strtoull(text_of(lines, "threads"), NULL, 10),
        .link = text_of(lines, "link"),
    };
    return card;
}

uint64_t context_of_card(const char *profile)
{
    const struct card card = card_of(profile);
    return card.threads ? CONTEXT_BASE_BYTES + card.processors * card.threads * CONTEXT_THREAD_BYTES
                        : 0;
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
