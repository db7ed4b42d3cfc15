#!/bin/bash
# `model` on made-up runs with known answers: with repetitions of the runs on the card the median of
# the runs' own sums counts, each cell with as many runs as there are of it.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cell=embedding_torch

# made FOLDER CELL card|sim POLICY SLOWDOWN STEP_NS NS..: a run whose calls took that long
made() {
    local at=$tmp/$1/$2 place=$3 policy=$4 slowdown=$5 step=$6 ns
    shift 6
    mkdir -p "$at"
    printf 'policy_spec,workload,passed,slowdown,steady_step_ns,device_time_ns\n"%s",embedding,true,%s,%s,9000000\n' \
        "$policy" "$slowdown" "$step" >"$at/$place.csv"
    echo event,call,bytes,ns,waited_ns,refused >"$at/$place.calls"
    for ns; do echo "1,alloc,${bytes:-2097152},$ns,$((ns / 10)),0"; done >>"$at/$place.calls"
}

# Each run has another slow call: sums of 12, 12, 11 and 13 ms, medians of the calls 1 each.
made first $cell card torch 1.1 1000000 9000000 1000000 1000000 1000000
made first $cell sim torch 1.2 1000000 1000000 1000000 1000000 9500000
made second $cell card torch 1.3 2000000 1000000 9000000 1000000 1000000
made third $cell card torch 1.2 4000000 1000000 1000000 8000000 1000000
made fourth $cell card torch 1.6 8000000 1000000 1000000 1000000 10000000
made first embedding_vmm card vmm:x=1 1.0 1000000 1000000
made first embedding_vmm sim vmm:x=1 1.0 1000000 1000000
made fourth embedding_vmm card vmm:x=1 1.0 1000000 2000000

