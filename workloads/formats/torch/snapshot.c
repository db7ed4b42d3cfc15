/* PyTorch's memory snapshots: torch.cuda.memory._dump_snapshot, all layouts since PyTorch 2.0, and
 * the segments alone that torch.cuda.memory_snapshot returns.
 *
 * The file, a pickle or JSON, is read as data into a tree and packed entries (pickle.c,
 * snapshot_tree.c). For each device the state at the start is computed (snapshot_world.c), and the
 * pools that the snapshot does not name are inferred (snapshot_pools.c, snapshot_ranges.c). Then
 * all becomes a trace (snapshot_trace.c). FORMAT.md has the rules. */

#include "allocators/policies/torch/torch.h"
#include "workloads/formats/torch/snapshot_world.h"

#define DEVICES_MOST 64

#define ZIP_MAGIC      "PK\3\4"
#define ZIP_HEAD_BYTES 30
#define ZIP_NAMES_MOST 4096

struct reading {
    struct snapshot_tree tree;
    struct snapshot_world worlds[DEVICES_MOST + 1]; /* the last one: pinned host memory */
    struct snapshot_marks marks;
    struct format_reading *out;
    uint64_t segments, traces, host, settings, annotations; /* values */
};

/* What is not there and None are no entries. */
static enum ar_status check_list(uint64_t value, const char *key, struct ar_error *error)
{
    bool good = value == SNAPSHOT_ABSENT || pickle_kind_of(value) == PICKLE_LIST ||
                pickle_kind_of(value) == PICKLE_NONE;
    return good ? AR_OK : ar_error_set(error, AR_FORMAT, "\"%s\" is no list", key);
}

/* Finds the parts. A list holds the segments alone, or snapshots. */
static enum ar_status find_parts(struct reading *reading, struct ar_error *error)
{
    const struct snapshot_tree *tree = &reading->tree;
    uint64_t root = tree->root;
    size_t count;
    const uint64_t *items = snapshot_items(tree, root, &count);
    reading->segments = reading->traces = reading->settings = SNAPSHOT_ABSENT;
    reading->annotations = reading->host = SNAPSHOT_ABSENT;
    bool listed = count && snapshot_get(tree, items[0], SNAPSHOT_KEY_total_size) == SNAPSHOT_ABSENT;
    if (listed)
        root = items[0];
    if (listed && count > 1)
        import_guess(reading->out->report, "it holds %zu snapshots: the first is taken", count);
    if (pickle_kind_of(root) == PICKLE_LIST) {
        reading->segments = root;
        import_guess(reading->out->report, "it has segments only: a state without a history");
        return AR_OK;
    }
    reading->segments = snapshot_get(tree, root, SNAPSHOT_KEY_segments);
    reading->traces = snapshot_get(tree, root, SNAPSHOT_KEY_device_traces);
    reading->host = snapshot_get(tree, root, SNAPSHOT_KEY_host_traces);
    reading->settings = snapshot_get(tree, root, SNAPSHOT_KEY_allocator_settings);
    reading->annotations = snapshot_get(tree, root, SNAPSHOT_KEY_external_annotations);
    if (pickle_kind_of(root) == PICKLE_OTHER)
        return ar_error_set(error, AR_FORMAT,
                            "a file of torch.save in its old form, several pickles one after the "
                            "other: save the snapshot with pickle.dump");
    if (reading->segments == SNAPSHOT_ABSENT && reading->traces == SNAPSHOT_ABSENT)
        return ar_error_set(error, AR_FORMAT,
                            "a pickle without \"segments\" and \"device_traces\": it is not a "
                            "memory snapshot of PyTorch");
    AR_TRY(check_list(reading->segments, "segments", error));
    AR_TRY(check_list(reading->host, "host_traces", error));
    return check_list(reading->traces, "device_traces", error);
}

