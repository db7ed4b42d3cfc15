/* The real device on the stand-in for the driver, in time: the schedule of host gaps, marks,
 * tickets, what waits and how it is counted, and who is ordered after whom. */
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
#include "tests/support/cuda_stand_in/stand_in.h"

#define MS UINT64_C(1000000)

/* The stand-in lies beside the folder of this program; once it is loaded, its name is known. */
static struct stand_in *library(void)
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

static struct ar_device *open_card(const char *spec)
{
    struct ar_device *device;
    (void)library();
    assert_ok(ar_device_open_text(spec, &device, &test_error));
    return device;
}

/* Closes it: nothing may be left when the context is released. */
static void close_card(struct ar_device **device)
{
    struct stand_in *card = library();
    memset(card->at_release, 0, sizeof card->at_release);
    ar_device_close(*device);
    for (int i = 0; i < STAND_IN_THING_COUNT; i++) {
        assert_int_equal(card->held[i], 0);
        assert_int_equal(card->at_release[i], 0);
    }
    assert_int_equal(card->used_bytes, card->others_bytes);
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

TEST(marks_are_settled_later)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    const struct ar_device_ops *ops = device->ops;
    uint64_t begun = ops->mark(device);
    kernel(device, 0, 100 * MS);
    uint64_t first = ops->mark(device);
    kernel(device, 1, 2 * MS);
    uint64_t second = ops->mark(device), third = ops->mark(device);
    assert_true(ops->now(device) - ops->mark_ns(device, begun) < 80 * MS); /* no call waited */
    uint64_t first_ns = ops->mark_ns(device, first) - ops->mark_ns(device, begun);
    assert_in_range(first_ns, 99 * MS, 900 * MS);
    assert_true(ops->now(device) >= ops->mark_ns(device, first));
    /* The other stream's kernel was done long before: the latest of all counts. */
    assert_int_equal(ops->mark_ns(device, second), ops->mark_ns(device, first));
    assert_int_equal(ops->mark_ns(device, third), ops->mark_ns(device, first));
    uint64_t records = library()->calls[STAND_IN_event_record];
    uint64_t idle = ops->mark(device); /* no work since */
    assert_int_equal(library()->calls[STAND_IN_event_record], records);
    assert_true(ops->mark_ns(device, idle) >= ops->mark_ns(device, third));
}

TEST(many_marks_keep_few_events)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    uint64_t last = 0, last_ns = 0;
    for (int i = 0; i < 3000; i++) {
        kernel(device, (uint32_t)i % 2, 0); /* done at once */
        last = device->ops->mark(device);
    }
    assert_true(library()->held[STAND_IN_HELD_event] < 2000);
    for (uint64_t mark = 0; mark <= last; mark++) {
        uint64_t ns = device->ops->mark_ns(device, mark);
        assert_true(ns >= last_ns);
        last_ns = ns;
    }
}

TEST(known_answers_ask_nobody)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    struct ar_backing *backing = device->backing;
    const struct stand_in *card = library();
    struct ar_backing_ticket nothing = ar_backing_fence(backing, 0);
    assert_true(ar_backing_done(backing, nothing));
    kernel(device, 0, 100 * MS);
    struct ar_backing_ticket first = ar_backing_fence(backing, 0);
    uint64_t records = card->calls[STAND_IN_event_record];
    struct ar_backing_ticket same = ar_backing_fence(backing, 0);
    assert_int_equal(card->calls[STAND_IN_event_record], records);
    assert_int_equal(same.value, first.value);
    kernel(device, 0, 1 * MS);
    struct ar_backing_ticket second = ar_backing_fence(backing, 0);
    assert_false(ar_backing_done(backing, first));
    assert_false(ar_backing_done(backing, second));
    uint64_t stall_ns = device->counters.stall_ns;
    ar_backing_wait(backing, second);
    assert_in_range(device->counters.stall_ns - stall_ns, 5 * MS, 900 * MS);
    uint64_t queries = card->calls[STAND_IN_event_query];
    assert_true(ar_backing_done(backing, first) && ar_backing_done(backing, second));
    assert_true(ar_backing_done(backing, nothing));
    assert_int_equal(card->calls[STAND_IN_event_query], queries);
}

