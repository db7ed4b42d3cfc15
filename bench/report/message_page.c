/* The page of a message: the cause, the figures, what is missing, what to do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/pages.h"
#include "bench/report/sentence.h"

/* PyTorch's segments: for tensors above 1 MiB and below 10 MiB, and for those up to 1 MiB. From the
 * third size on, a segment is less than 1 % above its tensor. */
#define LARGE_SEGMENT     (20 * AR_MIB)
#define SMALL_SEGMENT     (2 * AR_MIB)
#define SEGMENT_TOLD_MOST (200 * AR_MIB)

static const char *size_of(const struct message *message, enum message_figure_name name, char *text,
                           size_t text_bytes)
{
    return ar_size_print(message->figures[name].bytes, text, text_bytes);
}

static uint64_t bytes_of(const struct message *message, enum message_figure_name name)
{
    return message->figures[name].known ? message->figures[name].bytes : 0;
}

static bool program_passes_limit(const struct message *message)
{
    return message->figures[MESSAGE_FIGURE_TOTAL].known &&
           bytes_of(message, MESSAGE_FIGURE_PROGRAM) > bytes_of(message, MESSAGE_FIGURE_TOTAL);
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

/* Of the cause `capacity`: the bytes that are free on the card and unused in the pool, and by how
 * much the request exceeds them. 0: not known, or enough but for rounding. */
static uint64_t short_by(const struct message *message, uint64_t *together)
{
    const struct message_figure *figures = message->figures;
    *together =
        bytes_of(message, MESSAGE_FIGURE_FREE) + bytes_of(message, MESSAGE_FIGURE_UNALLOCATED);
    uint64_t asked = bytes_of(message, MESSAGE_FIGURE_ASKED);
    return message->cause == MESSAGE_CAPACITY && figures[MESSAGE_FIGURE_FREE].known &&
                   figures[MESSAGE_FIGURE_UNALLOCATED].known && asked > *together
               ? asked - *together
               : 0;
}

/* The length of the longest name that is shown. */
static int names_width(const struct message *message)
{
    uint64_t together;
    int width = short_by(message, &together) ? (int)strlen(TOGETHER) : 0;
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
        else if (figure->known && figure->coarse_bytes == 0 && figure->bytes >= AR_KIB)
            fprintf(stream, "  %-*s %12s  %" PRIu64 " bytes%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text), figure->bytes,
                    figure->derived ? ", computed" : "");
        else if (figure->known && (figure->bytes || !figure->derived))
            fprintf(stream, "  %-*s %12s%s\n", width, figure_name(message, i),
                    size_of(message, i, text, sizeof text), figure->derived ? "  computed" : "");
    }
    uint64_t together, missing = short_by(message, &together);
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
    size_t count =
        sizeof needed / sizeof *needed - (message->figures[MESSAGE_FIGURE_REMAINDER].known ? 2 : 0);
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

/* Whether the request would exceed the limit. */
static bool message_passes_limit(const struct message *message)
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
    bool over = message_passes_limit(message);
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
    for (size_t i = 0; i < sizeof message->causes / sizeof *message->causes; i++) {
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
    uint64_t bytes = bytes_of(message, MESSAGE_FIGURE_PROGRAM);
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
    if (!figures[MESSAGE_FIGURE_RESERVED].known || !figures[MESSAGE_FIGURE_ALLOCATED].known)
        return;
    size_of(message, MESSAGE_FIGURE_ALLOCATED, a, sizeof a);
    size_of(message, MESSAGE_FIGURE_RESERVED, b, sizeof b);
    say(stream, "The pool has %s; %s of them are in use, %s are unused.", b, a,
        size_of(message, MESSAGE_FIGURE_UNALLOCATED, c, sizeof c));
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
           bytes_of(message, MESSAGE_FIGURE_UNALLOCATED) >= bytes_of(message, MESSAGE_FIGURE_ASKED);
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
                 bytes_of(message, MESSAGE_FIGURE_OTHERS) &&
                         bytes_of(message, MESSAGE_FIGURE_REMAINDER)
                     ? " and the rest"
                     : "",
                 AR_SIZE(bytes_of(message, MESSAGE_FIGURE_OTHERS) +
                         bytes_of(message, MESSAGE_FIGURE_REMAINDER)));
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
        if (program_passes_limit(message))
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
                     bytes_of(message, MESSAGE_FIGURE_ASKED) <
                             bytes_of(message, MESSAGE_FIGURE_FREE)
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

/* ---- what to do ------------------------------------------------------------------------------ */

/* What to do about a failed request, by cause, framework and platform. A setting is named only for
 * a platform that has it. */

static bool is_on(const struct message *message, const char *device)
{
    return strcmp(message->device, device) == 0;
}

/* What the platform calls its tools. Texts name them as {tool}, {torch}, {statistics} and
 * {libraries}. */
struct platform {
    const char *device, *tool, *torch, *statistics, *libraries;
};

static const struct platform *platform_of(const struct message *message)
{
    static const char some[] = "NCCL, cuBLAS workspaces", nvidia[] = "nvidia-smi";
    static const char any[] = "nvidia-smi (rocm-smi, xpu-smi)";
    static const struct platform platforms[] = {
        {"CUDA", nvidia, "torch.cuda", "torch.cuda.memory_summary()", some},
        {"HIP", "rocm-smi", "torch.cuda", "torch.cuda.memory_summary()",
         "RCCL, hipBLAS workspaces"},
        {"XPU", "xpu-smi", "torch.xpu", "torch.xpu.memory_stats()", "oneCCL, oneDNN workspaces"},
        {"NPU", "npu-smi info", "torch.npu", "torch.npu.memory_summary()",
         "HCCL, workspaces of CANN"},
        {"MLU", "cnmon", "torch.mlu", "torch.mlu.memory_summary()", "CNCL, workspaces of CNNL"},
        {"MUSA", "mthreads-gmi", "torch.musa", "torch.musa.memory_summary()",
         "MCCL, muBLAS workspaces"},
        {"HPU", "hl-smi", "torch.hpu", "torch.hpu.memory_stats()", "HCCL, recipes of graphs"},
        {"D3D12", "the Task Manager (GPU)", "torch.cuda", "", some},
        {"Metal", "the Activity Monitor", "torch.mps", "torch.mps.driver_allocated_memory()",
         "other users of Metal"},
        {"MPS", "the Activity Monitor", "torch.mps", "torch.mps.driver_allocated_memory()",
         "other users of Metal"},
    };
    static const struct platform other = {"", any, "torch.cuda", "torch.cuda.memory_summary()",
                                          some};
    for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++)
        if (is_on(message, platforms[i].device))
            return &platforms[i];
    return &other;
}

