#!/bin/bash
# `history`: a line is added whole and once, planted changes are found at their commit, unchanged noisy
# re-runs raise no alarm, and an error names the number of a bad line.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cc=${CC:-cc}
so=$tmp/planted.so
history=$tmp/history.jsonl

# build FLAGS...: builds the policy, always under one name, as a change to a program would
build() {
    # shellcheck disable=SC2086 # CFLAGS is a list of flags
    $cc -std=c11 -O1 ${CFLAGS:-} -D_GNU_SOURCE -shared -fPIC -I. "$@" tests/cli/planted.c -o "$so" || exit 1
}
results() { # FILE [ARGUMENTS..]: runs that policy
    local file=$1
    shift
    "$ALLOCRIG" run -d sim:capacity=24GiB -p "$so" -w random:events=2000 -w order_flip --json "$file" "$@" >"$tmp/table" || exit 1
}
# add FILE N: adds it as commit cN, N minutes past noon
add() {
    run history "$history" --append "$1" --commit "c$2" --time "2027-01-31T12:$(printf %02d "$2"):00Z"
}
said() { # NAME REGEX: a row of the table matches; it may be broken over several lines
    awk '/^ / { printf " %s", $0; next } { printf "\n%s", $0 } END { print "" }' "$out" | tr -s ' ' | grep -qE -e "$2"
    verdict "$1" $?
}

build
results "$tmp/old.json"
add "$tmp/old.json" 1
check the_first_line_is_no_change [ "$status" = 0 ]
check the_first_line_is_said grep -q '^Added a line' "$out"
before=$(sha256sum <"$history")
add "$tmp/old.json" 1
check the_same_line_is_not_added_twice [ "$(sha256sum <"$history")" = "$before" ]
check the_same_line_is_said grep -q 'have a line already' "$out"
for n in 2 3; do
    results "$tmp/same.json"
    add "$tmp/same.json" $n
    check "unchanged_is_no_change_$n" [ "$status" = 0 ]
done
check unchanged_is_counted grep -qE '^Series: [0-9]+, over commits: 3\. Changes: 0 for the worse, 0 for the better' "$out"
nameless() { sed -n "$1 { s/12:0.:00Z/TIME/; s/\"c[12]\"/NAME/; p }" "$history"; }
check the_same_results_are_the_same_line [ "$(nameless 1)" = "$(nameless 2)" ]

# ---- an exact figure
build -DPLANT_WASTE=3
results "$tmp/waste.json"
add "$tmp/waste.json" 4
check waste_is_caught [ "$status" = 1 ]
check waste_is_under_its_commit grep -qE '^commit c4 of 2027-01-31, after c3$' "$out"
said waste_is_told '^WORSE [0-9]+ policy .*planted.so, [0-9]+ figures in 2 workloads; first: '
check waste_ends_with_a_sentence grep -qE 'allocrig: history: [0-9]+ figures are worse, first .* since c4' "$err"
granted() { sed -n 's/^ *"peak_granted_bytes": \([0-9]*\),*/\1/p' "$1" | head -n 1; }
run history "$history" --metric peak_granted_bytes --workload 'random*' --json "$tmp/changes.json" --markdown "$tmp/page.md" --annotations
check one_figure_can_be_looked_at grep -q '^Series: 1, over commits: 4. Changes: 1 for the worse' "$out"
check values_are_those_of_the_results grep -q "\"before\": $(granted "$tmp/old.json"), \"after\": $(granted "$tmp/waste.json")," "$tmp/changes.json"
check json_has_commit_and_verdict grep -q '"commit": "c4", .*"commit_before": "c3", .*"verdict": "WORSE", .*"stands": true, "counts": true' "$tmp/changes.json"
check waste_is_annotated grep -q '^::error title=peak_granted_bytes is worse::random.*since commit c4' "$out"
check waste_in_markdown grep -q '^| WORSE | 1 | peak_granted_bytes of random' "$tmp/page.md"
run history "$history" --workload 'random*' --last 1 --metric outcome
check an_unchanged_figure_passes [ "$status" = 0 ]
refuses no_such_policy 2 'history: --policy "no such.*" matches nothing in the history; ' history "$history" --policy 'no such*'
refuses no_such_metric 2 '--metric "peak_granted_byte" matches nothing .*did you mean "peak_granted_bytes"' history "$history" --metric peak_granted_byte
refuses no_such_workload 2 '--workload "nosuch" matches nothing' history "$history" --workload nosuch
cat >"$tmp/waivers.ini" <<'INI'
[waiver planted]
reason = it is planted
until = 2027-02-10
INI
run history "$history" --waivers "$tmp/waivers.ini"
check waived_passes [ "$status" = 0 ]
said waived_is_said '^waived [0-9]+ policy .*planted.so.* waived until 2027-02-10 planted: it is planted'
cp "$history" "$tmp/piped.jsonl"
run history "$tmp/piped.jsonl" --append "$tmp/waste.json" --commit c4 --time 2027-02-03T12:00:00Z --waivers <(cat "$tmp/waivers.ini")
check waivers_of_a_pipe_are_read_once [ "$status" = 0 ]
long='it is planted, and the reason of this waiver is longer than a hundred bytes, and than two hundred and fifty-five, since it tells what was tried and what was found, who decided that it stays, until when, and where it is written down, so that whoever reads this page need not look for the file'
sed -i "s/^reason.*/reason = $long/" "$tmp/waivers.ini"
run history "$history" --waivers "$tmp/waivers.ini"
said a_reason_is_whole "waived until 2027-02-10 planted: $long"
run history "$history" --waivers "$tmp/waivers.ini" --all
said a_reason_is_whole_in_each_row "waived until 2027-02-10 planted: $long"
run history "$history" --waivers "$tmp/waivers.ini" --today 2027-02-11
check expired_fails [ "$status" = 1 ]
sed -i 's/^reason/commit = c4\n&/' "$tmp/waivers.ini"
run history "$history" --waivers "$tmp/waivers.ini"
check waived_by_its_commit_passes [ "$status" = 0 ]
sed -i 's/^commit.*/commit = c3/' "$tmp/waivers.ini"
run history "$history" --waivers "$tmp/waivers.ini"
check waived_by_another_commit_fails [ "$status" = 1 ]
for n in 5 6; do
    add "$tmp/waste.json" $n
