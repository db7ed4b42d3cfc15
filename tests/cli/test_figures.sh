#!/bin/bash
# The figures, from small made-up data: every kind is drawn in both forms, a file that is not there or
# holds nothing is said and passed over, and names with commas or quotes break nothing.
set -u
if [ "$TEST_VARIANT" != release ] && [ "${TEST_SOAK:-0}" != 1 ]; then
    echo "skip figures: gnuplot draws them; make soak does it in this build too"
    exit 0
fi
data=$TEST_TMP/data
out=$TEST_TMP/figures
mkdir -p "$data"

if ! command -v gnuplot >/dev/null; then
    echo "skip figures: gnuplot is not installed"
    exit 0
fi
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "not ok $name"; fi
}
drawn() { # NAME: all forms are there, are what they say, and hold more than a frame
    [ "$(head -c 5 "$out/$1.pdf")" = %PDF- ] && [ "$(head -c 4 "$out/$1.png" | tail -c 3)" = PNG ] && grep -q '<svg' "$out/$1.svg" &&
        [ "$(wc -c <"$out/$1.svg")" -gt 5000 ]
}

{
    echo 'policy,event,time_s,live_bytes,reserved_bytes,physical_bytes'
    for policy in growth "\"torch:conf='a,b'\"" greedy; do
        awk -v p="$policy" 'BEGIN { for (e = 0; e < 3000; e++) {
            live = (e % 700) * 1048576; held = p == "greedy" ? 68719476736 : 900 * 1048576
            printf "%s,%d,%s,%.0f,%.0f,%.0f\n", p, e, "", live, held, held } }'
    done
} >"$data/series-saw_tooth.csv"
cat >"$data/slowdown.csv" <<'CSV'
workload,policy,capacity_ratio,slowdown,passed
gpt2_train,growth,1,,false
gpt2_train,growth,1.1,1.5,true
gpt2_train,growth,2,1.01,true
gpt2_train,"torch:conf='a,b'",1,30.5,true
gpt2_train,"torch:conf='a,b'",2,1.2,true
never_passes,growth,1,,false
CSV
cat >"$data/fragmentation.csv" <<'CSV'
workload,policy,internal_mean,external_mean,unusable_mean,overhead
gpt2_train,growth,0.01,0.4,0.2,1.3
gpt2_train,"torch:conf='a,b'",0.02,,,1.1
CSV
cat >"$data/pareto.csv" <<'CSV'
workload,policy,overhead,driver_share
gpt2_train,growth,2,0.001
gpt2_train,"torch:conf='a,b'",1.1,0.01
gpt2_train,direct,1.05,0.5
order_flip,growth,2,
CSV
# Two segments: one block of 2 MiB for all of the run, then a second segment of which 1 MiB is used;
# a third, as long as the second, begins after it and takes its place.
cat >"$data/placements-three.csv" <<'CSV'
event,op,id,requested,granted,segment,offset,granted_total,reserved
0,a,0,2097152,2097152,0,0,2097152,2097152
1,a,1,1048576,1048576,1,0,3145728,6291456
2,a,2,0,0,1,0,3145728,6291456
3,a,3,1000,1048576,1,1048576,4194304,6291456
4,f,1,1048576,1048576,1,0,3145728,6291456
5,f,3,1000,1048576,1,1048576,2097152,6291456
6,a,4,2097152,2097152,2,0,4194304,6291456
9,f,4,2097152,2097152,2,0,2097152,6291456
CSV
printf '%s\n' '#  policy  live' '' 'x/three.txt: 10 events, frees ordered, host none, sim h100, 78.66 GiB' '1  torch:a=1,b=2' \
    '           1.0' >"$data/placements-three.txt"
