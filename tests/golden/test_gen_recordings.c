/* The generators that imitate programs, compared with recordings of those programs. With a
 * program's parameters, a generator's live bytes at each step's end must be within 5 % of the
 * recorded ones, and the shares of the requested bytes by log2 of the size within 0.1 of the
 * recorded ones in total variation. The scores are printed. The two that imitate training must also
 * make the recorded requests and frees in the recorded order. */
#include "allocators/base/array.h"
#include "tests/support/gen_rig.h"
#include "tests/support/test.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/trace.h"

#define STEPS 512
#define BINS  64

#define MOST_LIVE_DIFFERENCE 0.05
#define MOST_VARIATION       0.1

/* The tape of 100 rows of 100, and the products after it, in the workspaces of its two threads. */
static const char tape_spec[] = "gradient_tape:steps=300,layers=1,width=100,batches='100',"
                                "lengths='1',dtype=float32,bias=separate,optimizer=none";
static const char products_spec[] = "matmul_cache:shapes='100;1000;4000;100;8000;333',repeat=10,"
                                    "probes=0,kept=0,module=0,workspaces=2";

/* The recorded recommender drew its tables, batches and bags from Python's random.Random(1):
 * these are the values. */
static const char embedding_spec[] =
    "embedding:steps=60,first=0,every=4,tables=14,growth=0,optimizer=none,draw=cycle,rows='"
    "22353;1123778;11429;2991132;177251;202218;118806;46085;485418;58855;1006139;45589;4337"
    "6;1494020"
    "',sparse='"
    "0;1;0;0;0;0;0;0;1;1;1;1;1;1"
    "',batches='"
    "2048;2048;4096;8192;2048;8192;4096;2048;2048;8192;4096;4096;4096;2048;8192;4096;4096;2"
    "048;4096;4096;2048;8192;8192;2048;4096;2048;2048;4096;8192;4096;2048;4096;8192;2048;20"
    "48;4096;4096;2048;8192;4096;4096;2048;2048;2048;2048;2048;4096;4096;2048;2048;2048;819"
    "2;4096;8192;4096;4096;4096;8192;8192;8192"
    "',bags='"
    "9;16;16;13;13;14;1;15;8;19;11;1;13;7;14;1;17;8;16;18;8;8;8;15;18;4;6;10;11;17;14;17;7;"
    "10;10;19;17;13;19;2;14;6;12;18;12;15;17;4;6;17;12;16;1;16;2;19;19;13;6;6;18;18;8;13;17"
    ";12;12;15;9;18;1;13;17;5;17;18;7;14;16;12;19;18;7;17;12;1;18;18;11;15;1;6;18;19;6;3;18"
    ";9;3;3;1;15;1;9;8;4;6;12;10;3;6;6;9;10;15;11;16;16;4;1;13;11;14;7;9;4;9;17;14;1;8;1;13"
    ";5;2;6;17;14;18;8;17;15;8;17;11;14;2;10;5;7;2;10;3;10;10;6;14;19;9;5;1;18;19;7;19;15;6"
    ";17;2;13;7;4;7;19;14;19;7;16;4;13;13;10;1;6;7;11;19;5;11;14;9;4;13;18;12;18;16;18;8;3;"
    "2;3;5;6;6;18;7;9;11;17;12;11;11;4;10;8;16;5;19;18;3;13;5;5;11;4;19;13;3;19;18;19;3;9;1"
    "2;10;19;18;4;15;9;4;10;1;1;3;14;4;2;7;8;19;14;4;15;6;8;6;4;14;13;18;10;18;7;11;2;1;1;1"
    "0;11;15;13;11;13;3;11;15;4;9;7;18;16;12;9;6;18;7;7;8;12;3;9;3;15;3;19;11;8;13;2;11;6;1"
    "1;19;10;8;11;4;18;19;3;13;3;9;18;3;3;1;1;10;12;16;16;5;17;11;3;17;6;6;5;5;11;10;4;17;1"
    "0;7;5;18;2;11;18;7;6;10;14;18;6;2;8;9;3;15;14;18;9;18;15;18;15;1;13;1;14;19;1;2;12;19;"
    "5;19;5;5;9;9;13;13;6;3;8;16;1;6;17;11;17;15;8;8;11;16;8;14;11;18;9;8;2;3;17;12;6;17;7;"
    "10;10;18;12;6;15;3;4;17;19;13;6;5;9;7;19;2;16;13;12;13;17;6;18;2;17;3;9;4;9;3;5;3;15;8"
    ";13;14;13;6;11;15;5;16;7;4;14;18;14;4;10;9;8;13;18;1;7;15;19;1;1;8;9;7;6;10;5;18;7;9;1"
    "0"
    "'";