#define SHARE_LEAST 5 /* hundredths of a card that a model may be served with */

/* The share of the card that is free, rounded down. */
static void print_share(const struct message *message, char *share, size_t bytes)
{
    const struct message_figure *available = &message->figures[MESSAGE_FIGURE_FREE];
    const struct message_figure *total = &message->figures[MESSAGE_FIGURE_TOTAL];
    unsigned hundredths = 0;
    if (total->known && available->bytes > available->coarse_bytes)
        hundredths = (unsigned)(100 * (available->bytes - available->coarse_bytes) /
                                (total->bytes + total->coarse_bytes));
    if (hundredths < SHARE_LEAST)
        snprintf(share, bytes, "what is free");
    else
        snprintf(share, bytes, "%u.%02u, the part of the card that is free", hundredths / 100,
                 hundredths % 100);
}

/* Writes `text` with the names of the platform and the figures of the message in it. */
static void name_tools(const struct message *message, const char *text, char *line, size_t bytes)
{
    const struct platform *platform = platform_of(message);
    char share[64], fitting[32] = "";
    print_share(message, share, sizeof share);
    if (message->vllm.fitting_length)
        snprintf(fitting, sizeof fitting, " to %" PRIu64, message->vllm.fitting_length);
    const struct {
        const char *name, *text;
    } names[] = {{"{share}", share},
                 {"{length}", fitting},
                 {"{tool}", platform->tool},
                 {"{torch}", platform->torch},
                 {"{statistics}", platform->statistics},
                 {"{libraries}", platform->libraries}};
    size_t used = 0;
    while (*text && used + 1 < bytes) {
        size_t i = 0;
        while (i < sizeof names / sizeof *names &&
               strncmp(text, names[i].name, strlen(names[i].name)) != 0)
            i++;
        if (i == sizeof names / sizeof *names) {
            line[used++] = *text++;
            continue;
        }
        int length = snprintf(line + used, bytes - used, "%s", names[i].text);
        used = used + (size_t)length < bytes ? used + (size_t)length : bytes - 1;
        text += strlen(names[i].name);
    }
    line[used] = '\0';
}

