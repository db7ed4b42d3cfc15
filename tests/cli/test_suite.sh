#!/bin/bash
# Suite files: what they say, what the command line says over them, the folder they leave, and
# errors with file and line.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz

cat >"$tmp/good.ini" <<END
# a comment
[suite]
name = small
; another
output = $tmp/results
jobs = 2

[policies]
null
best-fit
growth:framework=jax,limit=8GiB

[workloads]
order_flip
$tape

[slowdown]
at = 1.00 2
END
run run -d sim "$tmp/good.ini"
check suite_ends_well [ "$status" = 0 ]
check pages_are_narrow [ "$(grep -v '^wrote ' "$out" | awk 'length > 80' | wc -l)" = 0 ]
check suite_runs_each_policy [ "$(grep -c 'growth:framework=jax' "$out")" = 3 ]
for file in results.json results.csv summary.md data/slowdown.csv data/fragmentation.csv data/latency.csv data/pareto.csv \
    data/series-order_flip.csv data/series-tape_small.csv; do
    check "writes_$file" [ -s "$tmp/results/$file" ]
    check "names_$file" grep -qxE "wrote $tmp/results/$file( \(no rows\))?" "$out"
done
check a_file_without_rows_is_said [ "$(grep -c "(no rows)" "$out")" = 1 -a "$(wc -l <"$tmp/results/data/latency.csv")" = 1 ]
check json_has_the_name grep -q '"suite": "small"' "$tmp/results/results.json"
check json_has_the_curve grep -q '"slowdown_at_capacity"' "$tmp/results/results.json"
check slowdown_header [ "$(head -n 1 "$tmp/results/data/slowdown.csv")" = workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes ]
check slowdown_points [ "$(wc -l <"$tmp/results/data/slowdown.csv")" = 5 ]
check slowdown_leaves_null_out [ "$(grep -c ,null, "$tmp/results/data/slowdown.csv")" = 0 ]
check slowdown_is_known_at_2 grep -qE '^tape_small,best-fit,2,1\.[0-9]+,true,0,0$' "$tmp/results/data/slowdown.csv"
check series_header [ "$(head -n 1 "$tmp/results/data/series-tape_small.csv")" = policy,event,time_s,live_bytes,reserved_bytes,physical_bytes,passed ]
check series_are_thin [ "$(grep -c '^best-fit,' "$tmp/results/data/series-tape_small.csv")" -le 2000 ]
check series_have_many_points [ "$(grep -c '^best-fit,' "$tmp/results/data/series-tape_small.csv")" -gt 600 ]
peak=$("$ALLOCRIG" run -d sim -p best-fit -w "$tape" --json - | sed -n 's/.*"peak_live_bytes": \([0-9]*\).*/\1/p')
check series_keep_the_peak grep -qE "^best-fit,[0-9]+,[0-9.e+-]+,$peak," "$tmp/results/data/series-tape_small.csv"
check series_keep_the_last_event grep -qE '^best-fit,30248,' "$tmp/results/data/series-tape_small.csv"
check no_parts_are_left [ -z "$(find "$tmp" -name '*.part*')" ]

touch "$tmp/results/data/series-old.csv"
cp "$tmp/results/results.json" "$tmp/before.json"
run run -d sim "$tmp/good.ini"
check old_series_go [ ! -e "$tmp/results/data/series-old.csv" ]
check the_same_again cmp <(without_context "$tmp/before.json") <(without_context "$tmp/results/results.json")

run run -d sim "$tmp/good.ini" -p bfc -w order_flip --output "$tmp/other" --seed 7
check options_win_over_the_file [ "$(grep -cE '^[0-9-] ' "$out")" = 1 ]
check output_wins_over_the_file grep -q '"seed": 7' "$tmp/other/results.json"

printf '[suite]\ncapacities = 1GiB, 200MiB\n[policies]\nfirst-fit\n[workloads]\norder_flip\n' >"$tmp/capacities.ini"
run run -d sim "$tmp/capacities.ini" --csv -
check columns_have_a_name_each [ -z "$(head -n 1 "$out" | tr , '\n' | sort | uniq -d)" ]
check capacities_are_devices [ "$(cut -d, -f10 "$out" | paste -sd ' ')" = 'capacity_bytes 1073741824 209715200' ]

