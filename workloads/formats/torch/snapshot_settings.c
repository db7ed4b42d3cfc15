/* The settings of PyTorch's allocator. In a snapshot the text of the environment comes first. A
 * program may have changed its settings since, which only the other fields show: what these add to
 * the text is appended in PyTorch's own syntax, so that one text holds all of it. */
#include "workloads/formats/torch/snapshot_tree.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"
#include "workloads/io/fields.h"

/* The number of doublings from 1 MiB to a size. */
static unsigned doubling_of(uint64_t mib)
{
    unsigned doubling = 0;
    for (; mib > 1 && doubling < SNAPSHOT_DIVISIONS - 1; mib /= 2)
        doubling++;
    return doubling;
}

/* "8" for all sizes, or "[256:1,512:2,>:8]": steps for sizes of so many MiB. As PyTorch fills its
 * table: a key sets its doubling and, until the next key, all above; the first key also all below;
 * `>` sets all from the last key up. */
static void read_divisions(const char *text, uint64_t divisions[SNAPSHOT_DIVISIONS])
{
    unsigned from = 0, last = 0;
    bool list = *text == '[';
    for (const char *at = text + list; *at && *at != ']'; at += *at == ',') {
        const char *value = at;
        if (list) {
            if (*at == '>')
                from = last;
            else
                last = doubling_of(strtoull(at, NULL, 10));
            value = at + strcspn(at, ":]");
            if (*value != ':')
                return;
            value++;
            if (*at != '>' && at != text + 1)
                from = last;
        }
        for (unsigned i = from; i < SNAPSHOT_DIVISIONS; i++)
            divisions[i] = strtoull(value, NULL, 10);
        at = value + strcspn(value, ",]");
    }
}

static void take(struct snapshot_settings *out, const char *key, const char *value)
{
    if (!strcmp(key, "max_split_size_mb"))
        out->max_split_bytes = (int64_t)(strtoull(value, NULL, 10) % (UINT64_C(1) << 32) * AR_MIB);
    else if (!strcmp(key, "garbage_collection_threshold"))
        out->garbage_collection_threshold = strtod(value, NULL);
    else if (!strcmp(key, "expandable_segments"))
        out->expandable_segments = *value == 'T' || *value == 't';
    else if (!strcmp(key, "roundup_power2_divisions"))
        read_divisions(value, out->roundup_power2_divisions);
}

void snapshot_settings_read(const char *conf, struct snapshot_settings *out)
{
    char key[64], value[256];
    *out = (struct snapshot_settings){.max_split_bytes = -1};
    for (const char *at = conf; *at; at += *at == ',') {
        size_t key_bytes = strcspn(at, ":,");
        if (at[key_bytes] != ':') {
            at += key_bytes;
            continue;
        }
        const char *text = at + key_bytes + 1;
        size_t bytes = *text == '[' ? strcspn(text, "]") : strcspn(text, ",");
        bytes += text[bytes] == ']';
        if (key_bytes < sizeof key && bytes < sizeof value) {
            memcpy(key, at, key_bytes);
            key[key_bytes] = '\0';
            memcpy(value, text, bytes);
            value[bytes] = '\0';
            take(out, key, value);
        }
        at = text + bytes;
        at += strcspn(at, ",");
    }
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
    for (size_t i = 0; i < count && i < SNAPSHOT_DIVISIONS; i++) {
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

static bool is_known(const char *item)
{
    /* Those that matter, and those that the policy accepts and ignores. */
    static const char *const names[] = {
        "backend",
        "expandable_segments",
        "expandable_segments_reserve",
        "expandable_segments_reserve_by_class",
        "garbage_collection_threshold",
        "graph_capture_record_stream_reuse",
        "large_segment_size_mb",
        "max_non_split_rounding_mb",
        "max_split_size_mb",
        "per_process_memory_fraction",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "pinned_use_hip_host_register",
        "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",
        "roundup_power2_divisions",
        "throw_on_cudamalloc_oom",
    };
    size_t length = strcspn(item, ":");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && strncmp(names[i], item, length) == 0)
            return true;
    return false;
}

/* Adds the settings of the text one by one, without blanks, as PyTorch reads them. One that no
 * known version of PyTorch has is omitted. */
static void add_text(struct conf *conf, const char *text, struct import_report *report)
{
    char item[400];
    size_t length = 0;
    unsigned depth = 0;
    for (const char *at = text;; at++) {
        if (*at && *at != ' ' && (*at != ',' || depth) && length < sizeof item - 1) {
            if (*at == '[')
                depth++;
            else if (*at == ']' && depth)
                depth--;
            item[length++] = *at;
        }
        if (*at && (*at != ',' || depth))
            continue;
        item[length] = '\0';
        if (length && is_known(item))
            add(conf, "%s", item);
        else if (length)
            import_guess(report, "the setting %.80s is not known: left out", item);
        length = depth = 0;
        if (!*at)
            return;
    }
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

void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room,
                   struct import_report *report)
{
    struct conf conf = {.text = text, .room = room};
    struct snapshot_settings said;
    uint64_t number, value;
    char clean[400];
    *text = '\0';
    field_text(find_text(tree, settings), clean, sizeof clean);
    add_text(&conf, clean, report);
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
