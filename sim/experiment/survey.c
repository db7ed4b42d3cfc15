#include "sim/experiment/session.h"

#include "allocators/base/array.h"
#include "allocators/base/hist.h"

#define PARTS 4096 /* into which a pass divides a bucket */

/* A request that a policy sees. */
static bool is_request(struct trace_source *source, const struct trace_event *event)
{
    return trace_requests(event) && event->value &&
           trace_attributes_of(source, event->attributes)->space != TRACE_SPACE_PINNED;
}

/* The sizes from `least` to `most` contain the median; `below_bytes` are in smaller ones. */
struct search {
    uint64_t least, most;
    uint64_t below_bytes, all_bytes;
};

/* The first of `count` parts at which half of all bytes is reached. */
static unsigned half_in(struct search *search, const uint64_t *bytes, unsigned count)
{
    uint64_t half_bytes = search->all_bytes / 2 + search->all_bytes % 2;
    unsigned part = 0;
    while (part + 1 < count && search->below_bytes + bytes[part] < half_bytes)
        search->below_bytes += bytes[part++];
    return part;
}

static enum ar_status search_begin(struct trace_source *source, struct search *search,
                                   struct ar_hist *hist, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        if (is_request(source, event))
            ar_hist_add(hist, event->value, event->value);
    if (status != AR_OK || !hist->total)
        return status;
    search->all_bytes = hist->total;
    unsigned bucket = half_in(search, hist->count, AR_HIST_BUCKETS);
    search->least = ar_hist_bucket_least(bucket);
    search->most = ar_hist_bucket_most(bucket);
    return AR_OK;
}

static enum ar_status search_further(struct trace_source *source, struct search *search,
                                     uint64_t *parts, struct ar_error *error)
{
    uint64_t width = (search->most - search->least) / PARTS + 1;
    struct trace_cursor cursor = {.source = source};
    memset(parts, 0, PARTS * sizeof *parts);
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        if (is_request(source, event) && event->value >= search->least &&
            event->value <= search->most)
            parts[(event->value - search->least) / width] += event->value;
    AR_TRY(status);
    search->least += half_in(search, parts, PARTS) * width;
    search->most = search->least + width - 1;
    return AR_OK;
}

enum ar_status survey_median(struct trace_source *source, uint64_t *bytes, struct ar_error *error)
{
    struct search search = {0};
    AR_FREED struct ar_hist *hist = calloc(1, sizeof *hist);
    AR_FREED uint64_t *parts = malloc(PARTS * sizeof *parts);
    AR_TRY_MEMORY(hist && parts, error, "a histogram of sizes");
    AR_TRY(search_begin(source, &search, hist, error));
    while (search.least < search.most)
        AR_TRY(search_further(source, &search, parts, error));
    *bytes = search.least;
    return AR_OK;
}

/* An array with an entry per slot, which grows as slots appear. */
struct by_slot {
    uint64_t *at;
    size_t count;
};

static enum ar_status reach(struct by_slot *slots, uint32_t slot, struct ar_error *error)
{
    AR_TRY_MEMORY(AR_ARRAY_REACH(slots->at, slots->count, slot), error, "%u blocks", slot);
    return AR_OK;
}

enum ar_status survey_peak_live(struct trace_source *source, uint64_t card_bytes,
                                struct survey_peak *out, struct ar_error *error)
{
    struct by_slot live = {0};
    struct trace_cursor cursor = {.source = source};
    uint64_t now_bytes = 0, number = 0;
    *out = (struct survey_peak){0};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;
         number++) {
        if (!trace_kind_has_block(event->kind) || (status = reach(&live, event->slot, error)))
            continue;
        if (trace_requests(event)) {
            bool asked = is_request(source, event);
            if (event->kind == TRACE_PROBE &&
                (now_bytes > card_bytes || event->value > card_bytes - now_bytes))
                asked = false;
            live.at[event->slot] = asked ? event->value : 0;
            now_bytes += live.at[event->slot];
            if (now_bytes > out->bytes)
                *out = (struct survey_peak){now_bytes, number};
        } else if (event->kind != TRACE_USE) { /* a completion finds 0 */
            now_bytes -= live.at[event->slot];
            live.at[event->slot] = 0;
        }
    }
    free(live.at);
    return status;
}

struct lives {
    struct ar_policy_lifetime *at;
    size_t count, room;
    struct by_slot open; /* 1 + index of the lifetime of the slot's block; 0: none */
    bool at_completion;
};

static enum ar_status life_begins(struct lives *lives, const struct trace_event *event,
                                  uint64_t number, struct ar_error *error)
{
    AR_TRY_MEMORY(ar_array_make_room(&lives->at, lives->count, &lives->room, sizeof *lives->at),
                  error, "%zu lifetimes", lives->count);
    lives->at[lives->count] =
        (struct ar_policy_lifetime){.bytes = event->value, .born = number, .dies = UINT64_MAX};
    lives->open.at[event->slot] = ++lives->count;
    return AR_OK;
}

static enum ar_status live_on(struct lives *lives, struct trace_source *source,
                              const struct trace_event *event, uint64_t number,
                              struct ar_error *error)
{
    if (!trace_kind_has_block(event->kind))
        return AR_OK;
    enum ar_status status = reach(&lives->open, event->slot, error);
    if (status != AR_OK || event->kind == TRACE_USE)
        return status;
    uint64_t *open = &lives->open.at[event->slot];
    if (trace_requests(event)) {
        *open = 0;
        return is_request(source, event) ? life_begins(lives, event, number, error) : AR_OK;
    }
    if (*open && (event->kind == TRACE_FREE_COMPLETED || !lives->at_completion)) {
        lives->at[*open - 1].dies = number;
        *open = 0;
    }
    return AR_OK;
}

enum ar_status survey_lifetimes(struct trace_source *source, enum replay_frees frees,
                                struct ar_policy_lifetime **out, size_t *count,
                                struct ar_error *error)
{
    struct lives lives = {
        .at_completion = frees == REPLAY_RECORDED && source->info.has_split_frees,
    };
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        status = live_on(&lives, source, event, cursor.next - 1, error);
    for (size_t i = 0; i < lives.count; i++)
        if (lives.at[i].dies == UINT64_MAX)
            lives.at[i].dies = cursor.next;
    free(lives.open.at);
    if (status != AR_OK) {
        free(lives.at);
        return status;
    }
    *out = lives.at;
    *count = lives.count;
    return AR_OK;
}
