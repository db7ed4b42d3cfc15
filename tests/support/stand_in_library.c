#include "tests/support/stand_in_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "tests/support/test.h"

struct stand_in *stand_in_library(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    strcat(path, "/../cuda_stand_in/libcuda.so.1");
    setenv("STAND_IN_TIME", "1", 1);
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        fail_msg("%s", dlerror());
    struct stand_in *(*get)(void);
    void *address = dlsym(handle, "stand_in");
    memcpy(&get, &address, sizeof get);
    return get();
}

void stand_in_close(struct ar_device *device)
{
    struct stand_in *card = stand_in_library();
    memset(card->at_release, 0, sizeof card->at_release);
    ar_device_close(device);
    for (int i = 0; i < STAND_IN_THING_COUNT; i++) {
        assert_int_equal(card->held[i], 0);
        assert_int_equal(card->at_release[i], 0);
    }
    assert_int_equal(card->used_bytes, card->others_bytes);
}
