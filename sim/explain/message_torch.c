/* The wordings of PyTorch's allocators since 1.0:
 *
 *   1.0 to 1.3   Tried to allocate S (GPU N; S total capacity; S already allocated; S free;
 *                S cached)     ("cached" is reserved and unused)
 *   1.4 to 2.0   ...; S free; [S allowed;] S reserved in total by PyTorch)
 *   from 2.1     Tried to allocate S. GPU N has a total capac(i)ty of S of which S is free.
 *                [Process N has S memory in use.].. [Including non-PyTorch memory, this process has
 *                S memory in use.] [S allowed;] Of the allocated memory S is allocated by PyTorch,
 *                [with S allocated in private pools (e.g., CUDA Graphs),] and S is reserved by
 *                PyTorch but unallocated.
 *   async        Currently allocated: S Requested: S Device limit: S Free (according to CUDA): S
 *                PyTorch limit (set by user-supplied memory fraction): S
 *   MPS          MPS allocated: S, other allocations: S, max allowed: S). Tried to allocate S
 *
 *   IPEX         Current platform can NOT allocate memory block with size larger than 4GB! Tried to
 *                allocate S (...)
 *
 * CUDA, HIP, XPU, NPU, MLU and others differ only in the first word. */

#include "sim/explain/message_forms.h"

#define WINDOW_MOST    6000 /* the most characters of a message */
#define RETOLD_MOST    200  /* of one in other words */
#define HOST_MOST      200  /* the most between the host's allocator and its request */
#define PROCESSES_MOST 64   /* the most processes in a message */

struct window {
    const struct message_text *text;
    size_t from, to;
    struct message *self;
};

/* Reads the figures of the patterns. */
static bool read_words(const struct window *window, const char *patterns)
{
    return message_pattern_read(window->text, patterns, window->from, window->to, -1,
                                window->self->figures);
}

static void read_pool(const struct window *window)
{
    (void)read_words(window, "oftheallocatedmemoryPisallocatedbypytorch|Palreadyallocated|"
                             "Pisallocatedbypytorch&Vallocatedinprivatepools");
    /* A cut text ends without the bracket. */
    const struct message_text *text = window->text;
    size_t at = message_text_find(text, "cached", window->from, window->to);
    bool cut = at != MESSAGE_NOWHERE && text->gaps[at + 6] == MESSAGE_GAP_LINE;
    if (!read_words(window, "Uisreserve") && read_words(window, cut ? "Ucached" : "Ucached)"))
        window->self->torch = MESSAGE_TORCH_TO_1_3;
    if (read_words(window, "Rreservedintotalbypytorch"))
        window->self->torch = MESSAGE_TORCH_TO_2_0;
}

static void read_card(const struct window *window)
{
    (void)read_words(window, "totalcapacityofT|totalcapactyofT|Ttotalcapacity&"
                             "Fisfree|Ffree;|Ffree)&Wallowed;");
    /* People retell it: "has 79.19 GiB total, 6.68 GiB free, 72.48 GiB in use by this process". */
    const struct window near = {window->text, window->from,
                                window->from + RETOLD_MOST < window->to ? window->from + RETOLD_MOST
                                                                        : window->to,
                                window->self};
    if (!window->self->figures[MESSAGE_FIGURE_TOTAL].known)
        (void)read_words(&near, "Ttotal,Ffree&Iinusebythisprocess");
}

/* The reserved bytes of the pool, or at least the allocated ones. False: neither is in the message.
 */
static bool pool_bytes(const struct message *self, uint64_t *bytes)
{
    const struct message_figure *figures = self->figures;
    const struct message_figure *allocated = &figures[MESSAGE_FIGURE_ALLOCATED];
    const struct message_figure *unallocated = &figures[MESSAGE_FIGURE_UNALLOCATED];
    *bytes = allocated->bytes + unallocated->bytes;
    if (!figures[MESSAGE_FIGURE_RESERVED].known)
        return allocated->known;
    *bytes = figures[MESSAGE_FIGURE_RESERVED].bytes;
    return true;
}

static unsigned read_processes(const struct window *window, struct message_figure *processes)
{
    const struct message_text *text = window->text;
    unsigned count = 0;
    for (size_t at = window->from; count < PROCESSES_MOST;) {
        uint64_t id;
        at = message_text_find(text, "process", at, window->to);
        if (at == MESSAGE_NOWHERE)
            break;
        at += strlen("process");
        size_t end = message_text_count(text, at, &id);
        if (end == MESSAGE_NOWHERE || strncmp(text->chars + end, "has", 3) != 0)
            continue;
        end = message_text_size(text, end + 3, &processes[count]);
        if (end != MESSAGE_NOWHERE && strncmp(text->chars + end, "memoryinuse", 11) == 0)
            count++;
    }
    return count;
}

