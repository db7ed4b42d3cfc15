#include "workloads/formats/torch/snapshot_settings.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"

/* Which doubling from 1 MiB up. */
static unsigned doubling_of(uint64_t mib)
{
    unsigned doubling = 0;
    for (; mib > 1 && doubling < SNAPSHOT_DIVISIONS - 1; mib /= 2)
        doubling++;
    return doubling;
}

/* "8" for all sizes, or "[256:1,512:2,>:8]": steps for sizes of so many MiB. As PyTorch fills its
 * table: a key governs its doubling and, until the next key, all above; the first one all below
 * too; `>` all from the last key up. */
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
