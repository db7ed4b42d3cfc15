/* Out-of-memory messages. tests/unit/cases/messages has single messages with what is read of them,
 * the figures of public reports, and wordings of each framework's versions: figures of every class
 * are written into every wording that can tell them, and into what terminals, logs and wrappers
 * make of the same texts. */
#include <ctype.h>
#include <math.h>

#include "sim/explain/message.h"
#include "sim/explain/message_forms.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

#define FILE_OF_CASES "messages"

/* ---- single messages ------------------------------------------------------------------------- */

static bool is_name(const char *name, const char *word)
{
    for (; *name && tolower((unsigned char)*name) == *word; name++)
        word++;
    return !*name && !*word;
}

/* The number of a name of an enumeration, in small letters; -1: there is none. */
#define NUMBER_OF(NAMES, word)  number_of((const char *const[]){NAMES NULL}, word)
#define FIRST(name, ...)        #name,
#define SECOND(name, text, ...) text,

static int number_of(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (is_name(names[i], word))
            return i;
    return -1;
}

#define FIGURE(word)    NUMBER_OF(MESSAGE_FIGURES(FIRST), word)
#define CAUSE(word)     NUMBER_OF(MESSAGE_CAUSES(SECOND), word)
#define FRAMEWORK(word) NUMBER_OF(MESSAGE_FRAMEWORKS(FIRST), word)
#define REASON(word)    NUMBER_OF(MESSAGE_REASONS(FIRST), word)

static const struct {
    const char *name;
    size_t offset;
} flags[] = {
#define X(name) {#name, offsetof(struct message, name)},
    X(close) X(may_fail) X(whole_limit) X(type_assumed) X(no_figures_taken) X(segment_asked) X(host)
        X(bare) X(windows) X(elsewhere)
#undef X
};

/* The value of a key that is set or not; -1: no such key. */
static int flag_of(const struct message *message, const char *key)
{
    for (size_t i = 0; i < COUNT(flags); i++)
        if (strcmp(flags[i].name, key) == 0)
            return *(const bool *)((const char *)message + flags[i].offset);
    if (strncmp(key, "missing:", 8) == 0 && FIGURE(key + 8) >= 0)
        return message_missing(message, (enum message_figure_name)FIGURE(key + 8));
    if (strncmp(key, "reason:", 7) == 0 && REASON(key + 7) >= 0)
        return message->reasons >> REASON(key + 7) & 1;
    if (strcmp(key, "contradictions") == 0)
        return message->contradictions != 0;
    if (strcmp(key, "or_more") == 0)
        return message->figures[MESSAGE_FIGURE_ASKED].or_more;
    return FIGURE(key) >= 0 ? message->figures[FIGURE(key)].known : -1;
}

static bool has_number(const struct message *message, const char *key, uint64_t value)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"count", message->count},
        {"taken", message->taken},
        {"coarse", message->figures[MESSAGE_FIGURE_ALLOCATED].coarse_bytes},
        {"listed:cards", message->listing.cards},
        {"listed:used", message->listing.used},
        {"listed:total", message->listing.total},
    };
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(numbers[i].name, key) == 0)
            return numbers[i].value == value;
    return FIGURE(key) >= 0 && message->figures[FIGURE(key)].bytes == value;
}

static bool has_value(const struct message *message, const char *key, const char *value)
{
    uint64_t bytes;
    if (strcmp(key, "cause") == 0)
        return strcmp(message_cause_name(message->cause), value) == 0;
    if (strcmp(key, "confidence") == 0)
        return (int)message->confidence ==
               number_of((const char *const[]){"sure", "likely", "open", NULL}, value);
    if (strcmp(key, "framework") == 0)
        return (int)message->framework == FRAMEWORK(value);
    if (strcmp(key, "contradictions") == 0)
        return message->contradictions == 1u << NUMBER_OF(MESSAGE_CONTRADICTIONS(FIRST), value);
    if (strcmp(key, "allocator") == 0 || strcmp(key, "device") == 0)
        return strcmp(*key == 'a' ? message->allocator : message->device, value) == 0;
    if (strcmp(key, "how") == 0)
        return message->how && strstr(message->how, value);
    return ar_size_parse(value, &bytes, &test_error) == AR_OK && has_number(message, key, bytes);
}