#define NEAR_POOL (UINT64_C(1) << 30) /* a context and libraries usually need less */

/* A context with its rounding errors is larger: the smallest in public messages has 138 MiB. */
#define SMALL_CONTEXT (MESSAGE_CONTEXT_LEAST / 2)

/* The bytes of the card that are neither free nor of a listed process. */
static uint64_t bytes_unlisted(const struct message *self, const struct message_figure *processes,
                               unsigned count)
{
    const struct message_figure *total = &self->figures[MESSAGE_FIGURE_TOTAL];
    uint64_t taken = self->figures[MESSAGE_FIGURE_FREE].bytes;
    if (!total->known || !self->figures[MESSAGE_FIGURE_FREE].known)
        return 0;
    for (unsigned i = 0; i < count; i++)
        taken += processes[i].known ? processes[i].bytes : 0;
    return total->bytes > taken ? total->bytes - taken : 0;
}

/* Finds this process in the list. Inside of a container its number is not known to the program. It
 * is the process with at least the bytes of the pool and of a context, and of several the one with
 * the fewest. If the unlisted bytes match the pool, this process is not in the list. If they are
 * more, other processes may be hidden; then the bytes of this process must be near to those of the
 * pool. If they are too few for a context, this process must be in the list, also if its pool is
 * empty: a library beside the pool then has the memory. */
static unsigned find_this(const struct message *self, const struct message_figure *processes,
                          unsigned count)
{
    unsigned found = count;
    uint64_t pool, unlisted = bytes_unlisted(self, processes, count);
    bool bounded =
        self->figures[MESSAGE_FIGURE_TOTAL].known && self->figures[MESSAGE_FIGURE_FREE].known;
    bool known = pool_bytes(self, &pool);
    bool listed = bounded && unlisted < pool + SMALL_CONTEXT;
    if (!known && count == 1 && bounded && unlisted < SMALL_CONTEXT)
        return 0; /* the end is missing, but no other process has any memory */
    if (!known || (!pool && !listed) ||
        (unlisted >= pool && unlisted <= pool + NEAR_POOL && !listed))
        return count;
    for (unsigned i = 0; i < count; i++)
        if (processes[i].known && processes[i].bytes + 2 * processes[i].coarse_bytes >= pool &&
            (listed || unlisted < pool || processes[i].bytes <= pool + NEAR_POOL) &&
            (found == count || processes[i].bytes < processes[found].bytes))
            found = i;
    return found;
}

static void read_use(const struct window *window)
{
    struct message *self = window->self;
    struct message_figure processes[PROCESSES_MOST];
    struct message_figure *process = &self->figures[MESSAGE_FIGURE_PROCESS];
    struct message_figure *others = &self->figures[MESSAGE_FIGURE_OTHERS];
    unsigned count = read_processes(window, processes);
    unsigned self_at = count;
    uint64_t pool;
    (void)pool_bytes(self, &pool);
    if (read_words(window, "thisprocesshasImemory")) {
        /* If the driver does not know the figure, 2^64 - 1 or 0 is printed. */
        if (!process->known || process->bytes + 2 * process->coarse_bytes < pool) {
            *process = (struct message_figure){0};
            self->no_figures_taken = true;
        }
    } else {
        self_at = find_this(self, processes, count);
        self->process_guessed = self_at < count;
        for (unsigned i = 0; i < count; i++)
            self->process_guessed |= !processes[i].known; /* that may be this one */
        if (self_at < count)
            *process = processes[self_at];
    }
    for (unsigned i = 0; i < count; i++) {
        if (i == self_at || !processes[i].known)
            continue;
        others->known = true;
        others->bytes += processes[i].bytes;
        others->coarse_bytes += processes[i].coarse_bytes;
    }
    if (count == 1 && self_at == 0) /* no other process is listed */
        others->known = false;
    if (others->known && !others->bytes) { /* the driver does not know what they have */
        others->known = false;
        self->others_hidden = true;
    }
}

static const struct {
    const char *name, *words;
} devices[] = {{"CUDA", "cudaoutofmemory"},     {"HIP", "hipoutofmemory"},
               {"XPU", "xpuoutofmemory"},       {"NPU", "npuoutofmemory"},
               {"MLU", "mluoutofmemory"},       {"MUSA", "musaoutofmemory"},
               {"MPS", "mpsbackendoutofmemory"}};

