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
# 48,607 us from mark to mark and 36,401,407 ns of kernels: counted by hand from the recording's rows.
check both_sides grep -qE '^\| gpt2_train.default \| 48\.607 \| 48\.[0-9]{3} \| -[01]\.[0-9] % \| 36\.401 \| 36\.401 \| [+-]0\.0 % \|$' "$out"
bench/suite/recorded_page.sh "$tmp/none.csv" >"$out"
check what_was_not_run_is_said grep -q '| 48.607 | not run |' "$out"
bench/suite/recorded_page.sh >"$out" 2>&1
check usage [ $? = 2 ]
finish
