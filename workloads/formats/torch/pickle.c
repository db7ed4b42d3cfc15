/* How: a table says of every opcode its name, how many bytes of operand follow it, and what is done.
 *
 * 1. Values are words of 64 bits, on a stack and in the memo; a container is an index.
 * 2. Marks lie in a stack of their own, which bounds how deep a pickle may nest.
 * 3. Numbers of the memo must come up one by one, as every writer gives them, and there may be no
 *    more of them than values were made: then the memo is no larger than the file, whatever the
 *    numbers say.
 * 4. Texts of more than 64 KiB are skipped without being held.
 *
 * Source of the opcodes: the documentation of Python's module pickletools. */
#include "workloads/formats/torch/pickle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Between the files of the pickle machine. */

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

/* Numbers and texts of a pickle, in binary and as lines of text. */

#define TEXT_KEPT   65536u /* bytes; longer texts are skipped */
#define TEXT_MOST   (UINT64_C(1) << 28)
#define NUMBER_MOST 4096u /* bytes of a whole number */

double pickle_float_of(uint64_t value)
{
    uint64_t bits = value & ~UINT64_C(15);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* ---- numbers --------------------------------------------------------------------------- */

enum ar_status pickle_act_none(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    return pickle_push(self, pickle_make(PICKLE_NONE, 0), error);
}

enum ar_status pickle_act_true(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    return pickle_push(self, pickle_make(PICKLE_BOOL, 1), error);
}

enum ar_status pickle_act_false(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    return pickle_push(self, pickle_make(PICKLE_BOOL, 0), error);
}

/* Up to four bytes without sign. */
enum ar_status pickle_act_small(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    return pickle_push(self, pickle_make(PICKLE_INT, operand), error);
}

static enum ar_status push_number(struct pickle *self, uint64_t bits, bool negative,
                                  struct ar_error *error)
{
    uint64_t index;
    int64_t top = (int64_t)bits >> 59;
    if (negative ? top == -1 : top == 0)
        return pickle_push(self, pickle_make(PICKLE_INT, bits), error);
    enum ar_status status = self->sink->wide(self->sink->argument, bits, negative, &index, error);
    return status ? status : pickle_push(self, pickle_make(PICKLE_WIDE, index), error);
}

enum ar_status pickle_act_int4(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    bool negative = operand >> 31;
    return push_number(self, negative ? operand | UINT64_C(0xffffffff00000000) : operand, negative,
                       error);
}

/* A number of so many bytes, two's complement. */
enum ar_status pickle_act_long(struct pickle *self, uint64_t length, struct ar_error *error)
{
    if (length > NUMBER_MOST)
        return ar_error_set(error, AR_FORMAT, "%s of %" PRIu64 " bytes: no number is that long",
                            pickle_opcode_name(self), length);
    const unsigned char *bytes = pickle_take(self, (size_t)length, error);
    if (!bytes)
        return self->failed;
    bool negative = length && bytes[length - 1] & 0x80;
    unsigned char fill_byte = negative ? 0xff : 0;
    size_t used = (size_t)length;
    while (used > 8 && bytes[used - 1] == fill_byte)
        used--;
    if (used > 8 || (used == 8 && negative && !(bytes[7] & 0x80)))
        return pickle_push(self, pickle_make(PICKLE_OTHER, 0), error);
    uint64_t bits = pickle_little_endian(bytes, used);
    if (negative && used < 8)
        bits |= ~UINT64_C(0) << 8 * used;
    return push_number(self, bits, negative, error);
}

/* "12", "-3", "12L"; "00" and "01" of the opcode INT are truth values. */
enum ar_status pickle_act_number_line(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t length;
    const char *line = pickle_take_line(self, &length, error);
    char text[32], *end;
    (void)operand;
    if (!line)
        return self->failed;
    if (self->opcode == 'I' && length == 2 && line[0] == '0' && (line[1] & ~1) == '0')
        return pickle_push(self, pickle_make(PICKLE_BOOL, (uint64_t)(line[1] - '0')), error);
    if (length && line[length - 1] == 'L')
        length--;
    if (!length || length >= sizeof text)
        return length ? pickle_push(self, pickle_make(PICKLE_OTHER, 0), error)
                      : pickle_wrong(self, "is followed by no number", error);
    memcpy(text, line, length);
    text[length] = '\0';
    bool negative = text[0] == '-';
    const char *digits = text + negative;
    errno = 0;
    uint64_t number = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end)
        return pickle_wrong(self, "is followed by no number", error);
    if (errno || (negative && number > UINT64_C(1) << 63))
        return pickle_push(self, pickle_make(PICKLE_OTHER, 0), error);
    return push_number(self, negative ? -number : number, negative && number, error);
}

