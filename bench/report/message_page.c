/* The page of a message: the cause, the figures, what is missing, what to do. */

#include "allocators/base/size.h"
#include "bench/report/message_page.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"

/* PyTorch's segments: for tensors above 1 MiB and below 10 MiB, and for those up to 1 MiB. From the
 * third size on, a segment is less than 1 % above its tensor. */
#define LARGE_SEGMENT     (20 * AR_MIB)
#define SMALL_SEGMENT     (2 * AR_MIB)
#define SEGMENT_TOLD_MOST (200 * AR_MIB)
#define ENORMOUS          (UINT64_C(1) << 60) /* a request that was computed wrongly */

static const char *size_of(const struct message *message, enum message_figure_name name, char *text,
                           size_t text_bytes)
{
    uint64_t bytes = message->figures[name].bytes;
    if (name != MESSAGE_FIGURE_ASKED || bytes < ENORMOUS)
        return ar_size_print(bytes, text, text_bytes);
    snprintf(text, text_bytes, "1 EiB or more");
    return text;
}

uint64_t message_page_bytes(const struct message *message, enum message_figure_name name)
{
    return message->figures[name].known ? message->figures[name].bytes : 0;
}

bool message_page_program_passes(const struct message *message)
{
    return message->figures[MESSAGE_FIGURE_TOTAL].known &&
           message_page_bytes(message, MESSAGE_FIGURE_PROGRAM) >
               message_page_bytes(message, MESSAGE_FIGURE_TOTAL);
}

static const char *figure_name(const struct message *message, enum message_figure_name name)
{
    bool limit = !message->card_told && !message->host && !message->on_chip;
    bool tpu = strcmp(message->device, "TPU") == 0;
    if (message->framework == MESSAGE_VLLM && name == MESSAGE_FIGURE_UNALLOCATED)
        return "available for the KV cache";
    if (tpu && name == MESSAGE_FIGURE_UNALLOCATED)
        return "free on the chip";
    if (message->host && name == MESSAGE_FIGURE_FREE)
        return "free on the host";
    if (tpu && name == MESSAGE_FIGURE_ASKED && message->figures[MESSAGE_FIGURE_TOTAL].known)
        return "needed by the program";
    if (message->block_limit && name == MESSAGE_FIGURE_LARGEST)
        return "the most in one request";
    if (name == MESSAGE_FIGURE_OUTSIDE_POOL && !message->figures[MESSAGE_FIGURE_PROCESS].known)
        return "outside of the pool";
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

#define TOGETHER "free and unused together"

uint64_t message_page_short_by(const struct message *message, uint64_t *together)
{
    const struct message_figure *figures = message->figures;
    *together = message_page_bytes(message, MESSAGE_FIGURE_FREE) +
                message_page_bytes(message, MESSAGE_FIGURE_UNALLOCATED);
    uint64_t asked = message_page_bytes(message, MESSAGE_FIGURE_ASKED);
    return message->cause == MESSAGE_CAPACITY && figures[MESSAGE_FIGURE_FREE].known &&
                   figures[MESSAGE_FIGURE_UNALLOCATED].known && asked > *together
               ? asked - *together
               : 0;
}

/* The length of the longest name that is shown. */
static int names_width(const struct message *message)
{
    uint64_t together;
    int width = message_page_short_by(message, &together) ? (int)strlen(TOGETHER) : 0;
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
        if (figure->known && i == MESSAGE_FIGURE_ASKED && figure->bytes >= ENORMOUS)
            fprintf(stream, "  %-*s %s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text));
        else if (figure->known && figure->coarse_bytes == 0 && figure->bytes >= AR_KIB)
            fprintf(stream, "  %-*s %12s  %" PRIu64 " bytes%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text), figure->bytes,
                    figure->derived ? ", computed" : "");
        else if (figure->known && (figure->bytes || !figure->derived))
            fprintf(stream, "  %-*s %12s%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text),
                    figure->derived               ? "  computed"
                    : i == MESSAGE_FIGURE_PRIVATE ? "  counted as allocated"
                                                  : "");
    }
    uint64_t together, missing = message_page_short_by(message, &together);
    if (missing)
        fprintf(stream, "  %-*s %12s  %s short\n", width, TOGETHER, AR_SIZE(together),
                AR_SIZE(missing));
}

static void print_missing(FILE *stream, const struct message *message)
{
    static const struct {
        enum message_figure_name name;
        const char *text;
    } needed[] = {
        {MESSAGE_FIGURE_TOTAL, "how much there is in total"},
        {MESSAGE_FIGURE_FREE, "how much was free"},
        {MESSAGE_FIGURE_UNALLOCATED, "how much of the pool was unused"},
        {MESSAGE_FIGURE_OTHERS, "what other processes had"},
        {MESSAGE_FIGURE_OUTSIDE_POOL, "what this process had outside of the pool"},
    };
    char line[512] = "The message does not say";
    /* The figure of the rest, with its sentence, stands for the last two. */
    size_t count = AR_COUNT(needed) - (message->figures[MESSAGE_FIGURE_REMAINDER].known ? 2 : 0);
    bool any = false;
    if (message->host || message->on_chip || message->block_limit || message->one_pool ||
        message->printed || message->cause == MESSAGE_UNKNOWN ||
        message->confidence == MESSAGE_SURE || message->cause == MESSAGE_IMPOSSIBLE ||
        message->figures[MESSAGE_FIGURE_START].known)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!message_missing(message, needed[i].name))
            continue;
        text_add(line, sizeof line, "%s%s", any ? ", nor " : " ", needed[i].text);
        any = true;
    }
    text_add(line, sizeof line, ".");
    if (any)
        say(stream, "%s", line);
}

