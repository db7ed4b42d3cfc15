/* Reads messages that only say that memory ran out. No cause follows from them; the table
 * (message_bares.c) says how to find it. The size of a request is read if one stands near. */
#include <ctype.h>

#include "sim/explain/message_bares.h"
#include "sim/explain/message_claim.h"

static bool is_rmm(const struct message_text *text)
{
    return message_text_has(text, "/rmm/") || message_text_has(text, "rmm.") ||
           message_text_has(text, "rmmallocation") || message_text_has(text, "rmmfailure");
}

#define NEAR_CHARACTERS 100
#define NEAR_CLAUSE     16 /* characters on each side of a size */
#define NEAR_CAPACITY   200
#define NEAR_SHAPE      24

/* Words for a card or its memory in German, Spanish, French, Portuguese, Italian, Russian, Chinese,
 * Japanese and Korean. A letter with an accent is cut if a digit of its escape could follow. */
static const char other_cards[] =
    "grafik|videospeicher|tarjeta|cartegraphique|cartesgraphiques|cartevid\xc3\xa9o|"
    "m\xc3\xa9moiregraphique|m\xc3\xa9moirevid\xc3\xa9o|placadevideo|memoriadevideo|schedavideo|"
    "schedagrafica|memoriavideo|memoriagrafica|placadev\xc3|placagr\xc3|mem\xc3\xb3riadev\xc3|"
    "mem\xc3\xb3riagr\xc3|memoriadev\xc3|memoriagr\xc3|\xd0\xb2\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe|"
    "\xd0\x92\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbe|"
    "\xe3\x82\xb0\xe3\x83\xa9\xe3\x83\x95\xe3\x82\xa3\xe3\x83\x83\xe3\x82\xaf|"
    "\xe3\x83\x93\xe3\x83\x87\xe3\x82\xaa\xe3\x83\xa1\xe3\x83\xa2\xe3\x83\xaa|"
    "\xe3\x83\x93\xe3\x83\x87\xe3\x82\xaa\xe3\x82\xab\xe3\x83\xbc\xe3\x83\x89|"
    "\xea\xb7\xb8\xeb\x9e\x98\xed\x94\xbd|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xeb\xa9\x94\xeb\xaa\xa8\xeb\xa6\xac|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xec\xb9\xb4\xeb\x93\x9c|"
    "\xeb\xb9\x84\xeb\x94\x94\xec\x98\xa4\xeb\x9e\xa8|" CHINESE_CARD_RAM "|" CHINESE_CARDS_RAM;

/* The device that words near `at` name; "" for an unknown one, NULL for none: a failure to allocate
 * may be one of anything else. What imitates CUDA stands before it. */
static const char *card_near(const struct message_text *text, size_t at, size_t reach)
{
    static const struct {
        const char *words, *device;
    } cards[] = {{"rocm", "HIP"},
                 {"[hip]", "HIP"},
                 {"hipmalloc", "HIP"},
                 {"hiperror", "HIP"},
                 {"vulkan", "Vulkan"},
                 {"vkallocate", "Vulkan"},
                 {"d3d12", "D3D12"},
                 {"directx", "D3D12"},
                 {"d3d11", "D3D11"},
                 {"createcommittedresource", "D3D12"},
                 {"dxgi", "D3D12"},
                 {"createplacedresource", "D3D12"},
                 {"avhw", ""},
                 {"vaapi", ""},
                 {"radeon:", ""},
                 {"opencl", "OpenCL"},
                 {"clcreate", "OpenCL"},
                 {"sycl", "XPU"},
                 {"level_zero", "XPU"},
                 {"mtl", "Metal"},
                 {".hip", "HIP"},
                 {".cu", "CUDA"},
                 {"metal", ""},
                 {"optix", "CUDA"},
                 {"cuda", "CUDA"},
                 {"gpu", ""},
                 {"hip", ""},
                 {"device", ""},
                 {"vram", ""},
                 {CHINESE_VRAM, ""},
                 {"videomemory", ""},
                 {"videoram", ""},
                 {"videocard", ""},
                 {"graphicscard", ""},
                 {"graphicsmem", ""},
                 {"graphicmem", ""}};
    size_t from = at > reach ? at - reach : 0;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (message_text_find(text, cards[i].words, from, at + reach) != MESSAGE_NOWHERE)
            return cards[i].device;
    return message_text_any(text, other_cards, from, at + reach) ? "" : NULL;
}

