#!/bin/bash
# bench/search: the train split alone, the same result after an interruption and for equal seeds, shards, candidates
# that fail their checks, spaces with an error; pairs of runs on a device.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
case $ALLOCRIG in /*) ;; *) ALLOCRIG=$PWD/$ALLOCRIG ;; esac
export ALLOCRIG ALLOCRIG_PROPERTY=/bin/true # the property test of a candidate is long, and is tested elsewhere
tmp=$TEST_TMP/search
[ "${TEST_VARIANT:-release}" = release ] || { echo 'skip all: a script, tested in the release build' && finish; }
mkdir -p "$tmp/data/synthetic"
if ! command -v python3 >/dev/null; then
    echo 'skip all: python3 is not installed'
    finish
fi

search() { run search "$@"; }
cat >"$tmp/space.ini" <<'EOF'
[search]
policy = mosaic
baseline = torch:expandable_segments=true
rungs = 1, 0
[options]
divide = used - {n} * free
place = start | -
[grammar]
n = 2 | 4 | 8
[start]
a = mosaic
EOF
run gen giant_then_crumbs:seed=1 -o "$tmp/data/synthetic/giant_1.trace.zst"
run gen a_b_a:seed=1 -o "$tmp/data/synthetic/methods_1.trace.zst"
options=("$tmp/space.ini" --data "$tmp/data" --candidates 2 --generations 1 --jobs 1)

search run "${options[@]}" -o "$tmp/one"
check it_ends_with_a_report [ "$status" = 0 -a ! -s "$err" -a -s "$tmp/one/report.md" ]
check the_report_has_each_workload grep -q '^| giant_1 | 1\.00' "$tmp/one/report.md"
check no_candidate_failed grep -q 'failed checks: none' "$tmp/one/report.md"
mkdir "$tmp/two"
{ head -5 "$tmp/one/results.jsonl" && printf '{"key": "fine gi'; } >"$tmp/two/results.jsonl"
search run "${options[@]}" -o "$tmp/two"
check it_goes_on_after_an_interruption cmp "$tmp/one/report.md" "$tmp/two/report.md"
search run "${options[@]}" -o "$tmp/one" --seed 2
check another_seed_needs_another_folder grep -q 'is of another search' "$err"
for i in 1 2; do search run "${options[@]}" -o "$tmp/parts" --shard $i/2; done
search report "$tmp/parts/1of2" "$tmp/parts/2of2" -o "$tmp/merged.md"
check shards_are_merged grep -q '^3 candidates tried in 2 parts' "$tmp/merged.md"

search run "${options[@]}" -o "$tmp/no" --only varlen_t
check a_workload_of_the_test_split_is_refused grep -q 'varlen_t is in the test split; a search may use the train' "$err"
search run "${options[@]}" -o "$tmp/no" --split test
check the_test_split_is_refused [ "$status" = 2 -a "$(grep -c 'the split test is refused' "$err")" = 1 ]
search run "${options[@]}" -o "$tmp/no" --shard 3/2
check a_shard_beyond_the_last_is_refused grep -q 'with I from 1 to N' "$err"
sed 's/{n}/{m}/' "$tmp/space.ini" >"$tmp/bad.ini"
search run "$tmp/bad.ini" --data "$tmp/data" -o "$tmp/no"
check an_unknown_name_is_refused grep -q 'divide uses {m}, which \[grammar\] does not have' "$err"
sed 's/used - {n} \* free/used +/; s/^n = .*//' "$tmp/space.ini" >"$tmp/wrong.ini"
search run "$tmp/wrong.ini" --data "$tmp/data" --candidates 1 --generations 1 --jobs 1 -o "$tmp/wrong"
check a_bad_rule_fails_the_contract grep -q 'failed checks: contract 1' "$tmp/wrong/report.md"

python3 bench/search/card.py -d sim -a torch -b mosaic --pairs 2 -o "$tmp/pairs.csv" gnn_minibatch:steps=5:3000 >"$out" 2>"$err"
check pairs_have_an_interval grep -q 'a passed 2 of 2, b 2; .*b / a .* to .*, 2 pairs' "$out"
check each_run_is_a_row [ "$(wc -l <"$tmp/pairs.csv")" = 5 ]
search
check an_action_is_needed eval '[ "$status" = 2 ] && grep -q "no action is given; write search run" "$err"'
search reprot
check an_unknown_action eval '[ "$status" = 2 ] && grep -q "no action .reprot.; did you mean .report." "$err"'

finish
