/* How: the text of the environment comes first. A program may have changed its settings since, which
 * shows in the other fields alone: what these say and the text does not is added, in PyTorch's own
 * syntax, so that one text holds all of it. */
#include "workloads/formats/snapshot_conf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"
#include "workloads/formats/fields.h"
#include "workloads/formats/snapshot_settings.h"

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

static bool is_true(uint64_t value)
{
    return value == pickle_make(PICKLE_BOOL, 1);
}

void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room)
{
    struct conf conf = {.text = text, .room = room};
    struct snapshot_settings said;
    uint64_t number, value = snapshot_get(tree, settings, SNAPSHOT_KEY_PYTORCH_CUDA_ALLOC_CONF);
    if (!*snapshot_text(tree, value))
        value = snapshot_get(tree, settings, SNAPSHOT_KEY_PYTORCH_ALLOC_CONF);
    char clean[400];
    *text = '\0';
    field_text(snapshot_text(tree, value), clean, sizeof clean);
    if (*clean)
        add(&conf, "%s", clean);
    snapshot_settings_read(text, &said);
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_expandable_segments);
    if (is_true(value) && !said.expandable_segments)
        add(&conf, "expandable_segments:True");
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_max_split_size);
    if (snapshot_number(tree, value, &number) && number >= MIB && number < UINT64_C(1) << 42 &&
        (int64_t)number != said.max_split_bytes)
        add(&conf, "max_split_size_mb:%" PRIu64, number / MIB);
    value = snapshot_get(tree, settings, SNAPSHOT_KEY_garbage_collection_threshold);
    double threshold = value != SNAPSHOT_ABSENT && pickle_kind_of(value) == PICKLE_FLOAT
                           ? pickle_float_of(value)
                           : 0;
    if (threshold > 0 && threshold <= 1 && said.garbage_collection_threshold <= 0)
        add(&conf, "garbage_collection_threshold:%.9g", threshold);
    add_divisions(&conf, tree, snapshot_get(tree, settings, SNAPSHOT_KEY_roundup_power2_divisions),
                  &said);
}
