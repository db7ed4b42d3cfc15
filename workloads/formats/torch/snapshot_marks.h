/* A snapshot's `external_annotations` and the marks of a trace that stand for them. */
#ifndef WORKLOADS_FORMATS_TORCH_SNAPSHOT_MARKS_H
#define WORKLOADS_FORMATS_TORCH_SNAPSHOT_MARKS_H

#include "workloads/formats/torch/snapshot_tree.h"

#define SNAPSHOT_MARK_BYTES 96 /* of a label, and of each value of its keys */

struct snapshot_mark {
    uint64_t time_us;
    uint64_t entry; /* the number of entries of its device before it; UINT64_MAX: unknown */
    uint64_t device;
    uint32_t label;       /* index of its text in the tree */
    uint32_t name, stage; /* the same + 1; 0: the key is not written */
    uint32_t order;       /* in the file */
    bool has_time;
};

/* By time; those of one time in the order of the file. A zeroed struct is empty. */
struct snapshot_marks {
    struct snapshot_mark *items;
    size_t count;
};

/* Reads the list; items that are no dictionaries are counted in `*left_out`. The words are among
 * the tree's texts, which remain when its values are forgotten. HOST_MEMORY. */
enum ar_status snapshot_marks_read(struct snapshot_marks *marks, struct snapshot_tree *tree,
                                   uint64_t list, uint64_t *left_out,
                                   struct ar_error *error) AR_STATUS_CHECKED;
void snapshot_marks_close(struct snapshot_marks *marks);

/* The fields of an annotation. */
struct snapshot_words {
    char name[SNAPSHOT_MARK_BYTES], stage[SNAPSHOT_MARK_BYTES];
};

/* The annotation for a mark with this label and these unknown keys ("x=1,y=2", or NULL). */
void snapshot_words_of(const char *label, const char *keys, struct snapshot_words *out);

#endif