for suite in workloads/suites/*.ini; do
    check "shipped_$(basename "$suite")" quietly "$ALLOCRIG" run -d sim "$suite" -p null -w order_flip --output "$tmp/shipped"
done

ALLOCRIG_PROGRESS=0 run run -d sim "$tmp/good.ini" -p bfc -w order_flip
check progress_in_lines grep -qE '^[0-9]+ of [0-9]+, [0-9]+:[0-9]+ left: ' "$err"
for seconds in '' often 99999999999999999999; do
    ALLOCRIG_PROGRESS=$seconds run run -d sim "$tmp/good.ini" -p bfc -w order_flip
    check "no_progress_in_a_pipe_$seconds" not grep -q ' left: ' "$err"
done

# bad NAME REGEX LINES...
bad() {
    local name=$1 pattern=$2
    shift 2
    printf '%s\n' "$@" >"$tmp/$name.ini"
    refuses "$name" 2 "$tmp/$name.ini$pattern" run -d sim "$tmp/$name.ini"
}
refuses missing_suite 2 "$tmp/no.ini: cannot be read: No such file" run -d sim "$tmp/no.ini"
# A run that is interrupted leaves no folder, one that cannot be written to shows before the run.
ALLOCRIG_PROGRESS=0 "$ALLOCRIG" run -d sim -p all -w order_flip -w random:events=30000000 --output "$tmp/never/made" >"$out" 2>"$err" &
process=$!
until grep -q ' left: order_flip' "$err" || ! kill -0 $process; do sleep 0.01; done
kill -TERM $process # the shell has it ignore SIGINT
{ wait $process; } 2>/dev/null
check interrupted_between_its_runs [ $? = 143 ]
check interrupted_leaves_no_folder [ ! -e "$tmp/never" ]
: >"$tmp/a_file"
refuses output_is_a_file 2 'a_file: the folder cannot be made' run -d sim -p bfc -w order_flip --output "$tmp/a_file"
refuses output_is_in_a_file 2 'a_file/in: the folder cannot be made' run -d sim -p bfc -w order_flip --output "$tmp/a_file/in"
# A policy that cannot begin is a row with its reason; nothing is done where none can.
run run -d sim:profile=bump -p growth -p torch:expandable_segments=true -w order_flip
check one_that_cannot_begin_is_a_row says 'DNF: not started: policy torch: expandable_segments needs virtual memory'
check the_others_run [ "$status$(grep -cE '^1 +growth ' "$out")" = 01 ]
refuses none_can_begin 3 'expandable_segments needs virtual memory' run -d sim:profile=bump -p torch:expandable_segments=true -w order_flip --output "$tmp/none"
check none_can_begin_leaves_nothing [ ! -e "$tmp/none" ]
# So is one that refuses a note of the workload; the others follow it.
printf '# allocrig-trace 1\na,0,1048576\n!,settings,bogus_key:7\na,1,1048576\n!,limit,12x\n' >"$tmp/notes.csv"
run run -d sim -p growth -p torch -w "$tmp/notes.csv"
check a_refused_note_is_a_row says 'DNF: not started: notes: event 1: policy torch: conf "bogus_key:7": the option is'
check the_others_follow_it [ "$status$(grep -cE '^1 +growth ' "$out")" = 01 ]
run capacity -p growth -p torch -w "$tmp/notes.csv"
check so_it_is_for_capacity says '^- *torch *not started: notes: event 1: policy torch'
refuses nor_for_capacity 2 'event 1: policy torch: conf "bogus_key:7"' capacity -p torch -w "$tmp/notes.csv"
refuses none_follows_it 2 'event 1: policy torch: conf "bogus_key:7"' run -d sim -p torch -w "$tmp/notes.csv"
sed -i 3d "$tmp/notes.csv"
refuses a_limit_without_bytes 2 'the note limit,12x: write the bytes' run -d sim -p torch -w "$tmp/notes.csv"

refuses suite_is_a_folder 2 "$tmp: cannot be read: Is a directory" run -d sim "$tmp"
bad a_section_as_a_key ':3: policies is a section, not a key: write \[policies\], and below it each' '[suite]' 'name = x' 'policies = torch, growth'
bad a_comma_in_a_number ':2: "0" is not a capacity .* a comma separates two of them' '[slowdown]' 'at = 1,0 2'
bad empty_suite ': names no policy' ''
bad no_workload ': names no workload' '[policies]' growth
refuses a_trace_is_no_suite 2 'a trace stands after -w, or in a suite\): workloads/data/lora_recompute.default.csv.gz:1: ' run -d sim workloads/data/lora_recompute.default.csv.gz
bad before_any_section ':1: "growth" is before the first section' growth
bad unknown_section ':2: there is no section \[polices\]; did you mean \[policies\]' '' '[polices]'
bad open_section ':1: .*\]' '[policies'
# A key of older suites.
sed 's/^\[suite\]$/&\nskip-missing = yes/' "$tmp/good.ini" >"$tmp/older.ini"
check a_key_of_older_suites_is_taken quietly "$ALLOCRIG" run -d sim "$tmp/older.ini"
bad unknown_key ':2: there is no key "metric" here; did you mean "metrics"' '[suite]' 'metric = exact'
bad not_a_key ':3: "growth" is not of the form key = value' '[suite]' '# x' growth
bad bad_value ':2: host "fast" is not known; it is none, recorded or open' '[suite]' 'host = fast'
bad bad_ratio ':2: "0.5" is not a capacity' '[slowdown]' 'at = 1 0.5'
bad a_ratio_twice ':2: capacity 1.50 is given twice in [[]slowdown[]]; name it once' '[slowdown]' 'at = 1.5 2 1.50'
bad bad_capacity ':2: .*"huge" is not a size' '[suite]' 'capacities = huge'
printf '[suite]\nname = a\0b\n' >"$tmp/zero.ini"
refuses zero_byte 2 "$tmp/zero.ini:2: holds a zero byte" run -d sim "$tmp/zero.ini"
refuses two_suites 2 'one suite file too many' run -d sim "$tmp/good.ini" "$tmp/good.ini"
{
    printf '[policies]\nnull\n[workloads]\norder_flip\n# '
    head -c 100000 /dev/zero | tr '\0' x
    printf '\n'
} >"$tmp/long.ini"
check lines_have_no_limit quietly "$ALLOCRIG" run -d sim "$tmp/long.ini"
# a full disk leaves no folder, and in one that is there what it held; what is replaced is said
run_full run -d sim -p growth -w order_flip --output "$tmp/full/results"
check a_full_disk_is_said [ "$status" = 2 ]
check a_full_disk_leaves_no_folder [ ! -e "$tmp/full/results" ]
run run -d sim "$tmp/good.ini" --output "$tmp/kept"
check nothing_is_replaced [ ! -s "$err" ]
cp -r "$tmp/kept" "$tmp/kept.before"
run_full run -d sim -p growth -w order_flip --output "$tmp/kept"
check a_full_disk_replaces_nothing diff -r "$tmp/kept" "$tmp/kept.before"
run run -d sim "$tmp/good.ini" --output "$tmp/kept"
check replaced_is_said [ "$(grep -cE "^replaced the results in .*/kept: suite small, commit .*; --output FOLDER keeps both$" "$err")" = 1 ]
# Files of others that have such a name are neither replaced nor removed.
for file in results.json results.csv summary.md data/pareto.csv data/pairs.csv data/series-mine.csv; do
    rm -rf "$tmp/others"
    mkdir -p "$tmp/others/data"
    printf 'a,0,1048576\nf,0\n' >"$tmp/others/$file"
    sum=$(sha256sum "$tmp/others/$file")
    refuses "others_${file//[\/.]/_}" 2 "others/$file is no result of an earlier run and would be replaced; move it, or name another folder" \
        run -d sim -p growth -w order_flip --output "$tmp/others"
    check "others_${file//[\/.]/_}_is_there" [ "$(sha256sum "$tmp/others/$file")" = "$sum" ]
    check "others_${file//[\/.]/_}_is_alone" [ "$(find "$tmp/others" -type f | wc -l)" = 1 ]
