#include "bench/report/explain_page.h"

#include <inttypes.h>
#include <string.h>

#include "allocators/base/size.h"
#include "bench/report/sentence.h"

#define LARGE_SEGMENT (20 * AR_MIB) /* PyTorch's segment for tensors above 1 MiB and below 10 MiB */
#define SMALL_SEGMENT (2 * AR_MIB)  /* and for those up to 1 MiB */

static const char *size_of(const struct message *message, enum message_figure_name name, char *text,
                           size_t text_bytes)
{
    return ar_size_print(message->figures[name].bytes, text, text_bytes);
}

static const char *figure_name(const struct message *message, enum message_figure_name name)
{
    bool xla = message->framework != MESSAGE_PYTORCH && !message->card_told;
    if (xla && name == MESSAGE_FIGURE_TOTAL)
        return "in total, the allocator's limit";
    if (xla && name == MESSAGE_FIGURE_FREE)
        return "not taken yet, under the limit";
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

/* Memory that is neither free nor the pool's, if the message does not say whose it is. */
static void print_unaccounted(FILE *stream, const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    const struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    char line[256], text[32];
    if (!total->known || !available->known || !reserved->known ||
        figures[MESSAGE_FIGURE_OTHERS].known || figures[MESSAGE_FIGURE_OUTSIDE_POOL].known ||
        total->bytes < available->bytes + reserved->bytes)
        return;
    uint64_t rest = total->bytes - available->bytes - reserved->bytes;
    if (rest < figures[MESSAGE_FIGURE_ASKED].bytes)
        return;
    snprintf(line, sizeof line,
             "%s are neither free nor in the pool: other processes have them, or this one has them "
             "outside of the pool; the message does not say which.",
             ar_size_print(rest, text, sizeof text));
    sentence_print(stream, line);
}

/* Whether PyTorch reports a limit that the program set; without one it reports the size of the
 * card. */
static bool is_limited(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *allowed = &figures[MESSAGE_FIGURE_ALLOWED];
    return message->framework == MESSAGE_PYTORCH && allowed->known &&
           !(figures[MESSAGE_FIGURE_TOTAL].known &&
             allowed->bytes >= figures[MESSAGE_FIGURE_TOTAL].bytes);
}

static bool passes_limit(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    const struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    return is_limited(message) && reserved->known &&
           reserved->bytes + figures[MESSAGE_FIGURE_ASKED].bytes >
               figures[MESSAGE_FIGURE_ALLOWED].bytes;
}

static void print_limit(FILE *stream, const struct message *message)
{
    char line[256], of[32], taken[32];
    bool over = passes_limit(message);
    if (!is_limited(message))
        return;
    snprintf(line, sizeof line,
             "A limit of %s was set in the program (set_per_process_memory_fraction, or the "
             "like)%s%s: the program cannot use free memory of the card beyond it.",
             size_of(message, MESSAGE_FIGURE_ALLOWED, of, sizeof of),
             over ? ", and this request would exceed it, with a pool of " : "",
             over ? size_of(message, MESSAGE_FIGURE_RESERVED, taken, sizeof taken) : "");
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
    else
        snprintf(
            line, sizeof line,
            "The text holds %u such messages; this is number %u, which has more figures of the "
            "same request than the first.",
            message->count, message->taken);
    sentence_print(stream, line);
}

static void print_remarks(FILE *stream, const struct message *message, bool more)
{
    const struct message_figure *figures = message->figures;
    if (message->segment_asked && figures[MESSAGE_FIGURE_ASKED].bytes < UINT64_C(1) << 60 &&
        strcmp(message->device, "MPS") != 0)
        print_segment(stream, message);
    if (message->host || strcmp(message->device, "CPU") == 0)
        sentence_print(stream, "It is the host's memory that ran out, not a GPU's.");
    print_limit(stream, message);
    print_unaccounted(stream, message);
    if (message->close)
        sentence_print(stream, "Two figures that were compared differ by less than their printed "
                               "decimals can tell: the other answer is possible as well.");
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
    if (message->process_guessed)
        sentence_print(stream,
                       "The message does not say which of the listed processes is this one; the "
                       "size of the pool tells the one that is counted as this process.");
    print_count(stream, message);
    if (more)
        sentence_print(stream, "The rest of the file was not read.");
}

/* Whether the message has no figures, so that the cause is the default. */
static bool says_nothing(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    return message->cause == MESSAGE_CAPACITY && !figures[MESSAGE_FIGURE_FREE].known &&
           !figures[MESSAGE_FIGURE_ALLOCATED].known && !figures[MESSAGE_FIGURE_RESERVED].known &&
           !figures[MESSAGE_FIGURE_UNALLOCATED].known;
}

/* What to paste instead of such a message. */
static const char *paste(enum message_framework framework)
{
    static const char *const texts[] = {
        [MESSAGE_PYTORCH] =
            "Paste all of it, or the whole log: after these words PyTorch says how much "
            "the card has, how much was free, and what it had allocated and reserved.",
        [MESSAGE_TENSORFLOW] =
            "Paste the log with the lines before it too: there the allocator writes its "
            "statistics (Limit, InUse).",
        [MESSAGE_JAX] = "Paste the log with the lines around it too: there the allocator writes "
                        "its statistics (Limit, InUse).",
        [MESSAGE_CUPY] =
            "Paste all of it: after these words CuPy says what it had allocated so far, and, "
            "if one is set, the limit.",
        [MESSAGE_RMM] = "Paste all of it: if a pool may not grow, RMM says its current size "
                        "and its maximum.",
    };
    return texts[framework];
}

/* The figures that decide, as one sentence. */
static void print_reason(FILE *stream, const struct message *message)
{
    char line[512], asked[32], a[32], b[32];
    const char *verb = "were requested";
    size_of(message, MESSAGE_FIGURE_ASKED, asked, sizeof asked);
    switch (message->cause) {
    case MESSAGE_IMPOSSIBLE:
        if (message->figures[MESSAGE_FIGURE_TOTAL].known)
            snprintf(line, sizeof line, "%s %s, there are %s in total.", asked, verb,
                     size_of(message, MESSAGE_FIGURE_TOTAL, a, sizeof a));
        else
            snprintf(line, sizeof line, "The request is larger than any card.");
        break;
    case MESSAGE_NOT_THE_ALLOCATOR:
        snprintf(line, sizeof line, "%s %s and %s were free.", asked, verb,
                 size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a));
        break;
    case MESSAGE_FRAGMENTATION:
        snprintf(line, sizeof line,
                 "%s %s; the pool had %s unused, but no free range in it was large enough.", asked,
                 verb, size_of(message, MESSAGE_FIGURE_UNALLOCATED, a, sizeof a));
        break;
    case MESSAGE_TENANT:
        snprintf(line, sizeof line, "%s %s, %s were free, and other processes had %s.", asked, verb,
                 size_of(message, MESSAGE_FIGURE_FREE, a, sizeof a),
                 size_of(message, MESSAGE_FIGURE_OTHERS, b, sizeof b));
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
        snprintf(line, sizeof line,
                 says_nothing(message)
                     ? "%s %s. Whether the program needs too much, other processes have the "
                       "memory, or it is fragmented cannot be told from this message."
                     : "%s %s, and no figure in the message is as large.",
                 asked, verb);
    }
    sentence_print(stream, line);
}