static enum ar_status push_float(struct pickle *self, uint64_t bits, struct ar_error *error)
{
    return pickle_push(self, (bits & ~UINT64_C(15)) | PICKLE_FLOAT, error);
}

/* Eight bytes, the highest first. */
enum ar_status pickle_act_float(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    return push_float(self, __builtin_bswap64(operand), error);
}

enum ar_status pickle_act_float_line(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t length;
    const char *line = pickle_take_line(self, &length, error);
    char text[64], *end;
    (void)operand;
    if (!line)
        return self->failed;
    if (!length || length >= sizeof text)
        return pickle_wrong(self, "is followed by no number", error);
    memcpy(text, line, length);
    text[length] = '\0';
    double number = strtod(text, &end);
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return *end ? pickle_wrong(self, "is followed by no number", error)
                : push_float(self, bits, error);
}

/* ---- texts ----------------------------------------------------------------------------- */

static enum ar_status push_text(struct pickle *self, const char *bytes, size_t length,
                                struct ar_error *error)
{
    uint64_t index;
    enum ar_status status = self->sink->text(self->sink->argument, bytes, length, &index, error);
    return status ? status : pickle_push(self, pickle_make(PICKLE_TEXT, index), error);
}

enum ar_status pickle_act_text(struct pickle *self, uint64_t length, struct ar_error *error)
{
    if (length > TEXT_MOST)
        return ar_error_set(error, AR_FORMAT, "%s of %" PRIu64 " bytes: no text is that long",
                            pickle_opcode_name(self), length);
    if (length > TEXT_KEPT) {
        enum ar_status status = pickle_skip(self, length, error);
        return status ? status : pickle_push(self, pickle_make(PICKLE_OTHER, 0), error);
    }
    const unsigned char *bytes = pickle_take(self, (size_t)length, error);
    return bytes ? push_text(self, (const char *)bytes, (size_t)length, error) : self->failed;
}

/* Text without quotes, its escapes as they stand: no name that is looked for has any. */
enum ar_status pickle_act_text_line(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    size_t length;
    const char *line = pickle_take_line(self, &length, error);
    (void)operand;
    if (!line)
        return self->failed;
    if (self->opcode == 'S') {
        if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0])
            return pickle_wrong(self, "is not followed by a text in quotes", error);
        line++;
        length -= 2;
    }
    return push_text(self, line, length, error);
}

/* Lists, tuples and dictionaries of a pickle: what was put on the stack goes to the sink. */

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

enum {
    STACK_ROOM = 4096, /* at first */
    STACK_MOST = 1 << 20,
    MEMO_MOST = 1 << 26,
    MEMO_AHEAD = 1 << 12, /* a number may leave out so many */
    LINE_MOST = 1 << 12,  /* of the protocols that are text */
};

struct opcode {
    const char *name;
    enum ar_status (*act)(struct pickle *self, uint64_t operand, struct ar_error *error);
    unsigned operand_bytes; /* little-endian, before anything else that follows */
};

static const struct opcode opcodes[256];

const char *pickle_opcode_name(const struct pickle *self)
{
    return opcodes[self->opcode].name ? opcodes[self->opcode].name : "?";
}

enum ar_status pickle_no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a pickle");
}

enum ar_status pickle_wrong(const struct pickle *self, const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "%s %s", pickle_opcode_name(self), what);
}

