#!/bin/bash
# The data set of workloads and the benchmark: sums and seeds, checks of submissions, rows, the page.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
case $ALLOCRIG in /*) ;; *) ALLOCRIG=$PWD/$ALLOCRIG ;; esac
export ALLOCRIG
tmp=$TEST_TMP/dataset
# What the scripts run of the program is tested under sanitizers elsewhere.
[ "${TEST_VARIANT:-release}" = release ] || { echo 'skip all: a script, tested in the release build' && finish; }
mkdir -p "$tmp"
if ! command -v python3 >/dev/null; then
    echo 'skip all: python3 is not installed'
    finish
fi

# python PROGRAM WORD..: its output and errors are in $out and $err
python() {
    python3 "$@" >"$out" 2>"$err" </dev/null
    status=$?
}
build=workloads/dataset/build.py
submit() { run submit "$@"; }

# ---- the data set ---------------------------------------------------------------------------------

python $build "$tmp/one" --class synthetic --tag first
check the_table_has_the_sums_of_what_is_built [ "$status" = 0 -a ! -s "$err" ]
check it_says_how_many grep -q '^50 workloads in ' "$out"
check the_files_have_the_sums_of_the_list eval '(cd "$tmp/one" && sha256sum --quiet -c SHA256SUMS)'
check each_has_a_card [ "$(grep -c '^### ' "$tmp/one/README.md")" = 50 ]
python $build "$tmp/two" --class synthetic --tag second
differ=$(diff "$tmp/one/SHA256SUMS" "$tmp/two/SHA256SUMS" | sed -n 's/^< .*synthetic.//p')
check the_tag_draws_test_seeds_alone [ -n "$differ" -a -z "$(grep -v '_t\.trace\.zst$' <<<"$differ")" ]
check the_tag_is_in_the_metadata grep -q '"version": "first"' "$tmp/one/.zenodo.json"
check all_rows_are_of_a_known_kind eval '[ -z "$(awk -F"\t" '"'"'!/^#/ && NR > 2 &&
    ($2 !~ /^(recorded|traced|synthetic)$/ || $3 !~ /^(train|test)$/ || NF != 7)'"'"' workloads/dataset/v1.tsv)" ]'
check a_hundred_workloads [ "$(grep -vc '^#' workloads/dataset/v1.tsv)" -gt 100 ]
check sources_are_there eval '! awk -F"\t" '"'"'$2 == "recorded" { print $5 }'"'"' workloads/dataset/v1.tsv |
    while read -r path; do [ -f "$path" ] || echo "$path"; done | grep .'
check traces_are_there eval '! awk -F"\t" '"'"'$2 == "traced" { print $1 }'"'"' workloads/dataset/v1.tsv |
    while read -r name; do [ -f "workloads/dataset/traced/$name.trace.zst" ] || echo "$name"; done | grep .'

# ---- submissions ----------------------------------------------------------------------------------

# submission LINE..: a folder with these lines
submission() {
    rm -rf "$tmp/mine"
    mkdir "$tmp/mine"
    printf '%s\n' "$@" >"$tmp/mine/submission.ini"
}
good=('[submission]' 'name = mine' 'authors = A. Author' 'division = closed')
submission "${good[@]}" 'policy = growth   # fixed'
submit check "$tmp/mine"
check a_good_submission [ "$status" = 0 -a "$(grep -c '^ok ' "$out")" = 6 ]
submission "${good[@]}" 'policy = no_such'
submit check "$tmp/mine"
check an_unknown_policy eval '[ "$status" = 1 ] && grep -q "^FAILED the policy opens.*no_such" "$out"'

# refused NAME WORDS: exit status 2, and one sentence with these words
refused() {
    check "$1" eval '[ "$status" = 2 ] && [ "$(wc -l <"$err")" = 1 ] && grep -q "'"$2"'" "$err"'
}
submission "${good[@]}"
submit check "$tmp/mine"
refused a_missing_key 'the key policy is missing'
submission "${good[@]}" 'policy = torch' 'colour = red'
submit check "$tmp/mine"
refused an_unknown_key 'the key colour is not known'
submission "${good[@]/closed/middle}" 'policy = torch'
submit check "$tmp/mine"
refused a_division 'it is closed or open'
submission 'policy = torch'
submit check "$tmp/mine"
refused no_section 'no section headers'
submit check "$tmp"
refused no_file 'cannot be read'

# ---- rows and the page ----------------------------------------------------------------------------

# Of torch with a valgrind that fails: its instructions are not counted.
mkdir "$tmp/tools"
printf '#!/bin/sh\nexit 2\n' >"$tmp/tools/valgrind" && chmod +x "$tmp/tools/valgrind"
for policy in torch vmm; do
    before=
    [ $policy = vmm ] || before=$tmp/tools:
    PATH=$before$PATH submit run bench/leaderboard/submissions/$policy --data "$tmp/one" --class synthetic --only giant_t \
        --only matmul_t -o "$tmp/$policy.json"
    check "a_row_of_$policy" [ "$status" = 0 ]
done
submit page "$tmp/torch.json" "$tmp/vmm.json" -o "$tmp/page.html"
check the_page [ "$status" = 0 ]
check the_better_one_is_first eval 'tr -d "\n" <"$tmp/page.html" | grep -q "<td>1<td class=left title=.vmm.>vmm.*<td>2<td class=left title=.torch.>torch"'
check the_page_needs_no_network eval '! grep -q "https\{0,1\}://" "$tmp/page.html"'
check the_row_has_driver_calls grep -q '"median_driver_calls": [1-9]' "$tmp/vmm.json"
check the_row_has_instructions grep -q "\"instructions\": $(command -v valgrind >/dev/null && echo '[1-9]' || echo null)" "$tmp/vmm.json"
check none_if_valgrind_fails grep -q '"instructions": null' "$tmp/torch.json"
check the_row_names_its_data grep -q '"data": "first [0-9a-f]*"' "$tmp/vmm.json"
submit page "$tmp/vmm.json" "$tmp/vmm.json" -o "$tmp/ties.html"
check equal_policies_share_a_rank eval '[ "$(grep -o "<tr><td title=tied>1 =<td" "$tmp/ties.html" | wc -l)" = 2 ]'
submit page "$tmp/torch.json" "$tmp/vmm.json" -o "$tmp/page.md"
check tables_for_a_comment eval '[ "$(grep -cE "^\| (1 \| vmm|2 \| torch) " "$tmp/page.md")" = 2 ]'
sed 's/"data": "first/"data": "second/' "$tmp/vmm.json" >"$tmp/other.json"
python3 -c 'import json, sys; row = json.load(sys.stdin); del row["classes"]["synthetic"]["workloads"]["matmul_t"]
print(json.dumps(row))' <"$tmp/torch.json" >"$tmp/some.json"
submit page "$tmp/vmm.json" "$tmp/some.json" -o "$tmp/page.md"
check a_part_of_a_class_is_left_out eval 'grep -q "^torch is left out of synthetic" "$err" && ! grep -q torch "$tmp/page.md"'
submit page "$tmp/torch.json" "$tmp/other.json" -o "$tmp/page.md"
check rows_of_other_data_are_left_out eval 'grep -q "^vmm is left out" "$err" && ! grep -q vmm "$tmp/page.md"'
sed 's/"instructions": .*/"instructions": 20000,/' "$tmp/vmm.json" >"$tmp/slow.json"
submit page "$tmp/slow.json" -o "$tmp/slow.html"
check many_instructions_are_said grep -q '20,000 instructions a request' "$tmp/slow.html"
submit page "$tmp/one/SHA256SUMS" -o "$tmp/page.html"
refused a_row_that_is_none 'is no row'
submit run "$tmp/mine" --data "$tmp" --class synthetic
refused a_bad_folder 'cannot be read\|missing\|no section'
submission "${good[@]}" 'policy = torch'
submit run "$tmp/mine" --data "$tmp"
refused no_data_set 'make dataset'
submit
refused no_action 'no action is given'
submit chekc
refused an_unknown_action 'there is no action .chekc.; did you mean .check.'

