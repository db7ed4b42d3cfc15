#!/bin/bash
# The scenarios that were recorded on a card: reserved bytes to the byte, everything within 2 %, and
# each miss is what its README says.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
folder=workloads/scenarios/recorded

# What is off by more than 2 %: what the driver has loaded in seven cycles, kernel by kernel, while
# everything else sleeps.
cat >"$TEST_TMP/known" <<'END'
sleep_wake 1416429568 1.279 GiB -3.0
sleep_wake_expandable 1294794752 1.166 GiB -3.3
sleep_wake_level2 1414332416 1.279 GiB -2.9
END
# Reserved bytes that are within 2 % and not equal: they depend on when another stream is done.
cat >"$TEST_TMP/near" <<'END'
tensor_parallel cycle 2 model.train: reserved
tensor_parallel cycle 3 model.train: reserved
tensor_parallel cycle 4 model.train: reserved
tensor_parallel cycle 5 model.train: reserved
END
: >"$TEST_TMP/misses"
: >"$TEST_TMP/differ"
for file in "$folder"/*.ini; do
    name=$(basename "$file" .ini)
    run twin "$file" --what-if no --json "$TEST_TMP/twin.json"
    check "$name.runs" [ "$status" = 0 ]
    check "$name.compares" grep -q '^Reported figures: ' "$out"
    awk -v name="$name" '$0 ~ / off / { sub(/ off .*/, ""); $1 = $1; print name, $0 }' "$out" >>"$TEST_TMP/misses"
    # Each reported figure of reserved bytes and the twin's, in bytes.
    awk -v name="$name" -F'"' '
        $2 == "figure" { figure = $4 }
        $2 == "value" { value = $3 }
        $2 == "twin" && figure ~ /: reserved$/ { seen++; if ($3 != value) print name, figure }
        END { if (!seen) print name, "has no reserved bytes" }' "$TEST_TMP/twin.json" >>"$TEST_TMP/differ"
done
check misses_are_those_known diff "$TEST_TMP/known" "$TEST_TMP/misses"
check reserved_bytes_are_equal diff "$TEST_TMP/near" "$TEST_TMP/differ"
long each_phase || finish

# Every phase of 14 runs, also those that a cycle has twice.
phases=results/published/h200/colocated/phases.csv
if command -v python3 >/dev/null; then
    check each_phase_is_published cmp $phases <(python3 tests/gpu/colocated/phases.py "$ALLOCRIG")
fi
check each_phase_is_equal [ "$(awk -F, '$4 != $5' $phases)" = run,cycle,step,card,twin,rising ]
finish
