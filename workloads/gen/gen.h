/* Generators: workloads made by rule. A generator is one struct gen_ops and one line in
 * generators.def; its events are pulled from a trace source, one span at a time. */
#pragma once

#include "allocators/options.h"
#include "workloads/trace/source.h"

enum gen_capability {
    GEN_ADAPTIVE = 1u << 0,     /* requests depend on the results of earlier ones */
    GEN_KNOWN_ANSWER = 1u << 1, /* a number for it is published or derived */
    GEN_ADVERSARIAL = 1u << 2,  /* a worst case; no real program does this */
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

struct emit; /* workloads/gen/emit.h */

/* A generator. Its struct consists of, in this order: `struct emit`; the values of its options;
 * what `open` makes; the state of the program, which is zero at each start. */
struct gen_ops {
    const char *name;
    const char *summary;
    const char *page; /* the file that derives its sizes: "workloads/gen/embedding.md" */
    uint32_t capabilities;
    bool free_requested; /* frees are `r`, not `f` */
    const struct ar_option *options;
    size_t source_bytes; /* of the generator's struct */
    size_t values_at;    /* offset of the values of `options` */
    size_t state_at;     /* offset of the state: from here to the end of the struct */
    /* Optional: checks the values and makes arrays and samples (emit_array, samples_open). Text
     * options are valid during this call only. Errors go to emit_fail. */
    void (*open)(struct emit *self);
    /* Optional: makes the first events; before the first chunk, and again after a rewind. */
    void (*start)(struct emit *self);
    /* Writes the next events. The program ends when it writes none, or calls emit_end. */
    void (*advance)(struct emit *self);
    /* Adaptive generators only: the result of a request. */
    void (*served)(struct emit *self, uint64_t id, const struct trace_served *served);
};

/* In the ops of a generator with `struct NAME`, whose member `values` has the values of its
 * options: where they and the state, whose first member is `state`, lie. */
#define GEN_LAYOUT(name, state)                                                                    \
    .source_bytes = sizeof(struct name), .values_at = offsetof(struct name, values),               \
    .state_at = offsetof(struct name, state)

const struct gen_ops *gen_at(size_t index); /* NULL past the end */
const struct gen_ops *gen_find(const char *name);

/* Makes the source that `spec` (one link) names. The caller closes it. */
enum ar_status gen_open(const struct ar_spec *spec, struct trace_source **out,
                        struct ar_error *error);
