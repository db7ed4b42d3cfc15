/* How: containers are objects of a class and an index.
 *
 * 1. A dictionary with the key `action` is an entry of the history and becomes a record.
 * 2. A list whose first item is a stack frame becomes the name of its innermost frame of the user's
 *    own code; a frame is reduced to its name when it is first seen in a list.
 * 3. All others keep their keys and values, or items, as they come.
 * 4. A snapshot may be JSON, json.dump(torch.cuda.memory._snapshot(), file): then values wait on a
 *    stack until their array or object is closed, or until there are many, and go to the same sink.
 *
 * A snapshot takes 56 bytes an entry while it is read, and 72 with stacks. */
#include "workloads/formats/torch/snapshot_tree.h"

#include "allocators/base/array.h"
#include "workloads/io/fields.h"
#include "workloads/io/json_pull.h"

/* Whether a source file is the user's own code, by the folders of libraries and the endings of
 * files that are no Python. */
static bool is_users_code(const char *file)
{
    static const char *const folders[] = {
        "site-packages/", "dist-packages/", "/torch/", "<frozen", "??", "/lib/python"};
    static const char *const native[] = {".cpp", ".cc", ".c", ".h", ".so", ".S", ".cu"};
    for (size_t i = 0; i < AR_COUNT(native); i++)
        if (field_ends_with(file, native[i]))
            return false;
    for (size_t i = 0; i < AR_COUNT(folders); i++)
        if (strstr(file, folders[i]))
            return false;
    return *file;
}

/* ---- JSON ------------------------------------------------------------------------------ */

#define BATCH 1024u /* values */

struct open {
    size_t first; /* of its values on the stack */
    uint64_t index;
    bool made; /* the sink has it */
    bool is_object;
};

struct reading {
    struct json_pull *pull;
    const struct pickle_sink *sink;
    struct open open[JSON_DEPTH_LIMIT];
    size_t depth;
    uint64_t *stack;
    size_t count, room;
};

static enum ar_status push(struct reading *self, uint64_t value, struct ar_error *error)
{
    return AR_APPEND(self->stack, self->count, self->room, value, error, "a snapshot");
}

/* The waiting values of an array or object; without any the stack may not be there. */
static uint64_t *values_of(const struct reading *self, const struct open *open)
{
    return self->count > open->first ? self->stack + open->first : self->stack;
}

/* Gives the waiting values of the innermost array or object to the sink. */
static enum ar_status flush(struct reading *self, struct ar_error *error)
{
    const struct pickle_sink *sink = self->sink;
    struct open *open = &self->open[self->depth - 1];
    size_t count = self->count - open->first;
    uint64_t *values = values_of(self, open);
    enum ar_status status = AR_OK;
    if (!open->made)
        status = open->is_object ? sink->make_dict(sink->argument, &open->index, error)
                                 : sink->make_list(sink->argument, &open->index, error);
    open->made = true;
    self->count = open->first;
    return status ? status
                  : pickle_fill(sink, open->is_object ? PICKLE_DICT : PICKLE_LIST, open->index,
                                values, count, error);
}

/* JSON has no tuples: an array of two integers is a pair, as the names of pools are. */
static enum ar_status close_one(struct reading *self, struct ar_error *error)
{
    const struct open *open = &self->open[self->depth - 1];
    uint64_t value;
    if (!open->is_object && !open->made &&
        pickle_pair_of(values_of(self, open), self->count - open->first, &value)) {
        self->count = open->first;
    } else {
        AR_TRY(flush(self, error));
        value = pickle_make(open->is_object ? PICKLE_DICT : PICKLE_LIST, open->index);
    }
    self->depth--;
    return push(self, value, error);
}

static enum ar_status push_number(struct reading *self, const struct json_token *token,
                                  struct ar_error *error)
{
    struct json_number number;
    uint64_t value;
    if (strpbrk(token->text, ".eE"))
        return push(self, pickle_make_float(strtod(token->text, NULL)), error);
    if (!json_number_of(token, 0, &number))
        return push(self, pickle_make(PICKLE_OTHER, 0), error);
    AR_TRY(pickle_number(self->sink, number.negative ? -number.magnitude : number.magnitude,
                         number.negative && number.magnitude, &value, error));
    return push(self, value, error);
}

