#!/bin/bash
# The table of claims (workloads/suites/claims): all of it is measured once; then each row's experiment and control
# are exchanged, and the verdict of that row, and of no other, must turn round.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash
release_only claim_rows
export ALLOCRIG CLAIMS_LIMIT_S=86400
tmp=$TEST_TMP
folder=$TEST_TMP/claims

check all_as_expected quietly bench/suite/claims.sh "$folder" sim
# verdicts FILE: row and verdict, of what was measured
verdicts() {
    awk -F '\t' 'NR > 1 && $4 != "-" { print $1 "\t" $2 }' "$1"
}
verdicts "$folder/claims.tsv" >"$TEST_TMP/as_it_is"
rows=$(grep -c '^\[claim ' workloads/suites/claims/claims.ini)
check all_but_one_are_measured [ "$(wc -l <"$TEST_TMP/as_it_is")" = $((rows - 1)) ]
bench/suite/claims.sh --judge "$folder" sim each >"$TEST_TMP/swapped.tsv"
check each_is_swapped [ $? = 0 ]
# Each row, and whether its own verdict turned round, all others are as they were, and the status is 1.
awk -F '\t' 'FNR == NR { was[$1] = $2; next }
    $1 != "status" { if (FNR > 1 && $4 != "-") got[$1] = $2; next }
    $2 in was {
        good = $3 == 1
        for (row in got) good = good && row in was
        for (row in was) good = good && got[row] == (row != $2 ? was[row] : was[row] == "holds" ? "does not hold" : "holds")
        print $2, good
    }
    { delete got }' "$TEST_TMP/as_it_is" "$TEST_TMP/swapped.tsv" >"$TEST_TMP/turned"
check all_are_swapped [ "$(cut -d ' ' -f 1 "$TEST_TMP/turned")" = "$(cut -f 1 "$TEST_TMP/as_it_is")" ]
while read -r row good; do
    check "swapped_$row" [ "$good" = 1 ]
done <"$TEST_TMP/turned"

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
wrong no_such_experiment 'no \[experiment y\]' '[claim x]' 'says = it' 'experiment = y' 'control = y' 'measure = a.pieces' 'holds = >= 1'
wrong no_such_bound 'a bound is >= or <=' '[experiment fill_greedy]' 'command = run' '[claim x]' 'says = it' 'experiment = fill_greedy' \
    'control = fill_greedy' 'measure = a.pieces' 'holds = about 1'

# A run that was ended goes on: what is done is not measured again; what fails or takes too long is told, and the rest measured.
cat >"$TEST_TMP/few.ini" <<'END'
[experiment fill_greedy]
command = run -p greedy -w workloads/suites/claims/fill_and_free.trace
[experiment fill_growth]
command = run -p growth -w workloads/suites/claims/fill_and_free.trace
[claim all_at_once]
says = all at once
experiment = fill_greedy
control = fill_growth
measure = a.first_reserved_bytes / a.capacity_bytes
holds = >= 0.9
END
# The program, where "$TEST_TMP/how" says how it shall do with growth
cat >"$TEST_TMP/rig" <<END
#!/bin/bash
case "\$*" in *'-p growth'*) echo growth >>"$TEST_TMP/asked"; . "$TEST_TMP/how" ;; *-p*) echo greedy >>"$TEST_TMP/asked" ;; esac
exec "$ALLOCRIG" "\$@"
END
chmod +x "$TEST_TMP/rig"
# few STATUS HOW [--resume]: the small table; which experiments were asked for is in $TEST_TMP/asked
few() {
    : >"$TEST_TMP/asked"
    echo "$2" >"$TEST_TMP/how"
    # shellcheck disable=SC2086
    CLAIMS=$TEST_TMP/few.ini ALLOCRIG=$TEST_TMP/rig bench/suite/claims.sh ${3:-} "$TEST_TMP/few" sim >"$out" 2>"$err"
    status=$?
    check "few_$2" [ "$status" = "$1" ]
}
# The shortest limit in which the other experiment is done: on a busy machine it takes longer.
for limit in 2 8 32 128 512; do
    CLAIMS_LIMIT_S=$limit few 1 'exec sleep 86400' >"$TEST_TMP/too_long"
    ! grep -q 'fill_greedy: not done' "$err" || continue
    break
