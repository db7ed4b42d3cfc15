/* Generators: workloads made by rule. One generator is one file and one line in
 * generators.def. A generator is a trace source: its events are pulled, one span at a time. */
#ifndef WORKLOADS_GEN_GEN_H
#define WORKLOADS_GEN_GEN_H

#include "allocators/options.h"
#include "allocators/spec.h"
#include "workloads/trace/source.h"

enum gen_capability {
    GEN_ADAPTIVE = 1u << 0,     /* its requests depend on what became of the earlier ones */
    GEN_KNOWN_ANSWER = 1u << 1, /* there is a published or derived number for it */
    GEN_ADVERSARIAL = 1u << 2,  /* made to hurt; not what programs do */
};

/* Every generator has these options; its struct of values starts with this one. */
struct gen_common {
    uint64_t seed;
};

#define GEN_COMMON_OPTIONS                                                                         \
    {                                                                                              \
        "seed", AR_OPTION_COUNT, offsetof(struct gen_common, seed), "1", 0, 0, NULL,               \
            "of the random numbers; the same seed gives the same events"                           \
    }

struct gen_ops {
    const char *name;
    const char *summary;
    const char *page; /* the file that derives its sizes: "workloads/gen/embedding.md" */
    uint32_t capabilities;
    const struct ar_option *options;
    size_t values_bytes;
    /* Makes a source; `values` is valid during the call only. info.name is set by gen_open. */
    enum ar_status (*create)(const void *values, struct trace_source **out, struct ar_error *error);
};

const struct gen_ops *gen_at(size_t index); /* NULL past the end */
const struct gen_ops *gen_find(const char *name);

/* Makes the source that `spec` (one link) names. The caller closes it. */
enum ar_status gen_open(const struct ar_spec *spec, struct trace_source **out,
                        struct ar_error *error) AR_STATUS_CHECKED;

#endif
