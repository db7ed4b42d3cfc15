/* SHA-256 (FIPS 180-4), for the hash that names a trace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* added so far */
    uint8_t block[64]; /* the bytes that do not fill a block yet */
    bool fast;         /* use the SHA instructions of the processor */
};

void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t bytes);
void sha256_end(struct sha256 *hash, uint8_t digest[32]);