static enum ar_status take_segments(struct reading *reading, struct ar_error *error)
{
    size_t count;
    const uint64_t *segments = snapshot_items(&reading->tree, reading->segments, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t device = 0, given = snapshot_get(&reading->tree, segments[i], SNAPSHOT_KEY_device);
        bool is_number = snapshot_number(&reading->tree, given, &device);
        if (given != SNAPSHOT_ABSENT && (!is_number || device >= DEVICES_MOST))
            return ar_invalid(error, "segment %zu: its device is no number from 0 to %d", i,
                              DEVICES_MOST - 1);
        AR_TRY(
            snapshot_world_segment(&reading->worlds[device], &reading->tree, segments[i], error));
    }
    return AR_OK;
}

static enum ar_status take_traces(struct reading *reading, struct ar_error *error)
{
    size_t count;
    const uint64_t *traces = snapshot_items(&reading->tree, reading->traces, &count);
    if (count > DEVICES_MOST)
        return ar_invalid(error, "it tells of %zu devices; up to %d can be read", count,
                          DEVICES_MOST);
    for (size_t i = 0; i < count; i++) {
        reading->worlds[i].device = i;
        AR_TRY(check_list(traces[i], "device_traces[..]", error));
        AR_TRY(snapshot_world_events(&reading->worlds[i], &reading->tree, traces[i], error));
    }
    /* From 2.14 on, with record_pinned_host_memory=True. The first device gets it. */
    struct snapshot_world *host = &reading->worlds[DEVICES_MOST];
    host->is_host = true;
    return !reading->out->device || *reading->out->device == 0
               ? snapshot_world_events(host, &reading->tree, reading->host, error)
               : AR_OK;
}

/* Moves the devices that hold anything to the front. */
static size_t pack_worlds(struct reading *reading)
{
    size_t kept = 0;
    for (size_t i = 0; i < DEVICES_MOST; i++) {
        struct snapshot_world *world = &reading->worlds[i];
        world->device = i;
        if ((!world->event_count && !world->final_area_count) ||
            (reading->out->device && i != *reading->out->device))
            continue;
        struct snapshot_world moved = *world;
        *world = reading->worlds[kept];
        reading->worlds[kept++] = moved;
    }
    struct snapshot_world host = reading->worlds[DEVICES_MOST];
    if (host.event_count) {
        reading->worlds[DEVICES_MOST] = reading->worlds[kept];
        reading->worlds[kept++] = host;
    }
    return kept;
}

/* Until PyTorch 2.2 a snapshot had no settings. Segments that grow show one of them. */
static void guess_pages(struct reading *reading, size_t count, char *conf, size_t room)
{
    bool has_pages = false;
    for (size_t i = 0; i < count; i++)
        has_pages |= reading->worlds[i].has_pages;
    if (!has_pages || *conf || reading->marks.has_conf ||
        snapshot_get(&reading->tree, reading->settings, SNAPSHOT_KEY_expandable_segments) !=
            SNAPSHOT_ABSENT)
        return;
    (void)snprintf(conf, room, "expandable_segments:True");
    import_guess(reading->out->report, "it has no settings of the allocator, but segments that "
                                       "grow: taken for expandable_segments:True");
}

/* The size of the large pages, from the settings. */
static void take_pages(struct reading *reading, const char *conf)
{
    const struct torch_values values = {
        .conf = conf, .max_non_split_rounding_mb = 20, .large_segment_size_mb = 20};
    struct torch_settings settings;
    struct ar_error ignored;
    if (torch_settings_read(&values, &settings, &ignored))
        return;
    for (size_t i = 0; i <= DEVICES_MOST; i++)
        reading->worlds[i].large_page_bytes = settings.large_segment_bytes;
}

/* ---- switches that are not told ---------------------------------------------------------- */

/* The settings but expandable_segments. */
static bool take_other(void *argument, const char *key, const char *value)
{
    char *text = argument;
    size_t used = strlen(text);
    if (strcmp(key, "expandable_segments") != 0)
        (void)snprintf(text + used, sizeof(((struct trace_info *)0)->conf) - used, "%s%s:%s",
                       used ? "," : "", key, value);
    return true;
}