/* The requests of a program in some of its steps. */
struct story {
    uint64_t steps;
    uint64_t live_bytes[STEPS]; /* at each step's end */
    double share[BINS];         /* of the requested bytes */
    uint64_t kernel_ns;
    uint64_t *actions; /* an allocation: its bytes; a free: FREE + the block's number; a step */
    size_t deed_count, deed_room;
};

#define FREE     (UINT64_C(1) << 62)
#define STEP_END (UINT64_C(1) << 63)

static void note(struct story *story, uint64_t action)
{
    assert_true(AR_ARRAY_ADD(story->actions, story->deed_count, story->deed_room, action));
}

struct reading {
    uint64_t first, last, step; /* steps, from 1 */
    uint64_t live_bytes, asked_bytes;
    uint64_t *bytes; /* of a block by its id */
    size_t room;
    struct story *story;
};

static void ask(struct reading *reading, const struct trace_event *event, bool counts)
{
    assert_true(AR_ARRAY_REACH(reading->bytes, reading->room, event->id));
    reading->bytes[event->id] = event->value;
    reading->live_bytes += event->value;
    if (!counts || event->value == 0)
        return;
    reading->asked_bytes += event->value;
    reading->story->share[63 - __builtin_clzll(event->value)] += (double)event->value;
    note(reading->story, event->value);
}

static void free_requested(struct reading *reading, const struct trace_event *event, bool counts)
{
    reading->live_bytes -= reading->bytes[event->id];
    if (counts)
        note(reading->story, FREE + event->id);
}

static void end_step(struct reading *reading, bool counts)
{
    struct story *story = reading->story;
    reading->step++;
    if (!counts || story->steps == STEPS)
        return;
    story->live_bytes[story->steps++] = reading->live_bytes;
    note(story, STEP_END);
}

static void read_event(struct reading *reading, const struct trace_event *event)
{
    bool counts = reading->step >= reading->first && reading->step <= reading->last;
    if (event->kind == TRACE_ALLOC)
        ask(reading, event, counts);
    else if (event->kind == TRACE_FREE_REQUESTED ||
             (event->kind == TRACE_FREE_COMPLETED && (event->flags & TRACE_WHOLE)))
        free_requested(reading, event, counts);
    else if (event->kind == TRACE_KERNEL)
        reading->story->kernel_ns += counts ? event->value : 0;
    else if (event->kind == TRACE_MARK)
        end_step(reading, counts);
}

/* Reads steps `first` to `last`, from 1, of a source, and closes it. */
static void read_story(struct trace_source *source, uint64_t first, uint64_t last,
                       struct story *story)
{
    struct reading reading = {.first = first, .last = last, .step = 1, .story = story};
    memset(story, 0, sizeof *story);
    struct trace_cursor cursor = {.source = source};
    enum ar_status status = AR_OK;
    for (const struct trace_event *event;
         (event = trace_read(&cursor, &status, &test_error)) != NULL;)
        read_event(&reading, event);
    assert_ok(status);
    assert_true(reading.asked_bytes > 0);
    for (int bin = 0; bin < BINS; bin++)
        story->share[bin] /= (double)reading.asked_bytes;
    free(reading.bytes);
    trace_close(source);
}

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

