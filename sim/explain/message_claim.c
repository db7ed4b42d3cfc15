#include "sim/explain/message_claim.h"

#include <ctype.h>

#include "sim/explain/message_forms.h"

#define NEAR_CHARACTERS 100
#define NEAR_BEFORE     160

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

bool message_claim_is_feared(const struct message_text *text, size_t at)
{
    static const char *const words[] = {
        "notrun",      "neverrun",  "yourun",     "mayrun",   "canrun",         "mightrun",
        "couldrun",    "wouldrun",  "willrun",    "avoid",    "avoiding",       "prevent",
        "preventing",  "if",        "unless",     "incase",   "incaseof",       "whena",
        "ratherthana", "insteadof", "isnot",      "nota",     "isn't",          "wasnot",
        "wasn't",      "thereisno", "willnotbe",  "canbe",    "couldbe",        "when",
        "wouldcause",  "cancause",  "couldcause", "maycause", "mightcause",     "notdueto",
        "notcausedby", "arenot",    "therewasno", "hadno",    "gotno",          "getno",
        "without",     "neverruns", "neverran",   "n'trun",   "werenot",        "will",
        "would",       "could",     "might",      "ifyou",    "withoutrunning", "notrunning",
        "didnotreport"};
    static const char *const between[] = {"outof", "cuda",   "gpu",  "device", "plain",
                                          "real",  "video",  "the",  "an",     "any",
                                          "dueto", "killed", "being"};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++)
        at -= message_text_ends(text, between[i], at) ? strlen(between[i]) : 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (message_text_ends(text, words[i], at))
            return true;
    return message_text_ends(text, "no", at) && message_text_apart(text, at) &&
           (at == 2 || message_text_apart(text, at - 2));
}

bool message_claim_is_code(const struct message_text *text, size_t at)
{
    /* A space stands for one. */
    static const char *const words[] = {"print(",  "println(", "printf(", "console.log(", "logger.",
                                        "printf ", "echo ",    "grep ",   "egrep "};
    for (size_t i = at; i > 0 && at - i < NEAR_CHARACTERS;) {
        if (text->gaps[i--] == MESSAGE_GAP_LINE)
            break;
        if ((!text->gaps[i] && i > 0 && isalnum((unsigned char)text->chars[i - 1])) ||
            !strchr("pcleg", text->chars[i])) /* of the words */
            continue;
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            size_t length = strcspn(words[j], " ");
            if (strncmp(text->chars + i, words[j], length) == 0 &&
                (!words[j][length] || text->gaps[i + length] == MESSAGE_GAP_SPACE))
                return true;
        }
    }
    return false;
}

/* Whether the word at `at` is one that a task begins with. */
static bool begins_task(const struct message_text *text, size_t at)
{
    static const char *const words[] = {"add",    "improve", "support",   "handle",
                                        "catch",  "detect",  "tell",      "document",
                                        "expose", "rename",  "interpret", "clarify"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(text->chars + at, words[i], strlen(words[i])) == 0 &&
            text->gaps[at + strlen(words[i])] == MESSAGE_GAP_SPACE)
            return true;
    return false;
}

/* Whether a colon stands before the words, as a program prints one: "Document 17: out of memory".
 * One after the first words, if they are an error, is of its name: "Handle CUDA error: out of
 * memory"; and behind one may be another task, or what is quoted. */
static bool is_printed(const struct message_text *text, size_t at)
{
    size_t words = 1;
    bool colon = false;
    for (size_t i = 1; i <= at; i++) {
        words += message_text_apart(text, i);
        if (strchr("\"'", text->chars[i - 1]))
            return false;
        colon |= text->chars[i - 1] == ':' && message_text_apart(text, i) &&
                 !begins_task(text, i) && !(words <= 4 && message_text_ends(text, "error:", i));
    }
    return colon;
}

bool message_claim_is_task(const struct message_text *text, size_t at)
{
    return at >= 2 && at <= NEAR_BEFORE && !memchr(text->gaps + 1, MESSAGE_GAP_LINE, at) &&
           begins_task(text, 0) && !is_printed(text, at);
}

