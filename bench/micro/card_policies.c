/* Alloc and free of each policy on a card, with the card idle and with a kernel running on another
 * stream. A sample is one pair; the policy is warm: the pair was made once before. Time is that of
 * the host for the whole pair, with the books that the device keeps of driver calls; what the
 * driver itself took of it stands beside it as driver_ns and wait_ns. */
#include "bench/micro/sections.h"

#include <stdio.h>

#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/micro/card.h"

/* What policies may hold: enough for all pairs, little enough for those that take all at once. */
#define LIMIT "4GiB"

struct policy_cell {
    struct ar_device *device;
    const struct ar_policy_ops *policy;
    uint64_t bytes;
    bool busy;
};

static enum ar_status pair(struct ar_policy *policy, uint64_t bytes)
{
    struct ar_policy_request request = {.bytes = bytes};
    struct ar_policy_block block;
    enum ar_status status = ar_policy_alloc(policy, &request, &block);
    return status == AR_OK ? ar_policy_free(policy, &block, CARD_STREAM) : status;
}

static enum ar_status sample(struct card *card, struct samples *samples, struct ar_policy *policy,
                             uint64_t bytes)
{
    enum ar_status status = AR_OK;
    samples_begin(samples, CARD_BUDGET_NS, CARD_LEAST);
    while (status == AR_OK && samples_more(samples)) {
        card_start(card);
        status = pair(policy, bytes);
        samples_add(samples, card_stop(card), 0);
    }
    return status;
}

static void measure(struct micro_state *state, const struct policy_cell *cell,
                    struct ar_policy *policy)
{
    struct card card;
    struct samples samples;
    enum ar_status status = pair(policy, cell->bytes);
    card_begin(&card, cell->device, cell->busy);
    if (status == AR_OK)
        status = sample(&card, &samples, policy, cell->bytes);
    if (status == AR_OK)
        card_report(&card, &samples, state, 2);
    else
        card_fail(&card, state, status, ar_policy_problem(policy));
}

static void run(struct micro_state *state, void *argument)
{
    const struct policy_cell *cell = argument;
    while (micro_next(state)) {
        struct ar_host host = {0};
        struct ar_policy_context context = {.backing = cell->device->backing, .host = &host};
        struct ar_policy *policy = NULL;
        struct ar_error error = {{0}};
        struct ar_spec spec;
        char text[64];
        snprintf(text, sizeof text, "%s%s", cell->policy->name,
                 cell->policy->capabilities & AR_POLICY_OVERLAPS ? "" : ":limit=" LIMIT);
        enum ar_status status = ar_spec_parse(text, &spec, &error);
        if (status == AR_OK) {
            status = registry_create(&spec, &context, &policy, &error);
            ar_spec_close(&spec);
        }
        if (status != AR_OK) {
            micro_fail(state, error.text);
            return;
        }
        measure(state, cell, policy);
        ar_policy_destroy(policy);
    }
}

void card_policies_register(struct sections *sections)
{
    static const uint64_t sizes[] = {512, 64 * AR_KIB, 4 * AR_MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct grid *grid = sections_grid(
        sections, "nanoseconds per operation on the card, idle and with a kernel on another stream",
        "policy", "ns_per_op");
    const char *kind = sections->device->props.kind;
    char size[24], name[32];
    if (!grid)
        return;
    grid->median = true;
    for (size_t i = 0; i < 2 * SIZES; i++) {
        snprintf(name, sizeof name, "%s %s",
                 ar_size_print_exact(sizes[i % SIZES], size, sizeof size),
                 i < SIZES ? "idle" : "busy");
        grid_column(grid, name);
    }
    const struct ar_policy_ops *policy;
    for (size_t p = 0; (policy = sections_policy(p)); p++) {
        size_t row = grid_row(grid, policy->name);
        for (size_t i = 0; row < GRID_ROWS && i < 2 * SIZES; i++) {
            struct policy_cell what = {.device = sections->device,
                                       .policy = policy,
                                       .bytes = sizes[i % SIZES],
                                       .busy = i >= SIZES};
            void *cell = sections_cell(sections, &what, sizeof what);
            if (!cell)
                return;
            ar_size_print_exact(what.bytes, size, sizeof size);
            micro_register_timed(grid_name(grid, row, i, "%s/policy/%s/%s/%s", kind, size,
                                           what.busy ? "busy" : "idle", policy->name),
                                 run, cell);
        }
    }
}
