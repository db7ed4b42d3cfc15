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
check releases_are_told grep -q 'released its cache: 2 times, before events$' "$out"
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

# -- memory snapshots
for name in graphs.default side_streams.default streams_prefetch tape_small; do
    run fidelity tests/golden/data/snapshots/$name.pickle.gz
    check "snapshot_agrees_$name" [ "$status" = 0 ]
    check "snapshot_has_rows_$name" grep -qE '^ +requests and frees +([1-9][0-9]*) of +\1  all agree$' "$out"
done

# -- recordings that begin in the middle
part() { # NAME RECORDING STEPS: cut out with its state, the policy begins there and agrees
    quietly "$ALLOCRIG" convert "$2" "$tmp/part.trace" --steps "$3"
    run fidelity "$tmp/part.trace"
    check "part_agrees_$1" [ "$status" = 0 ]
    check "part_has_rows_$1" grep -qE '^ +requests and frees +([1-9][0-9]*) of +\1  all agree$' "$out"
    check "part_says_so_$1" grep -q 'begins in the middle of a program: [1-9][0-9]* segment' "$out"
    check "part_is_narrow_$1" [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
}
part segments $data/resnet50_train.default.csv.gz 2-3
part limit $data/lora_recompute.limit5.csv.gz 3-
part streams $data/side_streams.default.csv.gz 2-9
for name in resnet50_train streams_prefetch tape_small; do # recorded without marks
    zcat $data/$name.expandable.csv.gz | awk -F, -v OFS=, '{ print }
        NR % 1500 == 0 { at = 1 } at && $1 == "free_completed" { print "mark,0,0,0", $5; at = 0 }' >"$tmp/$name.csv"
    cp $data/$name.expandable.json "$tmp/$name.json"
    part "pages_$name" "$tmp/$name.csv" 2-
done
awk -F, '/^a,/ && !/initial/ && ++n == 900 { hit = 1 } hit && /^!,alloc/ { $0 = "!,alloc," $3 + 512; hit = 0 } { print }' \
    "$tmp/part.trace" >"$tmp/wrong.trace"
run fidelity "$tmp/wrong.trace"
check part_with_a_moved_address_is_refused [ "$status" = 1 ]
check part_with_a_moved_address_is_named grep -q 'First difference at event' "$out"
run fidelity "$tmp/part.trace" -p growth
check part_without_adoption_is_said grep -q 'The policy growth$' "$out"
run fidelity "$tmp/part.trace" -p torch:limit=1GiB
check part_under_other_settings [ "$status" != 0 ]
begin='# allocrig-trace 1\n# recorder: torch 2.11.0\n'
rest='a,0,600,initial=yes\na,1,100\n!,alloc,2098176\n'
printf '%b' "$begin"'!,segment,2097152,2097152,0\n!,block,2097152,1024,0\n'"$rest" >"$tmp/small.trace"
run fidelity "$tmp/small.trace"
check state_by_hand_agrees [ "$status" = 0 ]
printf '%b' "$begin"'!,segment,2097152,2097152,0\n!,block,2097152,600,0\n!,block,2097752,700,free\n'"$rest" >"$tmp/asked.trace"
run fidelity "$tmp/asked.trace"
check state_with_what_was_asked_for_agrees [ "$status" = 0 ]
bad() { # NAME REGEX NOTES
    printf '%b' "$begin$3$rest" >"$tmp/bad.trace"
    refuses "state_$1" 2 "$2" fidelity "$tmp/bad.trace"
}
bad not_read 'the line "!,segment,x" before the first event is not one of' '!,segment,x\n'
bad too_short 'block at 2097152 .* has 512 bytes, and request 0 asks for 600' '!,segment,2097152,2097152,0\n!,block,2097152,512,0\n'
bad outside 'block at 9 before the first event lies in no segment' '!,segment,2097152,2097152,0\n!,block,9,600,0\n'
bad overlap 'block at 2097200 .*in another block' '!,segment,2097152,2097152,0\n!,block,2097152,600,0\n!,block,2097200,600,free\n'
bad segments_overlap 'at 2098176 before the first event lies in another' '!,segment,2097152,2097152,0\n!,segment,2098176,512,0\n'
bad no_range 'run of pages at 2097152 .*in no range' '!,pages,2097152,2097152\n!,block,2097152,1024,0\n'
bad no_request 'is request 7, which must be one of the first events' '!,segment,2097152,2097152,0\n!,block,2097152,1024,7\n'
bad never 'policy torch can never have reached the state' '!,segment,2097152,600,0\n!,block,2097152,600,0\n'
end_begin='!,segment,2097152,2097152,0\n!,block,2097152,1024,0\n'
for note in segment,2097152,x,0 segment,2097152,2097152 block,2097152,1024 block,2097152,1024,live block,2097152,1024,used,x; do
    printf '%b' "$begin$end_begin$rest" "!,final_$note\\n" >"$tmp/bad.trace"
    refuses "end_not_read_$note" 2 "the line \"!,final_$note\" is neither" fidelity "$tmp/bad.trace"
done
bad untold 'block 0 existed before it, but the segments of that time are missing' ''

# -- ranges that follow each other at once, on a card smaller than the one that is taken where none is told
cat >"$tmp/ranges.trace" <<'END'
# allocrig-trace 1
# recorder: torch
# conf: expandable_segments:True
!,segment_map,25803358208,20971520,0
a,0,16777216
!,alloc,25803358208
!,segment_map,54794387456,2097152,0
a,1,4096
!,alloc,54794387456
!,segment_map,25824329728,20971520,0
a,2,16777216
!,alloc,25820135424
END
run fidelity "$tmp/ranges.trace"
check close_ranges_agree [ "$status" = 0 ]
check close_ranges_are_counted grep -qE '^ +segments made +3 of +3  all agree$' "$out"

# -- several devices: each releases what it holds itself
entry() { # ACTION ADDRESS BYTES TIME
    printf '{"action": "%s", "addr": %s, "size": %s, "stream": 0, "time_us": %s, "frames": []}' "$@"
}
segment='"total_size": 2097152, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0, "segment_type": "small"'
{
    printf '{"segments": [{"device": 0, "address": 268435456, %s, "segment_pool_id": [0, 0], "is_expandable": false,
        "blocks": [{"address": 268435456, "size": 2097152, "requested_size": 0, "state": "inactive"}]}],\n"device_traces": [[' "$segment"
    entry segment_alloc 268435456 2097152 10; echo ,
    entry alloc 268435456 512 11; echo ,
    entry free_requested 268435456 512 12; echo ,
    entry free_completed 268435456 512 12; echo '], ['
    entry segment_alloc 536870912 2097152 13; echo ,
    entry alloc 536870912 512 14; echo ,
    entry free_requested 536870912 512 15; echo ,
    entry free_completed 536870912 512 15; echo ,
    entry segment_free 536870912 2097152 16; echo ']]}'
} >"$tmp/devices.json"
run fidelity "$tmp/devices.json"
check several_devices_agree [ "$status" = 0 ]
check each_device_is_told [ "$(grep -c '^devices gpu[01], recorded with torch' "$out")" = 2 ]
check each_device_has_rows [ "$(grep -cE '^ +requests and frees +2 of +2  all agree$' "$out")" = 2 ]
check released_alone grep -qE '^ +segments released +1 of +1  all agree$' "$out"
sed 's/"addr": 536870912, "size": 512, "stream": 0, "time_us": 14/"addr": 536871424, "size": 512, "stream": 0, "time_us": 14/' "$tmp/devices.json" >"$tmp/other.json"
run fidelity "$tmp/other.json"
check one_device_differs [ "$status" = 1 ]
check devices_that_differ_are_counted grep -q 'differ on 1 of 2 GPUs' "$err"

# The settings do not go with the state at the start: after the difference the policy releases what it does not have.
printf '%s\n' '# allocrig-trace 1' '# recorder: torch' '# conf: expandable_segments:True' '!,segment,4815396536320,41943040,1' \
    '!,segment_map,12918456320,20971520,0' a,0,10485760 f,0 '!,segment_map,181831467008,2097152,0' a,1,191416 \
    '!,segment_map,350710923264,2097152,3' a,2,191416,3 a,3,7231879 '!,alloc,12918456320' \
    '!,segment_unmap,12918456320,20971520,0' >"$tmp/other_settings.trace"
run fidelity "$tmp/other_settings.trace"
check a_call_that_cannot_be_is_a_difference eval '[ "$status" = 1 ] && grep -q "First difference" "$out"'

printf 'a,0,100\nf,0\n' >"$tmp/plain.csv"
run fidelity "$tmp/plain.csv"
check without_recorder_is_bad_input [ "$status" = 2 ]
check without_recorder_is_said grep -q 'does not say which allocator was recorded' "$err"
run fidelity "$tmp/plain.csv" -p torch
check without_places_is_said grep -q 'does not say where the recorded allocator placed' "$err"
check without_places_is_bad_input [ "$status" = 2 ]
run fidelity
check without_trace_is_bad_usage [ "$status" = 2 ]
run fidelity $data/graphs.default.csv.gz -p "torch:conf='$(printf 'expandable_segments:False,%.0s' $(seq 60))max_split_size_mb:40000'"
check a_long_policy_is_taken_whole eval '[ "$status" = 0 ] && [ ! -s "$err" ]'
run fidelity $data/graphs.default.csv.gz -p nothing
check unknown_policy_is_bad_usage [ "$status" = 2 ]
finish
