/* Makes allocations of host memory of the test's thread fail. The Makefile wraps malloc and its
 * kin, so this reaches all of the product and the libraries that are linked as archives. */
#pragma once

#include <stdbool.h>

/* `count` allocations fail from the one with this number on, counted from 1. */
void scarce_begin(unsigned long number, unsigned long count);
/* All succeed again. Returns whether the first of them was reached. */
bool scarce_end(void);
