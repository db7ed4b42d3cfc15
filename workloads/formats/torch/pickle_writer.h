/* Writes Python pickles of plain data: numbers, texts, lists, pairs and dictionaries.
 *
 * Protocol 4, and only those of its opcodes that PyTorch's snapshot viewer knows, a program in
 * JavaScript that reads fewer than Python does. Values are written as they come, so memory does not
 * grow with the file. Only texts are remembered, because a second use of one takes 2 bytes. */
#ifndef WORKLOADS_FORMATS_TORCH_PICKLE_WRITER_H
#define WORKLOADS_FORMATS_TORCH_PICKLE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "workloads/trace/texts.h"

/* Where the bytes go. */
typedef enum ar_status pickle_sink(void *argument, const void *bytes, size_t count,
                                   struct ar_error *error);

enum { PICKLE_DEPTH = 16, PICKLE_BUFFER = 1 << 14 };

struct pickle_writer {
    pickle_sink *sink;
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
void pickle_begin(struct pickle_writer *self, pickle_sink *sink, void *argument,
                  struct ar_error *error);
/* Ends it and frees its memory; also after a failure. */
enum ar_status pickle_end(struct pickle_writer *self) AR_STATUS_CHECKED;

void pickle_put_integer(struct pickle_writer *self, int64_t integer);
void pickle_put_unsigned(struct pickle_writer *self, uint64_t integer);
void pickle_put_real(struct pickle_writer *self, double real);
void pickle_put_bool(struct pickle_writer *self, bool value);
void pickle_put_none(struct pickle_writer *self);
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

#endif