bool message_claim_is_template(const struct message_text *text, size_t at)
{
    static const char words[] = "%zubytes|%lubytes|%llubytes|%ldbytes|%lldbytes|%dbytes|%ubytes|"
                                "%sbytes|{}bytes|<n>bytes";
    size_t from = message_text_sentence_begin(text, at), end = message_text_sentence_end(text, at);
    if (message_text_any(text, words, from, end + 1))
        return true;
    for (size_t i = from; (i = message_text_find(text, "xbytes", i, end + 1)) != MESSAGE_NOWHERE;
         i++)
        if (message_text_apart(text, i) && message_text_apart(text, i + 1))
            return true;
    return false;
}

bool message_claim_is_defined(const struct message_text *text, size_t end)
{
    static const char *const words[] = {"means", "usuallymeans", "wouldmean", "iswhat"};
    end += text->chars[end] == '"' || text->chars[end] == '\'';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(text->chars + end, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

bool message_claim_is_survived(const struct message_text *text, size_t at)
{
    static const char words[] = ",trying|,retrying|,skipping|,reducing|,fallingback|,halving|"
                                ";trying|;retrying|;skipping|;fallingback|.retrying|.trying|"
                                ".skipping|batchskipped|willretry";
    size_t end = at;
    while (end < text->count && end - at < NEAR_CHARACTERS &&
           (end == at || text->gaps[end] != MESSAGE_GAP_LINE))
        end++;
    return message_text_any(text, words, at, end);
}

bool message_claim_denies_card(const struct message_text *text)
{
    static const char words[] = "notcuda|notgpu|notthegpu|notagpu|notvram|notvideomem|notthecard|"
                                "isn'tgpu|isn'tvram|nothingtodowiththegpu|nothingtodowithcuda|"
                                "vramisfine|vramisok|vramusageisfine|gpuisfine|gpumemoryisfine";
    return message_text_any(text, words, 0, text->count);
}

bool message_claim_is_guess(const struct message_text *text, size_t at)
{
    static const char words[] =
        "potential|possibl|maybe|mightbe|mayhave|perhaps|probably|otherwise|avoid|prevent|unless";
    size_t from = at;
    while (from > 0 && at - from < NEAR_CHARACTERS &&
           !(text->gaps[from] == MESSAGE_GAP_LINE && text->chars[from - 1] == '.'))
        from--;
    return message_text_any(text, words, from, at);
}

/* Whether the word at `at` is one that people write, and programs do not. */
static bool is_personal(const struct message_text *text, size_t at)
{
    static const char *const words[] = {
        "i",      "if",     "i'm",      "i've",    "we",       "we're", "our",       "ours",
        "my",     "me",     "us",       "does",    "did",      "says",  "said",      "doesn't",
        "didn't", "isn't",  "wasn't",   "should",  "would",    "once",  "never",     "no",
        "nor",    "prints", "when",     "whether", "consider", "might", "something", "because",
        "though", "anyone", "although", "fixed",   "asserts"};
    if (!message_text_apart(text, at) && (at == 0 || is_letter(text->chars[at - 1])))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(text->chars + at, words[i], length) == 0 &&
            (message_text_apart(text, at + length) || strchr(",", text->chars[at + length])))
            return true;
    }
    return false;
}

static size_t find_quote(const struct message_text *text, size_t at, size_t end)
{
    const char *quote = at < end ? memchr(text->chars + at, '"', end - at) : NULL;
    return quote ? (size_t)(quote - text->chars) + 1 : end;
}

/* Whether the message is quoted and the sentence goes on: "oom-kill event" together with .., or
 * [WinError 1455] "The paging file .." is. A quote before a key (level=) or a bracket is one of a
 * log. */
