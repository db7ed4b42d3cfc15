#include "sim/explain/message.h"

#include <ctype.h>
#include <string.h>

#include "sim/explain/message_text.h"

#define TEXTS(function, type, list, text_of)                                                       \
    const char *function(enum type of)                                                             \
    {                                                                                              \
        static const char *const texts[] = {list(text_of)};                                        \
        return texts[of];                                                                          \
    }
#define TEXT(name, text)         text,
#define WORD(name, word, second) word,
#define LAST(name, word, second) second,

TEXTS(message_cause_name, message_cause, MESSAGE_CAUSES, WORD)
TEXTS(message_cause_meaning, message_cause, MESSAGE_CAUSES, LAST)
TEXTS(message_reason_text, message_reason, MESSAGE_REASONS, TEXT)
TEXTS(message_contradiction_text, message_contradiction, MESSAGE_CONTRADICTIONS, TEXT)
TEXTS(message_framework_name, message_framework, MESSAGE_FRAMEWORKS, WORD)
TEXTS(message_framework_summary, message_framework, MESSAGE_FRAMEWORKS, LAST)
TEXTS(message_figure_text, message_figure_name, MESSAGE_FIGURES, TEXT)

const char *message_confidence_name(enum message_confidence confidence)
{
    static const char *const names[] = {"sure", "likely", "cannot be told"};
    return names[confidence];
}

/* The readers of the kinds of messages. The first one that finds a request with its size, or that
 * needs none, is used. Kinds with words of their own stand before those with general words. */
static const struct kind {
    bool (*read)(const struct message_text *, struct message *);
    bool needs_size;
} kinds[] = {
    {message_read_torch, true},    {message_read_forms, true},  {message_read_vllm, true},
    {message_read_xla, true},      {message_read_julia, false}, {message_read_bare, false},
    {message_read_printed, false},
};

/* Paths such as C:\Users, or words of that system. */
static bool is_windows(const struct message_text *text)
{
    static const char words[] = "\\lib\\site-packages|[winerror|\\c10\\|\\aten\\|microsoft windows";
    const char *at = text->chars, *end = text->chars + text->count;
    if (message_text_any(text, words, 0, text->count))
        return true;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        bool drive = at - text->chars >= 2 && at[-1] == ':' && at[-2] >= 'a' && at[-2] <= 'z';
        if (drive && (at - text->chars == 2 || !(at[-3] >= 'a' && at[-3] <= 'z')))
            return true;
        at++;
    }
    return false;
}