/* The first device that is named anywhere in the text; "": none. */
static const char *device_in(const struct message_text *text)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (message_text_has(text, devices[i].words))
            return devices[i].name;
    return "";
}

/* The word before "out of memory" names the device. Of a message without its first words, it is
 * `elsewhere`, the first one in the text. */
static void read_device(const struct message_text *text, size_t at, const char *elsewhere,
                        struct message *self)
{
    if (self->device[0])
        return;
    if (!message_text_ends(text, "outofmemory.", at))
        strcpy(self->device, elsewhere);
    else
        for (size_t i = 0; i < sizeof devices / sizeof *devices && !self->device[0]; i++)
            if (message_text_ends(text, devices[i].words, at - 1))
                strcpy(self->device, devices[i].name);
}

/* MPS prints the allocated bytes before the request. Its bound is used as the total. */
static void read_mps(struct window *window, size_t at)
{
    struct message_figure *figures = window->self->figures;
    size_t before = at > 200 ? at - 200 : 0;
    size_t begin = message_text_find(window->text, "mpsbackendoutofmemory", before, at);
    if (begin == MESSAGE_NOWHERE)
        return;
    window->from = begin;
    strcpy(window->self->device, "MPS");
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    struct message_figure *pool = &figures[MESSAGE_FIGURE_RESERVED];
    struct message_figure *outside = &figures[MESSAGE_FIGURE_OUTSIDE_POOL];
    (void)read_words(window, "maxallowed:T&mpsallocated:R&otherallocations:O");
    if (!total->known || !pool->known)
        return;
    uint64_t taken = pool->bytes + (outside->known ? outside->bytes : 0);
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = total->bytes > taken ? total->bytes - taken : 0,
        .coarse_bytes = total->coarse_bytes + pool->coarse_bytes + outside->coarse_bytes,
    };
}

/* The wording of the cudaMallocAsync backend, a table of a few lines. */
static bool read_async(const struct message_text *text, struct message *self)
{
    size_t at = message_text_find(text, "wouldexceedallowedmemory", 0, text->count);
    if (at == MESSAGE_NOWHERE)
        return false;
    const struct window window = {text, at, at + WINDOW_MOST, self};
    self->count = self->taken = 1;
    self->card_told = self->async_pool = true;
    strcpy(self->device, "CUDA");
    (void)read_words(&window, "requested:A&currentlyallocated:P&devicelimit:T&"
                              "free(accordingtocuda):F&memoryfraction):W");
    return true;
}

static const char tried[] = "triedtoallocate";

/* The next request with a size at or after `at`. */
static size_t find_tried(const struct message_text *text, size_t at, struct message_figure *asked)
{
    while ((at = message_text_find(text, tried, at, text->count)) != MESSAGE_NOWHERE) {
        size_t figure_at = at + strlen(tried);
        if (message_text_asked(text, figure_at, asked) != MESSAGE_NOWHERE)
            return at;
        if (strncmp(text->chars + figure_at, "morethan1ebmemory", 17) == 0) {
            *asked = message_figure_enormous;
            return at;
        }
        at = figure_at;
    }
    return MESSAGE_NOWHERE;
}

/* Intel's devices limit the bytes of one request; the words stand before it. */
static const char block_limit[] = "memoryblockwithsizelargerthan";

static size_t find_block_limit(const struct message_text *text, size_t at)
{
    return message_text_find(text, block_limit, at > 60 ? at - 60 : 0, at);
}

static bool is_oom(const struct message_text *text, size_t at)
{
    return message_text_ends(text, "outofmemory.", at) ||
           find_block_limit(text, at) != MESSAGE_NOWHERE;
}

static unsigned known_figures(const struct message *self)
{
    unsigned known = 0;
    for (int i = 0; i < MESSAGE_FIGURE_COUNT; i++)
        known += self->figures[i].known;
    return known;
}

/* Whether it is a request that failed, and not a sentence about one: the words stand behind an
 * error or before figures. */
static bool is_error(const struct message_text *text, size_t at, const struct message *self)
{
    static const char *const words[] = {"memory", "oom", "ory.", "chunks"};
    bool near = self->host || self->block_limit || known_figures(self) > 1;
    for (size_t i = 0; i < sizeof words / sizeof *words && !near; i++)
        near = message_text_find(text, words[i], at > 80 ? at - 80 : 0, at) != MESSAGE_NOWHERE;
    return near;
}

static void read_block_limit(const struct message_text *text, size_t at, struct message *self)
{
    size_t begin = find_block_limit(text, at);
    if (begin == MESSAGE_NOWHERE)
        return;
    strcpy(self->device, "XPU");
    self->block_limit = true;
    (void)message_text_size(text, begin + strlen(block_limit),
                            &self->figures[MESSAGE_FIGURE_LARGEST]);
}

