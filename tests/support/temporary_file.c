#include "tests/support/temporary_file.h"

#include "tests/support/test.h"

#include <unistd.h>

struct temporary_file temporary_file(const char *text)
{
    struct temporary_file file = {"/tmp/allocrig-test-XXXXXX"};
    int descriptor = mkstemp(file.path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    return file;
}
