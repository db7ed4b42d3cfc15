/* Steps on the real device, over the stand-in for its driver. */
#include "tests/support/steps_state.h"

#if HAVE_CUDA

#include "tests/support/cuda_stand_in/stand_in.h"

/* driver.FUNCTION: how often it was called; held.THING; used: bytes of the card. */
bool steps_card_count(const struct stand_in *card, const char *name, uint64_t *value)
{
    static const char *const functions[] = {
#define X(field, function, version, kind) "driver." #field,
        CUDA_FUNCTIONS(X)
#undef X
    };
    static const char *const things[] = {
#define X(name) "held." #name,
        STAND_IN_THINGS(X)
#undef X
    };
    for (size_t i = 0; i < COUNT(functions); i++)
        if (strcmp(name, functions[i]) == 0)
            return *value = card->calls[i], true;
    for (size_t i = 0; i < COUNT(things); i++)
        if (strcmp(name, things[i]) == 0)
            return *value = card->held[i], true;
    if (strcmp(name, "card_used") != 0)
        return false;
    *value = card->used_bytes;
    return true;
}

#endif

#if HAVE_CUDA && HAVE_NVCC

#include "tests/support/stand_in_library.h"

struct ar_device *steps_card_open(const char *spec)
{
    struct ar_device *device;
    (void)stand_in_library();
    assert_ok(ar_device_open_text(spec, &device, &test_error));
    return device;
}

void steps_card_close(struct ar_device *device)
{
    stand_in_close(device);
}

bool steps_card_figure(const char *name, uint64_t *value)
{
    return steps_card_count(stand_in_library(), name, value);
}

/* The next call of this function fails with an error other than a lack of memory; `none`: no more
 * does. */
void steps_card_fail(const char *name)
{
    static const char *const functions[] = {
#define X(field, function, version, kind) #function,
        CUDA_FUNCTIONS(X)
#undef X
    };
    unsetenv("STAND_IN_FAIL");
    for (size_t i = 0; i < COUNT(functions); i++) {
        char call[128];
        if (strcmp(name, functions[i]) != 0)
            continue;
        snprintf(call, sizeof call, "%s:%" PRIu64 ":999", name, stand_in_library()->calls[i] + 1);
        setenv("STAND_IN_FAIL", call, 1);
    }
}

#else

struct ar_device *steps_card_open(const char *spec)
{
    skip();
    return NULL;
}

void steps_card_close(struct ar_device *device)
{
}

bool steps_card_figure(const char *name, uint64_t *value)
{
    return false;
}

void steps_card_fail(const char *name)
{
}

#endif
