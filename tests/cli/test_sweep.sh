#!/bin/bash
# `sweep`: the same bytes for any number of workers, and after being killed again and again.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cat >"$tmp/grid.ini" <<'EOF'
[suite]
name = grid
capacities = 2GiB 4GiB

[policies]
growth
torch:max_split_size_mb=32|64|128,limit=1GiB|2GiB

[workloads]
random:events=3000|6000,seed=1|2|3
order_flip

[devices]
sim
EOF
run sweep "$tmp/grid.ini" --jobs 1 --csv "$tmp/one.csv" --json "$tmp/one.json"
check passes [ "$status" = 0 ]
check the_table_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check every_combination_is_there [ "$(wc -l <"$tmp/one.csv")" = $((7 * 7 * 2 + 1)) ]
check a_combination_is_named grep -q 'torch:max_split_size_mb=128,limit=2GiB' "$tmp/one.csv"
check journal_is_removed [ ! -e "$tmp/grid.ini.journal" ]
check summary_has_a_row_for_each [ "$(grep -cE ' of 7 ' "$out")" = 14 ]
run sweep "$tmp/grid.ini" --jobs 3 --csv "$tmp/three.csv" --json "$tmp/three.json"
check the_same_with_any_jobs cmp "$tmp/one.csv" "$tmp/three.csv"
check the_same_json cmp <(without_context "$tmp/one.json") <(without_context "$tmp/three.json")

# A full disk keeps a journal that is done.
run sweep "$tmp/grid.ini" --jobs 2 --journal "$tmp/done" --csv /dev/full
check a_full_disk_keeps_the_journal [ "$status" = 2 -a -s "$tmp/done" ]
# Killed when the journal has grown by some more records, four times; then the last record is torn.
size() {
    stat -c %s "$tmp/journal" 2>/dev/null || echo 0
}
killed=0 early=0
# Four rounds; more of them where the sweep is often done before this script gets to kill it.
for ((round = 0; round < 4 || (killed < 1 && round < 100); round++)); do
    before=$(size)
    rm -f "$tmp/killed.csv"
    "$ALLOCRIG" sweep "$tmp/grid.ini" --jobs 2 --csv "$tmp/killed.csv" --journal "$tmp/journal" >"$out" 2>"$err" &
    process=$!
    while kill -0 $process 2>/dev/null && [ "$(size)" -lt $((before + 30000)) ]; do sleep 0.001; done
    kill -9 $process 2>/dev/null
    { wait $process; } 2>/dev/null
    [ $? != 137 ] || killed=$((killed + 1))
    # It writes them when all is in the journal, which it then removes.
    [ ! -e "$tmp/killed.csv" ] || [ ! -e "$tmp/journal" ] || [ "$(size)" = "$(stat -c %s "$tmp/done")" ] || early=$((early + 1))
done
check it_was_killed [ $killed -ge 1 ]
check a_killed_sweep_leaves_no_result [ $early = 0 ]
[ ! -e "$tmp/journal" ] || truncate -s -7 "$tmp/journal"
run sweep "$tmp/grid.ini" --csv "$tmp/killed.csv" --journal "$tmp/journal"
check goes_on [ "$status" = 0 ]
check ends_with_the_same_bytes cmp "$tmp/one.csv" "$tmp/killed.csv"

# Another sweep's journal is not believed.
sed 's/seed=1|2|3/seed=1|2/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses another_journal 2 'is the journal of another sweep' sweep "$tmp/other.ini" --journal "$tmp/done"

sed 's/seed=1|2|3/seed=1||3/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses an_empty_value 2 'a value of a list is empty' sweep "$tmp/other.ini"
sed 's/^order_flip/order|flip/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses a_bar_in_no_value 2 'takes the place of a value' sweep "$tmp/other.ini"
sed 's/^name.*/time = yes/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses no_times 2 'disturb each other' sweep "$tmp/other.ini"

# The same grid with a [grid] section: the same cases. A spec with a value of its own keeps that.
cat >"$tmp/section.ini" <<'EOF'
[suite]
name = grid

[policies]
growth
torch

[workloads]
random
order_flip:seed=1

