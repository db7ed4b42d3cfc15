#!/bin/bash
# Every layout of PyTorch's memory snapshots: snapshot_layouts.py makes them and says what is checked.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
[ "${TEST_VARIANT:-release}" = release ] || quick=quick
python3 tests/cli/snapshot_layouts.py "$ALLOCRIG" "$TEST_TMP" ${quick:+quick}
