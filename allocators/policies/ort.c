/* ONNX Runtime's arena (onnxruntime/core/framework/bfc_arena.cc, 1.32), the memory pool of its CUDA
 * provider. It is a fork of TensorFlow's BFC allocator: chunks are placed, split and merged by the
 * same rules (bfc/bfc.h, rules 1 and 2). Regions differ:
 *
 * 1. The first region has `initial_chunk_size_bytes` (1 MiB). Under kNextPowerOfTwo the next size
 *    doubles as often as the request needs, or else once, but without need not past
 *    `max_power_of_two_extend_bytes` (1 GiB). It doubles before the device is asked, so also if the
 *    device refuses (Extend, get_extend_bytes).
 * 2. Under kSameAsRequested a region has the size of the request, in units of 256 bytes.
 * 3. If the device refuses a region, 0.9 of it is tried, down to the request or to 8 KiB (Extend).
 * 4. No region is released to serve a request. `trim` is Shrink: it releases every region without a
 *    live block, but under kNextPowerOfTwo not the first, and the next region then has
 *    `initial_growth_chunk_size_bytes` (2 MiB).
 *
 * Two things are left out. Chunks that a session's run uses belong to its stream until the run ends
 * (StreamAwareArena); a recording does not say when a run ends, so all streams share the arena as
 * the requests without a stream do. And initializers can be reserved beside the arena (Reserve). */

#include "allocators/policies/bfc/bfc.h"

/* The defaults: bfc_arena.h, DEFAULT_*. */
#define INITIAL_BYTES      (1 * AR_MIB)
#define GROWTH_BYTES       (2 * AR_MIB)
#define MOST_DEAD_BYTES    (128 * AR_MIB)
#define MOST_DOUBLED_BYTES (1 * AR_GIB)
#define LEAST_RETRY_BYTES  8192u

enum ort_strategy {
    ORT_NEXT_POWER_OF_TWO,
    ORT_SAME_AS_REQUESTED,
};

struct ort_values {
    struct ar_policy_common common;
    int strategy; /* enum ort_strategy */
    uint64_t initial_bytes, growth_bytes, most_dead_bytes, most_doubled_bytes;
};

#define INT_MOST_BYTES 2147483647 /* the real option is an int */

static const struct ar_option ort_options[] = {
    {"limit", AR_OPTION_BYTES, offsetof(struct ort_values, common.limit_bytes), "0", 0, 0, NULL,
     "maximum of reserved bytes (gpu_mem_limit, max_mem); 0: no limit but the device"},
    {"arena_extend_strategy", AR_OPTION_CHOICE, offsetof(struct ort_values, strategy),
     "kNextPowerOfTwo", 0, 0, "kNextPowerOfTwo|kSameAsRequested",
     "size of a new region: by doubling, or that of the request"},
    {"initial_chunk_size_bytes", AR_OPTION_BYTES, offsetof(struct ort_values, initial_bytes),
     "1MiB", 1, INT_MOST_BYTES, NULL, "kNextPowerOfTwo: size of the first region"},
    {"initial_growth_chunk_size_bytes", AR_OPTION_BYTES, offsetof(struct ort_values, growth_bytes),
     "2MiB", 1, INT_MOST_BYTES, NULL, "kNextPowerOfTwo: size of the next region after a trim"},
    {"max_dead_bytes_per_chunk", AR_OPTION_BYTES, offsetof(struct ort_values, most_dead_bytes),
     "128MiB", 1, INT_MOST_BYTES, NULL,
     "split a chunk that is larger than the request by at least this"},
    {"max_power_of_two_extend_bytes", AR_OPTION_BYTES,
     offsetof(struct ort_values, most_doubled_bytes), "1GiB", 256, 0x1p60, NULL,
     "kNextPowerOfTwo: a region is larger only if the request is"},
    {0},
};

static bool keeps_initial(const struct bfc *self)
{
    return !self->regions.as_requested;
}

static enum ar_status ort_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct bfc *self = (struct bfc *)base;
    (void)keep_bytes; /* Shrink releases all it can */
    self->regions.next_bytes = self->regions.after_trim_bytes;
    return bfc_regions_release_free(self, keeps_initial(self));
}

/* As options of the CUDA provider. The other options are those of an OrtArenaCfg. */
static bool ort_setting(const struct ar_policy *base, char *text, size_t text_bytes)
{
    const struct bfc *self = (const struct bfc *)base;
    const struct bfc_regions *regions = &self->regions;
    if (self->values.first_region_bytes != INITIAL_BYTES ||
        regions->after_trim_bytes != GROWTH_BYTES || self->split_bytes != MOST_DEAD_BYTES ||
        regions->most_doubled_bytes != MOST_DOUBLED_BYTES)
        return false;
    char limit[40] = "";
    if (self->limit_given)
        snprintf(limit, sizeof limit, " gpu_mem_limit=%" PRIu64, self->regions.limit_bytes);
    snprintf(text, text_bytes, "arena_extend_strategy=%s%s",
             regions->as_requested ? "kSameAsRequested" : "kNextPowerOfTwo", limit);
    return true;
}

extern const struct ar_policy_ops ort_policy;

static enum ar_status ort_create(const struct ar_policy_context *context, const void *given,
                                 struct ar_policy **out, struct ar_error *error)
{
    const struct ort_values *values = given;
    const struct bfc_values shared = {
        .common.limit_bytes = ar_policy_limit(&values->common),
        .growth = true,
        .first_region_bytes = values->initial_bytes,
        .collection = BFC_COLLECTION_OFF,
    };
    struct bfc *self;
    AR_TRY(bfc_new(&ort_policy, context, &shared, &self, error));
    self->limit_given = values->common.limit_bytes != 0;
    self->split_bytes = values->most_dead_bytes;
    self->general_alignment = UINT64_MAX; /* the arena aligns to 256 bytes only */
    struct bfc_regions *regions = &self->regions;
    regions->most_doubled_bytes = ar_size_round_up(values->most_doubled_bytes, BFC_ROUNDING_BYTES);
    regions->least_retry_bytes = LEAST_RETRY_BYTES;
    regions->after_trim_bytes =
        (uint32_t)ar_size_round_up(values->growth_bytes, BFC_ROUNDING_BYTES);
    regions->as_requested = values->strategy == ORT_SAME_AS_REQUESTED;
    regions->doubles_first = true;
    *out = &self->base;
    return AR_OK;
}

const struct ar_policy_ops ort_policy = {
    .name = "ort",
    .summary = "ONNX Runtime's arena: regions by doubling or of the size of the request",
    .reference = "ONNX Runtime 1.32, onnxruntime/core/framework/bfc_arena.cc",
    .capabilities = AR_POLICY_WATCHES_FREE | AR_POLICY_TRIM_KEEPS,
    .options = ort_options,
    .values_bytes = sizeof(struct ort_values),
    .create = ort_create,
    AR_POLICY_HOOKS(bfc),
    .room = bfc_room,
    .trim = ort_trim,
    .setting = ort_setting,
};
