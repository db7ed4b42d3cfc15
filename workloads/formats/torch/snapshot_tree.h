/* The values of a snapshot, from its pickle or JSON: entries of the history packed into 32 bytes
 * each, stacks reduced to one name, everything else as a tree; and its settings and annotations. */
#pragma once

#include "allocators/policies/torch/conf_keys.h"
#include "workloads/formats/import_report.h"
#include "workloads/formats/torch/snapshot_image.h"

/* Keys that are used; each is the text of its number. */
#define SNAPSHOT_KEYS(X)                                                                           \
    X(action)                                                                                      \
    X(addr)                                                                                        \
    X(size)                                                                                        \
    X(stream)                                                                                      \
    X(time_us)                                                                                     \
    X(frames)                                                                                      \
    X(pool_id)                                                                                     \
    X(user_metadata)                                                                               \
    X(device_free)                                                                                 \
    X(filename)                                                                                    \
    X(line)                                                                                        \
    X(name)                                                                                        \
    X(segments)                                                                                    \
    X(device_traces)                                                                               \
    X(host_traces)                                                                                 \
    X(allocator_settings)                                                                          \
    X(external_annotations)                                                                        \
    X(device)                                                                                      \
    X(address)                                                                                     \
    X(total_size)                                                                                  \
    X(segment_type)                                                                                \
    X(segment_pool_id)                                                                             \
    X(is_expandable)                                                                               \
    X(blocks)                                                                                      \
    X(requested_size)                                                                              \
    X(state)                                                                                       \
    X(history)                                                                                     \
    X(real_size)                                                                                   \
    X(stage)                                                                                       \
    X(entry)                                                                                       \
    X(max_split_size)                                                                              \
    X(garbage_collection_threshold)                                                                \
    X(expandable_segments)                                                                         \
    X(roundup_power2_divisions)

enum snapshot_key {
#define X(name) SNAPSHOT_KEY_##name,
    SNAPSHOT_KEYS(X)
#undef X
        SNAPSHOT_KEY_COUNT
};

/* An entry whose action is none of enum snapshot_action. */
#define SNAPSHOT_UNKNOWN SNAPSHOT_ACTION_COUNT

#define SNAPSHOT_STREAMS_MOST 4096
#define SNAPSHOT_POOLS_MOST   4096

/* One entry of a device's history. */
struct snapshot_record {
    uint64_t address; /* of an OOM: the free bytes of the device */
    uint64_t bytes;
    uint64_t time_us;
    uint32_t tag; /* 1 + its text; 0: none */
    unsigned action : 4;
    unsigned stream : 12; /* index of its handle */
    unsigned pool : 12;   /* 1 + index of its name; 0: unknown */
    unsigned has_time : 1;
    unsigned taken : 1; /* it is in a list already */
};

struct snapshot_tree {
    struct texts texts;
    uint64_t *objects; /* containers: class and index */
    size_t object_count, object_room;
    struct snapshot_vector *vectors;
    size_t vector_count, vector_room;
    struct snapshot_record **chunks;
    size_t record_count, chunk_room;
    struct snapshot_wide *wides;
    size_t wide_count, wide_room;
    uint64_t streams[SNAPSHOT_STREAMS_MOST]; /* handles, by index */
    size_t stream_count;
    uint64_t pools[SNAPSHOT_POOLS_MOST]; /* names: PICKLE_PAIRs */
    size_t pool_count;
    bool whole[SNAPSHOT_POOLS_MOST]; /* by pool: it hands out whole blocks (no_split) */
    const struct trace_input *input; /* while it is read */
    uint64_t bytes;                  /* of memory, without the records */
    uint64_t unknown_actions;
    uint32_t first_unknown; /* text of the first of them */
    uint64_t root;
};

#define SNAPSHOT_ABSENT UINT64_MAX /* no value */

/* Reads all of `input`, a pickle or JSON. The caller closes `out`, also after a failure. */
enum ar_status snapshot_tree_read(struct trace_input *input, bool is_json,
                                  struct snapshot_tree *out, struct ar_error *error);
void snapshot_tree_close(struct snapshot_tree *tree);

/* Adds the default stream and the common pool, which have the index 0, to an empty tree. */
enum ar_status snapshot_tree_start(struct snapshot_tree *out, struct ar_error *error);
/* Adds a record that no value of the tree refers to. HOST_MEMORY, or FORMAT: too many. */
enum ar_status snapshot_add_record(struct snapshot_tree *tree, const struct snapshot_record *record,
                                   struct ar_error *error);

/* The value of a key; SNAPSHOT_ABSENT if there is none, or `dict` is no dictionary. */
uint64_t snapshot_get(const struct snapshot_tree *tree, uint64_t dict, enum snapshot_key key);
/* The items of a list; none if it is no list. */
const uint64_t *snapshot_items(const struct snapshot_tree *tree, uint64_t list, size_t *count);
/* The keys and values of a dictionary, in turn. */
const uint64_t *snapshot_pairs(const struct snapshot_tree *tree, uint64_t dict, size_t *count);
/* An integer that is not negative, or a float that can be one. */
bool snapshot_number(const struct snapshot_tree *tree, uint64_t value, uint64_t *number);
/* "" if it is no text. */
const char *snapshot_text(const struct snapshot_tree *tree, uint64_t value);
bool snapshot_is(const struct snapshot_tree *tree, uint64_t value, const char *text);

