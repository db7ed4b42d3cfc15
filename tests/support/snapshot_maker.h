/* Makes memory snapshots of any length, as CPython's pickler writes them (protocol 4, every
 * container in the memo): the same bytes for the same seed. */
#ifndef TESTS_SUPPORT_SNAPSHOT_MAKER_H
#define TESTS_SUPPORT_SNAPSHOT_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct snapshot_maker_options {
    uint64_t seed;
    uint64_t events;  /* entries of the history of device 0 */
    unsigned frames;  /* of each entry's stack; 0: entries without */
    uint64_t dropped; /* the number of earlier entries that are missing, as in a ring buffer */
};

/* Fails the test if the file cannot be written. */
void snapshot_maker_write(const char *path, const struct snapshot_maker_options *options);

#endif
