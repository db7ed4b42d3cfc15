#!/bin/bash
# `capacity`: what it finds is held against single runs at those capacities.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz
mib=1048576

# answer KEY: of the only answer in $tmp/answer.json
answer() {
    sed -n "s/.*\"$1\": \\([0-9a-z]*\\),*\$/\\1/p" "$tmp/answer.json"
}
# passes POLICY WORKLOAD BYTES; like `fails` it is called through check
# shellcheck disable=SC2317
passes() {
    "$ALLOCRIG" run -p "$1" -w "$2" -d "sim:capacity=$3" --metrics none --require-pass >/dev/null 2>&1
}
# shellcheck disable=SC2317
fails() {
    ! passes "$@"
}
# edges NAME POLICY WORKLOAD: both numbers are edges
edges() {
    local first safe live
    "$ALLOCRIG" capacity -p "$2" -w "$3" --json - >"$tmp/answer.json"
    first=$(answer first_pass_bytes)
    safe=$(answer safe_bytes)
    live=$(answer live_peak_bytes)
    check "$1_found" [ "$live" -le "$first" -a "$first" -le "$safe" ]
    check "$1_first_passes" passes "$2" "$3" "$first"
    check "$1_safe_passes" passes "$2" "$3" "$safe"
    [ "$first" -lt $((live + 2 * mib)) ] || check "$1_below_first_fails" fails "$2" "$3" $((first - 2 * mib))
    [ "$safe" -lt $((live + 2 * mib)) ] || check "$1_below_safe_fails" fails "$2" "$3" $((safe - 2 * mib))
}
edges known first-fit order_flip
check known_answer [ "$(answer safe_bytes)" = $((128 * mib)) ]
edges grown growth order_flip
edges recorded growth "$tape"
check recorded_has_a_gap grep -q '"from_bytes"' "$tmp/answer.json"
gap=$(answer from_bytes)
check a_gap_fails fails growth "$tape" "$gap"

run capacity -p growth -p first-fit -p null -w order_flip
check table_ranks_by_safe grep -qE '^ *1 +first-fit +128\.0 +128\.0 +1\.000' "$out"
check table_does_not_rank_null grep -qE '^ *- +null ' "$out"
check table_names_the_live_peak grep -q '^order_flip: live peak 128.0 MiB' "$out"
"$ALLOCRIG" capacity -p growth -p first-fit -w order_flip --json "$tmp/1.json" --jobs 1 >/dev/null
"$ALLOCRIG" capacity -p growth -p first-fit -w order_flip --json "$tmp/2.json" --jobs 2 >/dev/null
check the_same_with_any_jobs cmp "$tmp/1.json" "$tmp/2.json"

# probes count in the live peak, below which it does not look; the others' live peak is without them
printf '# allocrig-trace 1\na,0,8388608\np,1,33554432\nr,1\nf,1\nr,0\nf,0\n' >"$tmp/probed.trace"
run capacity -p direct -w "$tmp/probed.trace"
check probes_are_in_the_live_peak grep -q '^probed: live peak 40.00 MiB' "$out"
check what_is_below_is_said grep -q '^The live peak of probed counts requests that may fail; without them it is' "$out"
check it_passes_there passes direct "$tmp/probed.trace" $((8 * mib))
run capacity -p first-fit -w order_flip
check nothing_is_said_without_probes [ "$(grep -c 'may fail' "$out")" = 0 ]
run advise "$tmp/probed.trace" -p direct --capacity 9MiB
check advise_has_both_peaks grep -q '^The live peak is 8.000 MiB (40.00 MiB with requests that may fail), at' "$out"
run fits "$tmp/probed.trace" --card l4
check fits_has_both_peaks grep -q '^Live peak 8.000 MiB (40.00 MiB with requests that may fail)\. ' "$out"
printf '# allocrig-trace 1\na,0,1048576\nr,0\nf,0\na,1,8388608\np,2,2097152\nr,2\nf,2\nr,1\nf,1\n' >"$tmp/firm.trace"
"$ALLOCRIG" explain "$tmp/firm.trace" -p direct --capacity 6MiB --frees at-once --json "$tmp/explain.json" >"$out"
check explain_counts_none [ "$(sed -n 's/.*"live_peak_bytes": \([0-9]*\),*$/\1/p' "$tmp/explain.json")" = $((8 * mib)) ]
check explain_has_its_event [ "$(sed -n 's/.*"live_peak_event": \([0-9]*\),*$/\1/p' "$tmp/explain.json")" = 3 ]
run inspect "$tmp/probed.trace"
check inspect_counts_them grep -q '^live peak    40.00 MiB at event 1' "$out"
check inspect_says_so grep -q '^             with all probes, which are requests that may fail$' "$out"

