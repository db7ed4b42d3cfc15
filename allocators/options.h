/* Options are tables. Each policy, generator and device has one; parsing, range checks, help,
 * defaults and the suggestion of a near name use it. */
#ifndef ALLOCATORS_OPTIONS_H
#define ALLOCATORS_OPTIONS_H

#include "allocators/spec.h"

AR_BEGIN_DECLS

enum ar_option_type {
    AR_OPTION_BYTES,    /* uint64_t; read by ar_size_parse */
    AR_OPTION_COUNT,    /* uint64_t */
    AR_OPTION_FRACTION, /* double */
    AR_OPTION_BOOL,     /* bool; true false yes no on off 1 0 */
    AR_OPTION_CHOICE,   /* int: an index of `choices` */
    AR_OPTION_TEXT,     /* const char *, owned by the spec */
};

struct ar_option {
    const char *name; /* NULL ends a table */
    enum ar_option_type type;
    size_t offset;            /* of the field in the struct of values */
    const char *default_text; /* parsed like a given value; NULL: the field stays zero */
    double least, most;       /* for numbers, inclusive; both 0: no limit */
    const char *choices;      /* for AR_OPTION_CHOICE: "tf|jax" */
    const char *help;         /* one line, with the unit */
};

/* Rows of a table whose options have the names of their fields, in the struct that AR_OPT_OF is
 * defined as before the table: AR_OPT_COUNT(steps, "400", 1, 1e9, "training steps"). */
/* clang-format off */
#define AR_OPT_ROW(field, type, standard, least, most, choices, help)                              \
    {#field, type, offsetof(AR_OPT_OF, field), standard, least, most, choices, help}
/* clang-format on */
#define AR_OPT_BYTES(field, standard, least, most, help)                                           \
    AR_OPT_ROW(field, AR_OPTION_BYTES, standard, least, most, NULL, help)
#define AR_OPT_COUNT(field, standard, least, most, help)                                           \
    AR_OPT_ROW(field, AR_OPTION_COUNT, standard, least, most, NULL, help)
#define AR_OPT_FRACTION(field, standard, least, most, help)                                        \
    AR_OPT_ROW(field, AR_OPTION_FRACTION, standard, least, most, NULL, help)
#define AR_OPT_BOOL(field, standard, help)                                                         \
    AR_OPT_ROW(field, AR_OPTION_BOOL, standard, 0, 0, NULL, help)
#define AR_OPT_CHOICE(field, standard, choices, help)                                              \
    AR_OPT_ROW(field, AR_OPTION_CHOICE, standard, 0, 0, choices, help)
#define AR_OPT_TEXT(field, standard, help)                                                         \
    AR_OPT_ROW(field, AR_OPTION_TEXT, standard, 0, 0, NULL, help)

/* Fills `values` (a zeroed struct) with the defaults of `table` and then with the pairs of `link`.
 * `owner` is the subject of errors ("policy growth"). INVALID names the option, and for an unknown
 * name the nearest one. A key that is given twice is INVALID. */
AR_API enum ar_status ar_options_read(const struct ar_option *table,
                                      const struct ar_spec_link *link, const char *owner,
                                      void *values, struct ar_error *error);

/* The entry with that name, or NULL. */
AR_API const struct ar_option *ar_options_find(const struct ar_option *table, const char *name);

/* The name that is nearest to `name` by edits, or NULL if none is near. */
AR_API const char *ar_nearest_name(const char *name, const char *const *names, size_t count);

/* INVALID, as in "policy growth has no option "limti"; did you mean "limit"?". If no name is near,
 * the sentence ends with `else_do`, or with the list of names if that is NULL. */
enum ar_status ar_name_unknown(const char *has_no, const char *name, const char *const *names,
                               size_t count, const char *else_do, struct ar_error *error);

AR_END_DECLS

#endif
