#include "allocators/base/size.h"
#include "bench/regress/change_table.h"
#include "bench/regress/verdict.h"
#include "bench/report/result_writers.h"
#include "bench/report/sentence.h"

#define MISSING_TOLD   5  /* runs by name in the last line */
#define POLICIES_TOLD  12 /* lines for policies without --all */
#define UNCOVERED_TOLD 8  /* figures without a waiver, by name */

/* Its size; of a share the difference. */
static double size_of(const struct verdict_row *row)
{
    return row->difference >= 0 ? row->difference : row->change;
}

static enum change_place place_of(const struct verdict_row *row)
{
    return change_place(row->figure, row->difference >= 0);
}

bool verdict_is_worse(const struct verdict_row *row, const struct verdict_row *other)
{
    return change_is_worse(place_of(row), size_of(row), place_of(other), size_of(other));
}

/* The size of the change, the note, and the waiver without its name and reason. */
static void remark(const struct verdict_row *row, char text[400])
{
    char size[48] = "";
    if (size_of(row) >= 0 && !row->timed)
        change_size_text(size_of(row), row->difference >= 0,
                         row->verdict == VERDICT_WORSE ? "worse" : "better", size);
    snprintf(text, 400, "%s%s%s", size, size[0] && row->note[0] ? "; " : "", row->note);
    char waiver[48];
    change_waiver_text(row->waiver, waiver);
    text_add(text, 400, "%s%s", text[0] && waiver[0] ? "; " : "", waiver);
}

/* Nine digits of a fraction below 10^9; values() prints all digits if nine do not tell two values
 * apart. */
static void shorten(const char *text, char shorter[CHANGE_VALUE_ROOM])
{
    double number;
    if (ar_number_parse(text, &number) && strchr(text, '.') && number < 1e9)
        snprintf(shorter, CHANGE_VALUE_ROOM, "%.9g", number);
    else
        snprintf(shorter, CHANGE_VALUE_ROOM, "%s", text);
}

static void values(const struct verdict_row *row, char old[CHANGE_VALUE_ROOM],
                   char new[CHANGE_VALUE_ROOM])
{
    shorten(row->old, old);
    shorten(row->new, new);
    if (strcmp(old, new) == 0 && strcmp(row->old, row->new) != 0) {
        snprintf(old, CHANGE_VALUE_ROOM, "%s", row->old);
        snprintf(new, CHANGE_VALUE_ROOM, "%s", row->new);
    }
}

static const enum verdict verdict_order[] = {VERDICT_WORSE, VERDICT_BETTER, VERDICT_AMBIGUOUS,
                                             VERDICT_NO_DATA};

/* The rows in the order of their verdicts. NULL: no host memory. */
static const struct verdict_row **in_order(const struct verdicts *verdicts, size_t *count)
{
    const struct verdict_row **rows = calloc(verdicts->count + 1, sizeof(struct verdict_row *));
    *count = 0;
    for (size_t i = 0; rows && i < AR_COUNT(verdict_order); i++)
        for (size_t j = 0; j < verdicts->count; j++)
            if (verdicts->rows[j].verdict == verdict_order[i])
                rows[(*count)++] = &verdicts->rows[j];
    return rows;
}

/* Rows of one kind have the same verdict and waiver and, without data, the same reason. */
static bool same_kind(const struct verdict_row *a, const struct verdict_row *b)
{
    return a->verdict == b->verdict && a->waiver == b->waiver &&
           (a->verdict != VERDICT_NO_DATA || strcmp(a->note, b->note) == 0);
}

/* `kinds`: of each kind its first row. */
static void fill_row(const struct verdict_row **rows, size_t at, size_t *kinds, size_t *known,
                     struct change_row *out)
{
    const struct verdict_row *row = rows[at];
    size_t kind = 0;
    while (kind < *known && !same_kind(rows[kinds[kind]], row))
        kind++;
    if (kind == *known)
        kinds[(*known)++] = at;
    *out = (struct change_row){
        .item = {kind, row->policy, row->workload_name, row->figure, size_of(row), place_of(row)},
        .workload = row->workload,
        .where = row->where,
        .verdict = change_is_waived(row->waiver) ? "waived" : verdict_name(row->verdict),
        .waiver = row->waiver,
    };
    values(row, out->old, out->new);
    remark(row, out->remark);
}

