/* One test for each recording in a folder, in the order of their names, and the lines of one; or
 * for each section of the texts in a folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <zlib.h>

/* A compressed text. */
struct recorded_lines {
    gzFile file;
    char line[512];  /* without its end */
    uint64_t number; /* of the line, from 1 */
};

/* Opens it and reads the first line; fails the test if there is none. */
void recorded_open(struct recorded_lines *self, const char *folder, const char *name);
/* Reads the next line. False: there is none. */
bool recorded_next(struct recorded_lines *self);

/* Runs `check` once for each file of `folder` whose name has ".gz"; *state is that name, a
 * const char *. Returns the status for main: 0 if there was a file and all passed. */
int folder_tests_run(const char *group, const char *folder, void (*check)(void **state));

/* Runs `check` once for each line "== SECTION" of the wanted files of a folder, whose name ends
 * with "/". Returns the status for main. */
typedef void sections_check(const char *file, const char *section);
int sections_run(const char *group, const char *folder, bool (*wanted)(const char *file),
                 sections_check *check);
