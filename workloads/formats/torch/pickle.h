/* A machine for Python's pickles that takes data only, protocols 0 to 5.
 *
 * It has numbers, texts, lists, tuples and dictionaries, and nothing that could run anything: an
 * opcode that names a class, calls or builds something, or asks for objects from elsewhere is
 * refused by its name. Containers belong to a sink, which hears of what is put into them and may
 * keep of it what it wants, so that a file need not fit into memory as a tree. */
#ifndef WORKLOADS_FORMATS_TORCH_PICKLE_H
#define WORKLOADS_FORMATS_TORCH_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workloads/io/input.h"

/* A value: its kind in the low four bits, above it what belongs to it. */
enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,   /* a number of 60 bits, signed */
    PICKLE_WIDE,  /* a whole number of up to 64 bits that does not fit there: the sink's index */
    PICKLE_FLOAT, /* the upper 60 bits of a double */
    PICKLE_TEXT,  /* text or bytes: the sink's index */
    PICKLE_PAIR,  /* a tuple of two whole numbers, 0 to 2^28 - 1 each */
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

/* Of a PICKLE_FLOAT. */
double pickle_float_of(uint64_t value);

/* The owner of what a pickle holds. Indexes are 60 bits wide. An error ends the reading; it is
 * prefixed with file and byte. */
struct pickle_sink {
    enum ar_status (*make_list)(void *argument, uint64_t *index, struct ar_error *error);
    enum ar_status (*make_dict)(void *argument, uint64_t *index, struct ar_error *error);
    enum ar_status (*append)(void *argument, uint64_t list, const uint64_t *items, size_t count,
                             struct ar_error *error);
    /* `count` pairs of key and value. */
    enum ar_status (*put)(void *argument, uint64_t dict, const uint64_t *pairs, size_t count,
                          struct ar_error *error);
    /* Bytes that need not be text; they are not kept for it. */
    enum ar_status (*text)(void *argument, const char *bytes, size_t length, uint64_t *index,
                           struct ar_error *error);
    /* A whole number as its 64 bits; `negative` says how they are meant. */
    enum ar_status (*wide)(void *argument, uint64_t bits, bool negative, uint64_t *index,
                           struct ar_error *error);
    void *argument;
};

/* Whether a file that begins so is a pickle. */
bool pickle_matches(const char *head, size_t count);

/* Reads one pickle from where `input` stands; what follows it is not looked at. FORMAT with file
 * and byte for what is damaged, too deep, too long or no data. */
enum ar_status pickle_read(struct trace_input *input, const struct pickle_sink *sink,
                           uint64_t *value, struct ar_error *error) AR_STATUS_CHECKED;

#endif
