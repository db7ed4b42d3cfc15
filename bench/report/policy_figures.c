/* The names are the policy's own or, from the tables of allocators/policy.h, every policy's. */
#include "bench/report/policy_figures.h"

#include "bench/report/json_writer.h"

static void write_contract(struct json_writer *json, const struct ar_policy *policy)
{
    struct ar_policy_stats stats;
    ar_policy_stats(policy, &stats);
    json_put_integer(json, "live_bytes", stats.totals.live_bytes);
    json_put_integer(json, "live_blocks", stats.totals.live_blocks);
    json_put_integer(json, "granted_bytes", stats.totals.granted_bytes);
    json_put_integer(json, "reserved_bytes", stats.totals.reserved_bytes);
    json_put_integer(json, "pending_bytes", stats.totals.pending_bytes);
    json_put_integer(json, "releasable_bytes", stats.totals.releasable_bytes);
    json_put_integer(json, "overhead_bytes", stats.totals.overhead_bytes);
    json_put_integer(json, "free_bytes", ar_policy_free_bytes(&stats.totals));
    json_put_integer(json, "largest_hole_bytes", stats.largest_free_block_bytes);
#define X(name, help) json_put_integer(json, #name, stats.count.name);
    AR_POLICY_COUNTERS(X)
#undef X
}

void policy_figures_write(FILE *stream, const struct ar_policy *policy)
{
    struct json_writer json = {.stream = stream};
    char name[64];
    uint64_t value;
    json_begin_object(&json, NULL);
    if (ar_policy_report(policy, 0, name, sizeof name, &value))
        for (size_t i = 0; ar_policy_report(policy, i, name, sizeof name, &value); i++)
            json_put_integer(&json, name, value);
    else
        write_contract(&json, policy);
    json_end_object(&json);
}
