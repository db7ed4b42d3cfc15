/* SHA-256 (FIPS 180-4), for the hash that names a trace. */
#ifndef WORKLOADS_IO_SHA256_H
#define WORKLOADS_IO_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* taken so far */
    uint8_t block[64]; /* what does not fill a block yet */
    bool fast;         /* by the processor's own instructions */
};

void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
void sha256_end(struct sha256 *hash, uint8_t digest[32]);

#endif
