#include "tests/support/gen_rig.h"

#include "allocators/base/array.h"
#include "tests/support/test.h"
#include "workloads/gen/gen.h"
#include "workloads/trace/header.h"

struct held {
    uint64_t id, bytes;
    uint32_t stream;
    bool live;
};

struct pull {
    struct held *slots;
    size_t room;
    uint64_t next_id;
    uint64_t recorded; /* a bit per event number: generators use few */
    struct gen_rig_sums *sums;
};

struct trace_source *gen_rig_open(const char *text)
{
    struct ar_spec spec;
    struct trace_source *source = NULL;
    assert_ok(ar_spec_parse(text, &spec, &test_error));
    assert_ok(gen_open(&spec, &source, &test_error));
    char name[sizeof source->info.name];
    trace_name_put(name, sizeof name, text, strlen(text));
    assert_string_equal(source->info.name, name);
    ar_spec_close(&spec);
    return source;
}

static enum ar_status open_spec(const char *text, struct ar_error *error)
{
    struct ar_spec spec;
    struct trace_source *source = NULL;
    assert_int_equal(ar_spec_parse(text, &spec, error), AR_OK);
    enum ar_status status = gen_open(&spec, &source, error);
    assert_int_equal(status, AR_INVALID);
    ar_spec_close(&spec);
    return status;
}

void gen_rig_refused(const char *file, const char *section)
{
    cases_refused(file, section, open_spec);
}

static struct held *slot_at(struct pull *pull, uint32_t slot)
{
    assert_true(AR_ARRAY_REACH(pull->slots, pull->room, slot));
    if (slot >= pull->sums->most_slots)
        pull->sums->most_slots = (uint64_t)slot + 1;
    return &pull->slots[slot];
}

static unsigned bin_of(uint64_t bytes)
{
    return bytes ? 63u - (unsigned)__builtin_clzll(bytes) : 0;
}

static void take(struct pull *pull, const struct trace_event *event)
{
    struct gen_rig_sums *sums = pull->sums;
    struct held *held = slot_at(pull, event->slot);
    assert_false(held->live);
    assert_int_equal(event->id, pull->next_id);
    pull->next_id++;
    *held = (struct held){
        .id = event->id, .bytes = event->value, .stream = event->stream, .live = true};
    sums->allocs += event->kind == TRACE_ALLOC;
    sums->probes += event->kind == TRACE_PROBE;
    sums->live_bytes += event->value;
    sums->allocated_bytes += event->value;
    if (sums->live_bytes > sums->peak_live_bytes)
        sums->peak_live_bytes = sums->live_bytes;
    if (sums->steps >= GEN_RIG_STEPS)
        return;
    sums->bin_bytes[sums->steps][bin_of(event->value)] += event->value;
    if (sums->live_bytes > sums->step_peak_bytes[sums->steps])
        sums->step_peak_bytes[sums->steps] = sums->live_bytes;
}

static void give(struct pull *pull, const struct trace_event *event)
{
    struct held *held = slot_at(pull, event->slot);
    assert_true(held->live);
    assert_int_equal(held->id, event->id);
    assert_int_equal(held->stream, event->stream);
    assert_int_equal(event->flags, event->kind == TRACE_FREE_COMPLETED ? TRACE_WHOLE : 0);
    held->live = false;
    pull->sums->live_bytes -= held->bytes;
    pull->sums->frees++;
    pull->sums->free_requests += event->kind == TRACE_FREE_REQUESTED;
}

static void use(struct pull *pull, const struct trace_event *event)
{
    struct held *held = slot_at(pull, event->slot);
    assert_true(held->live);
    assert_int_equal(held->id, event->id);
    assert_int_not_equal(held->stream, event->stream);
    pull->sums->uses++;
}

/* Events between streams, waits of the host and trims. */
static void count_order(struct pull *pull, const struct trace_event *event)
{
    struct gen_rig_sums *sums = pull->sums;
    switch (event->kind) {
    case TRACE_RECORD:
        assert_true(event->value < 64);
        pull->recorded |= UINT64_C(1) << event->value;
        sums->records++;
        break;
    case TRACE_WAIT:
        assert_true(pull->recorded >> event->value & 1);
        sums->waits++;
        break;
    case TRACE_SYNC:
        sums->syncs++;
        break;
    case TRACE_TRIM:
        sums->trims++;
        break;
    default:
        fail_msg("event %llu is of kind %u", (unsigned long long)sums->events, event->kind);
    }
}

static void count(struct pull *pull, const struct trace_event *event)
{
    struct gen_rig_sums *sums = pull->sums;
    sums->events++;
    if (event->kind != TRACE_SYNC && event->stream >= sums->streams)
        sums->streams = (uint64_t)event->stream + 1;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        take(pull, event);
        break;
    case TRACE_FREE_COMPLETED:
    case TRACE_FREE_REQUESTED:
        give(pull, event);
        break;
    case TRACE_USE:
        use(pull, event);
        break;
    case TRACE_KERNEL:
        sums->kernels++;
        sums->kernel_ns += event->value;
        break;
    case TRACE_OUTSIDE:
        sums->outside_bytes = event->value;
        break;
    case TRACE_MARK:
        if (sums->steps < GEN_RIG_STEPS && (event->flags & TRACE_STEP)) {
            sums->step_live_bytes[sums->steps] = sums->live_bytes;
            sums->step_outside_bytes[sums->steps] = sums->outside_bytes;
        }
        sums->steps += (event->flags & TRACE_STEP) != 0;
        break;
    default:
        count_order(pull, event);
    }
}

void gen_rig_pull(struct trace_source *source, struct gen_rig_sums *sums)
{
    struct pull pull = {.sums = sums};
    memset(sums, 0, sizeof *sums);
    const uint32_t streams = source->info.streams; /* known before the first event */
    for (;;) {
        const struct trace_event *events;
        size_t span;
        assert_ok(trace_next(source, &events, &span, &test_error));
        if (span == 0)
            break;
        sums->spans++;
        for (size_t i = 0; i < span; i++)
            count(&pull, &events[i]);
        if (source->info.adaptive && trace_kind_has_block(events[0].kind) &&
            events[0].kind <= TRACE_PROBE)
            trace_answer(source, &events[0], &(struct trace_served){.served = true});
    }
    free(pull.slots);
    const struct trace_info *info = &source->info;
    assert_true(info->counted);
    assert_int_equal(info->events, sums->events);
    assert_int_equal(info->allocs, sums->allocs);
    assert_int_equal(info->probes, sums->probes);
    assert_int_equal(info->frees, sums->frees);
    assert_int_equal(info->steps, sums->steps);
    assert_int_equal(info->kernels, sums->kernels);
    assert_int_equal(info->peak_live_bytes, sums->peak_live_bytes);
    assert_int_equal(info->allocated_bytes, sums->allocated_bytes);
    assert_int_equal(info->slots, sums->most_slots);
    assert_int_equal(streams, sums->streams);
    assert_int_equal(info->streams, sums->streams);
    assert_true(info->has_uses == (sums->uses > 0));
}
