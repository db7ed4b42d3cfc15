/* Runs a test program's cases, or a part of them. With TEST_PART=K/N in the environment the group
 * keeps each N-th case, from the K-th on, so that the runner can run a long program as N tests side
 * by side. The linker puts this function in place of cmocka's (-Wl,--wrap). */
#include "tests/support/test.h"

struct ar_error test_error;

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

/* The linker defines these: the pointers of all files' cases. */
extern const struct test_case *const __start_test_cases[], *const __stop_test_cases[];

static int by_line(const void *a, const void *b)
{
    const struct test_case *const *left = a, *const *right = b;
    return (*left)->line - (*right)->line;
}

int test_run(const char *file)
{
    size_t all = (size_t)(__stop_test_cases - __start_test_cases), count = 0;
    const struct test_case **cases = malloc(all * sizeof *cases);
    struct CMUnitTest *tests = malloc(all * sizeof *tests);
    if (!cases || !tests)
        return 1;
    for (size_t i = 0; i < all; i++)
        if (strcmp(__start_test_cases[i]->file, file) == 0)
            cases[count++] = __start_test_cases[i];
    qsort(cases, count, sizeof *cases, by_line);
    for (size_t i = 0; i < count; i++)
        tests[i] = cases[i]->test;
    int failed = _cmocka_run_group_tests(file, tests, count, NULL, NULL);
    free(tests);
    free(cases);
    return failed;
}