output=$(plots/render.sh "$data" "$out" 2>&1)
status=$?
check ends_well [ $status = 0 ]
check memory_is_drawn drawn memory-saw_tooth
check slowdown_is_drawn drawn slowdown
check capacities_are_equal_steps grep -q 'capacity / live peak (equal steps)' "$out/slowdown.svg"
plots/render.sh "$data" "$TEST_TMP/column" svg-column >/dev/null 2>&1
check a_column_says_so_too grep -q 'capacity / live peak (equal steps)' "$TEST_TMP/column/slowdown-column.svg"
check a_column_has_all_capacities_and_the_lower_edge [ "$(grep -cE '>(1.00|1.10|2.00|≤1 %)<' "$TEST_TMP/column/slowdown-column.svg")" = 4 ]
check policies_of_which_none_is_the_best_have_a_line grep -q '>no other is better in both<' "$out/pareto.svg"
mkdir -p "$TEST_TMP/best"
sed '/,direct,/d; s/,2,0.001$/,1.05,0.001/' "$data/pareto.csv" >"$TEST_TMP/best/pareto.csv"
plots/render.sh "$TEST_TMP/best" "$TEST_TMP/best" svg >/dev/null 2>&1
check a_line_that_is_not_drawn_is_not_in_the_key eval '[ -s "$TEST_TMP/best/pareto.svg" ] && ! grep -q "no other is better" "$TEST_TMP/best/pareto.svg"'
check marks_lie_in_bands [ "$(grep -c "rgb(241, 241, 241)" "$out/slowdown.svg")" -gt 1 ]
check pareto_is_drawn drawn pareto
check addresses_are_drawn drawn addresses-three
check their_caption_has_the_run grep -q '^addresses-three: .* Policy torch:a=1,b=2; x/three.txt: 10 events, frees ordered, host none, sim h100, 78.66 GiB. From the first event to event 9,' "$out/captions.txt"
mkdir -p "$TEST_TMP/bare" && cp "$data/placements-three.csv" "$TEST_TMP/bare/"
plots/render.sh "$TEST_TMP/bare" "$TEST_TMP/bare" svg >"$TEST_TMP/bare/said" 2>&1
check without_it_the_caption_says_so grep -q 'Policy and device are those of the run that wrote' "$TEST_TMP/bare/captions.txt"
check and_render_says_what_is_missing grep -q '^figures: no placements-three.txt, what' "$TEST_TMP/bare/said"
map=$(awk -v wide=300 -v high=300 -f plots/rectangles.awk "$data"/placements-three.csv "$data"/placements-three.csv | paste -sd ' ')
check segments_are_stacked_and_share_a_place [ "${map%%   *}" = "0,10,0,2097152 1,5,2097152,4194304 6,9,2097152,4194304" ]
blocks="1,4,2097152,3145728,2 3,5,3145728,4194304,2 6,9,2097152,4194304,2 0,10,0,2097152,2"
check blocks_stand_from_request_to_free [ "${map##*   }" = "$blocks" ]
# a column of a paper is 8.5 cm wide: 241 points
check pdf_is_as_wide_as_a_column grep -aqE 'MediaBox \[ *0 0 24[01](\.[0-9]+)? ' "$out/pareto.pdf"
check fragmentation_is_drawn drawn fragmentation
check a_missing_file_is_said grep -q 'no latency.csv, so no figure latency' <<<"$output"
check a_quoted_name_is_in_the_picture grep -q ">torch:conf='a,b'<" "$out/slowdown.svg"
# greedy holds 64 GiB beside 700 MiB live: on the upper edge, with the number
check one_run_is_no_draw eval '! grep -q draws "$out/memory-saw_tooth.svg"'
check what_is_too_high_is_said grep -q '65536 MiB, 93.8 × live: above the scale' "$out/memory-saw_tooth.svg"
# once beside the rows of its panel, once in the key
crosses() { grep -c '<text>did not finish</text>' "$1"; }
check a_cross_is_in_the_key [ "$(crosses "$out/slowdown.svg")" = 2 ]
# growth and torch hold the same at every event: one panel with both names
check equal_curves_are_drawn_once grep -q "growth, torch:conf='a,b'<" "$out/memory-saw_tooth.svg"

