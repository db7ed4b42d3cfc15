/* The real device on the stand-in for the driver: gaps of the host, many marks, files of addresses,
 * faults. What waits, and how it is counted: tests/steps/cuda_device. */
#include "bench/cuda/cuda_device.h"
#include "sim/device.h"
#include "tests/support/test.h"

TEST(gaps_pass_behind_the_driver)
{
    struct cuda_schedule schedule = {0};
    assert_int_equal(cuda_schedule_gap(&schedule, 1000, 400, 100), 1100);
    /* 30 of the engine's own work: made up for. */
    assert_int_equal(cuda_schedule_gap(&schedule, 1130, 400, 100), 1200);
    /* 50 of the driver's, so the gap begins later. */
    assert_int_equal(cuda_schedule_gap(&schedule, 1260, 450, 100), 1350);
    /* Far behind: what does not fit is made up for in later gaps. */
    assert_int_equal(cuda_schedule_gap(&schedule, 9000, 450, 100), 1450);
    assert_int_equal(cuda_schedule_gap(&schedule, 9000, 8450, 0), 9450);
}

#if HAVE_CUDA && HAVE_NVCC

#include <dlfcn.h>
#include <unistd.h>

#include "bench/cuda/state.h"
#include "tests/support/stand_in_library.h"

#define MS UINT64_C(1000000)

static struct ar_device *open_card(const char *spec)
{
    struct ar_device *device;
    (void)stand_in_library();
    assert_ok(ar_device_open_text(spec, &device, &test_error));
    return device;
}

/* Closes it: nothing may be left when the context is released. */
static void close_card(struct ar_device **device)
{
    stand_in_close(*device);
}

static void kernel(struct ar_device *device, uint32_t stream, uint64_t ns)
{
    device->ops->kernel(device, stream, ns);
    assert_false(device->failed);
}

static uint64_t alloc(struct ar_device *device, uint64_t bytes)
{
    uint64_t address = 0;
    assert_int_equal(ar_backing_segment_alloc(device->backing, bytes, &address), AR_OK);
    return address;
}

TEST(many_marks_keep_few_events)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    uint64_t last = 0, last_ns = 0;
    for (int i = 0; i < 3000; i++) {
        kernel(device, (uint32_t)i % 2, 0); /* done at once */
        last = device->ops->mark(device);
    }
    assert_true(stand_in_library()->held[STAND_IN_HELD_event] < 2000);
    for (uint64_t mark = 0; mark <= last; mark++) {
        uint64_t ns = device->ops->mark_ns(device, mark);
        assert_true(ns >= last_ns);
        last_ns = ns;
    }
}

/* The overhead of a kernel by the timer was taken from any length, and a negative wait lasted for
 * centuries. */
TEST(kernels_end_also_where_other_programs_use_the_card)
{
    stand_in_library()->timer_extra_ns = 60000;
    struct ar_device *device = open_card("cuda");
    uint64_t begin = device->ops->mark(device);
    for (int i = 0; i < 40; i++)
        kernel(device, 0, 30000);
    uint64_t middle = device->ops->mark(device);
    for (int i = 0; i < 20; i++)
        kernel(device, 0, 90000);
    uint64_t end = device->ops->mark(device);
    double short_ns =
        (double)(device->ops->mark_ns(device, middle) - device->ops->mark_ns(device, begin));
    double long_ns =
        (double)(device->ops->mark_ns(device, end) - device->ops->mark_ns(device, middle));
    stand_in_library()->timer_extra_ns = 0;
    close_card(&device);
    assert_true(short_ns > 40 * 30000 * 0.5);
    assert_true(long_ns > 20 * 90000 * 0.5);
    assert_true(stand_in_library()->longest_wait_ns <= 30 * MS); /* those that warm the card */
}

/* ---- files of addresses --------------------------------------------------------------------- */

struct rows {
    uint64_t count, last;
    bool whole; /* in order, with no line cut off */
};

static struct rows rows_of(const char *path)
{
    struct rows rows = {.whole = true};
    char line[128];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "ordinal,bytes,address\n");
    while (fgets(line, sizeof line, file)) {
        uint64_t ordinal, bytes;
        rows.whole =
            rows.whole && strchr(line, '\n') &&
            sscanf(line, "%" SCNu64 ",%" SCNu64 ",%" SCNu64, &ordinal, &bytes, &rows.last) == 3 &&
            ordinal == rows.count;
        rows.count++;
    }
    fclose(file);
    return rows;
}

