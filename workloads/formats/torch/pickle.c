/* How: a table has for every opcode its name, the number of operand bytes that follow it, and the
 * function that carries it out.
 *
 * 1. Values are words of 64 bits, on a stack and in the memo; a container is an index.
 * 2. Marks are in a stack of their own, which limits the depth of a pickle.
 * 3. The numbers of the memo must rise one by one, as every writer assigns them, and there may be
 *    no more of them than values: then the memo is no larger than the file.
 * 4. Texts of more than 64 KiB are skipped without being kept.
 *
 * Source of the opcodes: the documentation of Python's module pickletools. */
#include "workloads/formats/torch/pickle.h"

#include <errno.h>

#include "allocators/base/array.h"

enum {
    BUFFER_BYTES = 1 << 18,
    MARKS_MOST = 200,
    STACK_ROOM = 4096, /* at first */
    STACK_MOST = 1 << 20,
    MEMO_MOST = 1 << 26,
    MEMO_AHEAD = 1 << 12, /* numbers that may be omitted */
    LINE_MOST = 1 << 12,  /* bytes of a line in the text protocols */
    TEXT_KEPT = 65536,    /* bytes; longer texts are skipped */
    TEXT_MOST = 1 << 28,
    NUMBER_MOST = 4096, /* bytes of an integer */
};

struct pickle {
    struct trace_input *input;
    const struct pickle_sink *sink;
    unsigned char *buffer;
    size_t at, filled;
    bool ended, stopped;
    bool unread;           /* the input failed; its error names the file */
    enum ar_status failed; /* why `take` or `take_line` returned NULL */
    uint64_t before;       /* bytes of the file before the buffer */
    uint64_t opcode_byte;
    unsigned opcode;
    uint64_t *stack;
    size_t depth, room;
    size_t marks[MARKS_MOST]; /* depths */
    size_t mark_count;
    uint64_t made;  /* values, without copies of others in the pickle */
    uint64_t *memo; /* UINT64_MAX: not assigned */
    size_t memo_count, memo_room;
};

struct opcode {
    const char *name;
    enum ar_status (*act)(struct pickle *self, uint64_t operand, struct ar_error *error);
    unsigned operand_bytes; /* little-endian, before anything else that follows */
};

static const struct opcode opcodes[256];

static const char *opcode_name(const struct pickle *self)
{
    return opcodes[self->opcode].name ? opcodes[self->opcode].name : "?";
}

/* FORMAT: the current opcode and what is wrong with it. */
static enum ar_status wrong(const struct pickle *self, const char *what, struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "%s %s", opcode_name(self), what);
}

/* ---- bytes ----------------------------------------------------------------------------- */

/* Reads so that at least `count` bytes are in the buffer, or all that are left. */
static enum ar_status fill(struct pickle *self, size_t count, struct ar_error *error)
{
    memmove(self->buffer, self->buffer + self->at, self->filled - self->at);
    self->before += self->at;
    self->filled -= self->at;
    self->at = 0;
    while (!self->ended && self->filled < count) {
        size_t got;
        enum ar_status status = trace_input_read(self->input, self->buffer + self->filled,
                                                 BUFFER_BYTES - self->filled, &got, error);
        self->unread = status != AR_OK;
        if (status)
            return self->failed = status;
        self->filled += got;
        self->ended = !got;
    }
    return AR_OK;
}

/* The next `count` bytes, at most BUFFER_BYTES, valid until the next call. NULL with an error if
 * they are missing: `failed` is its status. */
static const unsigned char *take(struct pickle *self, size_t count, struct ar_error *error)
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

static enum ar_status skip(struct pickle *self, uint64_t count, struct ar_error *error)
{
    while (count) {
        size_t part = count < BUFFER_BYTES ? (size_t)count : BUFFER_BYTES;
        if (!take(self, part, error))
            return self->failed;
        count -= part;
    }
    return AR_OK;
}