/* How to find the cause if the message does not have the figures. */
static const char *find_out(const struct message *message)
{
    static const char *const texts[] = {
        [MESSAGE_PYTORCH] =
            "Paste all of it, or the whole log: after these words PyTorch says how much the card "
            "has, how much was free, and what it had allocated and reserved. Or print {statistics} "
            "and {torch}.mem_get_info() at the failure.",
        [MESSAGE_TENSORFLOW] = "Paste the log with the lines before it too: there the allocator "
                               "writes its statistics (Limit, InUse).",
        [MESSAGE_JAX] = "Paste the log with the lines around it too: there the allocator writes "
                        "its statistics (Limit, InUse). Or print "
                        "jax.local_devices()[0].memory_stats() before the failing call. By "
                        "default JAX has 75 % of the card: XLA_PYTHON_CLIENT_MEM_FRACTION=.95 "
                        "gives it more, if nothing else runs there.",
        [MESSAGE_CUPY] =
            "The message does not say what of the pool is unused. Find out: print used_bytes(), "
            "free_bytes() and total_bytes() of cupy.get_default_memory_pool() in the handler. If "
            "free_bytes() is as large as the request, call free_all_blocks() before it (a limit "
            "counts unused blocks too), or use cupy.cuda.MemoryAsyncPool; nvidia-smi shows other "
            "processes.",
        [MESSAGE_RMM] =
            "The message does not say what of the pool is unused. Find out: wrap the pool in "
            "rmm.mr.StatisticsResourceAdaptor (the bytes in use at the failure) or "
            "rmm.mr.LoggingResourceAdaptor (each request, which `allocrig run` replays). A pool "
            "whose initial size is its maximum is one piece; one that grew is several, and no "
            "request may span two. Against fragmentation: rmm.mr.CudaAsyncMemoryResource().",
        [MESSAGE_JULIA] = "Print CUDA.memory_status() (CUDA.pool_status() from 5.5) at the "
                          "failure; CUDA.reclaim() and GC.gc(true) release what is unused.",
        [MESSAGE_DIRECTML] =
            "The message has no figure of the free memory. Find out: the GPU page of the Task "
            "Manager (dedicated and shared memory), torch_directml.gpu_memory(). DirectML keeps "
            "what it has allocated: smaller batches or images, or restart the process.",
    };
    const char *text = (size_t)message->framework < sizeof texts / sizeof *texts
                           ? texts[message->framework]
                           : NULL;
    if (message->how)
        return message->how;
    if (is_on(message, "TPU"))
        return "The message does not say what was free. Paste the rest of it, or print "
               "jax.local_devices()[0].memory_stats() before the failing call.";
    if (message->framework == MESSAGE_PYTORCH && is_on(message, "XPU") &&
        message->figures[MESSAGE_FIGURE_ALLOCATED].known)
        return "The message of this release does not say what was free. Find out: xpu-smi, or "
               "torch.xpu.mem_get_info() just before the request. Many devices give at most 4 GiB "
               "to one request (max_mem_alloc_size of torch.xpu.get_device_properties).";
    if (message->framework == MESSAGE_MLX)
        return "MLX does not say what was free. Find out: mx.get_active_memory() and "
               "mx.get_cache_memory() before it; mx.clear_cache() releases what is unused. "
               "mx.device_info() has the largest buffer and the recommended working set of the "
               "device; sysctl iogpu.wired_limit_mb raises what the system leaves to the GPU.";
    if (is_on(message, "MPS"))
        return "Print torch.mps.current_allocated_memory() and torch.mps.driver_allocated_memory() "
               "at the failure; torch.mps.empty_cache() releases what is unused.";
    if (text)
        return text;
    return message->figures[MESSAGE_FIGURE_FREE].known
               ? "The message does not say who has the rest. Find out: {tool} for other processes, "
                 "and what the program had allocated itself, just before the request."
               : "The message has no figure of the free memory. Find out: {tool} for what is free "
                 "and for other processes, just before the request.";
}

#define TRY_TORCH(variable)                                                                        \
    "Try " variable "=expandable_segments:True; if it is not enough, max_split_size_mb:128 "       \
    "instead. A recorded snapshot and `allocrig advise` say which setting fits."