/* ---- bytes ----------------------------------------------------------------------------- */

/* Reads on, so that at least `count` bytes lie in the buffer, or all that are left. */
static enum ar_status fill(struct pickle *self, size_t count, struct ar_error *error)
{
    memmove(self->buffer, self->buffer + self->at, self->filled - self->at);
    self->before += self->at;
    self->filled -= self->at;
    self->at = 0;
    while (!self->ended && self->filled < count) {
        size_t got;
        enum ar_status status = trace_input_read(self->input, self->buffer + self->filled,
                                                 PICKLE_BUFFER_BYTES - self->filled, &got, error);
        self->unread = status != AR_OK;
        if (status)
            return self->failed = status;
        self->filled += got;
        self->ended = !got;
    }
    return AR_OK;
}

/* The next `count` bytes, at most PICKLE_BUFFER_BYTES; NULL with an error where they are not there. */
const unsigned char *pickle_take(struct pickle *self, size_t count, struct ar_error *error)
{
    if (self->filled - self->at < count) {
        if (fill(self, count, error))
            return NULL;
        if (self->filled < count) {
            self->failed =
                ar_error_set(error, AR_FORMAT,
                             "the file ends in the middle of the pickle: copy it or make it again");
            return NULL;
        }
    }
    self->at += count;
    return self->buffer + self->at - count;
}

enum ar_status pickle_skip(struct pickle *self, uint64_t count, struct ar_error *error)
{
    while (count) {
        size_t part = count < PICKLE_BUFFER_BYTES ? (size_t)count : PICKLE_BUFFER_BYTES;
        if (!pickle_take(self, part, error))
            return self->failed;
        count -= part;
    }
    return AR_OK;
}

/* A line without its end. */
const char *pickle_take_line(struct pickle *self, size_t *length, struct ar_error *error)
{
    for (size_t seen = 0;; seen++) {
        if (seen == LINE_MOST) {
            self->failed = pickle_wrong(self, "has a line that is too long", error);
            return NULL;
        }
        if (self->at + seen >= self->filled) {
            if (fill(self, seen + 1, error))
                return NULL;
            if (seen >= self->filled)
                return (const char *)pickle_take(self, seen + 1, error);
        }
        if (self->buffer[self->at + seen] == '\n') {
            const char *line = (const char *)self->buffer + self->at;
            self->at += seen + 1;
            *length = seen && line[seen - 1] == '\r' ? seen - 1 : seen;
            return line;
        }
    }
}

uint64_t pickle_little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

/* ---- stack and memo -------------------------------------------------------------------- */

enum ar_status pickle_push(struct pickle *self, uint64_t value, struct ar_error *error)
{
    if (self->depth == self->room) {
        size_t room = self->room * 2;
        if (room > STACK_MOST)
            return pickle_wrong(self, "puts more than a million values on the stack", error);
        uint64_t *stack = realloc(self->stack, room * sizeof *stack);
        if (!stack)
            return pickle_no_memory(error);
        self->stack = stack;
        self->room = room;
    }
    self->stack[self->depth++] = value;
    self->made++;
    return AR_OK;
}

/* Values above the last mark are all that an opcode may take. */
size_t pickle_floor(const struct pickle *self)
{
    return self->mark_count ? self->marks[self->mark_count - 1] : 0;
}

enum ar_status pickle_need(const struct pickle *self, size_t count, struct ar_error *error)
{
    return self->depth - pickle_floor(self) < count
               ? pickle_wrong(self, "finds too few values", error)
               : AR_OK;
}

static enum ar_status act_mark(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    if (self->mark_count == PICKLE_MARKS_MOST)
        return ar_error_set(error, AR_FORMAT, "it nests more than %d deep", PICKLE_MARKS_MOST);
    self->marks[self->mark_count++] = self->depth;
    return AR_OK;
}

/* Takes the last mark away; `*first`: the value behind it. */
enum ar_status pickle_unmark(struct pickle *self, size_t *first, struct ar_error *error)
{
    if (!self->mark_count)
        return pickle_wrong(self, "finds no mark", error);
    *first = self->marks[--self->mark_count];
    return AR_OK;
}

