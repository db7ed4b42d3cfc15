/* What the parts of the interpreter of steps share: steps.c reads scripts and values, steps_ops.c
 * has the rig and its operations, steps_run.c whole runs. */
#pragma once

#include "allocators/relay.h"
#include "tests/support/policy_rig.h"
#include "tests/support/test.h"

enum { MOST_LINES = 256, MOST_THINGS = 1200, MOST_WORDS = 16, LINE = 256, NAME = 64 };

/* What a name stands for: a number, or a block or ticket with its address or value. */
struct thing {
    char name[NAME];
    long double value; /* exact for whole numbers of 64 bits */
    struct ar_policy_block block;
    struct ar_backing_ticket ticket;
    uint32_t stream; /* of the request */
    bool live;
};

struct steps {
    const char *path;
    struct {
        unsigned number;
        char text[LINE];
    } lines[MOST_LINES];
    size_t count, line;  /* and the one that runs: */
    char text[4 * LINE]; /* with values in place of $names */
    const char *at;      /* what is not yet read of it */
    struct thing things[MOST_THINGS];
    size_t thing_count;
    struct {
        char name[NAME], text[LINE];
        bool is_file;
    } words[MOST_WORDS]; /* of `each`, and the paths of files */
    size_t word_count;

    struct ar_device *device; /* NULL: the fake backing */
    struct ar_backing *backing;
    struct policy_rig rig;
    struct ar_policy *policy; /* NULL: a device alone */
    bool pinned, misused, card, in_child;
    bool fails;   /* in the process of a line that must fail */
    bool stopped; /* a request ended with a status that stops a run */
    uint64_t event;
    struct relay relay;        /* between the policy and its memory */
    uint64_t copies, refusals; /* copies so far; of the next calls `refused` */
    uint64_t copied_from;      /* of the last copy on the device */
    enum relay_hook refused;
    bool another_takes; /* another process takes what is free after a copy */
    char host_byte;     /* for copies from and to the host */
};

/* The test fails, at the line that runs. */
void steps_wrong(const struct steps *s, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* The next of the line: its end; this text, if it is next; a name; all of it. */
bool steps_at_end(struct steps *s);
bool steps_take(struct steps *s, const char *text);
void steps_name(struct steps *s, char name[NAME]);
const char *steps_rest(struct steps *s);
/* The next word, and all before "->" or the end; "": there is nothing. */
void steps_word(struct steps *s, char *word, size_t room);
void steps_until_arrow(struct steps *s, char *text, size_t room);
/* A value that may be a fraction, and one that must be whole; the thing that a name stands for,
 * which is there, or is made. */
long double steps_real(struct steps *s);
uint64_t steps_value(struct steps *s);
uint32_t steps_id(struct steps *s, const char *of); /* of a "stream" or "pool": 32 bits */
struct thing *steps_thing(struct steps *s);
struct thing *steps_new(struct steps *s);
struct thing *steps_make(struct steps *s, const char *name);
struct thing *steps_find(struct steps *s, const char *name); /* NULL: there is none */

void steps_run_lines(struct steps *s, size_t from, size_t to);

/* Compares with what the line expects: a status and its sentence, a number, a text. */
void steps_is_status(struct steps *s, enum ar_status status, enum ar_status wanted,
                     const char *sentence);
enum ar_status steps_status(struct steps *s);
void steps_ended(struct steps *s, enum ar_status status, const char *sentence);
void steps_is_equal(struct steps *s, uint64_t got, uint64_t wanted);
void steps_answered(struct steps *s, uint64_t got);
void steps_is_text(struct steps *s, const char *got, bool whole);

/* steps_ops.c: a figure by its name; the operation that the line begins with, if any. */
bool steps_figure(struct steps *s, const char *name, uint64_t *value);
bool steps_operation(struct steps *s);
void steps_close_rig(struct steps *s);
/* The test fails if none is open. */
void steps_need_policy(const struct steps *s);
void steps_need_device(const struct steps *s);

/* steps_card.c: a device over the stand-in for the driver, if both are built, else the case is
 * skipped. */
struct ar_device *steps_card_open(const char *spec);
void steps_card_close(struct ar_device *device);
bool steps_card_figure(const char *name, uint64_t *value);
void steps_card_fail(const char *name);
struct stand_in;
bool steps_card_count(const struct stand_in *card, const char *name, uint64_t *value);

/* steps_run.c: the same of whole runs; forgets the last run and the events; those that lines
 * `event` added. */
bool steps_run_operation(struct steps *s);
bool steps_run_figure(const char *name, uint64_t *value);
void steps_run_begin(void);
const char *steps_events(void);

/* steps_learned.c: the same of `learned`. */
bool steps_learned_operation(struct steps *s);
bool steps_learned_figure(const char *name, uint64_t *value);
void steps_learned_begin(void);

/* steps_plugin.c: the same of the plug-in; runs lines in a process with it, or in its child. */
bool steps_plugin_operation(struct steps *s);
bool steps_plugin_figure(const char *name, uint64_t *value);
void steps_plugin_run(struct steps *s, size_t from, size_t to);
void steps_fork_run(struct steps *s, size_t from, size_t to);

/* Fields of a struct by name, to fill in and to read: {FIELD(type, member), ..}. */
struct steps_field {
    const char *name;
    size_t offset, bytes;
    bool real; /* a double */
};
#define STEPS_FIELD(name, type, member)                                                            \
    {                                                                                              \
        name, offsetof(struct type, member), sizeof(((struct type *)0)->member),                   \
            _Generic(((struct type *)0)->member, double                                            \
                     : true, default                                                               \
                     : false)                                                                      \
    }
#define FIELD(type, member) STEPS_FIELD(#member, type, member)
/* False: there is no such field. */
bool steps_get(const char *name, const struct steps_field *fields, size_t count, const void *base,
               long double *value);
#define STEPS_GET(name, fields, base, value) steps_get(name, fields, COUNT(fields), base, value)
/* Reads FIELD=VALUE, an end of which "->" and the end of the line are; false: it is not there. */
bool steps_set_field(struct steps *s, const struct steps_field *fields, size_t count, void *base);

/* steps_twin.c: scenarios of `twin`. A figure may read its arguments, "(..)", from the line. */
bool steps_twin_operation(struct steps *s);
bool steps_twin_figure(struct steps *s, const char *name, long double *value);
void steps_twin_begin(void);

/* steps_rules.c: the rules of the twin's sizes. */
bool steps_rules_operation(struct steps *s);
bool steps_rules_figure(struct steps *s, const char *name, long double *value);
void steps_rules_begin(void);

/* steps_suites.c: several processes, advice, driver calls, a stream of requests. */
bool steps_suites_operation(struct steps *s);
bool steps_suites_figure(struct steps *s, const char *name, long double *value);
void steps_suites_begin(void);

/* steps_kernel.c: the shape of a kernel op, its limits, its time. */
bool steps_kernel_operation(struct steps *s);

/* steps_traces.c: parts of traces, and several of them. */
bool steps_traces_operation(struct steps *s);
bool steps_traces_figure(const char *name, long double *value);
void steps_traces_begin(void);
