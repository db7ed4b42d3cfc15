/* How: values wait on a stack until their array or object is closed and go to the sink then; of a
 * long one a batch at a time. JSON has no tuples: an array of two whole numbers is a pair, as the
 * names of pools are. */
#include "workloads/formats/torch/snapshot_json.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/array.h"
#include "workloads/io/head.h"
#include "workloads/io/json_pull.h"

#define BATCH     1024u /* values */
#define PAIR_MOST (UINT64_C(1) << 28)

struct open {
    size_t first; /* of its values on the stack */
    uint64_t index;
    bool made; /* the sink has it */
    bool is_object;
};

struct reading {
    struct json_pull *pull;
    const struct pickle_sink *sink;
    struct open open[JSON_DEPTH_LIMIT];
    size_t depth;
    uint64_t *stack;
    size_t count, room;
};

static enum ar_status push(struct reading *self, uint64_t value, struct ar_error *error)
{
    uint64_t *stack = ar_array_grow(self->stack, self->count, &self->room, sizeof *stack);
    if (!stack)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a snapshot");
    self->stack = stack;
    self->stack[self->count++] = value;
    return AR_OK;
}

/* Gives the sink what waits of the innermost array or object. */
static enum ar_status flush(struct reading *self, struct ar_error *error)
{
    const struct pickle_sink *sink = self->sink;
    struct open *open = &self->open[self->depth - 1];
    size_t count = self->count - open->first;
    enum ar_status status = AR_OK;
    if (!open->made)
        status = open->is_object ? sink->make_dict(sink->argument, &open->index, error)
                                 : sink->make_list(sink->argument, &open->index, error);
    open->made = true;
    self->count = open->first;
    if (status || !count)
        return status;
    const uint64_t *values = self->stack + open->first;
    return open->is_object ? sink->put(sink->argument, open->index, values, count / 2, error)
                           : sink->append(sink->argument, open->index, values, count, error);
}

static bool is_pair(const struct reading *self, const struct open *open)
{
    if (open->is_object || open->made || self->count - open->first != 2)
        return false;
    for (size_t i = open->first; i < self->count; i++)
        if (pickle_kind_of(self->stack[i]) != PICKLE_INT || pickle_int_of(self->stack[i]) < 0 ||
            pickle_payload(self->stack[i]) >= PAIR_MOST)
            return false;
    return true;
}

static enum ar_status close_one(struct reading *self, struct ar_error *error)
{
    const struct open *open = &self->open[self->depth - 1];
    uint64_t value;
    if (is_pair(self, open)) {
        const uint64_t *numbers = self->stack + open->first;
        value =
            pickle_make(PICKLE_PAIR, pickle_payload(numbers[0]) << 28 | pickle_payload(numbers[1]));
        self->count = open->first;
    } else {
        enum ar_status status = flush(self, error);
        if (status)
            return status;
        value = pickle_make(open->is_object ? PICKLE_DICT : PICKLE_LIST, open->index);
    }
    self->depth--;
    return push(self, value, error);
}

static enum ar_status push_number(struct reading *self, const struct json_token *token,
                                  struct ar_error *error)
{
    struct json_number number;
    uint64_t bits, index;
    if (strpbrk(token->text, ".eE")) {
        double real = strtod(token->text, NULL);
        memcpy(&bits, &real, sizeof bits);
        return push(self, (bits & ~UINT64_C(15)) | PICKLE_FLOAT, error);
    }
    if (!json_number_of(token, 0, &number))
        return push(self, pickle_make(PICKLE_OTHER, 0), error);
    bits = number.negative ? -number.magnitude : number.magnitude;
    if (number.magnitude < UINT64_C(1) << 59)
        return push(self, pickle_make(PICKLE_INT, bits), error);
    enum ar_status status =
        self->sink->wide(self->sink->argument, bits, number.negative, &index, error);
    return status ? status : push(self, pickle_make(PICKLE_WIDE, index), error);
}

static enum ar_status push_text(struct reading *self, const struct json_token *token,
                                struct ar_error *error)
{
    uint64_t index;
    enum ar_status status =
        self->sink->text(self->sink->argument, token->text, token->length, &index, error);
    return status ? status : push(self, pickle_make(PICKLE_TEXT, index), error);
}

static enum ar_status take(struct reading *self, const struct json_token *token,
                           struct ar_error *error)
{
    switch (token->kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        self->open[self->depth++] =
            (struct open){.first = self->count, .is_object = token->kind == JSON_OBJECT};
        return AR_OK;
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
        return close_one(self, error);
    case JSON_KEY:
    case JSON_STRING:
        return push_text(self, token, error);
    case JSON_NUMBER:
        return push_number(self, token, error);
    case JSON_TRUE:
    case JSON_FALSE:
        return push(self, pickle_make(PICKLE_BOOL, token->kind == JSON_TRUE), error);
    default:
        return push(self, pickle_make(PICKLE_NONE, 0), error);
    }
}

enum ar_status snapshot_json_read(struct trace_input *input, const struct pickle_sink *sink,
                                  uint64_t *value, struct ar_error *error)
{
    struct reading *self = calloc(1, sizeof *self);
    struct json_token token = {.kind = JSON_NULL};
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a snapshot");
    self->sink = sink;
    enum ar_status status = json_pull_open(input, &self->pull, error);
    while (!status && token.kind != JSON_END) {
        status = json_pull_next(self->pull, &token, error);
        if (status || token.kind == JSON_END)
            break;
        status = take(self, &token, error);
        if (!status && token.kind != JSON_KEY && self->depth &&
            self->count - self->open[self->depth - 1].first >= BATCH)
            status = flush(self, error);
    }
    if (!status)
        *value = self->stack[0];
    json_pull_close(self->pull);
    free(self->stack);
    free(self);
    return status;
}

bool snapshot_json_matches(const char *head, size_t count)
{
    size_t at = head_blanks(head, count, 0);
    if (at == count || (head[at] != '{' && head[at] != '['))
        return false;
    return head_holds(head, count, "\"device_traces\"") ||
           (head_holds(head, count, "\"total_size\"") && head_holds(head, count, "\"blocks\""));
}