TEST(fences_that_nobody_polls_stay_few)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    for (int i = 0; i < 20000; i++) {
        kernel(device, 0, 0); /* done at once */
        (void)ar_backing_fence(device->backing, 0);
    }
    assert_true(library()->held[STAND_IN_HELD_event] < 2000);
}

TEST(a_free_waits_and_says_so)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    uint64_t address = alloc(device, 4 * AR_MIB), other = alloc(device, 100);
    kernel(device, 3, 80 * MS);
    assert_int_equal(ar_backing_segment_free(device->backing, address), AR_OK);
    assert_in_range(device->counters.stall_ns, 10 * MS, 900 * MS);
    assert_true(device->counters.call_ns[AR_DEVICE_CALL_free] < 10 * MS);
    uint64_t syncs = library()->calls[STAND_IN_ctx_synchronize],
             stall_ns = device->counters.stall_ns;
    assert_int_equal(ar_backing_segment_free(device->backing, other), AR_OK);
    assert_int_equal(library()->calls[STAND_IN_ctx_synchronize], syncs); /* all is known done */
    assert_int_equal(device->counters.stall_ns, stall_ns);
}

TEST(gaps_take_their_time)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    uint64_t begun_ns = device->ops->now(device);
    device->ops->advance(device, 4 * MS);
    assert_in_range(device->ops->now(device) - begun_ns, 4 * MS, 900 * MS);
    kernel(device, 0, 20 * MS);
    device->ops->sync(device, 0);
    uint64_t synced_ns = device->ops->now(device);
    device->ops->advance(device, 60 * MS); /* behind the program's own wait */
    assert_true(device->ops->now(device) - synced_ns > 20 * MS);
    assert_int_equal(device->counters.stall_ns, 0); /* which is no stall */
}

TEST(new_owners_wait_for_old_ones_once)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    const struct ar_device_ops *ops = device->ops;
    const struct stand_in *card = library();
    uint64_t address = alloc(device, 4 * AR_MIB);
    kernel(device, 0, 100 * MS);
    ops->used(device, address, 2 * AR_MIB, 0, 7);
    uint64_t waits = card->calls[STAND_IN_stream_wait_event];
    assert_int_equal(ops->handed_out(device, address + 2 * AR_MIB, AR_MIB, 1, true, 8), 0);
    assert_int_equal(ops->handed_out(device, address, AR_MIB, 0, true, 8), 0);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits); /* not used; its own */
    ops->used(device, address, AR_MIB, 0, 9);
    assert_int_equal(ops->handed_out(device, address, 2 * AR_MIB, 1, true, 10), 0);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits + 1);
    assert_false(ar_backing_done(device->backing, ar_backing_fence(device->backing, 1)));
    ops->used(device, address, AR_MIB, 0, 11);
    assert_int_equal(ops->handed_out(device, address, AR_MIB, 1, true, 12), 0);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits + 1); /* waits already */
    ops->sync(device, UINT32_MAX);
    ops->used(device, address, AR_MIB, 0, 13);
    assert_int_equal(ops->handed_out(device, address, AR_MIB, 2, true, 14), 0);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits + 1); /* is done */
}

