#!/bin/bash
# The frontier: every cell is what a single run says, the table names the smallest capacity, bad calls
# are refused and write nothing.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
export ALLOCRIG
csv=$TEST_TMP/frontier.csv
frontier=(bench/suite/frontier.sh -p best-fit -p growth -w random:events=2000 --vary 'target=512MiB,1GiB')

"${frontier[@]}" --capacity 768MiB,1536MiB,3GiB --csv "$csv" >"$out" 2>"$err"
check ends_well [ $? = 0 ]
check has_every_cell [ "$(wc -l <"$csv")" = 13 ]
wrong=0
while IFS=, read -r policy key value capacity passed _; do
    "$ALLOCRIG" run -p "$policy" -w "random:events=2000,$key=$value" -d "sim:capacity=$capacity" --metrics none \
        --require-pass >/dev/null 2>&1 && single=true || single=false
    [ "$single" = "$passed" ] || { echo "  $policy $key=$value on $capacity: $passed, alone $single" && wrong=1; }
done < <(tail -n +2 "$csv")
verdict cells_are_single_runs $wrong
check some_pass grep -q ',true,' "$csv"
check some_fail grep -q ',false,' "$csv"
# from the rows: no capacity from this one on fails, and the next smaller one does
smallest=$(awk -F, '$1 == "best-fit" && $3 == "1GiB" && $5 == "true" { print $4 / 1048576 }' "$csv" | sort -n | head -n 1)
check table_names_the_smallest grep -qE "^best-fit .* $smallest\\.0\$" "$out"
bad=0
for call in '-p growth --vary a=1 --capacity 1GiB' '-p growth -w random --capacity 1GiB' '-p growth -w random --vary a=1' \
    '-w random --vary a=1 --capacity 1GiB' '-p growth -w random --vary a=1 --capacity 1GiB --speed 2'; do
    rm -f "$csv"
    bad=$((bad + 1))
    # shellcheck disable=SC2086
    bench/suite/frontier.sh $call --csv "$csv" >/dev/null 2>"$err"
    check "refuses_call_$bad" [ "$?$(wc -l <"$err")$(ls "$csv" 2>/dev/null)" = 21 ]
done
"${frontier[@]}" --capacity nonsense --csv "$csv" >/dev/null 2>"$err"
check bad_capacity_is_refused [ "$?$(ls "$csv" 2>/dev/null)" = 2 ]
if command -v gnuplot >/dev/null; then
    "${frontier[@]}" --capacity 768MiB,3GiB --draw "$TEST_TMP/figures" >/dev/null 2>&1
    check is_drawn grep -q '>growth<' "$TEST_TMP/figures/frontier-random.svg"
fi
finish