# without a flush and without a retry: single runs at both sides of the edge
counted() { # POLICY WORKLOAD BYTES METRIC
    "$ALLOCRIG" run -p "$1" -w "$2" -d "sim:capacity=$3" --metrics none --json - 2>/dev/null | sed -n "s/.*\"$4\": \([0-9]*\),*$/\1/p"
}
"$ALLOCRIG" capacity -p torch -w "$tape" --json "$tmp/answer.json" >"$out"
for what in flush:flushes retry:retries; do
    edge=$(answer "no_${what%%:*}_bytes")
    check "no_${what%%:*}_is_above_safe" [ "$edge" -gt "$(answer safe_bytes)" ]
    check "no_${what%%:*}_at_it" [ "$(counted torch "$tape" "$edge" "${what#*:}")" = 0 ]
    check "some_${what#*:}_below_it" [ "$(counted torch "$tape" $((edge - 2 * mib)) "${what#*:}")" -gt 0 ]
done
check table_has_them grep -qE '^1 +torch +[0-9.]+ +[0-9.]+ +[0-9.]+ +1628\.0 +1628\.0 ' "$out"

# the curve: slowdowns of single runs
run capacity -p torch -p growth -p null -w "$tape" -w order_flip --curve --json "$tmp/curve.json"
check curve_passes [ "$status" = 0 ]
check curve_has_a_row_for_each_ranked [ "$(sed -n '/^Slowdown by capacity/,$p' "$out" | grep -cE '^(torch|growth|null) ')" = 2 ]
check curve_has_seven_points [ "$(grep -c '"capacity_ratio"' "$tmp/curve.json")" = 14 ]
bytes=$(awk -F': ' '/"capacity_ratio": 1.25/ { found = 1 } found && /capacity_bytes/ { print $2 + 0; exit }' "$tmp/curve.json")
slow=$(awk -F': ' '/"capacity_ratio": 1.25/ { found = 1 } found && /"slowdown"/ { print $2; exit }' "$tmp/curve.json")
check curve_is_of_single_runs [ "$("$ALLOCRIG" run -p torch -w "$tape" -d "sim:capacity=$bytes" --json - | sed -n 's/.*"slowdown": \([0-9.]*\),*$/\1/p')" = "$slow" ]
run capacity -p torch -w order_flip --curve
check no_time_is_said grep -q '^No slowdown: ' "$out"
refuses curve_of_replicates 2 '.-curve is for one replicate' capacity -p torch -w random --curve --replicates 2

refuses no_policy 2 'give a policy, -p SPEC: order_flip: it does not say which allocator' capacity -w order_flip
refuses no_workload 2 'no workload given' capacity -p growth
refuses unknown_policy 2 'did you mean "growth"' capacity -p grwth -w order_flip
refuses stray_word 2 'growth: there is no such file, and no generator' capacity growth
# A recording alone: under the settings with which it was recorded.
graphs=workloads/data/graphs.expandable.csv.gz
run capacity "$graphs"
cp "$out" "$tmp/alone"
run capacity -p "torch:conf='expandable_segments:True'" -w "$graphs"
check a_recording_alone cmp -s "$out" "$tmp/alone"
check advise_places_segments_otherwise says 'may say less or more: they place segments .* and try fewer capacities\.'
run capacity "$graphs" -d sim:addresses=driver
check but_not_than_the_driver says 'may say less or more: they try fewer capacities\.'
check all_have_capacities not says ' None: '
run capacity -p growth:limit=8MiB -w order_flip
check none_is_explained says ' None: not up to the largest capacity that was tried\.'
refuses json_nowhere 2 "$tmp/no/x.json: cannot be written" capacity -p growth -w order_flip --json "$tmp/no/x.json"

# A policy that cannot begin is a row with its reason.
run capacity -d sim:profile=bump -p growth -p torch:expandable_segments=true -w order_flip
check one_that_cannot_begin_is_a_row says 'not started: policy torch: expandable_segments needs'
check the_others_have_capacities grep -qE '^1 +growth +[0-9]' "$out"
refuses none_can_begin 3 'not started: policy torch: expandable_segments needs virtual memory' capacity -d sim:profile=bump -p torch:expandable_segments=true -w order_flip
# replicates: the range is that of single searches with these seeds
run capacity -p best-fit -p growth -w random:events=500,target=64MiB,max=8MiB,seed=3 -d sim --replicates 3
safes=$(for seed in 3 4 5; do
    "$ALLOCRIG" capacity -p best-fit -w random:events=500,target=64MiB,max=8MiB,seed=$seed | awk '$2 == "best-fit" { print $4 }'
done | sort -n | paste -sd ' ')
check replicates_are_single_searches [ "$(awk '$2 == "best-fit" { print $6, $7, $8 }' "$out")" = "$safes" ]
check replicates_all_pass grep -qE 'best-fit +3 of 3 ' "$out"
# places by pairs: of nine differences, in order, the second and the eighth lie on one side of 0, though
# ranges overlap; with three replicates ranges decide
run capacity -p torch -p first-fit -w random:events=500,target=64MiB,max=8MiB,seed=3 -d sim --replicates 9 --json "$tmp/pairs.json"
check replicates_in_pairs_have_places [ "$(awk '$2 == "torch" || $2 == "first-fit" { print $1, $2 }' "$out" | paste -sd ' ')" = '2 torch 1 first-fit' ]
check their_ranges_overlap [ "$(awk '$2 == "torch" { least = $6 } $2 == "first-fit" { print ($8 > least) }' "$out")" = 1 ]
check their_pairs_do_not [ "$(sed -n 's/.*"safe_bytes": \([0-9]*\).*/\1/p' "$tmp/pairs.json" | awk '
    { bytes[NR] = $1 } END { for (i = 1; i <= 9; i++) print bytes[i] - bytes[9 + i] }' | sort -g | sed -n 2p | awk '{ print ($1 > 0) }')" = 1 ]
run capacity -p torch -p first-fit -w random:events=500,target=64MiB,max=8MiB,seed=3 -d sim --replicates 3
check few_replicates_share_a_place [ "$(grep -cE '^1= +(torch|first-fit) ' "$out")" = 2 ]
finish