done
check it_still_stands [ "$status" = 1 ]
run history "$history" --last 2
check older_changes_do_not_count [ "$status" = 0 ]
said older_changes_are_said '^WORSE [0-9]+ policy .*planted.so.*not in the newest commits'
run history "$history" --last 3
"$ALLOCRIG" history "$history" --last 3 --json "$tmp/changes.json" >/dev/null 2>&1
check json_has_the_number_of_series grep -qE '"series": [1-9][0-9]*,' "$tmp/changes.json"
check the_newest_three_do [ "$status" = 1 ]
add "$tmp/old.json" 7
check what_the_waste_had_made_better_is_worse_again [ "$status" = 1 ]
run history "$history" --metric 'peak_*'
check repaired_passes [ "$status" = 0 ]
said repaired_is_said '^BETTER [0-9]+ policy .*planted.so'
said the_old_change_no_longer_stands '^WORSE [0-9]+ policy .*planted.so.*no longer so'

# ---- the outcome
build -DPLANT_END=101
results "$tmp/later.json"
build -DPLANT_END=100
results "$tmp/earlier.json"
history=$tmp/outcomes.jsonl
add "$tmp/later.json" 1
add "$tmp/earlier.json" 2
check an_event_earlier_is_caught [ "$status" = 1 ]
said an_event_earlier_is_told '^WORSE 1 outcome of random.*: DNF @ [0-9]+ before, DNF @ [0-9]+ since'
run history "$history" --all
check figures_of_other_events_are_not_compared [ "$(grep -cE '^(WORSE|BETTER)' "$out")" = "$(grep -c 'DNF @' "$out")" ]
add "$tmp/old.json" 3
check finishing_is_no_alarm [ "$status" = 0 ]
said finishing_is_told '^BETTER 1 outcome of random.*: DNF @ [0-9]+ before, passed since'
"$ALLOCRIG" run -d sim:capacity=24GiB -p "$so" -w order_flip --json "$tmp/one.json" >"$tmp/table"
cp "$history" "$tmp/fewer.jsonl"
run history "$tmp/fewer.jsonl" --append "$tmp/one.json" --commit c4 --time 2027-01-31T12:04:00Z
check a_run_that_is_gone_is_said grep -q '^Runs of earlier lines that the newest one does not have: 1\.' "$out"
# the order of the lines does not matter
tac "$history" >"$tmp/turned.jsonl"
run history "$history" && cp "$out" "$tmp/in_order"
run history "$tmp/turned.jsonl"
check the_order_of_lines_does_not_matter cmp -s "$out" "$tmp/in_order"