static enum ar_status push_text(struct reading *self, const struct json_token *token,
                                struct ar_error *error)
{
    uint64_t index;
    AR_TRY(self->sink->text(self->sink->argument, token->text, token->length, &index, error));
    return push(self, pickle_make(PICKLE_TEXT, index), error);
}

static enum ar_status take(struct reading *self, const struct json_token *token,
                           struct ar_error *error)
{
    switch (token->kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        self->open[self->depth++] =
            (struct open){.first = self->count, .is_object = token->kind == JSON_OBJECT};
        return AR_OK;
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
        return close_one(self, error);
    case JSON_KEY:
    case JSON_STRING:
        return push_text(self, token, error);
    case JSON_NUMBER:
        return push_number(self, token, error);
    case JSON_TRUE:
    case JSON_FALSE:
        return push(self, pickle_make(PICKLE_BOOL, token->kind == JSON_TRUE), error);
    default:
        return push(self, pickle_make(PICKLE_NONE, 0), error);
    }
}

/* Reads the one value that the file holds. FORMAT with file and line; errors of the sink. */
static enum ar_status read_json(struct trace_input *input, const struct pickle_sink *sink,
                                uint64_t *value, struct ar_error *error)
{
    struct reading *self = calloc(1, sizeof *self);
    struct json_token token = {.kind = JSON_NULL};
    AR_TRY_MEMORY(self, error, "a snapshot");
    self->sink = sink;
    enum ar_status status = json_pull_open(input, &self->pull, error);
    while (!status && token.kind != JSON_END) {
        status = json_pull_next(self->pull, &token, error);
        if (status || token.kind == JSON_END)
            break;
        status = take(self, &token, error);
        if (!status && token.kind != JSON_KEY && self->depth &&
            self->count - self->open[self->depth - 1].first >= BATCH)
            status = flush(self, error);
    }
    if (!status)
        *value = self->stack[0];
    json_pull_close(self->pull);
    free(self->stack);
    free(self);
    return status;
}

bool snapshot_json_matches(const char *head, size_t count)
{
    size_t at = head_blanks(head, count, 0);
    if (at == count || (head[at] != '{' && head[at] != '['))
        return false;
    return head_holds(head, count, "\"device_traces\"") ||
           (head_holds(head, count, "\"total_size\"") && head_holds(head, count, "\"blocks\""));
}

#define BYTES_MOST   (UINT64_C(1) << 30) /* of the tree */
#define BYTES_LEAST  (UINT64_C(1) << 28) /* allowed for the smallest file */
#define BYTES_EACH   16                  /* allowed in addition for each byte of the file */
#define RECORDS_MOST (UINT64_C(1) << 26)
#define CHUNK        4096u /* records */

enum object_class { NEW_LIST, LIST, FRAMES, NEW_DICT, DICT, RECORD, FRAME };

struct snapshot_vector {
    uint64_t *items;
    uint32_t count, room;
};

struct snapshot_wide {
    uint64_t bits;
    bool negative;
};

static const char *const key_names[] = {
#define X(name) #name,
    SNAPSHOT_KEYS(X)
#undef X
};

static const char *const action_names[] = {
#define X(name, text) text,
    SNAPSHOT_ACTIONS(X)
#undef X
};

static enum object_class class_of(const struct snapshot_tree *tree, uint64_t object)
{
    return (enum object_class)(tree->objects[object] & 7);
}

static uint64_t index_of(const struct snapshot_tree *tree, uint64_t object)
{
    return tree->objects[object] >> 3;
}