# model FOLDER..: the page is in $out
model() {
    (cd "$tmp" && "$ALLOCRIG" model "$@" >"$out" 2>"$err" </dev/null)
    status=$?
}
row='\| embedding \| `torch` \|'
case $ALLOCRIG in /*) ;; *) ALLOCRIG=$PWD/$ALLOCRIG ;; esac

model first
check one_run [ "$status" = 0 -a ! -s "$err" ]
check one_run_sum grep -qE "^$row 4 \| .* 12\.000 \| 12\.500 \| \+4\.2 % \| 1\.200 \| 1\.250 \| 1\.000 " "$out"
check one_run_says_nothing_of_runs not grep -qE 'median of its|medians|runs \|' "$out"
cp -r "$tmp/first" "$tmp/narrow"
cut -d, -f1-4 "$tmp/first/$cell/card.csv" >"$tmp/narrow/$cell/card.csv"
model first narrow
[ "$status" = 2 ] && grep -qF "narrow/$cell/card.csv: is no file of \`run --csv\`: it lacks the column steady_step_ns" "$err"
verdict a_missing_column_is_named $?
rm -r "$tmp/narrow"
cp -r "$tmp/first" "$tmp/same"
cp -r "$tmp/first/$cell" "$tmp/same/other"
model same
[ "$status" = 2 ] && grep -qF "same: $cell and other are both runs of embedding with torch" "$err"
verdict a_run_counts_once $?
rm -r "$tmp/same"
cp -r "$tmp/first" "$tmp/kept"
model first -o first/$cell/card.csv
[ "$status" = 2 ] && grep -qF "model: --output would overwrite \"first/$cell/card.csv\", which is an input" "$err"
verdict a_run_is_not_written_over $?
ln -s "first/$cell/sim.calls" "$tmp/link"
model first -o link
check nor_by_another_name [ "$status" = 2 ]
check runs_are_as_before diff -r "$tmp/first" "$tmp/kept"
model first -o first/page.md
check a_page_beside_them [ "$status" = 0 -a -s "$tmp/first/page.md" ]
rm -r "$tmp/kept" "$tmp/first/page.md" "$tmp/link"
model first second third fourth
check repeated [ "$status" = 0 -a ! -s "$err" ]
# sums 11 12 12 13: 12; steps 1 2 4 8: 3; slowdown 1.1 1.2 1.3 1.6: 1.25
check median_of_sums grep -qE "^$row 4 \| 4 \| 75\.0 % \| 12\.000 \| 12\.500 \| \+4\.2 % \| 1\.200 \| 1\.250 \| 3\.000 .* 1\.2500 \| 1\.2000 \| \|" "$out"
check cell_with_fewer_runs grep -qE '^\| embedding \| `vmm:x=1` \| 2 \| 1 \| 100\.0 % \| 1\.500 ' "$out"
check heading grep -qF '| what, medians of 2 to 4 runs | met |' "$out"
check kinds_are_sums_of_medians grep -qE '^\| alloc \| 5 \| 5 \| 80\.0 % \| 5\.500 \| 13\.500 ' "$out"
check kinds_say_so grep -qE "sums of the calls' medians" "$out"
model first third
check a_cell_not_repeated grep -qE '^\| embedding \| `vmm:x=1` \| 1 \| 1 \|' "$out"
check mean_of_two_sums grep -qE "^$row 2 \| 4 \| .* 11\.500 \| 12\.500 " "$out"
check heading_of_one_run grep -qF '| what, medians of 1 to 2 runs |' "$out"
model first fourth
check heading_of_as_many_runs grep -qF '| what, medians of 2 runs |' "$out"

bytes=4096 made other $cell card torch 1.4 1000000 1 1 1 1
model first second other
check other_calls_do_not_count grep -qE "^$row 2 of 3 \| 4 \| .* 12\.000 \| 12\.500 .* 1\.3000 " "$out"

made more embedding_best_fit card best-fit 1 1 1
made more $cell card torch 1.2 4000000 1000000 1000000 8000000
mkdir "$tmp/more/embedding_begun"
model first more
check only_again [ "$status" = 0 ]
check only_again_is_told [ "$(cat "$err")" = 'note: more: left out embedding_best_fit, which first does not have' ]
check only_again_is_left_out not grep -q best-fit "$out"
made more embedding_rmm card rmm-pool 1 1 1
model first more -o page.md
check more_are_told grep -qx 'note: more: left out embedding_best_fit and 1 more, which first does not have' "$err"
ln -s first "$tmp/link"
refuses a_run_repeats_not_itself 2 'are the same folder' model "$tmp/first" "$tmp/second" "$tmp/first/"
refuses nor_by_a_link 2 'are the same folder' model "$tmp/first" "$tmp/link"
refuses no_such_repetition 2 'nowhere: cannot be read' model "$tmp/first" "$tmp/nowhere"
cp -r "$tmp/first" "$tmp/odd"
for value in nan -1 1e999 12x; do
    sed "2s/[0-9.]*\(,[0-9]*,[0-9]*\)\$/$value\1/" "$tmp/first/$cell/card.csv" >"$tmp/odd/$cell/card.csv"
    cmp -s "$tmp/first/$cell/card.csv" "$tmp/odd/$cell/card.csv" && echo "nothing is odd: $value" && value=same
    refuses "odd_time_$value" 2 'card.csv:2: slowdown, steady_step_ns and device_time_ns are numbers from 0' model "$tmp/odd"
done
sed "2s/[0-9.]*\(,[0-9]*,[0-9]*\)\$/0\1/" "$tmp/first/$cell/card.csv" >"$tmp/odd/$cell/card.csv"
model odd
check no_time_is_a_number [ "$status" = 0 ]
# A bar in a name stays in its cell.
made barred $cell card 'torch:x=a|b' 1.1 1000000 9000000
made barred $cell sim 'torch:x=a|b' 1.1 1000000 9000000
sed -i 's/,embedding,/,em|bed,/' "$tmp/barred/$cell"/*.csv
for place in card sim; do echo 2,alloc,1073741824,9000000,0,0 >>"$tmp/barred/$cell/$place.calls"; done
model barred
check a_bar_stays_in_its_cell [ "$(grep -cF '| em\|bed | `torch:x=a\|b` | ' "$out") $(grep -cF '| em\|bed | 1 |' "$out")" = '2 1' ]
# A run of something else has other figures.
made wrong $cell card bfc 1.1 1000000 9000000 1000000 1000000 1000000
refuses a_repetition_of_another_policy 2 "wrong/$cell: card.csv is of embedding with bfc, so it is not a repetition of embedding with torch" \
    model "$tmp/first" "$tmp/wrong"
made wrong $cell sim torch 1.2 1000000 9000000 1000000 1000000 1000000
refuses a_simulation_of_another_policy 2 "wrong/$cell: card.csv is of embedding with bfc, sim.csv of embedding with torch" model "$tmp/wrong"
sed -i 's/"bfc",embedding/"torch",tape/' "$tmp/wrong/$cell/card.csv"
refuses a_repetition_of_another_workload 2 'card.csv is of tape with torch, so it is not' model "$tmp/first" "$tmp/wrong"
refuses a_simulation_of_another_workload 2 'card.csv is of tape with torch, sim.csv of embedding with torch' model "$tmp/wrong"
rm "$tmp/second/$cell/card.calls"
refuses half_a_repetition 2 'second/.*card.calls: cannot be read' model "$tmp/first" "$tmp/second"
finish
