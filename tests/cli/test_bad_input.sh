#!/bin/bash
# Bad input ends with exit status 2 and one sentence that names the file and the line or event,
# and leaves no result file behind.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP

# refuses_trace NAME REGEX FILE: as a workload; no result appears, whole or in part
refuses_trace() {
    refuses "$1" 2 "$2" run -d sim -p growth -w "$3" --json "$tmp/result.json" --output "$tmp/folder"
    check "$1_leaves_nothing" [ -z "$(find "$tmp" -name 'result*' -o -path "$tmp/folder/*" -type f)" ]
}
# refuses_text NAME REGEX LINES...: as a text trace
refuses_text() {
    local name=$1 pattern=$2
    shift 2
    printf '%s\n' '# allocrig-trace 1' "$@" >"$tmp/$name.txt"
    refuses_trace "$name" "$tmp/$name.txt:.*$pattern" "$tmp/$name.txt"
}

refuses_trace missing_file "$tmp/no_such.csv: .*No such file" "$tmp/no_such.csv"
mkdir "$tmp/a_folder.csv"
refuses_trace a_folder "$tmp/a_folder.csv: .*(folder|directory)" "$tmp/a_folder.csv"
: >"$tmp/empty.csv"
refuses_trace empty_file "$tmp/empty.csv: .*empty" "$tmp/empty.csv"

refuses_text negative_size '2.*-5' 'a,0,-5'
refuses_text enormous_size '2.*' 'a,0,99999999999999999999999999'
refuses_text size_of_2_to_60 '2.*' 'a,0,1152921504606846976'
refuses_text size_is_no_number '2.*many' 'a,0,many'
refuses_text unknown_event '2.*' 'z,0,5'
refuses_text free_of_unknown_id '3.*7' 'a,0,5' 'f,7'
refuses_text double_free '4.*' 'a,0,5' 'f,0' 'f,0'
refuses_text id_reused '4.*' 'a,0,5' 'f,0' 'a,0,5'
printf 'event,op\n1,a\n' >"$tmp/odd.csv"
refuses_trace unknown_content "$tmp/odd.csv" "$tmp/odd.csv"

# A refusal names its file, whatever part of a reader or a writer finds the fault.
printf '{"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -7}]]}' >"$tmp/size.json"
refuses_trace a_snapshot_is_named "$tmp/size.json: an entry's size" "$tmp/size.json"
cp workloads/data/tape_small.default.csv.gz "$tmp/beside.csv.gz"
printf '{"a": 1,\n}' >"$tmp/beside.json"
refuses_trace a_wrong_file_beside_a_recording "$tmp/beside.json .beside [^ ]*: line 2: " "$tmp/beside.csv.gz"
printf '# allocrig-trace 1\n# recorder: torch\n!,segment,18446744073709551000,4096,0\na,0,512\nf,0\n' >"$tmp/far.txt"
refuses what_is_written_is_named 2 'far: the note' convert "$tmp/far.txt" "$tmp/far.pickle"
refuses what_is_compared_is_named 2 'far: the line' fidelity "$tmp/far.txt"

refuses_text key_given_twice '2.*"x" is given twice' 'a,0,5,x=1,x=1'
refuses_text align_of_0 '2.*align=0' 'a,0,5,align=0'
printf '# allocrig-trace 1\na,0,\033[31mred\n' >"$tmp/escape.txt"
refuses_trace control_bytes_are_shown 'escape.txt:2: .*\\x1b\[31mred' "$tmp/escape.txt"
refuses arguments_are_shown 2 'no policy "gr\\x0a\\xffwth"' run -p $'gr\n\xffwth' -w order_flip

"$ALLOCRIG" gen random:events=1000 -o "$tmp/good.bin" >/dev/null
check a_good_binary_trace quietly "$ALLOCRIG" run -d sim -p growth -w "$tmp/good.bin"
bytes=$(stat -c %s "$tmp/good.bin")
head -c $((bytes - 100)) "$tmp/good.bin" >"$tmp/cut.bin"
refuses_trace truncated_binary "$tmp/cut.bin: " "$tmp/cut.bin"
head -c 20 "$tmp/good.bin" >"$tmp/stump.bin"
refuses_trace binary_cut_in_its_header "$tmp/stump.bin: " "$tmp/stump.bin"
cp "$tmp/good.bin" "$tmp/corrupt.bin"
printf '\377\377\377\377' | dd of="$tmp/corrupt.bin" bs=1 seek=$((bytes / 2 / 32 * 32)) conv=notrunc 2>/dev/null
refuses_trace corrupt_binary "$tmp/corrupt.bin: " "$tmp/corrupt.bin"

refuses policy_unknown 2 'no policy "grwth"; did you mean "growth"' run -d sim -p grwth -w order_flip
refuses shared_object_missing 2 'no_such\.so" cannot be loaded: No such file' run -d sim -p ./no_such.so -w order_flip
refuses option_unknown 2 'growth.*"?framwork"?.*did you mean "?framework' run -d sim -p growth:framwork=tf -w order_flip
refuses choice_unknown 2 'framework.*torch' run -d sim -p growth:framework=torch -w order_flip
refuses workload_unknown 2 'order_flop.*did you mean "order_flip"' run -d sim -p growth -w order_flop
refuses workload_option_unknown 2 'evnts.*did you mean "?events' run -d sim -p growth -w random:evnts=5
refuses device_unknown 2 'sin' run -p growth -w order_flip -d sin
refuses profile_unknown 2 'h10' run -p growth -w order_flip -d sim:profile=h10
refuses capacity_impossible 2 'capacity' run -p growth -w order_flip -d sim:capacity=300TiB
refuses capacity_zero 2 'capacity' run -p growth -w order_flip -d sim:capacity=0
refuses capacity_no_size 2 'capacity.*lots' run -p growth -w order_flip -d sim:capacity=lots
refuses frees_unknown 2 'frees "late" is not known; it is ordered, at-once or recorded' run -d sim -p growth -w order_flip --frees late
refuses reps_zero 2 'reps is 0; it must be between 1' run -d sim -p growth -w order_flip --reps 0
refuses reps_no_number 2 'reps.*"x" is not a whole number' run -d sim -p growth -w order_flip --reps x
refuses no_policy 2 'no policy given' run -d sim -w order_flip
refuses no_workload 2 'no workload given' run -d sim -p growth
refuses policy_twice 2 'policy "growth" is given twice' run -d sim -p growth -p growth -w order_flip
refuses verify_without_a_card 2 '--verify' run -d sim -p growth -w order_flip --verify
printf '# allocrig-trace 1\na,0,3145728\n' >"$tmp/one.trace"
printf 'ordinal,bytes,address\n0,20971520,1099511627776\n1,2097152,1099532599296\n' >"$tmp/two.csv"
refuses address_row_unused 2 'two.csv lists 2 segments, but only 1 were asked for' run -p torch -w "$tmp/one.trace" \
    -d "sim:addresses=$tmp/two.csv"
refuses address_file_missing 2 'no_such' run -p growth -w order_flip -d "sim:addresses=$tmp/no_such.csv"

# -- results that cannot be written
refuses json_in_no_folder 2 "$tmp/no/such/x.json: cannot be written" run -d sim -p growth -w order_flip --json "$tmp/no/such/x.json"
refuses json_is_a_folder 2 'a_folder.csv: is a folder' run -d sim -p growth -w order_flip --json "$tmp/a_folder.csv"
"$ALLOCRIG" run -d sim -p growth -w order_flip --json /dev/full >/dev/null 2>"$err"
[ $? = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -q '/dev/full: cannot be written: No space left' "$err"
verdict full_disk $?
# A limit on the size of files stands for the disk that fills up while several files are written.
(
    trap '' XFSZ
    ulimit -f 8
    "$ALLOCRIG" run -d sim -p growth -w workloads/data/tape_small.default.csv.gz --json "$tmp/small.json" --series "$tmp/large.csv" >/dev/null 2>"$err"
)
[ $? = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -q "$tmp/large.csv: cannot be written: File too large" "$err"
verdict disk_that_fills_up $?
check disk_that_fills_up_leaves_nothing [ -z "$(find "$tmp" -name 'small*' -o -name 'large*')" ]
(
    trap '' XFSZ
    ulimit -f 8
    "$ALLOCRIG" gen random -o "$tmp/large.txt" >/dev/null 2>"$err"
)
[ $? = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -q "$tmp/large.txt: " "$err"
verdict gen_on_a_disk_that_fills_up $?
check gen_on_a_disk_that_fills_up_leaves_nothing [ -z "$(find "$tmp" -name 'large*')" ]
echo 'old' >"$tmp/kept.json"
refuses old_result_stays 2 'no policy "grwth"' run -d sim -p grwth -w order_flip --json "$tmp/kept.json"
check old_result_is_untouched [ "$(cat "$tmp/kept.json")" = old ]
refuses output_without_a_name 2 'an output has an empty name' run -d sim -p growth -w order_flip --output ''
(cd "$tmp" && "$ALLOCRIG" run -d sim -p growth -w order_flip --snapshot /dev/full >/dev/null 2>"$err")
check full_snapshot_is_a_sentence grep -q '/dev/full: cannot be written: No space left' "$err"
refuses one_file_for_two 2 'is named for two outputs' run -d sim -p growth -w order_flip --json "$tmp/two" --csv "$tmp/two"
# A link stays a link, of results and traces: what it leads to is written, also if it is not there yet.
mkdir "$tmp/folder"
for ending in json trace; do
    echo old >"$tmp/folder/old.$ending"
    for file in old new; do
        ln -s "folder/$file.$ending" "$tmp/$file.$ending"
        case $ending in
        json) "$ALLOCRIG" run -d sim -p growth -w order_flip --json "$tmp/$file.json" ;;
        trace) "$ALLOCRIG" gen order_flip -o "$tmp/$file.trace" ;;
        esac >/dev/null
        check "a_link_to_${file}_${ending}_stays" [ -L "$tmp/$file.$ending" ]
        check "a_link_to_${file}_${ending}_is_followed" grep -q allocrig "$tmp/folder/$file.$ending"
    done
done
ln -s "$tmp/folder" "$tmp/same"
refuses one_file_by_two_paths 2 'is named for two outputs' run -d sim -p growth -w order_flip --json "$tmp/two" --csv "$tmp/folder/../two"
refuses one_file_by_two_folders 2 'is named for two outputs' bound order_flip --plan "$tmp/folder/two" --json "$tmp/same/two"
(cd "$tmp" && "$ALLOCRIG" bound order_flip --plan two --json ./two >/dev/null 2>"$err")
check one_file_with_and_without_a_folder grep -q '"./two" is named for two outputs' "$err"
ln -s "$tmp/folder/two" "$tmp/to_two"
refuses one_file_by_a_link 2 'is named for two outputs' run -d sim -p growth -w order_flip --csv "$tmp/to_two" --json "$tmp/folder/two"
check one_file_for_two_is_not_there [ ! -e "$tmp/two" ]
check one_file_for_two_is_not_there_either [ ! -e "$tmp/folder/two" ]
# What is read is not written over: of every command that reads a file, by whatever name it has.
"$ALLOCRIG" run -d sim -p growth -w order_flip --json "$tmp/in.json" >/dev/null
"$ALLOCRIG" gen order_flip -o "$tmp/in.txt" >/dev/null
printf '[policies]\ngrowth\n[workloads]\norder_flip\n[devices]\nsim\n' >"$tmp/in.ini"
"$ALLOCRIG" history "$tmp/in.jsonl" --append "$tmp/in.json" --commit a --time 2027-01-31T12:00:00Z >/dev/null
ln -s "$tmp/in.txt" "$tmp/link.txt"
sums=$(sha256sum "$tmp"/in.*)
over='would overwrite ".*in.*", which is an input; name another file'
refuses suite_is_not_written_over 2 "$over" run "$tmp/in.ini" --json "$tmp/in.ini"
refuses grid_is_not_written_over 2 "$over" sweep "$tmp/in.ini" --csv "$tmp/in.ini"
refuses journal_is_no_suite 2 "$over" sweep "$tmp/in.ini" --journal "$tmp/../$(basename "$tmp")/in.ini"
refuses workload_is_not_written_over 2 "$over" run -d sim -p growth -w "$tmp/in.txt" --chrome "$tmp/in.txt"
refuses link_is_not_written_over 2 'would overwrite ".*link' explain "$tmp/in.txt" -p growth --json "$tmp/link.txt"
refuses recording_is_not_written_over 2 "$over" advise "$tmp/in.txt" --json "$tmp/in.txt"
refuses trace_is_not_written_over 2 "$over" minimize "$tmp/in.txt" --until 'differs(growth,torch)' -o "$tmp/in.txt"
refuses plan_is_no_input 2 "$over" bound "$tmp/in.txt" --plan "$tmp/in.txt"
refuses results_are_not_written_over 2 "$over" compare "$tmp/in.json" "$tmp/in.json" --markdown "$tmp/in.json"
refuses history_is_not_written_over 2 "$over" history "$tmp/in.jsonl" --json "$tmp/in.jsonl"
refuses appended_is_not_written_over 2 "$over" history "$tmp/in.jsonl" --append "$tmp/in.json" --csv "$tmp/in.json"
refuses history_one_file_for_two 2 'is named for two outputs' history "$tmp/in.jsonl" --csv "$tmp/two" --json "$tmp/two"
refuses an_output_given_twice 2 '--json is given twice' history "$tmp/in.jsonl" --json "$tmp/a" --json "$tmp/b"
refuses a_number_given_twice 2 '--seed is given twice; give it once' run -d sim -p growth -w order_flip --seed 1 --seed=2
refuses a_list_given_twice 2 '--steps is given twice' convert "$tmp/in.txt" "$tmp/out.txt" --steps 1-2 --steps 3-4
refuses two_files_in_standard_output 2 'two outputs would mix' tenants "$tmp/in.ini" --csv - --series -
check inputs_are_as_they_were [ "$(sha256sum "$tmp"/in.*)" = "$sums" ]
# Also what a spec names, or a line of a suite.
"$ALLOCRIG" calibrate -d sim -o "$tmp/in.profile" >/dev/null
{
    echo '# allocrig-trace 1'
    for each in 0 1 2 3 4 5; do
        printf 'a,%d,1048576\nf,%d\nm,step\n' "$each" "$each"
    done
} >"$tmp/in.trace"
printf '[policies]\ngrowth\n[workloads]\n%s\n[devices]\nsim:profile=%s\n' "$tmp/in.trace" "$tmp/in.profile" >"$tmp/in_files.ini"
printf '[machine]\ncard = sim:capacity=8GiB\n[tenant one]\npolicy = growth\nworkload = %s\n' "$tmp/in.trace" >"$tmp/in_tenants.ini"
sums=$(sha256sum "$tmp"/in*)
refuses profile_is_not_written_over 2 "$over" run -d "sim:profile=$tmp/in.profile" -p growth -w order_flip --json "$tmp/in.profile"
refuses profile_is_not_measured_over 2 "$over" calibrate -d "sim:profile=$tmp/in.profile,capacity=8GiB" -o "$tmp/in.profile"
refuses one_gpu_is_not_written_over 2 "$over" fits "$tmp/in.trace:device=0" --json "$tmp/in.trace"
refuses learned_is_not_written_over 2 "$over" gen "learned:trace=$tmp/in.trace,steps=2" -o "$tmp/in.trace"
refuses workload_of_a_suite_is_not_written_over 2 "$over" run "$tmp/in_files.ini" --csv "$tmp/in.trace"
refuses profile_of_a_grid_is_not_written_over 2 "$over" sweep "$tmp/in_files.ini" --json "$tmp/in.profile"
refuses workload_of_a_tenant_is_not_written_over 2 "$over" tenants "$tmp/in_tenants.ini" --series "$tmp/in.trace"
cp tests/golden/data/pages/odd/beside.csv "$tmp/in_beside.csv"
cp tests/golden/data/pages/odd/beside.json "$tmp/in_beside.json"
cp "$tmp/in_beside.csv" "$tmp/alone.csv"
sums=$(sha256sum "$tmp"/in*)
refuses settings_of_a_recording_are_not_written_over 2 "$over" run -d sim -p torch -w "$tmp/in_beside.csv" --json "$tmp/in_beside.json"
for time in first second; do
    run run -d sim -p torch -w "$tmp/alone.csv" --json "$tmp/alone.json"
    check "results_beside_a_recording_the_${time}_time" [ "$status" = 0 ]
done
refuses script_is_not_written_over 2 "fits: --json $over" fits --json "$tmp/in.trace" -- sh "$tmp/../$(basename "$tmp")/in.trace"
refuses script_is_not_traced_over 2 "trace: --output $over" trace -o "$tmp/in.trace" --steps 1 -- sh -c ". '$tmp/in.trace'"
refuses script_is_not_recorded_over 2 "record: --output $over" record -o "$tmp/in.trace" -- sh "$tmp/in.trace"
refuses data_of_a_program_are_not_written_over 2 "fits: --json $over" fits --json "$tmp/in.trace" -- sh x.sh "--data=$tmp/in.trace"
check inputs_of_specs_are_as_they_were [ "$(sha256sum "$tmp"/in*)" = "$sums" ]
run compare "$tmp/in.json" "$tmp/in.json" --markdown /dev/null --junit /dev/null
check nowhere_may_be_named_twice [ "$status" = 0 ]
# An output has a name, of every command, before any work.
nameless='an output has an empty name; name a'
refuses sweep_without_a_folder 2 "sweep: $nameless folder for --output" sweep "$tmp/in.ini" --output ''
refuses sweep_without_a_name 2 "$nameless file for --csv" sweep "$tmp/in.ini" --csv ''
refuses sweep_into_standard_output 2 'a folder cannot be standard output' sweep "$tmp/in.ini" --output -
refuses run_into_standard_output 2 'a folder cannot be standard output' run "$tmp/in.ini" --output -
printf '[suite]\noutput =\n[policies]\ngrowth\n[workloads]\norder_flip\n' >"$tmp/nameless.ini"
refuses suite_without_a_folder 2 'nameless.ini:2: ' sweep "$tmp/nameless.ini"
refuses run_without_a_name 2 "$nameless file for --csv" run -d sim -p growth -w order_flip --csv ''
refuses drift_without_a_name 2 "$nameless file for --series" drift "$tmp/in.txt" --series ''
refuses plan_without_a_name 2 "$nameless file for --plan" bound "$tmp/in.txt" --plan ''
refuses page_without_a_name 2 "$nameless file for --markdown" compare "$tmp/in.json" "$tmp/in.json" --markdown ''
refuses trace_without_a_name 2 "$nameless file for --output" gen order_flip -o ''
refuses small_trace_without_a_name 2 "$nameless file for --output" minimize "$tmp/in.txt" --until 'differs(growth,torch)' -o ''
refuses converted_without_a_name 2 "$nameless file, such as" convert "$tmp/in.txt" '' --format text
for command in advise fits twin explain history; do
    refuses "${command}_without_a_name" 2 "$command: $nameless file for --json" $command "$tmp/in.txt" --json ''
done
refuses capacity_without_a_name 2 "$nameless file for --json" capacity -w "$tmp/in.txt" -p torch --json ''
refuses tenants_without_a_name 2 "$nameless file for --csv" tenants "$tmp/in.ini" --csv ''
refuses nothing_to_append 2 ': cannot be read' history "$tmp/in.jsonl" --append ''
refuses a_file_that_fails_to_read 2 '/proc/self/mem: cannot be read: Input/output error' inspect /proc/self/mem
printf '\200\020}.' >"$tmp/later.pickle"
refuses a_pickle_of_a_later_protocol 2 'protocol 16 is unknown; 0 to 5 can be read' inspect "$tmp/later.pickle"
refuses trace_under_a_device 2 'is the same on every device; leave -d out' gen sawtooth -o "$tmp/x.trace" -d nonsense

# Files without end, and pipes that nobody writes to.
for command in run sweep tenants twin; do
    refuses "${command}_of_zeros" 2 '/dev/zero:1: holds a zero byte' $command /dev/zero
    refuses "${command}_of_lines_without_end" 2 'has more than 1000000 lines' $command <(yes '')
    refuses "${command}_of_a_line_without_end" 2 ':1: the line has more than 1048576 bytes' $command <(yes | tr -d '\n')
done
refuses waivers_of_zeros 2 '/dev/zero:1: holds a zero byte' compare "$tmp/in.json" "$tmp/in.json" --waivers /dev/zero
mkfifo "$tmp/pipe"
cat "$tmp/in.txt" >"$tmp/pipe" &
run inspect "$tmp/pipe"
wait
check a_pipe_is_announced grep -q 'pipe is a named pipe; this waits for a program at its other end$' "$err"
cat "$tmp/pipe" >"$tmp/written.json" &
run run -d sim -p growth -w order_flip --json "$tmp/pipe"
wait
check a_pipe_that_is_written_too grep -q 'run: .*pipe is a named pipe; this waits for a program at its other end$' "$err"
check a_pipe_is_named_once [ "$(grep -c 'named pipe' "$err")" = 1 ]
check a_pipe_is_written grep -q '"schema"' "$tmp/written.json"
mkfifo "$tmp/suite.ini"
: >"$err" # the words of the run before are not those that are waited for
"$ALLOCRIG" run "$tmp/suite.ini" -d sim -p growth -w order_flip >"$out" 2>"$err" &
reader=$!
until grep -q 'named pipe' "$err" || ! kill -0 $reader; do sleep 0.01; done
check a_suite_is_announced_before_it_is_read grep -q 'run: .*suite.ini is a named pipe; this waits' "$err"
: >"$tmp/suite.ini" & # waits for the reader, which may have ended without opening it
wait $reader
kill $! 2>/dev/null
wait
check a_suite_is_named_once [ "$(grep -c 'named pipe' "$err")" = 1 ]
refuses history_of_a_pipe 2 'pipe: a history is a regular file; write these lines' history "$tmp/pipe"

# Streams that no trace has, and keys of a suite without a value.
printf '# allocrig-trace 1\na,0,512\n' >"$tmp/one.txt"
refuses stream_that_no_trace_has 2 'numbered from 0 to 65535; 65536 is' convert "$tmp/one.txt" --streams 0,65536 "$tmp/x.txt"
for key in '[slowdown]\nat =' '[suite]\ncapacities ='; do
    printf '[policies]\ntorch\n[workloads]\norder_flip\n%b\n' "$key" >"$tmp/no_value.ini"
    refuses "key_without_a_value_${#key}" 2 'no_value.ini:6: .*has no value' run "$tmp/no_value.ini"
done
# An edited result with fewer bytes than none; a missing run of which NEW has another seed.
"$ALLOCRIG" run -p torch -w order_flip -w random:events=300 --json "$tmp/edited.json" >"$out"
"$ALLOCRIG" run -p torch -w random:events=300 --seed 7 --json "$tmp/seed_7.json" >"$out"
"$ALLOCRIG" run -p torch -w order_flip --json "$tmp/flip.json" >"$out"
mkdir "$tmp/seeds"
cp "$tmp/seed_7.json" "$tmp/flip.json" "$tmp/seeds"
run compare "$tmp/edited.json" "$tmp/seeds"
check missing_run_has_its_seed grep -q 'with policy torch and seed 1' "$out"
for bytes in -5 1e308; do
    sed -i -E "s/(\"peak_live_bytes\": )[-0-9.e]+/\1$bytes/" "$tmp/edited.json"
    refuses "bytes_$bytes" 2 'edited.json.*peak_live_bytes.*from 0' compare "$tmp/edited.json" "$tmp/edited.json"
done

# A seed that no reader of JSON takes would make results that cannot be compared.
refuses seed_beyond_json 2 'seed is 18446744073709551615; it must be between 0 and' run -d sim -p growth -w order_flip --seed 18446744073709551615
run run -d sim:addresses=random -p growth -w order_flip --seed 4611686018427387904 --replicates 2 --json "$tmp/seeds.json"
check the_last_seed_runs [ "$status" = 0 ]
run compare "$tmp/seeds.json" "$tmp/seeds.json"
check results_of_the_last_seed_are_read [ "$status" = 0 ]
refuses too_many_runs 2 'more than 1,000,000 runs' run -p growth -w order_flip -d sim:addresses=random --replicates 10000 --reps 10000
printf '# allocrig-trace 1\nk,0,4611686018427387000\nk,0,4611686018427387000\n' >"$tmp/long.txt"
refuses kernels_without_end 2 'long.txt:3: all kernels together must take less than 2.62 nanoseconds' run -d sim -p growth -w "$tmp/long.txt"
(ulimit -f 1; "$ALLOCRIG" gen embedding -o "$tmp/limited.bin" >/dev/null 2>"$tmp/limited.err")
check file_size_limit_is_a_sentence grep -q 'limited.bin: cannot be written' "$tmp/limited.err"
check file_size_limit_leaves_nothing [ -z "$(find "$tmp" -name 'limited.bin*')" ]
printf '[suite]\nname = x\nreps = 1\nreps = 2\n[policies]\ngrowth\n[workloads]\norder_flip\n' >"$tmp/twice.ini"
refuses suite_key_twice 2 'twice.ini:4: the key "reps" is given twice' run -d sim "$tmp/twice.ini"
refuses split_below_a_segment 2 'max_split_size_mb is at least large_segment_size_mb' \
    run -p torch:max_split_size_mb=32,large_segment_size_mb=64 -w linear_ramp
printf '{"segments": [{"device": 0, "address": 4096, "total_size": 4096, "stream": 0, "blocks": []}], "device_traces": []}' >"$tmp/state.json"
refuses nothing_to_write_is_one_sentence 2 'it has no requests' convert "$tmp/state.json" - --format rmm
mkdir "$tmp/spools"
refuses no_spools 2 'spools: it has no records; give the folder' record -o "$tmp/x.trace" --from "$tmp/spools"
ln -s loop "$tmp/loop"
refuses a_link_to_itself 2 'loop: cannot be opened: Too many levels' run -p torch -w "$tmp/loop" -d sim
(cd "$tmp" && "$ALLOCRIG" run -p torch -w loop -d sim 2>"$err")
check a_link_without_a_folder grep -q 'loop: cannot be opened: Too many levels' "$err"
for files in 4 5 6 7 8 9; do
    (for inherited in /proc/self/fd/*; do # it takes a place
        inherited=${inherited##*/}
        [ "$inherited" -le 2 ] || [ "$inherited" = 255 ] || eval "exec $inherited>&-"
    done
        ulimit -n $files && "$ALLOCRIG" inspect workloads/data/tape_small.default.csv.gz) 2>&1
done >"$out"
check too_many_open_files says 'tape_small.default.json \(beside [^ ]*\): cannot be opened: Too many open files$'
{ yes line | head -n 20000; echo 'CUDA out of memory. Tried to allocate 158.00 MiB'; } >"$tmp/long.log"
run explain --message "$tmp/long.log"
check a_log_is_read_to_its_end grep -qF '158.0 MiB' "$out"
finish