TEST(uses_follow_the_memory_through_mappings)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    struct ar_backing *backing = device->backing;
    const struct stand_in *card = library();
    ar_backing_handle handle;
    uint64_t first, second;
    assert_int_equal(ar_backing_reserve(backing, 4 * AR_MIB, &first), AR_OK);
    assert_int_equal(ar_backing_reserve(backing, 4 * AR_MIB, &second), AR_OK);
    assert_int_equal(ar_backing_create(backing, 2 * AR_MIB, &handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, first, handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, second + 2 * AR_MIB, handle), AR_OK);
    assert_int_equal(ar_backing_access(backing, first, 2 * AR_MIB), AR_OK);
    kernel(device, 0, 100 * MS);
    device->ops->used(device, first, AR_MIB, 0, 1);
    uint64_t waits = card->calls[STAND_IN_stream_wait_event];
    (void)device->ops->handed_out(device, second, 4 * AR_MIB, 1, true, 2);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits + 1);
    assert_int_equal(ar_backing_unmap(backing, first, 4 * AR_MIB), AR_INVALID);
    assert_non_null(strstr(ar_backing_problem(backing), "nothing is mapped at"));
    assert_int_equal(ar_backing_release(backing, first), AR_INVALID);
    assert_int_equal(ar_backing_map(backing, second + 2 * AR_MIB, handle), AR_INVALID);
    assert_int_equal(ar_backing_destroy(backing, handle), AR_OK);
    assert_int_equal(device->counters.physical_bytes, 2 * AR_MIB);
    assert_int_equal(ar_backing_map(backing, first + 2 * AR_MIB, handle), AR_INVALID);
    assert_int_equal(ar_backing_unmap(backing, first, 2 * AR_MIB), AR_OK);
    assert_int_equal(ar_backing_unmap(backing, second + 2 * AR_MIB, 2 * AR_MIB), AR_OK);
    assert_int_equal(device->counters.physical_bytes, 0);
    assert_int_equal(ar_backing_release(backing, first), AR_OK);
    assert_false(device->failed); /* misuse is not the driver's failure */
}

TEST(programs_events_order_streams)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    const struct ar_device_ops *ops = device->ops;
    const struct stand_in *card = library();
    ops->stream_wait(device, 1, 5); /* never recorded: no wait */
    kernel(device, 0, 80 * MS);
    ops->event_record(device, 5, 0);
    uint64_t waits = card->calls[STAND_IN_stream_wait_event];
    ops->stream_wait(device, 1, 5);
    ops->stream_wait(device, 1, 5);
    ops->stream_wait(device, 0, 5);
    assert_int_equal(card->calls[STAND_IN_stream_wait_event], waits + 1);
    uint64_t begun_ns = ops->now(device);
    ops->sync(device, 1);
    assert_true(ops->now(device) - begun_ns > 5 * MS);
}

TEST(memory_beside_the_pool_is_really_taken)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda:capacity=1GiB");
    const struct stand_in *card = library();
    uint64_t used_bytes = card->used_bytes, address, free_bytes, total_bytes;
    assert_int_equal(device->ops->outside(device, 99 * AR_MIB), AR_OK);
    assert_int_equal(card->used_bytes - used_bytes, 100 * AR_MIB);
    assert_int_equal(device->ops->outside(device, 300 * AR_MIB), AR_OK);
    assert_int_equal(card->used_bytes - used_bytes, 300 * AR_MIB);
    assert_int_equal(device->ops->outside(device, 40 * AR_MIB), AR_OK);
    assert_int_equal(card->used_bytes - used_bytes, 40 * AR_MIB);
    assert_int_equal(device->ops->outside(device, 2 * AR_GIB), AR_REFUSED);
    assert_int_equal(device->counters.outside_bytes, 40 * AR_MIB);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 986 * AR_MIB, &address), AR_REFUSED);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 984 * AR_MIB, &address), AR_OK);
    assert_int_equal(ar_backing_segment_alloc(device->backing, 1, &address), AR_REFUSED);
    assert_int_equal(device->counters.refused, 2);
    ar_backing_memory(device->backing, &free_bytes, &total_bytes);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(total_bytes, AR_GIB);
    assert_string_equal(ar_backing_problem(device->backing), "");
    assert_int_equal(device->ops->outside(device, 0), AR_OK);
}

