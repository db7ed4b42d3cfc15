#!/bin/bash
# `run`: its table, its files, that they are the same each time, and its exit status.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
tape=workloads/data/tape_small.default.csv.gz
streams=workloads/data/side_streams.default.csv.gz

# -- the table
run run -p all -w order_flip -d sim:profile=bump
check table_ends_well [ "$status" = 0 ]
check table_ranks_first_fit_first grep -qE '^ *1 +first-fit +128\.0 +128\.0 +128\.0 +1\.000' "$out"
check table_has_growth grep -qE '^ *[0-9]+ +growth +128\.0 +256\.0 +256\.0 +2\.000' "$out"
check table_does_not_rank_null grep -qE '^ *- +null ' "$out"
check table_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
run run -d sim -p growth -p first-fit -w "$tape"
check recorded_table_is_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
run run -d sim -p growth -p first-fit -w order_flip --wide
check wide_has_all_columns grep -qE '^# +policy +live +granted +reserved +physical +overhead +ext.frag +driver +driver +slowdown$' "$out"
check one_policy_a_row [ "$(grep -cE '^[0-9] +(growth|first-fit) ' "$out")" = 2 ]

# -- what a program waits for its first matrix products, where the profile says it
{ cat tests/support/card.profile && printf 'cost: product_first 1 100000000\ncost: product_new 1 7000000\n'; } >"$tmp/products.profile"
first_step() {
    "$ALLOCRIG" run -p growth -w gradient_tape:steps=3 -d "sim:profile=$1" --json - 2>"$err" |
        sed -n 's/^ *"first_step_ns": \([0-9]*\).*/\1/p'
}
without=$(first_step ./tests/support/card.profile) with=$(first_step "$tmp/products.profile")
# Two orders of lengths. The host waits while the device goes on: a little less shows.
check first_products_take_their_time [ $((with - without)) -gt 105000000 -a $((with - without)) -le 107000000 ]
slowdown_of() { "$ALLOCRIG" run -p growth -w gradient_tape:steps=3 -d "sim:profile=$1" --json - | sed -n 's/^ *"slowdown": \([0-9.]*\).*/\1/p'; }
check the_baseline_waits_for_them_too awk -v s="$(slowdown_of "$tmp/products.profile")" 'BEGIN { exit !(s >= 1 && s < 1.05) }'
printf '# allocrig-trace 1\na,0,4096\nk,0,10,op=matmul,out=0,in=0+0,type=f99\n' >"$tmp/bad_work.trace"
refuses bad_work_is_told 2 'event 1: type=f99 is not known; there are' run -p growth -w "$tmp/bad_work.trace" -d "sim:profile=$tmp/products.profile"