/* A line without its end; as `take`. */
static const char *take_line(struct pickle *self, size_t *length, struct ar_error *error)
{
    for (size_t seen = 0;; seen++) {
        if (seen == LINE_MOST) {
            self->failed = wrong(self, "has a line that is too long", error);
            return NULL;
        }
        if (self->at + seen >= self->filled) {
            if (fill(self, seen + 1, error))
                return NULL;
            if (seen >= self->filled)
                return (const char *)take(self, seen + 1, error);
        }
        if (self->buffer[self->at + seen] == '\n') {
            const char *line = (const char *)self->buffer + self->at;
            self->at += seen + 1;
            *length = seen && line[seen - 1] == '\r' ? seen - 1 : seen;
            return line;
        }
    }
}

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

/* ---- stack and memo -------------------------------------------------------------------- */

static enum ar_status push(struct pickle *self, uint64_t value, struct ar_error *error)
{
    if (self->depth == STACK_MOST)
        return wrong(self, "puts more than a million values on the stack", error);
    AR_TRY(AR_APPEND(self->stack, self->depth, self->room, value, error, "a pickle"));
    self->made++;
    return AR_OK;
}

/* An opcode may take only values above the last mark. */
static size_t floor_of(const struct pickle *self)
{
    return self->mark_count ? self->marks[self->mark_count - 1] : 0;
}

static enum ar_status need(const struct pickle *self, size_t count, struct ar_error *error)
{
    return self->depth - floor_of(self) < count ? wrong(self, "finds too few values", error)
                                                : AR_OK;
}

static enum ar_status act_mark(struct pickle *self, uint64_t operand AR_UNUSED,
                               struct ar_error *error)
{
    if (self->mark_count == MARKS_MOST)
        return ar_error_set(error, AR_FORMAT, "it nests more than %d deep", MARKS_MOST);
    self->marks[self->mark_count++] = self->depth;
    return AR_OK;
}

/* Removes the last mark; `*first`: the value after it. */
static enum ar_status unmark(struct pickle *self, size_t *first, struct ar_error *error)
{
    if (!self->mark_count)
        return wrong(self, "finds no mark", error);
    *first = self->marks[--self->mark_count];
    return AR_OK;
}

static enum ar_status act_pop(struct pickle *self, uint64_t operand AR_UNUSED,
                              struct ar_error *error)
{
    if (self->mark_count && self->marks[self->mark_count - 1] == self->depth) {
        self->mark_count--;
        return AR_OK;
    }
    enum ar_status status = need(self, 1, error);
    self->depth -= !status;
    return status;
}

static enum ar_status act_pop_mark(struct pickle *self, uint64_t operand AR_UNUSED,
                                   struct ar_error *error)
{
    return unmark(self, &self->depth, error);
}

static enum ar_status act_dup(struct pickle *self, uint64_t operand AR_UNUSED,
                              struct ar_error *error)
{
    AR_TRY(need(self, 1, error));
    self->made--;
    return push(self, self->stack[self->depth - 1], error);
}

static enum ar_status act_put(struct pickle *self, uint64_t index, struct ar_error *error)
{
    AR_TRY(need(self, 1, error));
    if (index > self->memo_count + MEMO_AHEAD || index >= MEMO_MOST)
        return ar_error_set(error, AR_FORMAT,
                            "%s %" PRIu64 ": numbers of the memo come up one by one, up to %d",
                            opcode_name(self), index, MEMO_MOST - 1);
    if (index > self->made + MEMO_AHEAD)
        return wrong(self, "remembers more values than there are", error);
    while (self->memo_count <= index)
        AR_TRY(AR_APPEND(self->memo, self->memo_count, self->memo_room, UINT64_MAX, error,
                         "a pickle"));
    self->memo[index] = self->stack[self->depth - 1];
    return AR_OK;
}

