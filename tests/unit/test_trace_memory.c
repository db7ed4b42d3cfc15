/* The trace in memory, and the check that every reader uses. */
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/trace/trace.h"

TEST(slots_are_used_again)
{
    static const uint32_t slots[] = {0, 1, 0, 0, 0, 0, 1, 1};
    CLOSED(close_trace)
    struct trace_source *source = tiny_trace("a,0,10 a,1,20 f,0 a,2,5 m,step f,2 f,1 a,3,0");
    const struct trace_event *events;
    size_t count;
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(count, COUNT(slots));
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
    assert_int_equal(count, COUNT(slots));
}

/* Without a completion in the whole trace, a free request frees the slot; otherwise it does not. */
TEST(free_requested_and_slots)
{
    CLOSED(close_trace) struct trace_source *final = tiny_trace("a,0,1 r,0 a,1,1 r,1");
    CLOSED(close_trace) struct trace_source *split = tiny_trace("a,0,1 r,0 a,1,1 f,0 r,1");
    assert_int_equal(final->info.slots, 1);
    assert_false(final->info.has_split_frees);
    assert_int_equal(split->info.slots, 2);
    assert_true(split->info.has_split_frees);
}

static enum ar_status open_events(const char *events, struct ar_error *error)
{
    struct trace_source *source;
    return tiny_trace_open(events, &source, error);
}

TEST(invalid_events_are_refused)
{
    cases_refused("trace_memory", __func__, open_events);
    struct trace_source *source;
    struct trace_memory *memory = trace_memory_create(&(struct trace_info){.name = "made"});
    assert_ok(
        trace_memory_append(memory, &(struct trace_event){.kind = 15}, NULL, NULL, &test_error));
    assert_says(trace_memory_open(memory, &source, &test_error), AR_INVALID,
                "made: event 0: there is no event of kind 15");
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
    CLOSED(close_trace)
    struct trace_source *first = tiny_trace("a,0,10 m,warm r,0 a,1,5 f,0 m,step");
    CLOSED(close_trace) struct trace_source *second;
    assert_ok(trace_memory_copy(first, &second, &test_error));
    assert_memory_equal(first->info.sha256, second->info.sha256, 32);
    assert_int_equal(second->info.events, 6);
}