# -- what the program does itself takes the host's time, where the profile says it
{ cat tests/support/card.profile && printf 'cost: request 1 1000\n'; } >"$tmp/program.profile"
figure() { sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$2"; }
cp tests/support/card.profile "$tmp/card.profile"
for which in card program; do
    "$ALLOCRIG" run -p growth -w random:seed=1 -d "sim:profile=$tmp/$which.profile" --json "$tmp/$which.json" >"$out" 2>"$err"
done
check requests_take_their_time [ $(($(figure device_time_ns "$tmp/program.json") - $(figure device_time_ns "$tmp/card.json"))) = \
    $((1000 * ($(figure allocs "$tmp/card.json") + $(figure frees "$tmp/card.json")))) ]
check and_change_nothing_else [ "$(figure peak_reserved_bytes "$tmp/program.json") $(figure driver_calls "$tmp/program.json")" = \
    "$(figure peak_reserved_bytes "$tmp/card.json") $(figure driver_calls "$tmp/card.json")" ]

# -- kernels take what their works take, where the profile says it, and so does the baseline
{ cat tests/support/card.profile && printf 'work: %s\n' 'set 1000 3000000' 'elementwise 1000 3000000' 'elementwise 1000000000 5000000'; } >"$tmp/works.profile"
printf '# allocrig-trace 1\na,0,4096\na,1,4096\nk,0,10,op=set,out=0\nk,0,20,op=elementwise,out=0,in=1\nk,0,5000000,op=copy,out=0,in=1\n' >"$tmp/works.trace"
of_works() { "$ALLOCRIG" run -p growth -w "$tmp/works.trace" -d "sim:profile=$1" --json - 2>"$err" | sed -n "s/^ *\"$2\": \([0-9.]*\).*/\1/p"; }
without=$(of_works ./tests/support/card.profile device_time_ns) with=$(of_works "$tmp/works.profile" device_time_ns)
check works_take_their_time [ $((with - without)) -gt 6000000 -a $((with - without)) -lt 7000000 ]
check the_baseline_takes_it_too awk -v s="$(of_works "$tmp/works.profile" slowdown)" 'BEGIN { exit !(s >= 1 && s < 1.2) }'
printf '# allocrig-trace 1\na,0,4096\nf,0\nk,0,10,op=set,out=0\n' >"$tmp/dead_work.trace"
refuses work_on_what_is_gone 2 'event 2: its operand is block 0, which is not live' run -p growth -w "$tmp/dead_work.trace" -d "sim:profile=$tmp/works.profile"
{ cat tests/support/card.profile && echo 'work: set 64 0'; } >"$tmp/no_time.profile"
refuses a_work_of_no_time 2 'no_time.profile, line [0-9]+: a work is KIND SIZE NANOSECONDS, which are at least 1' run -p growth -w order_flip -d "sim:profile=$tmp/no_time.profile"

# -- a run that does not finish
run run -p first-fit -p growth -w order_flip -d sim:capacity=300MiB
check dnf_is_no_failure [ "$status" = 0 ]
check dnf_names_event_and_cause grep -qE '^- +growth +DNF @ [0-9]+: (capacity|fragmentation), a request of' "$out"
check dnf_is_below_the_ranked awk '/^1 +first-fit/ { seen = 1 } /DNF/ { exit !seen }' "$out"
printf '%s\n' '# allocrig-trace 1' a,0,99000000000 f,0 a,1,1000 k,0,4611686018427387000 t,10 s a,2,1000000000 f,2 f,1 >"$tmp/lost.csv"
run run -p direct -w "$tmp/lost.csv" -d sim:capacity=8GiB
check dnf_names_a_driver_lost_later grep -qzE 'DNF @ 0: capacity, a request of 92[^;]*;\s+then the driver failed:\s+the simulated' "$out"
"$ALLOCRIG" run -p growth -w order_flip -d sim:capacity=300MiB --require-pass --json "$tmp/dnf.json" >"$out" 2>"$err"
check require_pass_is_exit_1 [ $? = 1 ]
check require_pass_says_which grep -qE '^allocrig: 1 of 1 runs did not finish, first order_flip with policy growth at event' "$err"
check require_pass_writes_results grep -q '"passed": false' "$tmp/dnf.json"
check require_pass_passes quietly "$ALLOCRIG" run -p first-fit -w order_flip --require-pass --json "$tmp/a.json" -d sim
run run -p growth -w order_flip -d sim:capacity=300MiB --on-fail stop --csv -
stopped=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "events") c = i } NR == 2 { print $c }' "$out")
check on_fail_stop_ends_there [ "$stopped" -lt 24 ]

