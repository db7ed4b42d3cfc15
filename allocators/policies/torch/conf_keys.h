/* The keys of PYTORCH_CUDA_ALLOC_CONF, and the releases of PyTorch that accept each of them. A
 * release stops at its first CUDA call if it does not know a key or refuses its value. */
#pragma once

#include "allocators/base/status.h"

/* A minor release: patch releases accept the same keys. {0, 0}: not known. */
struct torch_release {
    uint16_t major, minor;
};

enum torch_conf_effect {
    TORCH_CONF_PLACES,  /* changes where blocks go, or what is reserved: the policy has it */
    TORCH_CONF_INERT,   /* changes concurrency, the host pool or accounting, but no decision here */
    TORCH_CONF_MISSING, /* changes decisions, but the policy does not have it */
};

struct torch_conf_key {
    const char *name;
    const char *value; /* this value, or values that begin with this bracket; NULL: all others */
    struct torch_release first, last; /* last {0, 0}: the newest release accepts it */
    enum torch_conf_effect effect;
};

/* The newest release that the table was compared with. */
#define TORCH_RELEASE_NEWEST ((struct torch_release){2, 15})

/* The entry of a key with that value (NULL: any); NULL: no release accepts it. */
const struct torch_conf_key *torch_conf_key_find(const char *name, const char *value);

/* By index from 0, in the order of releases; NULL: there are no more. */
const struct torch_conf_key *torch_conf_key_at(size_t index);

/* Whether the release accepts the key of the entry. A release that is not known accepts it. */
bool torch_conf_key_accepted(const struct torch_conf_key *key, struct torch_release release);

/* Reads a version such as "2.4.0", "torch 2.11.0+cu128" or "2.15.0a0+gitabc"; {0, 0} if the text
 * has none. */
struct torch_release torch_release_read(const char *text);

/* Below, equal to or above 0, as a is older, equal or newer. */
int torch_release_compare(struct torch_release a, struct torch_release b);

/* Calls `visit` for each key:value of a configuration string until it returns false. Blanks are
 * left out, as PyTorch does. False: the string is not a list of key:value; `*at` is the place. */
typedef bool torch_conf_visit(void *argument, const char *key, const char *value);
bool torch_conf_each(const char *conf, torch_conf_visit *visit, void *argument, const char **at);

#define TORCH_DIVISION_INTERVALS 16 /* 1 MiB, 2 MiB, .. 32 GiB and more */

/* Reads a value of roundup_power2_divisions into TORCH_DIVISION_INTERVALS numbers of steps, of
 * which 0 and 1 mean plain rounding, by the rules of a release ({0, 0}: the newest). INVALID: a
 * sentence. */
enum ar_status torch_divisions_read(const char *text, struct torch_release release,
                                    uint64_t *divisions, struct ar_error *error);

/* The first release that accepts all keys of a configuration string, and in `key` the key that
 * needs it; {0, 0}: every release with such a string, or a key that no release accepts. */
struct torch_release torch_conf_first(const char *conf, const struct torch_conf_key **key);
