/* What both key-value caches serve: rounds of a batch of sequences, whose prompts and answers
 * are drawn. With the same options and seed both draw the same sequences. */
#ifndef WORKLOADS_GEN_KV_LOAD_H
#define WORKLOADS_GEN_KV_LOAD_H

#include "allocators/base/rng.h"
#include "workloads/gen/draws.h"
#include "workloads/gen/gen.h"
#include "workloads/gen/roofline.h"

struct kv_values {
    struct gen_common common;
    const char *prompts, *answers;
    uint64_t rounds, batch, layers, kv_heads, head, page;
    int type;
};

#define KV_LOAD_OPTIONS                                                                            \
    {"rounds",                                                                                     \
     AR_OPTION_COUNT,                                                                              \
     offsetof(struct kv_values, rounds),                                                           \
     "4",                                                                                          \
     1,                                                                                            \
     1e9,                                                                                          \
     NULL,                                                                                         \
     "batches served, one after the other"},                                                       \
        {"batch",                                                                                  \
         AR_OPTION_COUNT,                                                                          \
         offsetof(struct kv_values, batch),                                                        \
         "16",                                                                                     \
         1,                                                                                        \
         1e5,                                                                                      \
         NULL,                                                                                     \
         "sequences served together"},                                                             \
        {"prompts",                                                                                \
         AR_OPTION_TEXT,                                                                           \
         offsetof(struct kv_values, prompts),                                                      \
         "256-1024",                                                                               \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "list of tokens of a prompt, or of ranges to draw from"},                                 \
        {"answers",                                                                                \
         AR_OPTION_TEXT,                                                                           \
         offsetof(struct kv_values, answers),                                                      \
         "32-256",                                                                                 \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "list of tokens of an answer, or of ranges to draw from"},                                \
        {"layers",                                                                                 \
         AR_OPTION_COUNT,                                                                          \
         offsetof(struct kv_values, layers),                                                       \
         "16",                                                                                     \
         1,                                                                                        \
         1000,                                                                                     \
         NULL,                                                                                     \
         "layers, each with a cache of its own"},                                                  \
        {"kv_heads", AR_OPTION_COUNT,           offsetof(struct kv_values, kv_heads), "8", 1, 1e4, \
         NULL,       "heads of keys and values"},                                                  \
        {"head", AR_OPTION_COUNT,   offsetof(struct kv_values, head), "128", 1, 1e5,               \
         NULL,   "values of a head"},                                                              \
    {                                                                                              \
        "dtype", AR_OPTION_CHOICE, offsetof(struct kv_values, type), "float16", 0, 0,              \
            NUMERIC_CHOICES, "of keys and values; int8 has 1 byte"                                 \
    }

struct kv_load {
    struct kv_values values; /* the texts are not used after kv_load_open */
    struct ar_rng rng;
    struct draws prompts, answers;
    uint64_t *prompt, *answer; /* tokens of each sequence of the batch */
    uint64_t longest_prompt, longest_answer;
    uint64_t token_bytes; /* of one token's keys, or values, in one layer */
};

/* `owner` is the generator's name, for errors. kv_load_close gives back what it holds, also after
 * an error. */
enum ar_status kv_load_open(struct kv_load *self, const struct kv_values *values, const char *owner,
                            struct ar_error *error) AR_STATUS_CHECKED;
void kv_load_close(struct kv_load *self);

void kv_load_start(struct kv_load *self); /* before the first round, and after a rewind */
void kv_load_draw(struct kv_load *self);  /* the next batch */

#endif