static enum ar_status print_rows(const struct verdicts *verdicts, bool all, FILE *stream,
                                 enum table_form form, struct ar_error *error)
{
    static const struct change_words words = {"old", "new", "now"};
    size_t count = 0, known = 0;
    AR_FREED const struct verdict_row **rows = in_order(verdicts, &count);
    AR_FREED size_t *kinds = calloc(count + 1, sizeof *kinds);
    AR_FREED struct change_row *shown = calloc(count + 1, sizeof *shown);
    AR_TRY_MEMORY(rows && kinds && shown, error, "a table");
    for (size_t i = 0; i < count; i++)
        fill_row(rows, i, kinds, &known, &shown[i]);
    return change_table_print(shown, count, all, &words, stream, form, error);
}

/* ---- a line for each policy ---- */

/* Whether it says which of the two is better. */
static bool is_directed(const struct verdict_row *row)
{
    return row->verdict == VERDICT_WORSE || row->verdict == VERDICT_BETTER;
}

/* Adds "FIGURE 2 worse (embedding +1.3 % and others), 1 better (tape -4 %)" of a policy; NULL: of
 * all that are no headline, without an example. */
static void add_changes(char *line, size_t room, const struct verdicts *verdicts,
                        const char *policy, const char *figure)
{
    static const enum verdict order[] = {VERDICT_WORSE, VERDICT_BETTER};
    bool begun = false;
    for (size_t v = 0; v < AR_COUNT(order); v++) {
        const struct verdict_row *most = NULL;
        size_t count = 0;
        for (size_t i = 0; i < verdicts->count; i++) {
            const struct verdict_row *row = &verdicts->rows[i];
            if (row->verdict != order[v] || strcmp(row->policy, policy) != 0 ||
                (figure ? strcmp(row->figure, figure) != 0 : change_headline(row->figure) != NULL))
                continue;
            count++;
            most = most && most->change >= row->change ? most : row;
        }
        if (!count)
            continue;
        text_add(line, room, "%s%s %zu %s",
                 begun     ? ","
                 : line[0] ? "; "
                           : "",
                 begun    ? ""
                 : figure ? figure
                          : "other figures",
                 count, order[v] == VERDICT_WORSE ? "worse" : "better");
        if (figure)
            text_add(line, room, " (%.60s", most->workload_name);
        if (figure && most->change >= 0)
            text_add(line, room, " %c%.3g %%", (order[v] == VERDICT_WORSE) ? '+' : '-',
                     100 * most->change);
        text_add(line, room, "%s", !figure ? "" : count > 1 ? " and others)" : ")");
        begun = true;
    }
}

/* Whether an earlier row is of the same policy and has a verdict of direction. */
static bool is_told(const struct verdicts *verdicts, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_directed(&verdicts->rows[i]) &&
            strcmp(verdicts->rows[i].policy, verdicts->rows[at].policy) == 0)
            return true;
    return false;
}

static void print_policies(const struct verdicts *verdicts, bool all, FILE *stream)
{
    size_t told = 0, count = 0;
    for (size_t i = 0; i < verdicts->count; i++) {
        char line[1024] = "";
        const char *policy = verdicts->rows[i].policy;
        if (!is_directed(&verdicts->rows[i]) || is_told(verdicts, i))
            continue;
        if (count++ >= POLICIES_TOLD && !all)
            continue;
        for (const struct change_headline *at = change_headlines; at->figure; at++)
            add_changes(line, sizeof line, verdicts, policy, at->figure);
        if (!line[0])
            text_add(line, sizeof line, "outcome, memory, slowdown and instructions the same");
        add_changes(line, sizeof line, verdicts, policy, NULL);
        say(stream, "- %.100s: %s.", policy, line);
        told++;
    }
    if (count > told)
        say(stream, "- %zu more policies changed; --all has a line for each.", count - told);
    if (count)
        fputc('\n', stream);
}

static void print_effects(const struct verdicts *verdicts, FILE *stream)
{
    if (verdicts->timed)
        say(stream,
            "Smallest change that is detected: exact figures any; instructions %.0f %%; times %.2g "
            "%% (median of %zu tests; at most %.2g %%).",
            100 * VERDICT_INSTRUCTIONS, 100 * verdicts->sees_median, verdicts->timed,
            100 * verdicts->sees_most);
    else
        say(stream,
            "Smallest change that is detected: exact figures any; instructions %.0f %%; no times "
            "were compared.",
            100 * VERDICT_INSTRUCTIONS);
}

static bool is_uncovered(const struct verdict_row *row)
{
    return row->verdict == VERDICT_WORSE && !change_is_waived(row->waiver);
}