static enum ar_status act_pop(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    if (self->mark_count && self->marks[self->mark_count - 1] == self->depth) {
        self->mark_count--;
        return AR_OK;
    }
    enum ar_status status = pickle_need(self, 1, error);
    self->depth -= !status;
    return status;
}

static enum ar_status act_pop_mark(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    return pickle_unmark(self, &self->depth, error);
}

static enum ar_status act_dup(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    enum ar_status status = pickle_need(self, 1, error);
    if (status)
        return status;
    self->made--;
    return pickle_push(self, self->stack[self->depth - 1], error);
}

static enum ar_status act_put(struct pickle *self, uint64_t index, struct ar_error *error)
{
    enum ar_status status = pickle_need(self, 1, error);
    if (status)
        return status;
    if (index > self->memo_count + MEMO_AHEAD || index >= MEMO_MOST)
        return ar_error_set(error, AR_FORMAT,
                            "%s %" PRIu64 ": numbers of the memo come up one by one, up to %d",
                            pickle_opcode_name(self), index, MEMO_MOST - 1);
    if (index > self->made + MEMO_AHEAD)
        return pickle_wrong(self, "remembers more values than there are", error);
    if (index >= self->memo_room) {
        size_t room = self->memo_room ? self->memo_room * 2 : 2 * MEMO_AHEAD;
        uint64_t *memo = realloc(self->memo, room * sizeof *memo);
        if (!memo)
            return pickle_no_memory(error);
        self->memo = memo;
        self->memo_room = room;
    }
    while (self->memo_count <= index)
        self->memo[self->memo_count++] = UINT64_MAX;
    self->memo[index] = self->stack[self->depth - 1];
    return AR_OK;
}

static enum ar_status act_memoize(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    return act_put(self, self->memo_count, error);
}

static enum ar_status act_get(struct pickle *self, uint64_t index, struct ar_error *error)
{
    if (index >= self->memo_count || self->memo[index] == UINT64_MAX)
        return ar_error_set(error, AR_FORMAT, "%s %" PRIu64 " is not in the memo",
                            pickle_opcode_name(self), index);
    self->made--;
    return pickle_push(self, self->memo[index], error);
}

/* The whole number, not negative, of a line. */
static enum ar_status line_number(struct pickle *self, uint64_t *number, struct ar_error *error)
{
    size_t length;
    const char *line = pickle_take_line(self, &length, error);
    if (!line)
        return self->failed;
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (line[i] < '0' || line[i] > '9' || i > 17)
            return pickle_wrong(self, "is followed by no number", error);
        *number = *number * 10 + (uint64_t)(line[i] - '0');
    }
    return length ? AR_OK : pickle_wrong(self, "is followed by no number", error);
}

static enum ar_status act_put_line(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    enum ar_status status = line_number(self, &operand, error);
    return status ? status : act_put(self, operand, error);
}

static enum ar_status act_get_line(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    enum ar_status status = line_number(self, &operand, error);
    return status ? status : act_get(self, operand, error);
}

/* ---- what frames the rest -------------------------------------------------------------- */

static enum ar_status act_proto(struct pickle *self, uint64_t protocol, struct ar_error *error)
{
    (void)self;
    return protocol > 5
               ? ar_error_set(error, AR_FORMAT,
                              "protocol %" PRIu64 " is unknown; 0 to 5 can be read", protocol)
               : AR_OK;
}

static enum ar_status act_nothing(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)self;
    (void)operand;
    (void)error;
    return AR_OK;
}

static enum ar_status act_stop(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    (void)operand;
    if (self->mark_count || self->depth != 1)
        return pickle_wrong(self, "finds not exactly one value", error);
    self->stopped = true;
    return AR_OK;
}

