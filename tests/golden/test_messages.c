/* Out-of-memory messages of public threads: the cause, the confidence and the request of each.
 * messages.csv has the address of the thread and what the figures say; a confidence may be one of
 * several, separated by bars; "none" is a text that is no such message. Then the same texts as
 * logs, quotes, JSON and HTML print them. Last, all that is said of each, as text and as JSON:
 * pages.csv has a hash of it, and tests/golden/data/pages has some in full. PAGES=write writes
 * pages.csv anew. */
#include <ctype.h>

#include "allocators/base/fnv.h"
#include "bench/report/pages.h"
#include "sim/explain/message.h"
#include "tests/support/amount.h"
#include "tests/support/test.h"

#define FOLDER    "tests/golden/data/messages/"
#define TEXT_MOST 16384

struct row {
    char file[64], cause[32], confidence[32];
    uint64_t asked_bytes; /* 0: not in the message */
};

/* Reads "file,source,verdict,confidence,requested_bytes". */
static bool read_row(char *line, struct row *row)
{
    char *fields[5], *at = line;
    for (int i = 0; i < 5; i++) {
        fields[i] = at;
        at = strchr(at, i < 4 ? ',' : '\n');
        assert_non_null(at);
        *at++ = '\0';
    }
    if (strcmp(fields[0], "file") == 0)
        return false;
    snprintf(row->file, sizeof row->file, "%s", fields[0]);
    snprintf(row->cause, sizeof row->cause, "%s", fields[2]);
    snprintf(row->confidence, sizeof row->confidence, "%s", fields[3]);
    row->asked_bytes = strtoull(fields[4], NULL, 10);
    assert_true(strncmp(fields[1], "https://", 8) == 0 || strcmp(fields[1], "-") == 0);
    return true;
}

static void read_file(const char *name, char text[TEXT_MOST])
{
    char path[160];
    snprintf(path, sizeof path, FOLDER "%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t bytes = fread(text, 1, TEXT_MOST - 1, file);
    fclose(file);
    text[bytes] = '\0';
}

/* Whether one of the words between bars is `word`. */
static bool is_one_of(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == '|') && (at[length] == '|' || !at[length]))
            return true;
    return false;
}

/* What is shown makes up no more than the total, or the page says that it does. */
static void check_sums(const struct row *row, const char *form, const struct message *message)
{
    static const enum message_figure_name parts[] = {MESSAGE_FIGURE_FREE, MESSAGE_FIGURE_OTHERS,
                                                     MESSAGE_FIGURE_REMAINDER,
                                                     MESSAGE_FIGURE_OUTSIDE_POOL};
    const struct message_figure *figures = message->figures, *part;
    const struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    struct message_figure sum = *reserved;
    if (!total->known || message->contradictions || message->limit_passed)
        return;
    if (!reserved->known)
        sum = figures[MESSAGE_FIGURE_ALLOCATED];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        part = &figures[parts[i]];
        sum.bytes += part->known ? part->bytes : 0;
        sum.coarse_bytes += part->coarse_bytes;
    }
    if (sum.bytes > total->bytes + total->coarse_bytes + sum.coarse_bytes)
        fail_msg("%s, %s: the parts are together %" PRIu64 " of %" PRIu64 " bytes", row->file, form,
                 sum.bytes, total->bytes);
}

static void check(const struct row *row, const char *form, const char *text)
{
    struct message message;
    enum ar_status status = message_read(text, strlen(text), &message, &test_error);
    if (strcmp(row->cause, "none") == 0) {
        if (status != AR_INVALID || message.incomplete)
            fail_msg("%s, %s: is read as a message", row->file, form);
        return;
    }
    if (status)
        fail_msg("%s, %s: %s", row->file, form, test_error.text);
    const char *cause = message_cause_name(message.cause);
    const char *confidence = message_confidence_name(message.confidence);
    const struct message_figure *asked = &message.figures[MESSAGE_FIGURE_ASKED];
    if (strcmp(cause, row->cause) != 0 || !is_one_of(row->confidence, confidence))
        fail_msg("%s, %s: %s (%s), not %s (%s)", row->file, form, cause, confidence, row->cause,
                 row->confidence);
    if (row->asked_bytes)
        assert_in_range(asked->bytes, row->asked_bytes - 1, row->asked_bytes + 1);
    check_sums(row, form, &message);
}

/* Writes the text with a prefix at each line, as a log does. */
static void with_prefix(const char *text, const char *prefix, char *out)
{
    size_t length = strlen(prefix);
    bool first = true;
    for (; *text; text++) {
        if (first) {
            memcpy(out, prefix, length);
            out += length;
        }
        *out++ = *text;
        first = *text == '\n';
    }
    *out = '\0';
}