static void become(struct snapshot_tree *tree, uint64_t object, enum object_class class,
                   uint64_t index)
{
    tree->objects[object] = index << 3 | (uint64_t) class;
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Whether the tree takes more memory than a snapshot of the size of this file can. */
static bool is_too_large(const struct snapshot_tree *tree, uint64_t bytes)
{
    return bytes > BYTES_MOST || bytes > BYTES_LEAST + BYTES_EACH * trace_input_bytes(tree->input);
}

static enum ar_status failed(const struct snapshot_tree *tree, struct ar_error *error)
{
    if (is_too_large(tree, tree->bytes))
        return ar_error_set(error, AR_FORMAT,
                            "it holds more data than a snapshot of that size can");
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a snapshot");
}

/* Makes room for one more item in the array that the pointer at `array` points to. */
static enum ar_status make_room(struct snapshot_tree *tree, void *array, size_t *room, size_t count,
                                size_t bytes, struct ar_error *error)
{
    void *items;
    if (count < *room)
        return AR_OK;
    size_t more = *room ? *room + *room / 2 : 256;
    tree->bytes += (more - *room) * bytes;
    memcpy(&items, array, sizeof items);
    items = is_too_large(tree, tree->bytes) ? NULL : realloc(items, more * bytes);
    if (!items)
        return failed(tree, error);
    memcpy(array, &items, sizeof items);
    *room = more;
    return AR_OK;
}

static enum ar_status make_object(struct snapshot_tree *tree, enum object_class class,
                                  uint64_t *index, struct ar_error *error)
{
    AR_TRY(make_room(tree, &tree->objects, &tree->object_room, tree->object_count,
                     sizeof *tree->objects, error));
    *index = tree->object_count++;
    become(tree, *index, class, 0);
    return AR_OK;
}

static enum ar_status make_vector(struct snapshot_tree *tree, uint64_t object,
                                  enum object_class class, struct ar_error *error)
{
    AR_TRY(make_room(tree, &tree->vectors, &tree->vector_room, tree->vector_count,
                     sizeof *tree->vectors, error));
    tree->vectors[tree->vector_count] = (struct snapshot_vector){0};
    become(tree, object, class, tree->vector_count++);
    return AR_OK;
}

static enum ar_status extend(struct snapshot_tree *tree, uint64_t object, const uint64_t *items,
                             size_t count, struct ar_error *error)
{
    struct snapshot_vector *vector = &tree->vectors[index_of(tree, object)];
    size_t wanted = vector->count + count;
    if (wanted > vector->room) {
        size_t room = vector->room ? wanted + wanted / 2 : wanted;
        tree->bytes += (room - vector->room) * sizeof *items + (vector->room ? 0 : 16);
        uint64_t *grown = room < UINT32_MAX && !is_too_large(tree, tree->bytes)
                              ? realloc(vector->items, room * sizeof *items)
                              : NULL;
        if (!grown)
            return failed(tree, error);
        vector->items = grown;
        vector->room = (uint32_t)room;
    }
    memcpy(vector->items + vector->count, items, count * sizeof *items);
    vector->count = (uint32_t)wanted;
    return AR_OK;
}

static void drop_vector(struct snapshot_tree *tree, uint64_t object)
{
    struct snapshot_vector *vector = &tree->vectors[index_of(tree, object)];
    free(vector->items);
    tree->bytes -= vector->room * sizeof *vector->items;
    *vector = (struct snapshot_vector){0};
}

/* ---- access ---------------------------------------------------------------------------- */

const uint64_t *snapshot_items(const struct snapshot_tree *tree, uint64_t list, size_t *count)
{
    *count = 0;
    if (list == SNAPSHOT_ABSENT || pickle_kind_of(list) != PICKLE_LIST ||
        class_of(tree, pickle_payload(list)) != LIST)
        return NULL;
    const struct snapshot_vector *vector = &tree->vectors[index_of(tree, pickle_payload(list))];
    *count = vector->count;
    return vector->items;
}

const uint64_t *snapshot_pairs(const struct snapshot_tree *tree, uint64_t dict, size_t *count)
{
    *count = 0;
    if (dict == SNAPSHOT_ABSENT || pickle_kind_of(dict) != PICKLE_DICT ||
        class_of(tree, pickle_payload(dict)) != DICT)
        return NULL;
    const struct snapshot_vector *vector = &tree->vectors[index_of(tree, pickle_payload(dict))];
    *count = vector->count / 2;
    return vector->items;
}

uint64_t snapshot_get(const struct snapshot_tree *tree, uint64_t dict, enum snapshot_key key)
{
    size_t count;
    const uint64_t *pairs = snapshot_pairs(tree, dict, &count);
    uint64_t wanted = pickle_make(PICKLE_TEXT, key);
    while (count-- > 0)
        if (pairs[2 * count] == wanted)
            return pairs[2 * count + 1];
    return SNAPSHOT_ABSENT;
}

bool snapshot_number(const struct snapshot_tree *tree, uint64_t value, uint64_t *number)
{
    if (value == SNAPSHOT_ABSENT)
        return false;
    if (pickle_kind_of(value) == PICKLE_INT) {
        *number = (uint64_t)pickle_int_of(value);
        return pickle_int_of(value) >= 0;
    }
    if (pickle_kind_of(value) == PICKLE_WIDE) {
        *number = tree->wides[pickle_payload(value)].bits;
        return !tree->wides[pickle_payload(value)].negative;
    }
    if (pickle_kind_of(value) != PICKLE_FLOAT)
        return false;
    double real = pickle_float_of(value);
    *number = real >= 0 && real < 9e18 ? (uint64_t)real : 0;
    return real >= 0 && real < 9e18;
}

const char *snapshot_text(const struct snapshot_tree *tree, uint64_t value)
{
    return value != SNAPSHOT_ABSENT && pickle_kind_of(value) == PICKLE_TEXT
               ? tree->texts.items[pickle_payload(value)]
               : "";
}

bool snapshot_is(const struct snapshot_tree *tree, uint64_t value, const char *text)
{
    return strcmp(snapshot_text(tree, value), text) == 0;
}

struct snapshot_record *snapshot_record_at(const struct snapshot_tree *tree, uint64_t number)
{
    struct snapshot_record *chunk =
        number < tree->record_count ? tree->chunks[number / CHUNK] : NULL;
    return chunk ? &chunk[number % CHUNK] : NULL;
}

uint32_t snapshot_record_of(const struct snapshot_tree *tree, uint64_t value)
{
    if (pickle_kind_of(value) != PICKLE_DICT || class_of(tree, pickle_payload(value)) != RECORD)
        return SNAPSHOT_NO_RECORD;
    return (uint32_t)index_of(tree, pickle_payload(value));
}

void snapshot_forget_below(struct snapshot_tree *tree, uint64_t number)
{
    for (uint64_t chunk = number / CHUNK; chunk-- > 0 && tree->chunks[chunk];) {
        free(tree->chunks[chunk]);
        tree->chunks[chunk] = NULL;
    }
}

void snapshot_forget_values(struct snapshot_tree *tree)
{
    for (size_t i = 0; i < tree->vector_count; i++)
        free(tree->vectors[i].items);
    free(tree->objects);
    free(tree->vectors);
    free(tree->wides);
    tree->objects = NULL;
    tree->vectors = NULL;
    tree->wides = NULL;
    tree->object_count = tree->vector_count = tree->wide_count = 0;
    tree->object_room = tree->vector_room = tree->wide_room = 0;
}

/* ---- streams and pools ----------------------------------------------------------------- */

static enum ar_status number_in(uint64_t *list, size_t *count, size_t most, uint64_t value,
                                unsigned *index, const char *what, struct ar_error *error)
{
    for (size_t i = *count; i-- > 0;)
        if (list[i] == value) {
            *index = (unsigned)i;
            return AR_OK;
        }
    if (*count == most)
        return ar_invalid(error, "it has more than %zu %s", most, what);
    *index = (unsigned)*count;
    list[(*count)++] = value;
    return AR_OK;
}

enum ar_status snapshot_stream(struct snapshot_tree *tree, uint64_t handle, unsigned *index,
                               struct ar_error *error)
{
    return number_in(tree->streams, &tree->stream_count, SNAPSHOT_STREAMS_MOST, handle, index,
                     "streams", error);
}

enum ar_status snapshot_pool(struct snapshot_tree *tree, uint64_t pair, unsigned *index,
                             struct ar_error *error)
{
    return number_in(tree->pools, &tree->pool_count, SNAPSHOT_POOLS_MOST - 1, pair, index, "pools",
                     error);
}

/* ---- stacks ---------------------------------------------------------------------------- */

/* The tag of a text: bytes that a tag cannot hold are replaced. */
static enum ar_status tag_of(struct snapshot_tree *tree, const char *text, uint32_t *tag,
                             struct ar_error *error)
{
    char clean[96];
    uint32_t index;
    *tag = 0;
    field_word(text, strlen(text), ",", clean, sizeof clean);
    size_t length = strlen(clean);
    AR_TRY(length ? texts_intern(&tree->texts, clean, length, &index, error) : AR_OK);
    if (length)
        *tag = index + 1;
    return AR_OK;
}

/* Reduces a dictionary to the name of its frame: FILE:LINE:NAME. Without a line, as this
 * project writes them, the name alone is the tag. */
static enum ar_status reduce_frame(struct snapshot_tree *tree, uint64_t object,
                                   struct ar_error *error)
{
    uint64_t dict = pickle_make(PICKLE_DICT, object), line = 0;
    const char *file = snapshot_text(tree, snapshot_get(tree, dict, SNAPSHOT_KEY_filename));
    const char *name = snapshot_text(tree, snapshot_get(tree, dict, SNAPSHOT_KEY_name));
    char text[96];
    uint32_t tag = 0;
    (void)snapshot_number(tree, snapshot_get(tree, dict, SNAPSHOT_KEY_line), &line);
    if (line)
        snprintf(text, sizeof text, "%.40s:%" PRIu64 ":%.32s", field_file_name(file), line, name);
    else
        snprintf(text, sizeof text, "%.90s", name);
    enum ar_status status = is_users_code(file) ? tag_of(tree, text, &tag, error) : AR_OK;
    drop_vector(tree, object);
    become(tree, object, FRAME, tag);
    return status;
}

static bool is_frame(const struct snapshot_tree *tree, uint64_t value)
{
    if (pickle_kind_of(value) != PICKLE_DICT)
        return false;
    return class_of(tree, pickle_payload(value)) == FRAME ||
           snapshot_get(tree, value, SNAPSHOT_KEY_filename) != SNAPSHOT_ABSENT;
}

/* Looks for the innermost frame of the user's code. */
static enum ar_status take_frames(struct snapshot_tree *tree, uint64_t list, const uint64_t *items,
                                  size_t count, struct ar_error *error)
{
    for (size_t i = 0; i < count && !index_of(tree, list); i++) {
        uint64_t object = pickle_payload(items[i]);
        if (!is_frame(tree, items[i]))
            continue;
        if (class_of(tree, object) != FRAME)
            AR_TRY(reduce_frame(tree, object, error));
        become(tree, list, FRAMES, index_of(tree, object));
    }
    return AR_OK;
}

/* ---- records --------------------------------------------------------------------------- */

static unsigned action_of(struct snapshot_tree *tree, uint64_t value)
{
    const char *text = snapshot_text(tree, value);
    for (unsigned i = 0; i < SNAPSHOT_ACTION_COUNT; i++)
        if (strcmp(text, action_names[i]) == 0)
            return i;
    if (strcmp(text, "free") == 0)
        return SNAPSHOT_FREE_COMPLETED;
    if (!tree->unknown_actions++ && value != SNAPSHOT_ABSENT &&
        pickle_kind_of(value) == PICKLE_TEXT)
        tree->first_unknown = (uint32_t)pickle_payload(value);
    return SNAPSHOT_UNKNOWN;
}

static enum ar_status take_field(struct snapshot_tree *tree, struct snapshot_record *record,
                                 uint64_t key, uint64_t value, struct ar_error *error)
{
    unsigned index = 0;
    uint32_t tag = 0;
    uint64_t number;
    enum ar_status status = AR_OK;
    switch (pickle_kind_of(key) == PICKLE_TEXT ? pickle_payload(key) : SNAPSHOT_KEY_COUNT) {
    case SNAPSHOT_KEY_action:
        record->action = action_of(tree, value) & 15;
        break;
    case SNAPSHOT_KEY_addr:
    case SNAPSHOT_KEY_device_free:
        if (snapshot_number(tree, value, &number))
            record->address = number;
        break;
    case SNAPSHOT_KEY_size:
        if (!snapshot_number(tree, value, &number) || number >= TRACE_BYTES_LIMIT)
            return ar_error_set(
                error, AR_FORMAT,
                "an entry's size is not a number of bytes below 2^60: take the snapshot again");
        record->bytes = number;
        break;
    case SNAPSHOT_KEY_time_us:
        record->has_time = snapshot_number(tree, value, &record->time_us) & 1;
        break;
    case SNAPSHOT_KEY_stream:
        if (snapshot_number(tree, value, &number)) {
            status = snapshot_stream(tree, number, &index, error);
            record->stream = index & (SNAPSHOT_STREAMS_MOST - 1);
        }
        break;
    case SNAPSHOT_KEY_pool_id:
        if (pickle_kind_of(value) == PICKLE_PAIR) {
            status = snapshot_pool(tree, value, &index, error);
            record->pool = (index + 1) & (SNAPSHOT_POOLS_MOST - 1);
        }
        break;
    case SNAPSHOT_KEY_frames:
        if (!record->tag && pickle_kind_of(value) == PICKLE_LIST &&
            class_of(tree, pickle_payload(value)) == FRAMES)
            record->tag = (uint32_t)index_of(tree, pickle_payload(value));
        break;
    case SNAPSHOT_KEY_user_metadata:
        status = *snapshot_text(tree, value) ? tag_of(tree, snapshot_text(tree, value), &tag, error)
                                             : AR_OK;
        record->tag = tag ? tag : record->tag;
        break;
    default:
        break;
    }
    return status;
}

enum ar_status snapshot_add_record(struct snapshot_tree *tree, const struct snapshot_record *record,
                                   struct ar_error *error)
{
    size_t chunk = tree->record_count / CHUNK;
    if (tree->record_count == RECORDS_MOST)
        return ar_error_set(error, AR_FORMAT, "its history has more than %" PRIu64 " entries",
                            RECORDS_MOST);
    if (tree->record_count % CHUNK == 0) {
        AR_TRY(
            make_room(tree, &tree->chunks, &tree->chunk_room, chunk, sizeof *tree->chunks, error));
        tree->chunks[chunk] = calloc(CHUNK, sizeof **tree->chunks);
        AR_TRY_MEMORY(tree->chunks[chunk], error, "a snapshot");
    }
    tree->chunks[chunk][tree->record_count++ % CHUNK] = *record;
    return AR_OK;
}

static enum ar_status fill_record(struct snapshot_tree *tree, uint64_t object,
                                  const uint64_t *pairs, size_t count, struct ar_error *error)
{
    struct snapshot_record *record = snapshot_record_at(tree, index_of(tree, object));
    for (size_t i = 0; i < count; i++)
        AR_TRY(take_field(tree, record, pairs[2 * i], pairs[2 * i + 1], error));
    return AR_OK;
}

/* A dictionary is found to be an entry of the history. */
static enum ar_status turn_into_record(struct snapshot_tree *tree, uint64_t object,
                                       struct ar_error *error)
{
    struct snapshot_vector before = {0};
    if (class_of(tree, object) == DICT) {
        before = tree->vectors[index_of(tree, object)];
        tree->vectors[index_of(tree, object)] = (struct snapshot_vector){0};
        tree->bytes -= before.room * sizeof *before.items;
    }
    const struct snapshot_record empty = {0};
    enum ar_status status = snapshot_add_record(tree, &empty, error);
    if (!status) {
        become(tree, object, RECORD, tree->record_count - 1);
        status = fill_record(tree, object, before.items, before.count / 2, error);
    }
    free(before.items);
    return status;
}

/* ---- the sink -------------------------------------------------------------------------- */

static enum ar_status on_list(void *argument, uint64_t *index, struct ar_error *error)
{
    return make_object(argument, NEW_LIST, index, error);
}

static enum ar_status on_dict(void *argument, uint64_t *index, struct ar_error *error)
{
    return make_object(argument, NEW_DICT, index, error);
}

static enum ar_status on_append(void *argument, uint64_t list, const uint64_t *items, size_t count,
                                struct ar_error *error)
{
    struct snapshot_tree *tree = argument;
    if (class_of(tree, list) == NEW_LIST && is_frame(tree, items[0]))
        become(tree, list, FRAMES, 0);
    else if (class_of(tree, list) == NEW_LIST)
        AR_TRY(make_vector(tree, list, LIST, error));
    return class_of(tree, list) == FRAMES ? take_frames(tree, list, items, count, error)
                                          : extend(tree, list, items, count, error);
}

static bool has_action(const uint64_t *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pairs[2 * i] == pickle_make(PICKLE_TEXT, SNAPSHOT_KEY_action))
            return true;
    return false;
}