# -- files
"$ALLOCRIG" run -d sim -p growth -p best-fit -w order_flip -w "$tape" --json "$tmp/1.json" --csv "$tmp/1.csv" --jobs 1 >"$tmp/1.txt"
"$ALLOCRIG" run -d sim -p growth -p best-fit -w order_flip -w "$tape" --json "$tmp/2.json" --csv "$tmp/2.csv" --jobs 2 >"$tmp/2.txt"
without_context "$tmp/1.json" >"$tmp/1.bare"
without_context "$tmp/2.json" >"$tmp/2.bare"
check json_is_the_same_with_any_jobs cmp "$tmp/1.bare" "$tmp/2.bare"
check csv_is_the_same_with_any_jobs cmp "$tmp/1.csv" "$tmp/2.csv"
check context_was_taken_away [ "$(grep -c argv "$tmp/1.json")$(grep -c argv "$tmp/1.bare")" = 10 ]
check table_is_the_same cmp <(grep -v ^wrote "$tmp/1.txt") <(grep -v ^wrote "$tmp/2.txt")
check table_names_the_files grep -qx "wrote $tmp/1.json" "$tmp/1.txt"
check json_names_its_schema grep -q '"schema": "allocrig.result/1"' "$tmp/1.json"
check csv_has_a_row_a_run [ "$(wc -l <"$tmp/1.csv")" = 5 ]
check csv_rows_are_as_long_as_the_header [ "$(awk -F, '{ print NF }' "$tmp/1.csv" | sort -u | wc -l)" = 1 ]
metrics=$("$ALLOCRIG" list metrics --names | wc -l)
optional=$("$ALLOCRIG" list metrics --names | sed -n '/^peak_pinned_live_bytes$/,$p' | wc -l)
check csv_has_every_metric [ "$(head -n 1 "$tmp/1.csv" | tr , '\n' | wc -l)" = $((metrics - optional + 16)) ]

# Pinned host memory: figures only where there is some.
printf '%s\n' '# allocrig-trace 1' a,0,1000 a,1,3000000,space=pinned f,1 a,2,4000000,space=pinned >"$tmp/pinned.trace"
run run -d sim -p torch -p greedy -w "$tmp/pinned.trace" --csv "$tmp/pinned.csv" --json "$tmp/pinned.json"
check pinned_has_its_metrics [ "$(head -n 1 "$tmp/pinned.csv" | tr , '\n' | wc -l)" = $((metrics + 16)) ]
check pinned_fits_80_columns [ "$(awk '!/^wrote / && length > 80' "$out" | wc -l)" = 0 ]
check pinned_has_a_column grep -q 'physical  *pinned  *overhead' "$out"
check pinned_is_one_block [ "$(grep -c '"peak_pinned_reserved_bytes": 4194304' "$tmp/pinned.json")" = 2 ]
run run -d sim -p torch -w "$tmp/pinned.trace" --pinned none
check pinned_none says '^1  torch  ' # without a column
check pinned_none_has_no_column eval '! grep -q "physical *pinned" "$out"'
run run -d sim -p torch -w "$tmp/pinned.trace" --pinned torch-pined
check pinned_unknown_policy [ "$status" = 2 ]
run run -d sim -p 'torch:conf=pinned_reserve_segment_size_mb:16' -w "$tmp/pinned.trace" --csv -
check pinned_settings_of_the_policy grep -q ',16777216,' "$out"
run run -d sim -p growth -w order_flip --json -
check json_on_standard_output_stands_alone [ "$(head -c 1 "$out")$(grep -c '^1 ' "$out")" = '{0' ]

"$ALLOCRIG" run -d sim -p growth -w "$tape" --placements "$tmp/p.csv" --series "$tmp/s.csv" --csv "$tmp/r.csv" >/dev/null
check placements_header [ "$(head -n 1 "$tmp/p.csv")" = event,op,id,requested,granted,segment,offset,granted_total,reserved ]
column() { # FILE NAME: of the first row
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }' "$1"
}
check placements_have_each_request [ "$(awk -F, '$2 == "a" || $2 == "p"' "$tmp/p.csv" | wc -l)" = "$(column "$tmp/r.csv" allocs)" ]
check placements_have_each_free [ "$(awk -F, '$2 == "f"' "$tmp/p.csv" | wc -l)" = "$(column "$tmp/r.csv" frees)" ]
printf '# allocrig-trace 1\na,0,4096\na,1,4096\nf,1\na,2,4096,space=pinned\nf,2\nf,0\n' >"$tmp/pinned.trace"
"$ALLOCRIG" run -d sim -p torch -w "$tmp/pinned.trace" --placements "$tmp/pinned.csv" >/dev/null
check pinned_blocks_are_in_no_segment [ "$(grep -cE '^[34],[af],2,4096,4096,-1,-1,' "$tmp/pinned.csv")" = 2 ]
check series_has_each_event [ "$(($(wc -l <"$tmp/s.csv") - 1))" = "$(column "$tmp/r.csv" events)" ]
peak() { # COLUMN: its maximum over the series
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 && $c > m { m = $c } END { printf "%.0f\n", m }' "$tmp/s.csv"
}
for name in live granted reserved physical; do
    check "series_peaks_at_peak_$name" [ "$(peak ${name}_bytes)" = "$(column "$tmp/r.csv" peak_${name}_bytes)" ]
