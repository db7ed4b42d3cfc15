#include "bench/cuda/api.h"

#include <dlfcn.h>

#define LIBRARY "libcuda.so.1"

enum row_kind { REQUIRED, OPTIONAL };

struct row {
    size_t offset; /* of its pointer in struct cuda_api */
    const char *name;
    int version;
    enum row_kind kind;
};

static const struct row rows[] = {
#define X(field, function, version, kind)                                                          \
    {offsetof(struct cuda_api, field), #function, version, kind},
    CUDA_FUNCTIONS(X)
#undef X
};

/* dlsym returns an object pointer; C has no conversion from it to a function pointer. */
static void set_pointer(void *pointer, void *address)
{
    memcpy(pointer, &address, sizeof address);
}

static enum ar_status too_old(int driver_version, const char *name, int least,
                              struct ar_error *error)
{
    return ar_error_set(
        error, AR_MISSING,
        "the NVIDIA driver offers CUDA %d.%d, which has no %s as it is needed here: that takes a "
        "driver for CUDA %d.%d or later; update the driver, or use the simulated device, sim",
        driver_version / 1000, driver_version % 1000 / 10, name, least / 1000, least % 1000 / 10);
}

static enum ar_status row_fill(struct cuda_api *api, const struct row *row,
                               __typeof__(cuGetProcAddress) *look_up, struct ar_error *error)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult why = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result =
        look_up(row->name, &address, row->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why);
    if (result == CUDA_SUCCESS && address) {
        set_pointer((char *)api + row->offset, address);
        return AR_OK;
    }
    if (row->kind == OPTIONAL)
        return AR_OK;
    if (api->driver_version < row->version || why == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
        return too_old(api->driver_version, row->name, row->version, error);
    return ar_error_set(
        error, AR_MISSING,
        "the NVIDIA driver (CUDA %d.%d) lacks the function %s, which it should have from CUDA "
        "%d.%d on; reinstall the driver, or use the simulated device, sim",
        api->driver_version / 1000, api->driver_version % 1000 / 10, row->name, row->version / 1000,
        row->version % 1000 / 10);
}

static enum ar_status driver_start(const struct cuda_api *api, struct ar_error *error)
{
    CUresult result = api->init(0);
    if (result == CUDA_SUCCESS)
        return AR_OK;
    if (result == CUDA_ERROR_NO_DEVICE)
        return ar_error_set(error, AR_MISSING,
                            "the NVIDIA driver sees no card (cuInit: CUDA_ERROR_NO_DEVICE); see "
                            "what CUDA_VISIBLE_DEVICES hides, or use the simulated device, sim");
    return ar_error_set(error, AR_MISSING,
                        "the NVIDIA driver does not start (cuInit: %s); see what nvidia-smi says, "
                        "or use the simulated device, sim",
                        cuda_result_name(api, result));
}

enum ar_status cuda_api_open(struct cuda_api *api, struct ar_error *error)
{
    memset(api, 0, sizeof *api);
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ar_error_set(
            error, AR_MISSING,
            "there is no NVIDIA driver on this machine: %s; use the simulated device, sim",
            dlerror());
    __typeof__(cuDriverGetVersion) *get_version;
    __typeof__(cuGetProcAddress) *look_up;
    set_pointer(&get_version, dlsym(library, "cuDriverGetVersion"));
    set_pointer(&look_up, dlsym(library, "cuGetProcAddress_v2"));
    if (!get_version || get_version(&api->driver_version) != CUDA_SUCCESS)
        return ar_error_set(error, AR_MISSING,
                            "%s does not tell its version (cuDriverGetVersion); reinstall the "
                            "driver, or use the simulated device, sim",
                            LIBRARY);
    if (!look_up || api->driver_version < CUDA_DRIVER_LEAST)
        return too_old(api->driver_version, "cuGetProcAddress", CUDA_DRIVER_LEAST, error);
    for (size_t i = 0; i < AR_COUNT(rows); i++)
        AR_TRY(row_fill(api, &rows[i], look_up, error));
    return driver_start(api, error);
}

const char *cuda_result_name(const struct cuda_api *api, CUresult result)
{
    const char *name = NULL;
    if (api->get_error_name(result, &name) != CUDA_SUCCESS || !name)
        return "an error without a name";
    return name;
}

bool cuda_has_virtual_memory(const struct cuda_api *api)
{
    return api->mem_address_reserve && api->mem_address_free && api->mem_create &&
           api->mem_release && api->mem_map && api->mem_unmap && api->mem_set_access &&
           api->mem_get_allocation_granularity;
}

bool cuda_has_pool(const struct cuda_api *api)
{
    return api->mem_pool_create && api->mem_pool_destroy && api->mem_pool_set_attribute &&
           api->mem_pool_get_attribute && api->mem_pool_trim_to && api->mem_alloc_from_pool_async &&
           api->mem_free_async;
}
