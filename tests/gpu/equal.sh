#!/bin/bash
# Does a policy do on a card what it does on the simulated device? For each deterministic policy and each workload on
# one stream, and each recording with its own completions: a run on the card, which writes down the addresses that the
# driver gave, and one on `sim` with these addresses. Equal are, event for event: placements, the driver calls (kind,
# size, refused), and outcome, peaks and counts. Left out: `async`, whose inside is the driver's, and polls of events,
# which depend on time. A line for each cell; the last one is `N passed, N failed, N skipped`.
#
# Options: -j N, -p REGEX, -w REGEX, --resume FILE and others (tests/gpu/cells.c). Each process opens the card once.
set -u
cd "$(dirname "$0")/../.." || exit 2
CELLS=${CELLS:-$(dirname "${ALLOCRIG:-.build/release/allocrig}")/tests/gpu/cells}
[ -x "$CELLS" ] || { make -s gpu-tests && CELLS=.build/release/tests/gpu/cells; } || exit 2
exec "$CELLS" equal "$@"
