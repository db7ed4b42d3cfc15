/* A program whose sections are played in any order: a trace with marks, of which each ends the
 * section with its name.
 *
 * 1. The part's sections are those whose name begins with the part's name and a dot, so that parts
 *    of one scenario can have one trace: [program actor] plays "actor.train" as `play train`. The
 *    n-th `play train` plays the n-th section of that name.
 * 2. A section's requests and frees are the program's. Blocks keep their identity: a block that a
 *    section frees is the one that another section has requested. A block that is freed in a
 *    section that is no part's stays.
 * 3. MemPools of the trace become regions that can sleep, in the order of their first requests,
 *    with the tags of the option `regions`. Others are private pools.
 * 4. The owner of a block is the section that requests it; `temporary` if the section frees it too.
 *
 * allocrig trace writes such traces: torch.cuda.nvtx.mark("actor.train") is a mark. */

#include "allocators/base/array.h"
#include "sim/twin/parts/player.h"
#include "workloads/workload.h"

#define TAGS 8

struct values {
    const char *workload, *regions, *backup;
};

struct section {
    const char *name;  /* without the part's; NULL: of no interest */
    size_t begin, end; /* events */
    bool played;
};

struct program {
    struct twin_part base;
    struct player player;
    struct trace_event *events;
    size_t event_count, event_room;
    struct section *sections;
    size_t section_count, section_room;
    uint32_t *owners; /* by id */
    size_t owner_count;
    char *tag_text;
    const char *tags[TAGS];
    size_t tag_count;
    uint32_t tag_pools[TAGS]; /* of the workload */
    size_t pool_count;
};

#define AR_OPT_OF struct values

static const struct ar_option options[] = {
    AR_OPT_TEXT(workload, NULL, "a trace with marks, of which each ends a section: PART.SECTION"),
    AR_OPT_TEXT(
        regions, "",
        "tags of its MemPools, in the order of their first requests: their memory can sleep"),
    AR_OPT_TEXT(backup, "", "the tag whose contents sleep copies to pinned host memory"),
    {0},
};

enum { ACTION_PLAY, ACTION_SLEEP, ACTION_WAKE };

static const struct twin_action actions[] = {
    {"play", "SECTION", "plays the next section of that name", 1, 1},
    {"sleep", "[TAG..]", "memory of the tags sleeps; without tags of all", 0, TAGS},
    {"wake", "[TAG..]", "makes it again", 0, TAGS},
    {0},
};

static struct program *of(struct twin_part *base)
{
    return (struct program *)base;
}

/* ---- the trace ------------------------------------------------------------------------------- */

/* The events, with ids in place of slots: sections are played in another order. */
static enum ar_status read_events(struct program *self, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = self->player.source};
    const struct trace_event *read;
    enum ar_status status = AR_OK;
    while ((read = trace_read(&cursor, &status, error)) != NULL) {
        struct trace_event event = *read;
        if (trace_kind_has_block(event.kind) && event.id >= UINT32_MAX)
            return ar_invalid(error, "the workload has too many requests");
        event.slot = (uint32_t)event.id;
        AR_TRY(AR_APPEND(self->events, self->event_count, self->event_room, event, error,
                         "a workload"));
    }
    return status;
}

static const char *own_name(const struct program *self, const char *label)
{
    size_t length = strlen(self->base.name);
    return strncmp(label, self->base.name, length) == 0 && label[length] == '.' ? label + length + 1
                                                                                : NULL;
}

static enum ar_status find_sections(struct program *self, struct ar_error *error)
{
    size_t begin = 0;
    bool any = false;
    for (size_t i = 0; i < self->event_count; i++) {
        const struct trace_event *event = &self->events[i];
        if (event->kind != TRACE_MARK || event->flags & TRACE_STEP)
            continue;
        const char *label = trace_text_of(self->player.source, event->value);
        struct section section = {own_name(self, label), begin, i, false};
        AR_TRY(AR_APPEND(self->sections, self->section_count, self->section_room, section, error,
                         "a workload"));
        any = any || section.name;
        begin = i + 1;
    }
    return any ? AR_OK
               : ar_invalid(
                     error,
                     "the workload has no mark that begins with \"%s.\", the name of the part",
                     self->base.name);
}