static enum ar_status act_refuse(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    char named[96] = "";
    (void)operand;
    if (self->opcode == 'c' || self->opcode == 'i') {
        size_t length, used = 0;
        for (unsigned i = 0; i < 2; i++) {
            const char *line = pickle_take_line(self, &length, NULL);
            if (!line)
                break;
            named[used++] = i ? '.' : ' ';
            for (size_t k = 0; k < length && used < sizeof named / 2 * (i + 1) - 2; k++)
                named[used++] = line[k] > ' ' && line[k] < 0x7f ? line[k] : '?';
        }
        named[used] = '\0';
    }
    return ar_error_set(error, AR_FORMAT,
                        "%s%s: it asks for more than data, which could run code, and is refused; a "
                        "snapshot holds numbers, texts, lists and dictionaries only",
                        pickle_opcode_name(self), named);
}

static const struct opcode opcodes[256] = {
    ['('] = {"MARK", act_mark, 0},
    ['.'] = {"STOP", act_stop, 0},
    ['0'] = {"POP", act_pop, 0},
    ['1'] = {"POP_MARK", act_pop_mark, 0},
    ['2'] = {"DUP", act_dup, 0},
    ['F'] = {"FLOAT", pickle_act_float_line, 0},
    ['I'] = {"INT", pickle_act_number_line, 0},
    ['J'] = {"BININT", pickle_act_int4, 4},
    ['K'] = {"BININT1", pickle_act_small, 1},
    ['L'] = {"LONG", pickle_act_number_line, 0},
    ['M'] = {"BININT2", pickle_act_small, 2},
    ['N'] = {"NONE", pickle_act_none, 0},
    ['P'] = {"PERSID", act_refuse, 0},
    ['Q'] = {"BINPERSID", act_refuse, 0},
    ['R'] = {"REDUCE", act_refuse, 0},
    ['S'] = {"STRING", pickle_act_text_line, 0},
    ['T'] = {"BINSTRING", pickle_act_text, 4},
    ['U'] = {"SHORT_BINSTRING", pickle_act_text, 1},
    ['V'] = {"UNICODE", pickle_act_text_line, 0},
    ['X'] = {"BINUNICODE", pickle_act_text, 4},
    ['a'] = {"APPEND", pickle_act_append, 0},
    ['b'] = {"BUILD", act_refuse, 0},
    ['c'] = {"GLOBAL", act_refuse, 0},
    ['d'] = {"DICT", pickle_act_dict, 0},
    ['}'] = {"EMPTY_DICT", pickle_act_empty_dict, 0},
    ['e'] = {"APPENDS", pickle_act_appends, 0},
    ['g'] = {"GET", act_get_line, 0},
    ['h'] = {"BINGET", act_get, 1},
    ['i'] = {"INST", act_refuse, 0},
    ['j'] = {"LONG_BINGET", act_get, 4},
    ['l'] = {"LIST", pickle_act_list, 0},
    [']'] = {"EMPTY_LIST", pickle_act_empty_list, 0},
    ['o'] = {"OBJ", act_refuse, 0},
    ['p'] = {"PUT", act_put_line, 0},
    ['q'] = {"BINPUT", act_put, 1},
    ['r'] = {"LONG_BINPUT", act_put, 4},
    ['s'] = {"SETITEM", pickle_act_setitem, 0},
    ['t'] = {"TUPLE", pickle_act_tuple, 0},
    [')'] = {"EMPTY_TUPLE", pickle_act_short_tuple, 0},
    ['u'] = {"SETITEMS", pickle_act_setitems, 0},
    ['G'] = {"BINFLOAT", pickle_act_float, 8},
    ['B'] = {"BINBYTES", pickle_act_text, 4},
    ['C'] = {"SHORT_BINBYTES", pickle_act_text, 1},
    [0x80] = {"PROTO", act_proto, 1},
    [0x81] = {"NEWOBJ", act_refuse, 0},
    [0x82] = {"EXT1", act_refuse, 0},
    [0x83] = {"EXT2", act_refuse, 0},
    [0x84] = {"EXT4", act_refuse, 0},
    [0x85] = {"TUPLE1", pickle_act_short_tuple, 0},
    [0x86] = {"TUPLE2", pickle_act_short_tuple, 0},
    [0x87] = {"TUPLE3", pickle_act_short_tuple, 0},
    [0x88] = {"NEWTRUE", pickle_act_true, 0},
    [0x89] = {"NEWFALSE", pickle_act_false, 0},
    [0x8a] = {"LONG1", pickle_act_long, 1},
    [0x8b] = {"LONG4", pickle_act_long, 4},
    [0x8c] = {"SHORT_BINUNICODE", pickle_act_text, 1},
    [0x8d] = {"BINUNICODE8", pickle_act_text, 8},
    [0x8e] = {"BINBYTES8", pickle_act_text, 8},
    [0x8f] = {"EMPTY_SET", pickle_act_empty_list, 0},
    [0x90] = {"ADDITEMS", pickle_act_appends, 0},
    [0x91] = {"FROZENSET", pickle_act_list, 0},
    [0x92] = {"NEWOBJ_EX", act_refuse, 0},
    [0x93] = {"STACK_GLOBAL", act_refuse, 0},
    [0x94] = {"MEMOIZE", act_memoize, 0},
    [0x95] = {"FRAME", act_nothing, 8},
    [0x96] = {"BYTEARRAY8", pickle_act_text, 8},
    [0x97] = {"NEXT_BUFFER", act_refuse, 0},
    [0x98] = {"READONLY_BUFFER", act_refuse, 0},
};