# A policy that did not finish has no peak: the moment in its title, a cross at the end of its curve.
mkdir -p "$TEST_TMP/failed"
{
    echo 'policy,event,time_s,live_bytes,reserved_bytes,physical_bytes,passed'
    for row in 0,0,100,200,200 5,1.5,150,300,300; do echo "growth,$row,false"; echo "\"torch:conf='a,b'\",$row,true"; done
} >"$TEST_TMP/failed/series-short.csv"
{ cat "$data/fragmentation.csv"; echo gpt2_train,direct,,,,; } >"$TEST_TMP/failed/fragmentation.csv"
plots/render.sh "$TEST_TMP/failed" "$TEST_TMP/failed" svg svg-column >/dev/null 2>&1
check a_run_without_a_figure_has_a_cross [ "$(grep -ch '>did not finish<' "$TEST_TMP"/failed/fragmentation*.svg | paste -sd ' ')" = '1 1' ]
check its_crosses_are_in_all_panels [ "$(grep -ch "<use xlink:href='#gpPt1'" "$TEST_TMP"/failed/fragmentation*.svg | paste -sd ' ')" = '5 5' ]
check a_cross_is_in_the_caption grep -q 'A cross at the upper edge: the program did not finish' "$TEST_TMP/failed/captions.txt"
check equal_curves_of_which_one_failed_are_two eval 'grep -q ">torch:conf=.a,b.<" "$TEST_TMP/failed/memory-short.svg" && grep -q ">growth<" "$TEST_TMP/failed/memory-short.svg"'
check a_failed_run_has_its_moment [ "$(grep -chE '>did not finish: first failed<|>request at 1.5 s<' "$TEST_TMP"/failed/memory-short*.svg | paste -sd ' ')" = '2 2' ]
check a_failed_run_has_no_peak [ "$(grep -ch '× live<' "$TEST_TMP"/failed/memory-short*.svg | paste -sd ' ')" = '1 1' ]
check a_failed_run_is_in_the_key [ "$(grep -ch '>did not finish: first failed request<' "$TEST_TMP"/failed/memory-short*.svg | paste -sd ' ')" = '1 1' ]
check a_failed_run_is_in_the_caption grep -q 'Did not finish: growth. Their curves end' "$TEST_TMP/failed/captions.txt"
check who_finished_is_not_named eval '! grep -q "Did not finish" "$out/captions.txt" && ! grep -q "did not finish" "$out"/{memory-saw_tooth,fragmentation}.svg'

