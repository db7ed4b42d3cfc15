/* A file that appears under its name when it is whole, or not at all. It is written beside its
 * place under another name, which is taken away again where something goes wrong. */
#ifndef BENCH_REPORT_OUTPUT_FILE_H
#define BENCH_REPORT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "allocators/base/status.h"

struct output_file {
    FILE *stream;    /* write here; NULL: closed */
    char *path;      /* NULL: not in use */
    char *part_path; /* NULL: written in place, for what is no regular file */
    bool nameless;   /* it does not have that name yet */
};

/* Opens the file, and so finds out early whether it can be written. "-" is standard output.
 * IO otherwise. */
enum ar_status output_open(struct output_file *self, const char *path,
                           struct ar_error *error) AR_STATUS_CHECKED;

/* Checks that every byte was taken and closes the stream; the file is not in its place yet. */
enum ar_status output_finish(struct output_file *self, struct ar_error *error) AR_STATUS_CHECKED;

/* Finishes it if that was not done, and puts it in its place. On failure nothing is left.
 * In both cases `self` is no longer in use. */
enum ar_status output_commit(struct output_file *self, struct ar_error *error) AR_STATUS_CHECKED;

/* Throws away what was written. Does nothing to a file that is not in use. */
void output_abandon(struct output_file *self);

/* Several files that appear together: none is put in its place before all are whole. */
struct output_set {
    struct output_file *files;
    size_t count, room;
};

/* The stream of a new file of the set, or NULL with a sentence. */
FILE *output_set_open(struct output_set *self, const char *path, struct ar_error *error);
enum ar_status output_set_commit(struct output_set *self, struct ar_error *error) AR_STATUS_CHECKED;
void output_set_abandon(struct output_set *self);

/* Can the folder be made, or written to where it is there? Makes nothing. IO. */
enum ar_status output_folder_check(const char *path, struct ar_error *error) AR_STATUS_CHECKED;

/* Makes a folder and those above it where they are not there. IO. */
enum ar_status output_folder(const char *path, struct ar_error *error) AR_STATUS_CHECKED;

#endif
