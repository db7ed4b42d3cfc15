/* The page of a message: the cause, the figures, what is missing, what to do. */
#include "bench/report/explain_page.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/message_limit.h"
#include "bench/report/sentence.h"

#define LARGE_SEGMENT (20 * AR_MIB) /* PyTorch's segment for tensors above 1 MiB and below 10 MiB */
#define SMALL_SEGMENT (2 * AR_MIB)  /* and for those up to 1 MiB */

static const char *size_of(const struct message *message, enum message_figure_name name, char *text,
                           size_t text_bytes)
{
    return ar_size_print(message->figures[name].bytes, text, text_bytes);
}

static uint64_t bytes_of(const struct message *message, enum message_figure_name name)
{
    return message->figures[name].known ? message->figures[name].bytes : 0;
}

static const char *figure_name(const struct message *message, enum message_figure_name name)
{
    bool limit = !message->card_told && !message->host && !message->on_chip;
    bool tpu = strcmp(message->device, "TPU") == 0;
    if (tpu && name == MESSAGE_FIGURE_UNALLOCATED)
        return "free on the chip";
    if (message->host && name == MESSAGE_FIGURE_FREE)
        return "free on the host";
    if (tpu && name == MESSAGE_FIGURE_ASKED && message->figures[MESSAGE_FIGURE_TOTAL].known)
        return "needed by the program";
    if (message->block_limit && name == MESSAGE_FIGURE_LARGEST)
        return "the most in one request";
    if (tpu || message->framework == MESSAGE_GGML)
        return message_figure_text(name);
    if (limit && name == MESSAGE_FIGURE_TOTAL)
        return "in total, the allocator's limit";
    if (limit && name == MESSAGE_FIGURE_FREE)
        return "not taken yet, under the limit";
    if (name == MESSAGE_FIGURE_REMAINDER && message->figures[MESSAGE_FIGURE_PROCESS].known)
        return "neither free nor of a named process";
    return message_figure_text(name);
}

/* The length of the longest name that is shown. */
static int names_width(const struct message *message)
{
    int width = 0;
    for (enum message_figure_name i = 0; i < MESSAGE_FIGURE_COUNT; i++) {
        int length = (int)strlen(figure_name(message, i));
        if (message->figures[i].known && length > width)
            width = length;
    }
    return width;
}

static void print_figures(FILE *stream, const struct message *message)
{
    int width = names_width(message);
    for (enum message_figure_name i = 0; i < MESSAGE_FIGURE_COUNT; i++) {
        const struct message_figure *figure = &message->figures[i];
        char text[32];
        if (figure->known && i == MESSAGE_FIGURE_ASKED && figure->bytes >= UINT64_C(1) << 60)
            fprintf(stream, "  %-*s 1 EiB or more\n", width, figure_name(message, i));
        else if (figure->known && figure->coarse_bytes == 0)
            fprintf(stream, "  %-*s %12s  %" PRIu64 " bytes%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text), figure->bytes,
                    figure->derived ? ", computed" : "");
        else if (figure->known)
            fprintf(stream, "  %-*s %12s%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text), figure->derived ? "  computed" : "");
    }
}

static void print_missing(FILE *stream, const struct message *message)
{
    static const struct {
        enum message_figure_name name;
        const char *text;
    } needed[] = {
        {MESSAGE_FIGURE_TOTAL, "how much there is in all"},
        {MESSAGE_FIGURE_FREE, "how much was free"},
        {MESSAGE_FIGURE_UNALLOCATED, "how much of the pool was unused"},
        {MESSAGE_FIGURE_OTHERS, "the memory of other processes"},
        {MESSAGE_FIGURE_OUTSIDE_POOL, "the memory of this process outside of the pool"},
    };
    char line[512] = "The message does not say";
    bool any = false;
    if (message->host || message->on_chip || message->one_pool || message->printed ||
        message->cause == MESSAGE_UNKNOWN)
        return;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!message_missing(message, needed[i].name))
            continue;
        strncat(line, any ? "; " : " ", sizeof line - strlen(line) - 1);
        strncat(line, needed[i].text, sizeof line - strlen(line) - 1);
        any = true;
    }
    strncat(line, ". Rules that need it were skipped.", sizeof line - strlen(line) - 1);
    if (any)
        sentence_print(stream, line);
}