/* Whether "out of memory" is cut within its last word. */
static bool is_cut_word(const struct message_text *text, size_t at)
{
    const char *whole = text->chars[at + 3] == '_' ? "out_of_memory" : "outofmemory";
    size_t end = at;
    while (*whole && text->chars[end] == *whole &&
           (end == at || text->gaps[end] != MESSAGE_GAP_LINE))
        end++, whole++;
    if (end == at + strlen("outof")) /* of anything, but behind an error */
        return text->gaps[end] == MESSAGE_GAP_LINE &&
               message_text_any(text, "error", at > NEAR_CHARACTERS ? at - NEAR_CHARACTERS : 0, at);
    return text->gaps[end] == MESSAGE_GAP_LINE || !isalpha((unsigned char)text->chars[end]);
}

/* Words that say that there was too little of something, or that it was not given. */
static const char fails[] =
    "fail|exhaust|notenough|insufficient|insufficiant|unable|cannot|can't|couldnot|couldn't|ranout|"
    "runsout|"
    "outof|"
    "errorwhenalloc|errorwhilealloc|errorinalloc|erroralloc|"
    "overbudget|toolittle|shortage|notavailable|nothaveenough|depleted|n'thaveenough|noenough|"
    "notsufficient|isfull|overflow|exceed|islargerthan|notprovideenough|thanisavailable|"
    "thanavailable|" CHINESE_USED_UP OTHER_TOO_LITTLE;

/* Words that say that memory of the host was used up, and that an "OOM" was an event. */
static const char used_up[] =
    "notenough|insufficient|exceed|exhaust|ranout|runsout|outof|isfull|overflow|depleted|"
    "nothaveenough|n'thaveenough|noenough|notsufficient|toolittle|shortage|"
    "thanavailable|" CHINESE_USED_UP;
static const char events[] = "error|crash|occur|happen|encounter|got|getting|hit|caus|throw|rais|"
                             "issue|goes|went|killed|failed|reported|oomwith|oomon|oomduring|"
                             "oomwhile";

static const char *fails_of(const struct message_form *form)
{
    return !(form->flags & FORM_WORD) ? fails : form->flags & FORM_HOST ? used_up : events;
}

/* The characters before a word for memory in which they may stand; behind it, half as many more.
 * Words for pinned memory are of a card, and are not of anything else. */
static size_t fails_reach(const struct message_form *form)
{
    return form->flags & FORM_WORD ? 20 : form->flags & FORM_HOST ? NEAR_CHARACTERS : 40;
}

#define FAILS_AHEAD 400 /* characters that are looked through at once */

/* `at`, if one of them is near it; else a place before which there is none. */
static size_t find_fails(const struct message_text *text, const struct message_form *form,
                         size_t at)
{
    size_t before = fails_reach(form), after = before * 3 / 2;
    size_t from = at > before ? at - before : 0, nearest = at + FAILS_AHEAD;
    if (message_text_any(text, fails_of(form), from, at + after))
        return at;
    for (const char *word = fails_of(form); word; word = message_pattern_next(word)) {
        char copy[24];
        snprintf(copy, sizeof copy, "%.*s", (int)strcspn(word, "|"), word);
        size_t found = message_text_find(text, copy, from, nearest);
        nearest = found < nearest ? found : nearest;
    }
    return nearest > at + after ? nearest - after : at + 1;
}

/* Whether the word of `at` is in a cell of a table: "gpu memory | failing". */
static bool is_column(const struct message_text *text, size_t at)
{
    size_t end = at;
    while (end < text->count && isalpha((unsigned char)text->chars[end]))
        end++;
    return text->chars[end] == '|';
}

/* Whether it is another call that failed, and not the one for pinned memory at `at`. */
static bool is_elsewhere(const struct message_text *text, size_t at, size_t begin)
{
    static const char calls[] = "cumemcreate|cumemalloc(|cumemallocfailed|cudamallocfailed|"
                                "cudamallocasyncfailed|hipmallocfailed|cumemmapfailed";
    size_t end = at;
    while (isalnum((unsigned char)text->chars[end]) && (end == at || !text->gaps[end]))
        end++;
    return message_claim_is_untried(text, end) ||
           (message_text_any(text, calls, begin, at) &&
            !message_text_any(text, "fail|error|outof", end, end + NEAR_CHARACTERS / 2));
}

