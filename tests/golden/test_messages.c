/* Out-of-memory messages of public threads: the cause, the confidence and the request of each.
 * messages.csv has the address of the thread and what the figures say; a confidence may be one of
 * several, separated by bars; "none" is a text that is no such message. Then the same texts as
 * logs, quotes, JSON and HTML print them. Last, all that is said of each, as text and as JSON:
 * pages.csv has a hash of it, and tests/golden/data/pages has some in full. PAGES=write writes
 * pages.csv anew. */
#include <ctype.h>

#include "bench/report/pages.h"
#include "sim/explain/message.h"
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

static void check(const struct row *row, const char *form, const char *text)
{
    struct message message;
    enum ar_status status = message_read(text, strlen(text), &message, &test_error);
    if (strcmp(row->cause, "none") == 0) {
        assert_int_equal(status, AR_INVALID);
        assert_false(message.incomplete);
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

static void each_message(void (*examine)(const struct row *row, const char *text))
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
        read_file(row.file, text);
        examine(&row, text);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 890);
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

TEST(public_messages)
{
    each_message(check_plain);
}

TEST(the_same_messages_in_logs_and_pages)
{
    each_message(check_wrapped);
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
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
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
    each_message(writes ? write_page : check_page);
    fclose(pages);
}
