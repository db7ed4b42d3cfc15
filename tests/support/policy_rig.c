#include "tests/support/policy_rig.h"

#include <string.h>

#include "allocators/registry.h"

enum status policy_rig_open(struct policy_rig *rig, const char *text, struct backing *backing,
                            uint64_t fail_at)
{
    memset(rig, 0, sizeof *rig);
    enum status status = spec_parse(text, &rig->spec, &rig->error);
    if (status)
        return status;
    rig->host.fail_at = fail_at;
    rig->context = (struct policy_context){.backing = backing, .host = &rig->host, .seed = 1};
    return registry_create(&rig->spec, &rig->context, &rig->policy, &rig->error);
}

uint64_t policy_rig_close(struct policy_rig *rig)
{
    policy_destroy(rig->policy);
    rig->policy = NULL;
    spec_close(&rig->spec);
    return rig->host.now_bytes;
}

enum status policy_rig_alloc(struct policy_rig *rig, uint64_t bytes, struct policy_block *out)
{
    const struct policy_request request = {.bytes = bytes};
    return policy_alloc(rig->policy, &request, out);
}

enum status policy_rig_free(struct policy_rig *rig, const struct policy_block *block)
{
    return policy_free(rig->policy, block, 0);
}

static bool add_up(void *argument, const struct policy_range *range)
{
    struct policy_walk_sums *sums = argument;
    sums->out_of_order |= range->address < sums->end || range->bytes == 0;
    sums->gap |=
        sums->segment == range->segment_address && sums->end != range->address && sums->end != 0;
    sums->end = range->address + range->bytes;
    sums->segment = range->segment_address;
    sums->bytes[range->state] += range->bytes;
    sums->ranges[range->state]++;
    sums->requested_bytes += range->requested_bytes;
    if (range->state == POLICY_RANGE_FREE && range->bytes > sums->largest_free_block_bytes)
        sums->largest_free_block_bytes = range->bytes;
    return true;
}

struct policy_walk_sums policy_walk_sum(const struct policy *policy)
{
    struct policy_walk_sums sums = {.segment = UINT64_MAX};
    policy_walk(policy, add_up, &sums);
    return sums;
}
