/* A file for a test that something reads by its path. */
#ifndef TESTS_SUPPORT_TEMPORARY_FILE_H
#define TESTS_SUPPORT_TEMPORARY_FILE_H

struct temporary_file {
    char path[40];
};

/* One in /tmp that holds the text; fails the test where it cannot be made. The caller removes
 * it. */
struct temporary_file temporary_file(const char *text);

#endif