static bool set_owner(struct program *self, uint64_t id, uint32_t owner)
{
    if (!AR_ARRAY_REACH(self->owners, self->owner_count, id))
        return false;
    self->owners[id] = owner;
    return true;
}

static enum ar_status find_owners(struct program *self, struct ar_error *error)
{
    uint32_t temporary = twin_owner(&self->base, "temporary");
    for (size_t i = 0; i < self->section_count; i++) {
        const struct section *section = &self->sections[i];
        if (!section->name)
            continue;
        uint32_t owner = twin_owner(&self->base, section->name);
        uint64_t first = UINT64_MAX; /* ids count up */
        for (size_t j = section->begin; j < section->end; j++) {
            const struct trace_event *event = &self->events[j];
            if (trace_requests(event)) {
                AR_LOWER(first, event->id);
                AR_TRY_MEMORY(set_owner(self, event->id, owner), error, "a workload");
            } else if (trace_frees(event) && event->id >= first && event->id < self->owner_count) {
                self->owners[event->id] = temporary;
            }
        }
    }
    return AR_OK;
}

/* ---- regions --------------------------------------------------------------------------------- */

static enum ar_status read_tags(struct program *self, const char *text, struct ar_error *error)
{
    self->tag_text = strdup(text);
    AR_TRY_MEMORY(self->tag_text, error, "a workload");
    char *rest = NULL;
    for (char *tag = strtok_r(self->tag_text, " ,", &rest); tag;
         tag = strtok_r(NULL, " ,", &rest)) {
        if (self->tag_count == TAGS)
            return ar_invalid(error, "regions: at most %d tags", TAGS);
        self->tags[self->tag_count++] = tag;
    }
    return AR_OK;
}

static const struct trace_attributes *keys_of(struct program *self, const struct trace_event *event)
{
    return event->attributes ? trace_attributes_of(self->player.source, event->attributes) : NULL;
}

/* The MemPools of its own sections. */
static enum ar_status find_pools(struct program *self, struct ar_error *error)
{
    for (size_t i = 0; i < self->section_count; i++) {
        const struct section *section = &self->sections[i];
        for (size_t j = section->begin; section->name && j < section->end; j++) {
            const struct trace_attributes *keys = keys_of(self, &self->events[j]);
            if (self->events[j].kind != TRACE_ALLOC || !keys || !keys->mempool ||
                keys->pool >= 64 || self->player.region_pools >> keys->pool & 1 ||
                self->pool_count == self->tag_count)
                continue;
            self->tag_pools[self->pool_count++] = keys->pool;
            self->player.region_pools |= UINT64_C(1) << keys->pool;
        }
    }
    if (self->pool_count < self->tag_count)
        return ar_invalid(
            error,
            "regions: %zu tags, but the workload has %zu MemPools in the sections of the part",
            self->tag_count, self->pool_count);
    return AR_OK;
}

static enum ar_status check_tag(const struct program *self, const char *tag, const char *key,
                                struct ar_error *error)
{
    for (size_t i = 0; i < self->tag_count; i++)
        if (strcmp(self->tags[i], tag) == 0)
            return AR_OK;
    return ar_invalid(error, "%s: \"%.40s\" is not a tag of the option regions", key, tag);
}

static enum ar_status program_create(struct twin_part *base, struct ar_error *error)
{
    struct program *self = of(base);
    const struct values *values = base->values;
    struct trace_source *source = NULL;
    if (!values->workload)
        return ar_invalid(error,
                          "it needs its requests; write workload = FILE, a trace with marks");
    enum ar_status status = workload_open_single(values->workload, &source, error);
    AR_THEN(status, player_open(&self->player, base, source, 1, false, error));
    AR_THEN(status, read_events(self, error));
    AR_THEN(status, find_sections(self, error));
    AR_THEN(status, find_owners(self, error));
    AR_THEN(status, read_tags(self, values->regions, error));
    AR_THEN(status, find_pools(self, error));
    if (status == AR_OK && *values->backup)
        status = check_tag(self, values->backup, "backup", error);
    self->player.owner_of = self->owners;
    return status;
}

