#!/bin/bash
# PyTorch's memory snapshots: every layout, what is made of it, what is refused, and that a hostile
# file costs neither memory nor time.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
made=tests/golden/data/snapshots
refused() { # NAME REGEX: the last `bounded` run refused its file with such a sentence, left nothing
    local bad=1
    if [ "$status" = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -qE -e "$2" "$err" && [ ! -e "$tmp/x.txt" ]; then
        bad=0
    else
        echo "  status $status, said: $(head -n 3 "$err")"
    fi
    verdict "$1" $bad
}
fill() { # COUNT TEXT: so many bytes of it
    yes "$2" | tr -d '\n' | head -c "$1"
}

# -- what PyTorch wrote: every address, and the end block by block
for name in graphs.default side_streams.default streams_prefetch tape_small; do
    run fidelity $made/$name.pickle.gz
    check "agrees_$name" [ "$status" = 0 ]
    check "has_rows_$name" grep -qE '^ +requests and frees +([1-9][0-9]*) of +\1  all agree$' "$out"
    check "meets_the_end_$name" grep -qE '^ +blocks at the end +([1-9][0-9]*) of +\1  all agree$' "$out"
    quietly "$ALLOCRIG" convert $made/$name.pickle.gz "$tmp/1.trace"
    quietly "$ALLOCRIG" convert "$tmp/1.trace" "$tmp/again.pickle"
    quietly "$ALLOCRIG" convert "$tmp/again.pickle" "$tmp/2.trace"
    check "comes_back_$name" [ "$(grep -v '^#' "$tmp/1.trace" | sha256sum)" = "$(grep -v '^#' "$tmp/2.trace" | sha256sum)" ]
done
# Changes of the settings and of the limit are annotations.
sed -e '60i !,settings,max_split_size_mb:80' -e '80i !,settings,' -e '90i !,limit,1073741824' "$tmp/1.trace" >"$tmp/changed.trace"
quietly "$ALLOCRIG" convert "$tmp/changed.trace" "$tmp/again.pickle"
quietly "$ALLOCRIG" convert "$tmp/again.pickle" "$tmp/2.trace"
check changes_come_back [ "$(grep -v '^# name' "$tmp/changed.trace" | sha256sum)" = "$(grep -v '^# name' "$tmp/2.trace" | sha256sum)" ]
for note in "settings,a:$(printf '%0510d' 0)" limit,1x 'settings,a -> b' 'settings,-> b' 'settings,a ->'; do
    sed -e "60i !,$note" -e '80i !,settings,c:1' "$tmp/1.trace" >"$tmp/changed.trace"
    refuses "no_note_is_damaged_${note:0:13}" 2 'would not come back from a snapshot' convert "$tmp/changed.trace" "$tmp/no.pickle"
done
# A snapshot without anything is none.
printf '# allocrig-trace 1\nm,step\n' >"$tmp/nothing.trace"
refuses nothing_is_no_snapshot 2 'its snapshot would be empty' run -d sim -p torch -w "$tmp/nothing.trace" --snapshot "$tmp/no.pickle"
check and_leaves_none [ ! -e "$tmp/no.pickle" ]

# The same program, recorded once, as a CSV and as a snapshot: times of completions apart, the same events.
events() { # FILE
    grep -v -e '^[#t]' -e '^!,final' "$1" | sha256sum
}
quietly "$ALLOCRIG" convert $made/graphs.default.pickle.gz "$tmp/1.trace"
quietly "$ALLOCRIG" convert workloads/data/graphs.default.csv.gz "$tmp/2.trace"
check snapshot_and_csv_are_the_same [ "$(events "$tmp/1.trace")" = "$(events "$tmp/2.trace")" ]

# -- layouts
for file in "$made"/layouts/*.gz; do
    name=$(basename "$file" .pickle.gz)
    run fidelity "$file"
    check "layout_$name" [ "$status" = 0 ]
    check "layout_meets_the_end_$name" grep -qE '^ +blocks at the end +([1-9][0-9]*) of +\1  all agree$' "$out"
done
for protocol in 0 1 2 3 5; do
    run inspect tests/fuzz/corpus/pickle/protocol$protocol
    grep -v '^name\|^import' "$out" >"$tmp/p$protocol"
    check "protocol_$protocol" cmp "$tmp/p$protocol" "$tmp/p0"
done
run inspect $made/layouts/ring.pickle.gz
check ring_is_said grep -qx 'It begins in the middle of a program.' "$out"
check ring_has_a_start grep -qE '^  live at the start +[1-9][0-9]*  blocks' "$out"
check ring_has_unmatched_frees grep -qE '^  unmatched frees +[1-9][0-9]*  of blocks that must have existed before$' "$out"
echo '{"segments": [{"address": 4194304, "total_size": 4194304, "stream": 0, "segment_type": "large", "device": 0,
    "blocks": [{"size": 2097152, "requested_size": 2097152, "state": "active_allocated"},
        {"size": 2097152, "requested_size": 2097152, "state": "active_allocated"}]}], "device_traces": [[]]}' >"$tmp/still.json"
run inspect "$tmp/still.json"
check without_a_history_is_said says 'It has no history, only the blocks at its end. To record one, call torch.cuda.memory._record_memory_history before'
run advise "$tmp/still.json" --capacity 1GiB
check no_firm_verdict says '^The blocks at its end fit in 1\.000 GiB'
check and_why says '^Whether the program does is not known: the snapshot has no history\.'
check advice_says_it_too says 'It has no history, .* The answer is about these blocks alone'
check and_does_not_call_it_exact not says 'the answer is exact'
run fits "$tmp/still.json"
check a_card_serves_what_is_known says '^The blocks at its end fit on h100 as it is'
run explain "$tmp/still.json" -p torch
check served_is_what_is_known says 'the requests for the blocks at its end were served\.'
check explanations_say_it_too says 'It has no history, .* The answer is about these blocks alone'
run explain "$tmp/still.json" -p direct --capacity 2MiB
check failures_say_it_too says 'It has no history, .* The answer is about these blocks alone'
run inspect $made/layouts/segments.pickle.gz
check segments_are_said grep -q 'it has segments only: a state without a history' "$out"
check report_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]

run convert $made/layouts/metadata.pickle.gz "$tmp/marks.trace"
check annotations_are_marks [ "$(grep '^m' "$tmp/marks.trace" | tr '\n' ' ')" = 'm,fwd,stage=start m,fwd,stage=end ' ]
# The data.pkl of torch.save is the first member of a zip archive, not packed.
member() { # NAME
    printf 'PK\3\4\24'
    head -c 21 /dev/zero
    printf %b "\\0$(printf %03o ${#1})"
    head -c 3 /dev/zero
    printf %s "$1"
    gzip -dc $made/graphs.default.pickle.gz
}
member archive/data.pkl >"$tmp/saved.pt"
run fidelity "$tmp/saved.pt"
check torch_save [ "$status" = 0 ]
member archive/version >"$tmp/saved.pt"
bounded 524288 convert "$tmp/saved.pt" "$tmp/x.txt"
refused another_archive 'a zip archive whose first member is not the data\.pkl that torch\.save writes'
printf '\200\002\212\012l\374\234F\371 j\250P\031.\200\002M\351\003.' >"$tmp/saved.pt"
bounded 524288 convert "$tmp/saved.pt" "$tmp/x.txt"
refused old_torch_save 'a file of torch\.save in its old form'

# A page of PyTorch's memory viewer has the snapshot in base64.
viewer() { # TEXT
    printf '\n<!DOCTYPE html>\n<html><script type="module">\nconst local_files = [{"name": "snapshot.pickle", "base64": "%s' "$1"
}
viewer "$(gzip -dc $made/layouts/segments.pickle.gz | base64 -w 0)" >"$tmp/cut.html"
printf '"}]\n</script></html>\n' | cat "$tmp/cut.html" - >"$tmp/viewer.html"
quietly "$ALLOCRIG" convert "$tmp/viewer.html" "$tmp/1.trace"
quietly "$ALLOCRIG" convert $made/layouts/segments.pickle.gz "$tmp/2.trace"
check page_of_the_viewer [ "$(grep -v '^# name' "$tmp/1.trace" | md5sum)" = "$(grep -v '^# name' "$tmp/2.trace" | md5sum)" ]
head -c 1000 "$tmp/cut.html" >"$tmp/half.html"
run inspect "$tmp/half.html"
refused page_cut_off 'the compressed file is cut off'
viewer 'gA!x"' >"$tmp/broken.html"
run inspect "$tmp/broken.html"
refused page_broken 'its base64 compression is broken'
printf '<html>no "base64" here</html>' >"$tmp/other.html"
run inspect "$tmp/other.html"
refused other_page 'this is an HTML page'

# -- several devices
two=$made/layouts/two_devices.pickle.gz
for device in 0 1; do
    run convert $two "$tmp/device.trace" --device $device
    check device_$device [ "$status" = 0 ]
    run fidelity "$tmp/device.trace"
    check device_agrees_$device [ "$status" = 0 ]
    check device_meets_the_end_$device grep -qE '^ +blocks at the end +([1-9][0-9]*) of +\1  all agree$' "$out"
done
check device_key_is_kept grep -q 'device=1' "$tmp/device.trace"
quietly "$ALLOCRIG" convert $two "$tmp/both.trace"
quietly "$ALLOCRIG" convert "$tmp/both.trace" "$tmp/one.trace" --device 1
check device_of_a_trace [ "$(grep -c '^a' "$tmp/one.trace")" = "$(grep -c '^a' "$tmp/device.trace")" ]
refuses device_that_is_not_there 2 'nothing in it is of device 7' convert $two "$tmp/x.txt" --device 7
refuses device_that_is_none 2 '--device' convert $two "$tmp/x.txt" --device one

# -- a state at the end that is not the policy's
sed '/^!,final_block/s/,used,\([0-9]*\)$/,used,4\1/' "$tmp/1.trace" >"$tmp/wrong.trace"
run fidelity "$tmp/wrong.trace"
check wrong_end [ "$status" = 1 ]
check wrong_end_is_named says 'the recording has [0-9]+ bytes at [0-9]+ in use, asked for as 4[0-9]+, at the end$'
check wrong_end_has_its_event grep -qE '^  First difference at event [0-9]+:$' "$out"

# -- code is never run
for name in runs_code0 runs_code2; do
    bounded 524288 convert tests/fuzz/corpus/pickle/$name "$tmp/x.txt"
    refused "$name" 'byte [0-9]+: GLOBAL posix\.system: .* is refused'
done
bounded 524288 convert tests/fuzz/corpus/pickle/runs_code4 "$tmp/x.txt"
refused runs_code4 'byte [0-9]+: STACK_GLOBAL: .* is refused'
bounded 524288 convert tests/fuzz/corpus/pickle/attack "$tmp/x.txt"
refused attack 'byte 0: GLOBAL os\.system: .* is refused'
for opcode in 'PERSID P' 'BINPERSID Q' 'REDUCE R' 'BUILD b' 'INST i' 'OBJ o' 'NEWOBJ \201' 'EXT1 \202' 'EXT2 \203' 'EXT4 \204' \
    'NEWOBJ_EX \222' 'STACK_GLOBAL \223' 'NEXT_BUFFER \227' 'READONLY_BUFFER \230'; do
    printf '\200\004%b' "${opcode#* }" >"$tmp/bad"
    bounded 524288 convert "$tmp/bad" "$tmp/x.txt"
    refused "refuses_${opcode% *}" "byte 2: ${opcode% *}: .* is refused"
done

# -- bombs
bomb() { # NAME REGEX: what standard input unpacks to is refused
    cat >"$tmp/bad"
    bounded 524288 convert "$tmp/bad" "$tmp/x.txt"
    refused "$1" "$2"
}
{ printf '\200\004' && fill 1000000 '('; } | bomb nested_deep 'byte 202: it nests more than 200 deep'
! long a_million_lists || { printf '\200\004' && fill 2000000 ']'; } | bomb a_million_lists 'EMPTY_LIST puts more than a million values on the stack'
printf '\200\004\215\377\377\377\377\377\377\377\177' | bomb long_text 'BINUNICODE8 of 9223372036854775807 bytes: no text is that long'
printf '\200\004\213\377\377\377\177' | bomb long_number 'LONG4 of 2147483647 bytes: no number is that long'
! long memo_flood || { printf '\200\004N' && fill 2000000 "$(printf '\224')" | LC_ALL=C cat; } | gzip -1 | bomb memo_flood 'MEMOIZE remembers more values than there are'
printf '\200\004Nr\377\377\377\377.' | bomb memo_number 'LONG_BINPUT 4294967295: numbers of the memo come up one by one'
{ printf '\200\004]\224' && fill 3000 "$(printf 'h\001a')" && printf '.'; } | bomb memo_missing 'BINGET 1 is not in the memo'
! long packed_containers || { printf '\200\004' | gzip && fill 1000000 '}0' | members 80; } | bomb packed_containers 'it holds more data than a snapshot of that size can'
# Texts of a mebibyte, which are read fast, each dropped at once.
{ printf 'X\0\0\020\0' && fill 1048576 a && printf 0; } >"$tmp/text"
{ printf '\200\004' && for ((i = 0; i < 80; i++)); do cat "$tmp/text"; done; } >"$tmp/packed"
{ printf '\200\004' | gzip && members 80 -9 <"$tmp/text"; } | bomb packed 'it unpacks to more than 128 times its size'
zstd -q <"$tmp/packed" | bomb packed_zstd 'it unpacks to more than 128 times its size'
bounded 524288 convert tests/fuzz/corpus/pickle/self_reference "$tmp/x.txt"
refused self_reference 'finds no dictionary|no segment'
{ printf '{"device_traces": ' && fill 1000000 '['; } | bomb json_nested_deep 'more than 256 brackets are open'
! long json_packed || { printf '{"device_traces": [' | gzip && fill 1200000 '{},' | members 50; } | bomb json_packed 'it holds more data than a snapshot of that size can|unpacks to more'
printf '{"device_traces": [[{"action": "alloc", "addr": 1, "si' | bomb json_cut_off 'the file ends in the middle of its JSON'
printf '{"device_traces": 7}' | bomb json_nothing '"device_traces" is no list'
head -c 700 tests/fuzz/corpus/pickle/protocol4 | bomb cut_off 'byte [0-9]+: the file ends in the middle of the pickle'
printf '\200\004}.' | bomb nothing 'a pickle without "segments" and "device_traces"'
printf '\200\011}.' | bomb protocol_9 'byte 0: protocol 9 is unknown; 0 to 5 can be read'

# sizes that cannot be are not taken for 0
sized() { printf '(dVsegments\n(lsVdevice_traces\n(l(l(dVaction\nValloc\nsVaddr\nI4096\nsVsize\n%s\nsaas.' "$1"; }
sized I512 >"$tmp/sized"
check size_that_can_be quietly "$ALLOCRIG" inspect "$tmp/sized"
for size in I-5 I1152921504606846976 L1180591620717411303424L Fnan; do
    sized $size | bomb "size_$size" "byte [0-9]+: an entry's size is not a number of bytes below"
done

# what such a run cannot show, and why
run run -d sim -p torch -w "$PWD/tests/golden/data/snapshots/tape_small.pickle.gz" -w order_flip --output "$tmp/shown"
check no_slowdown_is_explained says '^No slowdown \(-\) of tape_small and order_flip: without kernels there is no time'
check in_the_summary_too grep -q '^No slowdown (-) of tape_small and order_flip: ' "$tmp/shown/summary.md"
run run -d sim:addresses=random -p torch -p vmm -w "$PWD/tests/golden/data/snapshots/tape_small.pickle.gz" --replicates 3
check replicates_that_change_nothing_are_explained says '^All replicates of tape_small are alike: the seeds changed no decision\.$'
run run -d sim -p torch -w random:events=2000 --replicates 3
check draws_that_do_are_not not says 'are alike'
run run -d sim -p torch -w random:events=2000 --metrics none
check figures_that_were_not_wanted_are_not not says 'No slowdown'
if command -v gnuplot >/dev/null; then
    plots/render.sh "$tmp/shown/data" "$tmp/figures" svg >"$out" 2>&1
    check no_figure_is_explained says 'no figure pareto: its share of time needs workloads with kernels'
    check no_rows_is_explained says 'slowdown.csv has no rows, so no figure slowdown: a suite with a section .slowdown. fills it'
    check notes_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
else
    echo "skip no_figure_is_explained: gnuplot is not installed"
fi
# Many ranges and releases, and many runs at the end beside a long history: each in one pass, or given up.
# Under a sanitizer a twentieth of them.
parts=1
[ "$TEST_VARIANT" = release ] || [ "${TEST_SOAK:-0}" = 1 ] || parts=20
releases=$((150000 / parts)) runs=$((40000 / parts))
awk -v releases=$releases 'BEGIN {
    printf "{\"segments\": [], \"device_traces\": [["
    for (i = 0; i < 900; i++) printf "%s{\"action\": \"segment_map\", \"addr\": %.0f, \"size\": 16777216, \"stream\": %d}", i ? "," : "", (i + 1) * 2 ^ 36, i
    for (i = 0; i < releases; i++) for (k = 0; k < 2; k++)
        printf ",{\"action\": \"segment_%s\", \"addr\": %.0f, \"size\": 2097152, \"stream\": %d}", k ? "map" : "unmap", (i % 900 + 1) * 2 ^ 36 + 2097152, i % 900
    print "]]}"
}' >"$tmp/releases.json"
run convert "$tmp/releases.json" "$tmp/releases.bin"
check many_releases_of_many_ranges_are_read [ "$status" = 0 ]
check many_releases_are_counted grep -qE "^ +records +$((900 + 2 * releases)) " "$out"
awk -v runs=$runs 'BEGIN {
    printf "{\"segments\": ["
    for (i = 0; i < runs; i++) printf "%s{\"address\": %.0f, \"total_size\": 2097152, \"stream\": %d, \"segment_type\": \"small\", \"is_expandable\": true, \"blocks\": [{\"size\": 2097152, \"state\": \"inactive\"}]}", i ? "," : "", (i + 1) * 2 ^ 32, i % 2
    printf "], \"device_traces\": [[{\"action\": \"segment_map\", \"addr\": 4294967296, \"size\": 2097152, \"stream\": 0}"
    for (i = 0; i < 5 * runs; i++) printf ",{\"action\": \"%s\", \"addr\": %.0f, \"size\": 512, \"stream\": 0}", i % 2 ? "free_completed" : "alloc", 2 ^ 33
    print "]]}"
}' >"$tmp/runs.json"
run convert "$tmp/runs.json" "$tmp/runs.bin"
check many_runs_beside_a_long_history_are_read [ "$status" = 0 ]
rm -f "$tmp"/releases.* "$tmp"/runs.*

finish
