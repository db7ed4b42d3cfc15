/* The candidates of `advise` as policy specs: each setting of an allocator that a user can change,
 * pairs of them, and the other policies. */
#pragma once

#include "allocators/policies/torch/conf_keys.h"
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
    unsigned keys;    /* that it sets; 0: the defaults */
    /* How recommended it is, lower ones first: its key, then its value. 0, 0: no setting */
    unsigned key_order, order;
};

#define CANDIDATE_LEFT_OUT_MOST 8

struct candidates {
    struct candidate *at;
    size_t count, room;
    struct torch_release release; /* of PyTorch as the recorder; {0, 0}: not known */
    /* The keys that this release does not know, of settings that are not listed. */
    const struct torch_conf_key *left_out[CANDIDATE_LEFT_OUT_MOST];
    size_t left_out_count;
};

/* Lists the candidates for a recording of `recorder` ("torch 2.11.0", "xla 0.6", ...; "": not
 * known), without settings that this release of PyTorch does not know: first `given`, the recorded
 * setting without its limit; then the framework's defaults, single settings and pairs; last, if
 * `others` is set, every other ranked policy. The caller closes the list. */
enum ar_status candidates_list(const char *recorder, const char *given, bool others,
                               struct candidates *out, struct ar_error *error);
void candidates_close(struct candidates *self);

bool candidate_is_pair(const struct candidate *self);
/* Whether it replaces the framework's allocator instead of setting it. */
bool candidate_is_other_allocator(const struct candidate *self);

/* Writes the text that a user sets in that release of PyTorch ({0, 0}: not known). `setting`: the
 * text of the policy itself, or "". A fraction of the card is a call, not a key, if the release may
 * not know the key. */
void candidate_setting(const struct candidate *candidate, struct torch_release release,
                       const char *setting, char *out, size_t room);

/* The first release of PyTorch that accepts such a text; {0, 0}: every one. */
struct torch_release candidate_needs(const char *setting);

/* Writes a policy spec without the options that change no decision in a trace without a limit whose
 * largest request has `largest_bytes`. Specs with the same text make the same decisions. */
void candidate_effect(const char *spec, uint64_t largest_bytes, char *text, size_t text_bytes);

/* Writes a policy spec without its limit. INVALID if `text_bytes` is too small. */
enum ar_status candidates_without_limit(const char *spec, char *text, size_t text_bytes,
                                        struct ar_error *error);