static bool is_quoted_within(const struct message_text *text, size_t at, size_t end)
{
    size_t next = find_quote(text, at, end);
    if (next <= at + 2 && message_text_apart(text, next - 1)) /* it begins here */
        next = find_quote(text, next, end);
    size_t after = next;
    while (after < text->count && is_letter(text->chars[after]) &&
           (after == next || !message_text_apart(text, after)))
        after++;
    return text->chars[next - 1] == '"' && after > next && message_text_apart(text, next) &&
           text->chars[after] != '=';
}

bool message_claim_is_told(const struct message_text *text, const struct message *self)
{
    size_t begin = message_text_sentence_begin(text, self->at);
    size_t end = message_text_sentence_end(text, self->end);
    size_t line = self->at;
    while (line > begin && text->gaps[line] != MESSAGE_GAP_LINE && text->chars[line - 1] != '"')
        line--;
    /* A program prints it as a line, which no one quotes. */
    if (self->figures[MESSAGE_FIGURE_ASKED].known && (line == 0 || text->chars[line - 1] != '"')) {
        begin = line;
        for (size_t at = self->end; at < end && text->chars[at] != '"'; at++)
            end = text->gaps[at] == MESSAGE_GAP_LINE ? at : end;
    }
    for (size_t at = begin; at < end; at++)
        if ((at < self->at || at >= self->end) && is_personal(text, at))
            return true;
    return text->chars[end] == '?' || is_quoted_within(text, self->end, end);
}

bool message_claim_is_example(const struct message_text *text, const struct message *self)
{
    static const char words[] = "ifyousee|ifyouread|ifyouget|ifitsays|suppose|imagine|forexample|"
                                "colleague|coworker|someoneelse|anotheruser";
    size_t from = self->at > NEAR_BEFORE ? self->at - NEAR_BEFORE : 0;
    return self->end && message_text_any(text, words, from, self->at);
}

/* ---- failures that there were none of ---- */

static size_t skip_any(const struct message_text *text, const char *words, size_t at)
{
    for (; words; words = message_pattern_next(words)) {
        size_t length = strcspn(words, "|");
        if (strncmp(text->chars + at, words, length) == 0)
            return at + length;
    }
    return at;
}

static size_t skip_back(const struct message_text *text, const char *words, size_t at)
{
    for (; words; words = message_pattern_next(words)) {
        size_t length = strcspn(words, "|");
        if (at >= length && strncmp(text->chars + at - length, words, length) == 0)
            return at - length;
    }
    return at;
}

/* Whether a word that says no stands before the failure at `at`: "no failures", "never exceeded". A
 * 0 is one before a plural, for "rank 0 failed". */
static bool is_negated(const struct message_text *text, size_t at, bool plural)
{
    static const char between[] = "running|gpu|cuda|device|single|any|memory|allocation|alloc|of|"
                                  "been|become";
    for (int i = 0; i < 3; i++)
        at = skip_back(text, between, at);
    size_t no = skip_back(text, "no|not|never|without|zero|nothing|neither|none|n't", at);
    if (no < at && (no == 0 || text->chars[no] == 'n' || message_text_apart(text, no)))
        return strncmp(text->chars + no, "n't", 3) == 0 || message_text_apart(text, no) || no == 0;
    if (at == 0 || text->chars[at - 1] != '0' || !message_text_apart(text, at))
        return false;
    char before = at > 1 ? text->chars[at - 2] : ',';
    return at == 1 || text->gaps[at - 1] == MESSAGE_GAP_LINE || strchr(",:;|(=", before) ||
           (plural && message_text_apart(text, at - 1));
}

/* Whether a count behind "failures" or "failed requests:" is 0. */
static bool counts_none(const struct message_text *text, size_t at)
{
    size_t end = skip_any(text, "ures|ure|ed|s", at);
    end = skip_any(text, "allocations|allocs|requests|jobs|tests|count", end);
    bool plural = end > at && text->chars[end - 1] == 's' && message_text_apart(text, end);
    size_t mark = end;
    while (plural && mark - end < 24 && text->gaps[mark] != MESSAGE_GAP_LINE &&
           !strchr(":=,;.", text->chars[mark]) && !isdigit((unsigned char)text->chars[mark]))
        mark++;
    bool marked = text->chars[mark] && strchr(":=", text->chars[mark]);
    mark += strspn(text->chars + mark, ":=");
    if (!marked && !(plural && mark == end))
        return false;
    if (strncmp(text->chars + mark, "none", 4) == 0)
        return true;
    char after = text->chars[mark] == '0' ? text->chars[mark + 1] : '1';
    return !after || strchr(",;|)(", after) ||
           (text->chars[mark] == '0' && text->gaps[mark + 1] == MESSAGE_GAP_LINE);
}