/* Whether words near a word for memory of a card, with some of `fails`, are a failure. A program
 * that then takes less has not failed, and who allocates nodes has no memory. */
static bool is_failure(const struct message_text *text, const struct message_form *form, size_t at)
{
    static const char others[] =
        "access|memcpy|memset|invalidargument|.reducing|resource|rpcerror|nodesare|numberofdev|/"
        "alloc|com/gpu|driverversion|kubernetes|capabledevice|%ofsystem|%offreesystem|releas|"
        "can'tfree|cannotfree|unabletofree|bedetected|todetect|toquery|todetermine|toread|"
        "usageinfo";
    size_t before = fails_reach(form), after = before * 3 / 2;
    size_t from = at > before ? at - before : 0, to = at + after;
    bool pinned = form->flags & FORM_HOST && !(form->flags & FORM_WORD);
    size_t begin = pinned ? from : message_text_sentence_begin(text, at);
    size_t end =
        pinned ? at + strcspn(text->chars + at, ";") : message_text_sentence_end(text, at) + 1;
    char last = at > 0 && !text->gaps[at] ? text->chars[at - 1] : ' ';
    bool inside = isalpha((unsigned char)last) || last == '_'; /* of a name in a program */
    return !inside && !message_claim_is_feared(text, at) && !message_text_ends(text, "(not", at) &&
           !message_text_ends(text, ",not", at) &&
           (form->flags & (FORM_HOST | FORM_WORD) || card_near(text, at, NEAR_CHARACTERS)) &&
           (message_claim_fails_within(text, fails_of(form), from > begin ? from : begin,
                                       to < end ? to : end) ||
            (pinned && message_claim_fails_within(text, used_up, at, to))) &&
           !(pinned && is_elsewhere(text, at, begin)) &&
           !message_text_any(text, others, from, to) && !is_column(text, at);
}