TEST(the_pool_is_charged_what_it_reserved)
{
    struct ar_device *device = open_card("cuda:capacity=1GiB");
    struct ar_backing *backing = device->backing;
    const struct ar_backing_pool settings = {.release_threshold_bytes = 64 * AR_MIB};
    uint64_t first, second, used_bytes, reserved_bytes;
    assert_int_equal(backing->ops->pool_open(backing, &settings), AR_OK);
    assert_int_equal(backing->ops->pool_alloc(backing, 100 * AR_MIB, 0, &first), AR_OK);
    assert_int_equal(backing->ops->pool_alloc(backing, AR_GIB, 0, &second), AR_REFUSED);
    assert_int_equal(backing->ops->pool_alloc(backing, 1000, 1, &second), AR_OK);
    assert_int_equal(device->counters.physical_bytes, 128 * AR_MIB);
    assert_int_equal(backing->ops->pool_free(backing, first, 1), AR_OK);
    assert_int_equal(backing->ops->pool_free(backing, first, 1), AR_INVALID);
    assert_non_null(strstr(ar_backing_problem(backing), "no block of the pool starts"));
    assert_int_equal(device->counters.physical_bytes, 128 * AR_MIB);
    device->ops->sync(device, UINT32_MAX);
    assert_int_equal(device->counters.physical_bytes, 64 * AR_MIB);
    assert_int_equal(backing->ops->pool_trim(backing, 0), AR_OK);
    backing->ops->pool_memory(backing, &used_bytes, &reserved_bytes);
    assert_int_equal(used_bytes, 1000);
    assert_int_equal(reserved_bytes, 32 * AR_MIB);
    assert_int_equal(device->counters.physical_bytes, 32 * AR_MIB);
    close_card(&device); /* with a block that is still held */
}

/* Each question to the driver takes time that looks like the policy's, which asks after each
 * call. */
TEST(the_pool_is_asked_once_for_each_change)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda:capacity=1GiB");
    struct ar_backing *backing = device->backing;
    const struct stand_in *card = library();
    uint64_t address, used_bytes, reserved_bytes;
    assert_int_equal(backing->ops->pool_alloc(backing, 1000, 0, &address), AR_OK);
    uint64_t asked = card->calls[STAND_IN_mem_pool_get_attribute];
    assert_int_equal(backing->ops->pool_alloc(backing, 100 * AR_MIB, 0, &address), AR_OK);
    backing->ops->pool_memory(backing, &used_bytes, &reserved_bytes);
    assert_int_equal(used_bytes, 100 * AR_MIB + 1000);
    assert_int_equal(reserved_bytes, 128 * AR_MIB);
    assert_int_equal(card->calls[STAND_IN_mem_pool_get_attribute], asked + 1);
    assert_int_equal(backing->ops->pool_free(backing, address, 0), AR_OK);
    backing->ops->pool_memory(backing, &used_bytes, &reserved_bytes);
    assert_int_equal(used_bytes, 1000);
    assert_int_equal(reserved_bytes, 128 * AR_MIB);
    assert_int_equal(card->calls[STAND_IN_mem_pool_get_attribute], asked + 1);
    /* While the host waits for the card the driver releases memory; that is not reported. */
    device->ops->kernel(device, 0, MS);
    (void)device->ops->mark_ns(device, device->ops->mark(device));
    backing->ops->pool_memory(backing, &used_bytes, &reserved_bytes);
    assert_int_equal(card->calls[STAND_IN_mem_pool_get_attribute], asked + 2);
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

/* Two readings for each call of the driver, and none for a wait that is known to be over. */
TEST(readings_of_the_clock_are_counted)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    const uint64_t *readings = &device->counters.clock_readings;
    uint64_t before = *readings, address = alloc(device, 4096);
    assert_int_equal(*readings - before, 2);
    assert_int_equal(ar_backing_segment_free(device->backing, address), AR_OK);
    assert_int_equal(*readings - before, 4);
    address = alloc(device, 4096);
    device->ops->kernel(device, 0, MS);
    assert_int_equal(ar_backing_segment_free(device->backing, address), AR_OK);
    assert_int_equal(*readings - before, 10);
    assert_int_equal(device->backing->ops->pool_alloc(device->backing, 4096, 0, &address), AR_OK);
    assert_int_equal(*readings - before, 12);
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
    assert_int_equal(library()->used_bytes, 0);
}

