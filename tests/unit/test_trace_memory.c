/* The trace in memory, and the check that every reader uses. */
#include "tests/support/test.h"
#include "workloads/trace/trace.h"

struct step {
    struct trace_event event;
    const char *text;
};

static enum ar_status open_steps(const struct step *steps, size_t count, struct trace_source **out,
                                 struct ar_error *error)
{
    struct trace_info info = {.name = "made", .complete = true};
    struct trace_memory *memory = trace_memory_create(&info);
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(trace_memory_append(memory, &steps[i].event, NULL, steps[i].text, error),
                         AR_OK);
    return trace_memory_open(memory, out, error);
}

#define ALLOC(n, bytes)                                                                            \
    {                                                                                              \
        {.kind = TRACE_ALLOC, .id = (n), .value = (bytes)}, NULL                                   \
    }
#define FREE(n)                                                                                    \
    {                                                                                              \
        {.kind = TRACE_FREE_COMPLETED, .id = (n)}, NULL                                            \
    }
#define FREE_REQUESTED(n)                                                                          \
    {                                                                                              \
        {.kind = TRACE_FREE_REQUESTED, .id = (n), .stream = TRACE_NO_STREAM}, NULL                 \
    }
#define MARK(label)                                                                                \
    {                                                                                              \
        {.kind = TRACE_MARK}, (label)                                                              \
    }
TEST(slots_are_used_again)
{
    static const struct step steps[] = {ALLOC(0, 10), ALLOC(1, 20), FREE(0), ALLOC(2, 5),
                                        MARK("step"), FREE(2),      FREE(1), ALLOC(3, 0)};
    static const uint32_t slots[] = {0, 1, 0, 0, 0, 0, 1, 1};
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(open_steps(steps, COUNT(steps), &source, &test_error));
    const struct trace_event *events;
    size_t count;
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(count, COUNT(steps));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(events[i].slot, slots[i]);
    assert_int_equal(events[2].flags, TRACE_WHOLE);
    assert_int_equal(events[4].flags, TRACE_STEP);
    assert_string_equal(trace_text_of(source, events[4].value), "step");
    const struct trace_info *info = &source->info;
    assert_int_equal(info->slots, 2);
    assert_int_equal(info->allocs, 4);
    assert_int_equal(info->frees, 3);
    assert_int_equal(info->zero_allocs, 1);
    assert_int_equal(info->steps, 1);
    assert_int_equal(info->peak_live_bytes, 30);
    assert_int_equal(info->allocated_bytes, 35);
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(count, 0);
    assert_ok(trace_rewind(source, &test_error));
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(count, COUNT(steps));
}

/* Without a completion in the whole trace, a free request frees the slot; otherwise it does not. */
TEST(free_requested_and_slots)
{
    static const struct step final[] = {ALLOC(0, 1), FREE_REQUESTED(0), ALLOC(1, 1),
                                        FREE_REQUESTED(1)};
    static const struct step split[] = {ALLOC(0, 1), FREE_REQUESTED(0), ALLOC(1, 1), FREE(0),
                                        FREE_REQUESTED(1)};
    struct trace_source *source;
    assert_ok(open_steps(final, COUNT(final), &source, &test_error));
    assert_int_equal(source->info.slots, 1);
    assert_false(source->info.has_split_frees);
    trace_close(source);
    assert_ok(open_steps(split, COUNT(split), &source, &test_error));
    assert_int_equal(source->info.slots, 2);
    assert_true(source->info.has_split_frees);
    trace_close(source);
}