/* Whether a history has segments that are made and pages that are mapped. */
static bool is_mixed(const struct reading *reading, const struct snapshot_world *world)
{
    for (size_t i = 0; i < world->event_count && world->has_pages; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, &reading->tree, i);
        if (record && record->action == SNAPSHOT_SEGMENT_ALLOC)
            return true;
    }
    return false;
}

/* The program of such a history switched expandable_segments in between. When is not known: at the
 * first entry of the other kind. The other settings are taken to stay. */
static enum ar_status imply_switches(struct reading *reading, struct snapshot_world *world,
                                     char *conf, struct ar_error *error)
{
    char others[sizeof reading->out->info.conf] = "", note[sizeof others + 64];
    const char *at;
    uint64_t switches = 0;
    int grows = -1; /* not known yet */
    if (reading->settings == SNAPSHOT_ABSENT || reading->marks.has_conf ||
        !is_mixed(reading, world))
        return AR_OK;
    (void)torch_conf_each(conf, take_other, others, &at);
    for (size_t i = 0; i < world->event_count; i++) {
        const struct snapshot_record *record = snapshot_world_event(world, &reading->tree, i);
        if (!record ||
            (record->action != SNAPSHOT_SEGMENT_ALLOC && record->action != SNAPSHOT_SEGMENT_MAP))
            continue;
        bool maps = record->action == SNAPSHOT_SEGMENT_MAP;
        (void)snprintf(note, sizeof note, "settings,%s%sexpandable_segments:%s", others,
                       *others ? "," : "", maps ? "True" : "False");
        if (grows < 0)
            (void)snprintf(conf, sizeof others, "%.*s", (int)sizeof others - 1,
                           note + strlen("settings,"));
        const struct snapshot_mark mark = {.entry = i,
                                           .time_us = record->time_us,
                                           .device = world->device,
                                           .has_time = record->has_time};
        if (grows >= 0 && grows != maps)
            AR_TRY(snapshot_marks_imply(&reading->marks, &reading->tree, &mark, note, error));
        switches += grows >= 0 && grows != maps;
        grows = maps;
    }
    reading->marks.has_conf = true;
    import_guess_count(reading->out->report, switches,
                       "changes of expandable_segments are not told: taken to be where segments or "
                       "pages follow the other kind");
    return AR_OK;
}

static enum ar_status convert(struct reading *reading, struct ar_error *error)
{
    struct trace_info *info = &reading->out->info;
    AR_TRY(find_parts(reading, error));
    AR_TRY(snapshot_marks_read(&reading->marks, &reading->tree, reading->annotations,
                               &reading->out->report->left_out, error));
    if (reading->marks.has_conf)
        snapshot_conf_text(reading->marks.conf, info->conf, sizeof info->conf,
                           reading->out->report);
    else
        snapshot_conf(&reading->tree, reading->settings, info->conf, sizeof info->conf,
                      reading->out->report);
    take_pages(reading, info->conf);
    AR_TRY(take_segments(reading, error));
    AR_TRY(take_traces(reading, error));
    size_t count = pack_worlds(reading);
    if (!count && reading->out->device)
        return ar_invalid(error, "nothing in it is of device %" PRIu32, *reading->out->device);
    if (!count)
        return ar_error_set(error, AR_FORMAT,
                            "the snapshot is empty: no segments, and no history; was it taken on a "
                            "device that was used, after _record_memory_history?");
    reading->out->report->lacks_history = true;
    for (size_t i = 0; i < count; i++)
        if (reading->worlds[i].event_count)
            reading->out->report->lacks_history = false;
    guess_pages(reading, count, info->conf, sizeof info->conf);
    snapshot_forget_values(&reading->tree);
    for (size_t i = 0; i < count; i++)
        if (!reading->worlds[i].is_host)
            AR_TRY(snapshot_world_rewind(&reading->worlds[i], &reading->tree, error));
    if (count == 1) /* settings are of all devices */
        AR_TRY(imply_switches(reading, reading->worlds, info->conf, error));
    for (size_t i = 0; i < count; i++)
        if (!reading->worlds[i].is_host)
            AR_TRY(snapshot_tell(&reading->worlds[i], &reading->tree, &reading->marks, info->conf,
                                 error));
    AR_TRY(format_start(reading->out, error));
    return snapshot_trace(&reading->tree, reading->worlds, count, &reading->marks, reading->out,
                          error);
}