/* The sizes of tensors for which PyTorch requests a segment of this size. */
static void print_segment(FILE *stream, const struct message *message)
{
    uint64_t asked = message->figures[MESSAGE_FIGURE_ASKED].bytes;
    say(stream, "PyTorch prints the segment that it asked the driver for, not the tensor%s.",
        asked == SMALL_SEGMENT   ? ": this one is of up to 1 MiB"
        : asked == LARGE_SEGMENT ? ": this one is of 1 MiB to 20 MiB"
        : asked > SMALL_SEGMENT  ? ", which is up to 2 MiB smaller"
                                 : "");
}

/* A listing of nvidia-smi that stands beside the message. */
static void print_listing(FILE *stream, const struct message *message)
{
    char first[48] = "";
    uint64_t bytes = message->listing.used, all = message->listing.total;
    const char *then = "";
    if (!message->listing.cards)
        return;
    if (message->listing.cards > 1)
        snprintf(first, sizeof first, " of the first of %u GPUs", message->listing.cards);
    else if (bytes > all / 10 * 9)
        then = " The card was nearly full then: the list of processes says by whom.";
    else if (bytes < MESSAGE_CONTEXT_MOST && message->cause == MESSAGE_UNKNOWN)
        then = " So no other process had much of it: if that was before the failure, the program "
               "needs more than there is, or its pool is fragmented.";
    say(stream, "nvidia-smi shows %s of %s%s in use, at another moment.%s", AR_SIZE(bytes),
        AR_SIZE(all), first, then);
}

/* Memory that is neither free nor the pool's, if it is more than a context. */
static void print_remainder(FILE *stream, const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *rest = &figures[MESSAGE_FIGURE_REMAINDER];
    char text[32];
    if (!rest->known || message->cause == MESSAGE_IMPOSSIBLE ||
        (rest->bytes <= MESSAGE_CONTEXT_MOST && rest->bytes < figures[MESSAGE_FIGURE_ASKED].bytes))
        return;
    size_of(message, MESSAGE_FIGURE_REMAINDER, text, sizeof text);
    if (!figures[MESSAGE_FIGURE_PROCESS].known && rest->bytes <= MESSAGE_CONTEXT_MOST)
        say(stream,
            "%s are neither free nor in the pool, as a context (0.15 to 1 GiB) and a desktop need.",
            text);
    else if (figures[MESSAGE_FIGURE_PROCESS].known)
        say(stream,
            "%s are neither free nor in a process that the message names: other processes, a "
            "desktop or the driver have them.",
            text);
    else
        say(stream,
            "%s are neither free nor in the pool. This process's context has 0.15 to 1 GiB of "
            "them; other processes have the rest, or this one has it outside of the pool.",
            text);
}

/* Without a limit PyTorch prints the size of the card in its place. */
static bool message_is_limited(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *allowed = &figures[MESSAGE_FIGURE_ALLOWED];
    return message->framework == MESSAGE_PYTORCH && allowed->known &&
           !(figures[MESSAGE_FIGURE_TOTAL].known &&
             allowed->bytes >= figures[MESSAGE_FIGURE_TOTAL].bytes);
}

