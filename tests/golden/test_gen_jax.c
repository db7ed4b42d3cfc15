/* The three generators with program=jax, compared with the recordings of those programs under JAX
 * at the driver. These have sizes in pages of 2 MiB, so both sides are counted in pages. As with
 * PyTorch: the peak of live bytes within 5 %, shares of sizes within 0.1 in total variation. In
 * addition, the number of requests is the one that JAX itself counted, and requests and frees are
 * in the recorded order. */
#include "allocators/base/array.h"
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/trace.h"

#define FOLDER    "workloads/data/driver/"
#define PAGE      (2 * AR_MIB)
#define END_PAGES 5 /* the request that marks the end of the compared part */
#define BINS      64
#define ALL       UINT64_MAX

#define MOST_PEAK_DIFFERENCE 0.05
#define MOST_VARIATION       0.1

struct program {
    const char *recording;
    uint64_t begin;    /* the request that marks the beginning */
    uint64_t requests; /* by JAX's own count */
    uint64_t unlike;   /* requests of another number of pages, which workloads/gen/jax.md names */
    const char *spec;
};

static const struct program tape_program = {
    FOLDER "jax_tape.bin.zst", 1444, 1206, 0,
    "gradient_tape:steps=40,layers=1,width=100,batches='100',lengths='1',dtype=float32,"
    "bias=separate,optimizer=none,program=jax"};

static const struct program products_program = {
    FOLDER "jax_products.bin.zst", 984, 480, 15,
    "matmul_cache:shapes='100;1000;4000;100;333',repeat=5,probes=0,kept=0,module=0,program=jax"};

static const struct program embedding_program = {
    FOLDER "jax_embedding.bin.zst", 464, 439, 0,
    "embedding:steps=16,first=0,every=4,tables=4,growth=0,optimizer=none,draw=cycle,"
    "rows='20000;300000;60000;1000000',batches='2048',bags='8',width=64,program=jax"};

/* Requests and frees in order: pages of a request; DROP + the number of the freed request. */
#define DROP (UINT64_C(1) << 62)

struct story {
    uint64_t *actions;
    size_t count, room;
    size_t last_step; /* actions up to the end of the last step */
    uint64_t requests, live_pages, peak_pages, all_pages;
    uint64_t share[BINS];
};

struct reading {
    struct trace_source *source;
    struct story *story;
    uint64_t begin; /* ALL: from the first event on */
    bool inside;
    uint64_t *number; /* 1 + the number of a request by its id; 0: not compared */
    uint64_t *pages;  /* by number */
    size_t room;
};

static void note(struct story *story, uint64_t action)
{
    assert_true(AR_ARRAY_ADD(story->actions, story->count, story->room, action));
}

static bool is_of_device(struct reading *reading, const struct trace_event *event)
{
    return !event->attributes ||
           trace_attributes_of(reading->source, event->attributes)->space != TRACE_SPACE_PINNED;
}

static void ask(struct reading *reading, const struct trace_event *event)
{
    struct story *story = reading->story;
    uint64_t pages = (event->value + PAGE - 1) / PAGE;
    assert_true(event->id < reading->room);
    if (!reading->inside || !is_of_device(reading, event))
        return;
    if (pages == END_PAGES && reading->begin != ALL) {
        reading->inside = false;
        return;
    }
    reading->pages[story->requests++] = pages;
    reading->number[event->id] = story->requests;
    story->live_pages += pages;
    story->all_pages += pages;
    story->share[63 - __builtin_clzll(pages)] += pages;
    if (story->live_pages > story->peak_pages)
        story->peak_pages = story->live_pages;
    note(story, pages);
}

static void free_requested(struct reading *reading, uint64_t id)
{
    uint64_t number = reading->number[id];
    if (!number || !reading->inside)
        return;
    reading->number[id] = 0;
    reading->story->live_pages -= reading->pages[number - 1];
    note(reading->story, DROP + number - 1);
}

