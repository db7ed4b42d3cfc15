#!/bin/bash
# bench/suite/recorded_page.sh: a recording's step and kernel times beside a replay's.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"

tmp=$TEST_TMP
trace=workloads/data/gpt2_train.default.csv.gz
"$ALLOCRIG" run -d sim -p torch -w "$trace" --frees recorded --host recorded --csv "$tmp/recorded.csv" >"$out"
"$ALLOCRIG" run -d sim -p torch -w "$trace" --frees recorded --host none --csv "$tmp/none.csv" >"$out"
bench/suite/recorded_page.sh "$tmp/recorded.csv" "$tmp/none.csv" >"$out"
# 48,607 us from mark to mark, 36,401,407 ns of kernels and 2,668,610 us in all, 4 us before the
# last kernel's end: counted by hand from the recording's rows.
check both_sides grep -qE '^\| gpt2_train.default \| 48\.607 \| 48\.[0-9]{3} \| -[01]\.[0-9] % \| 36\.401 \| 36\.401 \| [+-]0\.0 % \| 2668\.614 \| 26[0-9]{2}\.[0-9]{3} \| [+-][01]\.[0-9] % \|$' "$out"
bench/suite/recorded_page.sh "$tmp/none.csv" >"$out"
check what_was_not_run_is_said grep -qE '\| 48\.607 \| not run \|.*\| 2668\.614 \| not run \|' "$out"
# Repetitions on a card, made here: its middle one counts, and the simulated step is held against it.
columns() { awk -F, -v OFS=, -v step="$1" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; if (!step) print; next }
    { $column["device"] = "cuda"; $column["steady_step_ns"] = step; if (step) print }' "$tmp/none.csv"; }
{ columns '' && columns 40000000 && columns 33000000 && columns 36000000; } >"$tmp/card.csv"
bench/suite/recorded_page.sh "$tmp/none.csv" "$tmp/card.csv" >"$out"
check the_card_is_what_is_replayed grep -qE '\| 36\.401 \| 36\.000 \| -1\.1 % \|' "$out"
check sim_beside_the_card grep -qE '^\| gpt2_train.default \| none \| 3 \| 36\.0000 \| 33\.0000 to 40\.0000 \| 36\.40[0-9]+ \| \+1\.1 % \|$' "$out"
bench/suite/recorded_page.sh >"$out" 2>&1
check usage [ $? = 2 ]
# refused WORDS FILE..: exit status 2, a sentence with these words, no table
# shellcheck disable=SC2317 # called by check
refused() {
    local words=$1
    shift
    bench/suite/recorded_page.sh "$@" >"$out" 2>"$err"
    [ $? = 2 ] && grep -qF -e "$words" "$err" && [ ! -s "$out" ]
}
head -n 1 "$tmp/none.csv" >"$tmp/empty.csv"
sed 's,workloads/data/,elsewhere/,' "$tmp/none.csv" >"$tmp/moved.csv"
check a_missing_file refused 'none: no such file' "$tmp/none.csv" "$tmp/none"
check another_file refused 'Makefile: the first line has no column steady_step_ns' Makefile
check no_runs refused 'has steady steps' "$tmp/empty.csv"
check a_missing_recording refused 'elsewhere/gpt2_train.default.csv.gz: no such recording' "$tmp/moved.csv"
finish