static enum ar_status act_memoize(struct pickle *self, uint64_t operand AR_UNUSED,
                                  struct ar_error *error)
{
    return act_put(self, self->memo_count, error);
}

static enum ar_status act_get(struct pickle *self, uint64_t index, struct ar_error *error)
{
    if (index >= self->memo_count || self->memo[index] == UINT64_MAX)
        return ar_error_set(error, AR_FORMAT, "%s %" PRIu64 " is not in the memo",
                            opcode_name(self), index);
    self->made--;
    return push(self, self->memo[index], error);
}

/* GET and PUT: the number of the memo, not negative, is a line. */
static enum ar_status act_memo_line(struct pickle *self, uint64_t number, struct ar_error *error)
{
    size_t length;
    const char *line = take_line(self, &length, error);
    if (!line)
        return self->failed;
    for (size_t i = 0; i < length; i++) {
        if (line[i] < '0' || line[i] > '9' || i > 17)
            return wrong(self, "is followed by no number", error);
        number = number * 10 + (uint64_t)(line[i] - '0');
    }
    if (!length)
        return wrong(self, "is followed by no number", error);
    return self->opcode == 'g' ? act_get(self, number, error) : act_put(self, number, error);
}

/* ---- numbers --------------------------------------------------------------------------- */

double pickle_float_of(uint64_t value)
{
    uint64_t bits = value & ~UINT64_C(15);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint64_t make_float(uint64_t bits)
{
    return (bits & ~UINT64_C(15)) | PICKLE_FLOAT;
}

uint64_t pickle_make_float(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return make_float(bits);
}

enum ar_status pickle_number(const struct pickle_sink *sink, uint64_t bits, bool negative,
                             uint64_t *value, struct ar_error *error)
{
    uint64_t index = 0;
    int64_t top = (int64_t)bits >> 59;
    bool fits = negative ? top == -1 : top == 0;
    enum ar_status status =
        fits ? AR_OK : sink->wide(sink->argument, bits, negative, &index, error);
    *value = fits ? pickle_make(PICKLE_INT, bits) : pickle_make(PICKLE_WIDE, index);
    return status;
}

static enum ar_status push_number(struct pickle *self, uint64_t bits, bool negative,
                                  struct ar_error *error)
{
    uint64_t value;
    AR_TRY(pickle_number(self->sink, bits, negative, &value, error));
    return push(self, value, error);
}

/* NONE, NEWTRUE and NEWFALSE. */
static enum ar_status act_constant(struct pickle *self, uint64_t operand AR_UNUSED,
                                   struct ar_error *error)
{
    return push(self,
                self->opcode == 'N' ? pickle_make(PICKLE_NONE, 0)
                                    : pickle_make(PICKLE_BOOL, self->opcode == 0x88),
                error);
}

/* One or two bytes without sign. */
static enum ar_status act_small(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    return push(self, pickle_make(PICKLE_INT, operand), error);
}

static enum ar_status act_int4(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    bool negative = operand >> 31;
    return push_number(self, negative ? operand | UINT64_C(0xffffffff00000000) : operand, negative,
                       error);
}

/* A number of `length` bytes, two's complement. */
static enum ar_status act_long(struct pickle *self, uint64_t length, struct ar_error *error)
{
    if (length > NUMBER_MOST)
        return ar_error_set(error, AR_FORMAT, "%s of %" PRIu64 " bytes: no number is that long",
                            opcode_name(self), length);
    const unsigned char *bytes = take(self, (size_t)length, error);
    if (!bytes)
        return self->failed;
    bool negative = length && bytes[length - 1] & 0x80;
    unsigned char fill_byte = negative ? 0xff : 0;
    size_t used = (size_t)length;
    while (used > 8 && bytes[used - 1] == fill_byte)
        used--;
    if (used > 8 || (used == 8 && negative && !(bytes[7] & 0x80)))
        return push(self, pickle_make(PICKLE_OTHER, 0), error);
    uint64_t bits = little_endian(bytes, used);
    if (negative && used < 8)
        bits |= ~UINT64_C(0) << 8 * used;
    return push_number(self, bits, negative, error);
}

/* "12", "-3", "12L"; "00" and "01" of the opcode INT are truth values. */
static enum ar_status act_number_line(struct pickle *self, uint64_t operand AR_UNUSED,
                                      struct ar_error *error)
{
    size_t length;
    const char *line = take_line(self, &length, error);
    char text[32], *end;
    if (!line)
        return self->failed;
    if (self->opcode == 'I' && length == 2 && line[0] == '0' && (line[1] & ~1) == '0')
        return push(self, pickle_make(PICKLE_BOOL, (uint64_t)(line[1] - '0')), error);
    if (length && line[length - 1] == 'L')
        length--;
    if (!length || length >= sizeof text)
        return length ? push(self, pickle_make(PICKLE_OTHER, 0), error)
                      : wrong(self, "is followed by no number", error);
    memcpy(text, line, length);
    text[length] = '\0';
    bool negative = text[0] == '-';
    const char *digits = text + negative;
    errno = 0;
    uint64_t number = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end)
        return wrong(self, "is followed by no number", error);
    if (errno || (negative && number > UINT64_C(1) << 63))
        return push(self, pickle_make(PICKLE_OTHER, 0), error);
    return push_number(self, negative ? -number : number, negative && number, error);
}