/* As JSON prints it. */
static void escaped(const char *text, char *out)
{
    for (; *text; text++) {
        const char *code = *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : NULL;
        if (code)
            out = stpcpy(out, code);
        else
            *out++ = *text;
    }
    *out = '\0';
}

/* As a page of HTML has it. */
static void marked_up(const char *text, char *out)
{
    out = stpcpy(out, "<pre><code>");
    for (; *text; text++) {
        const char *code = *text == '\n'   ? "<br/>"
                           : *text == '>'  ? "&gt;"
                           : *text == '<'  ? "&lt;"
                           : *text == '\'' ? "&#39;"
                           : *text == '"'  ? "&quot;"
                                           : NULL;
        if (code)
            out = stpcpy(out, code);
        else
            *out++ = *text;
    }
    strcpy(out, "</code></pre>");
}

/* As an input method of East Asia writes it. */
static void of_full_width(const char *text, char *out)
{
    for (; *text; text++)
        if ((*text >= '0' && *text <= '9') || *text == '(' || *text == ';')
            out += sprintf(out, "\xef\xbc%c", *text + 0x60);
        else
            *out++ = *text;
    *out = '\0';
}

/* As pages print characters by their codes, and JSON of some writers. */
static void by_codes(const char *text, char *out)
{
    unsigned marks = 0;
    for (; *text; text++)
        if (!strchr("():;>'=", *text))
            *out++ = *text;
        else
            out += sprintf(out,
                           ++marks % 3 == 0  ? "&#%d;"
                           : marks % 12 == 1 ? "&#X%X;"
                           : marks % 12 == 2 ? "\\u%04X"
                           : marks % 3 == 1  ? "&#x%x;"
                                             : "\\u%04x",
                           *text);
    *out = '\0';
}

/* As Windows and a terminal with colours print it. */
static void coloured(const char *text, char *out)
{
    out = stpcpy(out, "\033[1;31m");
    for (; *text; text++) {
        if (*text == '\n')
            out = stpcpy(out, "\033[0m\r");
        *out++ = *text;
    }
    *out = '\0';
}

/* Every message is read under a sanitizer too, but in other forms only every third. */
static bool has_forms(unsigned row)
{
#ifdef __SANITIZE_ADDRESS__
    return row % 3 == 0 || test_amount(1, 0);
#else
    (void)row;
    return true;
#endif
}

static void each_message(void (*examine)(const struct row *row, const char *text), bool in_forms)
{
    static char text[TEXT_MOST];
    char line[512];
    unsigned rows = 0;
    FILE *file = fopen(FOLDER "messages.csv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct row row;
        if (!read_row(line, &row))
            continue;
        rows++;
        if (in_forms && !has_forms(rows))
            continue;
        read_file(row.file, text);
        examine(&row, text);
    }
    fclose(file);
    assert_true(rows >= 1200);
}

static void check_plain(const struct row *row, const char *text)
{
    check(row, "plain", text);
}

static void check_wrapped(const struct row *row, const char *text)
{
    static char out[8 * TEXT_MOST];
    with_prefix(text, "> ", out);
    check(row, "quoted", out);
    with_prefix(text, "[rank3]: ", out);
    check(row, "of a rank", out);
    with_prefix(text, "2026-03-04T05:06:07.890Z stderr F ", out);
    check(row, "in a container's log", out);
    escaped(text, out);
    check(row, "in JSON", out);
    marked_up(text, out);
    check(row, "in HTML", out);
    coloured(text, out);
    check(row, "coloured", out);
    of_full_width(text, out);
    check(row, "of full width", out);
    by_codes(text, out);
    check(row, "by codes", out);
}

/* ---- how users paste them ------------------------------------------------------------------ */

/* Lines of `width` characters, each between the same words, as a terminal or a box wraps them. */
static char *in_lines_of(size_t width, const char *before, const char *after, const char *text,
                         char *out)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), part = length < width ? length : width;
        while (part < length && ((unsigned char)text[part] & 0xc0) == 0x80)
            part++;
        out += sprintf(out, "%s%.*s%s\n", before, (int)part, text, after);
        text += part + (part == length && text[part]);
    }
    return out;
}

static void of_terminal(const char *text, char *out)
{
    in_lines_of(80, "", "", text, out);
}

static void of_mail(const char *text, char *out)
{
    out = stpcpy(out, "On Tue, Mar 3, 2026 at 4:05 PM A. User wrote:\n");
    in_lines_of(72, "> > ", "", text, out);
}

/* Quoted-printable. */
static void of_soft_mail(const char *text, char *out)
{
    for (size_t width = 1; *text; width = *text++ == '\n' ? 1 : width + 1) {
        *out++ = *text;
        if (width % 75 == 0 && *text > ' ' && text[1] > ' ')
            out = stpcpy(out, "=\n");
    }
    *out = '\0';
}