static bool has(const struct message *message, char *fact)
{
    char *value = strchr(fact, '=');
    if (!value)
        return flag_of(message, fact + (*fact == '!')) == (*fact != '!');
    *value = '\0';
    bool good = has_value(message, fact, value + 1);
    *value = '=';
    return good;
}

/* Each message of a section is read as its facts say; "refused TEXT" is all that a text that is no
 * message has, and TEXT is in the error. */
static void check_section(const char *section)
{
    for (struct cases row = {0}; cases_next(&row, FILE_OF_CASES, section, 2);) {
        struct message message;
        struct ar_error error = {""};
        char *text = row.field[0], *facts = row.field[1], *save;
        enum ar_status status = message_read(text, strlen(text), &message, &error);
        if (strncmp(facts, "refused", 7) == 0) {
            assert_int_equal(status, AR_INVALID);
            assert_non_null(strstr(error.text, facts + 7 + (facts[7] == ' ')));
            continue;
        }
        if (status)
            fail_msg("%s: %s", text, error.text);
        for (char *fact = strtok_r(facts, " ", &save); fact; fact = strtok_r(NULL, " ", &save))
            if (!has(&message, fact))
                fail_msg("line %u: not %s, but %s, %s, from: %s", row.line, fact,
                         message_cause_name(message.cause),
                         message_confidence_name(message.confidence), text);
    }
}

#define SECTION(name)                                                                              \
    TEST(name)                                                                                     \
    {                                                                                              \
        check_section(#name);                                                                      \
    }

SECTION(near_miss_is_capacity)
SECTION(shapes_are_multiplied)
SECTION(requests_beyond_any_card)
SECTION(processes_are_told_apart)
SECTION(impossible_figures_are_left_out)
SECTION(other_devices_and_backends)
SECTION(xla_wordings)
SECTION(dumps_are_read_by_their_statistics)
SECTION(text_around_it_does_not_matter)
SECTION(holders_are_added_up)
SECTION(paths_of_windows_are_recognised)
SECTION(words_are_found_between_marks)
SECTION(a_log_of_ggml_is_summed_up)
SECTION(closeness_is_said)
SECTION(logs_of_rmm)
SECTION(host_memory_is_told)
SECTION(what_is_no_message_is_refused)
SECTION(logs_without_a_failure_are_refused)
SECTION(requests_behind_any_prefix)
SECTION(the_first_of_several_kinds_counts)
SECTION(others_are_refused)
SECTION(listings_of_cards)
SECTION(other_memory_than_the_card)
SECTION(each_message_has_its_cause)
SECTION(a_cut_message_says_what_is_missing)
SECTION(printed_counters_are_read_whole)
SECTION(a_unit_in_a_label_is_as_coarse_as_its_number)
SECTION(what_logs_put_before_each_line)
SECTION(requests_beside_other_sizes)

TEST(escapes_become_their_characters)
{
    for (struct cases row = {0}; cases_next(&row, FILE_OF_CASES, __func__, 2);) {
        for (const char *behind = "n\\"; *behind;
             behind++) { /* what is behind it is no part of it */
            char out[64];
            memset(out, *behind, sizeof out);
            size_t count = message_text_decode(row.field[0], strlen(row.field[0]), out);
            out[count] = '\0';
            assert_string_equal(out, row.field[1]);
        }
    }
}

/* Of a character that the end of the text cuts off, the first byte stays. */
TEST(a_cut_character_stays)
{
    static const char *const texts[] = {"x \xc2\xa0", "x \xe2\x94\x82", "x \xef\xbb\xbf"};
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t bytes = 2; bytes <= strlen(texts[i]); bytes++) {
            CLOSED(message_text_close) struct message_text text;
            assert_ok(message_text_open(texts[i], bytes, &text, &test_error));
            assert_int_equal(text.count, bytes == strlen(texts[i]) ? 1 : bytes - 1);
        }
}

