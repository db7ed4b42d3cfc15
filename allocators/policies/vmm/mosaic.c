/* mosaic: vmm with its decisions open to variation, and with the values that a search on the train
 * split of the data set found as defaults (bench/search/README.md).
 *
 * What differs from vmm.h
 *
 * 1. A block in a free block goes to its end if it takes no whole handle there, but one at the
 *    start: what cannot be moved is used first.
 * 2. Driver calls have a budget. Expandable segments of PyTorch have a handle for each 20 MiB of
 *    large blocks, and a handle takes as long to make and map if it is larger. The policy is behind
 *    as long as its handles have less than 18 MiB / f on average, where f is the part of the device
 *    that they have, and memory was not short since the start or the last trim. So small handles
 *    are made when the device is nearly full. If it is behind, a handle has up to 28 MiB beyond the
 *    end of a block, or 40 MiB inside (less as the device fills), but at most 1/8 of what is left.
 *    If it is not behind, or memory is short, a handle ends with the whole pages of its block and
 *    has at most 16 MiB, and the page that blocks share is a handle of its own, so that all memory
 *    of a free block but its ends can move.
 * 3. A request that would fail is glued (glue.c). A handle that is partly used cannot be moved, but
 *    it can be mapped at a second address. The block begins in the free end of one such handle,
 *    goes on in handles that are moved, and ends in the free start of another one. When it is
 *    freed, both parts go back, and the second mappings are unmapped when their work is done.
 * 4. The device is asked for its free memory only when less than what is needed is known to be
 *    free. vmm asks at each mapping and after each fence, more often than it makes all other
 *    driver calls, and cuMemGetInfo takes longer than most of them. If the device refuses memory
 *    that was known to be free, it is asked again.
 * 5. Fences are recorded only once memory is unmapped for the first time, and after a trim memory
 *    counts as plentiful again. */
#include <ctype.h>

#include "allocators/policies/vmm/vmm.h"

struct mosaic_values {
    struct ar_policy_common common;
    uint64_t candidates;
    bool glue;
    const char *fit, *place, *handle, *unmap;
};

static const struct ar_option mosaic_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"candidates", AR_OPTION_COUNT, offsetof(struct mosaic_values, candidates), "8", 1, 1000, NULL,
     "number of places that a rule compares"},
    {"glue", AR_OPTION_BOOL, offsetof(struct mosaic_values, glue), "yes", 0, 0, NULL,
     "serve a request that would fail from what is left at the ends of blocks"},
    {"fit", AR_OPTION_TEXT, offsetof(struct mosaic_values, fit), "", 0, 0, NULL,
     "rule: which free block a request takes, the least; empty: the smallest"},
    {"place", AR_OPTION_TEXT, offsetof(struct mosaic_values, place), "", 0, 0, NULL,
     "rule: where pages are mapped, the least; empty: fewest pages"},
    {"handle", AR_OPTION_TEXT, offsetof(struct mosaic_values, handle), "found", 0, 0, NULL,
     "rule: pages of the next handle; found: by the search; empty: as vmm"},
    {"unmap", AR_OPTION_TEXT, offsetof(struct mosaic_values, unmap), "", 0, 0, NULL,
     "rule: which free block gives its pages, the least; empty: the largest"},
    {0},
};

/* Rule 2 above. The first 60 MiB come in handles of 20 MiB: the device waits for them. */
#define FOUND_HANDLE                                                                               \
    "max(left ? min(left, behind ? max(16, 20 * room / device) : 8)"                               \
    " : kind * (block < 5) ? min(10, room / 128) : 1,"                                             \
    " behind * kind ? min(reserved < 30 ? 10 : max(11, 14 * room / device), room / 8) : 1)"

static const char *const fit_names[] = {"bytes", "size",  "movable", "loss", "start",
                                        "tail",  "tight", "kind",    NULL};
static const char *const place_names[] = {"bytes",  "missing", "before", "after", "start",
                                          "pieces", "tail",    "tight",  "kind",  NULL};
static const char *const handle_names[] = {"left",  "block", "needed", "room", "reserved", "device",
                                           "tight", "kind",  "tail",   "ends", "behind",   NULL};
static const char *const unmap_names[] = {"wanted", "size", "idle", "start",
                                          "tail",   "kind", "own",  NULL};

static enum ar_status mosaic_create(const struct ar_policy_context *context, const void *given,
                                    struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops mosaic_policy;
    const struct mosaic_values *values = given;
    struct vmm_tuning tuning = {
        .candidates = values->candidates,
        .glue = values->glue,
    };
    const struct {
        const char *text, *owner;
        const char *const *names;
        struct rule *rule;
    } rules[] = {
        {values->fit, "policy mosaic: rule fit", fit_names, &tuning.fit},
        {values->place, "policy mosaic: rule place", place_names, &tuning.place},
        {strcmp(values->handle, "found") == 0 ? FOUND_HANDLE : values->handle,
         "policy mosaic: rule handle", handle_names, &tuning.handle},
        {values->unmap, "policy mosaic: rule unmap", unmap_names, &tuning.unmap},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!*rules[i].text)
            continue;
        AR_TRY(rule_parse(rules[i].text, rules[i].names, rules[i].owner, rules[i].rule, error));
    }
    return vmm_open(context, &mosaic_policy, &values->common, &tuning, out, error);
}

const struct ar_policy_ops mosaic_policy = {
    VMM_OPS,
    .name = "mosaic",
    .summary = "vmm with rules that a search found, and blocks glued from the ends of others (of "
               "this project)",
    .options = mosaic_options,
    .values_bytes = sizeof(struct mosaic_values),
    .create = mosaic_create,
};

/* ---- rules: see vmm.h ------------------------------------------------------------------------ */

#define MOST_DEPTH 16 /* of nested brackets and choices; also bounds the stack */

struct parser {
    const char *text, *at;
    const char *const *names;
    const char *problem; /* NULL: none so far */
    struct rule *rule;
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
    if (p->rule->count == RULE_MOST_STEPS)
        fail(p, "more than 64 numbers, names and operators");
    else
        p->rule->steps[p->rule->count++] =
            (struct rule_step){.operation = operation, .number = number};
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

enum ar_status rule_parse(const char *text, const char *const *names, const char *owner,
                          struct rule *out, struct ar_error *error)
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

int64_t rule_value(const struct rule *rule, const int64_t *values)
{
    int64_t stack[RULE_MOST_STEPS];
    uint32_t top = 0;
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct rule_step *step = &rule->steps[i];
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