done
cat "$TEST_TMP/too_long"
check too_long_is_told grep -q "^claims: fill_growth: not done after $limit s$" "$err"
check too_long_is_not_measured grep -q '^0 hold, 0 do not, 0 simulated only, 1 not measured or not shown$' "$out"
check the_others_are_measured grep -q '^fill_greedy,first_reserved_bytes,' "$TEST_TMP/few/numbers.csv"
few 1 'echo bad >&2; exit 4' --resume
check a_failure_is_told grep -q '^claims: fill_growth: bad$' "$err"
check what_is_done_is_kept [ "$(cat "$TEST_TMP/asked")" = growth ]
few 0 : --resume
check it_went_on [ "$(cat "$TEST_TMP/asked")" = growth ]
check one_holds grep -q '^1 hold, 0 do not, 0 simulated only$' "$out"
few 0 : --resume
check nothing_is_left_to_do [ ! -s "$TEST_TMP/asked" ]
# What is no longer whole is measured again: numbers, the end of their file, what was held.
cp -r "$TEST_TMP/few" "$TEST_TMP/few.whole"
for harm in 'sed -i /^fill_growth,/d numbers.csv' 'truncate -s -3 numbers.csv' 'rm data/fill_growth.csv' 'truncate -s 100 data/fill_growth.csv'; do
    (cd "$TEST_TMP/few" && $harm)
    few 0 : --resume
    check "made_whole_after_${harm// /_}" [ "$(cat "$TEST_TMP/asked")" = growth ]
    check "numbers_after_${harm// /_}" cmp <(sort "$TEST_TMP/few/numbers.csv") <(sort "$TEST_TMP/few.whole/numbers.csv")
    check "data_after_${harm// /_}" diff -r "$TEST_TMP/few/data" "$TEST_TMP/few.whole/data"
done
few 0 : ''
check without_resume_all_is_measured [ "$(wc -l <"$TEST_TMP/asked")" = 2 ]
few 2 'echo no card >&2; exit 3' ''
check no_device_ends_it [ -s "$TEST_TMP/few/numbers.csv" -a ! -e "$TEST_TMP/few/claims.md" ]

# The rows on a card, as far as a stand-in for the driver goes: all but those that hang on time, and two long ones, come out
# as simulated.
stand_in=$PWD/.build/$TEST_VARIANT/tests/cuda_stand_in
if [ ! -f "$stand_in/libcuda.so.1" ] || "$ALLOCRIG" list devices cuda | grep -q 'without nvcc'; then
    echo "skip claim_rows_on_the_stand_in: it was not built, or the program has no kernels"
elif long rows_of_the_card the_card_says_the_same more_cards_are_needed the_card_says_how_many each_is_told_with_its_seconds; then
    mkdir "$TEST_TMP/nvml"
    "${CC:-cc}" -std=c11 -shared -fPIC -o "$TEST_TMP/nvml/libnvidia-ml.so.1" tests/cli/nvml_stand_in.c
    awk '/^\[/ { left_out = /^\[(experiment (calls|long|warm|lengths|chunks)_|claim (driver_calls_cost|growth_costs_speed|[a-z_]*_pays_|made_again_|lengths_drift|unsplit_chunks))/ }
        !left_out' workloads/suites/claims/claims.ini >"$TEST_TMP/for_the_card.ini"
    CLAIMS=$TEST_TMP/for_the_card.ini LD_LIBRARY_PATH=$TEST_TMP/nvml:$stand_in STAND_IN_SHARED=$TEST_TMP/held STAND_IN_CARDS=3 bench/suite/claims.sh "$TEST_TMP/card" cuda >"$out" 2>"$err"
    verdicts "$TEST_TMP/card/claims.tsv" | grep -v '^fragmentation_slows_reads	' | sort >"$TEST_TMP/on_the_card"
    sort "$TEST_TMP/as_it_is" >"$TEST_TMP/simulated"
    check rows_of_the_card [ "$(wc -l <"$TEST_TMP/on_the_card")" -ge 43 ]
    check the_card_says_the_same [ -z "$(comm -23 "$TEST_TMP/on_the_card" "$TEST_TMP/simulated")" ]
    # of a machine with fewer cards
    mkdir "$TEST_TMP/one"
    grep -vE '^(visible|growth_on)_' "$TEST_TMP/card/numbers.csv" | sed 's/^machine,cards,3$/machine,cards,1/' >"$TEST_TMP/one/numbers.csv"
    bench/suite/claims.sh --judge "$TEST_TMP/one" cuda >"$TEST_TMP/one.txt"
    check more_cards_are_needed [ "$(grep -cE '^(visible_devices|growth_for_one_gpu) +needs 2 cards' "$TEST_TMP/one.txt")" = 2 ]
    check the_card_says_how_many grep -qE '^[0-9]+ hold, [0-9]+ do not, [0-9]+ simulated only' "$out"
    check each_is_told_with_its_seconds [ "$(grep -cE '^[0-9]+ of [0-9]+: [a-z0-9_]+: [0-9.]+ s$' "$out")" = "$(wc -l <"$TEST_TMP/card/times.tsv")" ]