static enum ar_status on_put(void *argument, uint64_t dict, const uint64_t *pairs, size_t count,
                             struct ar_error *error)
{
    struct snapshot_tree *tree = argument;
    enum object_class class = class_of(tree, dict);
    if (class == FRAME)
        return AR_OK;
    if (class != RECORD && has_action(pairs, count)) {
        AR_TRY(turn_into_record(tree, dict, error));
        class = RECORD;
    } else if (class == NEW_DICT) {
        AR_TRY(make_vector(tree, dict, DICT, error));
    }
    return class == RECORD ? fill_record(tree, dict, pairs, count, error)
                           : extend(tree, dict, pairs, 2 * count, error);
}

static enum ar_status on_text(void *argument, const char *bytes, size_t length, uint64_t *index,
                              struct ar_error *error)
{
    struct snapshot_tree *tree = argument;
    uint32_t at;
    if (is_too_large(tree, tree->bytes + tree->texts.total_bytes))
        return ar_error_set(error, AR_FORMAT,
                            "it holds more data than a snapshot of that size can");
    AR_FREED char *copy = NULL;
    if (memchr(bytes, 0, length)) { /* its front is not the text */
        copy = malloc(length);
        AR_TRY_MEMORY(copy, error, "the texts of a snapshot");
        for (size_t i = 0; i < length; i++)
            copy[i] = bytes[i] ? bytes[i] : 1;
    }
    AR_TRY(texts_intern(&tree->texts, copy ? copy : bytes, length, &at, error));
    *index = at;
    return AR_OK;
}