# What a workload needs: the peak of live bytes on the card with those outside of the pool.
printf '%s\n' '# allocrig-trace 1' a,0,4194304 a,1,1048576,space=pinned o,2097152 r,0 a,2,1048576 o,0 >"$tmp/outside.trace"
PYTHONPATH=bench/leaderboard python -Bc 'import submit, sys; print(submit.needed_bytes(sys.argv[1], 4194304))' "$tmp/outside.trace"
check bytes_of_nccl_are_needed [ "$(cat "$out")" = 6291456 ]

# A pull request: the submissions that differ from a commit.
if git rev-parse HEAD >/dev/null 2>&1; then
    bench/leaderboard/pull_request.sh HEAD "$tmp/pull" >"$out" 2>"$err"
    check no_submission_differs grep -q '^No submission differs from HEAD' "$tmp/pull/comment.md"
else
    echo 'skip no_submission_differs: this is no repository'
fi

# ---- the page in a browser ------------------------------------------------------------------------

submit page "$tmp/torch.json" "$tmp/vmm.json" -o "$tmp/page.html"
if command -v chromedriver >/dev/null; then
    python tests/cli/leaderboard_page.py "$tmp/page.html"
    while read -r verdict name; do
        check "page_$name" [ "$verdict" = ok ]
    done <"$out"
    check the_browser_is_used [ "$status" = 0 -a "$(wc -l <"$out")" = 10 ]
else
    echo 'skip page: chromedriver is not installed (apt install chromium chromium-driver)'
fi

finish
