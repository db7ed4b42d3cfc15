/* The list of generators (generators.def), and how a spec becomes a source. */
#include "workloads/gen/gen.h"

#include <stdio.h>
#include <string.h>

#include "workloads/gen/emit.h"
#include "workloads/trace/header.h"

#define GENERATOR(name) extern const struct gen_ops name;
#include "workloads/gen/generators.def"
#undef GENERATOR

static const struct gen_ops *const generators[] = {
#define GENERATOR(name) &name,
#include "workloads/gen/generators.def"
#undef GENERATOR
};

#define GENERATOR_COUNT (sizeof generators / sizeof generators[0])

const struct gen_ops *gen_at(size_t index)
{
    return index < GENERATOR_COUNT ? generators[index] : NULL;
}

const struct gen_ops *gen_find(const char *name)
{
    for (size_t i = 0; i < GENERATOR_COUNT; i++)
        if (strcmp(generators[i]->name, name) == 0)
            return generators[i];
    return NULL;
}

static enum ar_status unknown(const char *name, struct ar_error *error)
{
    const char *names[GENERATOR_COUNT];
    for (size_t i = 0; i < GENERATOR_COUNT; i++)
        names[i] = generators[i]->name;
    return ar_name_unknown("there is no generator", name, names, GENERATOR_COUNT,
                           "`list workloads` names all of them", error);
}

enum ar_status gen_open(const struct ar_spec *spec, struct trace_source **out,
                        struct ar_error *error)
{
    if (spec->link_count != 1)
        return ar_error_set(error, AR_INVALID,
                            "workload \"%s\": a generator has no decorators; write NAME:key=value",
                            spec->text);
    const struct ar_spec_link *link = &spec->links[0];
    const struct gen_ops *ops = gen_find(link->name);
    if (!ops)
        return unknown(link->name, error);
    struct emit *emit;
    AR_TRY(emit_create(ops, &emit, error));
    char owner[64];
    snprintf(owner, sizeof owner, "generator %s", ops->name);
    enum ar_status status =
        ar_options_read(ops->options, link, owner, (char *)emit + ops->values_at, error);
    if (status == AR_OK)
        status = emit_open(emit, error);
    if (status != AR_OK) {
        trace_close(&emit->source);
        return status;
    }
    struct trace_info *info = &emit->source.info;
    trace_name_put(info->name, sizeof info->name, spec->text, strlen(spec->text));
    *out = &emit->source;
    return AR_OK;
}