/* The figures, each once, that are worse and have no waiver, where others have one. */
static void print_uncovered(const struct verdicts *verdicts, FILE *stream)
{
    char line[1024] = "";
    size_t told = 0, figures = 0, count = verdicts->figures[VERDICT_WORSE] - verdicts->waived;
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *row = &verdicts->rows[i], *before = verdicts->rows;
        if (!is_uncovered(row))
            continue;
        while (before < row && (!is_uncovered(before) || strcmp(before->figure, row->figure) != 0))
            before++;
        if (before < row || figures++ >= UNCOVERED_TOLD)
            continue;
        text_add(line, sizeof line, "%s%s", told++ ? ", " : "", row->figure);
    }
    if (figures > told)
        text_add(line, sizeof line, ", and %zu more", figures - told);
    if (count)
        say(stream,
            "Worse and without a waiver: %s (%zu row%s). A change of memory is in many figures: a "
            "waiver without `metric` covers all of its policy.",
            line, count, count == 1 ? "" : "s");
}

static void print_waivers(const struct verdicts *verdicts, const struct waivers *waivers,
                          FILE *stream)
{
    bool worse = verdicts->figures[VERDICT_WORSE] > verdicts->waived;
    for (size_t i = 0; waivers && i < waivers->count; i++) {
        const struct waiver *waiver = &waivers->items[i];
        if (waiver->expired)
            say(stream, "Waiver %.60s expired on %s and does not count.", waiver->name,
                waiver->until);
        else if (waiver->exceeded)
            say(stream, "Waiver %.60s is for at most %g %%; what is above that is not waived.",
                waiver->name, 100 * waiver->at_most);
        else if (!waiver->used && worse)
            say(stream,
                "Waiver %.60s covers nothing here. Its patterns are those of whole names, as in "
                "the table.",
                waiver->name);
        else if (!waiver->used)
            say(stream, "Waiver %.60s covers nothing here; is it still needed?", waiver->name);
    }
    if (waivers && waivers->count)
        print_uncovered(verdicts, stream);
}

/* Whether another run differs from a missing one in its seed only, as far as the page says. */
static bool other_seed(const struct verdicts *verdicts, const struct verdict_row *row)
{
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *other = &verdicts->rows[i];
        if (row->frees && other->frees && other->seed != row->seed &&
            strcmp(other->workload, row->workload) == 0 && strcmp(other->policy, row->policy) == 0)
            return true;
    }
    return false;
}

static void tell_missing(const struct verdicts *verdicts, FILE *line)
{
    size_t told = 0;
    fprintf(line, "%zu run%s of OLD %s missing in NEW:", verdicts->missing,
            verdicts->missing == 1 ? "" : "s", verdicts->missing == 1 ? "is" : "are");
    for (size_t i = 0; i < verdicts->count && told < MISSING_TOLD; i++) {
        const struct verdict_row *row = &verdicts->rows[i];
        if (!row->missing)
            continue;
        fprintf(line, "%s %s with policy %s", told ? "," : "", row->workload_name, row->policy);
        if (other_seed(verdicts, row))
            fprintf(line, " and seed %" PRIu64, row->seed);
        told++;
    }
    if (verdicts->missing > told)
        fprintf(line, ", and %zu more", verdicts->missing - told);
    fputs(verdicts->require_all ? "." : ". `--require-all` makes that a failure.", line);
}

/* The last line, because a missing run is easily taken for an unchanged one. Without memory it is
 * told all the same, in one line. */
static void print_missing(const struct verdicts *verdicts, FILE *stream)
{
    char *text = NULL;
    size_t length;
    if (!verdicts->missing)
        return;
    FILE *folded = open_memstream(&text, &length);
    if (folded)
        tell_missing(verdicts, folded);
    if (text_end(folded, &text))
        say(stream, "%s", text);
    else {
        tell_missing(verdicts, stream);
        fputc('\n', stream);
    }
    free(text);
}

