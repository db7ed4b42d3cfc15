#!/bin/bash
# phases.sh: what is left at the end of each phase, and drift from cycle to cycle, with programs of which both are known.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
export ALLOCRIG

# phases ARGUMENTS..: the tables are in $out
phases() {
    bench/suite/phases.sh "$@" >"$out" 2>"$err"
    status=$?
}
# row POLICY PHASE COLUMN: of the table: 4 times, 5 live, 6 first, 7 last, 8 residue, 9 drift
row() {
    awk -F ' *[|] *' -v policy="\`$1\`" -v phase="$2" -v column="$3" '$2 == policy && $3 == phase { print $column }' "$out"
}
# is NAME WANTED POLICY PHASE COLUMN
is() {
    local found
    found=$(row "$3" "$4" "$5")
    [ "$found" = "$2" ] || echo "  wanted $2, found $found"
    check "$1" [ "$found" = "$2" ]
}
phases -p growth -p torch -p direct phases:cycles=8
is cycles 8 growth sleep 4
is nothing_is_live 0.0 growth sleep 5
is growth_keeps_all "$(row growth train 7)" growth sleep 7
is torch_gives_back 0.0 torch sleep 7
is no_residue 0.0 direct train 8
is no_drift 0.0 torch sleep 9
is weights_stay 292.0 direct offload 7
check steps_have_no_row [ -z "$(row growth step 4)" ]
phases -p torch phases:cycles=8,trim=no
is unasked_it_keeps_all "$(row torch wake 7)" torch sleep 7
check and_holds_something [ "$(row torch sleep 7)" != 0.0 ]
# One block of 1 MiB a cycle is never freed; segments for small blocks have 2 MiB: every second cycle.
phases -p torch -p direct phases:leak=1
is leak_is_seen 1024.0 direct sleep 9
is leak_is_seen_through_a_cache 1024.0 torch sleep 9
# A program without phases: its steps. The slope is that of 1000 steps.
phases -p direct 'linear_ramp:steps=10'
check no_marks [ "$status" = 2 -a -n "$(grep 'no marks' "$err")" ]
printf '# allocrig-trace 1\n# name: slope\n' >"$TEST_TMP/slope.trace"
for i in 0 1 2 3 4 5 6 7; do printf 'a,%d,2097152\nm,step\n' $i; done >>"$TEST_TMP/slope.trace"
phases -p direct "$TEST_TMP/slope.trace"
is slope_of_1000_steps 2048000.0 direct step 9
is first 2.0 direct step 6
is last 16.0 direct step 7
phases -p direct varlen_transformer:steps=60,layers=1,hidden=64,vocabulary=500
is varying_lengths 60 direct step 4
phases -p torhc phases:cycles=1
check no_such_policy [ "$status" = 2 -a -n "$(grep torch "$err")" ]
check no_such_policy_leaves_no_table [ ! -s "$out" ]
phases phase
check no_such_workload [ "$status" = 2 ]
printf '# allocrig-trace 1\na,0,2097152\nm,step\nf,9\n' >"$TEST_TMP/broken.trace"
phases -p direct "$TEST_TMP/broken.trace"
check a_broken_trace_is_told_by_its_line [ "$status" = 2 -a -n "$(grep 'broken.trace:4: ' "$err")" ]
phases -p direct /dev/zero
check no_trace [ "$status" = 2 -a ! -s "$out" ]
finish
