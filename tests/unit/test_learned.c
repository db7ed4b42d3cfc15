/* The tails of `learned`. What it sees in programs, step by step: tests/steps/learned. */
#include <math.h>

#include "allocators/base/rng.h"
#include "tests/support/test.h"
#include "workloads/learned/model.h"

/* Of 60 excesses, evenly up to 1000, the drawn tails end near the greatest; of 60 that fall off
 * exponentially, few do. */
TEST(tails_are_as_likely_as_the_excesses)
{
    enum { EXCESSES = 60, DRAWS = 300 };
    uint64_t bytes[EXCESSES];
    uint32_t members[EXCESSES];
    struct learned_step steps[EXCESSES];
    unsigned near[2] = {0, 0};
    for (int even = 0; even < 2; even++) {
        struct ar_rng rng;
        for (uint32_t i = 0; i < EXCESSES; i++) {
            double part = (i + 0.5) / EXCESSES;
            bytes[i] = 5000 + (uint64_t)(even ? 1000 * part : -1000 * log(1 - part));
            members[i] = i;
            steps[i] = (struct learned_step){.bytes = &bytes[i], .request_count = 1};
        }
        const struct learned_model model = {.steps = steps, .step_count = EXCESSES};
        const struct learned_class class_ = {.member_count = EXCESSES,
                                             .members = members,
                                             .tail_count = EXCESSES,
                                             .threshold = 5000};
        double greatest = (double)bytes[EXCESSES - 1] - 5000;
        ar_rng_seed(&rng, 3);
        for (int i = 0; i < DRAWS; i++) {
            struct learned_tail tail = learned_tail_draw(&model, &class_, &rng);
            near[even] += tail.shape < 0 && -tail.scale / tail.shape < 1.1 * greatest;
        }
    }
    if (near[0] > DRAWS / 10 || near[1] < DRAWS * 9 / 10)
        fail_msg("%u of the exponential ones, %u of the even ones", near[0], near[1]);
}