static void of_box(const char *text, char *out)
{
    in_lines_of(61, "\xe2\x94\x82 ", " \xe2\x94\x82", text, out);
}

static void of_docker(const char *text, char *out)
{
    static char lines[4 * TEXT_MOST], json[8 * TEXT_MOST];
    in_lines_of(100, "", "", text, lines);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        escaped(line, json);
        out += sprintf(
            out, "{\"log\":\"%s\\n\",\"stream\":\"stderr\",\"time\":\"2026-03-04T05:06:07.89Z\"}\n",
            json);
    }
}

static void of_pod(const char *text, char *out)
{
    in_lines_of(120, "2026-03-04T05:06:07.891234567Z stderr F [rank1]: ", "", text, out);
}

static void of_launcher(const char *text, char *out)
{
    in_lines_of(4000, "(Worker_TP1 pid=4711) ERROR 03-04 05:06:07 [multiproc_executor.py:140] ", "",
                text, out);
}

/* A bar of progress, before and behind the message. */
static void among_bars(const char *text, char *out)
{
    sprintf(
        out,
        "Epoch 3:  42%%|\xe2\x96\x88\xe2\x96\x8f  | 420/1000 [01:23<01:54,  5.07it/s, "
        "loss=0.69]\n%s\n"
        "Epoch 3:  42%%|\xe2\x96\x88\xe2\x96\x8f  | 421/1000 [01:24<01:54,  5.07it/s, v_num=12]\n",
        text);
}

/* JSON of a writer that has ASCII alone. */
static void of_ascii(const char *text, char *out)
{
    out = stpcpy(out, "{\"level\": \"error\", \"message\": \"");
    while (*text) {
        unsigned char c = (unsigned char)*text++;
        unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0, code = c;
        if (more)
            code = c & (0x3fu >> more);
        for (; more && *text; more--)
            code = code << 6 | ((unsigned char)*text++ & 0x3f);
        if (code > 0xffff)
            code = '?';
        out += c == '\n'               ? sprintf(out, "\\n")
               : c == '"' || c == '\\' ? sprintf(out, "\\%c", c)
               : c < 0x80              ? sprintf(out, "%c", c)
                                       : sprintf(out, "\\u%04x", code);
    }
    strcpy(out, "\"}");
}

/* A log within a log: escaped twice. */
static void twice(const char *text, char *out)
{
    static char json[4 * TEXT_MOST];
    of_ascii(text, json);
    of_ascii(json, out);
}

/* The first half alone, as a screen shows it. */
static void cut_short(const char *text, char *out)
{
    sprintf(out, "%.*s", (int)(strlen(text) * 2 / 3), text);
}

static const struct pasting {
    const char *name;
    void (*write)(const char *text, char *out);
    bool less; /* the text has less in it */
} pastings[] = {
    {"terminal", of_terminal, false}, {"mail", of_mail, false},     {"soft", of_soft_mail, false},
    {"box", of_box, false},           {"Docker", of_docker, false}, {"pod", of_pod, false},
    {"launcher", of_launcher, false}, {"bars", among_bars, false},  {"ASCII", of_ascii, false},
    {"twice", twice, false},          {"cut", cut_short, true},
};

static bool is_read(const char *text, struct message *message)
{
    return message_read(text, strlen(text), message, &test_error) == AR_OK;
}

/* The cause is that of the plain text, or it is not told; never another one, nor a surer one. */
static void check_pastings(const struct row *row, const char *text)
{
    static char out[16 * TEXT_MOST];
    struct message plain, pasted;
    bool read = is_read(text, &plain);
    for (size_t i = 0; i < sizeof pastings / sizeof *pastings; i++) {
        bool less = pastings[i].less;
        pastings[i].write(text, out);
        if (!is_read(out, &pasted)) {
            /* A word that is a message if it is a line of its own is none among others. */
            if (read && !less && !plain.indirect)
                fail_msg("%s, %s: %s", row->file, pastings[i].name, test_error.text);
            continue;
        }
        bool same = read && pasted.cause == plain.cause && pasted.confidence >= plain.confidence;
        /* What made it unsure may stand in the part that is cut off. */
        bool lost = less && read && pasted.cause == plain.cause &&
                    plain.reasons & (1u << MESSAGE_REASON_SEVERAL | 1u << MESSAGE_REASON_TOLD |
                                     1u << MESSAGE_REASON_INDIRECT);
        if (!same && pasted.confidence != MESSAGE_OPEN && !lost &&
            !(less && pasted.confidence == MESSAGE_LIKELY))
            fail_msg("%s, %s: %s (%s)", row->file, pastings[i].name,
                     message_cause_name(pasted.cause), message_confidence_name(pasted.confidence));
    }
}

