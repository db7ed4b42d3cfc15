/* The library itself: versions, cards, contexts, failing on demand, and the report. One user at a
 * time: there is no lock. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cuda_stand_in/stand_in.h"

static struct stand_in the_library;
static bool opened;
static _Thread_local CUcontext current;
static int contexts[STAND_IN_CARDS_MOST]; /* the address of one is a card's primary context */

static uint64_t setting(const char *name, uint64_t without)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : without;
}

static uint64_t *open_shared(void)
{
    const char *path = getenv("STAND_IN_SHARED");
    size_t bytes = STAND_IN_CARDS_MOST * sizeof(uint64_t);
    int file = path && *path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return NULL;
    void *map = ftruncate(file, (off_t)bytes)
                    ? MAP_FAILED
                    : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

int stand_in_card(void)
{
    const int *context = (const int *)(const void *)current;
    return context ? (int)(context - contexts) : 0;
}

struct stand_in *stand_in(void)
{
    if (!opened) {
        opened = true;
        the_library.card_bytes = setting("STAND_IN_BYTES", UINT64_C(85017493504));
        the_library.others_bytes = setting("STAND_IN_OTHERS", 0);
        the_library.used_bytes = the_library.others_bytes;
        the_library.leaks = setting("STAND_IN_LEAKS", 0) != 0;
        the_library.shared = open_shared();
        the_library.real_time = setting("STAND_IN_TIME", 0) != 0;
    }
    return &the_library;
}

static const char *const function_names[] = {
#define X(field, function, version, kind) #function,
    CUDA_FUNCTIONS(X)
#undef X
};

/* The code that this call is to fail with, or success. */
static CUresult told_to_fail(enum stand_in_function function, uint64_t number)
{
    const char *text = getenv("STAND_IN_FAIL");
    size_t length = strlen(function_names[function]);
    if (!text || strncmp(text, function_names[function], length) != 0 || text[length] != ':')
        return CUDA_SUCCESS;
    char *end;
    if (strtoull(text + length + 1, &end, 10) != number)
        return CUDA_SUCCESS;
    the_library.failed_as_told = true;
    return *end == ':' ? (CUresult)strtoul(end + 1, NULL, 10) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult stand_in_enter(enum stand_in_function function, bool needs_context)
{
    struct stand_in *self = stand_in();
    CUresult result = told_to_fail(function, ++self->calls[function]);
    if (result >= CUDA_ERROR_ILLEGAL_ADDRESS && result < CUDA_ERROR_NOT_PERMITTED)
        self->sticky = result;
    if (result != CUDA_SUCCESS)
        return result;
    if (!needs_context)
        return CUDA_SUCCESS;
    if (self->sticky != CUDA_SUCCESS)
        return self->sticky;
    return current && self->card_references[stand_in_card()] ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_CONTEXT;
}

uint64_t stand_in_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- finding functions ---------------------------------------------------------------------- */

static bool lacks(const char *name)
{
    const char *list = getenv("STAND_IN_WITHOUT");
    const char *at = list ? strstr(list, name) : NULL;
    size_t length = strlen(name);
    return at && (at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    *version = (int)setting("STAND_IN_VERSION", 13000);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *name, void **pointer, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *why)
{
    static const struct {
        int version;
        void (*function)(void);
    } functions[] = {
#define X(field, function, version, kind) {version, (void (*)(void))(function)},
        CUDA_FUNCTIONS(X)
#undef X
    };
    CUdriverProcAddressQueryResult unwanted; /* cuBLAS, for one, does not ask why */
    why = why ? why : &unwanted;
    *why = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    (void)flags;
    if (!name || !pointer)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = NULL;
    for (int i = 0; i < STAND_IN_FUNCTION_COUNT; i++) {
        if (strcmp(name, function_names[i]) != 0 || lacks(name))
            continue;
        int driver_version;
        (void)cuDriverGetVersion(&driver_version);
        *why = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (version > driver_version || version < functions[i].version)
            break;
        *why = CU_GET_PROC_ADDRESS_SUCCESS;
        void (*watched)(void) = stand_in_watched(name);
        memcpy(pointer, watched ? &watched : &functions[i].function, sizeof *pointer);
        return CUDA_SUCCESS;
    }
    void (*watched)(void) = stand_in_watched(name);
    if (!watched || *why != CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND || lacks(name))
        return CUDA_ERROR_NOT_FOUND;
    *why = CU_GET_PROC_ADDRESS_SUCCESS;
    memcpy(pointer, &watched, sizeof *pointer);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned flags)
{
    (void)flags;
    CUresult result = stand_in_enter(STAND_IN_init, false);
    if (result == CUDA_SUCCESS && !setting("STAND_IN_CARDS", 1))
        return CUDA_ERROR_NO_DEVICE;
    if (result == CUDA_SUCCESS)
        stand_in_inject();
    return result;
}

CUresult CUDAAPI cuGetErrorName(CUresult result, const char **name)
{
    static const struct {
        CUresult result;
        const char *name;
    } names[] = {
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
        {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].result == result) {
            *name = names[i].name;
            return CUDA_SUCCESS;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult result, const char **text)
{
    (void)result;
    *text = "as the stand-in was told, or found";
    return CUDA_SUCCESS;
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Written whenever the context comes or goes, and at the end of a process that has one: forked
 * children end without it. */
__attribute__((destructor)) static void report(void)
{
    static const char *const thing_names[] = {
#define X(name) #name,
        STAND_IN_THINGS(X)
#undef X
    };
    const char *name = getenv("STAND_IN_REPORT");
    char path[4096];
    snprintf(path, sizeof path, "%s.%ld", name ? name : "", (long)getpid());
    FILE *file = name ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int i = 0; i < STAND_IN_THING_COUNT; i++) {
        if (the_library.held[i])
            fprintf(file, "held %s %" PRIu64 "\n", thing_names[i], the_library.held[i]);
        if (the_library.at_release[i])
            fprintf(file, "at_release %s %" PRIu64 "\n", thing_names[i], the_library.at_release[i]);
    }
    if (the_library.used_bytes != the_library.others_bytes)
        fprintf(file, "held bytes %" PRIu64 "\n",
                the_library.used_bytes - the_library.others_bytes);
    if (the_library.failed_as_told)
        fprintf(file, "failed\n");
    for (int i = 0; i < STAND_IN_FUNCTION_COUNT; i++)
        if (the_library.calls[i])
            fprintf(file, "calls %s %" PRIu64 "\n", function_names[i], the_library.calls[i]);
    fclose(file);
}

/* ---- cards and contexts --------------------------------------------------------------------- */

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    *count = (int)setting("STAND_IN_CARDS", 1);
    return stand_in_enter(STAND_IN_device_get_count, false);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *card, int ordinal)
{
    *card = ordinal;
    return stand_in_enter(STAND_IN_device_get, false);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice card)
{
    snprintf(name, (size_t)length, "Stand-in %d", card);
    return stand_in_enter(STAND_IN_device_get_name, false);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice card)
{
    (void)card;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132 : 1;
    return stand_in_enter(STAND_IN_device_get_attribute, false);
}

CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice card)
{
    (void)card;
    *bytes = stand_in()->card_bytes;
    return stand_in_enter(STAND_IN_device_total_mem, false);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice card)
{
    (void)card;
    memset(uuid, 0, sizeof *uuid);
    return stand_in_enter(STAND_IN_device_get_uuid, false);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *text, int length, CUdevice card)
{
    snprintf(text, (size_t)length, "0000:%02x:00.0", card);
    return stand_in_enter(STAND_IN_device_get_pci_bus_id, false);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice card)
{
    struct stand_in *self = stand_in();
    CUresult result = stand_in_enter(STAND_IN_device_primary_ctx_retain, false);
    if (result != CUDA_SUCCESS)
        return result;
    if (!self->card_references[card]) {
        if (!stand_in_take_of(card, STAND_IN_CONTEXT_BYTES))
            return CUDA_ERROR_OUT_OF_MEMORY;
        self->held[STAND_IN_HELD_context]++;
    }
    self->card_references[card]++;
    self->references++;
    *context = (CUcontext)(void *)&contexts[card];
    report();
    return CUDA_SUCCESS;
}

/* With the last context everything goes that is left. */
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice card)
{
    struct stand_in *self = stand_in();
    CUresult result = stand_in_enter(STAND_IN_device_primary_ctx_release, false);
    if (result != CUDA_SUCCESS)
        return result;
    if (!self->card_references[card])
        return CUDA_ERROR_INVALID_CONTEXT;
    self->references--;
    if (--self->card_references[card])
        return CUDA_SUCCESS;
    self->held[STAND_IN_HELD_context]--;
    stand_in_give_of(card, STAND_IN_CONTEXT_BYTES);
    if (self->references)
        return CUDA_SUCCESS;
    for (int i = 0; i < STAND_IN_THING_COUNT; i++) {
        self->at_release[i] += self->held[i];
        self->held[i] = 0;
    }
    stand_in_memory_end();
    self->sticky = CUDA_SUCCESS;
    report();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context)
{
    CUresult result = stand_in_enter(STAND_IN_ctx_set_current, false);
    if (result == CUDA_SUCCESS)
        current = context;
    return result;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return stand_in_enter(STAND_IN_ctx_get_current, false);
}
