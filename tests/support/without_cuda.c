#include "tests/support/without_cuda.h"

#include "tests/support/test.h"

static void there_is_no_cuda_h(void **state)
{
    skip();
}

int without_cuda(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_is_no_cuda_h)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