/* Whether what could not be done is to take memory, not to link, open or read something. */
static bool takes_memory(const struct message_text *text, size_t at)
{
    static const char verbs[] =
        "alloc|alocat|calloc|realloc|reserv|obtain|acquire|getmem|creat|grow|extend|expand|fit|"
        "commit|lock|pin|regist|findfree|findmem|findspace|findenough|findroom|findasuit|findsuit|"
        "satisf|claim|hold|malloc|map|mmap|enlarge|increase|provide|serve|store";
    at = skip_any(text, "be|dynamically|", at);
    return skip_any(text, verbs, at) > at;
}

bool message_claim_fails(const struct message_text *text, size_t at)
{
    static const char cannot[] = "unableto|cannotbe|can'tbe|couldnotbe|couldn'tbe|cannot|can't|"
                                 "couldnot|couldn't|failedto|failsto|failto|failureto";
    struct message_figure size;
    size_t verb = skip_any(text, cannot, at);
    if (verb > at)
        return takes_memory(text, verb);
    if (strncmp(text->chars + at, "outof", 5) == 0)
        return !(at > 0 && isdigit((unsigned char)text->chars[at - 1])) &&
               (!isdigit((unsigned char)text->chars[at + 5]) ||
                message_text_ends(text, "ran", at)) &&
               !message_text_size_before(text, at, &size) &&
               skip_any(text, "chunk", at + 5) == at + 5 && !is_negated(text, at, false);
    if (skip_any(text,
                 "notenougharg|notenoughperm|notenoughright|notenoughparam|notenoughval|"
                 "isfullof",
                 at) > at)
        return false;
    bool fail = strncmp(text->chars + at, "fail", 4) == 0;
    bool plural = fail && strncmp(text->chars + at, "failures", 8) == 0;
    return !is_negated(text, at, plural) && !(fail && counts_none(text, at + 4));
}

bool message_claim_fails_within(const struct message_text *text, const char *words, size_t from,
                                size_t to)
{
    for (; words; words = message_pattern_next(words)) {
        char word[24];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(words, "|"), words);
        for (size_t at = from; (at = message_text_find(text, word, at, to)) != MESSAGE_NOWHERE;
             at++)
            if (message_claim_fails(text, at))
                return true;
    }
    return false;
}

bool message_claim_is_untried(const struct message_text *text, size_t end)
{
    static const char words[] = "nottried|notcalled|notattempted|notneeded|notused|skipped|"
                                "succeeded|succeeds|:succe|:ok|ok,|passed|successful|returned0";
    size_t to = end;
    while (to < text->count && to - end < 40 && !strchr(",;", text->chars[to]) &&
           text->gaps[to] != MESSAGE_GAP_LINE)
        to++;
    return message_text_any(text, words, end, to + 1 < text->count ? to + 1 : to);
}

bool message_claim_is_none(const struct message_text *text, size_t end)
{
    static const char denied[] = "wasnotraised|wasnotinvoked|notraised|notinvoked|didnotoccur|"
                                 "didnothappen|wasnotseen|notseen";
    if (skip_any(text, denied, end) > end)
        return true;
    size_t count = skip_any(text, "events|event|count|errors|kills|s", end);
    count += strspn(text->chars + count, ":=");
    char after = text->chars[count] == '0' ? text->chars[count + 1] : '1';
    return count > end &&
           (!after || strchr(",;|)", after) ||
            (text->gaps[count + 1] == MESSAGE_GAP_LINE && text->chars[count] == '0'));
}