/* Copies are of memory that is mapped, and a failed call of the driver is told. */
TEST(copies_of_mapped_memory)
{
    CLOSED(close_card) struct ar_device *device = open_card("cuda");
    struct ar_backing *backing = device->backing;
    uint64_t range, page = backing->page_bytes;
    ar_backing_handle handle;
    char host[4096], call[64];
    assert_int_equal(ar_backing_reserve(backing, 2 * page, &range), AR_OK);
    assert_int_equal(ar_backing_create(backing, page, &handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, range, handle), AR_OK);
    assert_int_equal(ar_backing_access(backing, range, page), AR_OK);
    assert_int_equal(ar_backing_copy(backing, range, range + page / 2, page / 2), AR_OK);
    assert_int_equal(ar_backing_copy_out(backing, host, range, sizeof host), AR_OK);
    assert_int_equal(ar_backing_copy_in(backing, range, host, sizeof host), AR_OK);
    assert_int_equal(library()->calls[STAND_IN_memcpy_dtod_async], 1);
    assert_int_equal(ar_backing_copy(backing, range, range + page / 2, page), AR_INVALID);
    assert_non_null(strstr(ar_backing_problem(backing), "nothing is mapped and usable at"));
    assert_int_equal(ar_backing_copy(backing, range + page, range, page), AR_INVALID);
    assert_int_equal(ar_backing_copy_out(backing, host, range + page, 1), AR_INVALID);
    assert_int_equal(ar_backing_copy_in(backing, range + page, host, 1), AR_INVALID);
    assert_false(device->failed);
    snprintf(call, sizeof call, "cuMemcpyDtoDAsync:%llu:999",
             (unsigned long long)library()->calls[STAND_IN_memcpy_dtod_async] + 1);
    setenv("STAND_IN_FAIL", call, 1);
    assert_int_equal(ar_backing_copy(backing, range, range + page / 2, page / 2), AR_INVALID);
    unsetenv("STAND_IN_FAIL");
    assert_true(device->failed);
}

/* A policy cleans up without knowing that the device failed: what it does wrong then is no news. */
TEST(the_first_failure_is_the_one_told)
{
    struct ar_device *device = open_card("cuda");
    struct ar_backing *backing = device->backing;
    uint64_t range, page = backing->page_bytes;
    ar_backing_handle handle;
    assert_int_equal(ar_backing_reserve(backing, 2 * page, &range), AR_OK);
    assert_int_equal(ar_backing_create(backing, page, &handle), AR_OK);
    assert_int_equal(ar_backing_map(backing, range, handle), AR_OK);
    assert_int_equal(ar_backing_release(backing, range), AR_INVALID); /* told while all is well */
    assert_non_null(strstr(ar_backing_problem(backing), "bytes of it are mapped"));
    char call[64];
    snprintf(call, sizeof call, "cuMemUnmap:%llu:999",
             (unsigned long long)library()->calls[STAND_IN_mem_unmap] + 1);
    setenv("STAND_IN_FAIL", call, 1);
    assert_int_equal(ar_backing_unmap(backing, range, page), AR_INVALID);
    unsetenv("STAND_IN_FAIL");
    assert_true(device->failed);
    assert_non_null(strstr(ar_backing_problem(backing), "cuMemUnmap returned CUDA_ERROR_UNKNOWN"));
    assert_int_equal(ar_backing_destroy(backing, handle), AR_INVALID);
    assert_int_equal(ar_backing_destroy(backing, handle + 1), AR_INVALID);
    assert_int_equal(ar_backing_release(backing, range), AR_INVALID);
    assert_int_equal(ar_backing_segment_free(backing, 12345), AR_INVALID);
    assert_non_null(strstr(ar_backing_problem(backing), "cuMemUnmap returned CUDA_ERROR_UNKNOWN"));
    close_card(&device);
    /* The same of a stream that cannot be. */
    device = open_card("cuda");
    device->ops->kernel(device, UINT32_MAX - 1, 1000);
    assert_true(device->failed);
    assert_non_null(strstr(device->ops->problem(device), "streams are numbered from 0"));
    assert_int_equal(ar_backing_segment_free(device->backing, 12345), AR_INVALID);
    assert_non_null(strstr(device->ops->problem(device), "streams are numbered from 0"));
    close_card(&device);
}

/* cuBLAS and the runtime pass NULL where they do not want to know why a function is missing. */
TEST(the_library_may_be_asked_without_a_why)
{
    (void)library();
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
