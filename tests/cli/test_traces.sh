#!/bin/bash
# `gen`, `convert` and `inspect`: trace files made, translated, cut, joined and described.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz

# -- gen
check gen_text quietly "$ALLOCRIG" gen random:events=2000,seed=3 -o "$tmp/r.txt"
check gen_text_has_the_first_line [ "$(head -n 1 "$tmp/r.txt")" = '# allocrig-trace 1' ]
check gen_binary quietly "$ALLOCRIG" gen random:events=2000,seed=3 -o "$tmp/r.bin"
check gen_compressed quietly "$ALLOCRIG" gen random:events=2000,seed=3 -o "$tmp/r.bin.zst"
check gen_any_ending quietly "$ALLOCRIG" gen random:events=2000,seed=3 -o "$tmp/r.dat" --format binary
check gen_format_is_what_was_asked cmp "$tmp/r.bin" "$tmp/r.dat"
sha() { # FILE OR WORKLOAD
    "$ALLOCRIG" run -d sim -p null -w "$1" --json - | sed -n 's/.*"sha256": "\(.*\)".*/\1/p'
}
check gen_text_is_the_workload [ "$(sha "$tmp/r.txt")" = "$(sha random:events=2000,seed=3)" ]
check gen_binary_is_the_workload [ "$(sha "$tmp/r.bin.zst")" = "$(sha "$tmp/r.txt")" ]
check gen_seeds_differ [ "$(sha random:events=2000,seed=4)" != "$(sha "$tmp/r.txt")" ]
refuses gen_unknown 2 'no generator "randm"; did you mean "random"' gen randm -o "$tmp/x.txt"
refuses gen_nowhere 2 'no output file is given' gen random
refuses gen_nothing 2 'no workload is given' gen -o "$tmp/x.txt"
"$ALLOCRIG" gen random:events=100 -o "$tmp/piped.txt" >/dev/null
check gen_to_standard_output cmp <("$ALLOCRIG" gen random:events=100 -o -) "$tmp/piped.txt"
for format in text binary rmm snapshot; do
    input=$tmp/piped.txt
    [ "$format" != snapshot ] || input=workloads/data/side_streams.default.csv.gz
    "$ALLOCRIG" convert "$input" "$tmp/piped.$format" --format "$format" >/dev/null
    check "convert_to_standard_output_as_$format" \
        cmp <("$ALLOCRIG" convert "$input" - --format "$format") "$tmp/piped.$format"
done
"$ALLOCRIG" convert "$tmp/piped.snapshot" - 2>/dev/null >"$tmp/piped.again"
check the_report_of_an_import_is_not_in_it sh -c "head -1 '$tmp/piped.again' | grep -qx '# allocrig-trace 1'"
# -- a recording without segments as a snapshot: it gets them for all its blocks
printf 'action,addr,size,stream,time_us\nalloc,4096,1048576,0,10\nalloc,2097152,4194304,0,20\nfree_completed,4096,1048576,0,30
alloc,8388608,2097152,0,40\nfree_completed,2097152,4194304,0,50\nalloc,2099200,512,0,60\n\n' >"$tmp/bare.csv"
quietly "$ALLOCRIG" convert "$tmp/bare.csv" "$tmp/bare.pickle"
run convert "$tmp/bare.pickle" "$tmp/bare.txt"
check what_is_reserved_is_no_less_than_live \
    grep -q '^At most 6.000 MiB were live, .*; the allocator reserved up to 7.000$' "$out"
check segments_of_freed_blocks grep -qx '!,segment,2097152,4194304,0' "$tmp/bare.txt"
check blocks_that_overlap_share_a_segment [ "$(grep -c '^!,segment,' "$tmp/bare.txt")" = 3 ]

if command -v script >/dev/null; then
    script -qec "'$ALLOCRIG' gen random:events=100 -o - --format binary" "$tmp/terminal" </dev/null >/dev/null
    check no_binary_to_a_terminal grep -q 'is not written to a terminal' "$tmp/terminal"