TEST(as_users_paste_them)
{
    each_message(check_pastings, true);
}

TEST(public_messages)
{
    each_message(check_plain, false);
}

TEST(the_same_messages_in_logs_and_pages)
{
    each_message(check_wrapped, true);
}

/* ---- samples/: taken by a rule, not chosen -------------------------------------------------- */

struct sample {
    unsigned rows, several, right, sure_and_wrong;
};

/* Counts a row "message, thread, verdict, confidence, requested_bytes, reason": bars stand between
 * several answers that are all right. */
static void count_row(struct sample *sample, char *line)
{
    static char text[TEXT_MOST];
    char *fields[5], name[80], asked[24];
    struct message message;
    sample->several += strchr(line, '|') && strchr(line, '|') < strrchr(line, '\t');
    for (int i = 0; i < 5; i++) {
        fields[i] = line;
        line = strchr(line, '\t');
        assert_non_null(line);
        *line++ = '\0';
    }
    snprintf(name, sizeof name, "%s.txt", fields[0]);
    read_file(name, text);
    bool read = is_read(text, &message);
    const char *cause = read ? message_cause_name(message.cause) : "none";
    const char *confidence = read ? message_confidence_name(message.confidence) : "-";
    snprintf(asked, sizeof asked, "%" PRIu64,
             read ? message.figures[MESSAGE_FIGURE_ASKED].bytes : 0);
    bool right = is_one_of(fields[2], cause) && is_one_of(fields[3], confidence) &&
                 is_one_of(fields[4], asked);
    if (!right)
        print_message("%s: %s (%s), %s\n", name, cause, confidence, asked);
    sample->rows++;
    sample->right += right;
    sample->sure_and_wrong += !right && strcmp(confidence, "sure") == 0;
}

static struct sample count_sample(unsigned number)
{
    char path[96], line[1024];
    struct sample sample = {0};
    snprintf(path, sizeof path, FOLDER "samples/expected_%u.tsv", number);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "message\tthread\tverdict\tconfidence\trequested_bytes\treason\n");
    while (fgets(line, sizeof line, file))
        count_row(&sample, line);
    fclose(file);
    return sample;
}

/* The table of samples/README.md says how many of each sample this version answers as expected. */
TEST(samples_are_answered_as_their_table_says)
{
    static char text[TEXT_MOST];
    read_file("samples/README.md", text);
    for (unsigned number = 1; number <= 9; number++) {
        char start[16];
        unsigned rows, several, first, sure, right;
        struct sample sample = count_sample(number);
        snprintf(start, sizeof start, "\n| %u |", number);
        const char *row = strstr(text, start);
        assert_non_null(row);
        assert_int_equal(sscanf(row + strlen(start), " %u of %u | %u | %u of %u | %u |", &first,
                                &rows, &sure, &right, &rows, &several),
                         6);
        assert_int_equal(sample.rows, rows);
        assert_int_equal(sample.several, several);
        assert_int_equal(sample.right, right);
        assert_int_equal(sample.sure_and_wrong, 0);
        assert_true(first <= right);
    }
}

/* The page and the JSON of a message, or why it is none; the caller frees it. */
static char *said_of(const char *text)
{
    char *said = NULL;
    size_t bytes;
    struct message message;
    FILE *stream = open_memstream(&said, &bytes);
    assert_non_null(stream);
    if (message_read(text, strlen(text), &message, &test_error)) {
        fprintf(stream, "%s\n", test_error.text);
    } else {
        message_page_print(stream, &message, false);
        explain_json_message(stream, &message);
    }
    fclose(stream);
    return said;
}

static uint64_t hash_of(const char *text)
{
    return ar_fnv64(AR_FNV64_SEED, text, strlen(text));
}

static FILE *pages; /* FILE,HASH in the order of messages.csv */

static void write_page(const struct row *row, const char *text)
{
    FREED char *said = said_of(text);
    fprintf(pages, "%s,%016" PRIx64 "\n", row->file, hash_of(said));
}

static void check_page(const struct row *row, const char *text)
{
    char line[128], wanted[128], *said = said_of(text);
    snprintf(line, sizeof line, "%s,%016" PRIx64 "\n", row->file, hash_of(said));
    if (!fgets(wanted, sizeof wanted, pages) || strcmp(line, wanted) != 0)
        fail_msg("%s: other words or figures than before:\n%s", row->file, said);
    free(said);
}

TEST(all_that_is_said)
{
    const char *mode = getenv("PAGES");
    bool writes = mode && strcmp(mode, "write") == 0;
    pages = fopen(FOLDER "pages.csv", writes ? "w" : "r");
    assert_non_null(pages);
    each_message(writes ? write_page : check_page, false);
    fclose(pages);
}
