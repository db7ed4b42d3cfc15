/* The wordings of TensorFlow and of XLA's runtime under JAX, which share the allocator (BFC):
 *
 *   - Allocator (GPU_0_bfc) ran out of memory trying to allocate S (rounded to N)requested by op ..
 *   - ... trying to allocate S with freed_by_count=0. The caller indicates that this is not a
 *     failure
 *   - OOM when allocating tensor with shape[A,B,..] and type T on ... by allocator GPU_0_bfc
 *   - Limit: N InUse: N MaxInUse: N ... LargestFreeBlock: N     (statistics, bytes)
 *   - Total bytes in pool: N memory_limit_: N available bytes: N     (the same dump; older
 *     versions call the first total_region_allocated_bytes_)
 *   - XLA backend allocating N bytes | will use up to N bytes on device N for BFCAllocator
 *   - {'bytes_in_use': N, 'bytes_limit': N, 'pool_bytes': N, ..}     (memory_stats() of JAX)
 *   - gpu_async_0 cuMemAllocAsync failed to allocate N bytes: ... Free memory/Total memory: N/N
 *   - RESOURCE_EXHAUSTED: Out of memory [while] trying to allocate N bytes | S
 *   - Out of memory allocating N bytes; Failed to allocate request for S (NB) on device ordinal N
 *   - failed to allocate S (N bytes) from device: CUDA_ERROR_OUT_OF_MEMORY
 *
 * The rest of the allocator's limit ("available bytes") is used as the free memory of the card,
 * because the messages have no other figure of it. TensorFlow before 1.0 prints the statistics
 * before the request. */
#include <ctype.h>

#include "sim/explain/message_forms.h"

#define GAP_BUFFER  64 /* characters between the words of a buffer and its size */
#define GAP_LINE    8  /* between the name of a file and the number of a line */
#define SOURCE_MOST 48
#define DIGITS_MOST 10

/* The bytes of an element, by TensorFlow's name of its type. */
static const struct type {
    const char *name;
    unsigned bytes;
} types[] = {
    {"complex128", 16}, {"complex64", 8}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
    {"float16", 2},     {"uint16", 2},    {"uint32", 4},   {"uint64", 8},  {"int16", 2},
    {"int32", 4},       {"int64", 8},     {"uint8", 1},    {"int8", 1},    {"double", 8},
    {"float", 4},       {"half", 2},      {"bool", 1},
};

static struct message_figure exact(uint64_t bytes)
{
    return (struct message_figure){.known = true, .bytes = bytes};
}

/* Reads "8589934592bytes", "851.61gib" or "8.00gib(8589934592b)"; of two figures the exact one. */
static bool read_asked(const struct message_text *text, size_t at, struct message_figure *asked)
{
    uint64_t count;
    size_t end = message_text_asked(text, at, asked);
    if (end == MESSAGE_NOWHERE)
        return false;
    const char *rest = text->chars + end;
    size_t skip = strncmp(rest, "(roundedto", 10) == 0 ? 10 : *rest == '(' ? 1 : 0;
    if (!skip)
        return true;
    end = message_text_count(text, end + skip, &count);
    if (end != MESSAGE_NOWHERE && count && strchr(")b", text->chars[end])) /* not "(9.8 GB)" */
        *asked = exact(count);
    return true;
}

/* Reads the device in upper case. Host memory has such an allocator too. */
static void name_allocator(struct message *self, const char *name, size_t length)
{
    snprintf(self->allocator, sizeof self->allocator, "%.*s", (int)length, name);
    if (strncmp(self->allocator, "gpu_", 4) == 0)
        memcpy(self->allocator, "GPU_", 4);
    self->host = strcmp(self->allocator, "cpu") == 0 || strcmp(self->allocator, "mklcpu") == 0 ||
                 strstr(self->allocator, "host") != NULL; /* "gpu_host_bfc": pinned */
}

/* Reads "Allocator (NAME) ran out". */
static void read_allocator(const struct message_text *text, size_t at, struct message *self)
{
    const char *close = memchr(text->chars + at, ')', 32);
    size_t length = close ? (size_t)(close - (text->chars + at)) : 0;
    if (length == 0 || length >= sizeof self->allocator)
        return;
    name_allocator(self, text->chars + at, length);
}

