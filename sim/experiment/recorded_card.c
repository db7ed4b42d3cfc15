#include "sim/experiment/recorded_card.h"

#include "allocators/base/size.h"
#include "sim/sim_device/profile.h"
#include "workloads/trace/check.h"

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

void recorded_driver_follow(const char *text, struct recorded_driver *self)
{
    bool is_local;
    uint64_t bytes;
    if (!trace_driver_note(text, &is_local, &bytes))
        return;
    if (!is_local)
        self->took_bytes += bytes;
    else if (!self->local_first)
        self->local_first = bytes;
    if (is_local)
        AR_RAISE(self->local_most, bytes);
}

uint64_t recorded_driver_bytes(const struct recorded_driver *self, const struct sim_profile *card)
{
    uint64_t local = card->processors * card->threads * (self->local_most - self->local_first);
    uint64_t page_bytes = card->page_bytes ? card->page_bytes : 1;
    uint64_t taken = ar_size_round_up(local + self->took_bytes, page_bytes);
    uint64_t most = card->usable_bytes > page_bytes ? card->usable_bytes - page_bytes : 0;
    return taken < most ? taken : most;
}

struct reading {
    struct recorded_card *out;
    struct recorded_driver driver;
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
        recorded_driver_follow(text, &self->driver);
        if (self->out->source != RECORDED_CARD_ASKED)
            read_failure(self, text);
    }
    self->number++;
}

/* Takes off what the driver takes for the kernels. `asked`: a profile, or NULL. An error of a file
 * is that of the device, which is opened later. */
static void take_driver(const struct recorded_driver *driver, const char *asked,
                        struct recorded_card *out)
{
    struct sim_profile card;
    const char *name = asked ? asked : out->profile ? out->profile : SIM_PROFILE_DEFAULT;
    const char *const *lines = sim_profile_builtin(name);
    if (out->source == RECORDED_CARD_DRIVER || (!driver->took_bytes && !driver->local_most) ||
        (lines ? sim_profile_read(lines, name, &card, NULL) : sim_profile_load(name, &card, NULL)))
        return;
    if (!out->capacity_bytes)
        out->capacity_bytes = card.usable_bytes;
    out->driver_bytes = recorded_driver_bytes(driver, &card);
    if (out->driver_bytes >= out->capacity_bytes)
        out->driver_bytes = 0; /* no card of today */
    out->capacity_bytes -= out->driver_bytes;
}

static enum ar_status read_notes(struct trace_source *source, const char *asked,
                                 struct recorded_card *out, struct ar_error *error)
{
    struct reading reading = {.out = out};
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = trace_rewind(source, error);
    for (const struct trace_event *event; (event = trace_read(&cursor, &status, error)) != NULL;)
        read_event(&reading, source, event);
    if (!status)
        take_driver(&reading.driver, asked, out);
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

enum ar_status recorded_card_find(struct trace_source *source, const struct ar_spec *device,
                                  struct recorded_card *out, struct ar_error *error)
{
    const struct trace_info *info = &source->info;
    const char *asked = ar_spec_value(device, "profile");
    *out = (struct recorded_card){.source = RECORDED_CARD_ASKED};
    memcpy(out->name, info->card, sizeof out->name);
    if (ar_spec_value(device, "capacity") ||
        strcmp(device->links[device->link_count - 1].name, "sim") != 0)
        return AR_OK;
    if (!asked) {
        out->profile = sim_profile_of_card(info->card);
        out->source = info->limit_bytes      ? RECORDED_CARD_LIMIT
                      : info->capacity_bytes ? RECORDED_CARD_TOTAL
                      : out->profile         ? RECORDED_CARD_NAME
                                             : RECORDED_CARD_UNKNOWN;
        out->capacity_bytes = info->limit_bytes ? info->limit_bytes : recorded_card_usable(info);
        out->whole = out->capacity_bytes == info->capacity_bytes;
    }
    return out->source == RECORDED_CARD_LIMIT || info->adaptive
               ? AR_OK
               : read_notes(source, asked, out, error);
}
