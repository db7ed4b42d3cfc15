/* TensorFlow's settings in every combination: growth, logical devices, fraction, visibility, order
 * of the calls and environment, 3840 programs. What comes of each is told twice: by
 * process_configure, and here by rules, the first that applies:
 *
 * 1. A call that names a GPU that is not seen is a ValueError.
 * 2. Growth for a GPU with logical devices is a ValueError, also where it would change nothing.
 * 3. After the first operation a call that would change something is a RuntimeError.
 * 4. Where no GPU has logical devices, those that are seen have one growth, else ValueError. Not to
 *    have set it is another one than false.
 * 5. Logical devices together with a fraction are an InvalidArgumentError.
 * 6. A pool for each logical device of a visible GPU, with its limit; else one for the GPU, whose
 *    limit is free memory less the variable's, else the fraction of the total, else free memory
 *    less the default.
 * 7. Pools grow where the variable is "true"; where it is "false" they do not; else where growth is
 *    set and no GPU has logical devices. */
#include "sim/tenants/process.h"
#include "tests/support/test.h"

#define LINES_MOST 10

/* 39 GiB free of 40, and 7.5 of 8: by default 1536 and 500 MiB are left. */
static const struct process_card cards[] = {
    {40 * AR_GIB, 39 * AR_GIB, 8},
    {8 * AR_GIB, 7 * AR_GIB + 512 * AR_MIB, 6},
};
static const uint64_t default_left_mib[] = {1536, 500};

enum { GROWTH_UNSET, GROWTH_ALL, GROWTH_NONE, GROWTH_FIRST, GROWTH_SECOND, GROWTHS };
enum { LOGICAL_NONE, LOGICAL_ONE, LOGICAL_TWO, LOGICAL_ALL, LOGICALS };
enum { FRACTION_NONE, FRACTION_HALF, FRACTIONS };
enum { VISIBLE_ALL, VISIBLE_FIRST, VISIBLE_SECOND, VISIBLE_BY_DRIVER, VISIBILITIES };
enum { GROWTH_FIRST_CALL, LOGICAL_FIRST_CALL, INITIALIZED_BEFORE, INITIALIZED_BETWEEN, ORDERS };
enum { PLAIN, FORCE_TRUE, FORCE_FALSE, FORCE_WRONG, LEAVE, FORCE_AND_LEAVE, ENVIRONMENTS };

struct program {
    int growth, logical, fraction, visible, order, environment;
};

struct text {
    char at[640];
    size_t length;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text->length +=
        (size_t)vsnprintf(text->at + text->length, sizeof text->at - text->length, format, list);
    va_end(list);
    assert_true(text->length < sizeof text->at);
}

/* ---- as the framework's model tells it ------------------------------------------------------- */

static const char *const growth_values[] = {NULL, "all true", "all false", "0 true", "1 true"};
static const char *const logical_values[] = {NULL, "0 1024", "0 1024 2048", "all 1024"};

