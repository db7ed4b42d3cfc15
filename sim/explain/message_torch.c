/* PyTorch's wordings, as its allocators' sources had them from 1.0 on:
 *   1.0 to 1.3   Tried to allocate S (GPU N; S total capacity; S already allocated; S free; S cached)
 *                where "cached" is what is held and unused
 *   1.4 to 2.0   ...; S free; [S allowed;] S reserved in total by PyTorch)
 *   2.1 on       Tried to allocate S. GPU N has a total capac(i)ty of S of which S is free. [Process N
 *                has S memory in use.].. [Including non-PyTorch memory, this process has S memory in
 *                use.] [S allowed;] Of the allocated memory S is allocated by PyTorch, [with S
 *                allocated in private pools (e.g., CUDA Graphs),] and S is reserved by PyTorch but
 *                unallocated.
 *   async        Currently allocated: S Requested: S Device limit: S Free (according to CUDA): S
 *                PyTorch limit (set by user-supplied memory fraction): S
 *   MPS          MPS allocated: S, other allocations: S, max allowed: S). Tried to allocate S
 * CUDA, HIP, XPU, NPU, MLU and others differ in the first word only. */
#include <string.h>

#include "sim/explain/message_wordings.h"

#define WINDOW_MOST    6000 /* characters that a message may have */
#define PROCESSES_MOST 64   /* named in a message */

struct window {
    const struct message_text *text;
    size_t from, to;
    struct message *self;
};

/* The figure after the words; `end`, if any, must stand right after it. */
static bool figure_after(const struct window *window, const char *words, const char *end,
                         struct message_figure *figure)
{
    const struct message_text *text = window->text;
    for (size_t at = window->from;;) {
        at = message_text_find(text, words, at, window->to);
        if (at == MESSAGE_NOWHERE)
            return false;
        at += strlen(words);
        size_t after = message_text_size(text, at, figure);
        if (after != MESSAGE_NOWHERE &&
            (!end || strncmp(text->chars + after, end, strlen(end)) == 0))
            return true;
    }
}

static bool figure_before(const struct window *window, const char *words,
                          struct message_figure *figure)
{
    for (size_t at = window->from;;) {
        at = message_text_find(window->text, words, at, window->to);
        if (at == MESSAGE_NOWHERE)
            return false;
        if (message_text_size_before(window->text, at, figure))
            return true;
        at += strlen(words);
    }
}

static void read_pool(const struct window *window)
{
    struct message_figure *figures = window->self->figures;
    struct message_figure *allocated = &figures[MESSAGE_FIGURE_ALLOCATED];
    struct message_figure *unallocated = &figures[MESSAGE_FIGURE_UNALLOCATED];
    if (!figure_after(window, "oftheallocatedmemory", "isallocatedbypytorch", allocated) &&
        !figure_before(window, "alreadyallocated", allocated))
        (void)figure_before(window, "isallocatedbypytorch", allocated);
    if (!figure_before(window, "isreservedbypytorchbutunallocated", unallocated))
        (void)figure_before(window, "cached)", unallocated);
    (void)figure_before(window, "reservedintotalbypytorch", &figures[MESSAGE_FIGURE_RESERVED]);
    (void)figure_before(window, "allocatedinprivatepools", &figures[MESSAGE_FIGURE_PRIVATE]);
}

static void read_card(const struct window *window)
{
    struct message_figure *figures = window->self->figures;
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    struct message_figure *available = &figures[MESSAGE_FIGURE_FREE];
    if (!figure_after(window, "totalcapacityof", NULL, total) &&
        !figure_after(window, "totalcapactyof", NULL, total))
        (void)figure_before(window, "totalcapacity", total);
    if (!figure_before(window, "isfree", available) && !figure_before(window, "free;", available))
        (void)figure_before(window, "free)", available);
    (void)figure_before(window, "allowed;", &figures[MESSAGE_FIGURE_ALLOWED]);
}

