/* Messages that print the status of a pool or of a card: CUDA.jl, AMDGPU.jl, vLLM. */

#include "sim/explain/message_forms.h"

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
    static const struct message_form form = {"outofgpumemory*tryingtoallocateA", MESSAGE_JULIA, "",
                                             NULL, FORM_CARD};
    static const char usage[] = "effectivegpumemoryusage:";
    struct message_figure *figures = self->figures;
    bool failed = message_form_read(text, &form, self);
    size_t anchor = failed ? message_text_find(text, "outofgpumemory", 0, text->count) : 0;
    size_t at = message_text_find(text, usage, anchor, text->count);
    if (!failed && at == MESSAGE_NOWHERE)
        return false;
    message_form_apply(&form, self);
    self->printed = !failed;
    self->count += !failed;
    self->taken += !failed;
    if (at == MESSAGE_NOWHERE)
        return true;
    size_t to = message_text_find(text, usage, at + 1, text->count);
    struct message_figure *total = &figures[MESSAGE_FIGURE_TOTAL];
    struct message_figure *used = &figures[MESSAGE_FIGURE_FREE];
    (void)message_pattern_read(text,
                               "memoryusage:*(F/T&Rreserved)&Pallocated,&Ucached)&hard=W|cappedatW",
                               at, to, -1, figures);
    if (used->known && total->known) {
        used->bytes = total->bytes > used->bytes ? total->bytes - used->bytes : 0;
        used->coarse_bytes += total->coarse_bytes;
        used->derived = true;
    }
    if (figures[MESSAGE_FIGURE_RESERVED].known)
        (void)message_pattern_read(text, "memorypoolusage:P", at, to, -1, figures);
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
    self->vllm.warming_up = message_text_has(text, "outofmemoryoccurredwhenwarmingup");
    if (self->vllm.warming_up)
        self->how = message_how_warm;
}

/* vLLM, before it has a pool: Free memory on device [cuda:N] (N/N GiB) on startup is less than
 * desired GPU memory utilization (N, N GiB). */
bool message_read_vllm(const struct message_text *text, struct message *self)
{
    static const struct message_form start = {
        "freememoryondevice*(F/T*desiredgpumemoryutilization(*,A", MESSAGE_VLLM, "",
        "vLLM asks for this share of the card at once, before it has a pool. End the other "
        "processes (an earlier server may still run), or lower gpu_memory_utilization to {share}.",
        FORM_CARD | FORM_GIB};
    if (!message_form_read(text, &start, self))
        return false;
    self->figures[MESSAGE_FIGURE_ALLOCATED] =
        (struct message_figure){.known = true, .derived = true};
    self->figures[MESSAGE_FIGURE_RESERVED] = self->figures[MESSAGE_FIGURE_ALLOCATED];
    self->count = 1;
    return true;
}