/* Eight bytes, the highest first. */
static enum ar_status act_float(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    return push(self, make_float(__builtin_bswap64(operand)), error);
}

static enum ar_status act_float_line(struct pickle *self, uint64_t operand AR_UNUSED,
                                     struct ar_error *error)
{
    size_t length;
    const char *line = take_line(self, &length, error);
    char text[64], *end;
    if (!line)
        return self->failed;
    if (!length || length >= sizeof text)
        return wrong(self, "is followed by no number", error);
    memcpy(text, line, length);
    text[length] = '\0';
    double number = strtod(text, &end);
    return *end ? wrong(self, "is followed by no number", error)
                : push(self, pickle_make_float(number), error);
}

/* ---- texts ----------------------------------------------------------------------------- */

static enum ar_status push_text(struct pickle *self, const char *bytes, size_t length,
                                struct ar_error *error)
{
    uint64_t index;
    AR_TRY(self->sink->text(self->sink->argument, bytes, length, &index, error));
    return push(self, pickle_make(PICKLE_TEXT, index), error);
}

static enum ar_status act_text(struct pickle *self, uint64_t length, struct ar_error *error)
{
    if (length > TEXT_MOST)
        return ar_error_set(error, AR_FORMAT, "%s of %" PRIu64 " bytes: no text is that long",
                            opcode_name(self), length);
    if (length > TEXT_KEPT) {
        AR_TRY(skip(self, length, error));
        return push(self, pickle_make(PICKLE_OTHER, 0), error);
    }
    const unsigned char *bytes = take(self, (size_t)length, error);
    return bytes ? push_text(self, (const char *)bytes, (size_t)length, error) : self->failed;
}

/* A text without its quotes. Escapes are kept as they are: no name that a reader needs has any. */
static enum ar_status act_text_line(struct pickle *self, uint64_t operand AR_UNUSED,
                                    struct ar_error *error)
{
    size_t length;
    const char *line = take_line(self, &length, error);
    if (!line)
        return self->failed;
    if (self->opcode == 'S') {
        if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0])
            return wrong(self, "is not followed by a text in quotes", error);
        line++;
        length -= 2;
    }
    return push_text(self, line, length, error);
}

/* ---- containers ------------------------------------------------------------------------ */

static enum ar_status make(const struct pickle_sink *sink, enum pickle_kind kind, uint64_t *index,
                           struct ar_error *error)
{
    return kind == PICKLE_LIST ? sink->make_list(sink->argument, index, error)
                               : sink->make_dict(sink->argument, index, error);
}

