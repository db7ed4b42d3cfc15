/* Reading the requests of a trace, and two writers of a line for each: RMM's CSV and the oracle
 * form.
 *
 * A request is given to the caller only when the next event is known: a note there says where the
 * block was placed, or that the request failed. Blocks are in an array by their slots. A block
 * without a recorded address gets one above all others, at the next 512 bytes.
 *
 * Readers join a free request and the completion that follows it into one event, at the time of the
 * first. The time of the second remains after it, and no event is at that time. So a completion is
 * given only when the next event is known: two times in front of that mean that the first of them
 * is the completion's own. */
#include "workloads/formats/requests.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "workloads/formats/formats.h"

#define MADE_UP_FROM UINT64_C(0x100000000)
#define MADE_UP_STEP 512u

struct reading {
    struct trace_source *source;
    request_take *take;
    void *argument;
    struct request_block *blocks; /* by slot */
    size_t room;
    struct request_moment moment; /* the fields that stay the same */
    uint64_t next_address;
    struct trace_event held; /* a request whose next event is not known yet */
    bool holds;
    struct trace_event
        joined; /* free requested and completed at once; the latter is not given yet */
    bool joins;
    unsigned times;                            /* the number of times since */
    uint64_t first_time_ns, free_requested_ns; /* the first of them; the one before */
    bool free_requested_final;
};

bool request_note(const char *text, const char *verb, uint64_t *numbers, unsigned count)
{
    size_t length = strlen(verb);
    if (strncmp(text, verb, length) != 0 || (text[length] != ',' && text[length] != '\0'))
        return false;
    const char *at = text + length;
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = 0;
        if (*at != ',')
            continue;
        char *end;
        numbers[i] = strtoull(at + 1, &end, 10);
        at = end;
    }
    return true;
}

static enum ar_status give(struct reading *self, enum request_kind kind,
                           struct request_block *block, const struct trace_event *event,
                           struct ar_error *error)
{
    struct request_moment moment = self->moment;
    moment.kind = kind;
    moment.block = block;
    moment.event = event;
    moment.stream = event->stream;
    if (event->kind == TRACE_FREE_COMPLETED && block)
        moment.stream = block->stream;
    return self->take(self->argument, &moment, error);
}

static struct request_block *block_of(struct reading *self, uint32_t slot, struct ar_error *error)
{
    if (AR_ARRAY_REACH(self->blocks, self->room, slot))
        return &self->blocks[slot];
    (void)ar_no_memory(error, "the blocks of a trace");
    return NULL;
}

static void fill(struct reading *self, const struct trace_event *event, struct request_block *block)
{
    static const struct trace_attributes none;
    const struct trace_attributes *keys = &none;
    if (event->attributes)
        keys = trace_attributes_of(self->source, event->attributes);
    *block = (struct request_block){
        .id = event->id,
        .bytes = event->value,
        .stream = event->stream,
        .pool = keys->pool,
        .device = keys->device,
        .thread = keys->thread,
        .initial = keys->rest && strstr(keys->rest, "initial=yes"),
        .pinned = keys->space == TRACE_SPACE_PINNED,
    };
    self->moment.tag = keys->tag;
}

/* Gives the pending request; `note` follows it, or is NULL. `*used`: the note belongs to it. */
static enum ar_status give_request(struct reading *self, const char *note, bool *used,
                                   struct ar_error *error)
{
    const struct trace_event event = self->held;
    uint64_t number;
    self->holds = *used = false;
    struct request_block *block = block_of(self, event.slot, error);
    AR_TRY_HOST(block);
    fill(self, &event, block);
    if (note && request_note(note, "alloc", &number, 1)) {
        if (number >= UINT64_MAX / 2)
            return ar_invalid(error, "the note \"!,%.60s\" has an address that no device has",
                              note);
        block->address = number;
        block->placed = *used = true;
    } else if (note && request_note(note, "oom", &number, 1)) {
        self->moment.free_bytes = number;
        block->failed = *used = true;
    }
    if (!block->placed && !block->failed) {
        block->address = self->next_address;
        self->next_address += ar_size_round_up(block->bytes + 1, MADE_UP_STEP);
    }
    self->moment.begun |= !block->initial;
    enum ar_status status =
        give(self, block->failed ? REQUEST_FAILED : REQUEST_SERVED, block, &event, error);
    self->moment.tag = NULL;
    return status;
}

static enum ar_status take_free(struct reading *self, const struct trace_event *event,
                                struct ar_error *error)
{
    struct request_block *block = block_of(self, event->slot, error);
    AR_TRY_HOST(block);
    if (block->failed)
        return AR_OK;
    bool requests = trace_frees(event);
    bool completes = event->kind == TRACE_FREE_COMPLETED || self->free_requested_final;
    enum ar_status status = AR_OK;
    self->moment.begun |= !(block->initial && event->kind == TRACE_FREE_REQUESTED);
    if (requests)
        status = give(self, REQUEST_FREE_REQUESTED, block, event, error);
    if (status || !completes)
        return status;
    if (!requests)
        return give(self, REQUEST_COMPLETE, block, event, error);
    self->joined = *event;
    self->joins = true;
    self->times = 0;
    self->first_time_ns = self->free_requested_ns = self->moment.time_ns;
    return AR_OK;
}

/* Gives the completion that is not given yet. `last`: the trace is at its end. */
static enum ar_status give_joined(struct reading *self, bool last, struct ar_error *error)
{
    uint64_t now_ns = self->moment.time_ns, free_requested_ns = self->free_requested_ns;
    if (!self->joins)
        return AR_OK;
    self->joins = false;
    self->moment.time_ns = self->times > 1 || last ? self->first_time_ns : free_requested_ns;
    enum ar_status status =
        give(self, REQUEST_COMPLETE, &self->blocks[self->joined.slot], &self->joined, error);
    self->moment.time_ns = now_ns;
    return status;
}