fi

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
# ---- a broken table ends with 2 and a sentence before anything is measured; CR and a byte order mark are no fault
cat >"$tmp/whole.ini" <<'INI'
[document d]
title = Doc
[experiment greedy]
command = run -p greedy -w order_flip
[experiment growth]
command = run -p growth -w order_flip
[claim one]
says = greedy takes more
document = d
experiment = greedy
control = growth
measure = a.peak_reserved_bytes
holds = >= 20000000000
INI
rm -rf "$tmp/unmeasured"
broken() { # NAME REGEX SED..: what is said of the table so changed
    local name=$1 pattern=$2
    shift 2
    sed "$@" "$tmp/whole.ini" >"$tmp/broken.ini"
    CLAIMS=$tmp/broken.ini bench/suite/claims.sh "$tmp/unmeasured" >"$out" 2>"$err" </dev/null
    status=$?
    check "$name" [ "$status" = 2 -a "$(wc -l <"$err")" = 1 -a ! -e "$tmp/unmeasured/claims.md" -a ! -e "$tmp/unmeasured/numbers.csv" ]
    check "${name}_is_said" grep -qE "$pattern" "$err"
}
broken no_such_experiment 'broken.ini: .claim one.: there is no .experiment other.' 's/^control = .*/control = other/'
broken no_control 'wants says, experiment, control, measure and holds' '/^control/d'
broken no_measure 'wants says, experiment, control, measure and holds' '/^measure/d'
broken a_third_operand 'a measure is X, X / Y or X - Y: "a.x / a.y / a.z"' 's,^measure = .*,measure = a.x / a.y / a.z,'
broken another_letter 'no such operand: "c.peak_reserved_bytes"' 's/a.peak/c.peak/'
broken no_second_experiment 'b.peak_reserved_bytes wants a second experiment' 's/a.peak/b.peak/'
broken no_bound 'a bound is >= or <= and a number: ">= much"' 's/>= .*/>= much/'
broken another_verdict 'expected is "holds" or "does not hold", not "maybe"' 's/^holds.*/&\nexpected = maybe/'
broken an_empty_table 'is no table of claims, or is empty' d
broken a_table_without_rows 'there is no .claim. in it' '/^.claim/,$d'
broken another_key 'broken.ini:8: there is no key "sayz"' 's/^says/sayz/'
(ulimit -t 600 && CLAIMS=/dev/zero bench/suite/claims.sh "$tmp/unmeasured" >"$out" 2>"$err")
check an_endless_table [ $? = 2 ]
sed -e '1s/^/\xef\xbb\xbf/' -e 's/$/\r/' "$tmp/whole.ini" >"$tmp/crlf.ini"
check a_table_of_another_editor quietly env CLAIMS="$tmp/crlf.ini" bench/suite/claims.sh "$tmp/crlf"
printf 'experiment,field,value\ngreedy,peak_reserved_bytes,much\ngrowth,peak_reserved_bytes,1\n' >"$tmp/crlf/numbers.csv"
CLAIMS=$tmp/whole.ini bench/suite/claims.sh --judge "$tmp/crlf" >"$out" 2>"$err"
check what_is_no_number_was_not_measured grep -q 'not measured: peak_reserved_bytes of greedy' "$tmp/crlf/claims.md"

finish