echo 'workload,policy,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,alloc_p999_ns,alloc_max_ns,free_p50_ns,free_p99_ns' >"$data/latency.csv"
output=$(FIGURES=latency plots/render.sh "$data" "$out" 2>&1)
check no_rows_are_said grep -q 'latency.csv has no rows' <<<"$output"
echo 'gpt2_train,growth,10,20,30,400,50000,8,20' >>"$data/latency.csv"
FIGURES=latency plots/render.sh "$data" "$out" >/dev/null 2>&1
check latency_is_drawn drawn latency
mkdir -p "$TEST_TMP/zero"
sed '$s/growth,10,20/growth,0,0/' "$data/latency.csv" >"$TEST_TMP/zero/latency.csv"
sed '$s/,direct,.*/,direct,1.05,0/' "$data/pareto.csv" >"$TEST_TMP/zero/pareto.csv"
printf '%s\n' workload,policy,internal_mean,external_mean,unusable_mean,overhead a,growth,0,0.5,0.5,1.1 a,null,0,,,0 >"$TEST_TMP/zero/fragmentation.csv"
plots/render.sh "$TEST_TMP/zero" "$TEST_TMP/zero" svg >/dev/null 2>&1
marks() { # of the latency figure: as many as there are percentiles, and one in the key
    grep -c "<use xlink:href='#gpPt" "$1"
}
check times_of_0_are_drawn eval '[ "$(marks "$TEST_TMP/zero/latency.svg")" = "$(marks "$out/latency.svg")" ] && grep -q ">≤1 ns<" "$TEST_TMP/zero/latency.svg"'
check and_the_caption_says_where grep -q '^latency: .*; a call that takes no longer lies at the lower edge\.' "$TEST_TMP/zero/captions.txt"
check a_share_of_0_lies_on_the_edge eval 'grep -q ">≤0.1 %<" "$TEST_TMP/zero/pareto.svg" && grep -q "^pareto: .* and none, lie on it" "$TEST_TMP/zero/captions.txt"'
check what_has_no_overhead_is_named grep -q '^fragmentation: .*Not in the panel of overhead, .*: null\.' "$TEST_TMP/zero/captions.txt"
check captions_of_the_others_stay [ "$(sed -n 's/: .*//p' "$out/captions.txt" | paste -sd ' ')" = "memory-saw_tooth addresses-three slowdown fragmentation pareto latency" ]
before=$(cat "$out/captions.txt")
FIGURES=slowdown plots/render.sh "$data" "$out" svg >/dev/null 2>&1
check captions_keep_their_places [ "$(cat "$out/captions.txt")" = "$before" ]
table=$(awk -f plots/clean.awk "$data/slowdown.csv" | awk -f plots/capacity_table.awk)
check table_has_smallest_capacity_and_slowdown grep -qF '| `growth` | 1.10 | 1.010 to 1.010 |' <<<"$table"
check table_has_specs_to_paste grep -qF "| \`torch:conf='a,b'\` | 1.00 |" <<<"$table"
check table_leaves_out_what_has_no_time eval '! grep -q never_passes' <<<"$table"
check its_help_has_no_line_of_few_words [ "$(plots/render.sh --help | awk 'length > 80 || (NF < 4 && !/Usage/) { n++ } END { print NR ":" n + 0 }')" = 11:0 ]
output=$(plots/render.sh "$TEST_TMP/nowhere" "$out" 2>&1)
status=$?
check a_missing_folder_is_an_error [ $status = 2 ]
check and_what_writes_it grep -q 'nowhere is not there: `allocrig run .. --output FOLDER` writes FOLDER/data' <<<"$output"
output=$(FIGURES=slowdwon plots/render.sh "$data" "$out" 2>&1)
status=$?
check a_figure_that_is_none_is_an_error [ $status = 2 ]
check and_is_named grep -q '^figures: FIGURES=slowdwon is no figure of ' <<<"$output"
output=$(plots/render.sh "$data" "$out" jpeg 2>&1)
status=$?
check a_form_that_is_none_is_an_error [ $status = 2 ]
check and_forms_are_named grep -q '^figures: jpeg is no form: svg, png' <<<"$output"
render=$PWD/plots/render.sh
(cd "$TEST_TMP" && FIGURES=latency "$render" "$(basename "$data")" from_there svg >/dev/null 2>&1)
check paths_are_of_the_working_folder [ -s "$TEST_TMP/from_there/latency.svg" ]

