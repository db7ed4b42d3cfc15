/* Rules: expressions over named integers, which decide for a policy. A text is parsed once, into
 * postfix order.
 *
 *     value   = compare [ "?" value ":" value ]
 *     compare = sum [ ( "<" | ">" | "<=" | ">=" ) sum ]           1 or 0
 *     sum     = product { ( "+" | "-" ) product }
 *     product = unary { ( "*" | "/" ) unary }
 *     unary   = [ "-" ] ( number | name | "(" value ")" | call )
 *     call    = ( "min" | "max" ) "(" value "," value ")"
 *
 * Values are 64-bit integers, so every machine computes the same. A result outside their range
 * becomes the nearest one inside it; a quotient by 0 is 0. A number may have a unit: 2MiB. */
#ifndef ALLOCATORS_BASE_RULE_H
#define ALLOCATORS_BASE_RULE_H

#include "allocators/base/status.h"

AR_BEGIN_DECLS

#define AR_RULE_MOST_STEPS 64u /* numbers, names and operators of a rule */

struct ar_rule_step {
    int64_t number; /* or the index of a name */
    char operation; /* '#' number, '$' name, else the operator */
};

struct ar_rule {
    struct ar_rule_step steps[AR_RULE_MOST_STEPS];
    uint32_t count; /* 0: no rule */
};

/* Parses `text`. `names` ends with NULL. `owner` is the subject of an error, which names the place
 * in the text. INVALID: no rule. */
enum ar_status ar_rule_parse(const char *text, const char *const *names, const char *owner,
                             struct ar_rule *out, struct ar_error *error);

/* `values` are those of the names, in their order. */
int64_t ar_rule_value(const struct ar_rule *rule, const int64_t *values);

AR_END_DECLS

#endif
