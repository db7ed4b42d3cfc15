/* cuBLAS at run time. Its functions and constants are declared here, because its header may be
 * missing. They are the same from version 11 to 13. */
#include "bench/cuda/kernels.h"

#include <dlfcn.h>

struct handle; /* cuBLAS's own */

enum blas_result { BLAS_OK = 0, BLAS_NO_MEMORY = 3 };
enum blas_data { DATA_F32 = 0, DATA_F16 = 2, DATA_BF16 = 14 };
enum blas_compute { COMPUTE_F32 = 68, COMPUTE_TF32 = 77 };
enum { OPERATION_NONE = 0, ALGORITHM_DEFAULT = -1 };

/* field, function, its type */
#define BLAS_FUNCTIONS(X)                                                                          \
    X(create, cublasCreate_v2, int (*)(struct handle **))                                          \
    X(destroy, cublasDestroy_v2, int (*)(struct handle *))                                         \
    X(set_stream, cublasSetStream_v2, int (*)(struct handle *, CUstream))                          \
    X(get_version, cublasGetVersion_v2, int (*)(struct handle *, int *))                           \
    X(gemm, cublasGemmEx,                                                                          \
      int (*)(struct handle *, int, int, int, int, int, const void *, const void *, int, int,      \
              const void *, int, int, const void *, void *, int, int, int, int))

struct blas {
    const struct cuda_api *api;
    void *library;
    struct handle *handle;
    uint64_t held_bytes;
    bool used[AR_DEVICE_I64 + 1]; /* by type: its kernels are loaded */
    char name[96];
#define X(field, function, type) __typeof__(type) field;
    BLAS_FUNCTIONS(X)
#undef X
};

static uint64_t card_free(const struct cuda_api *api)
{
    size_t free_bytes = 0, total_bytes = 0;
    return api->mem_get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS ? free_bytes : 0;
}

static void count_held(struct blas *self, uint64_t before)
{
    uint64_t after = card_free(self->api);
    if (before > after)
        self->held_bytes += before - after;
}

/* dlsym returns an object pointer; C has no conversion from it to a function pointer. */
static bool find(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);
    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

static void *load(const char *name)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    char path[128];
    for (size_t i = 0; i < AR_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s%s", folders[i], name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

/* Opens one version of the library. MISSING: try the next. */
static enum ar_status open_version(struct blas *self, const char *name, struct ar_error *error)
{
    self->library = load(name);
    if (!self->library)
        return ar_error_set(error, AR_MISSING, "%s", dlerror());
#define X(field, function, type)                                                                   \
    if (!find(self->library, #function, &self->field))                                             \
        return ar_error_set(error, AR_MISSING, "%s has no function %s", name, #function);
    BLAS_FUNCTIONS(X)
#undef X
    uint64_t before = card_free(self->api);
    int result = self->create(&self->handle);
    if (result == BLAS_NO_MEMORY)
        return ar_error_set(error, AR_REFUSED,
                            "%s finds no memory on the card for itself (cublasCreate, %llu bytes "
                            "free); leave it some, with a capacity or a limit",
                            name, (unsigned long long)before);
    if (result != BLAS_OK)
        return ar_error_set(error, AR_MISSING, "%s does not start (cublasCreate: error %d)", name,
                            result);
    count_held(self, before);
    int version = 0;
    self->get_version(self->handle, &version);
    /* 11401 is 11.4.1; from version 12 on 130002 is 13.0.2. */
    int major = version < 100000 ? version / 1000 : version / 10000;
    int minor = version < 100000 ? version / 100 % 10 : version / 100 % 100;
    snprintf(self->name, sizeof self->name, "cuBLAS %d.%d.%d (%s)", major, minor, version % 100,
             name);
    return AR_OK;
}

enum ar_status blas_open(const struct cuda_api *api, struct blas **out, struct ar_error *error)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    *out = NULL;
    struct blas *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "the host has no memory left for cuBLAS");
    struct ar_error first = {""};
    enum ar_status status = AR_MISSING;
    for (size_t i = 0; i < AR_COUNT(names) && status == AR_MISSING; i++) {
        struct ar_error why = {""};
        self->api = api;
        status = open_version(self, names[i], &why);
        if (status == AR_OK)
            break;
        /* The library stays loaded if it started: it may have threads. */
        if (self->library && !self->handle)
            dlclose(self->library);
        /* A version that is found and fails explains more than a missing one. */
        if (!first.text[0] || self->library)
            first = why;
        memset(self, 0, sizeof *self);
    }
    if (status == AR_OK) {
        *out = self;
        return AR_OK;
    }
    free(self);
    return ar_error_set(error, status, "%s", first.text);
}

void blas_close(struct blas *self)
{
    if (!self)
        return;
    self->destroy(self->handle);
    free(self);
}

/* cuBLAS is column major: its b^T * a^T is our row-major a * b. */
enum ar_status blas_matmul(struct blas *self, const struct blas_product *p, CUstream stream,
                           struct ar_error *error)
{
    static const int data[] = {[AR_DEVICE_F32] = DATA_F32,
                               [AR_DEVICE_TF32] = DATA_F32,
                               [AR_DEVICE_F16] = DATA_F16,
                               [AR_DEVICE_BF16] = DATA_BF16};
    const float one = 1, zero = 0;
    int type = data[p->type], compute = p->type == AR_DEVICE_TF32 ? COMPUTE_TF32 : COMPUTE_F32;
    uint64_t before = self->used[p->type] ? 0 : card_free(self->api);
    const char *call = "cublasSetStream";
    int result = self->set_stream(self->handle, stream);
    if (result == BLAS_OK) {
        call = "cublasGemmEx";
        result = self->gemm(self->handle, OPERATION_NONE, OPERATION_NONE, (int)p->n, (int)p->m,
                            (int)p->k, &one, (const void *)(uintptr_t)p->b, type, (int)p->n,
                            (const void *)(uintptr_t)p->a, type, (int)p->pitch_a, &zero,
                            (void *)(uintptr_t)p->out, type, (int)p->n, compute, ALGORITHM_DEFAULT);
    }
    if (result == BLAS_OK) {
        if (before)
            count_held(self, before);
        self->used[p->type] = true;
        return AR_OK;
    }
    return ar_error_set(error, result == BLAS_NO_MEMORY ? AR_REFUSED : AR_INVALID,
                        "%s: %s of a product %llu x %llu x %llu failed with error %d", self->name,
                        call, (unsigned long long)p->m, (unsigned long long)p->n,
                        (unsigned long long)p->k, result);
}

const char *blas_name(const struct blas *self)
{
    return self->name;
}

uint64_t blas_held_bytes(const struct blas *self)
{
    return self->held_bytes;
}
