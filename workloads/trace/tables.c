/* The sets of keys and the texts of a trace, each stored once.
 * 1. A set of keys is stored under its canonical text: known keys in the order of the format, then
 *    unknown ones in the order given, joined by commas.
 * 2. A canonical text that is stored is found at once; any other text is parsed, printed in
 *    canonical order and looked up again. */
#include "workloads/trace/tables.h"

#include "allocators/base/array.h"
#include "allocators/base/fnv.h"
#include "allocators/base/size.h"
#include "workloads/io/fields.h"

/* ---- a pool of texts ---- */

/* A pool of texts by index. The bytes are in chunks that never move; a hash table with linear
 * probing, at most half full, finds a text by its FNV-1a hash. */
enum { CHUNK_BYTES = 1 << 16 };

void texts_close(struct texts *texts)
{
    for (char *chunk = texts->chunk, *before; chunk; chunk = before) {
        memcpy(&before, chunk, sizeof before);
        free(chunk);
    }
    free(texts->items);
    free(texts->hashes);
    free(texts->buckets);
    *texts = (struct texts){0};
}

static bool find(const struct texts *texts, const char *text, size_t length, uint32_t hash,
                 size_t *bucket)
{
    size_t mask = texts->bucket_count - 1;
    for (*bucket = hash & mask; texts->buckets[*bucket]; *bucket = (*bucket + 1) & mask) {
        uint32_t index = texts->buckets[*bucket] - 1;
        if (texts->hashes[index] == hash && !strncmp(texts->items[index], text, length) &&
            !texts->items[index][length])
            return true;
    }
    return false;
}

bool texts_find(const struct texts *texts, const char *text, size_t length, uint32_t *index)
{
    size_t bucket;
    if (!texts->bucket_count || !find(texts, text, length, ar_fnv32(text, length), &bucket))
        return false;
    *index = texts->buckets[bucket] - 1;
    return true;
}

static bool grow(struct texts *texts)
{
    size_t capacity = texts->capacity ? texts->capacity * 2 : 32;
    const char **items = realloc(texts->items, capacity * sizeof *items);
    if (items)
        texts->items = items;
    uint32_t *hashes = realloc(texts->hashes, capacity * sizeof *hashes);
    if (hashes)
        texts->hashes = hashes;
    uint32_t *buckets = calloc(capacity * 2, sizeof *buckets);
    if (!items || !hashes || !buckets) {
        free(buckets);
        return false;
    }
    free(texts->buckets);
    texts->buckets = buckets;
    texts->bucket_count = capacity * 2;
    texts->capacity = capacity;
    for (uint32_t i = 0; i < texts->count; i++) {
        size_t at = hashes[i] & (texts->bucket_count - 1);
        while (buckets[at])
            at = (at + 1) & (texts->bucket_count - 1);
        buckets[at] = i + 1;
    }
    return true;
}

static char *room_for(struct texts *texts, size_t bytes)
{
    if (!texts->chunk || texts->chunk_bytes - texts->chunk_used < bytes) {
        size_t size = sizeof(char *) + bytes;
        size = size < CHUNK_BYTES ? CHUNK_BYTES : size;
        char *chunk = malloc(size);
        if (!chunk)
            return NULL;
        memcpy(chunk, &texts->chunk, sizeof texts->chunk);
        texts->chunk = chunk;
        texts->chunk_bytes = size;
        texts->chunk_used = sizeof(char *);
    }
    char *room = texts->chunk + texts->chunk_used;
    texts->chunk_used += bytes;
    return room;
}

enum ar_status texts_intern(struct texts *texts, const char *text, size_t length, uint32_t *index,
                            struct ar_error *error)
{
    uint32_t hash = ar_fnv32(text, length);
    size_t bucket = 0;
    if (texts->count && find(texts, text, length, hash, &bucket)) {
        *index = texts->buckets[bucket] - 1;
        return AR_OK;
    }
    if (texts->count >= UINT32_MAX - 1)
        return ar_invalid(error, "more than %u different texts in one trace", UINT32_MAX - 1);
    if (texts->count == texts->capacity && !grow(texts))
        return ar_no_memory(error, "the trace's texts");
    char *copy = room_for(texts, length + 1);
    AR_TRY_MEMORY(copy, error, "the trace's texts");
    memcpy(copy, text, length);
    copy[length] = 0;
    (void)find(texts, text, length, hash, &bucket);
    *index = (uint32_t)texts->count++;
    texts->items[*index] = copy;
    texts->hashes[*index] = hash;
    texts->buckets[bucket] = *index + 1;
    texts->total_bytes += length + 1;
    return AR_OK;
}

/* ---- keys ---- */

enum { BLOCK = 256 };