/* Reads the message whose request is at `at`. `elsewhere`: see read_device. */
static void read_at(const struct message_text *text, size_t at, const char *elsewhere,
                    struct message *self)
{
    struct message_figure next;
    size_t end = find_tried(text, at + strlen(tried), &next);
    struct window window = {text, at, end < at + WINDOW_MOST ? end : at + WINDOW_MOST, self};
    (void)find_tried(text, at, &self->figures[MESSAGE_FIGURE_ASKED]);
    size_t from = at > HOST_MOST ? at - HOST_MOST : 0;
    bool host = message_text_find(text, "cpuallocator", from, at) != MESSAGE_NOWHERE &&
                !message_text_ends(text, "outofmemory.", at);
    if (host)
        strcpy(self->device, "CPU");
    self->host = host || message_text_ends(text, "notenoughmemory:you", at) || /* to 1.0 */
                 message_text_ends(text, "cpucan'tallocatememory.", at);       /* OneFlow */
    if (message_text_ends(text, "bytesexhausted(", at) ||                      /* PHP */
        message_text_ends(text, "mallocfailed(", at) ||                        /* Git */
        message_text_ends(text, ")(", at)) {
        self->framework = MESSAGE_HOST_PROGRAM;
        self->host = true;
    }
    self->segment_asked = !self->host;
    self->at = at;
    self->end = at + strlen(tried);
    if (!self->host)
        read_device(text, at, elsewhere, self);
    read_card(&window);
    read_pool(&window);
    read_use(&window);
    read_mps(&window, at);
    read_block_limit(text, at, self);
    self->card_told = strcmp(self->device, "MPS") != 0;
}

/* Several failures may have several causes. */
static void count_cause(const struct message *other, struct message *self)
{
    struct message judged = *other;
    message_judge(&judged);
    if ((size_t)judged.cause < sizeof self->causes / sizeof *self->causes)
        self->causes[judged.cause]++;
}

/* Chooses the first of several messages. Wrappers print a message again, sometimes truncated, so
 * the one with the most figures among those for the same bytes is used. A message that names the
 * device takes precedence over others. */
static void choose(const struct message_text *text, size_t first, struct message *self)
{
    struct message_figure asked;
    struct message all = {0};
    unsigned number = 0, count = 0;
    bool named = false;
    const char *elsewhere = device_in(text);
    for (size_t at = first; at != MESSAGE_NOWHERE && !named;
         at = find_tried(text, at + strlen(tried), &asked))
        named = is_oom(text, at);
    for (size_t at = first; at != MESSAGE_NOWHERE;
         at = find_tried(text, at + strlen(tried), &asked)) {
        struct message other = {0};
        read_at(text, at, elsewhere, &other);
        if (named && !is_oom(text, at)) {
            all.causes[MESSAGE_HOST] += other.host;
            continue;
        }
        if (!is_error(text, at, &other))
            continue;
        count++;
        count_cause(&other, &all);
        const struct message_figure *taken = &self->figures[MESSAGE_FIGURE_ASKED];
        if (number && (other.figures[MESSAGE_FIGURE_ASKED].bytes != taken->bytes ||
                       known_figures(&other) <= known_figures(self)))
            continue;
        *self = other;
        number = count;
    }
    self->count = count;
    self->taken = number;
    memcpy(self->causes, all.causes, sizeof self->causes);
}

/* The figures of a message that was pasted without its first words. */
static bool read_unasked(const struct message_text *text, struct message *self)
{
    size_t at = message_text_find(text, "totalcapac", 0, text->count);
    if (at == MESSAGE_NOWHERE)
        return false;
    struct window window = {text, at > 40 ? at - 40 : 0, at + WINDOW_MOST, self};
    read_card(&window);
    read_pool(&window);
    read_use(&window);
    self->count = self->taken = 1;
    self->bare = self->card_told = true;
    return self->figures[MESSAGE_FIGURE_TOTAL].known && self->figures[MESSAGE_FIGURE_FREE].known &&
           self->figures[MESSAGE_FIGURE_ALLOCATED].known;
}

bool message_read_torch(const struct message_text *text, struct message *self)
{
    struct message_figure asked;
    size_t first = find_tried(text, 0, &asked);
    if (first != MESSAGE_NOWHERE)
        choose(text, first, self);
    return self->count || read_async(text, self) || read_unasked(text, self) ||
           message_text_find(text, tried, 0, text->count) != MESSAGE_NOWHERE;
}