static double live_difference(const struct story *made, const struct story *recorded)
{
    double most = 0;
    for (uint64_t i = 0; i < recorded->steps; i++) {
        double live = (double)recorded->live_bytes[i];
        double difference = distance((double)made->live_bytes[i], live) / live;
        most = difference > most ? difference : most;
    }
    return most;
}

static double variation(const struct story *made, const struct story *recorded)
{
    double sum = 0;
    for (int bin = 0; bin < BINS; bin++)
        sum += distance(made->share[bin], recorded->share[bin]);
    return sum / 2;
}

static void hold(const char *name, const struct story *made, const struct story *recorded,
                 uint64_t steps)
{
    double live = live_difference(made, recorded);
    double sizes = variation(made, recorded);
    print_message("%s: %llu steps, live bytes at step ends within %.4f %%, sizes differ by %.5f, "
                  "kernels %.1f ms by the roofline, %.1f ms recorded\n",
                  name, (unsigned long long)recorded->steps, 100 * live, sizes,
                  (double)made->kernel_ns / 1e6, (double)recorded->kernel_ns / 1e6);
    assert_int_equal(recorded->steps, steps);
    assert_int_equal(made->steps, steps);
    assert_true(live <= MOST_LIVE_DIFFERENCE);
    assert_true(sizes <= MOST_VARIATION);
}

/* The same requests and frees in the same order, up to the last step's end. */
static void hold_order(const struct story *made, const struct story *recorded)
{
    assert_int_equal(made->deed_count, recorded->deed_count);
    for (size_t i = 0; i < made->deed_count; i++)
        if (made->actions[i] != recorded->actions[i])
            fail_msg("action %zu is %llu, recorded is %llu", i,
                     (unsigned long long)made->actions[i],
                     (unsigned long long)recorded->actions[i]);
}

static struct story made_story, recorded_story;

static void read_both(const char *path, uint64_t first, uint64_t last, const char *spec)
{
    read_story(trace_rig_source(path), first, last, &recorded_story);
    read_story(gen_rig_open(spec), 1, last - first + 1, &made_story);
}

static void forget_both(void)
{
    free(made_story.actions);
    free(recorded_story.actions);
}

static const char tape_path[] = "workloads/data/tape_small.default.csv.gz";
static const char embedding_path[] = "workloads/data/dlrm_embedding.default.csv.gz";

TEST(tape)
{
    read_both(tape_path, 1, 300, tape_spec);
    hold("gradient_tape, tape_small 1-300", &made_story, &recorded_story, 300);
    hold_order(&made_story, &recorded_story);
    forget_both();
}

TEST(products)
{
    read_both(tape_path, 301, 360, products_spec);
    hold("matmul_cache, tape_small 301-360", &made_story, &recorded_story, 60);
    forget_both();
}

TEST(recommender)
{
    read_both(embedding_path, 1, 60, embedding_spec);
    hold("embedding, dlrm_embedding", &made_story, &recorded_story, 60);
    hold_order(&made_story, &recorded_story);
    forget_both();
}

/* The scores distinguish programs: with one wrong option they fail. */
TEST(scores_can_fail)
{
    char wrong[sizeof embedding_spec + 64];
    snprintf(wrong, sizeof wrong, "%s,dtype=float16", embedding_spec);
    read_both(embedding_path, 1, 60, wrong);
    assert_true(live_difference(&made_story, &recorded_story) > MOST_LIVE_DIFFERENCE);
    forget_both();
    snprintf(wrong, sizeof wrong, "%s,hidden=4096", embedding_spec);
    read_both(embedding_path, 1, 60, wrong);
    assert_true(variation(&made_story, &recorded_story) > MOST_VARIATION);
    forget_both();
}
