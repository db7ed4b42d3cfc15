/* mosaic: vmm with its decisions open to variation, and with the values that a search on the train
 * split of the data set found as defaults (bench/search/README.md).
 *
 * What differs from vmm.h
 *
 * 1. Blocks above 256 KiB are large ones. A request that finds no mapped free block in the ranges
 *    of its kind takes a free block of the other kind that holds no handle wholly: that memory
 *    could not be moved anyway.
 * 2. Where a range grows at its end, a handle has 9 pages (1 for small blocks), or fewer if less
 *    than 320 times that is left, but at least the whole pages that the block still has, up to 10.
 *    Blocks there follow each other in time, and mostly live and die together. Between other
 *    blocks a handle has the pages that the block needs, at most 8: neighbours get nothing of it.
 * 3. A request that would fail is glued (glue.c). A handle that is partly used cannot be moved, but
 *    it can be mapped at a second address. The block begins in the free end of one such handle,
 *    goes on in handles that are moved, and ends in the free start of another one. When it is
 *    freed, both parts go back, and the second mappings are unmapped when their work is done.
 * 4. The device is asked for its free memory only when less than what is needed is known to be
 *    free. vmm asks at each mapping and after each fence, more often than it makes all other
 *    driver calls, and cuMemGetInfo takes longer than most of them. If the device refuses memory
 *    that was known to be free, it is asked again.
 *
 * With empty rules, small=0, share=no and glue=no the placements are those of vmm, unless others
 * take memory from the device. */
#include "allocators/policies/vmm/vmm.h"

#include <string.h>

struct mosaic_values {
    struct ar_policy_common common;
    uint64_t small_bytes, huge_bytes, candidates;
    bool share, glue;
    const char *fit, *place, *handle, *unmap;
};

static const struct ar_option mosaic_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"small", AR_OPTION_BYTES, offsetof(struct mosaic_values, small_bytes), "256KiB", 0, 0, NULL,
     "largest block of the ranges for small blocks; 0: half a page"},
    {"huge", AR_OPTION_BYTES, offsetof(struct mosaic_values, huge_bytes), "0", 0, 0, NULL,
     "smallest block of the ranges for huge blocks; 0: none"},
    {"candidates", AR_OPTION_COUNT, offsetof(struct mosaic_values, candidates), "8", 1, 1000, NULL,
     "number of places that a rule compares"},
    {"share", AR_OPTION_BOOL, offsetof(struct mosaic_values, share), "yes", 0, 0, NULL,
     "use pieces between blocks of another kind"},
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

/* Rule 2 above. */
#define FOUND_HANDLE "tail ? max(min(left, 10), min(kind ? 9 : 1, room / 320)) : min(needed, 8)"

static const char *const fit_names[] = {"bytes", "size",  "movable", "loss", "start",
                                        "tail",  "tight", "kind",    NULL};
static const char *const place_names[] = {"bytes",  "missing", "before", "after", "start",
                                          "pieces", "tail",    "tight",  "kind",  NULL};
static const char *const handle_names[] = {"left",  "block", "needed", "room", "reserved", "device",
                                           "tight", "kind",  "freed",  "tail", "ends",     NULL};
static const char *const unmap_names[] = {"wanted", "size", "idle", "start",
                                          "tail",   "kind", "own",  NULL};

static enum ar_status mosaic_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops mosaic_policy;
    const struct mosaic_values *values = given;
    struct vmm_tuning tuning = {
        .small_bytes = values->small_bytes,
        .huge_bytes = values->huge_bytes,
        .candidates = values->candidates,
        .share = values->share,
        .glue = values->glue,
    };
    const struct {
        const char *text, *owner;
        const char *const *names;
        struct rule *rule;
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
        enum ar_status status =
            rule_parse(rules[i].text, rules[i].names, rules[i].owner, rules[i].rule, error);
        if (status != AR_OK)
            return status;
    }
    return vmm_open(context, &mosaic_policy, &values->common, &tuning, out, error);
}

const struct ar_policy_ops mosaic_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "mosaic",
    .summary = "vmm with rules that a search found, and blocks glued from the ends of others (of "
               "this project)",
    .reference = "this project",
    .capabilities = AR_POLICY_STREAM_ORDERED | AR_POLICY_NEEDS_MAPPING | AR_POLICY_WATCHES_FREE,
    .options = mosaic_options,
    .values_bytes = sizeof(struct mosaic_values),
    .create = mosaic_create,
    VMM_HOOKS,
};
