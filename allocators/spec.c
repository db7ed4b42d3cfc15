/* The parser of specs: one pass over a copy of the text. The character after each token is replaced
 * by NUL, so names, keys and values are pointers into the copy. One block of memory holds links,
 * pairs, copy and original; the counts of the separators bound the numbers of links and pairs. */
#include "allocators/spec.h"

struct parser {
    char *copy; /* of the text; NULs are written into it */
    char *at;   /* the next character to read */
    struct ar_spec_pair *pairs;
    size_t pair_count;
    struct ar_error *error;
};

static size_t count_of(const char *text, const char *signs)
{
    size_t count = 0;
    for (; *text; text++)
        if (strchr(signs, *text))
            count++;
    return count;
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static size_t place(const struct parser *p, const char *at)
{
    return (size_t)(at - p->copy) + 1;
}

/* Ends the token at `end`, skips the sign after it and returns the sign. */
static char end_token(struct parser *p, char *end)
{
    char sign = *p->at;
    if (sign)
        p->at++;
    *end = '\0';
    return sign;
}

static enum ar_status quoted(struct parser *p, const char *ends, const char **out, char *sign)
{
    char *start = p->at;
    char *close = strchr(start + 1, *start);
    if (!close)
        return ar_invalid(p->error, "the quote at character %zu is not closed; end it with %c",
                          place(p, start), *start);
    p->at = close + 1;
    skip_blanks(p);
    if (*p->at && !strchr(ends, *p->at))
        return ar_invalid(p->error,
                          "something follows the closing quote at character %zu; quote all of the "
                          "value or none of it",
                          place(p, p->at));
    *out = start + 1;
    *sign = end_token(p, close);
    return AR_OK;
}

/* Reads up to one of `ends` or the end of the text and writes the sign that ended it. */
static enum ar_status token(struct parser *p, const char *ends, const char **out, char *sign)
{
    skip_blanks(p);
    if (*p->at == '\'' || *p->at == '"')
        return quoted(p, ends, out, sign);
    char *start = p->at;
    p->at += strcspn(start, ends);
    char *end = p->at;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *out = start;
    *sign = end_token(p, end);
    return AR_OK;
}

/* One pair. `sign` is the comma or bracket after it, or 0 at the end of the text. */
static enum ar_status read_pair(struct parser *p, bool bracket, char *sign)
{
    struct ar_spec_pair *pair = &p->pairs[p->pair_count];
    skip_blanks(p);
    size_t where = place(p, p->at);
    AR_TRY(token(p, bracket ? "=,)" : "=,", &pair->key, sign));
    if (pair->key[0] == '\0')
        return ar_invalid(p->error, "an option's name is missing at character %zu; write key=value",
                          where);
    pair->value = "";
    pair->alone = *sign != '=';
    if (!pair->alone)
        AR_TRY(token(p, bracket ? ",)" : ",", &pair->value, sign));
    p->pair_count++;
    return AR_OK;
}

static enum ar_status read_pairs(struct parser *p, bool bracket, struct ar_spec_link *link)
{
    char sign = ',';
    size_t open = place(p, p->at) - 1;
    skip_blanks(p);
    if (*p->at == '\0' || (bracket && *p->at == ')')) {
        sign = *p->at;
        p->at += sign != '\0';
    }
    while (sign == ',') {
        AR_TRY(read_pair(p, bracket, &sign));
        link->pair_count++;
    }
    if (bracket && sign != ')')
        return ar_invalid(p->error, "the bracket at character %zu is not closed; end it with )",
                          open);
    return AR_OK;
}

/* One link. `more`: a plus sign follows. */
static enum ar_status read_link(struct parser *p, struct ar_spec_link *link, bool *more)
{
    char sign;
    skip_blanks(p);
    size_t where = place(p, p->at);
    link->pairs = &p->pairs[p->pair_count];
    AR_TRY(token(p, ":+(", &link->name, &sign));
    if (link->name[0] == '\0')
        return ar_invalid(
            p->error, "a name is missing at character %zu; write NAME or NAME:key=value", where);
    if (sign == '(') {
        AR_TRY(read_pairs(p, true, link));
        skip_blanks(p);
        sign = *p->at;
        if (sign && sign != '+' && sign != ':')
            return ar_invalid(p->error,
                              "after the bracket a plus sign is expected at character %zu",
                              place(p, p->at));
        p->at += sign != '\0';
    }
    *more = sign == '+';
    return sign == ':' ? read_pairs(p, false, link) : AR_OK;
}

enum ar_status ar_spec_parse(const char *text, struct ar_spec *out, struct ar_error *error)
{
    *out = (struct ar_spec){0};
    size_t length = strlen(text) + 1;
    size_t links = count_of(text, "+") + 1;
    size_t pairs = count_of(text, ",(:") + 1;
    char *block = calloc(1, links * sizeof(struct ar_spec_link) +
                                pairs * sizeof(struct ar_spec_pair) + 2 * length);
    AR_TRY_MEMORY(block, error, "the spec \"%.60s\"", text);
    out->storage = block;
    out->links = (struct ar_spec_link *)(void *)block;
    struct parser p = {.error = error};
    p.pairs = (struct ar_spec_pair *)(void *)(block + links * sizeof(struct ar_spec_link));
    p.copy = block + links * sizeof(struct ar_spec_link) + pairs * sizeof(struct ar_spec_pair);
    p.at = memcpy(p.copy, text, length);
    out->text = memcpy(p.copy + length, text, length);
    bool more = true;
    while (more) {
        enum ar_status status = read_link(&p, &out->links[out->link_count], &more);
        if (status) {
            ar_spec_close(out);
            return ar_error_prefix(error, status, "in \"%.200s\"", text);
        }
        out->link_count++;
    }
    return AR_OK;
}

void ar_spec_close(struct ar_spec *spec)
{
    free(spec->storage);
    *spec = (struct ar_spec){0};
}
