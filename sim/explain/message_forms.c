/* Reads messages by the table of their wordings, and what a table cannot describe. */
#include "sim/explain/message_forms.h"

#include <stdio.h>
#include <string.h>

static const char how_spark_spills[] =
    "The device store still has bytes to spill, so the request is tried again after that: this is "
    "a failure only if an out-of-memory error follows.";

bool message_field_read(const struct message_text *text, const struct message_field *field,
                        size_t from, size_t to, int shift, struct message_figure *figure)
{
    const char *words = field->before ? field->before : field->after;
    for (size_t at = from; (at = message_text_find(text, words, at, to)) != MESSAGE_NOWHERE; at++) {
        if (!field->before) {
            if (message_text_size_before(text, at, figure))
                return true;
            continue;
        }
        size_t begin = at + strlen(words);
        size_t end = shift < 0 ? message_text_size(text, begin, figure)
                               : message_text_number(text, begin, shift, figure);
        if (field->figure == MESSAGE_FIGURE_ASKED && text->chars[begin] == '-' &&
            (end = message_text_number(text, begin + 1, shift, figure)) != MESSAGE_NOWHERE)
            figure->bytes = UINT64_C(1) << 60; /* a size that wrapped around below zero */
        if (end == MESSAGE_NOWHERE)
            continue;
        if (!field->after || strncmp(text->chars + end, field->after, strlen(field->after)) == 0)
            return true;
    }
    return false;
}

static bool read_at(const struct message_text *text, const struct message_form *form, size_t at,
                    struct message *self)
{
    size_t next = message_text_find(text, form->anchor, at + 1, text->count);
    size_t from = at > form->back ? at - form->back : 0;
    size_t to = at + strlen(form->anchor) + form->ahead;
    to = next < to ? next : to;
    if ((form->near && message_text_find(text, form->near, from, to) == MESSAGE_NOWHERE) ||
        message_text_other_reason(text, at + strlen(form->anchor)))
        return false;
    int shift = form->flags & FORM_MIB ? 20 : 0;
    if (!message_field_read(text, &form->fields[0], from, to, shift,
                            &self->figures[MESSAGE_FIGURE_ASKED]))
        return false;
    for (size_t i = 1; i < sizeof form->fields / sizeof *form->fields; i++) {
        const struct message_field *field = &form->fields[i];
        struct message_figure *figure = &self->figures[field->figure], read = {0};
        if (!(field->before || field->after) ||
            !message_field_read(text, field, from, to, shift, &read))
            continue;
        if (field->figure == MESSAGE_FIGURE_ASKED) { /* the sum of several */
            read.bytes += figure->bytes;
            read.coarse_bytes += figure->coarse_bytes;
        }
        *figure = read;
    }
    self->framework = form->framework;
    self->host = form->flags & FORM_HOST;
    self->may_fail = form->flags & FORM_SPARE;
    self->card_told = form->flags & FORM_CARD;
    self->on_chip = form->flags & FORM_ON_CHIP;
    self->elsewhere = form->flags & FORM_ELSEWHERE;
    self->block_limit = form->flags & FORM_BLOCK;
    self->one_pool = form->flags & FORM_ONE_POOL;
    self->how = form->how;
    if (form->device)
        snprintf(self->device, sizeof self->device, "%s", form->device);
    return true;
}

bool message_form_read(const struct message_text *text, const struct message_form *form,
                       struct message *self)
{
    unsigned count = 0;
    for (size_t at = 0;
         (at = message_text_find(text, form->anchor, at, text->count)) != MESSAGE_NOWHERE; at++) {
        struct message other = {0};
        if (!read_at(text, form, at, &other))
            continue;
        count++;
        if (count > 1 && !(form->flags & FORM_LAST))
            continue;
        *self = other;
        self->taken = count;
    }
    self->count = count;
    return count > 0;
}

/* ---- what a table cannot describe ----------------------------------------------------------- */

/* The name of a buffer's device, such as "cuda1", "rocm0" or "cpu". */
static void read_ggml_name(const struct message_text *text, char name[16])
{
    static const char before[] = "failedtoallocate", after[] = "bufferofsize";
    size_t end = message_text_find(text, after, 0, text->count);
    size_t begin = end == MESSAGE_NOWHERE
                       ? end
                       : message_text_find(text, before, end > 60 ? end - 60 : 0, end);
    name[0] = '\0';
    if (begin == MESSAGE_NOWHERE)
        return;
    begin += strlen(before);
    if (end - begin < 16)
        snprintf(name, 16, "%.*s", (int)(end - begin), text->chars + begin);
}

