/* Lists are written in batches of 1000 items, as Python's own are: PyTorch's viewer passes a batch
 * to a function as its arguments, and JavaScript limits their number. Opcodes have the names of
 * Python's pickletools. */
#include "workloads/formats/torch/pickle.h"

#include "allocators/base/array.h"
#include "allocators/base/utf8.h"

enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_SETITEMS = 'u',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_LONG1 = 0x8a,
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_SHORT_BINUNICODE = 0x8c,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_TUPLE2 = 0x86,
    OP_MEMOIZE = 0x94,
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_PROTO = 0x80,
};

enum { PROTOCOL = 4, BATCH = 1000 };

static void fail(struct pickle_writer *self, enum ar_status status)
{
    if (!self->status)
        self->status = status;
}

static void flush(struct pickle_writer *self)
{
    if (!self->status && self->used)
        fail(self, self->output(self->argument, self->buffer, self->used, self->error));
    self->used = 0;
}

static void put_byte(struct pickle_writer *self, unsigned byte)
{
    if (self->used == PICKLE_BUFFER)
        flush(self);
    self->buffer[self->used++] = (unsigned char)byte;
}

static void put_bytes(struct pickle_writer *self, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_byte(self, (unsigned char)bytes[i]);
}

/* The lowest `count` bytes of a number, the least significant first. */
static void put_little(struct pickle_writer *self, uint64_t number, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put_byte(self, (unsigned)(number >> (8 * i)) & 0xffu);
}

void pickle_begin(struct pickle_writer *self, pickle_output *output, void *argument,
                  struct ar_error *error)
{
    *self = (struct pickle_writer){.output = output, .argument = argument, .error = error};
    put_byte(self, OP_PROTO);
    put_byte(self, PROTOCOL);
}

enum ar_status pickle_end(struct pickle_writer *self)
{
    put_byte(self, OP_STOP);
    flush(self);
    texts_close(&self->texts);
    free(self->places);
    self->places = NULL;
    return self->status;
}

void pickle_put_integer(struct pickle_writer *self, int64_t integer)
{
    uint64_t bits = (uint64_t)integer;
    if (integer >= 0 && integer <= 0xff) {
        put_byte(self, OP_BININT1);
        put_little(self, bits, 1);
    } else if (integer >= 0 && integer <= 0xffff) {
        put_byte(self, OP_BININT2);
        put_little(self, bits, 2);
    } else if (integer >= INT32_MIN && integer <= INT32_MAX) {
        put_byte(self, OP_BININT);
        put_little(self, bits, 4);
    } else {
        unsigned count = 5;
        while (count < 8 &&
               (integer >= 0 ? bits >> (8 * count - 1) : ~bits >> (8 * count - 1)) != 0)
            count++;
        put_byte(self, OP_LONG1);
        put_byte(self, count);
        put_little(self, bits, count);
    }
}

void pickle_put_unsigned(struct pickle_writer *self, uint64_t integer)
{
    if (integer <= INT64_MAX) {
        pickle_put_integer(self, (int64_t)integer);
        return;
    }
    put_byte(self, OP_LONG1);
    put_byte(self, 9);
    put_little(self, integer, 8);
    put_byte(self, 0);
}

void pickle_put_real(struct pickle_writer *self, double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    put_byte(self, OP_BINFLOAT);
    for (int shift = 56; shift >= 0; shift -= 8)
        put_byte(self, (unsigned)(bits >> shift) & 0xffu);
}

void pickle_put_bool(struct pickle_writer *self, bool value)
{
    put_byte(self, value ? OP_NEWTRUE : OP_NEWFALSE);
}

uint32_t pickle_remember(struct pickle_writer *self)
{
    put_byte(self, OP_MEMOIZE);
    return self->memo_count++;
}

void pickle_put_again(struct pickle_writer *self, uint32_t place)
{
    put_byte(self, place <= 0xff ? OP_BINGET : OP_LONG_BINGET);
    put_little(self, place, place <= 0xff ? 1 : 4);
}

/* The bytes of the text as UTF-8. */
static size_t readable_bytes(const char *text)
{
    size_t count = 0;
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = ar_utf8_bytes(text);
        count += bytes ? bytes : sizeof AR_UTF8_REPLACEMENT - 1;
    }
    return count;
}

static void write_text(struct pickle_writer *self, const char *text)
{
    size_t count = readable_bytes(text);
    put_byte(self, count <= 0xff ? OP_SHORT_BINUNICODE : OP_BINUNICODE);
    put_little(self, count, count <= 0xff ? 1 : 4);
    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = ar_utf8_bytes(text);
        if (bytes)
            put_bytes(self, text, bytes);
        else
            put_bytes(self, AR_UTF8_REPLACEMENT, sizeof AR_UTF8_REPLACEMENT - 1);
    }
}

void pickle_put_text(struct pickle_writer *self, const char *text)
{
    uint32_t index;
    if (self->status)
        return;
    size_t before = self->texts.count;
    enum ar_status status = texts_intern(&self->texts, text, strlen(text), &index, self->error);
    if (status) {
        fail(self, status);
    } else if (index < before) {
        pickle_put_again(self, self->places[index]);
    } else if (!ar_array_make_room(&self->places, before, &self->place_room,
                                   sizeof *self->places)) {
        fail(self, ar_error_set(self->error, AR_HOST_MEMORY, "no host memory to write a pickle"));
    } else {
        write_text(self, text);
        self->places[index] = pickle_remember(self);
    }
}

void pickle_make_pair(struct pickle_writer *self)
{
    put_byte(self, OP_TUPLE2);
}

void pickle_begin_list(struct pickle_writer *self)
{
    put_byte(self, OP_EMPTY_LIST);
    if (self->status)
        return;
    if (self->depth == PICKLE_DEPTH)
        fail(self, ar_error_set(self->error, AR_CORRUPT, "a pickle's lists are nested too deep"));
    else
        self->items[self->depth++] = 0;
}

void pickle_next_item(struct pickle_writer *self)
{
    if (self->status)
        return;
    unsigned *items = &self->items[self->depth - 1];
    if (*items == BATCH) {
        put_byte(self, OP_APPENDS);
        *items = 0;
    }
    if ((*items)++ == 0)
        put_byte(self, OP_MARK);
}

void pickle_end_list(struct pickle_writer *self)
{
    if (self->status)
        return;
    if (self->items[--self->depth])
        put_byte(self, OP_APPENDS);
}

void pickle_begin_dictionary(struct pickle_writer *self)
{
    put_byte(self, OP_EMPTY_DICT);
    put_byte(self, OP_MARK);
}

void pickle_end_dictionary(struct pickle_writer *self)
{
    put_byte(self, OP_SETITEMS);
}
