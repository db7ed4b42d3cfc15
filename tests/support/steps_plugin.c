/* Steps of the plug-in, in a process of its own, on the stand-in for the driver. */
#include "tests/support/steps_state.h"

#if HAVE_CUDA

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cuda_stand_in/stand_in.h"
#include "tests/support/plugin_rig.h"
#include "tests/support/temporary_file.h"

/* Of the process; `rig` is there in the child alone. */
static struct {
    struct steps *steps;
    size_t from, to;
    const struct plugin_rig *rig;
    struct stand_in_stream streams[4]; /* A to D */
    struct allocrig_pool_id pool;
} child = {.pool = {0, 7}};
static char said[1 << 16]; /* by the last one, on standard error */

static void body(const struct plugin_rig *rig)
{
    child.rig = rig;
    child.steps->in_child = true;
    steps_run_lines(child.steps, child.from, child.to);
}

void steps_plugin_run(struct steps *s, size_t from, size_t to)
{
    char texts[MOST_WORDS][LINE];
    const char *settings[MOST_WORDS + 1] = {NULL};
    int wanted = 0;
    for (size_t count = 0; !steps_at_end(s) && !(wanted = steps_take(s, "->")); count++) {
        assert_true(count < MOST_WORDS);
        snprintf(texts[count], LINE, "%.*s", (int)strcspn(s->at, " "), s->at);
        s->at += strlen(texts[count]);
        settings[count] = texts[count];
    }
    wanted = wanted ? (int)steps_value(s) : 0;
    struct temporary_file errors = temporary_file("");
    child.steps = s;
    child.from = from;
    child.to = to;
    steps_is_equal(s, (uint64_t)plugin_rig_run(settings, errors.path, body), (uint64_t)wanted);
    snprintf(said, sizeof said, "%s", plugin_rig_text(errors.path));
    unlink(errors.path);
}

/* In a child of the child. */
void steps_fork_run(struct steps *s, size_t from, size_t to)
{
    int status = 0;
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
        steps_run_lines(s, from, to);
        exit(0);
    }
    if (waitpid(process, &status, 0) != process || status != 0)
        steps_wrong(s, "it ended with %d", status);
}

static struct stand_in_stream *stream(struct steps *s)
{
    return &child.streams[steps_id(s, "stream") % COUNT(child.streams)];
}

/* The words of a request or a free. */
struct words {
    int card;
    struct stand_in_stream *stream;
    bool cupy;
};

static struct words read_words(struct steps *s)
{
    struct words words = {0};
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0)
        if (steps_take(s, "stream="))
            words.stream = stream(s);
        else if (steps_take(s, "card="))
            words.card = (int)steps_value(s);
        else if (steps_take(s, "cupy"))
            words.cupy = true;
        else
            steps_wrong(s, "no such word: %s", s->at);
    return words;
}

static void *pointer(struct steps *s)
{
    return (void *)(uintptr_t)steps_value(s);
}

static void step_alloc(struct steps *s)
{
    struct thing *thing = steps_new(s);
    uint64_t bytes = steps_value(s);
    const struct words words = read_words(s);
    void *block = words.cupy ? child.rig->cupy_malloc(words.stream, bytes, words.card)
                             : child.rig->malloc((ssize_t)bytes, words.card, words.stream);
    thing->value = (uint64_t)(uintptr_t)block;
    if (steps_take(s, "->"))
        steps_is_equal(s, (uint64_t)thing->value, steps_value(s));
    else if (!block)
        steps_wrong(s, "no memory");
}

static void step_free(struct steps *s)
{
    void *block = pointer(s);
    const struct words words = read_words(s);
    child.rig->free(block, 0, words.card, words.stream);
}

static void step_use(struct steps *s)
{
    void *block = pointer(s);
    child.rig->record_stream(block, steps_at_end(s) ? NULL : stream(s));
}

/* Until a time; alone: for longer than any test lives. */
static void step_busy(struct steps *s)
{
    struct stand_in_stream *busy = stream(s);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    busy->tail_ns = steps_at_end(s) ? ((uint64_t)now.tv_sec + 3600) * 1000000000 : steps_value(s);
}