# Medians: a whisker for each, from low to high, and what it is in the key; single runs have neither.
bars() { # FILE: how many whiskers: lines straight up, then one across their ends
    tr -s '\n\t ' ' ' <"$1" | grep -oE 'M([0-9.]+),[0-9.]+ L\1,[0-9.]+ M[0-9.]+,([0-9.]+) L[0-9.]+,\2 ' | wc -l
}
mkdir -p "$TEST_TMP/medians"
cat >"$TEST_TMP/medians/fragmentation.csv" <<'CSV'
workload,policy,internal_mean,external_mean,unusable_mean,overhead,runs,over,level,internal_mean_low,internal_mean_high,external_mean_low,external_mean_high,unusable_mean_low,unusable_mean_high,overhead_low,overhead_high
gpt2_train,growth,0.01,0.4,0.2,1.3,10,draws,0.978515625,0.005,0.02,0.3,0.5,0.1,0.4,1.2,1.5
gpt2_train,"torch:conf='a,b'",0.02,,,1.1,10,draws,0.978515625,0.01,0.03,,,,,1.05,1.2
never_passes,growth,,,,,,,,,,,,,,,
CSV
cat >"$TEST_TMP/medians/pareto.csv" <<'CSV'
workload,policy,overhead,driver_share,runs,over,level,overhead_low,overhead_high,driver_share_low,driver_share_high
gpt2_train,growth,2,0.001,3,repetitions,,1.5,2.5,0.00005,0.002
CSV
cat >"$TEST_TMP/medians/slowdown.csv" <<'CSV'
workload,policy,capacity_ratio,slowdown,passed,flushes,remapped_bytes,runs,over,level,slowdown_low,slowdown_high
gpt2_train,growth,1,,false,,,,,,,
gpt2_train,growth,1.1,1.5,true,0,0,10,draws,0.978515625,1.2,12
CSV
cat >"$TEST_TMP/medians/latency.csv" <<'CSV'
workload,policy,alloc_p50_ns,alloc_p90_ns,alloc_p99_ns,alloc_p999_ns,alloc_max_ns,free_p50_ns,free_p99_ns,runs,over,level,alloc_p50_ns_low,alloc_p50_ns_high,alloc_p90_ns_low,alloc_p90_ns_high,alloc_p99_ns_low,alloc_p99_ns_high,alloc_p999_ns_low,alloc_p999_ns_high,alloc_max_ns_low,alloc_max_ns_high,free_p50_ns_low,free_p50_ns_high,free_p99_ns_low,free_p99_ns_high
gpt2_train,growth,10,20,30,400,50000,8,20,6,repetitions,0.96875,9,11,19,22,20,40,300,500,1000,900000,7,9,10,30
CSV
output=$(plots/render.sh "$TEST_TMP/medians" "$TEST_TMP/whiskers" svg svg-column 2>&1)
status=$?
check a_caption_tells_of_medians grep -q 'Marks are medians of 10 replicates, whiskers the interval' "$TEST_TMP/whiskers/captions.txt"
check medians_are_drawn [ "$status $output" = "0 figures: no series-*.csv, so no figure memory-*" ]
for name in fragmentation slowdown; do
    check "the_key_of_${name}_says_so" grep -q '>median of 10 replicates, 95 % interval: not drawn if shorter than its mark<' "$TEST_TMP/whiskers/$name.svg"
    check "a_column_of_${name}_says_so_in_two_lines" grep -q '>not drawn if shorter than its mark<' "$TEST_TMP/whiskers/$name-column.svg"
done
check a_cross_is_of_any_draw grep -q '<text>at least one replicate did not finish</text>' "$TEST_TMP/whiskers/slowdown.svg" "$TEST_TMP/whiskers/slowdown-column.svg"
check repetitions_are_said grep -q '>median of 6 repetitions, 95 % interval: not' "$TEST_TMP/whiskers/latency.svg"
check a_range_is_said grep -q '>median of 3 repetitions, least to most<' "$TEST_TMP/whiskers/pareto.svg"
check texts_say_replicates eval '! grep -hE ">[^<]*draws" "$TEST_TMP"/whiskers/*.svg'
check single_runs_say_nothing eval '! grep -q "median of" "$out"/*.svg'
sed -e '1s/$/,draws/' -e '2,$s/$/,7/' "$data/series-saw_tooth.csv" >"$TEST_TMP/medians/series-saw_tooth-seed-1.csv"
FIGURES='memory-*' plots/render.sh "$TEST_TMP/medians" "$TEST_TMP/whiskers" svg svg-column >/dev/null 2>&1
check the_title_says_which_draw grep -q '>memory of saw_tooth-seed-1 over time: the first of 7 replicates<' "$TEST_TMP/whiskers/memory-saw_tooth-seed-1.svg"
check in_a_column_the_key_does grep -q '>the first of 7 replicates<' "$TEST_TMP/whiskers/memory-saw_tooth-seed-1-column.svg"
check and_the_caption grep -q '^memory-saw_tooth-seed-1: .* share a panel\. Shown is the first of 7 replicates\.' "$TEST_TMP/whiskers/captions.txt"
check of_single_runs_it_does_not eval '! grep -q "replicates\." "$out/captions.txt"'
# in the order of the panels: 2 + 1 + 1 + 2; across and up; where it finished; the percentiles whose
# intervals are longer than a mark
for bars in fragmentation:6 pareto:1 slowdown:1 latency:3; do
    check "${bars%:*}_has_whiskers" [ "$(bars "$TEST_TMP/whiskers/${bars%:*}.svg")" = "${bars#*:}" ]
    check "${bars%:*}_of_single_runs_has_none" [ "$(bars "$out/${bars%:*}.svg")" = 0 ]