/* ---- actions --------------------------------------------------------------------------------- */

static const char *tag_of_pool(const struct program *self, uint32_t pool)
{
    for (size_t i = 0; i < self->pool_count; i++)
        if (self->tag_pools[i] == pool)
            return self->tags[i];
    return NULL;
}

/* Opens the region of a request, and closes one that the request is not for. */
static enum ar_status change_region(struct program *self, const struct trace_event *event,
                                    const char **open, struct ar_error *error)
{
    const struct trace_attributes *keys = keys_of(self, event);
    const char *tag = keys ? tag_of_pool(self, keys->pool) : NULL;
    if (tag == *open)
        return AR_OK;
    if (*open)
        twin_region_end(&self->base);
    *open = tag;
    const struct twin_region region = {.kind = TWIN_REGION_POOL, .tag = tag, .keeps_pool = true};
    return tag ? twin_region_begin(&self->base, &region, error) : AR_OK;
}

static enum ar_status play_events(struct program *self, const struct section *section,
                                  struct ar_error *error)
{
    enum ar_status status = AR_OK;
    const char *open = NULL;
    for (size_t i = section->begin; status == AR_OK && i < section->end && !twin_over(&self->base);
         i++) {
        const struct trace_event *event = &self->events[i];
        if (trace_requests(event))
            status = change_region(self, event, &open, error);
        AR_THEN(status, player_play(&self->player, event, error));
    }
    if (open)
        twin_region_end(&self->base);
    return status;
}

static enum ar_status play(struct program *self, const char *name, struct ar_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < self->section_count; i++) {
        struct section *section = &self->sections[i];
        if (!section->name || strcmp(section->name, name) != 0)
            continue;
        count++;
        if (section->played)
            continue;
        section->played = true;
        return play_events(self, section, error);
    }
    if (!count)
        return ar_invalid(error, "the workload has no section \"%s.%.60s\"", self->base.name, name);
    return ar_invalid(error, "the workload has no more than %zu sections \"%s.%.60s\"", count,
                      self->base.name, name);
}

static enum ar_status sleep_or_wake(struct program *self, const struct twin_call *call,
                                    struct ar_error *error)
{
    const struct values *values = self->base.values;
    bool wake = call->action == ACTION_WAKE;
    for (size_t i = 0; i < call->argument_count; i++)
        AR_TRY(check_tag(self, call->arguments[i], wake ? "wake" : "sleep", error));
    for (size_t i = 0; i < call->argument_count + !call->argument_count; i++) {
        const char *tag = call->argument_count ? call->arguments[i] : NULL;
        size_t moved = wake ? twin_wake(&self->base, tag)
                            : twin_sleep(&self->base, tag, *values->backup ? values->backup : NULL);
        if (!moved && !twin_over(&self->base))
            twin_say(&self->base, "%s%s%s does nothing: no segment of it %s",
                     wake ? "wake" : "sleep", tag ? " " : "", tag ? tag : "",
                     wake ? "sleeps" : "is awake");
    }
    return AR_OK;
}

static enum ar_status program_act(struct twin_part *base, const struct twin_call *call,
                                  bool *more AR_UNUSED, struct ar_error *error)
{
    if (call->action != ACTION_PLAY)
        return sleep_or_wake(of(base), call, error);
    return play(of(base), call->arguments[0], error);
}

static void program_destroy(struct twin_part *base)
{
    struct program *self = of(base);
    player_close(&self->player);
    free(self->events);
    free(self->sections);
    free(self->owners);
    free(self->tag_text);
}

const struct twin_part_ops program_part = {
    .kind = "program",
    .summary = "a traced program whose sections are played in any order",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct program),
    .actions = actions,
    .create = program_create,
    .act = program_act,
    .destroy = program_destroy,
    .releases = "sleep",
    .restores = "wake",
};