enum key {
    KEY_TAG,
    KEY_POOL,
    KEY_ALIGN,
    KEY_DEVICE,
    KEY_THREAD,
    KEY_TENANT,
    KEY_SPACE,
    KEY_END,
    KEY_MEMPOOL
};
enum { KEY_COUNT = KEY_MEMPOOL + 1 };

static const char *const key_names[KEY_COUNT] = {"tag",    "pool",  "align", "device", "thread",
                                                 "tenant", "space", "end",   "mempool"};
static const char *const space_names[] = {"device", "pinned"};
static const char *const end_names[] = {"", "lower", "upper"};
/* By the bits above TRACE_MEMPOOL_PLAIN. */
static const char *const mempool_names[] = {
    "plain",     "use_on_oom",           "no_split",           "use_on_oom+no_split",
    "allocator", "use_on_oom+allocator", "no_split+allocator", "use_on_oom+no_split+allocator"};

void trace_tables_close(struct trace_tables *tables)
{
    for (size_t i = 0; i < tables->block_count; i++)
        free(tables->blocks[i]);
    free(tables->blocks);
    texts_close(&tables->keys);
    texts_close(&tables->strings);
    texts_close(&tables->texts);
    *tables = (struct trace_tables){0};
}

static enum ar_status take_number(struct trace_attributes *out, enum key key, const char *value,
                                  struct ar_error *error)
{
    uint64_t number;
    uint64_t limit = key == KEY_ALIGN ? UINT64_C(1) << 40 : UINT32_MAX;
    if (ar_count_parse(value, &number, NULL) || number > limit)
        return ar_invalid(error, "%s=%.40s: must be a whole number up to %s", key_names[key], value,
                          key == KEY_ALIGN ? "2^40" : "2^32 - 1");
    if (key == KEY_ALIGN && (!number || number & (number - 1)))
        return ar_invalid(error, "align=%s: must be a power of two", value);
    if (key == KEY_ALIGN)
        out->align = number;
    else if (key == KEY_POOL)
        out->pool = (uint32_t)number;
    else if (key == KEY_DEVICE)
        out->device = (uint32_t)number;
    else if (key == KEY_THREAD)
        out->thread = (uint32_t)number;
    else
        out->tenant = (uint32_t)number;
    return AR_OK;
}

static enum ar_status take_known(struct trace_attributes *out, enum key key, const char *value,
                                 struct ar_error *error)
{
    if (out->given & 1u << key)
        return ar_invalid(error, "the key \"%s\" is given twice", key_names[key]);
    out->given = (uint16_t)(out->given | 1u << key);
    if (key == KEY_TAG) {
        out->tag = value;
    } else if (key == KEY_SPACE) {
        if (strcmp(value, "device") != 0 && strcmp(value, "pinned") != 0)
            return ar_invalid(error, "space=%.40s: must be device or pinned", value);
        out->space = value[0] == 'p' ? TRACE_SPACE_PINNED : TRACE_SPACE_DEVICE;
    } else if (key == KEY_MEMPOOL) {
        for (unsigned i = 0; i < 8; i++)
            if (strcmp(value, mempool_names[i]) == 0)
                out->mempool = (uint8_t)(TRACE_MEMPOOL_PLAIN | i << 1);
        if (!out->mempool)
            return ar_invalid(error,
                              "mempool=%.40s: must be plain, or of use_on_oom, no_split and "
                              "allocator those that apply, in this order and joined by +",
                              value);
    } else if (key == KEY_END) {
        if (strcmp(value, "lower") != 0 && strcmp(value, "upper") != 0)
            return ar_invalid(error, "end=%.40s: must be lower or upper", value);
        out->end = value[0] == 'l' ? TRACE_END_LOWER : TRACE_END_UPPER;
    } else {
        return take_number(out, key, value, error);
    }
    return AR_OK;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a list of key=value has that key. */
static bool has_key(const char *list, const char *key, size_t length)
{
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, key, length) == 0 && list[length] == '=')
            return true;
    }
    return false;
}

/* Parses `text` in place; unknown keys are copied to `rest`, which has as much room. */
static enum ar_status parse_keys(char *text, char *rest, struct trace_attributes *out,
                                 struct ar_error *error)
{
    *out = (struct trace_attributes){0};
    size_t rest_used = 0;
    for (char *item = text, *next; item; item = next) {
        next = strchr(item, ',');
        if (next)
            *next++ = 0;
        char *equals = strchr(item, '=');
        if (!equals || equals == item)
            return ar_invalid(error, "\"%.60s\" is not key=value", item);
        if (!is_letter(*item))
            return ar_invalid(
                error, "the key \"%.60s\" does not begin with a letter; keys must, fields must not",
                item);
        size_t length = (size_t)(equals - item);
        int key = 0;
        while (key < KEY_COUNT &&
               (strlen(key_names[key]) != length || strncmp(key_names[key], item, length) != 0))
            key++;
        if (key < KEY_COUNT) {
            AR_TRY(take_known(out, (enum key)key, equals + 1, error));
            continue;
        }
        if (rest_used && has_key(rest, item, length))
            return ar_invalid(error, "the key \"%.*s\" is given twice",
                              length < 60 ? (int)length : 60, item);
        if (rest_used)
            rest[rest_used++] = ',';
        size_t item_length = strlen(item);
        memcpy(rest + rest_used, item, item_length + 1);
        rest_used += item_length;
    }
    out->rest = rest_used ? rest : NULL;
    return AR_OK;
}

