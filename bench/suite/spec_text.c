#include "bench/suite/spec_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_value(FILE *stream, const char *value)
{
    if (!strpbrk(value, ",:+()[]'\"= "))
        fputs(value, stream);
    else
        fprintf(stream, strchr(value, '\'') ? "\"%s\"" : "'%s'", value);
}

static void put_pair(FILE *stream, bool first, const char *key, const char *value)
{
    fprintf(stream, "%s%s=", first ? "" : ",", key);
    put_value(stream, value);
}

static void put_pairs(FILE *stream, const struct ar_spec_link *link, const char *key,
                      const char *value)
{
    bool written = false;
    for (size_t i = 0; i < link->pair_count; i++) {
        bool same = key && strcmp(link->pairs[i].key, key) == 0;
        put_pair(stream, i == 0, link->pairs[i].key, same ? value : link->pairs[i].value);
        written = written || same;
    }
    if (key && !written)
        put_pair(stream, link->pair_count == 0, key, value);
}

enum ar_status spec_text_with(const char *text, const char *key, const char *value, char **out,
                              struct ar_error *error)
{
    struct ar_spec spec;
    size_t length = 0;
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (status)
        return status;
    *out = NULL;
    FILE *stream = open_memstream(out, &length);
    for (size_t i = 0; stream && i < spec.link_count; i++) {
        const struct ar_spec_link *link = &spec.links[i];
        bool last = i == spec.link_count - 1;
        fputs(link->name, stream);
        if (last) {
            fputc(':', stream);
            put_pairs(stream, link, key, value);
        } else {
            if (link->pair_count) {
                fputc('(', stream);
                put_pairs(stream, link, NULL, NULL);
                fputc(')', stream);
            }
            fputc('+', stream);
        }
    }
    ar_spec_close(&spec);
    if (!stream || fclose(stream) != 0)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory for the spec \"%.60s\"", text);
    return AR_OK;
}
