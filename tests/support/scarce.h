/* Makes one allocation of host memory of the test's thread fail. The Makefile wraps malloc and its
 * kin, so this reaches all of the product and the libraries that are linked as archives. */
#ifndef TESTS_SUPPORT_SCARCE_H
#define TESTS_SUPPORT_SCARCE_H

#include <stdbool.h>

/* The allocation that fails, counted from 1. */
void scarce_begin(unsigned long number);
/* All succeed again. Returns whether it was reached. */
bool scarce_end(void);

#endif