done
"$ALLOCRIG" run -d sim -p growth -w "$tape" --placements "$tmp/p2.csv" --series "$tmp/s2.csv" >/dev/null
check placements_are_the_same cmp "$tmp/p.csv" "$tmp/p2.csv"
check series_is_the_same cmp "$tmp/s.csv" "$tmp/s2.csv"
run run -d sim:capacity=79.11GiB -p torch -p vmm -p bfc -p gmlake -w order_flip --json "$tmp/fraction.json"
check a_capacity_as_messages_print_it [ "$status" = 0 ]
check it_is_the_whole_byte_below grep -q '"capacity_bytes": 84943715696' "$tmp/fraction.json"
refuses a_byte_has_no_parts 2 '"1000000000.5" is not a size: a byte has no parts' run -d sim:capacity=1000000000.5 -p torch -w order_flip
refuses a_recording_by_its_name_in_tables 2 'no generator "gpt2_train"; .* write its file, workloads/data/gpt2_train.default.csv.gz$' run -d sim -p growth -w gpt2_train
refuses placements_of_two_policies 2 '--placements holds one run and this is 2' run -d sim -p growth -p bfc -w order_flip --placements "$tmp/x"
refuses series_of_two_workloads 2 '--series holds one run and this is 2' run -d sim -p bfc -w order_flip -w random --series "$tmp/x"
refuses series_of_repetitions 2 '--series holds one run and this is 3' run -d sim -p bfc -w order_flip --reps 3 --series "$tmp/x"
refuses two_formats_on_one_stream 2 'two outputs would mix in standard output' run -d sim -p bfc -w order_flip --json - --csv -

# -- a name that is no text
cp "$tape" "$tmp/"$'odd\xff\033.csv.gz'
run run -p growth -w "$tmp/"$'odd\xff\033.csv.gz' --csv "$tmp/odd.csv"
check odd_name_is_text_in_csv grep -q $',odd__,.*/odd\xef\xbf\xbd' "$tmp/odd.csv"
check odd_name_is_utf8_in_csv quietly iconv -f UTF-8 -t UTF-8 "$tmp/odd.csv"
check odd_name_is_text_in_tables grep -q '^odd__: ' "$out"

# -- the allocator's own statistics: of a replay with recorded frees they are the recorded ones
"$ALLOCRIG" run -d sim -p torch -w "$tape" --frees recorded --stats "$tmp/stats.json" >/dev/null
jq_like() { # FILE KEY: of a flat object on one or more lines
    tr -d ' \n' <"$1" | grep -oE "\"$2\":[0-9]+" | head -n 1 | cut -d: -f2
}
for key in allocation.all.allocated requested_bytes.all.peak allocated_bytes.all.peak \
    active_bytes.small_pool.peak inactive_split_bytes.large_pool.current num_alloc_retries num_ooms; do
    wanted=$(jq_like "${tape%.csv.gz}.json" "$key")
    check "stats_has_$key" [ -n "$wanted" ]
    check "stats_are_as_recorded_$key" [ "$(jq_like "$tmp/stats.json" "$key")" = "$wanted" ]