# ---- differences that are no change of the program
history=$tmp/one_commit.jsonl
add "$tmp/old.json" 1
add "$tmp/waste.json" 1
check one_commit_has_not_changed [ "$status" = 0 ]
said one_commit_is_said '^AMBIGUOUS [0-9]+ .*two measurements of one commit'
said and_what_to_do '^Exact figures of one commit differ: something else changed, such as a policy in'
history=$tmp/another.jsonl
add "$tmp/old.json" 1
sed 's/"sha256": "[0-9a-f]\{8\}/"sha256": "00000000/' "$tmp/waste.json" >"$tmp/another.json"
add "$tmp/another.json" 2
check another_workload_is_no_change [ "$status" = 0 ]
check another_workload_has_no_row says 'Changes: 0 for the worse, 0 for the better, 0 between'

# a device is what its spec stands for
history=$tmp/devices.jsonl
for device in 1:sim 2:sim:profile=h100 3:sim:profile=l4; do
    "$ALLOCRIG" run -d "${device#*:}" -p growth -w order_flip --json "$tmp/device.json" >"$tmp/table"
    add "$tmp/device.json" "${device%%:*}"
    run history "$history" --metric driver_calls
    check "series_of_devices_${device%%:*}" says "^Series: $((${device%%:*} > 2 ? 2 : 1)), over commits: ${device%%:*}\\."
done

# ---- instructions: a folder of results and counts; 0.4 % more at each commit
history=$tmp/counts.jsonl
mkdir "$tmp/counted"
cp "$tmp/old.json" "$tmp/counted/results.json"
counts() { # COUNT COMPILER
    printf '{"schema": "allocrig.instructions/1", "compiler": "%s", "rows": [{"policy": "p", "trace": "t", "kind": "operations", "measure": "none", "instructions": %s}]}' "$2" "$1" >"$tmp/counted/instructions.json"
}
n=0
for count in 250 251 252; do
    counts $count gcc
    n=$((n + 1))
    add "$tmp/counted" $n
    check "a_drift_within_one_percent_is_none_$n" [ "$status" = 0 ]
done
counts 253 gcc
add "$tmp/counted" 4
check a_drift_beyond_one_percent_is_caught [ "$status" = 1 ]
said a_drift_is_told '^WORSE 1 instructions of t with policy p: 250 before, 253 since; 1\.2 % more'
counts 262.5 gcc
add "$tmp/counted" 5
said five_percent_more_is_told '^WORSE 1 instructions of t with policy p: 253 before, 262\.5 since; 3\.75 % more'
counts 300 clang
history=$tmp/counts.jsonl
head -n 3 "$history" >"$tmp/few.jsonl"
history=$tmp/few.jsonl
add "$tmp/counted" 6
check another_compiler_is_another_series [ "$status" = 0 ]
refuses counts_alone 2 'no result of `run --json` among them' history "$history" --append "$tmp/counted/instructions.json" --commit c7

# ---- noisy times of one machine; awk has a random generator of its own
timed() { # FILE N FACTOR: results with times of about 1000 x FACTOR, with 3 % noise
    awk -v seed="$2" -v factor="$3" 'BEGIN { s = (seed * 7919 + 17) % 2147483647
        for (i = 0; i < 20; i++) s = (s * 16807) % 2147483647 }
        /"(alloc|free)_ns_p(50|90)": / { noise = 0
            for (i = 0; i < 12; i++) { s = (s * 16807) % 2147483647; noise += s / 2147483647 - 0.5 }
            sub(/: [0-9a-z]+/, sprintf(": %.0f", 1000 * factor * (1 + 0.03 * noise))) } { print }' "$tmp/old.json" >"$1"
}
history=$tmp/times.jsonl
alarms=0
for ((n = 1; n <= 50; n++)); do
    timed "$tmp/timed.json" "$n" 1
    add "$tmp/timed.json" "$n"
    [ "$status" = 0 ] || alarms=$((alarms + 1))
done
check fifty_unchanged_reruns_raise_no_alarm [ $alarms = 0 ]
check changes_of_times_are_none grep -qE 'Changes: 0 for the worse, 0 for the better' "$out"
check how_soon_is_said says '^Series of times: 8; a clear change of at least 5 % is detected after [5-7] measurements'
for ((n = 51; n <= 58; n++)); do
    timed "$tmp/timed.json" "$n" 1.2
    add "$tmp/timed.json" "$n"
