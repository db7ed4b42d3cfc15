#include "sim/explain/message_claim.h"

#include <ctype.h>

#define NEAR_CHARACTERS 100
#define NEAR_BEFORE     160

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

bool message_claim_is_feared(const struct message_text *text, size_t at)
{
    static const char *const words[] = {
        "notrun",      "neverrun",  "yourun",     "mayrun",   "canrun",     "mightrun",
        "couldrun",    "wouldrun",  "willrun",    "avoid",    "avoiding",   "prevent",
        "preventing",  "if",        "unless",     "incase",   "incaseof",   "whena",
        "ratherthana", "insteadof", "isnot",      "nota",     "isn't",      "wasnot",
        "wasn't",      "thereisno", "willnotbe",  "canbe",    "couldbe",    "when",
        "wouldcause",  "cancause",  "couldcause", "maycause", "mightcause", "notdueto",
        "notcausedby", "arenot",    "therewasno", "hadno",    "gotno",      "getno",
        "without",     "neverruns", "neverran",   "n'trun",   "werenot",    "will",
        "would",       "could",     "might",      "ifyou"};
    static const char *const between[] = {"outof", "cuda",   "gpu",  "device", "plain",
                                          "real",  "video",  "the",  "an",     "any",
                                          "dueto", "killed", "being"};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++)
        at -= message_text_ends(text, between[i], at) ? strlen(between[i]) : 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (message_text_ends(text, words[i], at))
            return true;
    return false;
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
