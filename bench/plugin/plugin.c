/* The functions that the frameworks call. Each finds its card and calls it. */
#include "bench/plugin/plugin.h"

#include <dlfcn.h>

#include "bench/plugin/process.h"

#define BYTES_LIMIT ((size_t)1 << 60)

static uint64_t number_of(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* A C function can report a failure only by NULL, and neither framework checks for it: the next
 * kernel would fault and destroy the context. So these functions look up the framework's own
 * function for raising an error in the process; the library does not link it.
 *
 * PyTorch: c10::detail::torchCheckFail, which TORCH_CHECK calls. It throws through the frames of
 * this library (compiled with unwind tables, nothing to clean up) into PyTorch. CuPy:
 * PyErr_SetString. Cython checks for an error when a function returned NULL. */
typedef void torch_check_fail(const char *function, const char *file, uint32_t line,
                              const char *message);
typedef int python_has_lock(void);
typedef void python_set_error(void *kind, const char *message);

#define TORCH_CHECK_FAIL "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"

static void to_standard_error(const char *sentence)
{
    fprintf(stderr, "%s%s\n", strncmp(sentence, "allocrig", 8) == 0 ? "" : "allocrig: ", sentence);
}

/* Raises PyTorch's C++ error, which Python sees as a RuntimeError, and does not return. If PyTorch
 * is not in the process or does not offer the function, writes to standard error. No lock may be
 * held. */
static void raise_in_torch(const char *sentence)
{
    void *library = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
    void *address = library ? dlsym(library, TORCH_CHECK_FAIL) : NULL;
    if (address) {
        torch_check_fail *raise;
        memcpy(&raise, &address, sizeof raise);
        raise("allocrig_malloc", "liballocrig_torch.so", 0, sentence);
    }
    to_standard_error(sentence);
}

/* Sets a MemoryError, which CuPy raises when its C function returns NULL. Without an interpreter,
 * or without its lock, writes to standard error. */
static void raise_in_python(const char *sentence)
{
    void *lock = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    void *set = dlsym(RTLD_DEFAULT, "PyErr_SetString");
    void *const *kind = dlsym(RTLD_DEFAULT, "PyExc_MemoryError");
    python_has_lock *has_lock;
    python_set_error *set_error;
    memcpy(&has_lock, &lock, sizeof lock);
    memcpy(&set_error, &set, sizeof set);
    if (lock && set && kind && has_lock())
        set_error(*kind, sentence);
    else
        to_standard_error(sentence);
}

/* ---- requests and frees ---------------------------------------------------------------------- */

/* NULL: `error` has a sentence, or "" for a request of zero bytes. */
static void *request(size_t bytes, int device, void *stream, struct ar_error *error)
{
    error->text[0] = '\0';
    if (!bytes)
        return NULL;
    if (bytes >= BYTES_LIMIT) {
        (void)ar_invalid(error, "allocrig: a request of %zu bytes, which is no size", bytes);
        return NULL;
    }
    struct card *card = process_card(device, error);
    uint64_t address = 0;
    if (!card || card_alloc(card, bytes, stream, &address, error) != AR_OK)
        return NULL;
    return (void *)(uintptr_t)address; /* NOLINT: a device address */
}

/* A program with one bad free usually has thousands: only the first is reported. */
static void say_once(const struct ar_error *error)
{
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        fprintf(stderr, "%s\n", error->text);
}

static void free_requested(void *address, int device, void *stream)
{
    struct ar_error error;
    if (!address || !process_is_up())
        return;
    struct card *card = process_card(device, &error);
    if (!card || card_free(card, number_of(address), stream, &error) != AR_OK)
        say_once(&error);
}

/* ---- PyTorch -------------------------------------------------------------------------------- */

void *allocrig_malloc(ssize_t size, int device, void *stream)
{
    struct ar_error error;
    void *address = request((size_t)size, device, stream, &error);
    if (!address && error.text[0])
        raise_in_torch(error.text);
    return address;
}

void allocrig_free(void *address, ssize_t size AR_UNUSED, int device, void *stream)
{
    free_requested(address, device, stream);
}

/* The caller does not name the card; the one that has the block is searched for. */
static struct card *card_of(uint64_t address)
{
    unsigned from = 0;
    for (struct card *card; (card = process_next_card(&from)) != NULL;)
        if (card_has(card, address))
            return card;
    return NULL;
}

void allocrig_record_stream(void *address, void *stream)
{
    struct ar_error error;
    if (!address || !process_is_up())
        return;
    struct card *card = card_of(number_of(address));
    if (card && card_use(card, number_of(address), stream, &error) != AR_OK)
        say_once(&error);
}

void allocrig_empty_cache(void)
{
    unsigned from = 0;
    if (!process_is_up())
        return;
    for (struct card *card; (card = process_next_card(&from)) != NULL;)
        card_trim(card);
}

void allocrig_memory_fraction(double fraction, int device)
{
    process_limit(device, fraction);
}

void *allocrig_base_alloc(void *address, size_t *bytes)
{
    unsigned from = 0;
    uint64_t start, segment_bytes;
    if (!process_is_up())
        return address;
    for (struct card *card; (card = process_next_card(&from)) != NULL;)
        if (card_segment(card, number_of(address), &start, &segment_bytes)) {
            if (bytes)
                *bytes = segment_bytes;
            return (void *)(uintptr_t)start; /* NOLINT: a device address */
        }
    return address;
}

static struct card *pool_card(int device)
{
    struct ar_error error;
    struct card *card = process_is_up() ? process_card(device, &error) : NULL;
    if (!card && process_is_up())
        say_once(&error);
    return card;
}

void allocrig_begin_pool(int device, struct allocrig_pool_id id, void *filter AR_UNUSED)
{
    struct card *card = pool_card(device);
    if (card)
        card_pool_begin(card, (struct card_pool_id){id.first, id.second});
}

void allocrig_end_pool(int device, struct allocrig_pool_id id)
{
    struct card *card = pool_card(device);
    if (card)
        card_pool_end(card, (struct card_pool_id){id.first, id.second});
}

void allocrig_release_pool(int device, struct allocrig_pool_id id)
{
    struct card *card = pool_card(device);
    if (card)
        card_pool_release(card, (struct card_pool_id){id.first, id.second});
}

/* ---- CuPy ----------------------------------------------------------------------------------- */

void *allocrig_cupy_malloc(void *stream, size_t size, int device)
{
    struct ar_error error;
    void *address = request(size, device, stream, &error);
    if (!address && error.text[0])
        raise_in_python(error.text);
    return address;
}

void allocrig_cupy_free(void *stream, void *address, int device)
{
    free_requested(address, device, stream);
}

/* ---- any program ---------------------------------------------------------------------------- */

uint64_t allocrig_figure(int device, const char *name)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {
#define X(field, text) {#field, offsetof(struct card_figures, field)},
        CARD_FIGURES(X)
#undef X
    };
    struct card_figures figures;
    struct card *card = process_card_there(device);
    if (!card)
        return UINT64_MAX;
    card_figures(card, &figures);
    for (size_t i = 0; i < AR_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return *(const uint64_t *)(const void *)((const char *)&figures + rows[i].offset);
    return UINT64_MAX;
}

void allocrig_reset_peaks(int device)
{
    struct card *card = process_card_there(device);
    if (card)
        card_reset_peaks(card);
}

size_t allocrig_statistics(int device, char *text, size_t text_bytes)
{
    struct card *card = process_card_there(device);
    return card ? card_statistics(card, text, text_bytes) : 0;
}

size_t allocrig_ranges(int device, struct allocrig_range *out, size_t room)
{
    struct card *card = process_card_there(device);
    return card ? card_ranges(card, out, room) : 0;
}

void allocrig_mark(const char *label)
{
    process_mark(label);
}