done
check stats_holds_torchs_keys [ "$(grep -c '": [0-9]' "$tmp/stats.json")" = 121 ]
run run -d sim -p checked+growth -w order_flip --stats -
check stats_stand_alone [ "$(head -c 1 "$out")$(grep -c '^1 ' "$out")" = '{0' ]
check stats_of_others_are_the_contracts grep -qE '"segments_made": [1-9]' "$out"
refuses stats_of_two_policies 2 '--stats holds one run and this is 2' run -d sim -p growth -p bfc -w order_flip --stats "$tmp/x"
run run -d sim -p growth -w order_flip --stats "$tmp/t.json" --time --output "$tmp/stats"
check stats_beside_an_output_folder [ -s "$tmp/t.json" ]
check stats_leave_the_figures [ -s "$tmp/stats/data/series-order_flip.csv" ]

# -- frees, repetitions, replicates
run run -d sim -p growth -w "$streams"
check two_ways_to_free grep -qE 'frees at-once' "$out"
check two_ways_to_free_both grep -qE 'frees recorded' "$out"
run run -d sim -p growth -w "$streams" --frees recorded
check one_way_if_asked_for [ "$(grep -c 'side_streams: ' "$out")" = 1 ]
refuses placements_of_two_ways 2 'replayed in two ways; add --frees' run -d sim -p growth -w "$streams" --placements "$tmp/x"
run run -d sim -p growth -w order_flip --reps 3 --csv -
check repetitions_are_rows [ "$(cut -d, -f13 "$out" | paste -sd ' ')" = 'repetition 0 1 2' ]
run run -d sim -p growth -w order_flip --reps 3
check table_shows_one_repetition [ "$(grep -cE '^[0-9]+ +growth ' "$out")" = 1 ]
check repetitions_are_one_row_of_medians [ "$(grep -E '^- +growth ' "$out" | awk '{ print $3 }')" = 3 ]
run run -p growth -p bfc -w random:events=2000 -d sim:addresses=random --replicates 3
check replicates_have_a_spread grep -qE '^[-12=]+ +growth +3 of 3 +median ' "$out"
# the seed of a generator changes, so the requests differ;
# ranges that overlap share a place, and the first replicate alone states none
run run -d sim -p first-fit -p best-fit -p growth -w random:events=2000,seed=7 --replicates 5
check overlap_shares_a_place grep -qE '^1= +best-fit +5 of 5 +median ' "$out"
check no_overlap_has_a_place grep -qE '^ *3 +growth +5 of 5 +median ' "$out"
check one_replicate_states_no_place eval '! grep -qE "^[0-9]+ +[a-z-]+ +[0-9]+\." "$out"'
check replicates_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
check replicates_are_no_single_seed grep -q '^random:events=2000,seed=7, 5 replicates: ' "$out"
# the figures' rows are medians over the replicates, one for each policy; those of growth: the third of five
run run -d sim -p first-fit -p growth -w random:events=2000 --replicates 5 --output "$tmp/drawn" --csv "$tmp/drawn.csv"
check replicates_are_one_row_of_a_figure [ "$(cut -d, -f1-2 "$tmp/drawn/data/fragmentation.csv" | tail -n +2 | paste -sd ' ')" = \
    'random:events=2000,first-fit random:events=2000,growth' ]
overhead=$(head -n 1 "$tmp/drawn.csv" | tr , '\n' | grep -nx overhead | cut -d: -f1)
check a_figure_has_the_median [ "$(awk -F, '$2 == "growth" { print $6 }' "$tmp/drawn/data/fragmentation.csv")" = \
    "$(sed 's/"[^"]*"/-/g' "$tmp/drawn.csv" | grep ',growth,\|^growth,' | cut -d, -f"$overhead" | sort -g | sed -n 3p)" ]
run run -d sim -p growth -w random:events=2000,seed=7 --replicates 5 --wide
# the least and the most granted bytes of growth are those of single runs with these seeds
check seeds_differ [ "$(awk '$2 == "growth" && $6 == "median" { getline; least = $3; getline; print least, $3 }' "$out")" = \
    "$(for seed in 7 8 9 10 11; do "$ALLOCRIG" run -d sim -p growth -w random:events=2000,seed=$seed --wide | awk '$2 == "growth" { print $4 }'; done |
        sort -n | sed -n '1p;$p' | paste -sd ' ')" ]
run run -d sim -p growth -p best-fit -w order_flip --reps 6
check repetitions_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]

# -- repetitions: places by the steady steps where a program has such; what libraries load in the first one is in whole runs alone
rows_of() { # TABLE GROUP: the rows of a group of the table of repetitions, without long names of their own lines
    awk -v group="$2: slowdown of " '/runs +(slowdown|steady)/ { on = 1 } on && index($0, group) == 1 { here = 1; next } here && /^$/ { exit } here && / host / { next } here' "$1"
}
median_of() { # CSV WORKLOAD POLICY FIGURE: of six the third
    sed 's/"[^"]*"/-/g' "$1" | awk -F, -v workload="$2" -v policy="$3" -v figure="$4" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $at["policy_spec"] == policy && $at["workload"] == workload { print $at[figure] }' | sort -g | sed -n 3p
}
run run -d "sim:profile=$tmp/products.profile" -p growth -p torch -p direct -w gradient_tape -w order_flip -w gradient_tape:steps=1 --reps 6 --csv "$tmp/six.csv" --latex "$tmp/six.tex"
check steady_steps_are_told grep -q '^gradient_tape: slowdown of steady steps, frees ' "$out"
check no_steps_are_the_whole_run grep -q '^order_flip: slowdown of the whole run, frees ' "$out"
check one_step_is_the_whole_run grep -q '^gradient_tape:steps=1: slowdown of the whole run, frees ' "$out"
check columns_of_repetitions grep -qE '^ *# +policy +runs +slowdown +low +high +first +driver +stall +longest$' "$out"
for policy in growth torch direct; do
    check "steady_is_the_figure_of_$policy" [ "$(rows_of "$out" gradient_tape | awk -v policy=$policy '$2 == policy { print $3, $4, $7 }')" = \
        "6 $(median_of "$tmp/six.csv" gradient_tape $policy steady_slowdown | awk '{ printf "%.4f\n", $1 }') $(median_of "$tmp/six.csv" gradient_tape $policy first_step_ns | awk '{ printf "%.1f\n", $1 / 1e6 }')" ]
    check "one_step_is_the_figure_of_$policy" [ "$(rows_of "$out" gradient_tape:steps=1 | awk -v policy=$policy '$2 == policy { print $4 }')" = \
        "$(median_of "$tmp/six.csv" gradient_tape:steps=1 $policy slowdown | awk '{ printf "%.4f\n", $1 }')" ]
done
check what_loads_is_not_in_it [ "$(rows_of "$out" gradient_tape | awk '$2 == "growth" { print $1, $4 }')" = '1= 1.0000' ]
check first_table_is_of_whole_runs [ "$(awk '/^gradient_tape: / { here = 1 } here && $2 == "growth" { print $NF; exit }' "$out")" = \
    "$(median_of "$tmp/six.csv" gradient_tape growth slowdown | awk '{ printf "%.3f\n", $1 }')" ]
check steady_is_defined says '^Steady: the time of the second half of the steps, divided by the same with an$'
check steady_is_narrow [ "$(awk '!/^wrote / && length > 80' "$out" | wc -l)" = 0 ]
check notes_in_latex_are_escaped [ "$(grep -v '^%' "$tmp/six.tex" | sed 's/\\[_%&#{}$]//g; s/ & / /g' | grep -c '[_%#`]')" = 0 ]
run run -d sim -p torch -p growth -w gradient_tape --reps 2 --wide
check only_steady_steps_name_their_column grep -qE '^ *# +policy +runs +steady +low +high +whole run +first +steady +driver' "$out"
run run -d sim:capacity=3300MiB -p best-fit -p growth -p direct -w gradient_tape --reps 2
check who_does_not_finish_leaves_it_steady grep -q '^gradient_tape: slowdown of steady steps' "$out"
check who_does_not_finish_is_last [ "$(rows_of "$out" gradient_tape | awk '{ print $2, $3 }' | paste -sd,)" = 'direct 2,best-fit 0,growth 0' ]
run run -d sim -p growth -w order_flip --reps 6
check whole_runs_need_no_word_of_steps eval '! grep -q "^Steady" "$out"'
refuses replicates_need_something_with_a_seed 2 'addresses=random' run -d sim -p growth -w workloads/data/tape_small.default.csv.gz --replicates 3
run run -d sim -p growth -w order_flip --time
check time_shows_latency grep -qE '^ +p50 ns +p90 ns +p99 ns +p99.9 ns' "$out"
for heading in p99 'alloc p99'; do
    check "a_column_is_found_by_$(tr ' ' _ <<<"$heading")" eval '"$ALLOCRIG" list metrics "$heading" | grep -q "^alloc_ns_p99: "'
done
check both_columns_of_a_percentile_are [ "$("$ALLOCRIG" list metrics p99 | grep -c '^[a-z_0-9]*: ')" = 2 ]
check a_short_trace_is_marked grep -q '^Throughput of order_flip: fewer than 5000 operations' "$out"
check under_a_line_of_its_own [ -z "$(grep -B1 '^Throughput of' "$out" | head -n 1)" ]
run run -d sim -p growth -w gradient_tape --time
check a_longer_trace_is_not eval '! grep -q "fewer than 5000" "$out"'
run run -d sim -p growth -w order_flip --metrics none --csv -
check no_metrics_keeps_the_physical_peak [ "$(column "$out" peak_physical_bytes)" = 268435456 ]
check no_metrics_has_no_mean [ -z "$(column "$out" external_fragmentation_mean)" ]

# -- sizes
run run -d sim -p growth:limit=64MiB -w order_flip
check sizes_take_units grep -q 'DNF @' "$out"
run run -d sim -p growth:limit=64M -w order_flip
check short_units_mean_the_same grep -q 'DNF @' "$out"
refuses bad_size 2 'limit.*"64Mx" is not a size' run -d sim -p growth:limit=64Mx -w order_flip

# -- pending blocks, under the oracle; memory is released right after
for policy in torch vmm gmlake; do
    for frees in ordered recorded; do
        run run -d sim -p checked+$policy -w workloads/data/side_streams.default.csv.gz --frees $frees
        check "checked_${policy}_$frees" [ "$status" = 0 ]
    done
done
printf '# allocrig-trace 1\na,0,5608466\nr,0,1\nc\n' >"$tmp/trim.txt"
run run -d sim -p all -p torch:expandable_segments=true -w "$tmp/trim.txt"
check trim_after_a_let_go_elsewhere [ "$status" = 0 ]
# A kernel of another stream still runs when the program ends: what it uses is waited for, and then comes back.
printf '# allocrig-trace 1\na,0,50331648\na,1,1024\nu,0,2\nu,1,3\nk,2,300000\nk,3,400000\nf,0\nf,1\n' >"$tmp/ahead.txt"
run run -d sim -p all -p torch:expandable_segments=true -p slab:virtual=yes -w "$tmp/ahead.txt"
check work_left_at_the_end [ "$status" = 0 ]
# -- what a run that was killed while it put its files in their places has left goes; what others write stays
touch "$tmp/rows.csv.part-99999999" "$tmp/rows.csv.part-$$" "$tmp/rows.csv.part-1x" "$tmp/more.csv.part-99999999"
run run -d sim -p growth -w order_flip --csv "$tmp/rows.csv"
check a_dead_part_goes [ ! -e "$tmp/rows.csv.part-99999999" -a -s "$tmp/rows.csv" ]
check a_living_part_stays [ -e "$tmp/rows.csv.part-$$" -a -e "$tmp/rows.csv.part-1x" -a -e "$tmp/more.csv.part-99999999" ]
finish