/* The sizes of tensors for which PyTorch requests a segment of this size. */
static void print_segment(FILE *stream, const struct message *message)
{
    uint64_t asked = message->figures[MESSAGE_FIGURE_ASKED].bytes;
    char line[512], from[32], to[32];
    const char *tensor = "";
    if (asked == SMALL_SEGMENT)
        tensor = ": this one is of up to 1 MiB";
    else if (asked == LARGE_SEGMENT)
        tensor = ": this one is of 1 MiB to 20 MiB";
    snprintf(line, sizeof line,
             "PyTorch prints the segment that it asked the driver for, not the tensor%s%s%s%s%s.",
             tensor, *tensor || asked < SMALL_SEGMENT ? "" : ": this one is of ",
             *tensor || asked < SMALL_SEGMENT
                 ? ""
                 : ar_size_print(asked - SMALL_SEGMENT, from, sizeof from),
             *tensor || asked < SMALL_SEGMENT ? "" : " to ",
             *tensor || asked < SMALL_SEGMENT ? "" : ar_size_print(asked, to, sizeof to));
    sentence_print(stream, line);
}

/* Memory that is neither free nor the pool's, if it is more than a context. */
static void print_remainder(FILE *stream, const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *rest = &figures[MESSAGE_FIGURE_REMAINDER];
    char line[320], text[32];
    if (!rest->known ||
        (rest->bytes <= MESSAGE_CONTEXT_MOST && rest->bytes < figures[MESSAGE_FIGURE_ASKED].bytes))
        return;
    size_of(message, MESSAGE_FIGURE_REMAINDER, text, sizeof text);
    if (figures[MESSAGE_FIGURE_PROCESS].known)
        snprintf(line, sizeof line,
                 "%s are neither free nor in a process that the message names: other processes, a "
                 "desktop or the driver have them.",
                 text);
    else
        snprintf(line, sizeof line,
                 "%s are neither free nor in the pool. This process's context has 0.15 to 1 GiB of "
                 "them; other processes have the rest, or this one has it outside of the pool.",
                 text);
    sentence_print(stream, line);
}

bool message_is_limited(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *allowed = &figures[MESSAGE_FIGURE_ALLOWED];
    return message->framework == MESSAGE_PYTORCH && allowed->known &&
           !(figures[MESSAGE_FIGURE_TOTAL].known &&
             allowed->bytes >= figures[MESSAGE_FIGURE_TOTAL].bytes);
}

bool message_passes_limit(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    return message_is_limited(message) && reserved->known &&
           reserved->bytes + figures[MESSAGE_FIGURE_ASKED].bytes >
               figures[MESSAGE_FIGURE_ALLOWED].bytes;
}

static void print_limit(FILE *stream, const struct message *message)
{
    char line[256], of[32], taken[32];
    bool over = message_passes_limit(message);
    if (!message_is_limited(message))
        return;
    snprintf(line, sizeof line,
             "A limit of %s was set in the program (set_per_process_memory_fraction, or the "
             "like)%s%s: the program cannot use free memory of the card beyond it.",
             size_of(message, MESSAGE_FIGURE_ALLOWED, of, sizeof of),
             over ? ", and this request would exceed it, with a pool of " : "",
             over ? size_of(message, MESSAGE_FIGURE_RESERVED, taken, sizeof taken) : "");
    sentence_print(stream, line);
}

/* How many of several failures have each cause. */
static void print_causes(FILE *stream, const struct message *message)
{
    char line[256] = "Causes of all of them:";
    unsigned kinds = 0;
    for (size_t i = 0; i < sizeof message->causes / sizeof *message->causes; i++) {
        size_t length = strlen(line);
        if (!message->causes[i])
            continue;
        snprintf(line + length, sizeof line - length, "%s %s %u", kinds ? "," : "",
                 message_cause_name((enum message_cause)i), message->causes[i]);
        kinds++;
    }
    strncat(line, ".", sizeof line - strlen(line) - 1);
    if (kinds > 1)
        sentence_print(stream, line);
}

static void print_count(FILE *stream, const struct message *message)
{
    char line[160];
    if (message->count < 2)
        return;
    if (message->taken == 1)
        snprintf(line, sizeof line, "The text holds %u such messages; this is the first.",
                 message->count);
    else if (message->taken == message->count && message->framework != MESSAGE_PYTORCH)
        snprintf(line, sizeof line, "The text holds %u such messages; this is the last.",
                 message->count);
    else
        snprintf(
            line, sizeof line,
            "The text holds %u such messages; this is number %u, which has more figures of the "
            "same request than the first.",
            message->count, message->taken);
    sentence_print(stream, line);
    print_causes(stream, message);
}