else
    echo "skip no_binary_to_a_terminal: script is not installed"
fi
refuses a_format_that_is_only_read 2 'the format csv is read and not written' \
    convert "$tmp/piped.txt" "$tmp/x.csv" --format csv
refuses minimize_to_standard_output 2 'cannot be written to standard output, which has other text' \
    minimize "$tmp/piped.txt" --until oom -p torch -o -
refuses a_trace_from_standard_input 2 'a trace is not read from standard input; name a file' inspect -
refuses gen_unknown_ending 2 "$tmp/x.dat: the ending does not tell" gen random -o "$tmp/x.dat"
refuses gen_unknown_format 2 'no format "binry"; did you mean "binary"' gen random -o "$tmp/x" --format binry
refuses gen_adaptive_needs_a_policy 2 'robson.*add a policy to run it under' gen robson -o "$tmp/x.txt"
refuses gen_takes_no_policy 2 'random is the same under every policy' gen random -p growth -o "$tmp/x.txt"
refuses gen_makes_one_trace 2 'one workload too many' gen random order_flip -o "$tmp/x.txt"
check gen_refused_leaves_nothing [ -z "$(find "$tmp" -name 'x*')" ]
check gen_adaptive quietly "$ALLOCRIG" gen robson -p first-fit -d sim:profile=bump -o "$tmp/robson.txt"
peak() { # WORKLOAD: reserved by first-fit
    "$ALLOCRIG" run -p first-fit -w "$1" -d sim:profile=bump --json - | sed -n 's/.*"peak_reserved_bytes": \(.*\),/\1/p'
}
check gen_adaptive_is_what_was_played [ "$(peak "$tmp/robson.txt")" = "$(peak robson)" ]
check gen_adaptive_has_its_known_answer [ "$(peak robson)" = 3057 ]

# -- convert
check to_binary quietly "$ALLOCRIG" convert "$tape" "$tmp/t.bin"
check to_text quietly "$ALLOCRIG" convert "$tmp/t.bin" "$tmp/t.txt"
check to_compressed quietly "$ALLOCRIG" convert "$tmp/t.txt" "$tmp/t2.bin.zst"
check to_binary_again quietly "$ALLOCRIG" convert "$tmp/t2.bin.zst" "$tmp/t3.bin"
check nothing_is_lost cmp "$tmp/t.bin" "$tmp/t3.bin"
table() { # WORKLOAD: rows of its table
    "$ALLOCRIG" run -d sim -p growth -p best-fit -w "$1" | grep -E '^ *[0-9-]+ +[gb]'
}
check the_same_results [ "$(table "$tape")" = "$(table "$tmp/t2.bin.zst")" ]
count() { # FILE LABEL: events of a kind
    "$ALLOCRIG" inspect "$1" | awk -v label="$2" '$1 == label { print $NF; exit }'
}
check steps_are_cut quietly "$ALLOCRIG" convert "$tape" "$tmp/steps.txt" --steps 5-7
check steps_are_three [ "$(count "$tmp/steps.txt" m)" = 3 ]
check events_are_chosen quietly "$ALLOCRIG" convert "$tape" "$tmp/af.txt" --events af
check events_are_two_kinds [ "$(grep -v '^#' "$tmp/af.txt" | cut -c 1 | sort -u | paste -sd ' ')" = 'a f' ]
check small_blocks_go quietly "$ALLOCRIG" convert "$tape" "$tmp/large.txt" --events af --min-bytes 32MiB
check small_blocks_are_gone [ "$(awk -F, '/^a/ && $3 < 33554432' "$tmp/large.txt" | wc -l)" = 0 ]
check large_blocks_stay [ "$(grep -c '^a' "$tmp/large.txt")" = "$(grep '^a' "$tmp/af.txt" | awk -F, '$3 >= 33554432' | wc -l)" ]
check repeated quietly "$ALLOCRIG" convert "$tmp/r.txt" "$tmp/three.bin" --repeat 3
check repeated_three_times [ "$(count "$tmp/three.bin" a)" = $((3 * $(count "$tmp/r.txt" a))) ]
check merged quietly "$ALLOCRIG" convert "$tmp/r.txt" "$tmp/two.bin" --merge "$tmp/t.txt"
check merged_has_both [ "$(count "$tmp/two.bin" a)" = $(($(count "$tmp/r.txt" a) + $(count "$tmp/t.txt" a))) ]
printf '# allocrig-trace 1\na,0,1\n!,settings,expandable_segments:True\nm,step\nf,0\nm,step\n' >"$tmp/set.txt"
check changes_are_cut quietly "$ALLOCRIG" convert "$tmp/set.txt" "$tmp/set2.txt" --steps 2
check changes_before_a_part_hold_in_it grep -qx '!,settings,expandable_segments:True' "$tmp/set2.txt"
# The driver's own memory: where an H200 placed the segments of optimizer_lookahead, in MiB from the first one.
printf '# allocrig-trace 1\n!,driver,local,1024\na,0,1\na,1,20971520\na,2,20971520\n!,driver,local,1376\na,3,20971520\n!,driver,took,67108864\na,4,33554432\nm,step\n' >"$tmp/driver.txt"
places() { # TRACE DEVICE_OPTIONS
    "$ALLOCRIG" run -p torch -w "$1" -d "sim:$2" --snapshot "$tmp/at.pickle" >/dev/null &&
        "$ALLOCRIG" convert "$tmp/at.pickle" "$tmp/at.txt" >/dev/null &&
        awk -F, '/^!,segment_alloc/ { if (!n++) first = $3; printf " %d", ($3 - first) / 1048576 }' "$tmp/at.txt"
}
check the_driver_moves_its_memory [ "$(places "$tmp/driver.txt" profile=h200,addresses=driver)" = ' 0 74 -446 -414 -330' ]
grep -v driver "$tmp/driver.txt" >"$tmp/plain.txt"
for of in profile=h200 profile=a100-80,addresses=driver; do
    check "nothing_is_known_of_$of" [ "$(places "$tmp/driver.txt" "$of")" = "$(places "$tmp/plain.txt" "$of")" ]
