/* Between the files of the pull parser: its state, and the steps that they share. */
#ifndef WORKLOADS_IO_JSON_STATE_H
#define WORKLOADS_IO_JSON_STATE_H

#include "workloads/io/json_pull.h"

enum { JSON_WINDOW = 1 << 16 };

enum json_state {
    STATE_VALUE,       /* a value must come */
    STATE_FIRST_VALUE, /* a value or the end of an array */
    STATE_FIRST_KEY,   /* a key or the end of an object */
    STATE_KEY,         /* a key must come */
    STATE_AFTER_VALUE, /* a comma or an end */
    STATE_DONE,        /* the value of the file is complete */
};

struct json_pull {
    struct trace_input *input;
    enum json_state state;
    unsigned depth;
    unsigned char objects[JSON_DEPTH_LIMIT / 8]; /* bit d: the level d + 1 is an object */
    bool ended;                                  /* the window holds the last bytes */
    const unsigned char *at, *end;               /* of the window */
    const unsigned char *counted;                /* lines are counted up to here */
    uint64_t line, bytes_before;                 /* of the window's first byte */
    size_t text_length;
    bool text_cut;
    char text[JSON_TEXT_LIMIT + 1];
    unsigned char window[JSON_WINDOW + 1];
};

/* More bytes; all of the window is used up. None are left where `ended`. */
enum ar_status json_refill(struct json_pull *pull, struct ar_error *error) AR_STATUS_CHECKED;
/* Makes a byte stand at `at`; the end of the file is refused. */
enum ar_status json_need(struct json_pull *pull, struct ar_error *error) AR_STATUS_CHECKED;
/* To the next byte that is no white space; `at` is `end` at the end of the file. */
enum ar_status json_skip_blanks(struct json_pull *pull, struct ar_error *error) AR_STATUS_CHECKED;
/* The sentence for a file that ends too soon. Returns FORMAT. */
enum ar_status json_cut_off(struct json_pull *pull, struct ar_error *error);

/* Adds to the text as far as there is room. */
void json_keep(struct json_pull *pull, const void *bytes, size_t count);
/* After an opening quote, past the closing one: into the text, or nowhere. */
enum ar_status json_read_string(struct json_pull *pull, struct ar_error *error) AR_STATUS_CHECKED;
enum ar_status json_skip_string(struct json_pull *pull, struct ar_error *error) AR_STATUS_CHECKED;

#endif