/* How sure the cause is, and why it is not surer. */
static void print_confidence(FILE *stream, const struct message *message)
{
    char line[768];
    bool any = false;
    snprintf(line, sizeof line, "Confidence: %s%s", message_confidence_name(message->confidence),
             message->confidence == MESSAGE_LIKELY ? ", because " : "");
    for (enum message_reason i = 0;
         message->confidence == MESSAGE_LIKELY && i < MESSAGE_REASON_COUNT; i++) {
        if (!(message->reasons & (1u << i)))
            continue;
        strncat(line, any ? "; " : "", sizeof line - strlen(line) - 1);
        strncat(line, message_reason_text(i), sizeof line - strlen(line) - 1);
        any = true;
    }
    strncat(line, ".", sizeof line - strlen(line) - 1);
    sentence_print(stream, line);
    for (enum message_contradiction i = 0; i < MESSAGE_CONTRADICTION_COUNT; i++) {
        if (!(message->contradictions & (1u << i)))
            continue;
        snprintf(line, sizeof line, "The figures contradict each other: %s",
                 message_contradiction_text(i));
        sentence_print(stream, line);
    }
}

static void print_remarks(FILE *stream, const struct message *message, bool more)
{
    const struct message_figure *figures = message->figures;
    if (message->segment_asked && figures[MESSAGE_FIGURE_ASKED].bytes < UINT64_C(1) << 60 &&
        strcmp(message->device, "MPS") != 0)
        print_segment(stream, message);
    print_limit(stream, message);
    print_remainder(stream, message);
    if (message->whole_limit)
        sentence_print(stream, "The text does not say how much of its limit the allocator had "
                               "reserved; all of it is assumed, as by default. With memory growth "
                               "it may have been less.");
    if (message->type_assumed)
        sentence_print(stream, "The shape has no type: 4 bytes for each element are assumed.");
    if (message->may_fail)
        sentence_print(stream, "The program does not depend on this request: it is no failure, the "
                               "program takes a slower way.");
    if (message->no_figures_taken)
        sentence_print(stream,
                       "The figures of this process's memory in the message are impossible, "
                       "because the driver did not know them; they were left out.");
    if (message->others_hidden)
        sentence_print(stream, "The driver lists other processes with 0 bytes: it does not know "
                               "what they have.");
    if (message->process_guessed)
        sentence_print(stream,
                       "The message does not say which of the listed processes is this one; the "
                       "size of the pool tells the one that is counted as this process.");
    if (message->cause == MESSAGE_FRAGMENTATION && message->reasons & (1u << MESSAGE_REASON_SLACK))
        sentence_print(stream, "The program uses nearly all of its pool, so a smaller batch helps "
                               "as well.");
    print_count(stream, message);
    if (more)
        sentence_print(stream, "The rest of the file was not read.");
}

/* Counters that a program printed, without a failure. */
static void print_counters(FILE *stream, const struct message *message)
{
    char line[512], a[32], b[32], c[32];
    const struct message_figure *figures = message->figures;
    const struct message_figure *peak = &figures[MESSAGE_FIGURE_PEAK];
    if (!figures[MESSAGE_FIGURE_RESERVED].known || !figures[MESSAGE_FIGURE_ALLOCATED].known)
        return;
    size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a);
    size_of(message, MESSAGE_FIGURE_RESERVED, b, sizeof b);
    snprintf(line, sizeof line, "The pool has %s; %s of them are in use, %s are unused.", b, a,
             size_of(message, MESSAGE_FIGURE_UNALLOCATED, c, sizeof c));
    sentence_print(stream, line);
    if (!peak->known)
        return;
    uint64_t over = figures[MESSAGE_FIGURE_RESERVED].bytes > peak->bytes
                        ? figures[MESSAGE_FIGURE_RESERVED].bytes - peak->bytes
                        : 0;
    snprintf(line, sizeof line,
             "At most %s were in use at one time: the pool keeps what that moment needed, and %s "
             "more, which is fragmentation or rounding.",
             size_of(message, MESSAGE_FIGURE_PEAK, a, sizeof a), ar_size_print(over, b, sizeof b));
    sentence_print(stream, line);
}

/* A message without a request, or without figures to judge it by. */
static void print_unknown(FILE *stream, const struct message *message)
{
    char line[320], asked[32];
    bool known = message->figures[MESSAGE_FIGURE_ASKED].known;
    snprintf(line, sizeof line,
             "%s%s Whether the program needs too much, other processes have the memory, or it is "
             "fragmented cannot be told from this message.",
             known ? size_of(message, MESSAGE_FIGURE_ASKED, asked, sizeof asked)
                   : "Memory ran out, and the message does not say how much was requested.",
             known ? " were requested." : "");
    sentence_print(stream, line);
}

