/* Traces in steps: parts of them, several at the same time (steps.h). */
#include "tests/support/steps_state.h"
#include "tests/support/trace_rig.h"
#include "workloads/trace/filter.h"

static struct trace_source *out; /* of the last operation */

void steps_traces_begin(void)
{
    trace_close(out);
    out = NULL;
}

/* `filter PATH [steps=A-B] [stream=N] [device=N] [least=BYTES] [kinds=LETTERS] [repeat=N]
 * [at_once]`. */
static void filter(struct steps *s)
{
    char word[LINE];
    uint32_t stream = 0, device = 0;
    struct trace_filter_options options = {0};
    enum ar_status status = AR_OK;
    steps_traces_begin();
    steps_word(s, word, sizeof word);
    struct trace_source *source = trace_rig_source(word);
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0) {
        if (steps_take(s, "stream=")) {
            stream = (uint32_t)steps_value(s);
            options.streams = &stream;
            options.stream_count = 1;
        } else if (steps_take(s, "device=")) {
            device = (uint32_t)steps_value(s);
            options.device = &device;
        } else if (steps_take(s, "least=")) {
            options.min_bytes = steps_value(s);
        } else if (steps_take(s, "repeat=")) {
            options.repeat = steps_value(s);
        } else if (steps_take(s, "at_once")) {
            options.at_once = true;
        } else if (steps_take(s, "steps=")) {
            steps_word(s, word, sizeof word);
            AR_THEN(status, trace_filter_steps(word, &options, &test_error));
        } else if (steps_take(s, "kinds=")) {
            steps_word(s, word, sizeof word);
            AR_THEN(status, trace_filter_kinds(word, &options.kinds, &test_error));
        } else {
            steps_wrong(s, "no such word of a filter: %s", s->at);
        }
    }
    if (status)
        trace_close(source);
    else
        status = trace_filter(source, &options, &out, &test_error);
    steps_ended(s, status, test_error.text);
}

/* `merge PATH PATH`. */
static void merge(struct steps *s)
{
    char path[LINE];
    struct trace_source *sources[2];
    steps_traces_begin();
    for (size_t i = 0; i < 2; i++) {
        steps_word(s, path, sizeof path);
        sources[i] = trace_rig_source(path);
    }
    steps_ended(s, trace_merge(sources, 2, &out, &test_error), test_error.text);
}

/* `leaves PATH`: the canonical text of what is left is that file. */
static void leaves(struct steps *s)
{
    char path[LINE];
    size_t count;
    CLOSED(trace_rig_close) struct trace_rig rig = trace_rig_open();
    steps_word(s, path, sizeof path);
    if (!*path || !out)
        steps_wrong(s, "%s", *path ? "nothing was filtered or merged" : "a path is missing");
    FREED char *wanted = trace_rig_read(path, &count);
    FREED char *got = trace_rig_print(&rig, out);
    if (strcmp(got, wanted) != 0)
        steps_wrong(s, "\n%.400s", got);
}

/* `left.FIELD` of the trace's description. */
bool steps_traces_figure(const char *name, long double *value)
{
    static const struct steps_field of_info[] = {
#define F(name) STEPS_FIELD("left." #name, trace_info, name),
        F(allocs) F(peak_live_bytes) F(streams) F(slots) F(steps) F(capacity_bytes)
#undef F
    };
    return out && STEPS_GET(name, of_info, &out->info, value);
}

bool steps_traces_operation(struct steps *s)
{
    if (steps_take(s, "filter"))
        filter(s);
    else if (steps_take(s, "merge"))
        merge(s);
    else if (steps_take(s, "leaves"))
        leaves(s);
    else if (steps_take(s, "left_card"))
        steps_is_text(s, out->info.card, true);
    else
        return false;
    return true;
}
