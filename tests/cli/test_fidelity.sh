#!/bin/bash
# `fidelity`: what it prints, its placements file, and its exit status.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
data=workloads/data

run fidelity $data/graphs.default.csv.gz --placements "$tmp/p.csv"
check recording_agrees [ "$status" = 0 ]
check rows_are_counted grep -qE '^ +requests and frees +292 of +292  all agree$' "$out"
check statistics_are_counted grep -qE '^ +final statistics +89 of +89  all agree$' "$out"
check releases_are_told grep -q 'released its cache there, 2 times, before events$' "$out"
check no_difference_is_named [ "$(grep -c difference "$out")" = 0 ]
check is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check placements_are_whole [ "$(wc -l <"$tmp/p.csv")" = 293 ]
check placements_header [ "$(head -n 1 "$tmp/p.csv")" = event,op,id,requested,granted,segment,offset,granted_total,reserved ]
run fidelity $data/resnet50_train.expandable.csv.gz
check releases_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check settings_are_the_recorded_ones grep -qx "torch:conf='expandable_segments:True'" "$out"

run fidelity $data/tape_small.default.csv.gz -p torch:roundup_power2_divisions=4
check other_settings_are_refused [ "$status" = 1 ]
check first_difference_is_named grep -qE '^  First difference at event [0-9]+ \(line [0-9]+ of the file\):$' "$out"
check both_sides_are_told [ "$(grep -cE '^    the (policy|recording) +places ' "$out")" = 2 ]
check error_is_one_line [ "$(wc -l <"$err")" = 1 ]

zcat $data/tape_small.default.csv.gz | awk -F, -v OFS=, 'NR == 4000 { $2 = sprintf("%.0f", $2 + 512) } { print }' >"$tmp/moved.csv"
run fidelity "$tmp/moved.csv"
check moved_address_is_refused [ "$status" = 1 ]
check moved_address_is_named grep -q '(line 4000 of the file)' "$out"

printf 'a,0,100\nf,0\n' >"$tmp/plain.csv"
run fidelity "$tmp/plain.csv"
check without_recorder_is_bad_input [ "$status" = 2 ]
check without_recorder_is_said grep -q 'does not say which allocator was recorded' "$err"
run fidelity "$tmp/plain.csv" -p torch
check without_places_is_said grep -q 'does not say where the recorded allocator placed' "$err"
check without_places_is_bad_input [ "$status" = 2 ]
run fidelity
check without_trace_is_bad_usage [ "$status" = 2 ]
run fidelity $data/graphs.default.csv.gz -p nothing
check unknown_policy_is_bad_usage [ "$status" = 2 ]
finish
