/* The names of modes and causes, as options, tables and records spell them, and the modes that a
 * recording can be replayed in. */
#include "sim/replay.h"

const char *replay_frees_name(enum replay_frees frees)
{
    static const char *const names[] = {
        [REPLAY_ORDERED] = "ordered",
        [REPLAY_AT_ONCE] = "at-once",
        [REPLAY_RECORDED] = "recorded",
    };
    return names[frees];
}

const char *replay_host_name(enum replay_host host)
{
    static const char *const names[] = {
        [REPLAY_HOST_NONE] = "none",
        [REPLAY_HOST_RECORDED] = "recorded",
        [REPLAY_HOST_OPEN] = "open",
    };
    return names[host];
}

const char *replay_cause_name(enum replay_cause cause)
{
    static const char *const names[] = {
        [REPLAY_CAUSE_NONE] = "none",
        [REPLAY_CAUSE_RETURNED] = "returned",
        [REPLAY_CAUSE_FRAGMENTATION] = "fragmentation",
        [REPLAY_CAUSE_CACHE] = "cache",
        [REPLAY_CAUSE_PENDING] = "pending",
        [REPLAY_CAUSE_TENANT] = "tenant",
        [REPLAY_CAUSE_OUTSIDE] = "outside",
        [REPLAY_CAUSE_CAPACITY] = "capacity",
        [REPLAY_CAUSE_PINNED] = "pinned",
        [REPLAY_CAUSE_DRIVER] = "driver",
    };
    return names[cause];
}

unsigned replay_frees_choices(const struct trace_info *info, enum replay_frees wanted,
                              enum replay_frees out[2])
{
    if (wanted == REPLAY_ORDERED && info->has_split_frees && !info->has_uses) {
        out[0] = REPLAY_AT_ONCE;
        out[1] = REPLAY_RECORDED;
        return 2;
    }
    out[0] = wanted;
    return 1;
}

enum replay_frees replay_frees_nearest(const struct trace_info *info, enum replay_frees wanted)
{
    enum replay_frees choices[2];
    unsigned count = replay_frees_choices(info, wanted, choices);
    return choices[count - 1];
}