done
check the_driver_is_kept quietly "$ALLOCRIG" convert "$tmp/driver.txt" "$tmp/part.bin" --min-bytes 1
check the_driver_is_kept_in_binary [ "$(places "$tmp/part.bin" profile=h200,addresses=driver)" = ' 0 74 -446 -414 -330' ]
printf '# allocrig-trace 1\n!,driver,local,x\na,0,1\n' >"$tmp/bad_driver.txt"
refuses a_bad_note_on_the_driver 2 'a note on the driver is driver,local,BYTES or driver,took,BYTES' run -p torch -w "$tmp/bad_driver.txt" -d sim
refuses convert_merge_of_changes 2 'set: event 1: the note "settings,.*" is on the allocator of one process' \
    convert "$tmp/t.txt" "$tmp/x.txt" --merge "$tmp/set.txt"
cp "$tmp/r.txt" "$tmp/own.txt"
ln -s own.txt "$tmp/link.txt"
refuses convert_onto_itself 2 'convert: OUT would overwrite ".*/own.txt", which is an input; name another file' convert "$tmp/own.txt" "$tmp/own.txt" --steps 1
refuses convert_onto_a_merged_one 2 'OUT would overwrite ".*/link.txt"' convert "$tape" "$tmp/link.txt" --merge "$tmp/own.txt"
check convert_leaves_its_input cmp "$tmp/own.txt" "$tmp/r.txt"
refuses convert_one_name 2 'two files are needed' convert "$tape"
refuses convert_three_names 2 'one file too many' convert "$tape" "$tmp/x.txt" "$tmp/y.txt"
refuses convert_missing 2 "$tmp/no.bin: .*No such file" convert "$tmp/no.bin" "$tmp/x.txt"
refuses convert_missing_merge 2 "$tmp/no.bin: .*No such file" convert "$tape" "$tmp/x.txt" --merge "$tmp/no.bin"
printf '\xff\xfea\0,\0' >"$tmp/utf16.txt"
printf '# allocrig-trace 1\na,0,1000\na,1,1048576,space=pinned\nf,0\n' >"$tmp/pinned.trace"
run inspect "$tmp/pinned.trace"
check blocks_at_once_are_those_of_the_card says '^live peak    1000 B at event 0; at most 1 blocks at once$'
check what_is_kept_may_be_pinned says '^never freed  1 blocks, 1\.000 MiB, of these 1\.000 MiB pinned$'
refuses utf_16 2 'utf16.txt: no trace: this is a text in UTF-16; save it as UTF-8' inspect "$tmp/utf16.txt"
printf '# allocrig-trace 1\ra,0,4\r' >"$tmp/cr.txt"
refuses lines_that_end_with_cr 2 'cr.txt:1: lines end with CR alone; save them with LF' inspect "$tmp/cr.txt"
refuses steps_backwards 2 'steps "9-4"' convert "$tape" "$tmp/x.txt" --steps 9-4
refuses steps_beyond 2 'csv.gz: the trace has 360 steps, and no step 1001; 360- has all from that step on, also behind the last mark$' convert "$tape" "$tmp/x.txt" --steps 1000-1001
refuses what_is_behind_the_last_mark_is_no_step 2 'has 360 steps, and no step 361;' convert "$tape" "$tmp/x.txt" --steps 361
refuses steps_beyond_from_one_on 2 'no step 400; 360- has all' convert "$tape" "$tmp/x.txt" --steps 400-
check what_is_behind_it_is_in_the_last_part quietly "$ALLOCRIG" convert "$tape" "$tmp/last.txt" --steps 360-
check it_comes_after_the_mark not sh -c "tail -n 1 '$tmp/last.txt' | grep -q '^m,step'"
printf 'a,0,1\nf,0\n' >"$tmp/unmarked.txt"
refuses no_step 2 'unmarked.txt: the trace has no step; a mark `step` ends one$' convert "$tmp/unmarked.txt" "$tmp/x.txt" --steps 1
refuses steps_beyond_in_part 2 'and no step 400; 300- has all' convert "$tape" "$tmp/x.txt" --steps 300-400
refuses kind_unknown 2 '"q".*is no kind of event' convert "$tape" "$tmp/x.txt" --events q
refuses no_such_stream 2 'the filter leaves no events' convert "$tape" "$tmp/x.txt" --streams 9999
refuses no_such_device 2 'it has no requests of GPU 9; it has those of GPU 0$' convert "$tape" "$tmp/x.txt" --device 9
refuses repeated_for_ever 2 '--repeat is "18446744073709551615"; it must be a whole number from 1 to 1000000' convert "$tape" "$tmp/x.txt" --repeat 18446744073709551615
refuses stream_no_number 2 'streams.*"x" is not a whole number' convert "$tape" "$tmp/x.txt" --streams x
refuses repeat_zero 2 'repeat is "0"; it must be a whole number from 1' convert "$tape" "$tmp/x.txt" --repeat 0
refuses min_bytes_bad 2 'min-bytes: "1Q" is not a size' convert "$tape" "$tmp/x.txt" --min-bytes 1Q
check convert_refused_leaves_nothing [ -z "$(find "$tmp" -name 'x*')" ]

# -- inspect
run inspect "$tape"
check inspect_ends_well [ "$status" = 0 ]
check inspect_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check inspect_names_the_recorder grep -q '^recorder .*torch' "$out"
check inspect_counts_events grep -qE '^events +30249' "$out"
check inspect_has_the_peak grep -qE '^live peak +1\.255 GiB' "$out"
check inspect_has_steps grep -qE '^ +360 ' "$out"
check inspect_generator quietly "$ALLOCRIG" inspect order_flip
refuses inspect_adaptive 2 'gen robson -p POLICY -o FILE' inspect robson
refuses inspect_nothing 2 'no trace is given' inspect
refuses inspect_two 2 'one file too many' inspect "$tape" "$tape"
finish
