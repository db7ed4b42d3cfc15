#!/bin/bash
# results/schema.json against results as they are written.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only schema
cat >"$TEST_TMP/suite.ini" <<END
[suite]
name = schema
time = yes
reps = 2
[devices]
sim:capacity=300MiB
sim
[policies]
best-fit
growth
[workloads]
order_flip
workloads/data/side_streams.default.csv.gz
[slowdown]
at = 2
END
quietly "$ALLOCRIG" run "$TEST_TMP/suite.ini" --json "$TEST_TMP/result.json"
quietly "$ALLOCRIG" run -d sim -p best-fit -p growth -w random:events=500,seed=7 --replicates 6 --json "$TEST_TMP/replicates.json"
"$ALLOCRIG" list metrics --names >"$TEST_TMP/metrics" || exit
python3 tests/cli/schema.py "$TEST_TMP/result.json" "$TEST_TMP/replicates.json" <"$TEST_TMP/metrics"