done
# A name that is wider than the picture has several lines, and none of them is cut off.
mkdir -p "$TEST_TMP/long/data"
long='"torch:expandable_segments=true,max_split_size_mb=128,roundup_power2_divisions=4"'
for name in pareto slowdown series-saw_tooth; do sed "s/^growth,/$long,/; s/,growth,/,$long,/" "$data/$name.csv" >"$TEST_TMP/long/data/$name.csv"; done
printf '%s\n' '' 'allocrig 0.1.0, commit 123; a card' '**a: frees ordered, host none**' \
    '**a, 10 replicates: compared with torch, frees ordered, host none**' >"$TEST_TMP/long/summary.md"
plots/render.sh "$TEST_TMP/long/data" "$TEST_TMP/long/figures" svg svg-column >/dev/null
for name in pareto slowdown; do
    check "a_long_name_is_whole_in_$name" grep -qF ">${long//\"/}<" "$TEST_TMP/long/figures/$name.svg"
    check "a_long_name_has_lines_in_a_column_of_$name" [ "$(grep -cE '>(torch:expandable_segments=true,|max_split_size_mb=128,roundup_power2_divisions=4)<' "$TEST_TMP/long/figures/$name-column.svg")" = 2 ]
done
# A workload loses the folders and the ending of its file, and a single one is named once, below the last panel.
mkdir -p "$TEST_TMP/learned"
long='"learned:trace=some/where/lora_recompute.default.csv.gz,steps=100,warmup=3,seed=12"'
for name in fragmentation pareto slowdown latency; do sed "s|^gpt2_train,|$long,|; /never_passes/d" "$data/$name.csv" >"$TEST_TMP/learned/$name.csv"; done
plots/render.sh "$TEST_TMP/learned" "$TEST_TMP/learned" svg svg-column >/dev/null
for name in fragmentation pareto slowdown latency; do
    check "a_long_workload_is_whole_in_$name" [ "$(grep -cE '>learned:trace=lora_recompute,steps=100,warmup=3,seed=12<' "$TEST_TMP/learned/$name.svg")" = 1 ]
    check "a_long_workload_has_lines_in_a_column_of_$name" [ "$(grep -cE '>(learned:trace=lora_recompute,[^<]*,|[^<]*seed=12)<' "$TEST_TMP/learned/$name-column.svg")" = 2 ]
