/* The number of operations of a test with random operations. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

/* `usual`; a third of it under a sanitizer, where each operation takes several times as long; a
 * quarter with TEST_QUICK=1, which `make check` sets; `soak` with TEST_SOAK=1, which `make soak`
 * sets. */
static inline uint64_t test_amount(uint64_t soak, uint64_t usual)
{
    const char *asked = getenv("TEST_SOAK");
    if (asked && *asked == '1')
        return soak;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    usual = (usual + 2) / 3;
#endif
    asked = getenv("TEST_QUICK");
    return asked && *asked == '1' ? (usual + 3) / 4 : usual;
}
