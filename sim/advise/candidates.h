/* The settings of an allocator that a user can change, one by one and in pairs, as policy specs;
 * and the other policies there are. */
#ifndef SIM_ADVISE_CANDIDATES_H
#define SIM_ADVISE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/registry.h"

#define CANDIDATE_SPEC_ROOM 640

struct candidate {
    char spec[CANDIDATE_SPEC_ROOM];
    char text[192];   /* what a user sets to get it, where the policy itself does not know: an
                         environment variable or a line of code; "" else */
    const char *cost; /* a sentence; NULL: none is known */
    bool own;         /* of the recorder's own framework */
    bool given;       /* what the user has now */
    size_t half[2];   /* of a pair, which two settings it joins; 0, 0: no pair */
};

struct candidates {
    struct candidate *at;
    size_t count, room;
};

/* All for a recording of `recorder` ("torch 2.11.0", "xla 0.6", ...; "" is unknown): first `given`,
 * the recorded setting without its limit, then the framework's defaults, single settings and pairs;
 * last, where `others` is set, every other ranked policy. candidates_close. */
enum ar_status candidates_list(const char *recorder, const char *given, bool others,
                               struct candidates *out, struct ar_error *error) AR_STATUS_CHECKED;
void candidates_close(struct candidates *self);

/* A policy spec without its limit; INVALID where it does not fit into `text_bytes`. */
enum ar_status candidates_without_limit(const char *spec, char *text, size_t text_bytes,
                                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