done
check slower_is_caught [ "$status" = 1 ]
check slower_is_under_its_commit grep -q '^commit c51 of' "$out"
said slower_is_told '^WORSE [0-9]+ (figure|policy) .*; first: .* % more; p '
check how_to_make_sure_is_said says 'make regress BASE=c50 '
run history "$history" --csv "$tmp/history.csv" --panels 1
head -n 1 "$tmp/history.csv" >"$tmp/head"
check figure_data_has_columns grep -qx 'panel,workload,policy,figure,unit,kind,place,commit,value,level,change' "$tmp/head"
check figure_data_has_all_points [ "$(wc -l <"$tmp/history.csv")" = 59 ]
check figure_data_marks_the_change grep -qE '^1,.*,timed,51,c51,.*,worse$' "$tmp/history.csv"
check figure_data_marks_one [ "$(grep -c 'worse$' "$tmp/history.csv")" = 1 ]

if command -v gnuplot >/dev/null; then
    mkdir "$tmp/data"
    cp "$tmp/history.csv" "$tmp/data"
    said_by_render=$(FIGURES=history plots/render.sh "$tmp/data" "$tmp/figures" 2>&1)
    check figure_is_drawn_alone [ -z "$said_by_render" ]
    check figure_names_the_commit grep -q '>c51<' "$tmp/figures/history.svg"
    check figure_is_a_pdf_too grep -aqE 'MediaBox \[ *0 0 24[01](\.[0-9]+)? ' "$tmp/figures/history.pdf"
else
    echo "skip figure: gnuplot is not installed"
fi

# ---- torn, merged, bad
history=$tmp/torn.jsonl
head -n 2 "$tmp/outcomes.jsonl" >"$history"
cp "$history" "$tmp/whole.jsonl"
sed -n 3p "$tmp/outcomes.jsonl" | head -c 1000 >>"$history"
run history "$history" --last 1
check torn_is_left_out grep -q '^The last line has no end and was left out (1000 bytes)' "$out"
check torn_hides_nothing grep -q 'over commits: 2\.' "$out"
run history "$history" --append "$tmp/old.json" --commit c3 --time 2027-01-31T12:03:00Z
check torn_is_cut_off grep -q '^Removed an incomplete last line of an interrupted write (1000 bytes)' "$out"
check nothing_whole_is_lost cmp -s <(head -n 2 "$history") "$tmp/whole.jsonl"
check the_new_line_is_whole cmp -s "$history" "$tmp/outcomes.jsonl"
head -c -1 "$tmp/outcomes.jsonl" >"$history" # an editor took the last line's end
run history "$history" --append "$tmp/waste.json" --commit c4 --time 2027-01-31T12:04:00Z
check a_whole_line_without_end_is_kept cmp -s <(head -n 3 "$history") "$tmp/outcomes.jsonl"

bad() { # NAME REGEX: reading it and adding to it fail, and the file does not change
    local sum
    sum=$(sha256sum <"$history")
    refuses "$1" 2 "$2" history "$history"
    refuses "$1_adding" 2 "$2" history "$history" --append "$tmp/old.json" --commit c9
    check "$1_stays" [ "$(sha256sum <"$history")" = "$sum" ]
}
{ head -n 1 "$tmp/whole.jsonl" && echo '<<<<<<< HEAD' && tail -n 1 "$tmp/whole.jsonl"; } >"$history"
bad a_merge_mark_is_told 'torn.jsonl:2: a conflict marker of an unfinished merge'
{ head -n 1 "$tmp/whole.jsonl" && echo nonsense && tail -n 1 "$tmp/whole.jsonl"; } >"$history"
bad nonsense_is_told 'torn.jsonl:2: not JSON: '
{ head -n 1 "$tmp/whole.jsonl" && printf 'nonsense'; } >"$history"
bad a_last_line_that_is_no_rest_is_told 'torn.jsonl:2: not JSON: '
{ cat "$tmp/whole.jsonl" && echo '{"schema": "other/1"}'; } >"$history"
bad another_schema_is_told 'torn.jsonl:3: not a line of a history: its schema is other/1'
sed '2s/"passed": true/"passed": 1/' "$tmp/outcomes.jsonl" >"$history"
sed '3s/"passed": true/"passed": 1/' "$tmp/outcomes.jsonl" >"$history"
bad a_bad_run_is_told 'torn.jsonl:3: run 1: "passed" is not true or false'
sed '3s/"first_failed_event": [0-9a-z]*/"first_failed_event": "ten"/' "$tmp/outcomes.jsonl" >"$history"
bad a_bad_event_is_told 'torn.jsonl:3: run 1: "first_failed_event" is not'
sed '1s/12:01:00Z/12:61:00Z/' "$tmp/outcomes.jsonl" >"$history"
bad a_bad_time_is_told 'torn.jsonl:1: "time" is not YYYY'
sed '1s/"exact": \[[^]]*\], "timed": \[\]}\]/"exact": [1], "timed": []}]/' "$tmp/outcomes.jsonl" >"$history"
bad missing_values_are_told 'torn.jsonl:1: run [0-9]: "exact" is not a list with a value for each'

