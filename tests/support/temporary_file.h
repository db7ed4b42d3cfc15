/* A file for a test that something reads by its path. */
#pragma once

struct temporary_file {
    char path[40];
};

/* One in /tmp that holds the text; fails the test where it cannot be made. The caller removes
 * it. */
struct temporary_file temporary_file(const char *text);
