/* Steps of `learned`: a model of the events of a script, and long runs of it. */
#include "tests/support/steps_state.h"
#include "tests/support/tiny_trace.h"
#include "workloads/learned/learned.h"
#include "workloads/learned/model.h"

enum { MOST_STEPS = 2000, MOST_SLOTS = 1024 };

static struct learned_model *model;

/* What a run has at the end of each step: live bytes, the first and second request, the largest. */
static struct {
    uint64_t live[MOST_STEPS], first[MOST_STEPS], second[MOST_STEPS], largest[MOST_STEPS], misfits;
} drawn;

void steps_learned_begin(void)
{
    learned_model_close(model);
    model = NULL;
}

static void learn(struct steps *s)
{
    steps_learned_begin();
    CLOSED(close_trace) struct trace_source *source = tiny_trace(steps_events());
    enum ar_status status = learned_model_make(source, NULL, &model, &test_error);
    steps_ended(s, status, test_error.text);
}

static uint64_t draw_step(struct trace_source *source, uint64_t step, uint64_t live)
{
    static uint64_t of_slot[MOST_SLOTS];
    const struct trace_event *events;
    size_t count, requests = 0;
    assert_ok(trace_next(source, &events, &count, &test_error));
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = events[i].value;
        assert_true(events[i].slot < MOST_SLOTS);
        if (events[i].kind != TRACE_ALLOC) {
            assert_int_equal(events[i].kind, TRACE_FREE_COMPLETED);
            live -= of_slot[events[i].slot];
            continue;
        }
        live += of_slot[events[i].slot] = bytes;
        if (requests++ < 2)
            (requests == 1 ? drawn.first : drawn.second)[step] = bytes;
        if (bytes > drawn.largest[step])
            drawn.largest[step] = bytes;
    }
    assert_ok(trace_next(source, &events, &count, &test_error));
    assert_int_equal(count, 0); /* the end comes after each step */
    return live;
}

static void draw(struct steps *s)
{
    CLOSED(close_trace) struct trace_source *source = NULL;
    uint64_t count = steps_value(s), seed = steps_value(s), live = 0;
    assert_true(model && count <= MOST_STEPS);
    memset(&drawn, 0, sizeof drawn);
    assert_ok(learned_open_lean(model, count, seed, &source, &test_error));
    for (uint64_t step = 0; step < count; step++)
        drawn.live[step] = live = draw_step(source, step, live);
    drawn.misfits = learned_misfits(source);
}

bool steps_learned_operation(struct steps *s)
{
    static const char *const orders[] = {"repeat", "period", "follow", "replay"};
    static const char *const fates[] = {"local", "carried", "permanent", "leaked"};
    if (steps_take(s, "learn"))
        learn(s);
    else if (steps_take(s, "draw"))
        draw(s);
    else if (model && steps_take(s, "order"))
        steps_is_text(s, orders[model->order], true);
    else if (model && steps_take(s, "fate"))
        steps_is_text(s, fates[model->fates[steps_value(s)]], true);
    else
        return false;
    return true;
}

bool steps_learned_figure(const char *name, uint64_t *value)
{
    char field[NAME];
    unsigned step;
    if (!model)
        return false;
    const struct {
        const char *name;
        uint64_t value;
    } of_model[] = {{"period", model->period},
                    {"warmup", model->warmup},
                    {"step_count", model->step_count},
                    {"marked", model->recording.marked},
                    {"leaked", (uint64_t)model->leaked_bytes},
                    {"misfits", drawn.misfits}};
    for (size_t i = 0; i < COUNT(of_model); i++)
        if (strcmp(name, of_model[i].name) == 0)
            return *value = of_model[i].value, true;
    if (sscanf(name, "step.%u.%63s", &step, field) != 2 || step >= MOST_STEPS)
        return false;
    if (strcmp(field, "tail") == 0)
        *value = model->classes[model->steps[step].class_].tail_count;
    else
        *value = (strcmp(field, "live") == 0     ? drawn.live
                  : strcmp(field, "first") == 0  ? drawn.first
                  : strcmp(field, "second") == 0 ? drawn.second
                                                 : drawn.largest)[step];
    return true;
}