/* Two specs of one policy are two policies, and a run with other settings is another run. */
static void print_apart(const struct verdicts *verdicts, FILE *stream)
{
    for (size_t i = 0; i < verdicts->count; i++)
        for (size_t j = 0; j < verdicts->count && verdicts->rows[i].missing; j++) {
            const struct verdict_row *old = &verdicts->rows[i], *new = &verdicts->rows[j];
            size_t name = strcspn(old->policy, ":");
            if (!new->added || !old->frees || strcmp(old->workload, new->workload) != 0 ||
                name != strcspn(new->policy, ":") || strncmp(old->policy, new->policy, name) != 0)
                continue;
            if (strcmp(old->policy, new->policy) == 0) {
                say(stream, "%s with policy %.100s is in both with another %s, and not compared.",
                    old->workload_name, old->policy,
                    strcmp(old->device, new->device) != 0 ? "device"
                    : strcmp(old->frees, new->frees) != 0 ? "way to free"
                    : strcmp(old->host, new->host) != 0   ? "host time"
                                                          : "seed");
                return;
            }
            say(stream,
                "%.100s and %.100s are two policies here, and not compared: `run -p %.100s -p "
                "%.100s` shows both in one table.",
                old->policy, new->policy, old->policy, new->policy);
            return;
        }
}

/* What the two are, and whether they seem to be swapped. ISO 8601 sorts as text. */
static void print_origins(const struct verdicts *verdicts, FILE *stream)
{
    const struct result_set *old = verdicts->old, *new = verdicts->new;
    if (!old->time || !new->time)
        return;
    say(stream, "OLD: commit %.10s, %.40s; NEW: commit %.10s, %.40s.", old->commit, old->time,
        new->commit, new->time);
    if (strcmp(new->time, old->time) < 0)
        say(stream, "NEW was measured before OLD: are the two swapped?");
}

enum ar_status compare_page(const struct verdicts *verdicts, const struct waivers *waivers,
                            bool all, FILE *stream, enum table_form form, struct ar_error *error)
{
    enum ar_status status = print_rows(verdicts, all, stream, form, error);
    print_policies(verdicts, all, stream);
    const size_t *figures = verdicts->figures;
    char waived[48] = "";
    if (verdicts->waived)
        snprintf(waived, sizeof waived, " (%zu waived)", verdicts->waived);
    say(stream,
        "%zu figures SAME, %zu BETTER, %zu WORSE%s, %zu AMBIGUOUS, %zu NO-DATA, of %zu run%s and "
        "%zu count%s of instructions.",
        figures[VERDICT_SAME], figures[VERDICT_BETTER], figures[VERDICT_WORSE], waived,
        figures[VERDICT_AMBIGUOUS], figures[VERDICT_NO_DATA], verdicts->runs,
        verdicts->runs == 1 ? "" : "s", verdicts->counts, verdicts->counts == 1 ? "" : "s");
    print_origins(verdicts, stream);
    print_effects(verdicts, stream);
    print_waivers(verdicts, waivers, stream);
    print_missing(verdicts, stream);
    print_apart(verdicts, stream);
    return status;
}

/* Whether the row makes `compare` end with status 1. */
static bool fails(const struct verdicts *verdicts, const struct verdict_row *row)
{
    if (row->verdict == VERDICT_WORSE)
        return is_uncovered(row);
    return verdicts->require_all && (row->missing || row->lost);
}

void compare_junit(const struct verdicts *verdicts, FILE *stream)
{
    size_t failures = 0, skipped = 0;
    for (size_t i = 0; i < verdicts->count; i++) {
        bool failed = fails(verdicts, &verdicts->rows[i]);
        failures += failed;
        skipped += verdicts->rows[i].verdict >= VERDICT_WORSE && !failed;
    }
    fprintf(stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"compare\" "
            "tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n"
            "  <testsuite name=\"compare\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"%zu\">\n",
            verdicts->count + 1, failures, skipped, verdicts->count + 1, failures, skipped);
    fprintf(stream, "    <testcase classname=\"compare\" name=\"%zu figures are the same\"/>\n",
            verdicts->figures[VERDICT_SAME]);
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *row = &verdicts->rows[i];
        char text[400];
        char message[640];
        remark(row, text);
        snprintf(message, sizeof message, "%s: %s before, %s now; %s", verdict_name(row->verdict),
                 row->old, row->new, text);
        fputs("    <testcase", stream);
        xml_attribute(stream, "classname", row->workload_name);
        fputs(" name=\"", stream);
        xml_text(stream, row->policy);
        fputc(' ', stream);
        xml_text(stream, row->figure);
        fputs("\">\n", stream);
        if (row->verdict >= VERDICT_WORSE) {
            fprintf(stream, "      <%s message=\"",
                    !fails(verdicts, row)           ? "skipped"
                    : row->verdict == VERDICT_WORSE ? "failure type=\"regression\""
                                                    : "failure type=\"missing\"");
            xml_text(stream, message);
            if (row->waiver) {
                xml_text(stream, row->waiver->name);
                xml_text(stream, ": ");
                xml_text(stream, row->waiver->reason);
            }
            fputs("\"/>\n", stream);
        }
        fputs("    </testcase>\n", stream);
    }
    fputs("  </testsuite>\n</testsuites>\n", stream);
}

