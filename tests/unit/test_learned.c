/* What `learned` sees in small programs that are written for it: steps, blocks, order, sizes. */
#include <math.h>

#include "allocators/base/rng.h"
#include "tests/support/test.h"
#include "workloads/learned/learned.h"
#include "workloads/learned/model.h"
#include "workloads/trace/trace.h"

/* Writes a program: requests by size, frees by id, steps. */
struct program {
    struct trace_memory *memory;
    uint64_t next_id;
    bool unmarked;
};

static void append(struct program *self, struct trace_event event, const char *text)
{
    assert_ok(trace_memory_append(self->memory, &event, NULL, text, &test_error));
}

static uint64_t request(struct program *self, uint64_t bytes)
{
    append(self, (struct trace_event){.kind = TRACE_ALLOC, .id = self->next_id, .value = bytes},
           NULL);
    return self->next_id++;
}

static void release(struct program *self, uint64_t id)
{
    append(self, (struct trace_event){.kind = TRACE_FREE_COMPLETED, .id = id}, NULL);
}

/* A block of the step alone. */
static void brief(struct program *self, uint64_t bytes)
{
    release(self, request(self, bytes));
}

static void end_step(struct program *self)
{
    if (!self->unmarked)
        append(self, (struct trace_event){.kind = TRACE_MARK}, "step");
}

static struct program begin(void)
{
    struct program program = {.memory = trace_memory_create(NULL)};
    assert_non_null(program.memory);
    return program;
}

static enum ar_status try_learn(struct program *self, struct learned_model **model,
                                struct ar_error *error)
{
    struct trace_source *source = NULL;
    assert_int_equal(trace_memory_open(self->memory, &source, error), AR_OK);
    enum ar_status status = learned_model_make(source, NULL, model, error);
    trace_close(source);
    return status;
}

static void close_model(struct learned_model **model)
{
    learned_model_close(*model);
}

static struct learned_model *learn(struct program *self)
{
    struct learned_model *model = NULL;
    assert_ok(try_learn(self, &model, &test_error));
    return model;
}

/* What a long run has at the end of each step: live bytes, the first and second request, and the
 * largest. */
#define STEPS 2000
struct run {
    uint64_t live[STEPS], first[STEPS], second[STEPS], largest[STEPS], misfits;
};

static void run_on(const struct learned_model *model, unsigned steps, uint64_t seed,
                   struct run *out)
{
    CLOSED(close_trace) struct trace_source *source = NULL;
    const struct trace_event *events;
    uint64_t live = 0, of_slot[1024];
    size_t count;
    memset(out, 0, sizeof *out);
    assert_ok(learned_open_lean(model, steps, seed, &source, &test_error));
    for (unsigned step = 0; step < steps; step++) {
        size_t requests = 0;
        assert_ok(trace_next(source, &events, &count, &test_error));
        for (size_t i = 0; i < count; i++)
            if (events[i].kind == TRACE_ALLOC) {
                assert_true(events[i].slot < 1024);
                live += of_slot[events[i].slot] = events[i].value;
                if (requests < 2)
                    (requests ? out->second : out->first)[step] = events[i].value;
                if (events[i].value > out->largest[step])
                    out->largest[step] = events[i].value;
                requests++;
            } else {
                assert_int_equal(events[i].kind, TRACE_FREE_COMPLETED);
                live -= of_slot[events[i].slot];
            }
        out->live[step] = live;
        assert_ok(trace_next(source, &events, &count, &test_error));
        assert_int_equal(count, 0); /* the end comes after each step */
    }
    out->misfits = learned_misfits(source);
}

static struct run run;

/* The batch of the next step is made before that of this one is freed. */
TEST(a_prefetched_batch_is_freed_by_the_next_step)
{
    struct program program = begin();
    uint64_t weights = request(&program, 5000), batch = request(&program, 100);
    for (int step = 0; step < 20; step++) {
        uint64_t next = request(&program, 100 + (uint64_t)(step * 7 % 5));
        brief(&program, 1000);
        release(&program, batch);
        batch = next;
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->fates[weights], LEARNED_PERMANENT);
    assert_int_equal(model->fates[batch], LEARNED_CARRIED);
    assert_int_equal(model->order, LEARNED_REPEAT);
    assert_int_equal(model->period, 5);
    run_on(model, 500, 1, &run);
    for (int step = 0; step < 500; step++)
        assert_int_equal(run.live[step], 5100 + step * 7 % 5);
    assert_int_equal(run.misfits, 0);
}

/* Results that are kept, of another size each time, are a leak beside a leak of equal blocks;
 * blocks of other sizes in the first steps are not. */
