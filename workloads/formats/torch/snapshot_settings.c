/* The settings of PyTorch's allocator. In a snapshot the text of the environment comes first. A
 * program may have changed its settings since, which only the other fields show: what these add to
 * the text is appended in PyTorch's own syntax, so that one text holds all of it. */
#include "workloads/formats/torch/snapshot_tree.h"

#include "allocators/base/size.h"
#include "workloads/io/fields.h"

static bool take(void *argument, const char *key, const char *value)
{
    struct snapshot_settings *out = argument;
    if (!strcmp(key, "max_split_size_mb"))
        out->max_split_bytes = (int64_t)(strtoull(value, NULL, 10) % (UINT64_C(1) << 32) * AR_MIB);
    else if (!strcmp(key, "garbage_collection_threshold"))
        out->garbage_collection_threshold = strtod(value, NULL);
    else if (!strcmp(key, "expandable_segments"))
        out->expandable_segments = *value == 'T' || *value == 't';
    else if (!strcmp(key, "roundup_power2_divisions"))
        (void)torch_divisions_read(value, (struct torch_release){0, 0},
                                   out->roundup_power2_divisions, NULL);
    return true;
}

void snapshot_settings_read(const char *conf, struct snapshot_settings *out)
{
    const char *at;
    *out = (struct snapshot_settings){.max_split_bytes = -1};
    (void)torch_conf_each(conf, take, out, &at);
}

/* ---- of a snapshot --------------------------------------------------------------------- */

struct conf {
    char *text;
    size_t room, used;
};

static void add(struct conf *conf, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct conf *conf, const char *format, ...)
{
    char piece[400];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(piece, sizeof piece, format, list);
    va_end(list);
    size_t comma = conf->used > 0;
    if (length <= 0 || (size_t)length >= sizeof piece ||
        conf->used + comma + (size_t)length >= conf->room)
        return;
    if (comma)
        conf->text[conf->used++] = ',';
    memcpy(conf->text + conf->used, piece, (size_t)length + 1);
    conf->used += (size_t)length;
}

/* Steps to a doubling, by MiB: "[1:4,2:8]". */
static void add_divisions(struct conf *conf, const struct snapshot_tree *tree, uint64_t table,
                          const struct snapshot_settings *said)
{
    char list[300] = "";
    size_t count, used = 0;
    bool differs = false;
    const uint64_t *pairs = snapshot_pairs(tree, table, &count);
    for (size_t i = 0; i < count && i < TORCH_DIVISION_INTERVALS; i++) {
        uint64_t steps = 0;
        const char *mib = snapshot_text(tree, pairs[2 * i]);
        (void)snapshot_number(tree, pairs[2 * i + 1], &steps);
        differs |= steps != said->roundup_power2_divisions[i];
        if (*mib < '0' || *mib > '9')
            return;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%" PRIu64 ":%" PRIu64,
                                 used ? "," : "", (uint64_t)strtoull(mib, NULL, 10), steps);
        if (used >= sizeof list)
            return;
    }
    if (differs)
        add(conf, "roundup_power2_divisions:[%s]", list);
}

/* ---- the text -------------------------------------------------------------------------- */

struct clean {
    struct conf *conf;
    struct import_report *report;
};

static bool keep(void *argument, const char *key, const char *value)
{
    const struct clean *self = argument;
    const struct torch_conf_key *known = torch_conf_key_find(key, value);
    if (known && known->effect != TORCH_CONF_MISSING)
        add(self->conf, "%s:%s", key, value);
    else
        import_guess(self->report, "the setting %.40s:%.40s is not known: left out", key, value);
    return true;
}

/* Adds the settings of the text one by one, without blanks, as PyTorch reads them. One that no
 * known release of PyTorch has, or that the policy does not have, is omitted. */
static void add_text(struct conf *conf, const char *text, struct import_report *report)
{
    struct clean clean = {conf, report};
    const char *at;
    if (!torch_conf_each(text, keep, &clean, &at))
        import_guess(report, "the settings from \"%.80s\" on cannot be read: left out", at);
}

/* The text of the environment variable, which has several names: PYTORCH_CUDA_ALLOC_CONF,
 * PYTORCH_ALLOC_CONF, those of other devices. */
static const char *find_text(const struct snapshot_tree *tree, uint64_t settings)
{
    size_t count;
    const uint64_t *pairs = snapshot_pairs(tree, settings, &count);
    for (size_t i = 0; i < count; i++) {
        const char *key = snapshot_text(tree, pairs[2 * i]);
        const char *text = snapshot_text(tree, pairs[2 * i + 1]);
        if (*text && field_ends_with(key, "_ALLOC_CONF"))
            return text;
    }
    return "";
}

static bool is_true(uint64_t value)
{
    return value == pickle_make(PICKLE_BOOL, 1);
}

static struct conf text_of(const char *given, char *text, size_t room, struct import_report *report)
{
    struct conf conf = {.text = text, .room = room};
    char clean[400];
    *text = '\0';
    field_text(given, clean, sizeof clean);
    add_text(&conf, clean, report);
    return conf;
}

void snapshot_conf_text(const char *given, char *text, size_t room, struct import_report *report)
{
    (void)text_of(given, text, room, report);
}

void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room,
                   struct import_report *report)
{
    struct conf conf = text_of(find_text(tree, settings), text, room, report);
    struct snapshot_settings said;
    uint64_t number, value;
    snapshot_settings_read(text, &said);
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_expandable_segments);
    if (is_true(value) && !said.expandable_segments)
        add(&conf, "expandable_segments:True");
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_max_split_size);
    if (snapshot_number(tree, value, &number) && number >= AR_MIB && number < UINT64_C(1) << 42 &&
        (int64_t)number != said.max_split_bytes)
        add(&conf, "max_split_size_mb:%" PRIu64, number / AR_MIB);
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_garbage_collection_threshold);
    double threshold = value != SNAPSHOT_ABSENT && pickle_kind_of(value) == PICKLE_FLOAT
                           ? pickle_float_of(value)
                           : 0;
    if (threshold > 0 && threshold <= 1 && said.garbage_collection_threshold <= 0)
        add(&conf, "garbage_collection_threshold:%.9g", threshold);
    add_divisions(&conf, tree, snapshot_get(tree, settings, SNAPSHOT_KEY_roundup_power2_divisions),
                  &said);
}