done
FIGURES=fragmentation PANELS='external overhead' plots/render.sh "$TEST_TMP/learned" "$TEST_TMP/learned/two" svg >/dev/null
check panels_are_drawn_alone [ "$(grep -cE '>(internal|external|unusable|overhead)[^<]*<' "$TEST_TMP/learned/two/fragmentation.svg")" = 2 ]
check a_caption_has_the_panels eval 'grep -q "External: .* Overhead: " "$TEST_TMP/learned/two/captions.txt" && ! grep -qE "Internal|Unusable" "$TEST_TMP/learned/two/captions.txt"'
output=$(PANELS=outside plots/render.sh "$TEST_TMP/learned" "$TEST_TMP/learned/two" svg 2>&1)
check an_unknown_panel_is_refused [ "$? $output" = "2 figures: PANELS=outside is no panel: internal, external, unusable, overhead" ]
output=$(PANELS='*' plots/render.sh "$TEST_TMP/learned" "$TEST_TMP/learned/two" svg 2>&1)
check a_panel_is_no_pattern [ "$? $output" = "2 figures: PANELS=* is no panel: internal, external, unusable, overhead" ]
output=$(PANELS=' ' plots/render.sh "$TEST_TMP/learned" "$TEST_TMP/learned/two" svg 2>&1)
check no_panel_is_refused [ "$? $output" = "2 figures: PANELS names no panel: internal, external, unusable, overhead" ]
check a_long_title_has_lines grep -q '>max_split_size_mb=128,<' "$TEST_TMP/long/figures/memory-saw_tooth-column.svg"
check each_figure_has_a_caption [ "$(grep -cE '^(memory-saw_tooth|slowdown|pareto): ' "$TEST_TMP/long/figures/captions.txt")" = 3 ]
check captions_say_what_they_are_of grep -qx 'All: allocrig 0.1.0, commit 123. a: frees ordered, host none.' "$TEST_TMP/long/figures/captions.txt"
# Of several devices figures show the first, and the run and the captions say so.
"$ALLOCRIG" run -p growth -p torch -w gradient_tape:width=64 -d sim:capacity=1GiB -d sim:capacity=2GiB --output "$TEST_TMP/two" \
    >/dev/null 2>"$TEST_TMP/two.err"
check figures_show_the_first_device [ "$(wc -l <"$TEST_TMP/two/data/fragmentation.csv")" = 3 ]
check and_it_is_said grep -q 'of several tables of a workload (devices, frees) they show' "$TEST_TMP/two.err" "$TEST_TMP/two/summary.md"
plots/render.sh "$TEST_TMP/two/data" "$TEST_TMP/two/figures" svg >/dev/null 2>&1
check captions_have_the_first_device eval 'grep -q "1.000 GiB" "$TEST_TMP/two/figures/captions.txt" && ! grep -q "2.000 GiB" "$TEST_TMP/two/figures/captions.txt"'
# Two files of one name are two workloads.
mkdir "$TEST_TMP/x" "$TEST_TMP/y"
"$ALLOCRIG" gen gradient_tape:width=64 -o - | grep -v '^# name' >"$TEST_TMP/x/t.txt"
"$ALLOCRIG" gen gradient_tape:width=32 -o - | grep -v '^# name' >"$TEST_TMP/y/t.txt"
printf '%s\n' '[policies]' growth torch '[workloads]' "$TEST_TMP/x/t.txt" "$TEST_TMP/y/t.txt" '[slowdown]' 'at = 2' >"$TEST_TMP/same.ini"
"$ALLOCRIG" run "$TEST_TMP/same.ini" -d sim --output "$TEST_TMP/same" >/dev/null 2>&1
for name in fragmentation slowdown; do
    check "files_of_one_name_have_their_specs_in_$name" [ "$(sed 1d "$TEST_TMP/same/data/$name.csv" | cut -d, -f1-2 | paste -sd ' ')" = \
        "$TEST_TMP/x/t.txt,growth $TEST_TMP/x/t.txt,torch $TEST_TMP/y/t.txt,growth $TEST_TMP/y/t.txt,torch" ]
