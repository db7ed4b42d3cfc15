#include <ctype.h>

#include "allocators/base/rule.h"
#include "allocators/base/size.h"

#define MOST_DEPTH 16 /* of nested brackets and choices; also bounds the stack */

struct parser {
    const char *text, *at;
    const char *const *names;
    const char *problem; /* NULL: none so far */
    struct ar_rule *rule;
    unsigned depth;
};

static void fail(struct parser *p, const char *problem)
{
    if (!p->problem)
        p->problem = problem;
}

static char peek(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
    return *p->at;
}

static bool take(struct parser *p, char wanted)
{
    bool found = peek(p) == wanted;
    p->at += found;
    return found;
}

static void emit(struct parser *p, char operation, int64_t number)
{
    if (p->rule->count == AR_RULE_MOST_STEPS)
        fail(p, "more than 64 numbers, names and operators");
    else
        p->rule->steps[p->rule->count++] =
            (struct ar_rule_step){.operation = operation, .number = number};
}

static void parse_value(struct parser *p);

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.')
        length++;
    return length;
}

static void parse_number(struct parser *p)
{
    char word[32];
    struct ar_error ignored;
    size_t length = word_length(p->at);
    uint64_t value = 0;
    if (length < sizeof word) {
        memcpy(word, p->at, length);
        word[length] = '\0';
    }
    if (length >= sizeof word || ar_size_parse(word, &value, &ignored) || value > INT64_MAX)
        fail(p, "a number is expected, perhaps with a unit as in 2MiB");
    else
        p->at += length;
    emit(p, '#', (int64_t)value);
}

static void expect(struct parser *p, char wanted, const char *problem)
{
    if (!take(p, wanted))
        fail(p, problem);
}

static void parse_word(struct parser *p)
{
    size_t length = word_length(p->at);
    if (length == 3 && (!strncmp(p->at, "min", 3) || !strncmp(p->at, "max", 3))) {
        char operation = p->at[1] == 'i' ? 'm' : 'M';
        p->at += length;
        expect(p, '(', "( is expected after min and max");
        parse_value(p);
        expect(p, ',', "a comma is expected: min and max have two values");
        parse_value(p);
        expect(p, ')', ") is expected");
        emit(p, operation, 0);
        return;
    }
    for (int64_t i = 0; p->names[i]; i++)
        if (strlen(p->names[i]) == length && !strncmp(p->at, p->names[i], length)) {
            p->at += length;
            emit(p, '$', i);
            return;
        }
    fail(p, "a number, a name that this rule knows, min, max or ( is expected");
}

static void parse_unary(struct parser *p)
{
    bool minus = take(p, '-');
    char next = peek(p);
    if (minus)
        emit(p, '#', 0);
    if (isdigit((unsigned char)next))
        parse_number(p);
    else if (take(p, '(')) {
        parse_value(p);
        expect(p, ')', ") is expected");
    } else
        parse_word(p);
    if (minus)
        emit(p, '-', 0);
}

/* Operands between operators of one rank, from left to right. */
static void parse_row(struct parser *p, void (*operand)(struct parser *p), const char *operators)
{
    operand(p);
    for (char next = peek(p); !p->problem && next && strchr(operators, next); next = peek(p)) {
        p->at++;
        operand(p);
        emit(p, next, 0);
    }
}

static void parse_product(struct parser *p)
{
    parse_row(p, parse_unary, "*/");
}

static void parse_sum(struct parser *p)
{
    parse_row(p, parse_product, "+-");
}

static void parse_value(struct parser *p)
{
    if (++p->depth > MOST_DEPTH)
        fail(p, "it is nested too deeply");
    if (p->problem)
        return;
    parse_sum(p);
    char next = peek(p);
    if (next == '<' || next == '>') {
        p->at++;
        bool equal = *p->at == '=';
        p->at += equal;
        parse_sum(p);
        emit(p, equal ? (next == '<' ? 'l' : 'g') : next, 0);
    }
    if (take(p, '?')) {
        parse_value(p);
        expect(p, ':', ": is expected after the first value of a choice");
        parse_value(p);
        emit(p, '?', 0);
    }
    p->depth--;
}

enum ar_status ar_rule_parse(const char *text, const char *const *names, const char *owner,
                             struct ar_rule *out, struct ar_error *error)
{
    struct parser p = {.text = text, .at = text, .names = names, .rule = out};
    out->count = 0;
    parse_value(&p);
    if (!p.problem && peek(&p))
        fail(&p, "an operator or the end is expected");
    if (!p.problem)
        return AR_OK;
    char known[160] = "";
    size_t used = 0;
    for (size_t i = 0; names[i]; i++) {
        size_t length = strlen(names[i]);
        if (used + length + 3 > sizeof known)
            break;
        memcpy(known + used, i ? ", " : "", i ? 2 : 0);
        used += i ? 2 : 0;
        memcpy(known + used, names[i], length + 1);
        used += length;
    }
    return ar_invalid(error, "%s, character %zu of \"%s\": %s; names are %s", owner,
                      (size_t)(p.at - text) + 1, text, p.problem, known);
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static int64_t nearest(bool below)
{
    return below ? INT64_MIN : INT64_MAX;
}

static int64_t apply(char operation, int64_t a, int64_t b)
{
    int64_t out;
    switch (operation) {
    case '+':
        return __builtin_add_overflow(a, b, &out) ? nearest(b < 0) : out;
    case '-':
        return __builtin_sub_overflow(a, b, &out) ? nearest(b > 0) : out;
    case '*':
        return __builtin_mul_overflow(a, b, &out) ? nearest((a < 0) != (b < 0)) : out;
    case '/':
        return b == 0 ? 0 : a == INT64_MIN && b == -1 ? INT64_MAX : a / b;
    case '<':
        return a < b;
    case '>':
        return a > b;
    case 'l':
        return a <= b;
    case 'g':
        return a >= b;
    case 'm':
        return a < b ? a : b;
    default: /* 'M' */
        return a > b ? a : b;
    }
}

int64_t ar_rule_value(const struct ar_rule *rule, const int64_t *values)
{
    int64_t stack[AR_RULE_MOST_STEPS];
    uint32_t top = 0;
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct ar_rule_step *step = &rule->steps[i];
        if (step->operation == '#')
            stack[top++] = step->number;
        else if (step->operation == '$')
            stack[top++] = values[step->number];
        else if (step->operation == '?') {
            top -= 2;
            stack[top - 1] = stack[top - 1] ? stack[top] : stack[top + 1];
        } else {
            top--;
            stack[top - 1] = apply(step->operation, stack[top - 1], stack[top]);
        }
    }
    return top ? stack[top - 1] : 0;
}