/* A number as a number, "-" and "null" as null, an outcome as text. */
static void put_value(struct json_writer *json, const char *key, const char *text)
{
    double number;
    if (strcmp(text, "-") == 0 || strcmp(text, "null") == 0)
        json_put_null(json, key);
    else if (!ar_number_parse(text, &number))
        json_put_text(json, key, text);
    else if (strspn(text, "0123456789") == strlen(text))
        json_put_integer(json, key, strtoull(text, NULL, 10));
    else
        json_put_real(json, key, number);
}

static void put_row(struct json_writer *json, const struct verdict_row *row)
{
    json_begin_object(json, NULL);
    json_put_text(json, "verdict", verdict_name(row->verdict));
    JSON_PUT(json, row, policy, workload);
    json_put_text(json, "device", row->where);
    JSON_PUT(json, row, frees, host);
    json_put_known(json, "seed", row->frees != NULL, row->seed);
    json_put_text(json, "metric", row->figure);
    put_value(json, "old", row->timed ? "-" : row->old);
    put_value(json, "new", row->timed ? "-" : row->new);
    json_put_known_real(json, "change", row->change >= 0, row->change);
    json_put_known_real(json, "ratio", row->timed, row->test.ratio);
    json_put_known_real(json, "low", row->timed, row->test.low);
    json_put_known_real(json, "high", row->timed, row->test.high);
    json_put_known_real(json, "p", row->timed, row->p);
    JSON_PUT(json, row, missing, added, lost);
    json_put_text(json, "note", row->note[0] ? row->note : NULL);
    json_put_text(json, "waiver", change_is_waived(row->waiver) ? row->waiver->name : NULL);
    json_end_object(json);
}

void compare_json(const struct verdicts *verdicts, FILE *stream)
{
    struct json_writer json = {.stream = stream, .lean_from = 2};
    const struct result_set *sets[] = {verdicts->old, verdicts->new};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", "allocrig.comparison/1");
    for (size_t i = 0; i < AR_COUNT(sets); i++) {
        json_begin_object(&json, i ? "new" : "old");
        JSON_PUT(&json, sets[i], commit, time);
        json_end_object(&json);
    }
    json_begin_object(&json, "figures");
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        json_put_integer(&json, verdict_name((enum verdict)verdict), verdicts->figures[verdict]);
    json_end_object(&json);
    json_put_integer(&json, "regressions", verdicts->figures[VERDICT_WORSE] - verdicts->waived);
    JSON_PUT(&json, verdicts, runs, counts, missing, lost);
    json_begin_array(&json, "rows");
    for (size_t i = 0; i < verdicts->count; i++)
        put_row(&json, &verdicts->rows[i]);
    json_end_array(&json);
    json_end_object(&json);
}

void compare_annotations(const struct verdicts *verdicts, FILE *stream)
{
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict_row *row = &verdicts->rows[i];
        char why[400];
        char text[1600];
        bool failed = fails(verdicts, row), worse = row->verdict == VERDICT_WORSE;
        if (!failed && !worse)
            continue;
        remark(row, why);
        snprintf(text, sizeof text, "%s with policy %s: %s before, %s now; %s" WAIVER_FORMAT,
                 row->workload_name, row->policy, row->old, row->new, why,
                 WAIVER_TEXTS(row->waiver));
        annotation_of(stream, failed ? "error" : "warning", row->figure,
                      worse ? "worse" : "missing", text);
    }
}

/* ---- annotation ---- */

/* Of a comma and a colon, which end a property, GitHub decodes the escapes only there. */
static void escaped(FILE *stream, const char *text, const char *letters)
{
    for (; *text; text++)
        if (strchr(letters, *text))
            fprintf(stream, "%%%02X", (unsigned)(unsigned char)*text);
        else
            fputc(*text, stream);
}

void annotation_of(FILE *stream, const char *level, const char *figure, const char *what,
                   const char *text)
{
    fprintf(stream, "::%s title=", level);
    escaped(stream, figure, "%\r\n,:");
    fprintf(stream, " is %s::", what);
    escaped(stream, text, "%\r\n");
    fputc('\n', stream);
}
