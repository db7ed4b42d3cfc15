/* Options are data. A policy, a generator and a device each bring one table; parsing,
 * range checks, help, defaults and the hint of a near name all come from it. */
#ifndef ALLOCATORS_OPTIONS_H
#define ALLOCATORS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/api.h"
#include "allocators/base/status.h"
#include "allocators/spec.h"

AR_BEGIN_DECLS

enum ar_option_type {
    AR_OPTION_BYTES,    /* uint64_t; text as ar_size_parse reads it */
    AR_OPTION_COUNT,    /* uint64_t */
    AR_OPTION_FRACTION, /* double */
    AR_OPTION_BOOL,     /* bool; true false yes no on off 1 0 */
    AR_OPTION_CHOICE,   /* int: the index into `choices` */
    AR_OPTION_TEXT,     /* const char *, owned by the spec that it was read from */
};

struct ar_option {
    const char *name; /* NULL ends a table */
    enum ar_option_type type;
    size_t offset;            /* of the field in the struct of values */
    const char *default_text; /* read with the same parser; NULL: the field stays zero */
    double least, most;       /* inclusive; both 0: no limit. Numbers only */
    const char *choices;      /* "tf|jax" for AR_OPTION_CHOICE */
    const char *help;         /* one line, with the unit where it has one */
};

/* Fills `values` (a zeroed struct) with the defaults of `table`, then with the pairs of
 * `link`. `owner` names the thing in errors ("policy growth"). INVALID names the option,
 * and the nearest one where a name is unknown. A key given twice is INVALID. */
AR_API enum ar_status ar_options_read(const struct ar_option *table,
                                      const struct ar_spec_link *link, const char *owner,
                                      void *values, struct ar_error *error) AR_STATUS_CHECKED;

/* The entry with that name, or NULL. */
AR_API const struct ar_option *ar_options_find(const struct ar_option *table, const char *name);

/* Of `count` names the nearest to `name` by edits, or NULL where none is near. */
AR_API const char *ar_nearest_name(const char *name, const char *const *names, size_t count);

AR_END_DECLS

#endif
