/* Opens and closes a card: finds it, checks the options, and retains the card's primary context,
 * which cuBLAS uses too, while the device is open. No setting of the card is changed. Closing frees
 * everything in any state, also half open. If the driver has failed, releasing the context frees
 * what single calls cannot. */

#include "allocators/base/size.h"
#include "bench/cuda/cuda_device.h"
#include "bench/cuda/state.h"

#define GRANULE_BYTES UINT64_C(512)

static enum ar_status no_card(const struct cuda_api *api, CUresult result, struct ar_error *error)
{
    const char *name = result == CUDA_SUCCESS ? "none is visible" : cuda_result_name(api, result);
    return ar_error_set(error, AR_MISSING,
                        "the NVIDIA driver sees no card (%s); see what CUDA_VISIBLE_DEVICES hides, "
                        "or use the simulated device, sim",
                        name);
}

static enum ar_status cards_count(const struct cuda_api *api, int *count, struct ar_error *error)
{
    *count = 0;
    CUresult result = api->device_get_count(count);
    return result == CUDA_SUCCESS && *count ? AR_OK : no_card(api, result, error);
}

bool cuda_device_available(char *text, size_t text_bytes)
{
    struct cuda_api api;
    struct ar_error error;
    int count;
    CUdevice card;
    char name[128] = "";
    enum ar_status status = cuda_api_open(&api, &error);
    AR_THEN(status, cards_count(&api, &count, &error));
    if (status == AR_OK && !kernels_built())
        status = ar_error_set(&error, AR_MISSING,
                              "this build was made without nvcc and has no kernels for the card; "
                              "install a CUDA toolkit and build again");
    if (status != AR_OK) {
        snprintf(text, text_bytes, "%s", error.text);
        return false;
    }
    if (api.device_get(&card, 0) == CUDA_SUCCESS)
        (void)api.device_get_name(name, (int)sizeof name, card);
    snprintf(text, text_bytes, "%d card%s, the first: %s; driver for CUDA %d.%d", count,
             count == 1 ? "" : "s", name, api.driver_version / 1000,
             api.driver_version % 1000 / 10);
    return true;
}

/* A failed step of opening; the device has the sentence. */
static enum ar_status open_failed(const struct cuda_device *self, struct ar_error *error)
{
    if (self->out_of_host_memory)
        return ar_no_memory(error, "a device");
    return ar_error_set(error, AR_MISSING, "device cuda cannot be opened: %s", self->problem);
}

/* False: the driver cannot report it. */
static bool card_has(struct cuda_device *self, CUdevice_attribute attribute, bool *has)
{
    int value = 0;
    CUresult result = self->api.device_get_attribute(&value, attribute, self->card);
    *has = value != 0;
    return cuda_worked(self, result, "cuDeviceGetAttribute");
}

static enum ar_status card_find(struct cuda_device *self, const struct cuda_options *options,
                                struct ar_error *error)
{
    const struct cuda_api *api = &self->api;
    struct ar_device_props *props = &self->base.props;
    int count;
    AR_TRY(cards_count(api, &count, error));
    if (options->ordinal >= (uint64_t)count)
        return ar_error_set(error, AR_MISSING,
                            "device cuda: there is no card %" PRIu64
                            "; %d %s visible, numbered from 0",
                            options->ordinal, count, count == 1 ? "is" : "are");
    size_t total_bytes = 0;
    char name[sizeof props->profile] = "";
    bool has_virtual_memory, has_pool;
    if (!cuda_worked(self, api->device_get(&self->card, (int)options->ordinal), "cuDeviceGet") ||
        !cuda_worked(self, api->device_get_name(name, (int)sizeof name, self->card),
                     "cuDeviceGetName") ||
        !cuda_worked(self, api->device_total_mem(&total_bytes, self->card), "cuDeviceTotalMem") ||
        !card_has(self, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                  &has_virtual_memory) ||
        !card_has(self, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &has_pool))
        return open_failed(self, error);
    snprintf(props->kind, sizeof props->kind, "cuda");
    snprintf(props->profile, sizeof props->profile, "%s", name);
    props->total_bytes = total_bytes;
    props->has_virtual_memory = has_virtual_memory && cuda_has_virtual_memory(api);
    props->has_pool = has_pool && cuda_has_pool(api);
    props->has_timing = true;
    return AR_OK;
}