static void record_path(char *path, size_t path_bytes, char *spec, size_t spec_bytes)
{
    snprintf(path, path_bytes, "%s/addresses-%ld", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp",
             (long)getpid());
    snprintf(spec, spec_bytes, "cuda:record_addresses=%s", path);
    unlink(path);
}

/* Nothing is written within a call whose time is measured; at the end all of it is, whether the run
 * came to its end or not. */
TEST(addresses_are_written_behind_the_run)
{
    char path[256], spec[320];
    record_path(path, sizeof path, spec, sizeof spec);
    struct ar_device *device = open_card(spec);
    assert_int_not_equal(access(path, F_OK), 0);
    (void)alloc(device, 4096);
    uint64_t second = alloc(device, 2 * AR_MIB);
    assert_int_equal(rows_of(path).count, 0);
    assert_ok(device->ops->flush(device, &test_error));
    assert_int_equal(rows_of(path).count, 2);
    assert_int_equal(rows_of(path).last, second);
    uint64_t third = alloc(device, 4096);
    assert_int_equal(rows_of(path).count, 2);
    close_card(&device); /* as after a run that failed */
    assert_int_equal(rows_of(path).count, 3);
    assert_int_equal(rows_of(path).last, third);
    assert_true(rows_of(path).whole);
    unlink(path);
}

TEST(many_addresses_are_written_in_blocks)
{
    char path[256], spec[320];
    record_path(path, sizeof path, spec, sizeof spec);
    struct ar_device *device = open_card(spec);
    for (unsigned i = 0; i < 65536 + 10; i++)
        assert_int_equal(ar_backing_segment_free(device->backing, alloc(device, 4096)), AR_OK);
    assert_int_equal(rows_of(path).count, 65536);
    assert_true(rows_of(path).whole);
    close_card(&device);
    assert_int_equal(rows_of(path).count, 65536 + 10);
    assert_true(rows_of(path).whole);
    unlink(path);
}

TEST(a_fault_on_the_card_ends_the_device)
{
    struct ar_device *device = open_card("cuda");
    uint64_t address = alloc(device, 4 * AR_MIB);
    struct ar_backing_ticket ticket;
    assert_int_equal(device->ops->touch(device, address, 4 * AR_MIB, 0), AR_OK);
    device->ops->sync(device, 0);
    assert_false(device->failed);
    (void)device->ops->fill(device, address, 5 * AR_MIB, 1, 0); /* beyond its end */
    ticket = ar_backing_fence(device->backing, 0);
    device->ops->sync(device, 0);
    assert_true(device->failed);
    assert_non_null(strstr(device->ops->problem(device), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_true(ar_backing_done(device->backing, ticket)); /* or a policy would poll for ever */
    ar_backing_wait(device->backing, ticket);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 4096, &address), AR_INVALID);
    assert_true(device->ops->mark_ns(device, device->ops->mark(device)) > 0);
    ar_device_close(device);
    assert_int_equal(stand_in_library()->used_bytes, 0);
}

/* cuBLAS and the runtime pass NULL where they do not want to know why a function is missing. */
TEST(the_library_may_be_asked_without_a_why)
{
    (void)stand_in_library();
    __typeof__(cuGetProcAddress) *look_up;
    void *address = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"), *found = &address;
    assert_non_null(address);
    memcpy(&look_up, &address, sizeof look_up);
    assert_int_equal(look_up("cuMemAlloc", &found, 12000, 0, NULL), CUDA_SUCCESS);
    assert_non_null(found);
    assert_int_equal(look_up("cuNoSuchThing", &found, 12000, 0, NULL), CUDA_ERROR_NOT_FOUND);
    assert_null(found);
    assert_int_equal(look_up("cuMemAlloc", NULL, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(what_is_not_ours_is_others)
{
    /* 900 held before, a context of 500, and the driver counts 40 less than the library. */
    assert_int_equal(cuda_others_bytes(900, 1400, 1360), 860);
    assert_int_equal(cuda_others_bytes(0, 500, 500), 0);
    assert_int_equal(cuda_others_bytes(20, 520, 480), 0);
    assert_int_equal(cuda_others_bytes(-1, -1, 500), 0);   /* no library */
    assert_int_equal(cuda_others_bytes(900, 300, 300), 0); /* others went: not known */
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    uint64_t context_bytes = device->ops->card_bytes(device);
    assert_int_equal(context_bytes, STAND_IN_CONTEXT_BYTES);
    (void)alloc(device, 6 * AR_MIB);
    assert_int_equal(device->ops->card_bytes(device), context_bytes + 6 * AR_MIB);
}

#endif