#define TRY_TORCH(variable)                                                                        \
    "Try " variable "=expandable_segments:True; then max_split_size_mb. A recorded snapshot and "  \
    "`allocrig advise` say which setting fits."

/* The name of PyTorch's variable depends on the device. */
static const char *unfragment(const struct message *message)
{
    static const char *const texts[] = {
        TRY_TORCH("PYTORCH_CUDA_ALLOC_CONF"),
        "Try TF_GPU_ALLOCATOR=cuda_malloc_async; or leave memory growth off, so that the pool is "
        "one segment.",
        "Try XLA_PYTHON_CLIENT_ALLOCATOR=platform, or a larger XLA_PYTHON_CLIENT_MEM_FRACTION.",
        "Try cupy.get_default_memory_pool().free_all_blocks() before it, or CuPy's "
        "MemoryAsyncPool.",
        "Try rmm.mr.CudaAsyncMemoryResource(), or a pool with a larger initial size.",
    };
    static const char *const devices[][2] = {
        {"HIP", TRY_TORCH("PYTORCH_HIP_ALLOC_CONF")},
        {"NPU", TRY_TORCH("PYTORCH_NPU_ALLOC_CONF")},
        {"XPU", TRY_TORCH("PYTORCH_ALLOC_CONF")},
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(message->device, devices[i][0]) == 0)
            return devices[i][1];
    return texts[message->framework];
}

const char *message_page_advice(const struct message *message)
{
    const struct message_figure *figures = message->figures;
    bool over = passes_limit(message);
    switch (message->cause) {
    case MESSAGE_IMPOSSIBLE:
        return "No setting helps: look at the shape or the batch size of this request.";
    case MESSAGE_NOT_THE_ALLOCATOR:
        return over ? "Raise that limit, or keep the program within it: `allocrig advise "
                      "--limit` names the settings that do."
               : message->framework == MESSAGE_PYTORCH
                   ? "Look for a limit (a memory fraction, MIG, a container, WDDM on Windows), or "
                     "for another process that used memory for a short time."
                   : "The driver refused a request within the limit: other processes or libraries "
                     "use the card's memory, or the system has a limit.";
    case MESSAGE_FRAGMENTATION:
    case MESSAGE_FRAGMENTATION_POSSIBLE:
        return unfragment(message);
    case MESSAGE_TENANT:
        return "Let the other processes end, or give this one a card of its own.";
    case MESSAGE_OUTSIDE:
        return "Look for libraries that allocate by themselves: NCCL buffers, cuBLAS workspaces, "
               "another framework in the same process.";
    default:
        if (says_nothing(message))
            return paste(message->framework);
        if (!figures[MESSAGE_FIGURE_FREE].known)
            return "By this message the program needs more than there is; the log around it, or "
                   "nvidia-smi, may show which process has the memory.";
        return "The program needs more than there is: a smaller batch, recomputation, fewer bytes "
               "for each number, or a larger card.";
    }
}

void message_page_print(FILE *stream, const struct message *message, bool more)
{
    char line[256];
    bool named = message->allocator[0] || message->device[0];
    snprintf(line, sizeof line, "%s: %s", message_cause_name(message->cause),
             says_nothing(message) ? "by default; the message has no figures to tell a cause by"
                                   : message_cause_meaning(message->cause));
    sentence_print(stream, line);
    print_reason(stream, message);
    fprintf(stream, "\n  from %s%s%s%s\n", message_framework_name(message->framework),
            named ? ", " : "", message->device, message->allocator);
    print_figures(stream, message);
    fputc('\n', stream);
    print_missing(stream, message);
    print_remarks(stream, message, more);
    sentence_print(stream, message_page_advice(message));
}