TEST(leaks_of_varied_sizes)
{
    struct program program = begin();
    uint64_t weights = request(&program, 1 << 20), state_bytes = 0, kept = 0;
    uint64_t least = 0, most = 0, least_bytes = UINT64_MAX, most_bytes = 0;
    for (unsigned i = 0; i < 60; i++) {
        uint64_t bytes = 80000 + 997 * (i * 17 % 41);
        brief(&program, 4096 + 512 * (i % 7));
        request(&program, 4);
        if (i < 3)
            state_bytes = request(&program, (2 << 20) + 4096 * i);
        if (i % 5 == 2)
            kept = request(&program, bytes);
        if (i % 5 == 2 && i >= 15 && bytes < least_bytes) {
            least_bytes = bytes;
            least = kept;
        }
        if (i % 5 == 2 && i >= 15 && bytes > most_bytes) {
            most_bytes = bytes;
            most = kept;
        }
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->fates[weights], LEARNED_PERMANENT);
    assert_int_equal(model->fates[state_bytes], LEARNED_PERMANENT);
    assert_int_equal(model->fates[kept], LEARNED_LEAKED);
    assert_int_equal(model->fates[least], LEARNED_LEAKED);
    assert_int_equal(model->fates[most], LEARNED_LEAKED);
    assert_true(model->leaked_bytes > 80000 / 5 * 0.75);
}

/* Blocks made in some of the first steps are made once; one every five steps is a leak. */
TEST(lazy_blocks_and_leaks)
{
    struct program program = begin();
    uint64_t lazy = 0, leak = 0;
    for (int step = 0; step < 40; step++) {
        if (step == 0 || step == 1 || step == 3 || step == 7)
            lazy = request(&program, 4096);
        brief(&program, 1000);
        if (step % 5 == 2)
            leak = request(&program, 512);
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->fates[lazy], LEARNED_PERMANENT);
    assert_int_equal(model->fates[leak], LEARNED_LEAKED);
    assert_int_equal(model->warmup, 8);
    assert_int_equal(model->order, LEARNED_REPEAT);
    run_on(model, 1000, 1, &run);
    assert_int_equal(run.live[999], 4 * 4096 + 200 * 512);
}

/* Steps of drawn sizes, each fourth one an evaluation. */
TEST(an_evaluation_comes_every_fourth_step)
{
    struct program program = begin();
    for (int step = 0; step < 40; step++) {
        brief(&program, 1000 + 8 * (uint64_t)(step * step % 37));
        if (step % 4 == 3) {
            brief(&program, 77777);
            brief(&program, 7);
        }
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->order, LEARNED_PERIOD);
    assert_int_equal(model->period, 4);
    run_on(model, 1000, 3, &run);
    for (int step = 0; step < 1000; step++)
        assert_int_equal(run.largest[step] == 77777, step % 4 == 3);
}

/* Rare steps without a period keep their rate: 8 of 100. */
TEST(rare_steps_keep_their_rate)
{
    static const int rare[] = {7, 11, 25, 40, 44, 63, 80, 91};
    struct program program = begin();
    unsigned found = 0;
    for (int step = 0, at = 0; step < 100; step++) {
        brief(&program, 1000 + 8 * (uint64_t)(step * step % 101));
        if (at < 8 && rare[at] == step) {
            brief(&program, 77777);
            at++;
        }
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->order, LEARNED_FOLLOW);
    run_on(model, STEPS, 1, &run);
    for (int step = 100; step < STEPS; step++)
        found += run.largest[step] == 77777;
    assert_in_range(found, STEPS * 4 / 100, STEPS * 14 / 100);
}

/* Two sizes that are linear in one length stay so, between recorded lengths and beyond them. */
TEST(sizes_follow_a_length)
{
    struct program program = begin();
    uint64_t most = 0, least = UINT64_MAX;
    unsigned between = 0, beyond = 0;
    for (uint64_t step = 0, length = 1; step < 60; step++) {
        length = length * 1103 % 1999;
        most = length > most ? length : most;
        least = length < least ? length : least;
        uint64_t ids[2] = {request(&program, 64 * length), request(&program, 24 * length + 4096)};
        release(&program, ids[0]);
        release(&program, ids[1]);
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->order, LEARNED_FOLLOW);
    run_on(model, STEPS, 5, &run);
    for (int step = 60; step < STEPS; step++) {
        uint64_t length = run.first[step] / 64;
        bool recorded = false;
        assert_int_equal(run.first[step], 64 * length);
        assert_int_equal(run.second[step], 24 * length + 4096);
        assert_true(length >= least && length < 3 * most);
        for (int i = 0; i < 60; i++)
            recorded |= run.first[step] == run.first[i];
        between += !recorded && length < most;
        beyond += length > most;
    }
    assert_true(between > 1000);
    assert_in_range(beyond, 1, 200);
}