static void refused(const struct step *steps, size_t count, const char *part)
{
    struct trace_source *source = NULL;
    struct ar_error error;
    assert_int_equal(open_steps(steps, count, &source, &error), AR_INVALID);
    if (!strstr(error.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, error.text);
}

TEST(invalid_events_are_refused)
{
    static const struct step unknown[] = {ALLOC(0, 1), FREE(1)};
    static const struct step twice[] = {ALLOC(0, 1), FREE(0), FREE(0)};
    static const struct step reused[] = {ALLOC(0, 1), FREE(0), ALLOC(0, 1)};
    static const struct step ahead[] = {ALLOC(1, 1)};
    static const struct step huge[] = {ALLOC(0, TRACE_BYTES_LIMIT)};
    static const struct step sum[] = {
        ALLOC(0, TRACE_BYTES_LIMIT - 1),
        ALLOC(1, TRACE_BYTES_LIMIT - 1),
        ALLOC(2, TRACE_BYTES_LIMIT - 1),
        ALLOC(3, TRACE_BYTES_LIMIT - 1),
        ALLOC(4, TRACE_BYTES_LIMIT - 1),
        ALLOC(5, TRACE_BYTES_LIMIT - 1),
        ALLOC(6, TRACE_BYTES_LIMIT - 1),
        ALLOC(7, TRACE_BYTES_LIMIT - 1),
        ALLOC(8, 8),
    };
    static const struct step gone[] = {ALLOC(0, 1), FREE_REQUESTED(0), FREE_REQUESTED(0)};
    static const struct step time[] = {{{.kind = TRACE_TIME, .value = 5}, NULL},
                                       {{.kind = TRACE_TIME, .value = 4}, NULL}};
    static const struct step wait[] = {{{.kind = TRACE_WAIT, .value = 5}, NULL}};
    static const struct step stream[] = {{{.kind = TRACE_KERNEL, .stream = 65536}, NULL}};
    static const struct step kind[] = {{{.kind = 15}, NULL}};
    static const struct step label[] = {MARK("a,b")};
    refused(unknown, COUNT(unknown), "made: event 1: no block of id 1");
    refused(twice, COUNT(twice), "event 2: block 0 was freed before this");
    refused(reused, COUNT(reused), "event 2: id 0 was used before");
    refused(ahead, COUNT(ahead), "event 0: id 1 is ahead");
    refused(huge, COUNT(huge), "event 0: 1152921504606846976 bytes");
    refused(sum, COUNT(sum), "event 8: the requests come to 2^63 bytes");
    refused(gone, COUNT(gone), "event 2: the free of block 0 was requested before this");
    refused(time, COUNT(time), "event 1: the time goes back");
    refused(wait, COUNT(wait), "event 0: a stream waits for event 5");
    refused(stream, COUNT(stream), "event 0: stream 65536");
    refused(kind, COUNT(kind), "event 0: there is no event of kind 15");
    refused(label, COUNT(label), "event 0: a mark has a label");
}

TEST(keys_are_kept_once_and_in_order)
{
    struct trace_memory *memory = trace_memory_create(NULL);
    struct trace_attributes keys = {.tag = "w", .pool = 3, .rest = "x=1"};
    struct trace_event event = {.kind = TRACE_ALLOC, .value = 8};
    for (event.id = 0; event.id < 600; event.id++) {
        keys.pool = 1 + (uint32_t)event.id % 300;
        assert_ok(trace_memory_append(memory, &event, &keys, NULL, &test_error));
    }
    CLOSED(close_trace) struct trace_source *source;
    assert_ok(trace_memory_open(memory, &source, &test_error));
    const struct trace_event *events;
    size_t count;
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(events[599].attributes, 300);
    const struct trace_attributes *kept = trace_attributes_of(source, events[299].attributes);
    assert_string_equal(kept->tag, "w");
    assert_string_equal(kept->rest, "x=1");
    assert_int_equal(kept->pool, 300);
    assert_int_equal(kept->given, TRACE_GIVEN_TAG | TRACE_GIVEN_POOL);
    assert_null(trace_attributes_of(source, 0)->tag);
}

TEST(keys_that_cannot_be_written_are_refused)
{
    const struct trace_attributes bad[] = {
        {.tag = "a,b"}, {.tag = "a\nb"}, {.rest = "no equals"}, {.align = 3}, {.rest = "x=1,x"}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct trace_memory *memory = trace_memory_create(NULL);
        struct trace_event event = {.kind = TRACE_ALLOC};
        assert_int_equal(trace_memory_append(memory, &event, &bad[i], NULL, &test_error),
                         AR_INVALID);
        trace_memory_discard(memory);
    }
}

TEST(a_copy_is_the_same_trace)
{
    static const struct step steps[] = {ALLOC(0, 10), MARK("warm"), FREE_REQUESTED(0),
                                        ALLOC(1, 5),  FREE(0),      MARK("step")};
    struct trace_source *first, *second;
    assert_ok(open_steps(steps, COUNT(steps), &first, &test_error));
    assert_ok(trace_memory_copy(first, &second, &test_error));
    assert_memory_equal(first->info.sha256, second->info.sha256, 32);
    assert_int_equal(second->info.events, COUNT(steps));
    trace_close(first);
    trace_close(second);
}
