/* The main of a test program that needs cuda.h, in a build that has none: one case, skipped. */
#ifndef TESTS_SUPPORT_WITHOUT_CUDA_H
#define TESTS_SUPPORT_WITHOUT_CUDA_H

/* Returns the program's exit status. */
int without_cuda(void);

#endif