bool message_page_passes_limit(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    return message_is_limited(message) && reserved->known &&
           reserved->bytes + figures[MESSAGE_FIGURE_ASKED].bytes >
               figures[MESSAGE_FIGURE_ALLOWED].bytes;
}

static void print_limit(FILE *stream, const struct message *message)
{
    char of[32], taken[32];
    bool over = message_page_passes_limit(message);
    if (!message_is_limited(message))
        return;
    say(stream,
        "A limit of %s was set in the program (set_per_process_memory_fraction, or the like)%s%s: "
        "the program cannot use free memory of the card beyond it.",
        size_of(message, MESSAGE_FIGURE_ALLOWED, of, sizeof of),
        over ? ", and this request would exceed it, with a pool of " : "",
        over ? size_of(message, MESSAGE_FIGURE_RESERVED, taken, sizeof taken) : "");
}

/* How many of several failures have each cause. */
static void print_causes(FILE *stream, const struct message *message)
{
    char line[256] = "Causes of all of them:";
    unsigned kinds = 0;
    for (size_t i = 0; i < AR_COUNT(message->causes); i++) {
        if (!message->causes[i])
            continue;
        text_add(line, sizeof line, "%s %s %u", kinds++ ? "," : "",
                 message_cause_name((enum message_cause)i), message->causes[i]);
    }
    text_add(line, sizeof line, ".");
    if (kinds > 1)
        say(stream, "%s", line);
}

static void print_count(FILE *stream, const struct message *message)
{
    if (message->count < 2)
        return;
    if (message->taken == 1)
        say(stream, "The text holds %u such messages; this is the first.", message->count);
    else if (message->taken == message->count && message->framework != MESSAGE_PYTORCH)
        say(stream, "The text holds %u such messages; this is the last.", message->count);
    else
        say(stream,
            "The text holds %u such messages; this is number %u, which has more figures of the "
            "same request than the first.",
            message->count, message->taken);
    print_causes(stream, message);
}

/* How sure the cause is, and why it is not surer. */
static void print_confidence(FILE *stream, const struct message *message)
{
    char line[768];
    bool any = false, likely = message->confidence == MESSAGE_LIKELY;
    snprintf(line, sizeof line, "Confidence: %s%s", message_confidence_name(message->confidence),
             likely ? ", because " : "");
    for (enum message_reason i = 0; likely && i < MESSAGE_REASON_COUNT; i++) {
        if (!(message->reasons & (1u << i)))
            continue;
        text_add(line, sizeof line, "%s%s", any ? "; " : "", message_reason_text(i));
        any = true;
    }
    text_add(line, sizeof line, ".");
    if (message->cause != MESSAGE_UNKNOWN)
        say(stream, "%s", line);
    for (enum message_contradiction i = 0; i < MESSAGE_CONTRADICTION_COUNT; i++) {
        if (!(message->contradictions & (1u << i)))
            continue;
        say(stream, "%s%s",
            likely ? "" : "The figures contradict each other: ", message_contradiction_text(i));
    }
}

/* What a compiled program of XLA needs, and of which card that is the usual share. */
static void print_program(FILE *stream, const struct message *message)
{
    uint64_t bytes = message_page_bytes(message, MESSAGE_FIGURE_PROGRAM);
    const char *source = message->buffer.source;
    if (bytes >= AR_GIB)
        say(stream,
            "The compiled program needs %s in all, beside other live arrays. That is 75 %% (JAX's "
            "default share) of a card of %s, or 95 %% of one of %s.",
            AR_SIZE(bytes), AR_SIZE(bytes / 75 * 100), AR_SIZE(bytes / 95 * 100));
    if (message->buffer.bytes)
        say(stream, "Its largest buffer has %s%s%s%s.", AR_SIZE(message->buffer.bytes),
            *source ? " (" : "", source, *source ? ")" : "");
}