/* Exact figures decide to the byte: what others hold is enough, or one byte too little. */
TEST(one_byte_decides_whose_memory_it_is)
{
    static const struct {
        uint64_t asked;
        enum message_cause cause;
    } cases[] = {{5 * AR_GIB, MESSAGE_TENANT}, {5 * AR_GIB + 1, MESSAGE_CAPACITY}};
    for (size_t i = 0; i < 2; i++) {
        struct message message;
        memset(&message, 0, sizeof message);
        message.framework = MESSAGE_DRIVER;
        const struct {
            enum message_figure_name name;
            uint64_t bytes;
        } figures[] = {
            {MESSAGE_FIGURE_ASKED, cases[i].asked}, {MESSAGE_FIGURE_TOTAL, 16 * AR_GIB},
            {MESSAGE_FIGURE_FREE, 1 * AR_GIB},      {MESSAGE_FIGURE_ALLOCATED, 11 * AR_GIB},
            {MESSAGE_FIGURE_RESERVED, 11 * AR_GIB}, {MESSAGE_FIGURE_OTHERS, 4 * AR_GIB}};
        for (size_t f = 0; f < COUNT(figures); f++)
            message.figures[figures[f].name] =
                (struct message_figure){.known = true, .bytes = figures[f].bytes};
        message_judge(&message);
        assert_string_equal(message_cause_name(message.cause), message_cause_name(cases[i].cause));
    }
}

/* ---- wordings -------------------------------------------------------------------------------- */

/* In MiB; below 0: not given, and not written. The names are in the order of a row. */
#define FIGURES(X)                                                                                 \
    X(asked) X(total) X(available) X(allocated) X(unallocated) X(others) X(outside) X(second)

struct figures {
    char name[32];
    enum message_cause cause; /* if the wording has all of them */
#define X(name) double name;
    FIGURES(X)
#undef X
};

/* The row of the figures of a section. */
static bool next_figures(struct cases *row, const char *section, struct figures *out)
{
    double *const places[] = {
#define X(name) &out->name,
        FIGURES(X)
#undef X
    };
    if (!cases_next(row, FILE_OF_CASES, section, 3))
        return false;
    snprintf(out->name, sizeof out->name, "%s", row->field[0]);
    out->cause = (enum message_cause)CAUSE(row->field[1]);
    const char *at = row->field[2];
    for (size_t i = 0; i < COUNT(places); i++) {
        char *end;
        *places[i] = *at == '-' ? -1 : strtod(at, &end);
        at = *at == '-' ? at + 1 : end + 1;
        *places[i] *= at[-1] == 'G' ? 1024 : 1;
        at += *at == ' ';
    }
    assert_true(!*at);
    return true;
}

enum told {
    TELLS_TOTAL = 1,
    TELLS_FREE = 2,
    TELLS_POOL = 4,
    TELLS_OTHERS = 8,
    TELLS_OUTSIDE = 16,
    FREE_IS_LIMIT = 32,   /* the free bytes are those that the limit leaves outside of the pool */
    TELLS_ALLOCATED = 64, /* what of the driver's pool is allocated, taken as its size */
    TELLS_BOUND = 128,    /* what a bound leaves, of a pool whose reserved bytes are printed */
    ONE_POOL = 256,       /* the unused bytes of the only pool of the device */
};

static const struct {
    const char *name;
    unsigned bit;
} tells[] = {
    {"total", TELLS_TOTAL},         {"free", TELLS_FREE},       {"pool", TELLS_POOL},
    {"others", TELLS_OTHERS},       {"outside", TELLS_OUTSIDE}, {"free-is-limit", FREE_IS_LIMIT},
    {"allocated", TELLS_ALLOCATED}, {"bound", TELLS_BOUND},     {"one-pool", ONE_POOL},
};

struct wording {
    const char *name, *text;
    int framework;
    unsigned told;
};

static bool next_wording(struct cases *row, const char *section, struct wording *out)
{
    char *save;
    if (!cases_next(row, FILE_OF_CASES, section, 4))
        return false;
    *out = (struct wording){row->field[0], row->field[3], FRAMEWORK(row->field[1]), 0};
    for (char *word = strtok_r(row->field[2], " ", &save); word; word = strtok_r(NULL, " ", &save))
        for (size_t i = 0; i < COUNT(tells); i++)
            out->told |= strcmp(tells[i].name, word) == 0 ? tells[i].bit : 0;
    return true;
}

static double reserved(const struct figures *f)
{
    return f->allocated < 0 ? -1 : f->allocated + f->unallocated;
}

