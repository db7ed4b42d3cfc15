/* Messages that print the status of a pool or of a card: CUDA.jl, AMDGPU.jl, vLLM. */
#include <string.h>

#include "sim/explain/message_forms.h"

#define ASKED(before, after)                                                                       \
    {                                                                                              \
        MESSAGE_FIGURE_ASKED, before, after                                                        \
    }

/* CUDA.jl and AMDGPU.jl:
 *
 *   Out of GPU memory trying to allocate S
 *   Effective GPU memory usage: N% (S/S)
 *   Memory pool usage: S (S reserved)                (CUDA.jl from 3.0)
 *   CUDA allocator usage: S (capped at S)            (CUDA.jl up to 3.0, CuArrays.jl)
 *   X usage: S (S allocated, S cached)
 *   [Memory limit: [soft = S][, hard = S]]
 *
 * The first line is missing if a program prints its status. */
bool message_read_julia(const struct message_text *text, struct message *self)
{
    static const struct message_form form = {
        MESSAGE_JULIA, NULL, "outofgpumemory", NULL, 0, 120, {ASKED("tryingtoallocate", NULL)}, 0,
        NULL};
    static const char usage[] = "effectivegpumemoryusage:", pool[] = "memorypoolusage:";
    static const struct message_field hard = {MESSAGE_FIGURE_ALLOWED, "hard=", NULL};
    static const struct message_field capped = {MESSAGE_FIGURE_ALLOWED, "cappedat", NULL};
    struct message_figure *figures = self->figures, used = {0};
    bool failed = message_form_read(text, &form, self);
    size_t anchor = failed ? message_text_find(text, form.anchor, 0, text->count) : 0;
    size_t at = message_text_find(text, usage, anchor, text->count);
    if (!failed && at == MESSAGE_NOWHERE)
        return false;
    self->framework = MESSAGE_JULIA;
    self->printed = !failed;
    self->count += !failed;
    self->taken += !failed;
    if (at == MESSAGE_NOWHERE)
        return true;
    size_t to = message_text_find(text, usage, at + 1, text->count);
    const char *open = memchr(text->chars + at, '(', text->count - at < 60 ? text->count - at : 60);
    if (open) {
        size_t end = message_text_size(text, (size_t)(open - text->chars) + 1, &used);
        if (end != MESSAGE_NOWHERE && text->chars[end] == '/')
            (void)message_text_size(text, end + 1, &figures[MESSAGE_FIGURE_TOTAL]);
    }
    const struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    if (used.known && total->known)
        figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
            .known = true,
            .derived = true,
            .bytes = total->bytes > used.bytes ? total->bytes - used.bytes : 0,
            .coarse_bytes = total->coarse_bytes + used.coarse_bytes,
        };
    self->card_told = true;
    const struct message_field fields[] = {{MESSAGE_FIGURE_RESERVED, NULL, "reserved)"},
                                           {MESSAGE_FIGURE_ALLOCATED, NULL, "allocated,"},
                                           {MESSAGE_FIGURE_UNALLOCATED, NULL, "cached)"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        (void)message_field_read(text, &fields[i], at, to, 0, &figures[fields[i].figure]);
    size_t line = message_text_find(text, pool, at, to);
    if (figures[MESSAGE_FIGURE_RESERVED].known && line != MESSAGE_NOWHERE)
        (void)message_text_size(text, line + strlen(pool), &figures[MESSAGE_FIGURE_ALLOCATED]);
    if (!message_field_read(text, &hard, at, to, 0, &figures[MESSAGE_FIGURE_ALLOWED]))
        (void)message_field_read(text, &capped, at, to, 0, &figures[MESSAGE_FIGURE_ALLOWED]);
    return true;
}

/* vLLM, before it has a pool, and for its cache of keys and values:
 *
 *   Free memory on device [cuda:N] (N/N GiB) on startup is less than desired GPU memory utilization
 *   (N, N GiB).
 *   To serve at least one request with the models's max seq len (N), (N GiB KV cache is needed,
 *   which is larger than the available KV cache memory (N GiB). */
static bool read_vllm_start(const struct message_text *text, struct message *self)
{
    static const char begin[] = "freememoryondevice", middle[] = "desiredgpumemoryutilization(";
    struct message_figure *figures = self->figures;
    size_t at = message_text_find(text, begin, 0, text->count);
    size_t wish = at == MESSAGE_NOWHERE ? at : message_text_find(text, middle, at, at + 160);
    if (wish == MESSAGE_NOWHERE)
        return false;
    for (; at < wish && text->chars[at] != '('; at++)
        ;
    size_t end = message_text_number(text, at + 1, 30, &figures[MESSAGE_FIGURE_FREE]);
    if (end != MESSAGE_NOWHERE && text->chars[end] == '/')
        (void)message_text_number(text, end + 1, 30, &figures[MESSAGE_FIGURE_TOTAL]);
    const char *comma = memchr(text->chars + wish, ',', text->count - wish);
    if (comma)
        (void)message_text_number(text, (size_t)(comma - text->chars) + 1, 30,
                                  &figures[MESSAGE_FIGURE_ASKED]);
    /* The process has no pool yet. */
    figures[MESSAGE_FIGURE_ALLOCATED] = (struct message_figure){.known = true, .derived = true};
    figures[MESSAGE_FIGURE_RESERVED] = figures[MESSAGE_FIGURE_ALLOCATED];
    self->card_told = true;
    self->how = "vLLM asks for this share of the card at once, before it has a pool. End the other "
                "processes (an earlier server may still run), or lower gpu_memory_utilization to "
                "what is free.";
    return true;
}

/* What the log of vLLM says beside its message. */
void message_read_vllm_log(const struct message_text *text, struct message *self)
{
    static const char loading[] = "modelloadingtook"; /* other logs say how many seconds */
    struct message_figure figure;
    size_t at = message_text_find(text, loading, 0, text->count);
    if (at != MESSAGE_NOWHERE &&
        message_text_size(text, at + strlen(loading), &figure) != MESSAGE_NOWHERE)
        self->vllm.weights = figure.bytes;
    if (message_text_after(text, "maximummodellengthis", 0, text->count, &figure) !=
        MESSAGE_NOWHERE)
        self->vllm.fitting_length = figure.bytes;
}

bool message_read_vllm(const struct message_text *text, struct message *self)
{
    static const struct message_form cache = {
        MESSAGE_VLLM,
        NULL,
        "kvcacheisneeded",
        "availablekvcachememory",
        40,
        200,
        {ASKED(NULL, "kvcacheisneeded"),
         {MESSAGE_FIGURE_UNALLOCATED, "availablekvcachememory(", NULL}},
        FORM_ONE_POOL,
        "The cache of one request of that length needs more than gpu_memory_utilization leaves "
        "after the weights: lower max_model_len, raise gpu_memory_utilization, use an fp8 cache "
        "(kv_cache_dtype), or more GPUs (tensor_parallel_size)."};
    bool found = message_form_read(text, &cache, self);
    if (!found) {
        found = read_vllm_start(text, self);
        self->count = self->taken = found;
    }
    self->framework = MESSAGE_VLLM;
    return found;
}