static unsigned given_of(const struct trace_attributes *a)
{
    return (unsigned)a->given | (a->tag ? 1u << KEY_TAG : 0) | (a->pool ? 1u << KEY_POOL : 0) |
           (a->align ? 1u << KEY_ALIGN : 0) | (a->device ? 1u << KEY_DEVICE : 0) |
           (a->thread ? 1u << KEY_THREAD : 0) | (a->tenant ? 1u << KEY_TENANT : 0) |
           (a->space ? 1u << KEY_SPACE : 0) | (a->end ? 1u << KEY_END : 0) |
           (a->mempool ? 1u << KEY_MEMPOOL : 0);
}

/* Prints the canonical text to `out`; returns its length, whatever the room. */
static size_t print_keys(const struct trace_attributes *a, char *out, size_t room)
{
    const uint64_t numbers[KEY_COUNT] = {
        [KEY_POOL] = a->pool,     [KEY_ALIGN] = a->align,   [KEY_DEVICE] = a->device,
        [KEY_THREAD] = a->thread, [KEY_TENANT] = a->tenant,
    };
    const char *const words[KEY_COUNT] = {
        [KEY_TAG] = a->tag ? a->tag : "",
        [KEY_SPACE] = space_names[a->space == TRACE_SPACE_PINNED],
        [KEY_END] = end_names[a->end <= TRACE_END_UPPER ? a->end : 0],
        [KEY_MEMPOOL] = mempool_names[a->mempool >> 1 & 7],
    };
    unsigned given = given_of(a);
    size_t used = 0;
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        if (!(given & 1u << key))
            continue;
        char *at = used < room ? out + used : NULL;
        size_t left = used < room ? room - used : 0;
        const char *comma = used ? "," : "";
        int length = words[key] ? snprintf(at, left, "%s%s=%s", comma, key_names[key], words[key])
                                : snprintf(at, left, "%s%s=%llu", comma, key_names[key],
                                           (unsigned long long)numbers[key]);
        used += (size_t)length;
    }
    if (a->rest)
        used += (size_t)snprintf(used < room ? out + used : NULL, used < room ? room - used : 0,
                                 "%s%s", used ? "," : "", a->rest);
    return used;
}

/* Stores new parsed keys at the next index. */
static enum ar_status append(struct trace_tables *tables, const struct trace_attributes *parsed,
                             struct ar_error *error)
{
    size_t index = tables->keys.count; /* of the new entry */
    if (index / BLOCK >= tables->block_count) {
        AR_TRY(AR_APPEND(tables->blocks, tables->block_count, tables->block_room,
                         calloc(BLOCK, sizeof **tables->blocks), error, "the keys of a trace"));
        if (!tables->blocks[tables->block_count - 1]) {
            tables->block_count--;
            return ar_no_memory(error, "the keys of a trace");
        }
    }
    struct trace_attributes *entry = &tables->blocks[index / BLOCK][index % BLOCK];
    *entry = *parsed;
    uint32_t at;
    const char *const from[2] = {parsed->tag, parsed->rest};
    const char **const to[2] = {&entry->tag, &entry->rest};
    for (unsigned i = 0; i < 2; i++) {
        if (!from[i])
            continue;
        AR_TRY(texts_intern(&tables->strings, from[i], strlen(from[i]), &at, error));
        *to[i] = tables->strings.items[at];
    }
    return AR_OK;
}

static enum ar_status intern(struct trace_tables *tables, const struct trace_attributes *parsed,
                             uint32_t *index, struct ar_error *error)
{
    size_t length = print_keys(parsed, NULL, 0);
    AR_FREED char *text = malloc(length + 1);
    AR_TRY_MEMORY(text, error, "the keys of a trace");
    (void)print_keys(parsed, text, length + 1);
    if (!texts_find(&tables->keys, text, length, index)) {
        AR_TRY(append(tables, parsed, error));
        AR_TRY(texts_intern(&tables->keys, text, length, index, error));
    }
    *index += 1;
    return AR_OK;
}