static void print_remarks(FILE *stream, const struct message *message, bool more)
{
    char text[32];
    if (message->segment_asked &&
        message->figures[MESSAGE_FIGURE_ASKED].bytes < SEGMENT_TOLD_MOST &&
        strcmp(message->device, "MPS") != 0)
        print_segment(stream, message);
    print_limit(stream, message);
    if (message->limit_passed)
        say(stream, "The pool and the memory outside of it are together above the limit: it holds "
                    "only when the pool asks for more.");
    print_remainder(stream, message);
    if (message->reasons & (1u << MESSAGE_REASON_POOL))
        say(stream,
            "PyTorch counts %s of free blocks in private pools as allocated. A CUDA graph needs "
            "those of its pool whenever it runs; those of a MemPool serve only its own requests.",
            size_of(message, MESSAGE_FIGURE_PRIVATE, text, sizeof text));
    if (message->whole_limit)
        say(stream, "The text does not say how much of its limit the allocator had reserved; all "
                    "of it is assumed, as by default. With memory growth it may have been less.");
    if (message->type_assumed)
        say(stream, "The shape has no type: 4 bytes for each element are assumed.");
    if (message->may_fail)
        say(stream, "The program does not depend on this request: it is no failure, the program "
                    "takes a slower way.");
    if (message->no_figures_taken)
        say(stream, "The figures of this process's memory in the message are impossible, because "
                    "the driver did not know them; they were left out.");
    if (message->others_hidden)
        say(stream,
            "The driver lists other processes with 0 bytes: it does not know what they have.");
    if (message->process_guessed)
        say(stream, "The message does not say which of the listed processes is this one; the size "
                    "of the pool tells the one that is counted as this process.");
    print_listing(stream, message);
    if (message->vllm.weights)
        say(stream, "The log says that loading the model took %s.", AR_SIZE(message->vllm.weights));
    if (message->vllm.fitting_length)
        say(stream, "By vLLM's estimate max_model_len=%" PRIu64 " fits.",
            message->vllm.fitting_length);
    print_program(stream, message);
    print_count(stream, message);
    if (message->killed)
        say(stream,
            "The text also says that a process was killed, most often because the memory "
            "of the host ran out (dmesg | grep -i oom). That may be what ended the program.");
    if (more)
        say(stream, "The rest of the file was not read.");
}

/* Counters that a program printed, without a failure. */
static void print_counters(FILE *stream, const struct message *message)
{
    char a[32], b[32], c[32];
    const struct message_figure *figures = message->figures;
    const struct message_figure *peak = &figures[MESSAGE_FIGURE_PEAK];
    if (!figures[MESSAGE_FIGURE_RESERVED].known)
        return;
    size_of(message, MESSAGE_FIGURE_RESERVED, b, sizeof b);
    if (figures[MESSAGE_FIGURE_ALLOCATED].known)
        say(stream, "The pool has %s; %s of them are in use, %s are unused.", b,
            size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a),
            size_of(message, MESSAGE_FIGURE_UNALLOCATED, c, sizeof c));
    else
        say(stream, "The pool had %s at most.", b);
    if (!peak->known)
        return;
    uint64_t over = figures[MESSAGE_FIGURE_RESERVED].bytes > peak->bytes
                        ? figures[MESSAGE_FIGURE_RESERVED].bytes - peak->bytes
                        : 0;
    say(stream,
        "At most %s were in use at one time: the pool keeps what that moment needed, and %s more, "
        "which is fragmentation or rounding.",
        size_of(message, MESSAGE_FIGURE_PEAK, a, sizeof a), AR_SIZE(over));
}

/* A message without a request, or without figures to judge it by. */
static void print_unknown(FILE *stream, const struct message *message)
{
    char line[320] = "Memory ran out, and the message does not say how much was requested.";
    char asked[32], left[32];
    if (message->figures[MESSAGE_FIGURE_ASKED].known) {
        bool known = message->figures[MESSAGE_FIGURE_FREE].known;
        snprintf(line, sizeof line, "%s were requested%s%s%s.",
                 size_of(message, MESSAGE_FIGURE_ASKED, asked, sizeof asked), known ? ", and " : "",
                 known ? size_of(message, MESSAGE_FIGURE_FREE, left, sizeof left) : "",
                 known ? " were free" : "");
    }
    if (!message->elsewhere && !message->how)
        text_add(line, sizeof line, " %s",
                 "Whether the program needs too much, other processes have the memory, or it is "
                 "fragmented cannot be told from this message.");
    say(stream, "%s", line);
}

/* Whether the unused bytes of the pool are as many as were requested. */
static bool pool_would_do(const struct message *message)
{
    return message->figures[MESSAGE_FIGURE_ASKED].known &&
           message->figures[MESSAGE_FIGURE_UNALLOCATED].known &&
           message_page_bytes(message, MESSAGE_FIGURE_UNALLOCATED) >=
               message_page_bytes(message, MESSAGE_FIGURE_ASKED);
}