/* A second size that varies by itself: steps of the tail grow by the first, and the second does not
 * grow with it. The largest steps alone go far beyond the recorded ones. */
TEST(what_varies_by_itself_does_not_grow)
{
    struct program program = begin();
    uint64_t most = 0;
    for (uint64_t step = 0, length = 1, other = 1; step < 200; step++) {
        length = length * 1103 % 1999;
        other = other * 337 % 997;
        most = length > most ? length : most;
        uint64_t ids[2] = {request(&program, 640 * length), request(&program, 100000 + 16 * other)};
        release(&program, ids[0]);
        release(&program, ids[1]);
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->order, LEARNED_FOLLOW);
    assert_true(model->classes[model->steps[100].class_].tail_count > 0);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_on(model, STEPS, seed, &run);
        for (int step = 200; step < STEPS; step++) {
            assert_in_range(run.second[step], 100000 - 16 * 500, 100000 + 16 * 1500);
            if (run.first[step] > 640 * most)
                assert_true(run.second[step] > 100000);
        }
    }
}

/* The same steps without marks: each is a rise and a fall. */
TEST(steps_are_seen_in_live_bytes)
{
    struct program program = begin();
    program.unmarked = true;
    (void)request(&program, 50000);
    for (uint64_t step = 0; step < 12; step++) {
        uint64_t ids[8];
        for (int i = 0; i < 8; i++)
            ids[i] = request(&program, 1000 * (2 + step % 3));
        for (int i = 8; i-- > 0;)
            release(&program, ids[i]);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_false(model->recording.marked);
    assert_int_equal(model->step_count, 12);
    assert_int_equal(model->order, LEARNED_REPEAT);
    assert_int_equal(model->period, 3);
}

TEST(a_trend_is_repeated_in_its_order)
{
    struct program program = begin();
    for (uint64_t step = 0; step < 60; step++) {
        brief(&program, 1000 + 16 * step);
        end_step(&program);
    }
    CLOSED(close_model) struct learned_model *model = learn(&program);
    assert_int_equal(model->order, LEARNED_REPLAY);
    run_on(model, 240, 1, &run);
    for (size_t step = 60; step < 240; step++)
        assert_true(run.first[step] == run.first[step - 1] + 16 ||
                    run.first[step] == run.first[model->warmup]);
}

TEST(too_few_steps_are_refused)
{
    struct program program = begin();
    struct learned_model *model = NULL;
    for (int step = 0; step < 3; step++) {
        brief(&program, 1000);
        end_step(&program);
    }
    assert_says(try_learn(&program, &model, &test_error), AR_INVALID,
                "3 steps were found, and at least 4 are needed");
}

/* Of 60 excesses, evenly up to 1000, the drawn tails end near the greatest; of 60 that fall off
 * exponentially, few do. */
TEST(tails_are_as_likely_as_the_excesses)
{
    enum { EXCESSES = 60, DRAWS = 300 };
    uint64_t bytes[EXCESSES];
    uint32_t members[EXCESSES];
    struct learned_step steps[EXCESSES];
    unsigned near[2] = {0, 0};
    for (int even = 0; even < 2; even++) {
        struct ar_rng rng;
        for (uint32_t i = 0; i < EXCESSES; i++) {
            double part = (i + 0.5) / EXCESSES;
            bytes[i] = 5000 + (uint64_t)(even ? 1000 * part : -1000 * log(1 - part));
            members[i] = i;
            steps[i] = (struct learned_step){.bytes = &bytes[i], .request_count = 1};
        }
        const struct learned_model model = {.steps = steps, .step_count = EXCESSES};
        const struct learned_class class_ = {.member_count = EXCESSES,
                                             .members = members,
                                             .tail_count = EXCESSES,
                                             .threshold = 5000};
        double greatest = (double)bytes[EXCESSES - 1] - 5000;
        ar_rng_seed(&rng, 3);
        for (int i = 0; i < DRAWS; i++) {
            struct learned_tail tail = learned_tail_draw(&model, &class_, &rng);
            near[even] += tail.shape < 0 && -tail.scale / tail.shape < 1.1 * greatest;
        }
    }
    if (near[0] > DRAWS / 10 || near[1] < DRAWS * 9 / 10)
        fail_msg("%u of the exponential ones, %u of the even ones", near[0], near[1]);
}