static void step_segment_of(struct steps *s)
{
    size_t bytes = 0;
    void *start = child.rig->base_alloc(pointer(s), &bytes);
    steps_make(s, "segment.address")->value = (uint64_t)(uintptr_t)start;
    steps_make(s, "segment.bytes")->value = bytes;
}

static void step_fraction(struct steps *s)
{
    child.rig->memory_fraction((double)steps_value(s) / 100, 0);
}

#define CALLS(X)                                                                                   \
    X(trim, child.rig->empty_cache())                                                              \
    X(reset_peaks, child.rig->reset_peaks(0))                                                      \
    X(mark, child.rig->mark(steps_rest(s)))                                                        \
    X(captured, stream(s)->captured = true)                                                        \
    X(no_capture, stream(s)->captured = false)                                                     \
    X(begin_pool, child.rig->begin_pool(0, child.pool, NULL))                                      \
    X(end_pool, child.rig->end_pool(0, child.pool))                                                \
    X(release_pool, child.rig->release_pool(0, child.pool))                                        \
    X(kill, kill(getpid(), SIGKILL))
#define X(name, ...)                                                                               \
    static void step_##name(struct steps *s)                                                       \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
CALLS(X)
#undef X

static bool operation(struct steps *s)
{
#define X(name, ...) {#name, step_##name},
#define STEP(name)   X(name, )
    static const struct {
        const char *name;
        void (*run)(struct steps *s);
    } steps[] = {CALLS(X) STEP(alloc) STEP(free) STEP(use) STEP(busy) STEP(segment_of)
                     STEP(fraction)};
#undef STEP
#undef X
    for (size_t i = 0; i < COUNT(steps); i++)
        if (steps_take(s, steps[i].name))
            return steps[i].run(s), true;
    return false;
}

/* The lines of a recording without its header and times, in one. */
static void step_recorded(struct steps *s)
{
    static char text[1 << 16];
    char name[LINE], lines[1 << 12] = "";
    steps_word(s, name, sizeof name);
    snprintf(text, sizeof text, "%s", plugin_rig_text(name));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (*line != '#' && *line != 't' && strncmp(line, "!,oom,", 6) != 0)
            strcat(strcat(lines, *lines ? " " : ""), line);
    steps_is_text(s, lines, true);
}

static void step_says_once(struct steps *s)
{
    const char *text = steps_rest(s), *first = strstr(said, text);
    if (!first || strstr(first + 1, text))
        steps_wrong(s, "%s", said);
}

bool steps_plugin_operation(struct steps *s)
{
    if (s->in_child)
        return operation(s);
    if (steps_take(s, "says_once"))
        step_says_once(s);
    else if (steps_take(s, "says"))
        steps_is_text(s, said, false);
    else if (steps_take(s, "recorded"))
        step_recorded(s);
    else
        return false;
    return true;
}

/* figure.NAME and, of the second card, second.NAME; tail.STREAM; contexts. */
bool steps_plugin_figure(const char *name, uint64_t *value)
{
    if (!child.rig)
        return false;
    if (strncmp(name, "figure.", 7) == 0)
        *value = child.rig->figure(0, name + 7);
    else if (strncmp(name, "second.", 7) == 0)
        *value = child.rig->figure(1, name + 7);
    else if (strncmp(name, "tail.", 5) == 0)
        *value = child.streams[(name[5] - 'A') & 3].tail_ns;
    else if (strcmp(name, "contexts") == 0)
        *value = child.rig->driver->references;
    else
        return steps_card_count(child.rig->driver, name, value);
    return true;
}

#else

void steps_plugin_run(struct steps *s, size_t from, size_t to)
{
    skip();
}

void steps_fork_run(struct steps *s, size_t from, size_t to)
{
}

bool steps_plugin_operation(struct steps *s)
{
    return false;
}

bool steps_plugin_figure(const char *name, uint64_t *value)
{
    return false;
}

#endif