/* The figures that decide, as one sentence. */
static void print_reason(FILE *stream, const struct message *message)
{
    char line[512], asked[32], a[32], b[32];
    const char *verb = "were requested";
    if (message->figures[MESSAGE_FIGURE_ASKED].known)
        size_of(message, MESSAGE_FIGURE_ASKED, asked, sizeof asked);
    else
        snprintf(asked, sizeof asked, "An unknown number of bytes");
    switch (message->cause) {
    case MESSAGE_UNKNOWN:
        print_unknown(stream, message);
        return;
    case MESSAGE_CACHE:
        print_counters(stream, message);
        return;
    case MESSAGE_HOST:
        snprintf(line, sizeof line, "%s%sIt is the host's memory that ran out, not GPU memory.",
                 message->figures[MESSAGE_FIGURE_ASKED].known ? asked : "",
                 message->figures[MESSAGE_FIGURE_ASKED].known ? " were requested. " : "");
        break;
    case MESSAGE_IMPOSSIBLE:
        if (message->figures[MESSAGE_FIGURE_TOTAL].known)
            snprintf(line, sizeof line, "%s %s, there are %s in total.", asked, verb,
                     size_of(message, MESSAGE_FIGURE_TOTAL, a, sizeof a));
        else
            snprintf(line, sizeof line,
                     message->on_chip ? "The memory that ran out is in the processor of the GPU."
                                      : "The request is larger than any card.");
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
        snprintf(line, sizeof line, "%s %s, %s were free, and other processes%s had %s.", asked,
                 verb, size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 message_page_bytes(message, MESSAGE_FIGURE_OTHERS) &&
                         message_page_bytes(message, MESSAGE_FIGURE_REMAINDER)
                     ? " and the rest"
                     : "",
                 AR_SIZE(message_page_bytes(message, MESSAGE_FIGURE_OTHERS) +
                         message_page_bytes(message, MESSAGE_FIGURE_REMAINDER)));
        break;
    case MESSAGE_TENANT_OR_OUTSIDE:
        if (!message->figures[MESSAGE_FIGURE_REMAINDER].known) {
            snprintf(line, sizeof line, "%s %s, and %s were free before the program began.", asked,
                     verb, size_of(message, MESSAGE_FIGURE_START, a, sizeof a));
            break;
        }
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
        if (message_page_program_passes(message))
            snprintf(line, sizeof line, "%s %s for a program that needs %s in all, of %s.", asked,
                     verb, size_of(message, MESSAGE_FIGURE_PROGRAM, a, sizeof a),
                     size_of(message, MESSAGE_FIGURE_TOTAL, b, sizeof b));
        else if (pool_would_do(message))
            snprintf(line, sizeof line,
                     "%s %s. The pool had %s unused, in pieces, and the program uses nearly all of "
                     "it: without fragmentation it would run out a little later.",
                     asked, verb, size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a));
        else if (message->figures[MESSAGE_FIGURE_FREE].known &&
                 message->figures[MESSAGE_FIGURE_ALLOCATED].known &&
                 message->figures[MESSAGE_FIGURE_TOTAL].known)
            snprintf(line, sizeof line,
                     "%s %s: more than is free, unused in the pool, or known to be others'. %s of "
                     "%s are allocated.",
                     asked, verb, size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a),
                     size_of(message, MESSAGE_FIGURE_TOTAL, b, sizeof b));
        else
            snprintf(line, sizeof line, "%s %s, %s.", asked, verb,
                     message_page_bytes(message, MESSAGE_FIGURE_ASKED) <
                             message_page_bytes(message, MESSAGE_FIGURE_FREE)
                         ? "as much as is left, within the rounding of the figures"
                         : "more than is left");
    }
    say(stream, "%s", line);
}

const char *message_page_meaning(const struct message *message)
{
    if (message->on_chip)
        return "a program needs more memory on the chip than there is";
    if (message->elsewhere && message->cause == MESSAGE_UNKNOWN)
        return "it is not the memory of the card that ran out";
    if (message->block_limit)
        return "the request is larger than the device gives to one request";
    if (message->cause == MESSAGE_CAPACITY && pool_would_do(message))
        return "the program uses nearly all of the memory that it can have";
    if (message->cause == MESSAGE_NOT_THE_ALLOCATOR && !message->card_told)
        return "the limit leaves the requested bytes, so the driver refused them";
    return message_cause_meaning(message->cause);
}