/* What was free at the start, and the buffers that the program has allocated since. */
static void read_ggml_log(const struct message_text *text, const char *name, struct message *self)
{
    struct message_figure *figures = self->figures;
    struct message_figure *start = &figures[MESSAGE_FIGURE_START], size;
    struct message_figure *allocated = &figures[MESSAGE_FIGURE_ALLOCATED];
    char words[40];
    snprintf(words, sizeof words, "usingdevice%s(", name);
    size_t at = message_text_find(text, words, 0, text->count);
    size_t end = at == MESSAGE_NOWHERE ? at : message_text_find(text, "free", at, at + 160);
    if (end == MESSAGE_NOWHERE || !message_text_size_before(text, end, start))
        return;
    allocated->known = true;
    for (at = 0; (at = message_text_find(text, "buffersize=", at, text->count)) != MESSAGE_NOWHERE;
         at++) {
        size_t length = strlen(name), from = at > 24 ? at - 24 : 0;
        size_t named = message_text_find(text, name, from, at);
        if (named != MESSAGE_NOWHERE && text->chars[named + length] >= 'a' &&
            message_text_size(text, at + strlen("buffersize="), &size) != MESSAGE_NOWHERE) {
            allocated->bytes += size.bytes;
            allocated->coarse_bytes += size.coarse_bytes;
        }
    }
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = start->bytes > allocated->bytes ? start->bytes - allocated->bytes : 0,
        .coarse_bytes = start->coarse_bytes + allocated->coarse_bytes,
    };
}

static void finish_ggml(const struct message_text *text, struct message *self)
{
    char name[16];
    read_ggml_name(text, name);
    if (strncmp(name, "cpu", 3) == 0 || strstr(name, "host") ||
        message_text_has(text, "cpu_buffer_type_alloc_buffer"))
        self->host = true;
    else if (strncmp(name, "rocm", 4) == 0)
        snprintf(self->device, sizeof self->device, "HIP");
    else if (strncmp(name, "vulkan", 6) == 0)
        snprintf(self->device, sizeof self->device, "Vulkan");
    else if (strncmp(name, "cuda", 4) == 0 ||
             (!name[0] && !self->device[0] && message_text_has(text, "cudamallocfailed") &&
              !message_text_has(text, "rocm")))
        snprintf(self->device, sizeof self->device, "CUDA");
    if (strncmp(name, "vulkan", 6) == 0)
        self->how = message_how_vulkan;
    if (strcmp(self->device, "Vulkan") == 0 &&
        (message_text_has(text, "exceedsdevicememoryallocationlimit") ||
         message_text_has(text, "exceedsdevicebuffersizelimit")))
        self->block_limit = true;
    if (name[0] && !self->host)
        read_ggml_log(text, name, self);
}

/* The size of the pool is in another line of the log, and whether there is something to spill. */
static void finish_spark(const struct message_text *text, struct message *self)
{
    static const struct message_field maximum = {MESSAGE_FIGURE_TOTAL, "maxsize=", NULL};
    static const struct message_field store = {MESSAGE_FIGURE_FREE, "devicestorehas", NULL};
    struct message_figure *figures = self->figures, spill = {0};
    size_t pool = message_text_find(text, "initializingrmm", 0, text->count);
    size_t at = 0, last = MESSAGE_NOWHERE;
    while ((at = message_text_find(text, store.before, at, text->count)) != MESSAGE_NOWHERE)
        last = at++;
    if (last != MESSAGE_NOWHERE && message_field_read(text, &store, last, last + 80, 0, &spill) &&
        spill.bytes) {
        self->may_fail = true;
        self->how = how_spark_spills;
    }
    if (pool == MESSAGE_NOWHERE ||
        !message_field_read(text, &maximum, pool, pool + 200, 0, &figures[MESSAGE_FIGURE_TOTAL]))
        return;
    figures[MESSAGE_FIGURE_RESERVED] = figures[MESSAGE_FIGURE_TOTAL];
    figures[MESSAGE_FIGURE_FREE] = (struct message_figure){.known = true, .derived = true};
}

bool message_read_forms(const struct message_text *text, struct message *self)
{
    for (size_t i = 0; i < message_form_count; i++) {
        if (!message_form_read(text, &message_forms[i], self))
            continue;
        if (self->framework == MESSAGE_GGML)
            finish_ggml(text, self);
        if (self->framework == MESSAGE_SPARK)
            finish_spark(text, self);
        return true;
    }
    return false;
}
