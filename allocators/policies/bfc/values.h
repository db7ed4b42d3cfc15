/* The options of the BFC family, and what the frameworks make of them. */
#ifndef ALLOCATORS_POLICIES_BFC_VALUES_H
#define ALLOCATORS_POLICIES_BFC_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/policy.h"

#define BFC_ROUNDING_BYTES UINT64_C(256)

enum bfc_framework {
    BFC_TENSORFLOW,
    BFC_JAX,
};

enum bfc_collection {
    BFC_COLLECTION_DEFAULT, /* TensorFlow on, JAX off */
    BFC_COLLECTION_ON,
    BFC_COLLECTION_OFF,
};

struct bfc_values {
    struct ar_policy_common common;
    int framework;         /* enum bfc_framework */
    double fraction;       /* of total memory; 0: the framework's default */
    uint64_t system_bytes; /* left to the system; 0: the framework's default */
    uint64_t compute_capability;
    double fragmentation_fraction;
    int collection; /* enum bfc_collection */
    bool growth;
    bool coalesce;
    uint64_t first_region_bytes; /* growing; 0: 2 MiB */
    bool two_ended;
    int lower_order, upper_order; /* of equal holes: 0 the lowest address first, 1 the highest */
    int lower_split, upper_split; /* of holes: 0 by the usual rule, 1 always to size */
};

/* The options that each policy of the family has. */
#define BFC_OPTIONS                                                                                \
    {"limit",                                                                                      \
     AR_OPTION_BYTES,                                                                              \
     offsetof(struct ar_policy_common, limit_bytes),                                               \
     "0",                                                                                          \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     "bytes that the pool may hold; 0: by system_memory, fraction or the framework's default"},    \
        {"framework",                                                                              \
         AR_OPTION_CHOICE,                                                                         \
         offsetof(struct bfc_values, framework),                                                   \
         "tf",                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "tf|jax",                                                                                 \
         "whose defaults: tf collects free regions and leaves room for the system; jax takes "     \
         "0.75 of total memory"},                                                                  \
        {"fraction",                                                                               \
         AR_OPTION_FRACTION,                                                                       \
         offsetof(struct bfc_values, fraction),                                                    \
         "0",                                                                                      \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "limit as a fraction of total memory; 0: the framework's default"},                       \
        {"system_memory",                                                                          \
         AR_OPTION_BYTES,                                                                          \
         offsetof(struct bfc_values, system_bytes),                                                \
         "0",                                                                                      \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "limit is free memory less this (TF_DEVICE_MIN_SYS_MEMORY_IN_MB); before fraction"},      \
        {"compute_capability",                                                                     \
         AR_OPTION_COUNT,                                                                          \
         offsetof(struct bfc_values, compute_capability),                                          \
         "9",                                                                                      \
         1,                                                                                        \
         99,                                                                                       \
         NULL,                                                                                     \
         "major number, for what tf leaves to the system by default"},                             \
        {"fragmentation_fraction",                                                                 \
         AR_OPTION_FRACTION,                                                                       \
         offsetof(struct bfc_values, fragmentation_fraction),                                      \
         "0",                                                                                      \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "split where a chunk is larger by this fraction of the limit; 0: by 128 MiB"},            \
    {                                                                                              \
        "garbage_collection", AR_OPTION_CHOICE, offsetof(struct bfc_values, collection),           \
            "default", 0, 0, "default|true|false",                                                 \
            "give wholly free regions back before failing; default: tf true, jax false"            \
    }

/* Options of growing pools. */
#define BFC_GROWTH_OPTIONS                                                                         \
    {"coalesce",                                                                                   \
     AR_OPTION_BOOL,                                                                               \
     offsetof(struct bfc_values, coalesce),                                                        \
     "false",                                                                                      \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     "join a new region with the one that ends where it starts (XLA's supply over virtual "        \
     "memory)"},                                                                                   \
    {                                                                                              \
        "first_region", AR_OPTION_BYTES, offsetof(struct bfc_values, first_region_bytes), "2MiB",  \
            256, 0x1p60, NULL, "size of the first region; later ones double"                       \
    }

/* Options of preallocated pools. */
#define BFC_TWO_ENDED_OPTIONS                                                                      \
    {"two_ended",                                                                                  \
     AR_OPTION_BOOL,                                                                               \
     offsetof(struct bfc_values, two_ended),                                                       \
     "false",                                                                                      \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     "place from both ends of the pool, as the request says (XLA's spatial partitioning)"},        \
        {"lower_order",                                                                            \
         AR_OPTION_CHOICE,                                                                         \
         offsetof(struct bfc_values, lower_order),                                                 \
         "ascending",                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "ascending|descending",                                                                   \
         "two-ended: which of equal holes of the lower end"},                                      \
        {"upper_order",                                                                            \
         AR_OPTION_CHOICE,                                                                         \
         offsetof(struct bfc_values, upper_order),                                                 \
         "ascending",                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "ascending|descending",                                                                   \
         "two-ended: which of equal holes of the upper end"},                                      \
        {"lower_split",                                                                            \
         AR_OPTION_CHOICE,                                                                         \
         offsetof(struct bfc_values, lower_split),                                                 \
         "bfc",                                                                                    \
         0,                                                                                        \
         0,                                                                                        \
         "bfc|exact",                                                                              \
         "two-ended: split holes of the lower end by the usual rule or to size"},                  \
    {                                                                                              \
        "upper_split", AR_OPTION_CHOICE, offsetof(struct bfc_values, upper_split), "bfc", 0, 0,    \
            "bfc|exact", "two-ended: split holes of the upper end by the usual rule or to size"    \
    }

/* What TensorFlow leaves to the system of so many bytes, by the major number of the card's compute
 * capability. */
uint64_t bfc_system_bytes(uint64_t available_bytes, uint64_t compute_capability);

/* The pool's limit in bytes on a device with this much memory; unlimited devices count as
 * 2^60 bytes, more than any request. */
uint64_t bfc_limit(const struct bfc_values *values, uint64_t free_bytes, uint64_t total_bytes);

/* How much larger than the request a chunk may be and still be given whole. */
uint64_t bfc_split_bytes(const struct bfc_values *values, uint64_t limit_bytes);

bool bfc_collects(const struct bfc_values *values);

/* INVALID where the values contradict each other or do not suit the backing. */
enum ar_status bfc_values_check(const struct bfc_values *values, const struct ar_backing *backing,
                                struct ar_error *error) AR_STATUS_CHECKED;

#endif
