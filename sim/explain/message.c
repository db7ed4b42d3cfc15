#include "sim/explain/message.h"

#include <ctype.h>

#include "sim/explain/message_claim.h"
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

/* Failures that often stand where memory was looked for. `crash`: of a program or its card. */
static const struct failure {
    const char *words, *text;
    bool crash;
} failures[] = {
    {"illegalmemoryaccess", "an access to memory that is not the program's (compute-sanitizer)",
     true},
    {"illegal_address", "an access to memory that is not the program's (compute-sanitizer)", true},
    {"memoryaccessfault", "an access to memory that is not the program's", true},
    {"mmufault", "an access to memory that is not the program's", true},
    {"segmentationfault", "an access to memory that is not the program's", true},
    {"fallenoffthebus", "a GPU that was lost", true},
    {"device_lost", "a GPU that was lost", true},
    {"device_removed", "a GPU that was lost", true},
    {"deviceremoved", "a GPU that was lost", true},
    {"nvrm:xid", "an error of the GPU (Xid, see NVIDIA's list of them)", true},
    {"eccerror", "an error of the GPU's memory cells (ECC)", true},
    {"device-sideasserttriggered",
     "an assertion that failed in a kernel (often an index out of range)", true},
    {"launch_failed", "a kernel that failed", true},
    {"launchfailure", "a kernel that failed", true},
    {"toomanyresourcesrequestedforlaunch", "a kernel that needs too many registers", true},
    {"launch_out_of_resources", "a kernel that needs too many registers", true},
    {"nospaceleftondevice", "a disk or another file system that is full", false},
    {"ephemeral-storage", "a disk that is full", false},
    {"diskquotaexceeded", "a disk quota that is used up", false},
    {"toomanyopenfiles", "a limit of open files (ulimit -n)", false},
    {"instatictlsblock", "a library that was loaded too late for its thread-local storage", false},
    {"gc(allocationfailure)", "a usual run of Java's garbage collector", false},
    {"watchdogcaughtcollective", "a collective operation that took too long", false},
    {"nocuda-capabledevice", "a CUDA device that was not found", false},
    {"isinsufficientforcuda", "a driver that is older than the CUDA runtime", false},
    {"sigterm", "a process that was told to end", false},
    {"invalidargument", "a call that was refused for its arguments", false},
    {"cublas_status_not_initialized",
     "cuBLAS, which could not start: if the card was full, that may be why", false},
};

static const struct failure *failure_in(const struct message_text *text, bool crash)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if ((failures[i].crash || !crash) && message_text_has(text, failures[i].words))
            return &failures[i];
    return NULL;
}

#define NEAR_BEFORE 160
#define NEAR_CHIP   400

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

/* Whether the program goes on: it takes other memory, or it is a test that wants the failure. */
static bool goes_on(const struct message_text *text, const struct message *self)
{
    return (self->host && message_text_any(text, "fallingback|fallsback|fallback", self->at,
                                           self->end + NEAR_BEFORE)) ||
           (message_text_any(text, "passed|wasexpected", 0, text->count) &&
            !message_text_any(text, "failed|error:process", 0, text->count));
}

/* What may make a sure answer wrong: words of a person, another failure, another try. */
static void read_rest(const struct message_text *text, struct message *self)
{
    static const char tries[] = "ignoringthischoice|autotuning|autotune]|rejected|skipping|"
                                "skipped|tuner:";
    size_t from = self->at > NEAR_CHIP ? self->at - NEAR_CHIP : 0;
    self->goes_on = goes_on(text, self);
    if (self->on_chip)
        self->goes_on = self->may_fail |=
            self->goes_on || message_text_any(text, tries, from, self->end + NEAR_CHIP);
    self->several = self->killed;
    self->told = message_claim_is_example(text, self);
    if (self->host && self->end && !self->indirect) {
        self->told |= message_claim_is_told(text, self);
        self->several = message_text_tells_of_card(text, self) || failure_in(text, true);
    }
    if (self->printed)
        self->several = message_text_any(text, "outofmem|out-of-mem|oomerror", 0, text->count) ||
                        tells_of_oom(text);
}

bool message_is_before(const struct message *self, const struct message *other)
{
    const struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    const struct message_figure *others = &other->figures[MESSAGE_FIGURE_ASKED];
    uint64_t apart =
        asked->bytes > others->bytes ? asked->bytes - others->bytes : others->bytes - asked->bytes;
    return asked->known && others->known && !other->bare &&
           apart > asked->coarse_bytes + others->coarse_bytes + 1 && !self->may_fail &&
           !self->elsewhere && self->host == other->host && self->end && self->end <= other->at;
}

static void take_first(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct message other = {0};
        if (kinds[i].needs_size && kinds[i].read(text, &other) && message_is_before(&other, self))
            *self = other;
    }
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
    if (found)
        take_first(text, self);
    /* Counters say more than the word "OOM", which people write and programs do not. */
    if (self->bare && (strncmp(text->chars + self->at, "oom", 3) == 0 || /* or "ooms with" */
                       message_text_ends(text, "oom", self->end) ||
                       message_text_ends(text, "out-of-memory", self->end))) {
        struct message counters = {0};
        if (message_read_printed(text, &counters))
            *self = counters;
    }
    self->windows = found && is_windows(text);
    self->killed = found && !self->host && message_text_tells_of_kill(text);
    read_listing(text, self);
    read_rest(text, self);
    message_read_each(text, self);
    if (self->framework == MESSAGE_VLLM || self->framework == MESSAGE_PYTORCH)
        message_read_vllm_log(text, self);
    self->new_variable = found && message_text_has(text, "pytorch_alloc_conf");
    return found;
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
    const struct failure *other = failure_in(text, false);
    if (other)
        return ar_invalid(error, "the text is about %s; it does not say that memory ran out",
                          other->text);
    return ar_invalid(error, "the text holds no out-of-memory message of a known form; `allocrig "
                             "list messages` names them");
}

enum ar_status message_read(const char *text, size_t bytes, struct message *self,
                            struct ar_error *error)
{
    AR_CLOSED(message_text_close) struct message_text squeezed = {0};
    *self = (struct message){0};
    AR_TRY(message_text_open(text, bytes, &squeezed, error));
    enum ar_status status = read_text(&squeezed, self, error);
    message_read_source(text, bytes, self);
    return status;
}