done
plots/render.sh "$TEST_TMP/same/data" "$TEST_TMP/same/figures" svg >/dev/null 2>&1
check captions_have_both eval 'grep -q "x/t.txt: [0-9]" "$TEST_TMP/same/figures/captions.txt" && grep -q "y/t.txt: [0-9]" "$TEST_TMP/same/figures/captions.txt"'
# Of two ways to free too.
"$ALLOCRIG" run -p growth -w workloads/data/side_streams.default.csv.gz -d sim --output "$TEST_TMP/ways" >/dev/null 2>"$TEST_TMP/two.err"
check figures_show_the_first_way_to_free [ "$(wc -l <"$TEST_TMP/ways/data/fragmentation.csv")" = 2 ]
check that_is_said_too grep -q 'of several tables of a workload' "$TEST_TMP/two.err" "$TEST_TMP/ways/summary.md"
plots/render.sh "$TEST_TMP/ways/data" "$TEST_TMP/ways/figures" svg >/dev/null 2>&1
check captions_have_the_first_way eval 'grep -q "frees at-once" "$TEST_TMP/ways/figures/captions.txt" && ! grep -q "frees recorded" "$TEST_TMP/ways/figures/captions.txt"'
output=$("$ALLOCRIG" run -p growth -w gradient_tape:width=64 -d sim:capacity=1GiB,2GiB 2>&1)
check a_second_capacity_is_explained grep -q '"2GiB" has no key: write capacity=2GiB; for several capacities give -d once for each' <<<"$output"
# A folder without data is no success.
output=$(plots/render.sh "$TEST_TMP" "$TEST_TMP/none" 2>&1)
check no_data_is_an_error [ $? = 2 ]
mkdir -p "$TEST_TMP/run/data"
output=$(plots/render.sh "$TEST_TMP/run" "$TEST_TMP/none" 2>&1)
check and_the_folder_is_guessed grep -q 'run has no CSV files; did you mean .*run/data?' <<<"$output"

# The committed ones, in a copy of what is drawn and what draws, with a small suite.
tree=$TEST_TMP/tree
mkdir -p "$tree/workloads/suites" "$tree/results"
cp -r plots "$tree/plots"
rm "$tree"/plots/figures/*
cp results/history.jsonl "$tree/results/"
printf '%s\n' '[suite]' 'name = small' 'time = yes' '[policies]' growth torch '[workloads]' gradient_tape:width=256 '[devices]' \
    'sim' '[slowdown]' 'at = 1 2' >"$tree/workloads/suites/default.ini"
echo 'cp '"$data"'/placements-three.csv "$1/placements-three.csv"' >"$tree/plots/data.sh"
printf '%s\n' before '<!-- capacities: begin -->' old '<!-- capacities: end -->' after >"$tree/README.md"
for name in slowdown.svg pareto.svg addresses-three.png history.svg; do echo old >"$tree/plots/figures/$name"; done
committed() {
    output=$(ALLOCRIG=$(realpath "$ALLOCRIG") "$tree/plots/committed.sh" "$TEST_TMP/committed" 2>&1)
    status=$?
}
committed
check committed_are_redrawn [ "$status" = 0 ]
check all_of_them_are [ "$(grep -lx old "$tree"/plots/figures/* | wc -l)" = 0 ]
check each_in_its_form [ "$(head -c 4 "$tree/plots/figures/addresses-three.png" | tail -c 3)" = PNG ]
check what_changed_is_said grep -q 'plots/figures/pareto.svg' <<<"$output"
check the_table_is_in_its_place [ "$(sed -n '1p;3p;$p' "$tree/README.md" | cut -c 1-8 | paste -sd ' ')" = 'before | policy after' ]
committed
check nothing_changes_twice grep -q '  none' <<<"$output"
echo old >"$tree/plots/figures/slowdown.svg"
echo old >"$tree/plots/figures/mine.svg"
committed
check what_nothing_draws_is_an_error [ "$status" = 1 ]
check what_nothing_draws_is_said grep -q 'nothing draws plots/figures/mine.svg' <<<"$output"
check nothing_is_replaced_then [ "$(cat "$tree/plots/figures/slowdown.svg")" = old ]