/* Finds the first failed request that the allocator reported and that was required; else the first
 * optional one. Returns its position. */
static size_t find_complaint(const struct message_text *text, struct message *self)
{
    static const char words[] = "ranoutofmemorytryingtoallocate";
    static const char spare[] = "thecallerindicatesthatthisisnotafailure";
    size_t found = MESSAGE_NOWHERE;
    for (size_t at = 0; (at = message_text_find(text, words, at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        struct message_figure asked;
        size_t next = message_text_find(text, words, at + 1, at + 300);
        size_t end = next == MESSAGE_NOWHERE ? at + 300 : next;
        bool may_fail = message_text_find(text, spare, at, end) != MESSAGE_NOWHERE;
        if (!read_asked(text, at + strlen(words), &asked))
            continue;
        self->count += !may_fail;
        if (found != MESSAGE_NOWHERE && (may_fail || !self->may_fail))
            continue;
        found = self->at = at;
        self->end = at + strlen(words);
        self->figures[MESSAGE_FIGURE_ASKED] = asked;
        self->may_fail = may_fail;
    }
    size_t name = found == MESSAGE_NOWHERE
                      ? found
                      : message_text_find(text, "allocator(", found > 60 ? found - 60 : 0, found);
    if (name != MESSAGE_NOWHERE)
        read_allocator(text, name + strlen("allocator("), self);
    return found;
}

/* By the type behind a shape: "andtypefloat", NumPy's "anddatatypefloat64", or in PyTorch's words
 * "),torch.float16"; 0: no type is there. */
static uint64_t element_bytes(const struct message_text *text, size_t at)
{
    static const char *const before[] = {"andtype", "anddatatype", "torch.", "dtype=torch."};
    const char *words = text->chars + at + strspn(text->chars + at, "),");
    for (size_t i = 0; i < AR_COUNT(before); i++)
        for (size_t j = 0; j < AR_COUNT(types); j++)
            if (strncmp(words, before[i], strlen(before[i])) == 0 &&
                strncmp(words + strlen(before[i]), types[j].name, strlen(types[j].name)) == 0)
                return types[j].bytes;
    return 0;
}

/* Reads "... by allocator NAME", up to the next space. */
static void read_by_allocator(const struct message_text *text, size_t at, struct message *self)
{
    static const char words[] = "byallocator";
    size_t name = message_text_find(text, words, at, at + 200), length = 0;
    if (name == MESSAGE_NOWHERE || self->allocator[0])
        return;
    name += strlen(words);
    while (
        (length == 0 || !message_text_apart(text, name + length)) &&
        (text->chars[name + length] == '_' || isalnum((unsigned char)text->chars[name + length])))
        length++;
    name_allocator(self, text->chars + name, length);
}

bool message_read_shape(const struct message_text *text, size_t at, struct message *self)
{
    static const uint64_t most = UINT64_C(1) << 56; /* of 16 bytes each: 2^60 */
    uint64_t elements = 1, dimension;
    bool scalar = text->chars[at] == ']', beyond = false;
    at += scalar;
    for (char next = scalar ? ']' : ','; next == ','; at++) {
        size_t end = message_text_count(text, at, &dimension);
        if (end == MESSAGE_NOWHERE)
            return false;
        beyond |= dimension && elements > most / dimension;
        elements = beyond ? 1 : elements * dimension;
        at = end;
        at += strncmp(text->chars + at, ",)", 2) == 0;
        next = text->chars[at];
        if (next != ',' && next != ']' && next != ')')
            return false;
    }
    uint64_t bytes = element_bytes(text, at);
    self->type_assumed = !bytes;
    bytes = elements * (bytes ? bytes : 4);
    self->figures[MESSAGE_FIGURE_ASKED] = beyond ? message_figure_enormous : exact(bytes);
    read_by_allocator(text, at, self);
    return true;
}

/* Reads a request that the framework reports, not the allocator. */
static bool find_request(const struct message_text *text, struct message *self)
{
    static const char *const words[] = {
        "outofmemorywhiletryingtoallocate",
        "exhausted:outofmemorytryingtoallocate",
        "outofmemoryallocating",
        "failedtoallocaterequestfor",
        "failedtoallocate",
    };
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    static const char *const shapes[] = {"oomwhenallocatingtensorwithshape[",
                                         "oomwhenallocatingtensorofshape["};
    size_t at;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if ((at = message_text_find(text, shapes[i], 0, text->count)) != MESSAGE_NOWHERE &&
            message_read_shape(text, at + strlen(shapes[i]), self)) {
            self->at = at;
            self->end = at + strlen(shapes[i]);
            return true;
        }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (at = 0;
             (at = message_text_find(text, words[i], at, text->count)) != MESSAGE_NOWHERE;) {
            self->at = at;
            self->end = at += strlen(words[i]);
            if (!message_text_other_reason(text, at) && read_asked(text, at, asked))
                return true;
        }
    return false;
}

/* Reads "InUse: N" of the statistics, not "MaxInUse: N" or "Chunks in use: N" of a bin. */
static void read_in_use(const struct message_text *text, size_t from, size_t to,
                        struct message_figure *figure)
{
    for (size_t at = from; (at = message_text_find(text, "inuse:", at, to)) != MESSAGE_NOWHERE;
         at += 6) {
        struct message_figure size;
        bool other = message_text_ends(text, "max", at) || message_text_ends(text, "chunks", at);
        if (!other && message_text_number(text, at + 6, 0, &size) != MESSAGE_NOWHERE)
            *figure = size;
    }
}

/* With the driver's own pool, TensorFlow prints the free memory of the card. */
static void read_card(const struct message_text *text, struct message *self)
{
    struct message_figure *figures = self->figures;
    const struct message_figure limit = figures[MESSAGE_FIGURE_TOTAL];
    if (!message_pattern_read(text, "freememory/totalmemory:F/T", 0, text->count, 0, figures))
        return;
    figures[MESSAGE_FIGURE_ALLOWED] = limit;
    figures[MESSAGE_FIGURE_ALLOWED].known &= limit.bytes > 0;
    self->card_told = self->async_pool = true;
}

/* Reads the dump after the error. */
static void read_dump(const struct message_text *text, size_t from, size_t to, struct message *self)
{
    struct message_figure *figures = self->figures;
    struct message_figure *largest = &figures[MESSAGE_FIGURE_LARGEST];
    (void)message_pattern_read(text,
                               "memory_limit_:T|limit:T|bytes_limit\':T|bytes_limit\":T&"
                               "total_region_allocated_bytes_:R|totalbytesinpool:R|pool_bytes\':R|"
                               "pool_bytes\":R&availablebytes:F&largestfreeblock:L&maxinuse:K|"
                               "peak_bytes_in_use\':K|peak_bytes_in_use\":K",
                               from, to, 0, figures);
    read_in_use(text, from, to, &figures[MESSAGE_FIGURE_ALLOCATED]);
    if (!figures[MESSAGE_FIGURE_ALLOCATED].known)
        (void)message_pattern_read(text,
                                   "sumtotalofin-usechunks:P|\'bytes_in_use\':P|"
                                   "\"bytes_in_use\":P",
                                   from, to, 0, figures);
    self->earlier = message_text_any(text, "bytes_limit\'|bytes_limit\"", from, to);
    read_card(text, self);
    largest->known &= largest->bytes > 0; /* 0 is printed if it was not computed */
}

/* The report of a compiled program: what it needs, and its largest buffer, which is the first. */
static void read_program(const struct message_text *text, struct message *self)
{
    struct message_figure size;
    size_t at = message_text_find(text, "preallocatedtempallocation:", 0, text->count);
    if (at == MESSAGE_NOWHERE)
        return;
    (void)message_pattern_read(text, "preallocatedtempallocation:M&totalallocation:Q", at,
                               text->count, 0, self->figures);
    at = message_text_find(text, "buffer1:", at, text->count);
    if (at != MESSAGE_NOWHERE &&
        message_text_after(text, "size:", at, at + GAP_BUFFER, &size) != MESSAGE_NOWHERE)
        self->buffer.bytes = size.bytes;
}

/* The text itself is needed for the name of a file: what is squeezed is in lower case. */
void message_read_source(const char *text, size_t bytes, struct message *self)
{
    static const char file[] = "source_file=", line[] = "source_line=";
    const char *end = text + bytes, *at = memmem(text, bytes, file, strlen(file));
    if (!self->buffer.bytes || !at)
        return;
    at += strlen(file);
    while (at < end && (*at == '\\' || *at == '"'))
        at++;
    const char *name = at;
    for (; at < end && !strchr("\\\" \n", *at); at++)
        name = *at == '/' ? at + 1 : name;
    const char *number = memmem(at, (size_t)(end - at), line, strlen(line));
    unsigned digits = 0;
    if (!number || number - at > GAP_LINE || at == name)
        return;
    for (number += strlen(line); number + digits < end && isdigit((unsigned char)number[digits]);)
        digits++;
    if (!digits)
        return;
    snprintf(self->buffer.source, sizeof self->buffer.source, "%.*s:%.*s",
             at - name < SOURCE_MOST ? (int)(at - name) : SOURCE_MOST, name,
             digits < DIGITS_MOST ? (int)digits : DIGITS_MOST, number);
}

static struct message_figure rest_of(const struct message_figure *limit,
                                     const struct message_figure *part)
{
    struct message_figure rest = exact(limit->bytes > part->bytes ? limit->bytes - part->bytes : 0);
    rest.derived = true;
    return rest;
}

/* Of what is reserved and what is not, the dump may have one: they make up the limit. If it has
 * neither, all of the limit is assumed to be reserved, as by default. */
static void fill_dump(struct message *self)
{
    struct message_figure *figures = self->figures;
    if (!figures[MESSAGE_FIGURE_TOTAL].known || !figures[MESSAGE_FIGURE_ALLOCATED].known ||
        self->card_told)
        return;
    struct message_figure *reserved = &figures[MESSAGE_FIGURE_RESERVED];
    struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    self->whole_limit = !reserved->known && !available->known;
    if (!reserved->known)
        *reserved = rest_of(&figures[MESSAGE_FIGURE_TOTAL], available);
    if (!available->known)
        *available = rest_of(&figures[MESSAGE_FIGURE_TOTAL], reserved);
}

/* "device:GPU:N with S memory": TensorFlow takes what is free at its start. */
static void read_created(const struct message_text *text, struct message *self)
{
    char pattern[40] = "device:gpu:#withSmemory";
    size_t at = 0, end;
    if (strncmp(self->allocator, "GPU_", 4) == 0)
        snprintf(pattern, sizeof pattern, "device:gpu:%.*swithSmemory",
                 (int)strspn(self->allocator + 4, "0123456789"), self->allocator + 4);
    while ((at = message_pattern_find(text, pattern, at, text->count, -1, self->figures, &end)) !=
           MESSAGE_NOWHERE)
        at++; /* the last one counts */
}

/* The driver refuses to the growing pool what was free when it began: someone else has it now, and
 * none of these lines says who. */
static void forget_start(const struct message_text *text, struct message *self)
{
    struct message_figure *start = &self->figures[MESSAGE_FIGURE_START];
    bool tensor = message_text_any(text, "oomwhenallocating|ranoutofmemorytrying", 0, text->count);
    if (!tensor && message_text_has(text, "fromdevice:") && start->bytes >= MESSAGE_START_LEAST)
        start->known = start->bytes < self->figures[MESSAGE_FIGURE_ASKED].bytes;
}

/* Both frameworks print the same words. Names of errors and of source files distinguish them. */
bool message_text_speaks_jax(const struct message_text *text)
{
    static const char jax[] =
        "xlaruntimeerror|jaxruntimeerror|jaxlib|jax.errors|external/org_tensorflow";
    static const char tensorflow[] = "tensorflow/|itex/|oomwhenallocatingtensor|external/"
                                     "local_|[op:|resourceexhaustederror|resourceexhausted:";
    static const char xla[] =
        "external/xla|external/tsl|resource_exhausted:outofmemory|inmemoryspace";
    static const char bfc[] = "_bfc|fromdevice:cuda_error_out_of_memory";
    if (message_text_any(text, jax, 0, text->count))
        return true;
    if (message_text_any(text, tensorflow, 0, text->count))
        return false;
    return message_text_any(text, xla, 0, text->count) ||
           !message_text_any(text, bfc, 0, text->count);
}

/* Whether the words are only those of any program. */
static bool speaks_neither(const struct message_text *text)
{
    static const char own[] =
        "xla|jax|tensorflow|exhausted|_bfc|oomwhen|bfc_allocator|fromdevice:|"
        "outofmemorywhiletrying|ranoutofmemorytrying|failedtoallocaterequestfor";
    return !message_text_any(text, own, 0, text->count);
}

/* The dump of a request is after it, or, in old versions, before it. */
static void find_dump(const struct message_text *text, size_t at, size_t to, struct message *self)
{
    static const char words[] = "ranoutofmemorytryingtoallocate";
    read_dump(text, at, to, self);
    if (self->figures[MESSAGE_FIGURE_TOTAL].known || at == 0)
        return;
    size_t from = 0;
    for (size_t before = 0;
         (before = message_text_find(text, words, before, at)) != MESSAGE_NOWHERE;)
        from = before += strlen(words);
    read_dump(text, from, at, self);
}

/* The statistics without the request that failed. */
static bool read_statistics(const struct message_text *text, struct message *self)
{
    struct message_figure *figures = self->figures;
    if (!message_text_has(text, "maxinuse:"))
        return false;
    read_dump(text, 0, text->count, self);
    fill_dump(self);
    self->bare = true;
    self->count = self->taken = 1;
    return figures[MESSAGE_FIGURE_TOTAL].known && figures[MESSAGE_FIGURE_ALLOCATED].known;
}

/* "exceeds the base limit (N)": the compiler plans with 80 % of the card. */
static void read_base_limit(const struct message_text *text, struct message_figure *total)
{
    if (message_text_after(text, "exceedsthebaselimit(", 0, text->count, total) == MESSAGE_NOWHERE)
        return;
    total->bytes += total->bytes / 4;
    total->derived = true;
}

bool message_read_xla(const struct message_text *text, struct message *self)
{
    struct message_figure complained = {0};
    size_t at = find_complaint(text, self);
    size_t from = at == MESSAGE_NOWHERE ? 0 : at, to = text->count;
    bool hard = at != MESSAGE_NOWHERE && !self->may_fail;
    self->framework = message_text_speaks_jax(text) ? MESSAGE_JAX : MESSAGE_TENSORFLOW;
    if (at != MESSAGE_NOWHERE)
        complained = self->figures[MESSAGE_FIGURE_ASKED];
    if (!hard && find_request(text, self)) {
        self->may_fail = false;
        from = 0;
    } else if (at == MESSAGE_NOWHERE) {
        return read_statistics(text, self);
    } else {
        size_t next = message_text_find(text, "ranoutofmemorytryingtoallocate", at + 30, to);
        if (next != MESSAGE_NOWHERE && hard)
            to = next;
        self->figures[MESSAGE_FIGURE_ASKED] = complained;
    }
    self->count += !self->count;
    self->taken = 1;
    find_dump(text, from, to, self);
    if (speaks_neither(text)) { /* what the words say of a card is for message_read_bare */
        if (!self->figures[MESSAGE_FIGURE_TOTAL].known &&
            self->figures[MESSAGE_FIGURE_ASKED].bytes < MESSAGE_ANY_CARD)
            return false;
        self->framework = MESSAGE_DRIVER;
    }
    if (!self->figures[MESSAGE_FIGURE_TOTAL].known)
        (void)message_pattern_read(text,
                                   "xlabackendallocatingTondevice#forbfcallocator|"
                                   "xlabackendwilluseuptoTondevice#forbfcallocator",
                                   0, text->count, 0, self->figures);
    if (!self->figures[MESSAGE_FIGURE_TOTAL].known)
        read_base_limit(text, &self->figures[MESSAGE_FIGURE_TOTAL]);
    fill_dump(self);
    read_created(text, self);
    forget_start(text, self);
    read_program(text, self);
    return true;
}