static size_t write_lines(const struct program *program, struct process_line *lines)
{
    size_t count = 0;
    bool force = program->environment != PLAIN && program->environment != LEAVE;
    static const char *const forced[] = {NULL, "true", "false", "1", NULL, "true"};
    lines[count++] = (struct process_line){"framework", "tensorflow", 1};
    if (program->visible == VISIBLE_BY_DRIVER)
        lines[count++] = (struct process_line){"CUDA_VISIBLE_DEVICES", "1", 2};
    if (program->visible == VISIBLE_FIRST || program->visible == VISIBLE_SECOND)
        lines[count++] = (struct process_line){"set_visible_devices",
                                               program->visible == VISIBLE_FIRST ? "0" : "1", 3};
    if (force)
        lines[count++] =
            (struct process_line){"TF_FORCE_GPU_ALLOW_GROWTH", forced[program->environment], 4};
    if (program->environment >= LEAVE)
        lines[count++] = (struct process_line){"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "2048", 5};
    if (program->fraction)
        lines[count++] = (struct process_line){"per_process_gpu_memory_fraction", "0.5", 6};
    const struct process_line growth = {"set_memory_growth", growth_values[program->growth], 7};
    const struct process_line logical = {"set_logical_devices", logical_values[program->logical],
                                         8};
    const struct process_line first = {"initialize", "yes", 9};
    const struct process_line *calls[][3] = {{&growth, &logical},
                                             {&logical, &growth},
                                             {&first, &growth, &logical},
                                             {&growth, &first, &logical}};
    for (size_t i = 0; i < 3; i++)
        if (calls[program->order][i] && calls[program->order][i]->value)
            lines[count++] = *calls[program->order][i];
    return count;
}

static void told_by_the_model(const struct program *program, struct text *text)
{
    static struct process process;
    struct process_line lines[LINES_MOST];
    enum ar_status status =
        process_configure(cards, 2, lines, write_lines(program, lines), &process, &test_error);
    assert_true(status == AR_OK || status == AR_NEGATIVE);
    if (status == AR_NEGATIVE)
        put(text, "%s", process_exception_name(process.exception));
    for (size_t i = 0; i < process.pool_count; i++)
        put(text, "%" PRIu32 " %s %" PRIu64 ";", process.pools[i].card,
            process.pools[i].grows ? "grows" : "whole", process.pools[i].limit_bytes);
}

/* ---- as the rules tell it -------------------------------------------------------------------- */

/* 0 not set, 1 true, -1 false. */
static int growth_of(const struct program *program, int gpu)
{
    static const int of[GROWTHS][2] = {{0, 0}, {1, 1}, {-1, -1}, {1, 0}, {0, 1}};
    return of[program->growth][gpu];
}

static int logical_of(const struct program *program, int gpu)
{
    static const int of[LOGICALS][2] = {{0, 0}, {1, 0}, {2, 0}, {1, 1}};
    return of[program->logical][gpu];
}

static const char *exception_of(const struct program *program, int seen)
{
    bool growth_late = program->order == INITIALIZED_BEFORE;
    bool logical_late = growth_late || program->order == INITIALIZED_BETWEEN;
    bool initialized_alone = growth_late || program->order == INITIALIZED_BETWEEN;
    bool logical = !logical_late && program->logical;
    bool growth = !growth_late && program->growth;
    bool one_is_shown = program->visible != VISIBLE_ALL;
    if (growth && program->growth == GROWTH_SECOND && seen == 1)
        return "ValueError"; /* 1 */
    if (growth && program->order == LOGICAL_FIRST_CALL)
        for (int gpu = 0; gpu < seen; gpu++)
            if (growth_of(program, gpu) && logical_of(program, gpu))
                return "ValueError"; /* 2 */
    if (growth && !logical && !one_is_shown && growth_of(program, 0) != growth_of(program, 1))
        return "ValueError"; /* 4 */
    if (logical && program->fraction)
        return "InvalidArgumentError"; /* 5 */
    if (!initialized_alone)
        return NULL;
    if (growth_late && program->growth == GROWTH_SECOND && seen == 1)
        return "ValueError"; /* 1 */
    if ((growth_late && program->growth) || (logical_late && program->logical))
        return "RuntimeError"; /* 3 */
    return NULL;
}

static void told_by_the_rules(const struct program *program, struct text *text)
{
    int seen = program->visible == VISIBLE_BY_DRIVER ? 1 : 2;
    const char *exception = exception_of(program, seen);
    bool forced_on = program->environment == FORCE_TRUE || program->environment == FORCE_AND_LEAVE;
    if (exception) {
        put(text, "%s", exception);
        return;
    }
    for (int gpu = 0; gpu < seen; gpu++) {
        int card = program->visible == VISIBLE_BY_DRIVER ? 1 : gpu;
        if ((program->visible == VISIBLE_FIRST && gpu) ||
            (program->visible == VISIBLE_SECOND && !gpu))
            continue;
        bool grows = growth_of(program, gpu) == 1 && !program->logical;
        grows = forced_on || (grows && program->environment != FORCE_FALSE);
        const char *how = grows ? "grows" : "whole";
        for (int i = 0; i < logical_of(program, gpu); i++)
            put(text, "%d %s %" PRIu64 ";", card, how, (i ? 2 : 1) * AR_GIB);
        if (logical_of(program, gpu))
            continue;
        uint64_t limit = cards[card].free_bytes - default_left_mib[card] * AR_MIB;
        if (program->fraction)
            limit = cards[card].total_bytes / 2;
        if (program->environment >= LEAVE)
            limit = cards[card].free_bytes - 2 * AR_GIB;
        put(text, "%d %s %" PRIu64 ";", card, how, limit);
    }
}

static void both_tell_the_same(const struct program *program)
{
    struct text model = {"", 0}, rules = {"", 0};
    told_by_the_model(program, &model);
    told_by_the_rules(program, &rules);
    if (!strcmp(model.at, rules.at))
        return;
    struct process_line lines[LINES_MOST];
    size_t count = write_lines(program, lines);
    for (size_t i = 0; i < count; i++)
        print_error("%s = %s\n", lines[i].key, lines[i].value);
    fail_msg("gives    %s\nexpected %s", model.at, rules.at);
}

TEST(every_combination)
{
    static const int sizes[] = {GROWTHS, LOGICALS, FRACTIONS, VISIBILITIES, ORDERS, ENVIRONMENTS};
    int programs = 1, kinds[4] = {0};
    for (size_t i = 0; i < 6; i++)
        programs *= sizes[i];
    assert_int_equal(programs, 3840);
    for (int number = 0; number < programs; number++) {
        int at[6], rest = number;
        for (size_t i = 0; i < 6; rest /= sizes[i], i++)
            at[i] = rest % sizes[i];
        const struct program program = {at[0], at[1], at[2], at[3], at[4], at[5]};
        struct text text = {"", 0};
        both_tell_the_same(&program);
        told_by_the_rules(&program, &text);
        kinds[text.at[0] == 'V' ? 0 : text.at[0] == 'R' ? 1 : text.at[0] == 'I' ? 2 : 3]++;
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(kinds[i] > programs / 20); /* every kind of outcome is there, and often */
}