enum ar_status pickle_fill(const struct pickle_sink *sink, enum pickle_kind kind, uint64_t index,
                           const uint64_t *items, size_t count, struct ar_error *error)
{
    if (!count)
        return AR_OK;
    return kind == PICKLE_LIST ? sink->append(sink->argument, index, items, count, error)
                               : sink->put(sink->argument, index, items, count / 2, error);
}

/* Puts the values from `first` on into a container, and removes them from the stack. */
static enum ar_status fill_from(struct pickle *self, size_t first, enum pickle_kind kind,
                                uint64_t index, struct ar_error *error)
{
    size_t count = self->depth - first;
    if (kind == PICKLE_DICT && count % 2)
        return wrong(self, "finds a key without a value", error);
    self->depth = first;
    return pickle_fill(self->sink, kind, index, self->stack + first, count, error);
}

/* EMPTY_DICT, EMPTY_LIST and EMPTY_SET. */
static enum ar_status act_empty(struct pickle *self, uint64_t operand, struct ar_error *error)
{
    enum pickle_kind kind = self->opcode == '}' ? PICKLE_DICT : PICKLE_LIST;
    AR_TRY(make(self->sink, kind, &operand, error));
    return push(self, pickle_make(kind, operand), error);
}

/* APPEND, APPENDS, ADDITEMS, SETITEM and SETITEMS: values go into the container below them. */
static enum ar_status act_add(struct pickle *self, uint64_t operand AR_UNUSED,
                              struct ar_error *error)
{
    bool one = self->opcode == 'a' || self->opcode == 's';
    enum pickle_kind kind = self->opcode == 's' || self->opcode == 'u' ? PICKLE_DICT : PICKLE_LIST;
    size_t values = kind == PICKLE_DICT ? 2 : 1, first = 0;
    AR_TRY(one ? need(self, values + 1, error) : unmark(self, &first, error));
    if (one)
        first = self->depth - values;
    if (first <= floor_of(self) || pickle_kind_of(self->stack[first - 1]) != kind)
        return wrong(self, kind == PICKLE_LIST ? "finds no list" : "finds no dictionary", error);
    return fill_from(self, first, kind, pickle_payload(self->stack[first - 1]), error);
}

/* A new container of the values from `first` on. */
static enum ar_status gather(struct pickle *self, size_t first, enum pickle_kind kind,
                             struct ar_error *error)
{
    uint64_t index = 0;
    AR_TRY(make(self->sink, kind, &index, error));
    AR_TRY(fill_from(self, first, kind, index, error));
    return push(self, pickle_make(kind, index), error);
}

/* LIST, FROZENSET and DICT. */
static enum ar_status act_gather(struct pickle *self, uint64_t operand AR_UNUSED,
                                 struct ar_error *error)
{
    size_t first = 0;
    AR_TRY(unmark(self, &first, error));
    return gather(self, first, self->opcode == 'd' ? PICKLE_DICT : PICKLE_LIST, error);
}

static bool fits_pair(uint64_t value)
{
    return pickle_kind_of(value) == PICKLE_INT && pickle_payload(value) < 1u << 28;
}

bool pickle_pair_of(const uint64_t *items, size_t count, uint64_t *pair)
{
    if (count != 2 || !fits_pair(items[0]) || !fits_pair(items[1]))
        return false;
    *pair = pickle_make(PICKLE_PAIR, pickle_payload(items[0]) << 28 | pickle_payload(items[1]));
    return true;
}

/* TUPLE, EMPTY_TUPLE and TUPLE1 to TUPLE3. */
static enum ar_status act_tuple(struct pickle *self, uint64_t operand AR_UNUSED,
                                struct ar_error *error)
{
    size_t count = self->opcode == ')' ? 0 : self->opcode - 0x84u, first = 0;
    AR_TRY(self->opcode == 't' ? unmark(self, &first, error) : need(self, count, error));
    if (self->opcode != 't')
        first = self->depth - count;
    if (!pickle_pair_of(self->stack + first, self->depth - first, &self->stack[first]))
        return gather(self, first, PICKLE_LIST, error);
    self->depth = first + 1;
    return AR_OK;
}

