/* A simulated device for tests: opens it or fails the test. */
#pragma once

#include "sim/device.h"

/* Opens it. If the spec has no profile, the profile is the tests' own card, whose figures do not
 * change: tests/support/card.profile. */
struct ar_device *sim_test_open(const char *spec);

/* A driver allocation that must succeed. */
uint64_t sim_test_alloc(struct ar_device *device, uint64_t bytes);
/* A driver free that must succeed. */
void sim_test_free(struct ar_device *device, uint64_t address);