/* A figure, or a sum of some, by its name in a wording. False: there is none. */
static bool figure_of(const struct figures *f, const char *name, double *mib)
{
    const struct {
        const char *name;
        double mib;
    } figures[] = {
#define X(name) {#name, f->name},
        FIGURES(X)
#undef X
            {"reserved", reserved(f)},
        {"limit", reserved(f) + f->available},
        {"process", reserved(f) + f->outside},
        {"half", f->others / 2},
        {"used", f->total - f->available - f->outside},
    };
    for (size_t i = 0; i < COUNT(figures); i++)
        if (strcmp(figures[i].name, name) == 0) {
            *mib = figures[i].mib;
            return true;
        }
    return false;
}

static unsigned long long bytes_of(double mib)
{
    return (unsigned long long)round(mib * AR_MIB);
}

/* With the commas of CuPy. */
static void add_commas(struct writing *w, unsigned long long bytes)
{
    if (bytes >= 1000)
        add_commas(w, bytes / 1000);
    writing_add(w, bytes >= 1000 ? ",%03llu" : "%llu", bytes % 1000);
}

/* PyTorch's and XLA's way: the largest unit of which there is one at least. */
static void add_figure(struct writing *w, double mib, const char *form)
{
    int width = atoi(form + (*form == '.'));
    char unit = *form ? form[strlen(form) - 1] : 'S';
    if (unit == 'B' && *form == ',')
        add_commas(w, bytes_of(mib));
    else if (unit == 'B')
        writing_add(w, "%*llu", width, bytes_of(mib));
    else if (unit == 'M' || unit == 'G')
        writing_add(w, "%.*f", width, unit == 'G' ? mib / 1024 : mib);
    else
        writing_add(w, "%.2f%s%s", mib >= 1024 ? mib / 1024 : mib, unit == 'X' ? "" : " ",
                    mib >= 1024 ? "GiB" : "MiB");
}

/* The text up to `end` with its figures. Returns false if one is not given. */
static bool fill(struct writing *w, const struct figures *f, const char *text, const char *end)
{
    bool whole = true;
    while (text < end) {
        char name[32], form[8] = "";
        double mib;
        size_t plain = strcspn(text + 1, "{[") + 1;
        if (strncmp(text, "[[", 2) == 0) {
            const char *stop = strstr(text, "]]");
            struct writing part = {""};
            if (fill(&part, f, text + 2, stop))
                writing_add(w, "%s", part.text);
            text = stop + 2;
        } else if (sscanf(text, "{%31[a-z]:%7[^}]}", name, form) >= 1 && figure_of(f, name, &mib)) {
            if (mib >= 0)
                add_figure(w, mib, form);
            whole = whole && mib >= 0;
            text = strchr(text, '}') + 1;
        } else {
            plain = plain < (size_t)(end - text) ? plain : (size_t)(end - text);
            writing_add(w, "%.*s", (int)plain, text);
            text += plain;
        }
    }
    return whole;
}

static void write_text(struct writing *w, const struct wording *wording, const struct figures *f)
{
    (void)fill(w, f, wording->text, strchr(wording->text, '\0'));
}

typedef void visit_text(const struct wording *wording, const struct figures *figures,
                        const char *text);

/* Visits the text of each row of figures in each wording. */
static void each_text(const char *wordings, const char *figures, visit_text *visit)
{
    struct wording wording;
    for (struct cases row = {0}; next_wording(&row, wordings, &wording);) {
        struct figures values;
        for (struct cases inner = {0}; next_figures(&inner, figures, &values);) {
            struct writing writing = {""};
            write_text(&writing, &wording, &values);
            visit(&wording, &values, writing.text);
        }
    }
}

#define CONTEXT_MOST 1024 /* MiB that a process holds outside of its pool in any case */

/* What is neither free nor in the pool, nor in a process that the wording names. */
static double remainder_of(const struct figures *f, unsigned told)
{
    double pool = told & TELLS_ALLOCATED ? f->allocated : reserved(f);
    double named = f->available + pool + (told & TELLS_OTHERS ? f->others : 0) +
                   (told & TELLS_OUTSIDE ? f->outside : 0);
    return f->total > named ? f->total - named : 0;
}

static double beyond_context(double mib)
{
    return mib > CONTEXT_MOST ? mib - CONTEXT_MOST : 0;
}

