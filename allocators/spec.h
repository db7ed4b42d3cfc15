/* Specs: `NAME:key=value,...`, after decorators: `checked+fault(n=3)+growth:limit=2GiB`. The same
 * grammar is used for policies, workloads (`random:seed=3`) and devices (`sim:profile=h100`).
 *
 *     spec  = { link "+" } link
 *     link  = name [ "(" pairs ")" ] [ ":" pairs ]     the colon only in the last link
 *     pairs = [ pair { "," pair } ]
 *     pair  = key [ "=" value ]
 *
 * 1. A name ends at the first colon, plus sign or opening bracket. Other characters may be in it,
 *    so a file is a name (./mine.so, data/T.csv).
 * 2. Pairs follow the colon up to the end of the text. There a value ends only at a comma, so
 *    paths, colons, equal signs and plus signs need no quotes. In the bracket form a value ends at
 *    a comma or a closing bracket.
 * 3. A name or value that begins with ' or " ends at the same sign, so it may contain a comma:
 *    torch:conf='expandable_segments:True,max_split_size_mb:64'. A quote that is not the first
 *    character is an ordinary character.
 * 4. Blanks around names, keys and values are dropped, except in quotes. */
#ifndef ALLOCATORS_SPEC_H
#define ALLOCATORS_SPEC_H

#include "allocators/base/status.h"

AR_BEGIN_DECLS

struct ar_spec_pair {
    const char *key;
    const char *value; /* without quotes; "" if the key has no value */
    bool alone;        /* no equal sign: `key`, which differs from `key=` */
};

/* One name with its pairs. The links before the last one are decorators. */
struct ar_spec_link {
    const char *name; /* may be a path such as ./mine.so */
    const struct ar_spec_pair *pairs;
    size_t pair_count;
};

/* Names in addition to the built-in ones, which come first. Both lists end with NULL. */
struct ar_policy_ops;
struct ar_device_kind;
struct ar_catalog {
    const struct ar_policy_ops *const *policies;
    const struct ar_device_kind *const *devices;
};

struct ar_spec {
    const char *text; /* unchanged */
    struct ar_spec_link *links;
    size_t link_count;                /* at least 1 */
    void *storage;                    /* private; all pointers above point into it */
    const struct ar_catalog *catalog; /* more names; NULL after ar_spec_parse */
};

/* Parses the text. On success the caller owns `out` and closes it. INVALID names the place in the
 * text. */
AR_API enum ar_status ar_spec_parse(const char *text, struct ar_spec *out, struct ar_error *error);
AR_API void ar_spec_close(struct ar_spec *spec);

/* The value of a key, which belongs to the spec; NULL: it is not given. */
static inline const char *ar_spec_link_value(const struct ar_spec_link *link, const char *key)
{
    for (size_t i = 0; i < link->pair_count; i++)
        if (strcmp(link->pairs[i].key, key) == 0)
            return link->pairs[i].value;
    return NULL;
}

/* The same for the last link, the policy, workload or device itself. */
static inline const char *ar_spec_value(const struct ar_spec *spec, const char *key)
{
    return ar_spec_link_value(&spec->links[spec->link_count - 1], key);
}

AR_END_DECLS

#endif
