/* mosaic: vmm with its decisions open to variation, and with the values that a search on the train
 * split of the data set found as defaults (bench/search/README.md).
 *
 * What differs from vmm.h
 *
 * 1. A block in a free block goes to its end if it takes no whole handle there, but one at the
 *    start: what cannot be moved is used first.
 * 2. Driver calls have a budget. Expandable segments of PyTorch have a handle for each 20 MiB of
 *    large blocks, and a handle takes as long to make and map if it is larger. The policy is behind
 *    as long as its handles have less than 18 MiB / f on average, where f is the part of the device
 *    that they have, and memory was not short since the start or the last trim. So small handles
 *    are made when the device is nearly full. If it is behind, a handle has up to 28 MiB beyond the
 *    end of a block, or 40 MiB inside (less as the device fills), but at most 1/8 of what is left.
 *    If it is not behind, or memory is short, a handle ends with the whole pages of its block and
 *    has at most 16 MiB, and the page that blocks share is a handle of its own, so that all memory
 *    of a free block but its ends can move.
 * 3. A request that would fail is glued (glue.c). A handle that is partly used cannot be moved, but
 *    it can be mapped at a second address. The block begins in the free end of one such handle,
 *    goes on in handles that are moved, and ends in the free start of another one. When it is
 *    freed, both parts go back, and the second mappings are unmapped when their work is done.
 * 4. The device is asked for its free memory only when less than what is needed is known to be
 *    free. vmm asks at each mapping and after each fence, more often than it makes all other
 *    driver calls, and cuMemGetInfo takes longer than most of them. If the device refuses memory
 *    that was known to be free, it is asked again.
 * 5. Fences are recorded only once memory is unmapped for the first time, and after a trim memory
 *    counts as plentiful again. */
#include "allocators/policies/vmm/vmm.h"

struct mosaic_values {
    struct ar_policy_common common;
    uint64_t candidates;
    bool glue;
    const char *fit, *place, *handle, *unmap;
};

static const struct ar_option mosaic_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"candidates", AR_OPTION_COUNT, offsetof(struct mosaic_values, candidates), "8", 1, 1000, NULL,
     "number of places that a rule compares"},
    {"glue", AR_OPTION_BOOL, offsetof(struct mosaic_values, glue), "yes", 0, 0, NULL,
     "serve a request that would fail from what is left at the ends of blocks"},
    {"fit", AR_OPTION_TEXT, offsetof(struct mosaic_values, fit), "", 0, 0, NULL,
     "rule: which free block a request takes, the least; empty: the smallest"},
    {"place", AR_OPTION_TEXT, offsetof(struct mosaic_values, place), "", 0, 0, NULL,
     "rule: where pages are mapped, the least; empty: fewest pages"},
    {"handle", AR_OPTION_TEXT, offsetof(struct mosaic_values, handle), "found", 0, 0, NULL,
     "rule: pages of the next handle; found: by the search; empty: as vmm"},
    {"unmap", AR_OPTION_TEXT, offsetof(struct mosaic_values, unmap), "", 0, 0, NULL,
     "rule: which free block gives its pages, the least; empty: the largest"},
    {0},
};

/* Rule 2 above. The first 60 MiB come in handles of 20 MiB: the device waits for them. */
#define FOUND_HANDLE                                                                               \
    "max(left ? min(left, behind ? max(16, 20 * room / device) : 8)"                               \
    " : kind * (block < 5) ? min(10, room / 128) : 1,"                                             \
    " behind * kind ? min(reserved < 30 ? 10 : max(11, 14 * room / device), room / 8) : 1)"

static const char *const fit_names[] = {"bytes", "size",  "movable", "loss", "start",
                                        "tail",  "tight", "kind",    NULL};
static const char *const place_names[] = {"bytes",  "missing", "before", "after", "start",
                                          "pieces", "tail",    "tight",  "kind",  NULL};
static const char *const handle_names[] = {"left",  "block", "needed", "room", "reserved", "device",
                                           "tight", "kind",  "tail",   "ends", "behind",   NULL};
static const char *const unmap_names[] = {"wanted", "size", "idle", "start",
                                          "tail",   "kind", "own",  NULL};

static enum ar_status mosaic_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops mosaic_policy;
    const struct mosaic_values *values = given;
    struct vmm_tuning tuning = {
        .candidates = values->candidates,
        .glue = values->glue,
    };
    const struct {
        const char *text, *owner;
        const char *const *names;
        struct ar_rule *rule;
    } rules[] = {
        {values->fit, "policy mosaic: rule fit", fit_names, &tuning.fit},
        {values->place, "policy mosaic: rule place", place_names, &tuning.place},
        {strcmp(values->handle, "found") == 0 ? FOUND_HANDLE : values->handle,
         "policy mosaic: rule handle", handle_names, &tuning.handle},
        {values->unmap, "policy mosaic: rule unmap", unmap_names, &tuning.unmap},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!*rules[i].text)
            continue;
        AR_TRY(ar_rule_parse(rules[i].text, rules[i].names, rules[i].owner, rules[i].rule, error));
    }
    return vmm_open(context, &mosaic_policy, &values->common, &tuning, out, error);
}

const struct ar_policy_ops mosaic_policy = {
    VMM_OPS,
    .name = "mosaic",
    .summary = "vmm with rules that a search found, and blocks glued from the ends of others (of "
               "this project)",
    .options = mosaic_options,
    .values_bytes = sizeof(struct mosaic_values),
    .create = mosaic_create,
};
