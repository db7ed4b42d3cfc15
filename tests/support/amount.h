/* How much of what takes long a test does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The number of random operations: `usual`; a third of it under a sanitizer, where each operation
 * takes several times as long; a quarter with TEST_QUICK=1, which `make check` sets; `soak` with
 * TEST_SOAK=1, which `make soak` sets. */
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

/* Whether to do what takes long under a sanitizer: in the release build, and with TEST_SOAK=1. */
static inline bool test_long(void)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    const char *asked = getenv("TEST_SOAK");
    return asked && *asked == '1';
#else
    return true;
#endif
}