/* ---- the file -------------------------------------------------------------------------- */

static enum ar_status read_some(struct trace_input *input, unsigned char *bytes, size_t count,
                                size_t *got, struct ar_error *error)
{
    size_t more = 1;
    enum ar_status status = AR_OK;
    for (*got = 0; *got < count && more && !status; *got += status ? 0 : more)
        status = trace_input_read(input, bytes + *got, count - *got, &more, error);
    return status;
}

/* Moves to the pickle in a file of torch.save: an archive whose first member is NAME/data.pkl and
 * is not compressed. */
static enum ar_status enter_archive(struct trace_input *input, struct ar_error *error)
{
    unsigned char head[ZIP_HEAD_BYTES], rest[ZIP_NAMES_MOST] = {0};
    size_t got, name = 0, more = 0;
    AR_TRY(read_some(input, head, sizeof head, &got, error));
    if (got == sizeof head) {
        name = head[26] | (size_t)head[27] << 8;
        more = head[28] | (size_t)head[29] << 8;
        if (name + more <= sizeof rest)
            AR_TRY(read_some(input, rest, name + more, &got, error));
    }
    static const char member[] = "data.pkl";
    size_t length = sizeof member - 1;
    if (name < length || name + more > sizeof rest || got < name + more || head[8] || head[9] ||
        memcmp(rest + name - length, member, length) != 0)
        return ar_error_set(error, AR_FORMAT,
                            "a zip archive whose first member is not the data.pkl that "
                            "torch.save writes: unpack the snapshot first");
    return AR_OK;
}

/* Reads the values from a pickle, an archive or JSON. */
static enum ar_status read_values(struct trace_input *input, struct snapshot_tree *tree,
                                  struct ar_error *error)
{
    unsigned char head[4];
    size_t got;
    enum ar_status status = read_some(input, head, sizeof head, &got, error);
    AR_THEN(status, trace_input_rewind(input, error));
    bool is_archive = got == sizeof head && memcmp(head, ZIP_MAGIC, sizeof head) == 0;
    bool is_json = got && strchr("{[ \t\r\n\xef", head[0]) && head[0];
    if (!status && is_archive)
        status = enter_archive(input, error);
    return status ? status : snapshot_tree_read(input, is_json, tree, error);
}

static enum ar_status read_snapshot(struct format_reading *out, struct ar_error *error)
{
    struct reading *reading = calloc(1, sizeof *reading);
    AR_TRY_MEMORY(reading, error, "the file");
    reading->out = out;
    (void)snprintf(out->info.recorder, sizeof out->info.recorder, "torch");
    enum ar_status status = read_values(out->input, &reading->tree, error);
    AR_THEN(status, convert(reading, error));
    for (size_t i = 0; i <= DEVICES_MOST; i++)
        snapshot_world_close(&reading->worlds[i]);
    snapshot_marks_close(&reading->marks);
    snapshot_tree_close(&reading->tree);
    free(reading);
    return status;
}

static bool snapshot_matches(const char *head, size_t count)
{
    return pickle_matches(head, count) || snapshot_json_matches(head, count) ||
           (count >= ZIP_HEAD_BYTES && memcmp(head, ZIP_MAGIC, 4) == 0);
}

const struct format_reader format_snapshot = {
    .name = "snapshot",
    .summary =
        "memory snapshots of PyTorch: a pickle, protocols 0 to 5, read as data only; or JSON",
    .matches = snapshot_matches,
    .picks_device = true,
    .read = read_snapshot,
};
