/* Scenarios of a twin in tests: parts as texts, owners by name, and sums that must hold. */
#pragma once

#include "sim/twin/twin.h"

/* A part with its options; the pairs end with a key that is NULL. */
struct part_text {
    const char *kind, *name, *process;
    struct ar_spec_pair pairs[8];
};

/* Runs the scenario with these parts, at most eight; fails the test if it is not OK. */
void twin_rig_run(struct twin_scenario *scenario, const struct part_text *texts, size_t count,
                  struct twin_result *result);

/* Runs the scenario that is the section of the case (tests/support/cases.h), as a file of `twin`.
 * The caller closes the result before the next one is run. */
struct twin_result twin_rig_case(const char *file, const char *section);

/* The bytes of an owner on a card at the end of a phase; 0: it has none. */
uint64_t twin_rig_bytes(const struct twin_result *result, size_t phase, unsigned card,
                        const char *owner);

/* The bytes of all owners add up to what is used, at the end of each phase and at its peak. */
void twin_rig_check(const struct twin_result *result);

/* The process `p` with torch on card 0. */
extern const struct twin_process_setup twin_rig_process;

/* A trainer of 1 GiB of weights and gradients, 2 GiB of states, and 512 MiB of activations. With
 * four layers all blocks are whole segments. */
#define TWIN_RIG_SIZES TWIN_RIG_LAYERS("4")
#define TWIN_RIG_LAYERS(layers)                                                                    \
    {"layers", layers, false}, {"weights", "1GiB", false}, {"gradients", "1GiB", false},           \
        {"optimizer", "2GiB", false},                                                              \
    {                                                                                              \
        "activations", "512MiB", false                                                             \
    }
