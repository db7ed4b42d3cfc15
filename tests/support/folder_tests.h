/* One test for each recording in a folder, in the order of their names. */
#ifndef TESTS_SUPPORT_FOLDER_TESTS_H
#define TESTS_SUPPORT_FOLDER_TESTS_H

/* Runs `check` once for each file of `folder` whose name has ".gz"; *state is that name, a
 * const char *. Returns the status for main: 0 if there was a file and all passed. */
int folder_tests_run(const char *group, const char *folder, void (*check)(void **state));

#endif