# ---- several at once
history=$tmp/many.jsonl
for ((n = 1; n <= 12; n++)); do
    "$ALLOCRIG" history "$history" --append "$tmp/old.json" --commit "c$n" --time "2027-01-31T12:00:00Z" >"$tmp/out.$n" 2>&1 &
done
wait
check several_at_once_are_all_added [ "$(wc -l <"$history")" = 12 ]
run history "$history"
check several_at_once_are_whole grep -q 'over commits: 12\. Changes: 0 for' "$out"

# ---- usage
sums=$(sha256sum <"$history")
refuses no_line_without_an_output 2 '/none/x: cannot be written' history "$history" --append "$tmp/old.json" --commit x --json /none/x
refuses no_line_without_the_waivers 2 '/none/x: cannot be read' history "$history" --append "$tmp/old.json" --commit x --waivers /none/x
check no_line_was_added [ "$(sha256sum <"$history")" = "$sums" ]
run history "$history" --csv -
check nothing_else_in_standard_output [ "$(cut -d, -f1 "$out" | sort -u | tr -d '0-9\n')" = panel ]
sed 's/"dirty": false/"dirty": true/' "$tmp/old.json" >"$tmp/dirty.json"
refuses a_changed_tree_is_no_commit 2 'a tree with uncommitted changes' history "$history" --append "$tmp/dirty.json"
refuses no_time 2 'is not a time; write' history "$history" --append "$tmp/old.json" --commit x --time yesterday
refuses no_results 2 'cannot be read' history "$history" --append "$tmp/none.json"
: >"$tmp/nothing.jsonl"
refuses a_file_without_measurements 2 'nothing.jsonl holds no measurement' history "$tmp/nothing.jsonl"
refuses no_file 2 'none.jsonl: cannot be read' history "$tmp/none.jsonl"
refuses a_name_is_needed 2 'no file is given; write history FILE' history
refuses one_file 2 'one file too many' history a b
for commit in 'a b' $'a\nb' é "$(printf '%0101d' 0)"; do
    refuses no_name_of_a_commit 2 'is no name; write at most 100 ASCII characters' history "$history" --append "$tmp/old.json" --commit "$commit"
done
refuses commit_of_what 2 'add --append' history "$history" --commit x
refuses effect_is_a_number 2 'effect is "some"; it must be a number above 0' history "$history" --effect some
refuses effect_is_decimal 2 'effect is "0x10"; it must be a number above 0' history "$history" --effect 0x10
refuses effect_has_no_blanks 2 'effect is " 5"; it must be a number above 0' history "$history" --effect ' 5'
refuses alpha_is_a_chance 2 'alpha is "2"; it must be a number above 0, at most 0.5' history "$history" --alpha 2
refuses panels_are_few 2 'panels is "25"; it must be a whole number from 0 to 24' history "$history" --panels 25
refuses today_is_a_date 2 'write a date' history "$history" --today tomorrow
refuses last_is_a_number 2 'it must be a whole number' history "$history" --last some
# ---- a full disk: no new file is left, and an old file does not change
rm -rf "$tmp/full" && mkdir "$tmp/full"
run_full history "$tmp/full/new.jsonl" --append "$tmp/old.json" --commit c1 --time 2027-01-31T12:00:00Z
check a_full_disk_is_said [ "$status" = 2 -a "$(grep -c 'cannot be written: File too large' "$err")" = 1 ]
check a_full_disk_leaves_no_file [ -z "$(ls -A "$tmp/full")" ]
touch "$tmp/full/there.jsonl"
run_full history "$tmp/full/there.jsonl" --append "$tmp/old.json" --commit c1 --time 2027-01-31T12:00:00Z
check what_was_there_stays [ "$status" = 2 -a -e "$tmp/full/there.jsonl" ]
finish