/* The figures that decide, as one sentence. */
static void print_reason(FILE *stream, const struct message *message)
{
    char line[512], asked[32], a[32], b[32];
    const char *verb = "were requested";
    size_of(message, MESSAGE_FIGURE_ASKED, asked, sizeof asked);
    switch (message->cause) {
    case MESSAGE_UNKNOWN:
        print_unknown(stream, message);
        return;
    case MESSAGE_CACHE:
        print_counters(stream, message);
        return;
    case MESSAGE_HOST:
        snprintf(line, sizeof line,
                 "%s%sIt is the host's memory that ran out, not a GPU's: not GPU memory.",
                 message->figures[MESSAGE_FIGURE_ASKED].known ? asked : "",
                 message->figures[MESSAGE_FIGURE_ASKED].known ? " were requested. " : "");
        break;
    case MESSAGE_IMPOSSIBLE:
        if (message->figures[MESSAGE_FIGURE_TOTAL].known)
            snprintf(line, sizeof line, "%s %s, there are %s in total.", asked, verb,
                     size_of(message, MESSAGE_FIGURE_TOTAL, a, sizeof a));
        else
            snprintf(line, sizeof line, "The request is larger than any card.");
        break;
    case MESSAGE_NOT_THE_ALLOCATOR:
        if (message->block_limit)
            snprintf(line, sizeof line, "%s %s at once, more than the device gives to one request.",
                     asked, verb);
        else
            snprintf(line, sizeof line, "%s %s and %s were free%s.", asked, verb,
                     size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                     message->card_told ? "" : " under the limit");
        break;
    case MESSAGE_FRAGMENTATION:
        if (message->figures[MESSAGE_FIGURE_LARGEST].known)
            snprintf(line, sizeof line, "%s %s; %s were free, in pieces of at most %s.", asked,
                     verb, size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a),
                     size_of(message, MESSAGE_FIGURE_LARGEST, b, sizeof b));
        else
            snprintf(line, sizeof line,
                     "%s %s; the pool had %s unused, but no free range in it was large enough.",
                     asked, verb, size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a));
        break;
    case MESSAGE_TENANT:
        snprintf(line, sizeof line, "%s %s, %s were free, and other processes had %s.", asked, verb,
                 size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 ar_size_print(bytes_of(message, MESSAGE_FIGURE_OTHERS) +
                                   bytes_of(message, MESSAGE_FIGURE_REMAINDER),
                               b, sizeof b));
        break;
    case MESSAGE_TENANT_OR_OUTSIDE:
        snprintf(line, sizeof line, "%s %s, %s were free, and %s were neither free nor the pool's.",
                 asked, verb, size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 size_of(message, MESSAGE_FIGURE_REMAINDER, b, sizeof b));
        break;
    case MESSAGE_OUTSIDE:
        snprintf(line, sizeof line,
                 "%s %s, %s were free, and this process had %s outside of the pool.", asked, verb,
                 size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 size_of(message, MESSAGE_FIGURE_OUTSIDE_POOL, b, sizeof b));
        break;
    case MESSAGE_FRAGMENTATION_POSSIBLE:
        snprintf(line, sizeof line,
                 "%s %s; %s free on the card and %s unused in the pool would together be enough.",
                 asked, verb, size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 size_of(message, MESSAGE_FIGURE_UNALLOCATED, b, sizeof b));
        break;
    default:
        if (message->figures[MESSAGE_FIGURE_FREE].known &&
            message->figures[MESSAGE_FIGURE_ALLOCATED].known &&
            message->figures[MESSAGE_FIGURE_TOTAL].known)
            snprintf(line, sizeof line,
                     "%s %s: more than is free, unused in the pool, or known to be others'. %s of "
                     "%s are allocated.",
                     asked, verb, size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a),
                     size_of(message, MESSAGE_FIGURE_TOTAL, b, sizeof b));
        else
            snprintf(line, sizeof line, "%s %s, more than is left.", asked, verb);
    }
    sentence_print(stream, line);
}

void message_page_print(FILE *stream, const struct message *message, bool more)
{
    char line[256], advice[1024];
    bool named = message->allocator[0] || message->device[0];
    bool limit = message->cause == MESSAGE_NOT_THE_ALLOCATOR && !message->card_told;
    snprintf(line, sizeof line, "%s: %s", message_cause_name(message->cause),
             message->on_chip       ? "a program needs more memory on the chip than there is"
             : message->block_limit ? "the request is larger than the device gives to one request"
             : limit ? "the limit leaves the requested bytes, so the driver refused them"
                     : message_cause_meaning(message->cause));
    sentence_print(stream, line);
    print_reason(stream, message);
    print_confidence(stream, message);
    fprintf(stream, "\n  from %s%s%s%s%s\n", message_framework_name(message->framework),
            named ? ", " : "", message->device,
            message->device[0] && message->allocator[0] ? ", " : "", message->allocator);
    print_figures(stream, message);
    fputc('\n', stream);
    print_missing(stream, message);
    print_remarks(stream, message, more);
    sentence_print(stream, message_page_advice(message, advice, sizeof advice));
}
