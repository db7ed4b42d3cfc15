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
check every_combination_is_there [ "$(wc -l <"$tmp/one.csv")" = $((7 * 7 * 2 + 1)) ]
check a_combination_is_named grep -q 'torch:max_split_size_mb=128,limit=2GiB' "$tmp/one.csv"
check journal_is_removed [ ! -e "$tmp/grid.ini.journal" ]
check summary_has_a_row_for_each [ "$(grep -cE ' of 7 ' "$out")" = 14 ]
run sweep "$tmp/grid.ini" --jobs 3 --csv "$tmp/three.csv" --json "$tmp/three.json"
check the_same_with_any_jobs cmp "$tmp/one.csv" "$tmp/three.csv"
check the_same_json cmp <(without_context "$tmp/one.json") <(without_context "$tmp/three.json")

# Killed when the journal has grown by some more records, four times; then the last record is torn.
size() {
    stat -c %s "$tmp/journal" 2>/dev/null || echo 0
}
killed=0
for _ in 1 2 3 4; do
    before=$(size)
    "$ALLOCRIG" sweep "$tmp/grid.ini" --jobs 2 --csv "$tmp/killed.csv" --journal "$tmp/journal" >"$out" 2>"$err" &
    process=$!
    while kill -0 $process 2>/dev/null && [ "$(size)" -lt $((before + 30000)) ]; do sleep 0.001; done
    kill -9 $process 2>/dev/null && killed=$((killed + 1))
    wait $process 2>/dev/null
done
check it_was_killed [ $killed -ge 1 ]
check a_killed_sweep_leaves_no_result [ $killed != 4 -o ! -e "$tmp/killed.csv" ]
[ ! -e "$tmp/journal" ] || truncate -s -7 "$tmp/journal"
run sweep "$tmp/grid.ini" --csv "$tmp/killed.csv" --journal "$tmp/journal"
check goes_on [ "$status" = 0 ]
check ends_with_the_same_bytes cmp "$tmp/one.csv" "$tmp/killed.csv"

# Another sweep's journal is not believed.
"$ALLOCRIG" sweep "$tmp/grid.ini" --journal "$tmp/journal" >"$out" 2>&1 &
process=$!
while kill -0 $process 2>/dev/null && [ "$(size)" -lt 20000 ]; do sleep 0.001; done
kill -9 $process 2>/dev/null
wait $process 2>/dev/null
[ -e "$tmp/journal" ] || printf 'something of another kind' >"$tmp/journal"
sed 's/seed=1|2|3/seed=1|2/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses another_journal 2 'is the journal of another sweep' sweep "$tmp/other.ini" --journal "$tmp/journal"

sed 's/seed=1|2|3/seed=1||3/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses an_empty_value 2 'a value of a list is empty' sweep "$tmp/other.ini"
sed 's/^order_flip/order|flip/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses a_bar_in_no_value 2 'stands where a value stands' sweep "$tmp/other.ini"
sed 's/^name.*/time = yes/' "$tmp/grid.ini" >"$tmp/other.ini"
refuses no_times 2 'disturb each other' sweep "$tmp/other.ini"
refuses no_suite 2 'name a suite' sweep
finish