done
printf '[policies]\ngrowth\n[workloads]\norder_flip\n[devices]\nsim\n' >"$tmp/grid.ini"
refuses others_in_a_grid 2 'is no result of an earlier run' sweep "$tmp/grid.ini" --output "$tmp/others"
# A file that is named beside the folder is none of the folder's own, by whatever path: the second would replace
# the first, or a journal that is done be removed in its place.
cp -r "$tmp/kept" "$tmp/own"
ln -s own/data "$tmp/figures"
for file in "--json own/results.json" "--csv own/../own/summary.md" "--latex figures/pareto.csv" "--junit own/data/series-x.csv" \
    "--journal own/results.csv"; do
    rm -f "$tmp/own/results.csv" # an older file is no journal in any case
    name=${file%% *}
    refuses "own_file${name//-/_}" 2 'is one of the files of the results in [^ ]*/own; give it another place' \
        run -d sim "$tmp/good.ini" --output "$tmp/own" "$name" "$tmp/${file#* }"
done
run run -d sim "$tmp/good.ini" --output "$tmp/own" --json "$tmp/own/mine.json" --csv "$tmp/own/data/mine.csv"
check other_files_in_the_folder [ "$status" = 0 -a -s "$tmp/own/mine.json" -a -s "$tmp/own/data/mine.csv" -a -s "$tmp/own/results.csv" ]
run run -d sim "$tmp/good.ini" --output "$tmp/made" --latex "$tmp/made/t.tex"
check a_file_in_a_folder_that_is_made [ "$status" = 0 -a -s "$tmp/made/t.tex" -a -s "$tmp/made/results.csv" ]
run run -d sim "$tmp/good.ini" --output "$tmp/unmade" --json "$tmp/unmade/results.json"
check a_refused_folder_is_not_made [ "$status" = 2 -a ! -e "$tmp/unmade" ]
# a link to nothing shows before the run, not after it
ln -s nowhere "$tmp/link"
refuses output_is_a_link_to_nothing 2 'link: the folder cannot be made' run -d sim -p bfc -w order_flip --output "$tmp/link"
refuses output_is_in_a_link_to_nothing 2 'link/in: the folder cannot be made' run -d sim -p bfc -w order_flip --output "$tmp/link/in"
finish