/* The settings of PyTorch depend on the device, the system and the version. */
static const char *unfragment_torch(const struct message *message)
{
    static const struct {
        const char *device, *text;
    } devices[] = {
        {"MPS", "Try torch.mps.empty_cache() before it; PYTORCH_MPS_HIGH_WATERMARK_RATIO (0.0: no "
                "limit) and PYTORCH_MPS_LOW_WATERMARK_RATIO set when MPS releases its cache."},
        {"HIP",
         "Try PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128 (PyTorch 2.9 on: PYTORCH_ALLOC_CONF), "
         "and torch.cuda.empty_cache() before it. expandable_segments:True helps in builds for "
         "ROCm that support it; the others warn \"not supported on this platform\"."},
        {"NPU", TRY_TORCH("PYTORCH_NPU_ALLOC_CONF")},
        {"XPU", "Try torch.xpu.empty_cache() before it; from PyTorch 2.9 on "
                "PYTORCH_ALLOC_CONF=expandable_segments:True, where the release supports it."},
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (is_on(message, devices[i].device))
            return devices[i].text;
    if (message->windows && message->torch != MESSAGE_TORCH_TO_1_3)
        return "Try PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 (PyTorch 1.10 on), or "
               "backend:cudaMallocAsync (2.0 on). expandable_segments is not supported under "
               "Windows. A recorded snapshot and `allocrig advise` say which setting fits.";
    if (message->torch == MESSAGE_TORCH_TO_1_3)
        return "This message is of PyTorch 1.3 or older, which has no settings: call "
               "torch.cuda.empty_cache() before it, or update; from 2.1 on "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps.";
    if (message->torch == MESSAGE_TORCH_TO_2_0)
        return "Try PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 (PyTorch 1.10 on), or update: "
               "this message is of 2.0 or older, and expandable_segments:True needs 2.1. A "
               "recorded snapshot and `allocrig advise` say which setting fits.";
    return message->new_variable ? TRY_TORCH("PYTORCH_ALLOC_CONF")
                                 : TRY_TORCH("PYTORCH_CUDA_ALLOC_CONF");
}

static const char *unfragment(const struct message *message)
{
    switch (message->framework) {
    case MESSAGE_TENSORFLOW:
    case MESSAGE_JAX:
        if (is_on(message, "TPU"))
            return "A TPU has one pool and no setting for it: delete arrays that are not needed "
                   "before the request (.delete(), del), donate arguments (donate_argnums), put "
                   "large and lasting arrays first, or restart the process; a smaller request fits "
                   "too.";
        return message->framework == MESSAGE_TENSORFLOW
                   ? "Try TF_GPU_ALLOCATOR=cuda_malloc_async; or leave memory growth off, so that "
                     "the pool is one segment."
                   : "Try a larger XLA_PYTHON_CLIENT_MEM_FRACTION (0.75 by default), then "
                     "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async, then platform (slow).";
    case MESSAGE_CUPY:
        return "Try cupy.get_default_memory_pool().free_all_blocks() before it, or CuPy's "
               "MemoryAsyncPool.";
    case MESSAGE_RMM:
    case MESSAGE_SPARK:
        return "Try rmm.mr.CudaAsyncMemoryResource() (Spark: spark.rapids.memory.gpu.pool=ASYNC), "
               "or a pool whose initial size is its maximum.";
    case MESSAGE_JULIA:
        return "Try GC.gc(true) and CUDA.reclaim() before it; CUDA.unsafe_free!() on arrays that "
               "are not needed any more; JULIA_CUDA_MEMORY_POOL=none to compare without the pool.";
    default:
        return unfragment_torch(message);
    }
}

static const char *enlarge(const struct message *message)
{
    if (is_on(message, "TPU"))
        return "The program needs more than the chip has: a smaller batch, donated arguments "
               "(donate_argnums), rematerialisation (jax.checkpoint), fewer bytes for each number, "
               "or sharding over more chips.";
    if (is_on(message, "MPS"))
        return "The program needs more than MPS allows: a smaller batch, fewer bytes for each "
               "number, torch.mps.empty_cache(). PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the limit "
               "(0.0: none); the system then swaps, and may become unstable.";
    if (message->framework == MESSAGE_GGML || message->framework == MESSAGE_VLLM ||
        message->framework == MESSAGE_MLC || message->framework == MESSAGE_LIBRARY ||
        message->vllm.warming_up)
        return find_out(message);
    uint64_t together, missing = short_by(message, &together);
    if (missing && missing < bytes_of(message, MESSAGE_FIGURE_TOTAL) / 50)
        return "Little is missing for this request, though later ones may need more: a slightly "
               "smaller batch or sequence, or recomputation of a part.";
    if (message->windows)
        return "The program needs more than there is: a smaller batch, recomputation, fewer bytes "
               "for each number, or a larger card. Under Windows the desktop needs some of it, and "
               "the driver may move memory to the host (slow) if its fallback is on.";
    return "The program needs more than there is: a smaller batch, recomputation, fewer bytes for "
           "each number, or a larger card.";
}

static const char *impossible(const struct message *message)
{
    if (message->on_chip && message->how)
        return message->how;
    if (message->on_chip)
        return "The compiler plans this memory of the chip; no allocator is in it. Use smaller "
               "blocks in the kernel, or a smaller batch; --xla_tpu_scoped_vmem_limit_kib raises "
               "the limit of vmem.";
    if (program_passes_limit(message))
        return enlarge(message);
    if (is_on(message, "TPU"))
        return "The compiled program needs more than the chip has, whatever else is on it: a "
               "smaller batch, rematerialisation (jax.checkpoint), donated arguments, or sharding "
               "over more chips.";
    if (is_on(message, "HIP"))
        return "No setting helps if the total is right: look at the shape or the batch size of "
               "this request. An APU reports only the memory that the firmware or the driver sets "
               "aside for it (UMA size, amdgpu.gttsize, ttm.pages_limit).";
    if (bytes_of(message, MESSAGE_FIGURE_ASKED) >= UINT64_C(1) << 40)
        return "No setting helps: most often such a size was computed wrongly, from an overflow, a "
               "negative number or a wrong shape.";
    return "No setting helps: look at the shape or the batch size of this request. Often it is a "
           "full attention matrix, or a broadcast that was not meant.";
}

static const char *not_the_allocator(const struct message *message)
{
    if (message_passes_limit(message))
        return "Raise that limit, or keep the program within it: `allocrig advise --limit` names "
               "the settings that do.";
    if (message->framework == MESSAGE_MLC ||
        (message->framework == MESSAGE_LIBRARY && message->how))
        return find_out(message);
    if (message->reasons & (1u << MESSAGE_REASON_TIGHT))
        return "End other processes that {tool} shows; if there are none, the program needs "
               "more than there is: a smaller batch, recomputation, fewer bytes for each number, "
               "or a larger card.";
    if (message->block_limit && is_on(message, "Metal"))
        return "Metal limits the bytes of one buffer (maxBufferLength): use a smaller tensor or "
               "batch, a smaller quantization, or a newer release, which splits the weights.";
    if (message->block_limit && message->framework == MESSAGE_GGML)
        return "The device limits the bytes of one allocation: split buffers with "
               "GGML_VK_FORCE_MAX_ALLOCATION_SIZE, or use a smaller -ub.";
    if (is_on(message, "WebGPU"))
        return "WebGPU gives 256 MiB to one buffer, and 128 MiB to one binding, unless the page "
               "asks requestDevice for more (requiredLimits: maxBufferSize, "
               "maxStorageBufferBindingSize; webgpureport.org shows the most). Or split the "
               "buffer.";
    if (message->block_limit && is_on(message, "OpenCL"))
        return "OpenCL's devices limit the bytes of one buffer (CL_DEVICE_MAX_MEM_ALLOC_SIZE of "
               "clinfo, often a quarter of the memory; AMD: GPU_MAX_ALLOC_PERCENT=100, "
               "GPU_SINGLE_ALLOC_PERCENT=100): use smaller buffers.";
    if (message->block_limit)
        return "The device limits the bytes of one request: use several smaller tensors.";
    if (is_on(message, "XPU"))
        return "Look at the most that the device gives to one request (max_mem_alloc_size of "
               "torch.xpu.get_device_properties; 4 GiB on some), for a memory fraction, or for "
               "another process that used memory for a short time.";
    if (is_on(message, "HIP"))
        return "Look for a limit (a memory fraction, a container, the GTT size of an APU), for "
               "another process that used memory for a short time, or for a driver that fails for "
               "another reason (dmesg).";
    if (!message->card_told)
        return "The driver refused a request within the limit: other processes or libraries use "
               "the card's memory, or the system has a limit.";
    if (message->windows)
        return "Under Windows the driver (WDDM) also needs memory of the host for each request: "
               "look at the size of the page file and at free host memory, for a memory fraction, "
               "or for another process that used memory for a short time.";
    return "Look for a limit (a memory fraction, MIG, a container, WDDM on Windows), or for "
           "another process that used memory for a short time.";
}

static const char *host(const struct message *message)
{
    if (message->how)
        return message->how;
    if (message->allocator[0] && strstr(message->allocator, "host"))
        return "It is pinned memory of the host: TF_GPU_HOST_MEM_LIMIT_IN_MB sets its limit; or "
               "feed smaller batches.";
    if (message->framework == MESSAGE_GGML)
        return "The program goes on without pinned memory, with slower copies; "
               "GGML_CUDA_NO_PINNED=1 turns it off.";
    return "No setting of a GPU's allocator helps: look at the memory of the host (free, the limit "
           "of the container, ulimit -v; the paging file of Windows), the size of the data that is "
           "loaded at once, and the number of workers.";
}

static const char *cached(const struct message *message)
{
    if (message->framework == MESSAGE_JULIA)
        return "This is no failure. The pool keeps freed memory for later; GC.gc(true) and "
               "CUDA.reclaim() release it.";
    return "This is no failure. PyTorch keeps freed memory for later requests. "
           "torch.cuda.empty_cache() releases what is in segments without live blocks; the rest is "
           "fragmentation. Find out how much each is: torch.cuda.max_memory_allocated() (reserved "
           "memory up to it was once in use), \"Non-releasable memory\" of "
           "torch.cuda.memory_summary(), or a snapshot with `allocrig advise`.";
}

static const char *advice_of(const struct message *message)
{
    switch (message->cause) {
    case MESSAGE_IMPOSSIBLE:
        return impossible(message);
    case MESSAGE_NOT_THE_ALLOCATOR:
        return not_the_allocator(message);
    case MESSAGE_FRAGMENTATION:
    case MESSAGE_FRAGMENTATION_POSSIBLE:
        return unfragment(message);
    case MESSAGE_TENANT:
        return "Let the other processes end, or give this one a card of its own.";
    case MESSAGE_TENANT_OR_OUTSIDE:
        return message->framework == MESSAGE_VLLM
                   ? find_out(message)
                   : "Find out who has it: on the host (not in a container) {tool} lists the "
                     "processes of a card. If it is another process, let it end, or use another "
                     "card; if it is this one, look for libraries that allocate by themselves "
                     "({libraries}, another framework).";
    case MESSAGE_OUTSIDE:
        return is_on(message, "MPS")
                   ? "Look for Metal memory outside of the allocator of PyTorch: compiled graphs "
                     "of MPS, other frameworks in the process; torch.mps.empty_cache(). "
                     "PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the limit (0.0: none)."
                   : "Look for libraries that allocate by themselves: {libraries}, another "
                     "framework in the same process.";
    case MESSAGE_HOST:
        return host(message);
    case MESSAGE_CACHE:
        return cached(message);
    case MESSAGE_UNKNOWN:
        return find_out(message);
    default:
        return enlarge(message);
    }
}

const char *message_page_advice(const struct message *message, char *line, size_t line_bytes)
{
    name_tools(message, advice_of(message), line, line_bytes);
    return line;
}

/* ---- the page ---- */

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
        name_tools(message, unfragment(message), advice, sizeof advice);
        say(stream, "%s are unused in the pool, which would be enough in one piece. %s",
            size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a), advice);
        return;
    }
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++)
        if (message->cause == MESSAGE_FRAGMENTATION &&
            bytes_of(message, holders[i].figure) > MESSAGE_CONTEXT_MOST) {
            say(stream, "The %s that %s would be enough too.",
                size_of(message, holders[i].figure, a, sizeof a), holders[i].who);
            return;
        }
}

/* What the advice calls `allocrig advise`, as a command. The pool could have what it has reserved
 * and what is free on the card, or its limit. */
static void print_command(FILE *stream, const struct message *message, const char *advice)
{
    const struct message_figure *figures = message->figures;
    uint64_t bytes =
        bytes_of(message, MESSAGE_FIGURE_RESERVED) + bytes_of(message, MESSAGE_FIGURE_FREE);
    bool limited =
        figures[MESSAGE_FIGURE_ALLOWED].known && bytes_of(message, MESSAGE_FIGURE_ALLOWED) < bytes;
    char a[32], b[32];
    if (limited)
        bytes = bytes_of(message, MESSAGE_FIGURE_ALLOWED);
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
    print_other_cause(stream, message);
}
