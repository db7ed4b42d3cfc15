/* The candidates of `advise` as policy specs: each setting of an allocator that a user can change,
 * pairs of them, and the other policies. */
#ifndef SIM_ADVISE_CANDIDATES_H
#define SIM_ADVISE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/registry.h"

#define CANDIDATE_SPEC_ROOM 640

struct candidate {
    char spec[CANDIDATE_SPEC_ROOM];
    char text[192];   /* what a user sets, if the policy itself cannot say it: an environment
                         variable or a line of code; else "" */
    const char *cost; /* a sentence; NULL: not known */
    bool own;         /* of the recorder's own framework */
    bool given;       /* the current setting of the user */
    size_t half[2];   /* of a pair: the indices of its two settings; 0, 0: not a pair */
};

struct candidates {
    struct candidate *at;
    size_t count, room;
};

/* Lists the candidates for a recording of `recorder` ("torch 2.11.0", "xla 0.6", ...; "": not
 * known): first `given`, the recorded setting without its limit; then the framework's defaults,
 * single settings and pairs; last, if `others` is set, every other ranked policy. The caller closes
 * the list. */
enum ar_status candidates_list(const char *recorder, const char *given, bool others,
                               struct candidates *out, struct ar_error *error) AR_STATUS_CHECKED;
void candidates_close(struct candidates *self);

/* Writes a policy spec without its limit. INVALID if `text_bytes` is too small. */
enum ar_status candidates_without_limit(const char *spec, char *text, size_t text_bytes,
                                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