static enum ar_status capacity_check(const struct cuda_device *self, uint64_t capacity_bytes,
                                     struct ar_error *error)
{
    const struct ar_device_props *props = &self->base.props;
    if (capacity_bytes > props->total_bytes)
        return ar_invalid(error,
                          "device cuda: capacity=%" PRIu64 " is more than the %" PRIu64
                          " bytes that the card %s has; ask for less, or leave it out",
                          capacity_bytes, props->total_bytes, props->profile);
    if (capacity_bytes && capacity_bytes < 2 * AR_MIB)
        return ar_invalid(error,
                          "device cuda: capacity=%" PRIu64 " is less than one page of %" PRIu64
                          " bytes, so nothing could be allocated; ask for more, or leave it out",
                          capacity_bytes, 2 * AR_MIB);
    return AR_OK;
}

static enum ar_status context_open(struct cuda_device *self, struct ar_error *error)
{
    const struct cuda_api *api = &self->api;
    (void)api->ctx_get_current(&self->context_before);
    CUresult result = api->device_primary_ctx_retain(&self->context, self->card);
    if (result != CUDA_SUCCESS)
        self->context = NULL;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return ar_error_set(
            error, AR_MISSING,
            "device cuda cannot be opened: cuDevicePrimaryCtxRetain returned "
            "CUDA_ERROR_OUT_OF_MEMORY: other processes hold so much of the card that not even a "
            "context fits; nvidia-smi shows them. End one, or take another card with ordinal=N");
    if (cuda_worked(self, result, "cuDevicePrimaryCtxRetain") &&
        cuda_worked(self, api->ctx_set_current(self->context), "cuCtxSetCurrent"))
        return AR_OK;
    return open_failed(self, error);
}

static enum ar_status matmul_open(struct cuda_device *self, const struct cuda_options *options,
                                  struct ar_error *error)
{
    enum ar_status status =
        kernels_choose_matmul(self->kernels, (enum kernels_matmul)options->matmul);
    return status == AR_OK ? status
                           : ar_error_set(error, status, "%s", kernels_problem(self->kernels));
}