static enum ar_status run(struct pickle *self, struct ar_error *error)
{
    while (!self->stopped) {
        self->opcode_byte = self->before + self->at;
        const unsigned char *byte = pickle_take(self, 1, error);
        if (!byte)
            return self->failed;
        self->opcode = *byte;
        const struct opcode *opcode = &opcodes[self->opcode];
        if (!opcode->act)
            return ar_error_set(error, AR_FORMAT, "%u is no opcode of a pickle", self->opcode);
        uint64_t operand = 0;
        if (opcode->operand_bytes) {
            const unsigned char *bytes = pickle_take(self, opcode->operand_bytes, error);
            if (!bytes)
                return self->failed;
            operand = pickle_little_endian(bytes, opcode->operand_bytes);
        }
        enum ar_status status = opcode->act(self, operand, error);
        if (status)
            return status;
    }
    return AR_OK;
}

enum ar_status pickle_read(struct trace_input *input, const struct pickle_sink *sink,
                           uint64_t *value, struct ar_error *error)
{
    struct pickle self = {.input = input,
                          .sink = sink,
                          .buffer = malloc(PICKLE_BUFFER_BYTES),
                          .stack = malloc(STACK_ROOM * sizeof(uint64_t)),
                          .room = STACK_ROOM};
    enum ar_status status = self.buffer && self.stack ? run(&self, error) : pickle_no_memory(error);
    if (status && !self.unread)
        ar_error_prefix(error, status, "%s: byte %" PRIu64, trace_input_path(input),
                        self.opcode_byte);
    if (!status)
        *value = self.stack[0];
    free(self.buffer);
    free(self.stack);
    free(self.memo);
    return status;
}

static bool is_name(const char *head, size_t count, size_t *at)
{
    size_t first = *at;
    while (*at < count &&
           (head[*at] == '_' || head[*at] == '.' || (head[*at] >= 'A' && head[*at] <= 'Z') ||
            (head[*at] >= 'a' && head[*at] <= 'z')))
        ++*at;
    return *at > first && *at < count && head[(*at)++] == '\n';
}

bool pickle_matches(const char *head, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)head;
    size_t at = 1;
    if (count < 3)
        return false;
    if (bytes[0] == 0x80) /* PROTO */
        return bytes[1] <= 16 && opcodes[bytes[2]].act;
    if (bytes[0] == 'c') /* protocols 0 and 1, an attack */
        return is_name(head, count, &at) && is_name(head, count, &at) && at < count &&
               strchr("()pq", head[at]);
    if (bytes[0] == '(')
        return strchr("dl", head[1]) && strchr("pq.(as}]SVX", head[2]);
    return (bytes[0] == '}' || bytes[0] == ']') && strchr("qr(a.", head[1]);
}
