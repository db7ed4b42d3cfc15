/* Lists, tuples and dictionaries of a pickle: what was put on the stack goes to the sink. */
#include "workloads/formats/torch/pickle_state.h"

enum ar_status pickle_act_empty_dict(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    enum ar_status status = self->sink->make_dict(self->sink->argument, &operand, error);
    return status ? status : pickle_push(self, pickle_make(PICKLE_DICT, operand), error);
}

enum ar_status pickle_act_empty_list(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    enum ar_status status = self->sink->make_list(self->sink->argument, &operand, error);
    return status ? status : pickle_push(self, pickle_make(PICKLE_LIST, operand), error);
}

/* The container on top of the stack once what lies from `first` on is taken off. */
static enum ar_status container_at(struct pickle *self, size_t first, enum pickle_kind kind,
                                   uint64_t *index, struct ar_error *error)
{
    if (first <= pickle_floor(self) || pickle_kind_of(self->stack[first - 1]) != kind)
        return pickle_wrong(self, kind == PICKLE_LIST ? "finds no list" : "finds no dictionary",
                            error);
    *index = pickle_payload(self->stack[first - 1]);
    return AR_OK;
}

static enum ar_status append_from(struct pickle *self, size_t first, struct ar_error *error)
{
    uint64_t list = 0;
    enum ar_status status = container_at(self, first, PICKLE_LIST, &list, error);
    if (!status && self->depth > first)
        status = self->sink->append(self->sink->argument, list, self->stack + first,
                                    self->depth - first, error);
    self->depth = first;
    return status;
}

static enum ar_status put_from(struct pickle *self, size_t first, struct ar_error *error)
{
    uint64_t dict = 0;
    enum ar_status status = container_at(self, first, PICKLE_DICT, &dict, error);
    if (!status && (self->depth - first) % 2)
        return pickle_wrong(self, "finds a key without a value", error);
    if (!status && self->depth > first)
        status = self->sink->put(self->sink->argument, dict, self->stack + first,
                                 (self->depth - first) / 2, error);
    self->depth = first;
    return status;
}

enum ar_status pickle_act_append(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    enum ar_status status = pickle_need(self, 2, error);
    return status ? status : append_from(self, self->depth - 1, error);
}

enum ar_status pickle_act_appends(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t first = 0;
    (void)operand;
    enum ar_status status = pickle_unmark(self, &first, error);
    return status ? status : append_from(self, first, error);
}

enum ar_status pickle_act_setitem(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    enum ar_status status = pickle_need(self, 3, error);
    return status ? status : put_from(self, self->depth - 2, error);
}

enum ar_status pickle_act_setitems(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t first = 0;
    (void)operand;
    enum ar_status status = pickle_unmark(self, &first, error);
    return status ? status : put_from(self, first, error);
}

/* A container of what lies from `first` on. */
static enum ar_status gather(struct pickle *self, size_t first, enum pickle_kind kind,
                             struct ar_error *error)
{
    uint64_t index;
    const struct pickle_sink *sink = self->sink;
    size_t count = self->depth - first;
    enum ar_status status = kind == PICKLE_LIST ? sink->make_list(sink->argument, &index, error)
                                                : sink->make_dict(sink->argument, &index, error);
    if (!status && kind == PICKLE_DICT && count % 2)
        return pickle_wrong(self, "finds a key without a value", error);
    if (!status && count)
        status = kind == PICKLE_LIST
                     ? sink->append(sink->argument, index, self->stack + first, count, error)
                     : sink->put(sink->argument, index, self->stack + first, count / 2, error);
    self->depth = first;
    return status ? status : pickle_push(self, pickle_make(kind, index), error);
}

enum ar_status pickle_act_list(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t first = 0;
    (void)operand;
    enum ar_status status = pickle_unmark(self, &first, error);
    return status ? status : gather(self, first, PICKLE_LIST, error);
}

enum ar_status pickle_act_dict(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t first = 0;
    (void)operand;
    enum ar_status status = pickle_unmark(self, &first, error);
    return status ? status : gather(self, first, PICKLE_DICT, error);
}

static bool fits_pair(uint64_t value)
{
    return pickle_kind_of(value) == PICKLE_INT && pickle_payload(value) < 1u << 28;
}

static enum ar_status gather_tuple(struct pickle *self, size_t first, struct ar_error *error)
{
    const uint64_t *items = self->stack + first;
    if (self->depth - first != 2 || !fits_pair(items[0]) || !fits_pair(items[1]))
        return gather(self, first, PICKLE_LIST, error);
    self->stack[first] =
        pickle_make(PICKLE_PAIR, pickle_payload(items[0]) << 28 | pickle_payload(items[1]));
    self->depth = first + 1;
    return AR_OK;
}

enum ar_status pickle_act_tuple(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t first = 0;
    (void)operand;
    enum ar_status status = pickle_unmark(self, &first, error);
    return status ? status : gather_tuple(self, first, error);
}

/* TUPLE1 to TUPLE3 and EMPTY_TUPLE. */
enum ar_status pickle_act_short_tuple(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t count = self->opcode == ')' ? 0 : self->opcode - 0x84u;
    (void)operand;
    enum ar_status status = pickle_need(self, count, error);
    return status ? status : gather_tuple(self, self->depth - count, error);
}