static enum ar_status on_wide(void *argument, uint64_t bits, bool negative, uint64_t *index,
                              struct ar_error *error)
{
    struct snapshot_tree *tree = argument;
    AR_TRY(make_room(tree, &tree->wides, &tree->wide_room, tree->wide_count, sizeof *tree->wides,
                     error));
    tree->wides[tree->wide_count] = (struct snapshot_wide){bits, negative};
    *index = tree->wide_count++;
    return AR_OK;
}

enum ar_status snapshot_tree_start(struct snapshot_tree *out, struct ar_error *error)
{
    unsigned stream, pool;
    AR_TRY(snapshot_stream(out, 0, &stream, error));
    return snapshot_pool(out, pickle_make(PICKLE_PAIR, 0), &pool, error);
}

enum ar_status snapshot_tree_read(struct trace_input *input, bool is_json,
                                  struct snapshot_tree *out, struct ar_error *error)
{
    const struct pickle_sink sink = {.make_list = on_list,
                                     .make_dict = on_dict,
                                     .append = on_append,
                                     .put = on_put,
                                     .text = on_text,
                                     .wide = on_wide,
                                     .argument = out};
    uint32_t index;
    out->input = input;
    for (unsigned i = 0; i < SNAPSHOT_KEY_COUNT; i++)
        AR_TRY(texts_intern(&out->texts, key_names[i], strlen(key_names[i]), &index, error));
    AR_TRY(snapshot_tree_start(out, error));
    return is_json ? read_json(input, &sink, &out->root, error)
                   : pickle_read(input, &sink, &out->root, error);
}

void snapshot_tree_close(struct snapshot_tree *tree)
{
    snapshot_forget_values(tree);
    for (size_t i = 0; i * CHUNK < tree->record_count; i++)
        free(tree->chunks[i]);
    free(tree->chunks);
    texts_close(&tree->texts);
    *tree = (struct snapshot_tree){0};
}