/* `begin`: the id of the request after which it begins, or ALL. */
static void read_story(struct trace_source *source, uint64_t begin, struct story *story)
{
    struct reading reading = {
        .source = source, .story = story, .begin = begin, .inside = begin == ALL, .room = 1 << 16};
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = AR_OK;
    memset(story, 0, sizeof *story);
    reading.number = calloc(reading.room, sizeof *reading.number);
    reading.pages = calloc(reading.room, sizeof *reading.pages);
    assert_true(reading.number && reading.pages);
    for (const struct trace_event *event;
         (event = trace_read(&cursor, &status, &test_error)) != NULL;) {
        if (event->kind == TRACE_ALLOC)
            ask(&reading, event);
        if (event->kind == TRACE_ALLOC && event->id == begin)
            reading.inside = true;
        if (event->kind == TRACE_FREE_REQUESTED || event->flags & TRACE_WHOLE)
            free_requested(&reading, event->id);
        if (event->kind == TRACE_MARK)
            story->last_step = story->count;
    }
    assert_ok(status);
    free(reading.number);
    free(reading.pages);
    trace_close(source);
}

static double variation(const struct story *made, const struct story *recorded)
{
    double sum = 0;
    for (int bin = 0; bin < BINS; bin++) {
        double a = (double)made->share[bin] / (double)made->all_pages;
        double b = (double)recorded->share[bin] / (double)recorded->all_pages;
        sum += a < b ? b - a : a - b;
    }
    return sum / 2;
}

/* The same order; `unlike` requests may have another size. */
static void hold_order(const struct story *made, const struct story *recorded, uint64_t unlike)
{
    uint64_t others = 0;
    assert_true(recorded->count >= made->last_step);
    for (size_t i = 0; i < made->last_step; i++) {
        if (made->actions[i] == recorded->actions[i])
            continue;
        if (made->actions[i] >= DROP || recorded->actions[i] >= DROP)
            fail_msg("action %zu is %" PRIu64 ", recorded is %" PRIu64, i, made->actions[i],
                     recorded->actions[i]);
        others++;
    }
    for (size_t i = made->last_step; i < recorded->count; i++) /* no request follows */
        assert_true(recorded->actions[i] >= DROP);
    assert_int_equal(others, unlike);
}

static void hold(const struct program *program)
{
    struct story made, recorded;
    struct trace_source *source = trace_rig_source(program->recording);
    read_story(source, program->begin, &recorded);
    read_story(gen_rig_open(program->spec), ALL, &made);
    double peak = (double)made.peak_pages / (double)recorded.peak_pages - 1;
    double sizes = variation(&made, &recorded);
    print_message("%s: %" PRIu64 " requests, peak %" PRIu64 " pages, recorded %" PRIu64
                  ", sizes differ by %.5f\n",
                  program->recording, made.requests, made.peak_pages, recorded.peak_pages, sizes);
    assert_int_equal(recorded.requests, program->requests);
    assert_int_equal(made.requests, program->requests);
    assert_true(peak <= MOST_PEAK_DIFFERENCE && peak >= -MOST_PEAK_DIFFERENCE);
    assert_true(sizes <= MOST_VARIATION);
    hold_order(&made, &recorded, program->unlike);
    free(made.actions);
    free(recorded.actions);
}

TEST(tape)
{
    hold(&tape_program);
}

TEST(products)
{
    hold(&products_program);
}

TEST(embedding)
{
    hold(&embedding_program);
}

/* By these measures the eager generators are other programs. */
TEST(scores_can_fail)
{
    struct story made, recorded;
    struct trace_source *source = trace_rig_source(products_program.recording);
    read_story(source, products_program.begin, &recorded);
    read_story(gen_rig_open("matmul_cache:shapes='100;1000;4000;100;333',repeat=5,probes=0,"
                            "kept=0,module=0"),
               ALL, &made);
    assert_true(variation(&made, &recorded) > MOST_VARIATION);
    assert_int_equal(made.requests, 151);
    free(made.actions);
    free(recorded.actions);
}
