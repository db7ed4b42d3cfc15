/* A card made ready for tests of the kernels: context, kernels, two streams, an arena on the card
 * and its mirror on the host. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/api.h"
#include "bench/cuda/kernels.h"
#include "tests/gpu/check.h"

#define ARENA_BYTES ((uint64_t)64 << 20)

struct card {
    struct check check;
    struct cuda_api api;
    CUdevice device;
    CUcontext context;
    struct kernels *kernels;
    CUstream stream, other;
    CUdeviceptr arena; /* ARENA_BYTES */
    uint8_t *host;     /* as many */
};

/* What must succeed for the case to mean anything. */
static inline bool card_did(struct card *card, CUresult result, const char *what)
{
    return check_that(&card->check, result == CUDA_SUCCESS, "%s: %s", what,
                      cuda_result_name(&card->api, result));
}

static inline bool card_done(struct card *card, enum ar_status status, const char *what)
{
    return check_that(&card->check, status == AR_OK, "%s: %s", what,
                      kernels_problem(card->kernels));
}

static inline void card_sync(struct card *card)
{
    card_did(card, card->api.ctx_synchronize(), "cuCtxSynchronize");
}

/* Between host and arena at an offset, done when it returns. */
static inline void card_put(struct card *card, uint64_t offset, const void *from, uint64_t bytes)
{
    card_did(card, card->api.memcpy_htod_async(card->arena + offset, from, bytes, card->stream),
             "cuMemcpyHtoDAsync");
    card_sync(card);
}

static inline void card_get(struct card *card, uint64_t offset, void *to, uint64_t bytes)
{
    card_sync(card);
    card_did(card, card->api.memcpy_dtoh_async(to, card->arena + offset, bytes, card->stream),
             "cuMemcpyDtoHAsync");
    card_sync(card);
}

static inline void card_clear(struct card *card, uint64_t offset, uint8_t value, uint64_t bytes)
{
    card_did(card, card->api.memset_d8_async(card->arena + offset, value, bytes, card->stream),
             "cuMemsetD8Async");
    card_sync(card);
}

/* False, with the reason printed: there is no card; or, counted as failed, it cannot be opened. */
static inline bool card_open(struct card *card)
{
    struct ar_error error = {""};
    memset(card, 0, sizeof *card);
    check_begin(&card->check, "open");
    if (!kernels_built()) {
        check_skip(&card->check, "open", "built without nvcc");
        return false;
    }
    if (cuda_api_open(&card->api, &error) != AR_OK) {
        check_skip(&card->check, "open", error.text);
        return false;
    }
    const struct cuda_api *api = &card->api;
    bool good = card_did(card, api->device_get(&card->device, 0), "cuDeviceGet") &&
                card_did(card, api->device_primary_ctx_retain(&card->context, card->device),
                         "cuDevicePrimaryCtxRetain") &&
                card_did(card, api->ctx_set_current(card->context), "cuCtxSetCurrent");
    good = good && check_that(&card->check,
                              kernels_open(api, card->device, &card->kernels, &error) == AR_OK,
                              "kernels_open: %s", error.text);
    good = good && card_did(card, api->stream_create(&card->stream, CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate");
    good = good && card_did(card, api->stream_create(&card->other, CU_STREAM_NON_BLOCKING),
                            "cuStreamCreate");
    good = good && card_did(card, api->mem_alloc(&card->arena, ARENA_BYTES), "cuMemAlloc");
    card->host = malloc(ARENA_BYTES);
    good = good && check_that(&card->check, card->host != NULL, "no memory on the host");
    check_end(&card->check);
    return good;
}

static inline void card_close(struct card *card)
{
    const struct cuda_api *api = &card->api;
    if (card->context)
        api->ctx_synchronize();
    if (card->arena)
        api->mem_free(card->arena);
    if (card->stream)
        api->stream_destroy(card->stream);
    if (card->other)
        api->stream_destroy(card->other);
    kernels_close(card->kernels);
    if (card->context)
        api->device_primary_ctx_release(card->device);
    free(card->host);
}

struct card_case {
    const char *name;
    void (*run)(struct card *card);
    bool needs_card; /* time, streams side by side, cuBLAS: not the kernels on a host */
    bool times;      /* compares times, which mean nothing if a memory checker rewrites kernels */
};

/* Whether compute-sanitizer has loaded its library into this process. */
static inline bool card_is_checked(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "libsanitizer-collection") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static inline bool card_is_host(const struct card *card)
{
    char name[64] = "";
    card->api.device_get_name(name, sizeof name, card->device);
    return strcmp(name, "kernels on the host") == 0;
}

/* The whole of a test program: opens the card, runs the cases, closes, reports. */
static inline int card_main(const struct card_case *cases, size_t count)
{
    struct card card;
    if (card_open(&card)) {
        for (size_t i = 0; i < count; i++) {
            if (cases[i].needs_card && card_is_host(&card)) {
                check_skip(&card.check, cases[i].name, "needs a card");
                continue;
            }
            if (cases[i].times && card_is_checked()) {
                check_skip(&card.check, cases[i].name,
                           "compares times, and under compute-sanitizer each kernel takes longer");
                continue;
            }
            check_begin(&card.check, cases[i].name);
            cases[i].run(&card);
            check_end(&card.check);
        }
    }
    card_close(&card);
    return check_report(&card.check);
}