/* If no memory would be enough. */
static enum message_cause expected_rest(unsigned told)
{
    return told & (TELLS_POOL | TELLS_BOUND | TELLS_ALLOCATED) ? MESSAGE_CAPACITY : MESSAGE_UNKNOWN;
}

/* The rules again, on the figures that the wording has. Unused memory of the pool comes first, if
 * it is more than every pool has and no other holder has most of the card; else the holder with the
 * most memory. */
static enum message_cause expected(const struct figures *f, unsigned told)
{
    bool has_free = told & TELLS_FREE, has_pool = told & TELLS_POOL;
    bool card =
        has_free && (has_pool || (told & TELLS_ALLOCATED)) && !(told & (FREE_IS_LIMIT | ONE_POOL));
    double total = told & FREE_IS_LIMIT ? reserved(f) + f->available : f->total;
    double rest = card ? beyond_context(remainder_of(f, told)) : 0;
    double outside = beyond_context(f->outside);
    bool slack = !(told & ONE_POOL) && f->unallocated < reserved(f) / 50;
    struct {
        enum message_cause cause;
        double gain;
    } holders[] = {
        {MESSAGE_TENANT, told & TELLS_OTHERS ? f->others : 0},
        {MESSAGE_OUTSIDE, told & TELLS_OUTSIDE ? outside : 0},
        {told & TELLS_OUTSIDE ? MESSAGE_TENANT : MESSAGE_TENANT_OR_OUTSIDE, rest},
        {MESSAGE_FRAGMENTATION_POSSIBLE, has_pool && !slack ? f->unallocated : 0},
    };
    size_t best = 4;
    if ((told & TELLS_TOTAL) && f->asked > total)
        return MESSAGE_IMPOSSIBLE;
    if (has_free && f->asked <= f->available)
        return MESSAGE_NOT_THE_ALLOCATOR;
    for (size_t i = 0; i < 4 && has_free; i++)
        if (holders[i].gain > 0 && f->asked <= f->available + holders[i].gain &&
            (best == 4 || holders[i].gain > holders[best].gain))
            best = i;
    bool most = best < 3 && 2 * holders[best].gain > f->total;
    if (has_pool && !most && f->asked <= f->unallocated && !(slack && best < 4))
        return slack ? MESSAGE_CAPACITY : MESSAGE_FRAGMENTATION;
    return best < 4 ? holders[best].cause : expected_rest(told);
}

static void check(const struct wording *wording, const struct figures *figures, const char *text)
{
    struct message message;
    enum message_cause cause = expected(figures, wording->told);
    if (message_read(text, strlen(text), &message, &test_error))
        fail_msg("%s, %s: %s, of: %s", wording->name, figures->name, test_error.text, text);
    if (message.cause != cause)
        fail_msg("%s, %s: %s, not %s, of: %s", wording->name, figures->name,
                 message_cause_name(message.cause), message_cause_name(cause), text);
    if ((int)message.framework != wording->framework)
        fail_msg("%s: from %s: %s", wording->name, message_framework_name(message.framework), text);
    const struct message_figure *asked = &message.figures[MESSAGE_FIGURE_ASKED];
    assert_in_range(asked->bytes, bytes_of(figures->asked) - asked->coarse_bytes,
                    bytes_of(figures->asked) + asked->coarse_bytes);
    assert_int_equal(message.count, 1);
    assert_int_equal(message.taken, 1);
}

TEST(every_class_in_every_wording)
{
    each_text("wordings", "classes", check);
}

/* With all figures of PyTorch's current messages, the rules give all seven classes. */
static void check_class(const struct wording *wording, const struct figures *figures,
                        const char *text)
{
    if (wording->told == (TELLS_TOTAL | TELLS_FREE | TELLS_POOL | TELLS_OTHERS | TELLS_OUTSIDE))
        assert_int_equal(expected(figures, wording->told), figures->cause);
}

TEST(all_classes_are_told_apart)
{
    each_text("wordings", "classes", check_class);
}

static void check_reported(const struct wording *wording, const struct figures *report,
                           const char *text)
{
    struct message message;
    if (message_read(text, strlen(text), &message, &test_error))
        fail_msg("%s: %s", text, test_error.text);
    if (message.cause != report->cause)
        fail_msg("%s: %s, not %s, from: %s", report->name, message_cause_name(message.cause),
                 message_cause_name(report->cause), text);
    assert_int_equal(message.framework, wording->framework);
    assert_int_equal(message_missing(&message, MESSAGE_FIGURE_TOTAL), report->total < 0);
}

