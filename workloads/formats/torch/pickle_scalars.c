/* Numbers and texts of a pickle, in binary and as lines of text. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/formats/torch/pickle_state.h"

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