/* A listing of nvidia-smi beside the message: "98MiB / 1999MiB |  0%". It is of another moment. */
static void read_listing(const struct message_text *text, struct message *self)
{
    for (size_t at = 0; (at = message_text_find(text, "mib/", at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        struct message_figure used, total;
        size_t end = message_text_size(text, at + 4, &total);
        if (end == MESSAGE_NOWHERE || total.coarse_bytes != UINT64_C(1) << 19 ||
            !message_text_size_before(text, at + 3, &used))
            continue;
        end += text->chars[end] == '|';
        bool percent = text->chars[end + strspn(text->chars + end, "0123456789")] == '%';
        if (!percent && strncmp(text->chars + end, "n/a", 3) != 0)
            continue;
        if (self->listing.cards++ == 0) {
            self->listing.used = used.bytes;
            self->listing.total = total.bytes;
        }
    }
}

/* ---- what else the text says ----------------------------------------------------------------- */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Whether the word at `at` is one that people write, and programs do not. */
static bool is_personal(const struct message_text *text, size_t at)
{
    static const char *const words[] = {
        "i",      "if",       "i'm",     "i've",     "we",    "we're",     "our",     "ours",
        "my",     "me",       "us",      "does",     "did",   "says",      "said",    "doesn't",
        "didn't", "isn't",    "wasn't",  "should",   "would", "once",      "never",   "no",
        "nor",    "when",     "whether", "consider", "might", "something", "because", "though",
        "anyone", "although", "fixed",   "asserts"};
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

/* Whether the message is quoted and the sentence goes on: "oom-kill event" together with .. A
 * quote before a key (level=) or a bracket is one of a log. */
static bool is_quoted_within(const struct message_text *text, size_t at, size_t end)
{
    const char *quote = memchr(text->chars + at, '"', end - at);
    size_t next = quote ? (size_t)(quote - text->chars) + 1 : end, after = next;
    while (after < text->count && is_letter(text->chars[after]) &&
           (after == next || !message_text_apart(text, after)))
        after++;
    return after > next && message_text_apart(text, next) && text->chars[after] != '=';
}

/* Whether the words of the message are those of a person, who may tell of another time. */
static bool is_told(const struct message_text *text, const struct message *self)
{
    size_t end = message_text_sentence_end(text, self->end);
    for (size_t at = message_text_sentence_begin(text, self->at); at < end; at++)
        if ((at < self->at || at >= self->end) && is_personal(text, at))
            return true;
    return text->chars[end] == '?' || is_quoted_within(text, self->end, end);
}

#define NEAR_CHIP 400

/* Whether the text tells of an "OOM", which a counter with 0 ("CUDA OOMs: 0") does not. */
static bool tells_of_oom(const struct message_text *text)
{
    for (size_t at = 0; (at = message_text_find(text, "oom", at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        const char *rest = text->chars + at + strlen("oom");
        rest += strspn(rest, "s:=");
        bool zero = *rest == '0' && !isdigit((unsigned char)rest[1]) && rest[1] != '.';
        char last = at > 0 && !text->gaps[at] ? text->chars[at - 1] : ' ';
        if (!isalnum((unsigned char)last) && last != '_' && !zero)
            return true;
    }
    return false;
}

/* What may make a sure answer wrong: words of a person, another failure, another try. */
static void read_rest(const struct message_text *text, struct message *self)
{
    static const char tries[] = "ignoringthischoice|autotun|rejected|skipping|skipped|tuner";
    size_t from = self->at > NEAR_CHIP ? self->at - NEAR_CHIP : 0;
    if (self->on_chip)
        self->may_fail |= message_text_any(text, tries, from, self->end + NEAR_CHIP);
    if (self->host && self->end && !self->indirect) {
        self->told = is_told(text, self);
        self->several = message_text_tells_of_card(text, self);
    }
    if (self->printed)
        self->several = message_text_any(text, "outofmem|out-of-mem|oomerror", 0, text->count) ||
                        tells_of_oom(text);
}

static bool read_kinds(const struct message_text *text, struct message *self)
{
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct message other = {0};
        if (!kinds[i].read(text, &other))
            continue;
        *self = other;
        found = true;
        if (other.figures[MESSAGE_FIGURE_ASKED].known || other.bare || !kinds[i].needs_size)
            break;
    }
    /* Counters say more than the word "OOM", which people write and programs do not. */
    if (self->bare && message_text_ends(text, "oom", self->end)) {
        struct message counters = {0};
        if (message_read_printed(text, &counters))
            *self = counters;
    }
    self->windows = found && is_windows(text);
    self->killed = found && !self->host && message_text_tells_of_kill(text);
    read_listing(text, self);
    read_rest(text, self);
    if (self->framework == MESSAGE_VLLM)
        message_read_vllm_log(text, self);
    self->new_variable = found && message_text_has(text, "pytorch_alloc_conf");
    return found;
}

/* What the text says, if it is another failure that often stands where memory was looked for. */
static const char *other_failure(const struct message_text *text)
{
    static const struct {
        const char *words, *text;
    } others[] = {
        {"illegalmemoryaccess",
         "an access to memory that is not the program's (compute-sanitizer)"},
        {"illegal_address", "an access to memory that is not the program's (compute-sanitizer)"},
        {"memoryaccessfault", "an access to memory that is not the program's"},
        {"mmufault", "an access to memory that is not the program's"},
        {"segmentationfault", "an access to memory that is not the program's"},
        {"fallenoffthebus", "a GPU that was lost"},
        {"device_lost", "a GPU that was lost"},
        {"device_removed", "a GPU that was lost"},
        {"deviceremoved", "a GPU that was lost"},
        {"nvrm:xid", "an error of the GPU (Xid, see NVIDIA's list of them)"},
        {"eccerror", "an error of the GPU's memory cells (ECC)"},
        {"device-sideasserttriggered",
         "an assertion that failed in a kernel (often an index out of range)"},
        {"launch_failed", "a kernel that failed"},
        {"launchfailure", "a kernel that failed"},
        {"toomanyresourcesrequestedforlaunch", "a kernel that needs too many registers"},
        {"launch_out_of_resources", "a kernel that needs too many registers"},
        {"nospaceleftondevice", "a disk or another file system that is full"},
        {"ephemeral-storage", "a disk that is full"},
        {"diskquotaexceeded", "a disk quota that is used up"},
        {"toomanyopenfiles", "a limit of open files (ulimit -n)"},
        {"instatictlsblock", "a library that was loaded too late for its thread-local storage"},
        {"gc(allocationfailure)", "a usual run of Java's garbage collector"},
        {"watchdogcaughtcollective", "a collective operation that took too long"},
        {"nocuda-capabledevice", "a CUDA device that was not found"},
        {"isinsufficientforcuda", "a driver that is older than the CUDA runtime"},
        {"sigterm", "a process that was told to end"},
        {"invalidargument", "a call that was refused for its arguments"},
        {"cublas_status_not_initialized",
         "cuBLAS, which could not start: if the card was full, that "
         "may be why"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (message_text_has(text, others[i].words))
            return others[i].text;
    return NULL;
}

static enum ar_status read_text(const struct message_text *text, struct message *self,
                                struct ar_error *error)
{
    bool found = read_kinds(text, self);
    if (found && (self->figures[MESSAGE_FIGURE_ASKED].known || self->bare || self->printed)) {
        message_judge(self);
        return AR_OK;
    }
    self->incomplete = found;
    if (self->incomplete)
        return ar_invalid(error, "the text says that memory ran out, but not the size of the "
                                 "request; paste all of the message, from \"Tried to allocate\", "
                                 "\"trying to allocate\" or \"failed to allocate\" on");
    const char *other = other_failure(text);
    if (other)
        return ar_invalid(error, "the text is about %s; it does not say that memory ran out",
                          other);
    return ar_invalid(error, "the text holds no out-of-memory message of a known form; `allocrig "
                             "list messages` names them");
}

enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error)
{
    AR_CLOSED(message_text_close) struct message_text squeezed = {0};
    *self = (struct message){0};
    AR_TRY(message_text_open(text, bytes, &squeezed, error));
    return read_text(&squeezed, self, error);
}
