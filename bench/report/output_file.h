/* A file that appears under its name when it is complete, or not at all. It is written in the same
 * folder under another name, which is removed after a failure. */
#pragma once

#include "allocators/base/status.h"

struct output_file {
    FILE *stream;    /* write here; NULL: closed */
    char *path;      /* NULL: not in use */
    char *place;     /* the same behind symbolic links, which stay */
    char *part_path; /* NULL: written in place, because it is no regular file */
    bool nameless;   /* part_path does not exist yet */
};

/* Opens the file, so that a file that cannot be written is reported early. "-" is standard output.
 * IO. */
enum ar_status output_open(struct output_file *self, const char *path, struct ar_error *error);

/* Finishes it if necessary, and puts it in its place. After a failure nothing is left. In both
 * cases `self` is no longer in use. */
enum ar_status output_commit(struct output_file *self, struct ar_error *error);

/* Discards what was written. Does nothing to a file that is not in use. */
void output_abandon(struct output_file *self);

/* Several files that appear together: none is put in its place before all are complete. */
struct output_set {
    struct output_file *files;
    size_t count, room;
    bool standard; /* one is standard output, which has nothing else then */
};

/* Opens a file of the set. Without a path `*stream` is NULL. */
enum ar_status output_set_add(struct output_set *self, const char *path, FILE **stream,
                              struct ar_error *error);
enum ar_status output_set_commit(struct output_set *self, struct ar_error *error);
void output_set_abandon(struct output_set *self);

/* Checks that the folder exists and can be written to, or can be created. Creates nothing. IO. */
enum ar_status output_folder_check(const char *path, struct ar_error *error);

/* Creates a folder and its parents if they do not exist. IO. */
enum ar_status output_folder(const char *path, struct ar_error *error);

/* Writes all bytes. False: errno says why. */
bool file_write_all(int file, const void *bytes, size_t count);
