/* Runs a part of a test program's cases. With TEST_PART=K/N in the environment the group keeps each
 * N-th case, from the K-th on, so that the runner can run a long program as N tests side by side.
 * The linker puts this function in place of cmocka's (-Wl,--wrap). */
#include "tests/support/test.h"

#define CMOCKA_GROUP                                                                               \
    (const char *name, const struct CMUnitTest *const tests, const size_t count,                   \
     CMFixtureFunction setup, CMFixtureFunction teardown)

int __real__cmocka_run_group_tests CMOCKA_GROUP;
int __wrap__cmocka_run_group_tests CMOCKA_GROUP;

int __wrap__cmocka_run_group_tests CMOCKA_GROUP
{
    const char *text = getenv("TEST_PART");
    size_t part, parts, kept = 0;
    if (!text)
        return __real__cmocka_run_group_tests(name, tests, count, setup, teardown);
    if (sscanf(text, "%zu/%zu", &part, &parts) != 2 || part < 1 || part > parts) {
        fprintf(stderr, "TEST_PART=%s is not K/N with K from 1 to N\n", text);
        return 1;
    }
    struct CMUnitTest *some = calloc(count ? count : 1, sizeof *some);
    if (!some)
        return 1;
    for (size_t i = part - 1; i < count; i += parts)
        some[kept++] = tests[i];
    printf("[  PART    ] %zu/%zu: %zu cases\n", part, parts, kept);
    fflush(stdout);
    int failed = kept ? __real__cmocka_run_group_tests(name, some, kept, setup, teardown) : 0;
    free(some);
    return failed;
}