TEST(reports_in_each_wording)
{
    each_text("reported", "reports", check_reported);
}

/* With a line break after every 7th character, as on a narrow terminal, the causes are the same. */
static void check_broken(const struct wording *wording, const struct figures *report,
                         const char *text)
{
    struct writing broken = {""};
    if (strcmp(wording->name, "new") != 0)
        return;
    for (size_t at = 0; at < strlen(text); at += 7)
        writing_add(&broken, "%.7s\n", text + at);
    check_reported(wording, report, broken.text);
}

TEST(broken_lines_change_nothing)
{
    each_text("reported", "reports", check_broken);
}

/* Equal to the last printed digit: it fits by the figures, and that it is close is known. */
static void check_close(const struct wording *wording, const struct figures *equal,
                        const char *text)
{
    struct message message;
    if (!(wording->told & TELLS_POOL) || wording->framework != MESSAGE_PYTORCH)
        return;
    assert_ok(message_read(text, strlen(text), &message, &test_error));
    assert_int_equal(message.cause, equal->cause);
    assert_true(message.close);
}

TEST(equal_figures_are_close)
{
    each_text("wordings", "equal", check_close);
}

static void in_lines_of(size_t width, const char *before, const char *after, const char *text,
                        struct writing *out)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += width)
        writing_add(out, "%s%.*s%s\n", before, (int)width, text + at, after);
}

/* As JSON and a program's source write it. */
static void escaped(const char *text, struct writing *out)
{
    writing_add(out, "{\"message\": \"\\u001b[31mRuntimeError\\u001b[0m: ");
    for (const char *c = text; *c; c++)
        if (*c == '\n')
            writing_add(out, "\\n");
        else if (*c == '\t')
            writing_add(out, "\\t");
        else
            writing_add(out, "%c", *c);
    writing_add(out, "\", \"rank\": 3}");
}

static void check_wrapped(const struct wording *wording, const struct figures *figures,
                          const char *text)
{
    struct writing made[5] = {{""}};
    writing_add(&made[0],
                "\033[1;31m(RayWorker pid=41)\033[0m ERROR 02-03 04:05:06 engine.py:140] "
                "[rank1]: \033[31m%s\033[0m\r\n\r\nDuring handling of the above",
                text);
    escaped(text, &made[1]);
    if (strchr(text, '\n')) { /* such texts come line by line; their lines stay */
        writing_add(&made[2], "%s", text);
    } else {
        in_lines_of(61, "\xe2\x94\x82 ", " \xe2\x94\x82", text, &made[2]);
        in_lines_of(72, "> ", "\r", text, &made[3]);
        in_lines_of(40, "| ", " |", text, &made[4]);
    }
    for (size_t k = 0; k < 5; k++)
        if (made[k].text[0])
            check(wording, figures, made[k].text);
}

TEST(wrapped_texts_are_the_same)
{
    each_text("wordings", "classes", check_wrapped);
}

/* PyTorch 2.6's message of another process's memory, and one of the pool's own. */
static struct writing whole, other;

static void keep_texts(const struct wording *wording, const struct figures *figures,
                       const char *text)
{
    if (strcmp(wording->name, "torch 2.6") == 0 && figures->cause == MESSAGE_TENANT)
        writing_add(&whole, "%s", text);
    if (strcmp(wording->name, "torch 2.6") == 0 && figures->cause == MESSAGE_CAPACITY)
        writing_add(&other, "%s", text);
}