/* The other cause that the confidence speaks of. */
static void print_other_cause(FILE *stream, const struct message *message)
{
    static const struct {
        enum message_figure_name figure;
        const char *who;
    } holders[] = {
        {MESSAGE_FIGURE_OTHERS, "other processes have"},
        {MESSAGE_FIGURE_OUTSIDE_POOL, "this process has outside of the pool"},
        {MESSAGE_FIGURE_REMAINDER, "are neither free nor the pool's"},
    };
    char a[32], advice[1024];
    if (!(message->reasons & (1u << MESSAGE_REASON_OTHER_CAUSE)))
        return;
    if (pool_would_do(message) && message->cause != MESSAGE_FRAGMENTATION) {
        say(stream, "%s are unused in the pool, which would be enough in one piece. %s",
            size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a),
            message_page_unfragment(message, advice, sizeof advice));
        return;
    }
    for (size_t i = 0; i < AR_COUNT(holders); i++)
        if (message->cause == MESSAGE_FRAGMENTATION &&
            message_page_bytes(message, holders[i].figure) > MESSAGE_CONTEXT_MOST) {
            say(stream, "The %s that %s would be enough too.",
                size_of(message, holders[i].figure, a, sizeof a), holders[i].who);
            return;
        }
}

/* If others have less than the program itself, its own blocks are the larger lever. */
static void print_own_blocks(FILE *stream, const struct message *message)
{
    const struct message_figure *figures = message->figures;
    char a[32], b[32];
    if (message->cause != MESSAGE_TENANT_OR_OUTSIDE || !figures[MESSAGE_FIGURE_ALLOCATED].known ||
        !figures[MESSAGE_FIGURE_TOTAL].known ||
        message_page_bytes(message, MESSAGE_FIGURE_ALLOCATED) <=
            message_page_bytes(message, MESSAGE_FIGURE_REMAINDER))
        return;
    say(stream,
        "This program has allocated %s of %s itself: a smaller batch, recomputation or fewer bytes "
        "for each number need less.",
        size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a),
        size_of(message, MESSAGE_FIGURE_TOTAL, b, sizeof b));
}

/* What the advice calls `allocrig advise`, as a command. The pool could have what it has reserved
 * and what is free on the card, or its limit. */
static void print_command(FILE *stream, const struct message *message, const char *advice)
{
    const struct message_figure *figures = message->figures;
    uint64_t bytes = message_page_bytes(message, MESSAGE_FIGURE_RESERVED) +
                     message_page_bytes(message, MESSAGE_FIGURE_FREE);
    bool limited = figures[MESSAGE_FIGURE_ALLOWED].known &&
                   message_page_bytes(message, MESSAGE_FIGURE_ALLOWED) < bytes;
    char a[32], b[32];
    if (limited)
        bytes = message_page_bytes(message, MESSAGE_FIGURE_ALLOWED);
    if (!strstr(advice, "`allocrig advise`") || message->framework != MESSAGE_PYTORCH ||
        !figures[MESSAGE_FIGURE_RESERVED].known || !figures[MESSAGE_FIGURE_FREE].known ||
        bytes < AR_MIB)
        return;
    fprintf(stream, "\n  ./allocrig advise SNAPSHOT --capacity %" PRIu64 "MiB\n\n", bytes / AR_MIB);
    if (!limited)
        say(stream, "%" PRIu64 " MiB are what the pool had reserved (%s) and what was free (%s).",
            bytes / AR_MIB, size_of(message, MESSAGE_FIGURE_RESERVED, a, sizeof a),
            size_of(message, MESSAGE_FIGURE_FREE, b, sizeof b));
    say(stream, "How to take a snapshot: bench/cli/MANUAL.md, \"Record your own program\".");
}

void message_page_print(FILE *stream, const struct message *message, bool more)
{
    char advice[1024];
    bool named = message->allocator[0] || message->device[0];
    say(stream, "%s: %s", message_cause_name(message->cause), message_page_meaning(message));
    print_reason(stream, message);
    print_confidence(stream, message);
    fprintf(stream, "\n  from %s%s%s%s%s\n", message_framework_name(message->framework),
            named ? ", " : "", message->device,
            message->device[0] && message->allocator[0] ? ", " : "", message->allocator);
    print_figures(stream, message);
    fputc('\n', stream);
    print_missing(stream, message);
    print_remarks(stream, message, more);
    say(stream, "%s", message_page_advice(message, advice, sizeof advice));
    print_command(stream, message, advice);
    print_own_blocks(stream, message);
    print_other_cause(stream, message);
}
