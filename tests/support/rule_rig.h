/* What the tests of the sizing rules share: a rank, a preset, and a figure within its rounding. */
#pragma once

#include <math.h>

#include "sim/twin/rules/llm.h"
#include "tests/support/test.h"

static inline struct llm_rank rank_of(uint64_t parallel)
{
    return (struct llm_rank){
        .tensor_parallel = parallel, .pipeline_parallel = 1, .value_bytes = 2, .rope_bytes = 2};
}

static inline const struct llm *model(const char *name)
{
    const struct llm *out = llm_find(name);
    if (!out)
        fail_msg("no preset %s", name);
    return out;
}

static inline void within(const char *what, double value, double expected, double allowed)
{
    if (fabs(value - expected) > allowed)
        fail_msg("%s: %.6f, printed %.6f, allowed %.6f", what, value, expected, allowed);
}
