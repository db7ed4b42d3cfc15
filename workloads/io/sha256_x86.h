/* SHA-256 by the SHA instructions of x86 processors: five times as fast where they are there. */
#ifndef WORKLOADS_IO_SHA256_X86_H
#define WORKLOADS_IO_SHA256_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this processor has them; false on other machines. */
bool sha256_x86_usable(void);

/* Takes `count` blocks of 64 bytes. Only where usable. */
void sha256_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count);

#endif