/* Whether the code of another error than a lack of memory is named: cudaErrorNotSupported. */
static bool names_other_error(const struct message_text *text, size_t from, size_t to)
{
    static const char *const codes[] = {"cudaerror", "hiperror"};
    static const char *const memory[] = {"memory", "outofmemory"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (size_t at = from;
             (at = message_text_find(text, codes[i], at, to)) != MESSAGE_NOWHERE;) {
            const char *name = text->chars + (at += strlen(codes[i]));
            bool lack = false;
            for (size_t j = 0; j < sizeof memory / sizeof *memory; j++)
                lack |= strncmp(name, memory[j], strlen(memory[j])) == 0;
            if (isalpha((unsigned char)*name) && text->gaps[at] == MESSAGE_GAP_NONE && !lack)
                return true;
        }
    return false;
}

bool message_text_in_line_of_card(const struct message_text *text, size_t at)
{
    static const char *const cards[] = {"gpu", "gpus", "cuda", "device", "graphicscard", "vram"};
    size_t from = at, to = at + 1;
    while (from > 0 && at - from < NEAR_CHARACTERS && text->gaps[from] != MESSAGE_GAP_LINE)
        from--;
    while (to < text->count && to - at < NEAR_CHARACTERS && text->gaps[to] != MESSAGE_GAP_LINE)
        to++;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        for (size_t card = from;
             (card = message_text_find(text, cards[i], card, to)) != MESSAGE_NOWHERE; card++) {
            size_t end = card + strlen(cards[i]);
            if ((text->gaps[card] || !isalnum((unsigned char)text->chars[card - 1])) &&
                (text->gaps[end] || strchr(":,)]\"'", text->chars[end]) ||
                 (text->chars[end] == '.' && text->gaps[end + 1])))
                return true;
        }
    return false;
}

/* Whether words for a card, or for its memory, stand beside words for that of the host. */
static bool is_beside_card(const struct message_text *text, size_t at)
{
    size_t from = at > NEAR_CHARACTERS ? at - NEAR_CHARACTERS : 0;
    return message_text_any(text, "vram|videomem|amdgpu|drm", from, at + NEAR_CHARACTERS) ||
           message_text_in_line_of_card(text, at);
}

/* Whether words for the memory of the host are of a card's, which stands just before them: "GPU
 * memory quota exceeded", "GPU ran out of RAM", "VRAM is full". */
static bool is_of_card(const struct message_text *text, size_t at, size_t end)
{
    static const char *const cards[] = {"gpu", "cuda", "device", "video", "card", "vram"};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (text->gaps[at] != MESSAGE_GAP_LINE && message_text_ends(text, cards[i], at))
            return true;
    size_t ram = message_text_find(text, "ram", at, end);
    if (ram == MESSAGE_NOWHERE || at == 0)
        return false;
    return (ram == at && isalpha((unsigned char)text->chars[at - 1]) && !text->gaps[at]) ||
           message_text_any(text, "gpu|cuda|video|card", at > 12 ? at - 12 : 0, at);
}

/* Whether no letter, digit or mark of a name stands right before or behind [at, end). */
static bool is_whole(const struct message_text *text, size_t at, size_t end)
{
    static const char marks[] = "_-/.=";
    char before = at > 0 && !text->gaps[at] ? text->chars[at - 1] : ' ';
    char after = text->gaps[end] ? ' ' : text->chars[end];
    return !isalnum((unsigned char)before) && !strchr(marks, before) &&
           !isalnum((unsigned char)after) && (after == '.' || !strchr(marks, after));
}

/* Whether a whole word of these ends at `at`. */
static bool is_behind(const struct message_text *text, const char *words, size_t at)
{
    for (; words; words = message_pattern_next(words)) {
        char word[16];
        size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (message_text_ends(text, word, at) &&
            (at == length || message_text_apart(text, at - length)))
            return true;
    }
    return false;
}

/* Before "killed" in quotes: what shows the word, or what was killed. */
static const char shows[] = "is|was|get|gets|got|getting|shows|showed|says|said|say|saying|prints|"
                            "printed|just|only|simply|see|seeing|message|process|job|script|"
                            "training|error|with|reports|output|output:|message:|then|state";
/* Before "OOMs", if they are events that are counted or prevented. */
static const char counts[] = "no|zero|0|of|many|any|fewer|more|for|from|fix|fixes|causes|analyze|"
                             "debug|handle|detect|explain";

/* Whether words of this length are a message, and not a flag which is off ("OOMKilled": false), a
 * failure of something else, or part of a sentence. */
static bool is_said(const struct message_text *text, const struct message_form *form, size_t at,
                    size_t length)
{
    static const struct {
        const char *before, *after;
    } others[] = {{"gc(", ")"},        {"young(", ")"},      {"full(", ")"}, /* Java */
                  {"", "instatictls"}, {"", "ateafreeport"}, {"", "ateport"},
                  {"", "ateaport"},    {"--", "-"},          {"", "]extendingbfcarena"},
                  {"", "snapshot"},    {"", "observer"},     {"", "handl"},
                  {"test_", ""}};
    const char *rest = text->chars + at + length;
    if (strncmp(rest + strspn(rest, "\":="), "false", 5) == 0)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (message_text_ends(text, others[i].before, at) &&
            strncmp(rest, others[i].after, strlen(others[i].after)) == 0)
            return false;
    if (form->framework == MESSAGE_TRITON_SERVER && message_text_has(text, "isinsufficientforcuda"))
        return false;
    if (message_claim_is_code(text, at) || message_claim_is_task(text, at) ||
        message_claim_is_template(text, at) || message_claim_is_defined(text, at + length) ||
        message_text_other_reason(text, at + length) || message_claim_is_none(text, at + length) ||
        (form->how == message_how_unknown && names_other_error(text, at, at + 4 * NEAR_CHARACTERS)))
        return false;
    if (form->how == message_how_killed && strchr("\"'", text->chars[at]) &&
        !is_behind(text, shows, at))
        return false;
    size_t fail = message_text_find(text, "fail", at, at + length);
    if (fail != MESSAGE_NOWHERE && !(form->flags & FORM_FAILS) && !message_claim_fails(text, fail))
        return false;                                          /* "allocation failures: 0" */
    bool code = memchr(text->chars + at, '_', length) != NULL; /* the name of an error */
    if ((!code && message_claim_is_feared(text, at)) ||
        (message_text_ends(text, "oom", at + length) && *rest == 's'))
        return false; /* "CUDA OOMs: 1" is a counter */
    if (strncmp(rest - length, "ooms", 4) == 0 && is_behind(text, counts, at))
        return false;
    if (form->flags & FORM_HOST && is_of_card(text, at, at + length))
        return false;
    if (at > 0 && isdigit((unsigned char)text->chars[at - 1]) &&
        strncmp(text->chars + at, "insufficient", 12) == 0)
        return false; /* "4 Insufficient memory" counts nodes */
    return (!(form->flags & FORM_END) || is_cut_word(text, at)) &&
           (!(form->flags & FORM_FAILS) || is_failure(text, form, at)) &&
           (!(form->flags & FORM_NEAR) || card_near(text, at, NEAR_CHARACTERS)) &&
           (!(form->flags & FORM_FAR) || !card_near(text, at, NEAR_CHARACTERS)) &&
           (!(form->flags & FORM_WORD) || is_whole(text, at, at + length)) &&
           (!(form->flags & FORM_ONE_WORD) ||
            !memchr(text->gaps + at + 1, MESSAGE_GAP_SPACE, length - 1)) &&
           (!(form->flags & FORM_LINE) ||
            (text->gaps[at] % 2 && text->gaps[at + length] % 2)); /* LINE or WRAP */
}

static size_t find_said(const struct message_text *text, const struct message_form *form,
                        const char *words, size_t at)
{
    size_t end;
    while ((at = message_pattern_find(text, words, at, text->count, -1, NULL, &end)) !=
           MESSAGE_NOWHERE) {
        size_t near = form->flags & FORM_FAILS ? find_fails(text, form, at) : at;
        if (near == at && is_said(text, form, at, end - at))
            return at;
        at = near > at ? near : at + 1;
    }
    return MESSAGE_NOWHERE;
}

/* Whether a clause ends at a mark, which is none within "4,096". */
static bool ends_clause(const struct message_text *text, size_t at, const char *marks)
{
    return strchr(marks, text->chars[at]) &&
           !(at > 0 && isdigit((unsigned char)text->chars[at - 1]) && !text->gaps[at + 1] &&
             isdigit((unsigned char)text->chars[at + 1]));
}

/* Whether a size at [at, end) is one of the disk, of the host, or of a part, as the words of its
 * clause say. */
static bool is_beside_other(const struct message_text *text, size_t at, size_t end)
{
    static const char others[] = "disk|swap|host|cpu|systemmem|systemram|mainmem|pool|arena|"
                                 "batch|container";
    size_t from = at, to = end;
    while (from > 0 && at - from < NEAR_CLAUSE && !ends_clause(text, from - 1, ",;:"))
        from--;
    while (to < text->count && to - end < NEAR_CLAUSE && !ends_clause(text, to, ",;"))
        to++;
    if (message_text_any(text, others, from, to))
        return true;
    size_t ram = message_text_find(text, "ram", from, to);
    return ram != MESSAGE_NOWHERE && !is_of_card(text, ram, ram + strlen("ram"));
}

/* Reads the first figure of these patterns that is one of the card. */
static void read_of_card(const struct message_text *text, const char *patterns, size_t from,
                         size_t to, enum message_figure_name name, struct message *self)
{
    for (const char *words = patterns; words; words = message_pattern_next(words)) {
        struct message_figure figures[MESSAGE_FIGURE_COUNT] = {0};
        size_t at = from, end;
        while ((at = message_pattern_find(text, words, at, to, -1, figures, &end)) !=
                   MESSAGE_NOWHERE &&
               is_beside_other(text, at, end))
            at++;
        if (at != MESSAGE_NOWHERE) {
            self->figures[name] = figures[name];
            return;
        }
    }
}

/* The size that these patterns give a card, where one is named: "device: 0, capacity: 24GB". Of two
 * cards it is not known which one was asked. What a program needs is not what a card has. */
static struct message_figure card_size(const struct message_text *text, const char *words,
                                       size_t from, size_t to)
{
    static const char parts[] = "use|using|need|requir|take|weight|model|cache|shard";
    struct message_figure figures[MESSAGE_FIGURE_COUNT] = {0}, found = {0};
    const struct message_figure *size = &figures[MESSAGE_FIGURE_TOTAL];
    for (; words; words = message_pattern_next(words))
        for (size_t end, at = from;
             (at = message_pattern_find(text, words, at, to, -1, figures, &end)) != MESSAGE_NOWHERE;
             at++) {
            size_t clause = at > 2 * NEAR_CLAUSE ? at - 2 * NEAR_CLAUSE : 0;
            if (!message_text_in_line_of_card(text, at) || is_beside_other(text, clause, end) ||
                message_text_any(text, parts, clause, at))
                continue;
            if (found.known && found.bytes != size->bytes)
                return (struct message_figure){0};
            found = *size;
        }
    return found;
}

/* What a person says that each card has, if the request is larger: "(80GB per A100 GPU)". */
void message_read_each(const struct message_text *text, struct message *self)
{
    struct message_figure *total = &self->figures[MESSAGE_FIGURE_TOTAL];
    if (self->host || total->known || !self->figures[MESSAGE_FIGURE_ASKED].known)
        return;
    *total = card_size(text, "(Tper|(Teach|withTper|withTeach", 0, text->count);
    total->known &= total->bytes < self->figures[MESSAGE_FIGURE_ASKED].bytes;
    self->told |= total->known;
}

/* What the sentence of a request says of the card: "needs 6 GB, but the device has only 4 GB". A
 * size that the request does not exceed is not the reason of the failure, so it is left out. */
static void read_card_beside(const struct message_text *text, size_t at, struct message *self)
{
    static const char words[] = "onlyFfree|onlyFavail|onlyFleft|onlyFis|onlyFare|availableF|"
                                "available:F|freememory:F|freeF|free:F|Favailable|Fisavailable|"
                                "Fareavailable|Ffree|Fisfree|Fleft";
    static const char totals[] = "hasonlyT|onlyhasT|haveonlyT|freeofT|leftofT|availableofT";
    struct message_figure *figures = self->figures;
    struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    uint64_t asked = figures[MESSAGE_FIGURE_ASKED].bytes;
    size_t from = message_text_sentence_begin(text, at), to = message_text_sentence_end(text, at);
    read_of_card(text, words, from, to + 1, MESSAGE_FIGURE_FREE, self);
    read_of_card(text, totals, from, to + 1, MESSAGE_FIGURE_TOTAL, self);
    if (!total->known)
        *total = card_size(text, "capacity:T", at > NEAR_CAPACITY ? at - NEAR_CAPACITY : 0,
                           at + NEAR_CAPACITY);
    available->known &= available->bytes < asked;
    total->known &= total->bytes != asked && total->bytes != available->bytes;
    self->card_told = total->known || available->known;
}

/* The words around a message that names no program. */
static void read_around(const struct message_text *text, size_t at, struct message *self)
{
    /* What is free may be a pool's. */
    static const char listed[] = "requested=Afree=F|requested=A,free=F|requested:A,free:F";
    const char *card = card_near(text, at, NEAR_CHARACTERS / 3);
    card = card && *card ? card : card_near(text, at, 3 * NEAR_CHARACTERS);
    size_t request = message_text_request(text, at, &self->figures[MESSAGE_FIGURE_ASKED]);
    if (is_rmm(text)) {
        self->framework = MESSAGE_RMM;
        self->how = message_how_rmm;
        return;
    }
    if (card && !self->device[0])
        snprintf(self->device, sizeof self->device, "%s", card);
    bool list = message_pattern_read(text, listed, message_text_sentence_begin(text, at),
                                     message_text_sentence_end(text, at) + 1, 0, self->figures);
    if (request != MESSAGE_NOWHERE && !self->host && !list)
        read_card_beside(text, request, self);
    size_t shape = message_text_find(text, "size([", self->end, self->end + NEAR_SHAPE);
    if (request == MESSAGE_NOWHERE && shape != MESSAGE_NOWHERE)
        (void)message_read_shape(text, shape + strlen("size(["), self);
}

/* Whether a user asks if there is too little memory. Words that programs print themselves are a
 * question only if it is in the same line. */
static bool is_question(const struct message_text *text, const struct message_form *form, size_t at)
{
    size_t end = message_text_sentence_end(text, at);
    bool programs = form->how != message_how_unknown && !(form->flags & FORM_FAILS);
    return text->chars[end] == '?' &&
           !(programs && memchr(text->gaps + at + 1, MESSAGE_GAP_LINE, end - at));
}

/* `asked`: questions, and failures after which the program tried again, are passed over, and it is
 * set; NULL: they count. */
static bool read_words(const struct message_text *text, const struct message_form *form,
                       const char *words, bool *asked, struct message *self)
{
    static const char asks[] =
        "failedtoallocateA|couldnotallocateA|cannotallocateA|unabletoallocateA|can'tallocateA|"
        "couldn'tallocateA|failtoallocateA";
    size_t first = find_said(text, form, words, 0);
    while (asked && first != MESSAGE_NOWHERE &&
           (is_question(text, form, first) ||
            (!(form->flags & FORM_HOST) && message_claim_is_survived(text, first)))) {
        *asked = true;
        first = find_said(text, form, words, first + 1);
    }
    if (first == MESSAGE_NOWHERE)
        return false;
    message_form_apply(form, self);
    self->indirect |=
        self->host && (message_claim_is_guess(text, first) || is_beside_card(text, first));
    self->bare = true;
    self->taken = 1;
    self->at = first;
    self->end = first + strcspn(words, "|");
    for (size_t at = first; at != MESSAGE_NOWHERE && (at == first || !(form->flags & FORM_FAILS));
         at = find_said(text, form, words, at + 1))
        self->count++;
    if (self->how == message_how_driver && !message_text_has(text, "torch"))
        self->how = message_how_driver_of_others;
    if (self->framework == MESSAGE_DRIVER)
        read_around(text, first, self);
    else if (!(form->flags & (FORM_CHIP | FORM_BLOCK | FORM_ELSEWHERE)))
        (void)message_pattern_read(text, asks, first, message_text_sentence_end(text, first) + 1,
                                   -1, self->figures);
    if (self->framework != MESSAGE_DRIVER && message_text_ends(text, "withshape(", self->end))
        (void)message_read_shape(text, self->end, self);
    if (self->how == message_how_driver_of_others || self->how == message_how_unknown)
        self->how = self->figures[MESSAGE_FIGURE_ASKED].known ? message_how_unknown
                                                              : message_how_driver_of_others;
    return true;
}

bool message_text_tells_of_kill(const struct message_text *text)
{
    for (size_t i = 0; i < message_bare_count; i++)
        for (const char *words = message_bares[i].pattern;
             words && (message_bares[i].how == message_how_limit ||
                       message_bares[i].how == message_how_killed ||
                       message_bares[i].how == message_how_ray);
             words = message_pattern_next(words))
            if (find_said(text, &message_bares[i], words, 0) != MESSAGE_NOWHERE)
                return true;
    return false;
}

#define NEAR_ITSELF 40

bool message_text_tells_of_card(const struct message_text *text, const struct message *message)
{
    static const char bfc[] = "allocator(gpu_|exhausted:outofmemory|fromdevice:cuda_error|"
                              "outofmemorywhiletrying";
    if (message_text_any(text, bfc, 0, text->count))
        return true;
    for (size_t i = 0; i < message_bare_count; i++)
        for (const char *words = message_bares[i].device[0] && !(message_bares[i].flags & FORM_HOST)
                                     ? message_bares[i].pattern
                                     : NULL;
             words; words = message_pattern_next(words)) {
            size_t at = 0;
            while ((at = find_said(text, &message_bares[i], words, at)) != MESSAGE_NOWHERE &&
                   (message_text_ends(text, "onhost:", at) ||
                    (at + NEAR_ITSELF >= message->at && at <= message->end + NEAR_ITSELF)))
                at++;
            if (at != MESSAGE_NOWHERE)
                return true;
        }
    return false;
}

/* `host`: only the forms for memory of the host. */
static bool read_bares(const struct message_text *text, bool host, bool *asked,
                       struct message *self)
{
    for (size_t i = 0; i < message_bare_count; i++)
        for (const char *words =
                 host && !(message_bares[i].flags & FORM_HOST) ? NULL : message_bares[i].pattern;
             words; words = message_pattern_next(words))
            if (read_words(text, &message_bares[i], words, asked, self))
                return true;
    return false;
}

bool message_read_bare(const struct message_text *text, struct message *self)
{
    bool asked = false;
    return (message_claim_denies_card(text) && read_bares(text, true, &asked, self)) ||
           read_bares(text, false, &asked, self) || (asked && read_bares(text, false, NULL, self));
}