/* Bytes that the pool holds, 0 if the message does not tell. */
static uint64_t pool_bytes(const struct message *self)
{
    const struct message_figure *figures = self->figures;
    if (figures[MESSAGE_FIGURE_RESERVED].known)
        return figures[MESSAGE_FIGURE_RESERVED].bytes;
    return figures[MESSAGE_FIGURE_ALLOCATED].known && figures[MESSAGE_FIGURE_UNALLOCATED].known
               ? figures[MESSAGE_FIGURE_ALLOCATED].bytes + figures[MESSAGE_FIGURE_UNALLOCATED].bytes
               : 0;
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

/* Inside of a container this process is listed by a number that it does not know, as any other:
 * then it is the one that holds no less than the pool, and of several the one nearest to it. */
static unsigned find_this(const struct message *self, const struct message_figure *processes,
                          unsigned count)
{
    unsigned found = count;
    uint64_t pool = pool_bytes(self);
    for (unsigned i = 0; i < count && pool; i++)
        if (processes[i].known && processes[i].bytes + 2 * processes[i].coarse_bytes >= pool &&
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
    if (figure_after(window, "thisprocesshas", "memoryinuse", process)) {
        /* Where the driver cannot tell, 2^64 - 1 or 0 is printed. */
        if (!process->known || process->bytes + 2 * process->coarse_bytes < pool_bytes(self)) {
            *process = (struct message_figure){0};
            self->no_figures_taken = true;
        }
    } else {
        self_at = find_this(self, processes, count);
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
    if (count == 1 && self_at == 0) /* it is alone, as far as the message tells */
        others->known = false;
}

/* The word before "outofmemory": which device. */
static void read_device(const struct message_text *text, size_t at, struct message *self)
{
    static const char *const names[] = {"CUDA", "HIP", "XPU", "NPU", "MLU", "MUSA", "MPS"};
    static const char *const words[] = {"cuda", "hip", "xpu", "npu", "mlu", "musa", "mpsbackend"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (at >= length && strncmp(text->chars + at - length, words[i], length) == 0)
            strcpy(self->device, names[i]);
    }
}

/* MPS says what it holds before it says what was tried; its bound stands for the card. */
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
    (void)figure_after(window, "maxallowed:", NULL, total);
    (void)figure_after(window, "mpsallocated:", NULL, pool);
    (void)figure_after(window, "otherallocations:", NULL, outside);
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

/* The stream-ordered backend's wording, a table of a few lines. */
static bool read_async(const struct message_text *text, struct message *self)
{
    size_t at = message_text_find(text, "wouldexceedallowedmemory", 0, text->count);
    if (at == MESSAGE_NOWHERE)
        return false;
    struct message_figure *figures = self->figures;
    const struct window window = {text, at, at + WINDOW_MOST, self};
    self->count = 1;
    strcpy(self->device, "CUDA");
    (void)figure_after(&window, "requested:", NULL, &figures[MESSAGE_FIGURE_ASKED]);
    (void)figure_after(&window, "currentlyallocated:", NULL, &figures[MESSAGE_FIGURE_ALLOCATED]);
    (void)figure_after(&window, "devicelimit:", NULL, &figures[MESSAGE_FIGURE_TOTAL]);
    (void)figure_after(&window, "free(accordingtocuda):", NULL, &figures[MESSAGE_FIGURE_FREE]);
    (void)figure_after(&window, "memoryfraction):", NULL, &figures[MESSAGE_FIGURE_ALLOWED]);
    return true;
}

static unsigned count_from(const struct message_text *text, size_t at, const char *words)
{
    unsigned count = 0;
    for (; at != MESSAGE_NOWHERE; count++)
        at = message_text_find(text, words, at + strlen(words), text->count);
    return count;
}

bool message_read_torch(const struct message_text *text, struct message *self)
{
    static const char tried[] = "triedtoallocate";
    struct message_figure *asked = &self->figures[MESSAGE_FIGURE_ASKED];
    size_t at = message_text_find(text, "outofmemory.triedtoallocate", 0, text->count);
    self->framework = MESSAGE_PYTORCH;
    if (at != MESSAGE_NOWHERE) {
        read_device(text, at, self);
        at += strlen("outofmemory.");
    } else {
        at = message_text_find(text, tried, 0, text->count);
    }
    if (at == MESSAGE_NOWHERE)
        return read_async(text, self);
    size_t next = message_text_find(text, tried, at + 1, at + WINDOW_MOST);
    struct window window = {text, at, next == MESSAGE_NOWHERE ? at + WINDOW_MOST : next, self};
    self->count = count_from(text, at, tried);
    size_t figure_at = at + strlen(tried);
    if (message_text_asked(text, figure_at, asked) == MESSAGE_NOWHERE &&
        strncmp(text->chars + figure_at, "morethan1ebmemory", 17) == 0)
        *asked = (struct message_figure){.known = true, .bytes = UINT64_C(1) << 60};
    size_t host =
        message_text_find(text, "cpuallocator", at > WINDOW_MOST ? at - WINDOW_MOST : 0, at);
    if (host != MESSAGE_NOWHERE)
        strcpy(self->device, "CPU");
    self->segment_asked = host == MESSAGE_NOWHERE;
    read_card(&window);
    read_pool(&window);
    read_use(&window);
    read_mps(&window, at);
    return true;
}
