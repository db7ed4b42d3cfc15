#!/bin/bash
# The table of claims (workloads/suites/claims): all of it is measured once; then each row's experiment and control
# are exchanged, and the verdict of that row, and of no other, must turn round.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
export ALLOCRIG
folder=$TEST_TMP/claims

check all_as_expected quietly bench/suite/claims.sh "$folder" sim
# verdicts FILE: row and verdict, of what was measured
verdicts() {
    awk -F '\t' 'NR > 1 && $4 != "-" { print $1 "\t" $2 }' "$1"
}
verdicts "$folder/claims.tsv" >"$TEST_TMP/as_it_is"
rows=$(grep -c '^\[claim ' workloads/suites/claims/claims.ini)
check all_but_one_are_measured [ "$(wc -l <"$TEST_TMP/as_it_is")" = $((rows - 1)) ]
cp "$TEST_TMP/as_it_is" "$TEST_TMP/rows"
while IFS=$'\t' read -r row verdict; do
    bench/suite/claims.sh --judge "$folder" sim "$row" >"$TEST_TMP/swapped.tsv"
    status=$?
    other=holds
    [ "$verdict" != holds ] || other='does not hold'
    awk -F '\t' -v OFS='\t' -v row="$row" -v other="$other" '$1 == row { $2 = other } { print }' \
        "$TEST_TMP/as_it_is" >"$TEST_TMP/wanted"
    verdicts "$TEST_TMP/swapped.tsv" >"$TEST_TMP/got"
    check "swapped_$row" [ "$status" = 1 -a -z "$(diff "$TEST_TMP/wanted" "$TEST_TMP/got")" ]
done <"$TEST_TMP/rows"

# says ROW VERDICT: on the page; called through check
# shellcheck disable=SC2317
says() {
    grep -qE "^\| $1 \|.*\| $2 \| (\[figure\]|-)" "$folder/claims.md"
}
check a_card_is_needed says fragmentation_slows_reads 'needs a card'
check all_is_not_taken says growth_takes_all 'does not hold'
check suites_are_named grep -q 'tenants workloads/suites/claims/growth_twice.ini' "$folder/claims.md"
# Each row names its experiment, its control and its figure, or that it has none.
check rows_are_whole [ "$(grep -cE '^\| [a-z0-9_]+ \| .*`[a-z]+ .*` \| .*`[a-z]+ .*` \| .* (\[figure\]\(figures/claim-[a-z0-9_]+\.svg\)|-) \|$' "$folder/claims.md")" = "$rows" ]
check contradictions grep -q '^| "How can I get TensorFlow to use all.*little by little' "$folder/claims.md"
bench/suite/claims.sh --judge "$folder" cuda >"$out"
check processes_are_not_measured_on_a_card grep -q '^| unlike_cards .*| several processes: simulated only |' "$folder/claims.md"

# A control that shows nothing, and what the table cannot say.
sed 's/^control = fill_growth$/control = fill_greedy/' workloads/suites/claims/claims.ini >"$TEST_TMP/blind.ini"
CLAIMS=$TEST_TMP/blind.ini bench/suite/claims.sh --judge "$folder" sim >"$out"
status=$?
check blind_control [ "$status" = 1 ]
check blind_control_is_told says default_takes_nearly_all '\*\*not shown: the control comes out the same way\*\*'
# wrong NAME PATTERN LINE..: the table with these lines is refused
wrong() {
    local name=$1 pattern=$2
    shift 2
    printf '%s\n' "$@" >"$TEST_TMP/wrong.ini"
    CLAIMS=$TEST_TMP/wrong.ini bench/suite/claims.sh --judge "$folder" sim >"$out" 2>"$err"
    status=$?
    check "$name" [ "$status" = 2 -a -n "$(grep -E "$pattern" "$err")" ]
}
wrong no_such_key 'wrong.ini:2: there is no key "comand"' '[experiment x]' 'comand = run'
wrong no_such_section 'wrong.ini:1: wanted' '[experience x]'
wrong no_such_experiment 'no \[experiment y\]' '[claim x]' 'experiment = y' 'control = y' 'measure = a.pieces' 'holds = >= 1'
wrong no_such_bound 'a bound is >= or <=' '[experiment fill_greedy]' 'command = run' '[claim x]' 'experiment = fill_greedy' \
    'control = fill_greedy' 'measure = a.pieces' 'holds = about 1'

if command -v gnuplot >/dev/null; then
    bench/suite/claims.sh --judge "$folder" sim >"$out"
    # Three of the kinds of figures; `make claims` draws them all.
    awk -F '\t' 'NR == 1 || $1 ~ /^(growth_same_need|limits_isolate|growth_late_is_an_error)$/' "$folder/claims.tsv" >"$TEST_TMP/some.tsv"
    mv "$TEST_TMP/some.tsv" "$folder/claims.tsv"
    check draws quietly plots/claim_rows.sh "$folder" "$TEST_TMP/figures"
    check figures [ "$(find "$TEST_TMP/figures" -name 'claim-*.svg' -size +2k | wc -l)" = 3 ]
    check figures_for_a_column [ "$(grep -laE 'MediaBox \[ *0 0 24[01](\.[0-9]+)? ' "$TEST_TMP"/figures/claim-*.pdf | wc -l)" = 3 ]
else
    echo "skip claim_rows_figures: no gnuplot"
fi
finish
