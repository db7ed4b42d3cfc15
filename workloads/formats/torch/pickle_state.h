/* Between the files of the pickle machine. */
#ifndef WORKLOADS_FORMATS_TORCH_PICKLE_STATE_H
#define WORKLOADS_FORMATS_TORCH_PICKLE_STATE_H

#include "workloads/formats/torch/pickle.h"

enum {
    PICKLE_BUFFER_BYTES = 1 << 18,
    PICKLE_MARKS_MOST = 200,
};

struct pickle {
    struct trace_input *input;
    const struct pickle_sink *sink;
    unsigned char *buffer;
    size_t at, filled;
    bool ended, stopped;
    bool unread;           /* the failure is one of the input, whose sentence names the file */
    enum ar_status failed; /* why `take` or `take_line` gave nothing */
    uint64_t before;       /* bytes of the file before the buffer */
    uint64_t opcode_byte;
    unsigned opcode;
    uint64_t *stack;
    size_t depth, room;
    size_t marks[PICKLE_MARKS_MOST]; /* depths */
    size_t mark_count;
    uint64_t made;  /* values, those that came from elsewhere in the pickle left out */
    uint64_t *memo; /* UINT64_MAX: not given */
    size_t memo_count, memo_room;
};

/* The name of the opcode in hand. */
const char *pickle_opcode_name(const struct pickle *self);

/* FORMAT: the opcode in hand and what is wrong with it. */
enum ar_status pickle_wrong(const struct pickle *self, const char *what, struct ar_error *error);
enum ar_status pickle_no_memory(struct ar_error *error);

/* The next `count` bytes, at most PICKLE_BUFFER_BYTES; NULL with an error where they are not
 * there, then `failed` says why. Valid until the next call. */
const unsigned char *pickle_take(struct pickle *self, size_t count, struct ar_error *error);
/* A line without its end; the same. */
const char *pickle_take_line(struct pickle *self, size_t *length, struct ar_error *error);
enum ar_status pickle_skip(struct pickle *self, uint64_t count, struct ar_error *error);
uint64_t pickle_little_endian(const unsigned char *bytes, size_t count);

enum ar_status pickle_push(struct pickle *self, uint64_t value, struct ar_error *error);
/* Whether so many values lie above the last mark. */
enum ar_status pickle_need(const struct pickle *self, size_t count, struct ar_error *error);
/* Values below this lie under the last mark. */
size_t pickle_floor(const struct pickle *self);
/* Takes the last mark away; `*first`: the value behind it. */
enum ar_status pickle_unmark(struct pickle *self, size_t *first, struct ar_error *error);

/* What opcodes do, with the operand that the table tells of. */
enum ar_status pickle_act_none(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_true(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_false(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_small(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_int4(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_long(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_number_line(struct pickle *self, uint64_t operand,
                                      struct ar_error *error);
enum ar_status pickle_act_float(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_float_line(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_text(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_text_line(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_empty_dict(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_empty_list(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_append(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_appends(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_setitem(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_setitems(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_list(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_dict(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_tuple(struct pickle *self, uint64_t operand, struct ar_error *error);
enum ar_status pickle_act_short_tuple(struct pickle *self, uint64_t operand,
                                      struct ar_error *error);

#endif