/* A log in which a wrapper prints the message cut before the whole of it follows. */
TEST(the_message_in_full_is_taken)
{
    struct writing log = {""};
    struct message message;
    each_text("wordings", "classes", keep_texts);
    writing_add(&log, "WARNING request failed: %.120s...\nTraceback (most recent call last):\n%s\n",
                whole.text, whole.text);
    assert_ok(message_read(log.text, strlen(log.text), &message, &test_error));
    assert_int_equal(message.count, 2);
    assert_int_equal(message.taken, 2);
    assert_int_equal(message.cause, MESSAGE_TENANT);
    /* A later one for other bytes is another failure. */
    writing_add(&other, "\n%s", whole.text);
    assert_ok(message_read(other.text, strlen(other.text), &message, &test_error));
    assert_int_equal(message.count, 2);
    assert_int_equal(message.taken, 1);
    assert_int_equal(message.cause, MESSAGE_CAPACITY);
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* The figures of a pattern in a text; false: it is not there. */
static bool finds(const char *pattern, const char *words, struct message_figure *figures)
{
    struct message_text text;
    memset(figures, 0, MESSAGE_FIGURE_COUNT * sizeof *figures);
    assert_ok(message_text_open(words, strlen(words), &text, &test_error));
    bool found = message_pattern_read(&text, pattern, 0, text.count, 0, figures);
    message_text_close(&text);
    return found;
}

TEST(patterns_of_wordings)
{
    struct message_figure figures[MESSAGE_FIGURE_COUNT];
    const struct message_figure *asked = &figures[MESSAGE_FIGURE_ASKED];
    const struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    assert_true(finds("asksA*freeF", "asks 5 MiB of which 7 bytes are free 300", figures));
    assert_int_equal(asked->bytes, 5 << 20);
    assert_int_equal(available->bytes, 300);
    /* The last begin counts, a number stands for itself, and a size may be the first. */
    assert_true(finds("asksA*end", "asks 1 KiB, asks 2 KiB, end", figures));
    assert_int_equal(asked->bytes, 2 << 10);
    assert_true(finds("Aongpu#", "take 3 KiB on GPU 12", figures));
    assert_int_equal(asked->bytes, 3 << 10);
    assert_false(finds("Aongpu#", "take 3 KiB on GPU", figures));
    /* Alternatives, what may be missing, and two parts of one request. */
    assert_true(finds("needsA|asksA&freeF|leftF", "asks 9, left 4", figures));
    assert_int_equal(asked->bytes, 9);
    assert_int_equal(available->bytes, 4);
    assert_false(finds("needsA&leftF", "asks 9, left 4", figures));
    assert_int_equal(available->bytes, 4);
    assert_true(finds("weights(A*buffers(E", "weights (2 KiB) and buffers (1 KiB)", figures));
    assert_int_equal(asked->bytes, 3 << 10);
    assert_true(asked->derived);
    /* A size below zero, and a figure that no card has. */
    assert_true(finds("asksA&leftF", "asks -8, left 2305843009213693952", figures));
    assert_int_equal(asked->bytes, UINT64_C(1) << 60);
    assert_false(available->known);
}

TEST(a_pattern_reaches_no_further_than_its_gap)
{
    struct message_figure figures[MESSAGE_FIGURE_COUNT];
    struct writing text = {"asks"};
    for (int i = 0; i < 400; i++)
        writing_add(&text, "x");
    assert_true((writing_add(&text, "end"), finds("asks*end", text.text, figures)));
    assert_false(finds("ask*end", text.text, figures));
}

static void check_buffer(const char *text, const char *source)
{
    struct message message;
    assert_ok(message_read(text, strlen(text), &message, &test_error));
    assert_int_equal(message.buffer.bytes, UINT64_C(4) << 30);
    assert_string_equal(message.buffer.source, source);
    assert_int_equal(message.figures[MESSAGE_FIGURE_PROGRAM].bytes, UINT64_C(18) << 30);
}

#define PROGRAM                                                                                    \
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.\n"              \
    "preallocated temp allocation: 12.00GiB\ntotal allocation: 18.00GiB\nBuffer 1:\n"              \
    "Size: 4.00GiB\nOperator: op_name=\"jit(f)\" "

TEST(the_largest_buffer_of_a_program_and_its_line)
{
    check_buffer(PROGRAM "source_file=\"/home/A/My_Train.py\" source_line=41\nBuffer 2:",
                 "My_Train.py:41");
    check_buffer(PROGRAM "source_file=\\\"a/b.py\\\" source_line=7", "b.py:7");
    check_buffer(PROGRAM "source_file=\"b.py\"       source_line=7", "b.py:7");
    check_buffer(PROGRAM "source_file=\"b.py\"        source_line=7", ""); /* of another file */
    check_buffer(PROGRAM "source_file=\"b.py\" source_line=", "");
    check_buffer(PROGRAM "source_file=\"b.py", "");
    check_buffer(PROGRAM "source_file=", "");
    check_buffer(PROGRAM, "");
}