#define SNAPSHOT_NO_RECORD UINT32_MAX

/* The number of the record that a value is, or SNAPSHOT_NO_RECORD. */
uint32_t snapshot_record_of(const struct snapshot_tree *tree, uint64_t value);
/* NULL after the last one, and if it was forgotten. */
struct snapshot_record *snapshot_record_at(const struct snapshot_tree *tree, uint64_t number);
/* Frees the memory of all records with a lower number. */
void snapshot_forget_below(struct snapshot_tree *tree, uint64_t number);
/* Frees all values; records, texts, streams and pools remain. */
void snapshot_forget_values(struct snapshot_tree *tree);

/* The index of a stream's handle or a pool's name, which is added if it is new. INVALID if there
 * are too many. */
enum ar_status snapshot_stream(struct snapshot_tree *tree, uint64_t handle, unsigned *index,
                               struct ar_error *error);
enum ar_status snapshot_pool(struct snapshot_tree *tree, uint64_t pair, unsigned *index,
                             struct ar_error *error);

/* Whether a file that begins so is JSON with keys that only snapshots have. */
bool snapshot_json_matches(const char *head, size_t count);

/* ---- the settings of the allocator (snapshot_settings.c) ---- */

struct snapshot_settings {
    int64_t max_split_bytes; /* -1: no limit */
    double garbage_collection_threshold;
    bool expandable_segments;
    uint64_t roundup_power2_divisions[TORCH_DIVISION_INTERVALS];
};

/* Reads "max_split_size_mb:64,expandable_segments:True"; unknown settings are ignored, and all from
 * one on that is not key:value. */
void snapshot_settings_read(const char *conf, struct snapshot_settings *out);

/* Writes the settings in `allocator_settings` of a snapshot as the text that a user would have set:
 * that of the environment, and after it what the other fields add to it. "" if there are no
 * settings. What is omitted goes to the report. */
/* The same of a given text. */
void snapshot_conf_text(const char *given, char *text, size_t room, struct import_report *report);
void snapshot_conf(const struct snapshot_tree *tree, uint64_t settings, char *text, size_t room,
                   struct import_report *report);

/* ---- external annotations, and the marks of a trace that stand for them (snapshot_marks.c)
 * ---- */

#define SNAPSHOT_MARK_BYTES 96 /* of a label, and of each value of its keys */

struct snapshot_mark {
    uint64_t time_us;
    uint64_t entry; /* the number of entries of its device before it; UINT64_MAX: unknown */
    uint64_t device;
    uint32_t label;       /* index of its text in the tree */
    uint32_t name, stage; /* the same + 1; 0: the key is not written */
    uint32_t order;       /* in the file */
    bool has_time;
    bool is_change; /* no mark: the label is the text of a note on a change of the allocator */
};

/* By time; those of one time in the order of the file. A zeroed struct is empty. */
struct snapshot_marks {
    struct snapshot_mark *items;
    size_t count, room;
    bool has_conf;  /* the settings of the start are in `conf` */
    char conf[512]; /* as annotated; the snapshot has those of its end */
};

/* Reads the list; items that are no dictionaries are counted in `*left_out`. The words are among
 * the tree's texts, which remain when its values are forgotten. HOST_MEMORY. */
enum ar_status snapshot_marks_read(struct snapshot_marks *marks, struct snapshot_tree *tree,
                                   uint64_t list, uint64_t *left_out, struct ar_error *error);
void snapshot_marks_close(struct snapshot_marks *marks);

/* Steps through the changes of settings among the marks. */
struct snapshot_changes {
    const struct snapshot_marks *marks;
    size_t next;
};

struct torch_settings;

/* Applies those that come before the entry of that number and time; a text that the policy refuses
 * changes nothing. True: there were some. */
bool snapshot_changes_until(struct snapshot_changes *self, const struct snapshot_tree *tree,
                            size_t entry, uint64_t time_us, struct torch_settings *settings);

/* Adds a change before the entry of that number, after all that were added before. */
enum ar_status snapshot_marks_imply(struct snapshot_marks *marks, struct snapshot_tree *tree,
                                    const struct snapshot_mark *at, const char *note,
                                    struct ar_error *error);

/* The fields of an annotation. */
struct snapshot_words {
    char name[SNAPSHOT_MARK_BYTES], stage[SNAPSHOT_MARK_BYTES];
};

/* The annotation for a mark with this label and these unknown keys ("x=1,y=2", or NULL). */
void snapshot_words_of(const char *label, const char *keys, struct snapshot_words *out);

/* The name of the annotations for a note on a change, where `conf` has the settings before. False:
 * a reader would not take the same note from it. */
#define SNAPSHOT_CHANGE_BYTES 1088 /* two settings of at most 511 bytes */
bool snapshot_change_name(const char *note, const char *conf, char out[SNAPSHOT_CHANGE_BYTES]);
