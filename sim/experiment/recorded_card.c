#include "sim/experiment/recorded_card.h"

#include "allocators/base/size.h"
#include "sim/sim_device/profile.h"

/* "VERB,ADDRESS,BYTES,.." */
static bool read_bytes(const char *text, const char *verb, uint64_t *bytes)
{
    size_t length = strlen(verb);
    if (strncmp(text, verb, length) != 0 || text[length] != ',')
        return false;
    const char *comma = strchr(text + length + 1, ',');
    *bytes = comma ? strtoull(comma + 1, NULL, 10) : 0;
    return comma != NULL;
}

void recorded_reserved_follow(const char *text, uint64_t *reserved_bytes)
{
    uint64_t bytes;
    if (read_bytes(text, "segment_alloc", &bytes) || read_bytes(text, "segment_map", &bytes) ||
        read_bytes(text, "segment", &bytes) || read_bytes(text, "pages", &bytes))
        *reserved_bytes += bytes;
    else if (read_bytes(text, "segment_free", &bytes) || read_bytes(text, "segment_unmap", &bytes))
        *reserved_bytes -= bytes < *reserved_bytes ? bytes : *reserved_bytes;
}

struct reading {
    struct recorded_card *out;
    uint64_t number, request, request_bytes, reserved_bytes, outside_bytes;
};

/* PyTorch's segments: whole multiples of 2 MiB, and 20 MiB for requests below 10 MiB. */
#define SEGMENT_UNIT_BYTES  (2 * AR_MIB)
#define LEAST_SEGMENT_BYTES (20 * AR_MIB)

/* "oom,FREE" after the request that failed. */
static void read_failure(struct reading *self, const char *text)
{
    char *end;
    uint64_t free_bytes = strncmp(text, "oom,", 4) == 0 ? strtoull(text + 4, &end, 10) : 0;
    if (strncmp(text, "oom,", 4) != 0 || end == text + 4 || !self->reserved_bytes ||
        free_bytes >= TRACE_BYTES_LIMIT)
        return;
    self->out->source = RECORDED_CARD_DRIVER;
    self->out->capacity_bytes = self->reserved_bytes + self->outside_bytes + free_bytes;
    self->out->event = self->request;
    self->out->full = free_bytes < ar_size_round_up(self->request_bytes, SEGMENT_UNIT_BYTES) ||
                      free_bytes < LEAST_SEGMENT_BYTES;
}

static void read_event(struct reading *self, struct trace_source *source,
                       const struct trace_event *event)
{
    if (trace_requests(event)) {
        self->request = self->number;
        self->request_bytes = event->value;
    } else if (event->kind == TRACE_OUTSIDE)
        self->outside_bytes = event->value;
    else if (event->kind == TRACE_NOTE) {
        const char *text = trace_text_of(source, event->value);
        recorded_reserved_follow(text, &self->reserved_bytes);
        read_failure(self, text);
    }
    self->number++;
}

static enum ar_status find_failure(struct trace_source *source, struct recorded_card *out,
                                   struct ar_error *error)
{
    struct reading reading = {.out = out};
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        read_event(&reading, source, event);
    return status;
}

void recorded_card_spec(const struct trace_info *info, char spec[RECORDED_CARD_SPEC_ROOM])
{
    const char *profile = sim_profile_of_card(info->card);
    snprintf(spec, RECORDED_CARD_SPEC_ROOM, "sim%s%s", profile ? ":profile=" : "",
             profile ? profile : "");
}

uint64_t recorded_card_usable(const struct trace_info *info)
{
    const char *name = sim_profile_of_card(info->card);
    struct sim_profile profile;
    name = name ? name : SIM_PROFILE_DEFAULT;
    if (sim_profile_read(sim_profile_builtin(name), name, &profile, NULL) != AR_OK)
        return info->capacity_bytes;
    uint64_t kept_bytes = profile.total_bytes - profile.usable_bytes;
    return info->capacity_bytes > kept_bytes ? info->capacity_bytes - kept_bytes
                                             : info->capacity_bytes;
}

static bool is_asked(const struct ar_spec *device)
{
    return ar_spec_value(device, "capacity") || ar_spec_value(device, "profile") ||
           strcmp(device->links[device->link_count - 1].name, "sim") != 0;
}

enum ar_status recorded_card_find(struct trace_source *source, const struct ar_spec *device,
                                  struct recorded_card *out, struct ar_error *error)
{
    const struct trace_info *info = &source->info;
    *out = (struct recorded_card){.source = RECORDED_CARD_ASKED};
    memcpy(out->name, info->card, sizeof out->name);
    if (is_asked(device))
        return AR_OK;
    out->profile = sim_profile_of_card(info->card);
    out->source = info->limit_bytes      ? RECORDED_CARD_LIMIT
                  : info->capacity_bytes ? RECORDED_CARD_TOTAL
                  : out->profile         ? RECORDED_CARD_NAME
                                         : RECORDED_CARD_UNKNOWN;
    out->capacity_bytes = info->limit_bytes ? info->limit_bytes : recorded_card_usable(info);
    out->whole = out->capacity_bytes == info->capacity_bytes;
    return info->limit_bytes || source->info.adaptive ? AR_OK : find_failure(source, out, error);
}
