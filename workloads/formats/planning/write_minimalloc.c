/* MiniMalloc's lifetimes, `id,lower,upper,size`: half-open, in requests and completions of the trace,
 * of which each is one moment. A block that is never complete lives to the end. What has no bytes of
 * device memory, or failed, has no row; a column of alignments is there where one is asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocators/base/array.h"
#include "workloads/formats/requests.h"
#include "workloads/formats/writers.h"
#include "workloads/io/output.h"

struct lifetime {
    uint64_t id, lower, upper, bytes, align;
};

struct lifetimes {
    struct trace_source *source;
    struct lifetime *items; /* in the order of ids */
    size_t count, room;
    uint64_t now;
    bool aligned;
};

static enum ar_status add(struct lifetimes *self, const struct request_moment *moment,
                          struct ar_error *error)
{
    struct request_block *block = moment->block;
    struct lifetime *items = ar_array_grow(self->items, self->count, &self->room, sizeof *items);
    if (!items)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for lifetimes");
    self->items = items;
    uint64_t align = 0;
    if (moment->event->attributes)
        align = trace_attributes_of(self->source, moment->event->attributes)->align;
    self->aligned |= align != 0;
    self->items[self->count++] = (struct lifetime){.id = block->id,
                                                   .lower = self->now++,
                                                   .upper = UINT64_MAX,
                                                   .bytes = block->bytes,
                                                   .align = align ? align : 1};
    block->user = (uint32_t)self->count;
    return AR_OK;
}

static enum ar_status take(void *argument, struct request_moment *moment, struct ar_error *error)
{
    struct lifetimes *self = argument;
    const struct request_block *block = moment->block;
    if (moment->kind == REQUEST_SERVED && block->bytes && !block->pinned) {
        if (self->count == UINT32_MAX)
            return ar_error_set(error, AR_INVALID, "there are more than 2^32 - 1 requests");
        return add(self, moment, error);
    }
    if (moment->kind == REQUEST_COMPLETE && block->user)
        self->items[block->user - 1].upper = self->now++;
    return AR_OK;
}

static enum ar_status write_items(const struct lifetimes *self, struct trace_output *output,
                                  struct ar_error *error)
{
    char line[128];
    int length =
        snprintf(line, sizeof line, "id,lower,upper,size%s\n", self->aligned ? ",alignment" : "");
    enum ar_status status = trace_output_write(output, line, (size_t)length, error);
    for (size_t i = 0; i < self->count && !status; i++) {
        const struct lifetime *item = &self->items[i];
        uint64_t upper = item->upper < self->now ? item->upper : self->now;
        length = snprintf(line, sizeof line, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                          item->id, item->lower, upper, item->bytes);
        if (self->aligned)
            length +=
                snprintf(line + length, sizeof line - (size_t)length, ",%" PRIu64, item->align);
        line[length++] = '\n';
        status = trace_output_write(output, line, (size_t)length, error);
    }
    return status;
}

static enum ar_status write_minimalloc(struct trace_source *source, const char *path, bool compress,
                                       struct ar_error *error)
{
    struct lifetimes self = {.source = source};
    struct trace_output *output = NULL;
    enum ar_status status = requests_read(source, take, &self, error);
    if (!status)
        status = trace_output_open(path, compress, &output, error);
    if (!status)
        status = write_items(&self, output, error);
    free(self.items);
    if (!status)
        return trace_output_commit(output, error);
    trace_output_discard(output);
    return status;
}

const struct format_writer format_writer_minimalloc = {
    .name = "minimalloc",
    .ending = ".minimalloc.csv",
    .summary = "lifetimes id,lower,upper,size for offline planners, MiniMalloc's form, written "
               "(.minimalloc.csv)",
    .write = write_minimalloc,
};
