/* Python's pickles of data: a machine that reads protocols 0 to 5, and a writer.
 *
 * The machine knows numbers, texts, lists, tuples and dictionaries, and can run nothing: an opcode
 * that names a class, calls or builds something, or asks for objects from elsewhere is refused by
 * its name. Containers belong to a sink, which is told about the values put into them and keeps of
 * them what it needs, so that a file need not fit into memory as a tree. */
#pragma once

#include "workloads/io/file.h"
#include "workloads/trace/tables.h"

/* A value: its kind in the low four bits, its payload above. */
enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,   /* a signed number of 60 bits */
    PICKLE_WIDE,  /* an integer of up to 64 bits that does not fit there: the sink's index */
    PICKLE_FLOAT, /* the upper 60 bits of a double */
    PICKLE_TEXT,  /* text or bytes: the sink's index */
    PICKLE_PAIR,  /* a tuple of two integers, 0 to 2^28 - 1 each */
    PICKLE_LIST,  /* a list, a set or another tuple: the sink's index */
    PICKLE_DICT,  /* the sink's index */
    PICKLE_OTHER, /* a number of more than 64 bits, or a text that is too long to keep */
};

static inline enum pickle_kind pickle_kind_of(uint64_t value)
{
    return (enum pickle_kind)(value & 15);
}

static inline uint64_t pickle_payload(uint64_t value)
{
    return value >> 4;
}

static inline uint64_t pickle_make(enum pickle_kind kind, uint64_t payload)
{
    return payload << 4 | (uint64_t)kind;
}

/* Of a PICKLE_INT. */
static inline int64_t pickle_int_of(uint64_t value)
{
    return (int64_t)value >> 4;
}

/* Of a PICKLE_FLOAT, and the reverse. */
double pickle_float_of(uint64_t value);
uint64_t pickle_make_float(double number);

/* The owner of the values of a pickle. Indexes have 60 bits. An error ends the reading; it gets
 * file and byte in front. */
struct pickle_sink {
    enum ar_status (*make_list)(void *argument, uint64_t *index, struct ar_error *error);
    enum ar_status (*make_dict)(void *argument, uint64_t *index, struct ar_error *error);
    enum ar_status (*append)(void *argument, uint64_t list, const uint64_t *items, size_t count,
                             struct ar_error *error);
    /* `count` pairs of key and value. */
    enum ar_status (*put)(void *argument, uint64_t dict, const uint64_t *pairs, size_t count,
                          struct ar_error *error);
    /* Bytes, which need not be text; valid during the call. */
    enum ar_status (*text)(void *argument, const char *bytes, size_t length, uint64_t *index,
                           struct ar_error *error);
    /* An integer as its 64 bits; `negative` gives their sign. */
    enum ar_status (*wide)(void *argument, uint64_t bits, bool negative, uint64_t *index,
                           struct ar_error *error);
    void *argument;
};

/* Puts values into a list, or keys and values in turn into a dictionary. */
enum ar_status pickle_fill(const struct pickle_sink *sink, enum pickle_kind kind, uint64_t index,
                           const uint64_t *items, size_t count, struct ar_error *error);
/* Whether these values can be one PICKLE_PAIR. */
bool pickle_pair_of(const uint64_t *items, size_t count, uint64_t *pair);
/* The value of an integer. */
enum ar_status pickle_number(const struct pickle_sink *sink, uint64_t bits, bool negative,
                             uint64_t *value, struct ar_error *error);

/* Whether a file that begins so is a pickle. */
bool pickle_matches(const char *head, size_t count);

/* Reads one pickle from the current position of `input` and ignores what follows. FORMAT with file
 * and byte if it is damaged, too deep, too long or more than data. */
enum ar_status pickle_read(struct trace_input *input, const struct pickle_sink *sink,
                           uint64_t *value, struct ar_error *error);

/* ---- writing ---- */

/* Writes protocol 4, and only those of its opcodes that PyTorch's snapshot viewer knows, a program
 * in JavaScript that reads fewer than Python does. Values are written as they come, so memory does
 * not grow with the file. Only texts are remembered, because a second use of one takes 2 bytes.
 * `pickle_output` takes the bytes. */
typedef enum ar_status pickle_output(void *argument, const void *bytes, size_t count,
                                     struct ar_error *error);

enum { PICKLE_DEPTH = 16, PICKLE_BUFFER = 1 << 14 };

struct pickle_writer {
    pickle_output *output;
    void *argument;
    struct ar_error *error;
    enum ar_status status; /* the first failure; nothing is written after it */
    struct texts texts;    /* those in the memo */
    uint32_t *places;      /* by text: its number in the memo */
    size_t place_room;
    uint32_t memo_count;
    unsigned depth;
    unsigned items[PICKLE_DEPTH]; /* of each open list, since its last batch */
    size_t used;
    unsigned char buffer[PICKLE_BUFFER];
};

/* Begins a pickle. `error` gets the first failure, whose status pickle_end returns. */
void pickle_begin(struct pickle_writer *self, pickle_output *output, void *argument,
                  struct ar_error *error);
/* Ends it and frees its memory; also after a failure. */
enum ar_status pickle_end(struct pickle_writer *self);

void pickle_put_integer(struct pickle_writer *self, int64_t integer);
void pickle_put_unsigned(struct pickle_writer *self, uint64_t integer);
void pickle_put_real(struct pickle_writer *self, double real);
void pickle_put_bool(struct pickle_writer *self, bool value);
/* Bytes that are no UTF-8 become U+FFFD. */
void pickle_put_text(struct pickle_writer *self, const char *text);

/* The two values put last become a tuple. */
void pickle_make_pair(struct pickle_writer *self);

/* A list: pickle_next_item before each of its values. */
void pickle_begin_list(struct pickle_writer *self);
void pickle_next_item(struct pickle_writer *self);
void pickle_end_list(struct pickle_writer *self);

/* A dictionary: its keys and values follow in turn. */
void pickle_begin_dictionary(struct pickle_writer *self);
void pickle_end_dictionary(struct pickle_writer *self);

/* Remembers the value put last and returns its number, for pickle_put_again. */
uint32_t pickle_remember(struct pickle_writer *self);
void pickle_put_again(struct pickle_writer *self, uint32_t place);