/* Sets the page size and the ledger's capacity: the card's free bytes or the given capacity. */
static enum ar_status memory_open(struct cuda_device *self, const struct cuda_options *options,
                                  struct ar_error *error)
{
    uint64_t capacity_bytes = options->capacity_bytes;
    const struct cuda_api *api = &self->api;
    struct ar_device_props *props = &self->base.props;
    struct sim_ledger *ledger = &self->ledger;
    size_t free_bytes = 0, total_bytes = 0, page_bytes = 2 * AR_MIB;
    if (!cuda_worked(self, api->mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo"))
        return open_failed(self, error);
    const CUmemAllocationProp kind = cuda_memory_kind(self);
    if (props->has_virtual_memory &&
        !cuda_worked(self,
                     api->mem_get_allocation_granularity(&page_bytes, &kind,
                                                         CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                     "cuMemGetAllocationGranularity"))
        return open_failed(self, error);
    self->held_at_open_bytes = total_bytes - free_bytes;
    self->capacity_given = capacity_bytes != 0;
    self->page_bytes = self->memory.page_bytes = ledger->unit_bytes = page_bytes;
    /* If other processes start and end, or inside a program, only the driver knows the free
     * bytes. */
    bool driver_knows = options->embedded || options->shared;
    uint64_t left_bytes = ar_size_round_down(driver_knows ? total_bytes : free_bytes, page_bytes);
    props->capacity_bytes = self->capacity_given ? capacity_bytes : left_bytes;
    if (self->capacity_given) /* imitates a smaller card */
        props->total_bytes = capacity_bytes;
    ledger->capacity_bytes = ar_size_round_down(props->capacity_bytes, page_bytes);
    if (ledger->capacity_bytes > left_bytes)
        ledger->others_bytes = ledger->capacity_bytes - left_bytes;
    cuda_show_memory(self);
    return AR_OK;
}

/* The bytes of other processes, for the cause of a failure. They count if no capacity is given. */
static void others_open(struct cuda_device *self, int64_t before_bytes, int64_t now_bytes)
{
    self->card_others_bytes = cuda_others_bytes(before_bytes, now_bytes, self->held_at_open_bytes);
    self->others_at_open_bytes = self->card_others_bytes;
    self->others_known = before_bytes >= 0 && now_bytes >= before_bytes;
    cuda_show_memory(self);
}

static void describe(struct cuda_device *self)
{
    const struct ar_device_props *props = &self->base.props;
    struct ar_backing_ops *ops = &self->backing_ops;
    *ops = cuda_backing_ops;
    if (!props->has_virtual_memory) {
        ops->reserve = NULL;
        ops->release = NULL;
        ops->create = NULL;
        ops->destroy = NULL;
        ops->map = NULL;
        ops->access = NULL;
        ops->unmap = NULL;
        ops->copy = NULL;
        ops->copy_out = NULL;
        ops->copy_in = NULL;
    }
    if (!props->has_pool) {
        ops->pool_open = NULL;
        ops->pool_alloc = NULL;
        ops->pool_free = NULL;
        ops->pool_trim = NULL;
        ops->pool_memory = NULL;
    }
    self->base.ops = &cuda_device_ops;
    self->base.backing = &self->backing;
    self->backing = (struct ar_backing){
        .ops = ops,
        .granule_bytes = GRANULE_BYTES,
        .page_bytes = props->has_virtual_memory ? self->page_bytes : 0,
    };
}

static enum ar_status parts_open(struct cuda_device *self, const struct cuda_options *options,
                                 struct ar_error *error)
{
    enum ar_status status = capacity_check(self, options->capacity_bytes, error);
    AR_THEN(status, cuda_record_open(&self->record_segments, options->record_addresses, error));
    AR_THEN(status, cuda_record_open(&self->record_ranges, options->record_ranges, error));
    bool looks = status == AR_OK && !options->embedded;
    int64_t before_bytes = looks ? cuda_others_look(options->ordinal) : -1;
    AR_THEN(status, context_open(self, error));
    if (status == AR_OK && !options->embedded)
        status = kernels_open(&self->api, self->card, &self->kernels, error);
    if (status == AR_OK && !options->embedded) {
        struct kernels_facts facts;
        kernels_facts(self->kernels, &facts);
        self->base.props.kernel_least_ns = (uint64_t)(facts.spin_least_ns + 0.5);
        status = matmul_open(self, options, error);
    }
    if (status == AR_OK && !cuda_streams_open(self))
        status = open_failed(self, error);
    self->streams.embedded = options->embedded;
    self->shared = options->shared;
    if (status == AR_OK && !options->embedded && !cuda_marks_open(self))
        status = open_failed(self, error);
    AR_THEN(status, memory_open(self, options, error));
    if (status == AR_OK && looks)
        others_open(self, before_bytes, cuda_others_look(options->ordinal));
    /* A driver error while the device is set up means that there is no device. */
    return status == AR_REFUSED || (status == AR_INVALID && self->context) ? AR_MISSING : status;
}

enum ar_status cuda_device_open(const struct cuda_options *options, struct ar_device **out,
                                struct ar_error *error)
{
    struct cuda_device *self = calloc(1, sizeof *self);
    AR_TRY_MEMORY(self, error, "a device");
    self->opened_ns = latency_clock_ns();
    device_memory_open(&self->memory, self->problem, sizeof self->problem);
    enum ar_status status = cuda_api_open(&self->api, error);
    AR_THEN(status, card_find(self, options, error));
    AR_THEN(status, parts_open(self, options, error));
    if (status != AR_OK) {
        cuda_close(&self->base);
        return status;
    }
    describe(self);
    *out = &self->base;
    return AR_OK;
}

void cuda_device_enter(struct ar_device *device)
{
    struct cuda_device *self = cuda_of(device);
    (void)cuda_worked(self, self->api.ctx_set_current(self->context), "cuCtxSetCurrent");
}

void cuda_close(struct ar_device *device)
{
    struct cuda_device *self = cuda_of(device);
    const struct cuda_api *api = &self->api;
    if (self->context) {
        (void)api->ctx_set_current(self->context);
        (void)api->ctx_synchronize();
        cuda_pool_close(self);
        cuda_virtual_memory_close(self);
        cuda_outside_close(self);
        kernels_close(self->kernels);
        cuda_marks_close(self);
        cuda_streams_close(self);
    }
    cuda_segments_close(self);
    device_memory_close(&self->memory);
    if (self->context) {
        (void)api->ctx_set_current(self->context_before);
        (void)api->device_primary_ctx_release(self->card);
    }
    free(self);
}