/* Whether a text is valid in a line. */
static enum ar_status check_text(const char *text, size_t length, const char *what,
                                 struct ar_error *error)
{
    if (length > TRACE_TEXT_LIMIT)
        return ar_invalid(error, "%s has more than %u bytes", what, TRACE_TEXT_LIMIT);
    size_t plain = field_plain(text, length);
    return plain < length
               ? ar_invalid(error,
                            "%s contains the byte 0x%02x; text is UTF-8 without control bytes",
                            what, (unsigned char)text[plain])
               : AR_OK;
}

enum ar_status trace_tables_keys(struct trace_tables *tables, const char *text, size_t length,
                                 uint32_t *index, struct ar_error *error)
{
    *index = 0;
    if (!length)
        return AR_OK;
    if (texts_find(&tables->keys, text, length, index)) {
        *index += 1;
        return AR_OK;
    }
    AR_TRY(check_text(text, length, "the set of keys", error));
    AR_FREED char *copy = malloc(2 * (length + 1));
    AR_TRY_MEMORY(copy, error, "the keys of a trace");
    memcpy(copy, text, length);
    copy[length] = 0;
    struct trace_attributes parsed;
    AR_TRY(parse_keys(copy, copy + length + 1, &parsed, error));
    return intern(tables, &parsed, index, error);
}

enum ar_status trace_tables_attributes(struct trace_tables *tables,
                                       const struct trace_attributes *attributes, uint32_t *index,
                                       struct ar_error *error)
{
    *index = 0;
    if (!attributes || (!given_of(attributes) && !attributes->rest))
        return AR_OK;
    if (attributes->tag && strchr(attributes->tag, ','))
        return ar_invalid(error, "the tag \"%.60s\" contains a comma", attributes->tag);
    size_t length = print_keys(attributes, NULL, 0);
    AR_FREED char *text = malloc(length + 1);
    AR_TRY_MEMORY(text, error, "the keys of a trace");
    (void)print_keys(attributes, text, length + 1);
    return trace_tables_keys(tables, text, length, index, error);
}

const struct trace_attributes *trace_tables_at(const struct trace_tables *tables, uint32_t index)
{
    static const struct trace_attributes none;
    if (!index || index > tables->keys.count)
        return &none;
    return &tables->blocks[(index - 1) / BLOCK][(index - 1) % BLOCK];
}

const char *trace_tables_keys_text(const struct trace_tables *tables, uint32_t index)
{
    return index && index <= tables->keys.count ? tables->keys.items[index - 1] : "";
}

const char *trace_tables_text(const struct trace_tables *tables, uint64_t index)
{
    return index < tables->texts.count ? tables->texts.items[index] : "";
}

enum ar_status trace_tables_add_text(struct trace_tables *tables, const char *text, size_t length,
                                     uint64_t *index, struct ar_error *error)
{
    uint32_t at;
    if (!texts_find(&tables->texts, text, length, &at)) {
        AR_TRY(check_text(text, length, "a label or note", error));
        AR_TRY(texts_intern(&tables->texts, text, length, &at, error));
    }
    *index = at;
    return AR_OK;
}

enum ar_status trace_tables_take(struct trace_tables *tables, struct trace_source *source,
                                 struct trace_event *event,
                                 const struct trace_attributes *attributes, struct ar_error *error)
{
    if (!attributes && event->attributes)
        attributes = trace_attributes_of(source, event->attributes);
    AR_TRY(trace_tables_attributes(tables, attributes, &event->attributes, error));
    if (event->kind != TRACE_MARK && event->kind != TRACE_NOTE)
        return AR_OK;
    const char *text = trace_text_of(source, event->value);
    return trace_tables_add_text(tables, text ? text : "", text ? strlen(text) : 0, &event->value,
                                 error);
}

bool trace_cursor_fill(struct trace_cursor *self, enum ar_status *status, struct ar_error *error)
{
    size_t count = 0;
    *status = trace_next(self->source, &self->at, &count, error);
    if (*status || !count)
        self->at = NULL;
    self->end = *status || !count ? NULL : self->at + count;
    return self->at != NULL;
}

const struct trace_attributes *trace_attributes_of(struct trace_source *self, uint32_t index)
{
    static const struct trace_attributes none;
    if (self->tables)
        return trace_tables_at(self->tables, index);
    if (self->ops->attributes)
        return self->ops->attributes(self, index);
    return self->over ? trace_attributes_of(self->over, index) : &none;
}

const char *trace_text_of(struct trace_source *self, uint64_t index)
{
    if (self->ops->text)
        return self->ops->text(self, index);
    return self->over ? trace_text_of(self->over, index) : trace_tables_text(self->tables, index);
}

uint64_t trace_line_of(struct trace_source *self, uint64_t event)
{
    if (self->ops->line)
        return self->ops->line(self, event);
    return self->over ? trace_line_of(self->over, event) : 0;
}