/* ---- frames, the end, and opcodes that are refused --------------------------------------- */

static enum ar_status act_proto(struct pickle *self AR_UNUSED, uint64_t protocol,
                                struct ar_error *error)
{
    return protocol > 5
               ? ar_error_set(error, AR_FORMAT,
                              "protocol %" PRIu64 " is unknown; 0 to 5 can be read", protocol)
               : AR_OK;
}

static enum ar_status act_nothing(struct pickle *self AR_UNUSED, uint64_t operand AR_UNUSED,
                                  struct ar_error *error AR_UNUSED)
{
    return AR_OK;
}

static enum ar_status act_stop(struct pickle *self, uint64_t operand AR_UNUSED,
                               struct ar_error *error)
{
    if (self->mark_count || self->depth != 1)
        return wrong(self, "does not find exactly one value", error);
    self->stopped = true;
    return AR_OK;
}

static enum ar_status act_refuse(struct pickle *self, uint64_t operand AR_UNUSED,
                                 struct ar_error *error)
{
    char named[96] = "";
    if (self->opcode == 'c' || self->opcode == 'i') {
        size_t length, used = 0;
        for (unsigned i = 0; i < 2; i++) {
            const char *line = take_line(self, &length, NULL);
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
                        opcode_name(self), named);
}

static const struct opcode opcodes[256] = {
    ['('] = {"MARK", act_mark, 0},
    ['.'] = {"STOP", act_stop, 0},
    ['0'] = {"POP", act_pop, 0},
    ['1'] = {"POP_MARK", act_pop_mark, 0},
    ['2'] = {"DUP", act_dup, 0},
    ['F'] = {"FLOAT", act_float_line, 0},
    ['I'] = {"INT", act_number_line, 0},
    ['J'] = {"BININT", act_int4, 4},
    ['K'] = {"BININT1", act_small, 1},
    ['L'] = {"LONG", act_number_line, 0},
    ['M'] = {"BININT2", act_small, 2},
    ['N'] = {"NONE", act_constant, 0},
    ['P'] = {"PERSID", act_refuse, 0},
    ['Q'] = {"BINPERSID", act_refuse, 0},
    ['R'] = {"REDUCE", act_refuse, 0},
    ['S'] = {"STRING", act_text_line, 0},
    ['T'] = {"BINSTRING", act_text, 4},
    ['U'] = {"SHORT_BINSTRING", act_text, 1},
    ['V'] = {"UNICODE", act_text_line, 0},
    ['X'] = {"BINUNICODE", act_text, 4},
    ['a'] = {"APPEND", act_add, 0},
    ['b'] = {"BUILD", act_refuse, 0},
    ['c'] = {"GLOBAL", act_refuse, 0},
    ['d'] = {"DICT", act_gather, 0},
    ['}'] = {"EMPTY_DICT", act_empty, 0},
    ['e'] = {"APPENDS", act_add, 0},
    ['g'] = {"GET", act_memo_line, 0},
    ['h'] = {"BINGET", act_get, 1},
    ['i'] = {"INST", act_refuse, 0},
    ['j'] = {"LONG_BINGET", act_get, 4},
    ['l'] = {"LIST", act_gather, 0},
    [']'] = {"EMPTY_LIST", act_empty, 0},
    ['o'] = {"OBJ", act_refuse, 0},
    ['p'] = {"PUT", act_memo_line, 0},
    ['q'] = {"BINPUT", act_put, 1},
    ['r'] = {"LONG_BINPUT", act_put, 4},
    ['s'] = {"SETITEM", act_add, 0},
    ['t'] = {"TUPLE", act_tuple, 0},
    [')'] = {"EMPTY_TUPLE", act_tuple, 0},
    ['u'] = {"SETITEMS", act_add, 0},
    ['G'] = {"BINFLOAT", act_float, 8},
    ['B'] = {"BINBYTES", act_text, 4},
    ['C'] = {"SHORT_BINBYTES", act_text, 1},
    [0x80] = {"PROTO", act_proto, 1},
    [0x81] = {"NEWOBJ", act_refuse, 0},
    [0x82] = {"EXT1", act_refuse, 0},
    [0x83] = {"EXT2", act_refuse, 0},
    [0x84] = {"EXT4", act_refuse, 0},
    [0x85] = {"TUPLE1", act_tuple, 0},
    [0x86] = {"TUPLE2", act_tuple, 0},
    [0x87] = {"TUPLE3", act_tuple, 0},
    [0x88] = {"NEWTRUE", act_constant, 0},
    [0x89] = {"NEWFALSE", act_constant, 0},
    [0x8a] = {"LONG1", act_long, 1},
    [0x8b] = {"LONG4", act_long, 4},
    [0x8c] = {"SHORT_BINUNICODE", act_text, 1},
    [0x8d] = {"BINUNICODE8", act_text, 8},
    [0x8e] = {"BINBYTES8", act_text, 8},
    [0x8f] = {"EMPTY_SET", act_empty, 0},
    [0x90] = {"ADDITEMS", act_add, 0},
    [0x91] = {"FROZENSET", act_gather, 0},
    [0x92] = {"NEWOBJ_EX", act_refuse, 0},
    [0x93] = {"STACK_GLOBAL", act_refuse, 0},
    [0x94] = {"MEMOIZE", act_memoize, 0},
    [0x95] = {"FRAME", act_nothing, 8},
    [0x96] = {"BYTEARRAY8", act_text, 8},
    [0x97] = {"NEXT_BUFFER", act_refuse, 0},
    [0x98] = {"READONLY_BUFFER", act_refuse, 0},
};

static enum ar_status run(struct pickle *self, struct ar_error *error)
{
    while (!self->stopped) {
        self->opcode_byte = self->before + self->at;
        const unsigned char *byte = take(self, 1, error);
        if (!byte)
            return self->failed;
        self->opcode = *byte;
        const struct opcode *opcode = &opcodes[self->opcode];
        if (!opcode->act)
            return ar_error_set(error, AR_FORMAT, "%u is not an opcode of a pickle", self->opcode);
        uint64_t operand = 0;
        if (opcode->operand_bytes) {
            const unsigned char *bytes = take(self, opcode->operand_bytes, error);
            if (!bytes)
                return self->failed;
            operand = little_endian(bytes, opcode->operand_bytes);
        }
        AR_TRY(opcode->act(self, operand, error));
    }
    return AR_OK;
}

enum ar_status pickle_read(struct trace_input *input, const struct pickle_sink *sink,
                           uint64_t *value, struct ar_error *error)
{
    struct pickle self = {.input = input,
                          .sink = sink,
                          .buffer = malloc(BUFFER_BYTES),
                          .stack = malloc(STACK_ROOM * sizeof(uint64_t)),
                          .room = STACK_ROOM};
    enum ar_status status =
        self.buffer && self.stack ? run(&self, error) : ar_no_memory(error, "a pickle");
    if (status && !self.unread)
        (void)ar_error_prefix(error, status, "%s: byte %" PRIu64, trace_input_path(input),
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
    if (bytes[0] == 'c') /* GLOBAL in protocols 0 and 1: an attack, which is refused by name */
        return is_name(head, count, &at) && is_name(head, count, &at) && at < count &&
               strchr("()pq", head[at]);
    if (bytes[0] == '(')
        return strchr("dl", head[1]) && strchr("pq.(as}]SVX", head[2]);
    return (bytes[0] == '}' || bytes[0] == ']') && strchr("qr(a.", head[1]);
}