static void take_time(struct reading *self, uint64_t time_ns)
{
    self->moment.time_ns = time_ns;
    self->moment.begun = true; /* the state at the start has no times */
    if (self->times++ == 0)
        self->first_time_ns = time_ns;
}

static enum ar_status take_event(struct reading *self, const struct trace_event *event,
                                 struct ar_error *error)
{
    const char *note = event->kind == TRACE_NOTE ? trace_text_of(self->source, event->value) : NULL;
    bool used = false;
    if (event->kind != TRACE_TIME)
        AR_TRY(give_joined(self, false, error));
    if (self->holds)
        AR_TRY(give_request(self, note, &used, error));
    if (used)
        return AR_OK;
    self->moment.text = note;
    switch (event->kind) {
    case TRACE_ALLOC:
    case TRACE_PROBE:
        self->held = *event;
        self->holds = true;
        return AR_OK;
    case TRACE_FREE_REQUESTED:
    case TRACE_FREE_COMPLETED:
        return take_free(self, event, error);
    case TRACE_TIME:
        take_time(self, event->value);
        return AR_OK;
    case TRACE_NOTE:
        return give(self, REQUEST_NOTE, NULL, event, error);
    default:
        self->moment.begun = true;
        return give(self, REQUEST_OTHER, NULL, event, error);
    }
}

enum ar_status requests_read(struct trace_source *source, request_take *take, void *argument,
                             struct ar_error *error)
{
    struct reading self = {.source = source,
                           .take = take,
                           .argument = argument,
                           .next_address = MADE_UP_FROM,
                           .free_requested_final = !source->info.has_split_frees};
    struct trace_cursor cursor = {.source = source};
    const struct trace_event *event;
    bool used;
    enum ar_status status = trace_rewind(source, error);
    while ((event = trace_read(&cursor, &status, error)) != NULL)
        status = take_event(&self, event, error);
    if (!status && self.holds)
        status = give_request(&self, NULL, &used, error);
    AR_THEN(status, give_joined(&self, true, error));
    free(self.blocks);
    return status;
}

/* ---- RMM's CSV and the oracle form ---- */

/* In RMM's CSV the streams 0x1 and 0x2 have meanings of their own, so stream 0 is 0x0 and stream n
 * is 0x(n+2). A free is the program's free request, on the stream that it named; its completion is
 * not in the file. Times are those of a day that began with the trace. */
static enum ar_status rmm_row(void *output, struct request_moment *moment, struct ar_error *error)
{
    static const char *const actions[] = {[REQUEST_SERVED] = "allocate",
                                          [REQUEST_FAILED] = "allocate failure",
                                          [REQUEST_FREE_REQUESTED] = "free"};
    if (moment->kind > REQUEST_FREE_REQUESTED || moment->block->pinned)
        return AR_OK;
    const struct request_block *block = moment->block;
    uint64_t microseconds = moment->time_ns / 1000, seconds = microseconds / 1000000;
    char pointer[24] = "(nil)";
    if (moment->kind != REQUEST_FAILED)
        (void)snprintf(pointer, sizeof pointer, "0x%" PRIx64, block->address);
    return trace_output_print(output, error,
                              "%" PRIu32 ",%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64
                              ",%s,%s,%" PRIu64 ",0x%" PRIx64 "\n",
                              block->thread, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60,
                              microseconds % 1000000, actions[moment->kind], pointer, block->bytes,
                              moment->stream ? (uint64_t)moment->stream + 2 : 0);
}

static enum ar_status oracle_row(void *output, struct request_moment *moment,
                                 struct ar_error *error)
{
    const struct request_block *block = moment->block;
    if (moment->kind == REQUEST_SERVED || moment->kind == REQUEST_FAILED) {
        char stream[16] = "";
        if (block->stream)
            (void)snprintf(stream, sizeof stream, ",%" PRIu32, block->stream);
        enum ar_status status = trace_output_print(output, error, "a,%" PRIu64 ",%" PRIu64 "%s\n",
                                                   block->id, block->bytes, stream);
        return status || moment->kind == REQUEST_SERVED
                   ? status
                   : trace_output_print(output, error, "f,%" PRIu64 "\n", block->id);
    }
    return moment->kind == REQUEST_COMPLETE
               ? trace_output_print(output, error, "f,%" PRIu64 "\n", block->id)
               : AR_OK;
}

static enum ar_status write_rmm(struct trace_source *source, struct trace_output *output,
                                struct ar_error *error)
{
    AR_TRY(trace_output_print(output, error, "Thread,Time,Action,Pointer,Size,Stream\n"));
    return requests_read(source, rmm_row, output, error);
}

static enum ar_status write_oracle(struct trace_source *source, struct trace_output *output,
                                   struct ar_error *error)
{
    return requests_read(source, oracle_row, output, error);
}

const struct format_writer format_writer_rmm = {
    .name = "rmm",
    .ending = ".rmm.csv",
    .summary = "RMM's log of requests, failures and frees as CSV, written (.rmm.csv)",
    .write = write_rmm,
};

const struct format_writer format_writer_oracle = {
    .name = "oracle",
    .ending = ".oracle.csv",
    .summary = "requests and completions only, as lines a,ID,BYTES and f,ID, written (.oracle.csv)",
    .write = write_oracle,
};