[grid]
torch:max_split_size_mb = 32 64, 128
torch:limit = 1GiB '2GiB'
events = 3000 6000
workloads:seed = 1 2 3
capacity = 2GiB 4GiB
EOF
run sweep "$tmp/section.ini" --csv "$tmp/section.csv"
check a_section_passes [ "$status" = 0 ]
check a_section_makes_every_combination [ "$(wc -l <"$tmp/section.csv")" = $((7 * 7 * 2 + 1)) ]
check a_section_makes_the_same_cases cmp "$tmp/one.csv" <(sed 's/order_flip:seed=1/order_flip/g' "$tmp/section.csv")
if long a_section_gives_the_same_bytes; then
    run sweep "$tmp/section.ini" --csv "$tmp/again.csv" --jobs 1
    check a_section_gives_the_same_bytes cmp "$tmp/section.csv" "$tmp/again.csv"
fi

# says NAME REGEX SED: what a changed section is told
says() {
    sed "$3" "$tmp/section.ini" >"$tmp/other.ini"
    refuses "$1" 2 "$2" sweep "$tmp/other.ini"
}
says a_key_of_two_sections 'other.ini:16: "seed" is an option of workloads and of devices: write' 's/^workloads:seed/seed/'
says a_key_of_nothing 'other.ini:15: nothing in the suite has an option "evnts"; did you mean "events"' 's/^events/evnts/'
says a_name_of_nothing 'other.ini:14: nothing that "cupy" names is in this suite' 's/^torch:limit/cupy:limit/'
says a_key_that_is_given_already 'other.ini:17: every spec that has an option "seed" gives it a value' 's/^capacity.*/random:seed = 7/'
says a_key_that_is_given_beside_many 'other.ini:15: every spec that has an option "events" gives it a value' \
    "s/^random$/random:events=100/; s/^torch:limit.*/torch:limit = $(seq -s ' ' 10001 10100)/"
says a_key_without_values 'other.ini:15: a key of \[grid\] needs values' 's/^events.*/events =/'
says a_quote_without_end 'other.ini:14: .* the quote does not end' "s/'2GiB'/'2GiB/"
says a_value_that_is_none 'option limit: "much" is not a size' "s/'2GiB'/much/"
says a_spec_that_comes_twice 'is given twice' "s/'2GiB'/1GiB/"
says a_key_without_a_name 'is no key of \[grid\]' 's/^events/:events/'
says a_policy_that_is_none 'there is no policy "growt"' 's/^growth/growt/'
refuses run_refuses_a_grid 2 'section.ini:13: a suite with \[grid\] is run by .allocrig sweep' run "$tmp/section.ini"
refuses no_suite 2 'no suite is given' sweep
# -- the suite's folder
printf '[suite]\nname = kept\noutput = %s\n[policies]\ngrowth\n[workloads]\norder_flip\nlinear_ramp\n[devices]\nsim\n' "$tmp/kept" >"$tmp/kept.ini"
run sweep "$tmp/kept.ini" --csv "$tmp/kept.csv"
check output_of_the_suite_is_honoured [ -s "$tmp/kept/results.json" -a -s "$tmp/kept/data/pareto.csv" ]
check its_rows_are_those_of_csv cmp -s "$tmp/kept.csv" "$tmp/kept/results.csv"
check its_summary_has_the_table grep -q '^| order_flip | sim | 1 of 1 | ' "$tmp/kept/summary.md"
check it_is_named grep -qxF "wrote $tmp/kept/summary.md" "$out"
check nothing_was_replaced [ ! -s "$err" ]
run sweep "$tmp/kept.ini" --output "$tmp/other"
check an_option_goes_before_it [ -s "$tmp/other/results.json" -a ! -s "$err" ]
run sweep "$tmp/kept.ini" --csv -
check what_was_replaced_is_said grep -qE "^replaced the results in .*/kept: suite kept, commit " "$err"
check rows_alone_on_standard_output cmp -s "$tmp/kept.csv" "$out"
printf '[suite]\noutput = %s/kept.csv\n[policies]\ngrowth\n[workloads]\norder_flip\n' "$tmp" >"$tmp/no.ini"
refuses a_file_is_no_folder 2 'folder cannot be made' sweep "$tmp/no.ini"
# a file that is named is none of the folder's own
refuses rows_of_the_folder_itself 2 '"[^"]*/kept/results.csv" is one of the files of the results in ' sweep "$tmp/kept.ini" --csv "$tmp/kept/results.csv"

finish
