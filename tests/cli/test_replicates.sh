#!/bin/bash
# `run --replicates`: medians in all tables, intervals and pairs, compared with the rows of the replicates.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP

# of POLICY FIGURE: its value in each replicate, in their order
of() {
    sed 's/"[^"]*"/-/g' "$tmp/rows.csv" | awk -F, -v policy="$1" -v figure="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR > 1 && $at["policy_spec"] == policy { print $at[figure] }'
}
# mib_of_rank POLICY FIGURE N: the N-th least of its values, in MiB as tables have it
mib_of_rank() { of "$1" "$2" | sort -g | sed -n "$3p" | awk '{ printf "%.1f\n", $1 / 1048576 }'; }

# Seven replicates: the interval is from the least to the most, 1 - 2 / 2^7 = 98.4 %; nine: from the
# second, 1 - 2 (1 + 9) / 2^9 = 96.1 %.
run run -d sim -p growth -p torch -p best-fit -w random:events=2000,seed=7 --replicates 9 --csv "$tmp/rows.csv" --latex "$tmp/tables.tex" \
    --output "$tmp/nine"
check all_replicates_are_rows [ "$(wc -l <"$tmp/rows.csv")" = 28 ]
check first_table_is_of_all_replicates says '^Medians over the replicates, or in how many a policy finished; # is the place$'
check no_table_is_of_one_replicate eval '! grep -q "first replicate" "$out"'
for policy in growth torch best-fit; do
    check "first_table_has_the_median_of_$policy" [ "$(awk -v policy=$policy '$1 ~ /^[1-3]=?$/ && $2 == policy { print $4; exit }' "$out")" = \
        "$(mib_of_rank $policy peak_reserved_bytes 5)" ]
    check "the_median_of_${policy}_has_an_interval" [ "$(awk -v policy=$policy '
        $2 == policy && $6 == "median" { print $7; for (i = 0; i < 4; i++) { getline; print $2 } }' "$out" | paste -sd ' ')" = \
        "$(for rank in 5 2 8 1 9; do mib_of_rank $policy peak_physical_bytes $rank; done | paste -sd ' ')" ]
done
check both_tables_have_the_same_places [ "$(awk '$1 ~ /^[0-9]=?$/ { print $1, $2 }' "$out" | sort | uniq -c | awk '$1 == 2' | wc -l)" = 3 ]
check first_table_in_latex [ "$(grep -cE '^([0-9]=? & )?torch & ' "$tmp/tables.tex")" = 3 ]
check first_table_in_latex_has_medians grep -qE "^[0-9]=? & torch( & [0-9.]+){2} & $(mib_of_rank torch peak_physical_bytes 5) & " "$tmp/tables.tex"
check latex_says_medians grep -q '^.caption{.*Medians over the replicates, or in how many a policy finished; .#: place' "$tmp/tables.tex"
check latex_has_the_places_of_the_text [ "$(sed -nE 's/^([0-9]+=?) & ([a-z-]+) & .*/\1 \2/p' "$tmp/tables.tex" | sort | uniq -c | awk '{ print $1, $2, $3 }')" = \
    "$(sed -nE 's/^ *([0-9]+=?) +([a-z-]+) +9 of 9 .*/2 \1 \2/p' "$out" | sort -k 2)" ]
check latex_says_what_a_place_is [ "$(grep -c '^.caption{.*; .#: place by physical bytes, =: not told apart from some other; ' "$tmp/tables.tex")" = 2 ]
check latex_has_pairs grep -qF '\label{tab:pairs-random-events-2000-seed-7-9-replicates}' "$tmp/tables.tex"

# -- pairs: each replicate compared with the first policy's with the same seed
pairs() { # POLICY [METRIC]
    local metric=${2:-peak_physical_bytes}
    paste <(of "$1" "$metric") <(of growth "$metric") |
        awk '{ printf "%.9f %d %d %d\n", $1 / $2, ($1 < $2), ($1 == $2), ($1 > $2) }' | sort -g |
        awk '{ r[NR] = $1; less += $2; equal += $3; more += $4 }
            END { printf "%.3f %.3f %.3f %d %d %d\n", r[5], r[2], r[8], less, equal, more }'
}
for policy in torch best-fit; do
    check "pairs_of_$policy" [ "$(awk -v policy=$policy '$1 == policy && $2 == "physical" { print $3, $4, $5, $6, $7, $8 }' "$out")" = "$(pairs $policy)" ]
done
check pairs_as_worked_out_torch grep -qE '^torch +physical +0.583 +0.575 +0.591 +9 +0 +0$' "$out"
check pairs_as_worked_out_best_fit grep -qE '^best-fit +physical +0.561 +0.555 +0.575 +9 +0 +0$' "$out"
# the same pairs in JSON and in a file of their own, with differences beside ratios
value() { # KEY: of the statistic in braces that comes on standard input
    sed -n 's/.*"'"$1"'": \([^,}]*\).*/\1/p'
}
pair_line() { # POLICY METRIC
    awk -v policy="\"policy\": \"$1\"" -v metric="\"$2\": " '/"draw_pairs"/ { on = 1 } on && index($0, policy) { here = 1 }
        here && index($0, metric) { print; exit }' "$tmp/nine/results.json"
}
differences() { # POLICY FIGURE: median, low and high of nine differences to growth
    paste <(of "$1" "$2") <(of growth "$2") | awk '{ printf "%.0f\n", $1 - $2 }' | sort -g | sed -n '2p;5p;8p' | awk '{ v[NR] = $1 } END { print v[2], v[1], v[3] }'
}
for policy in torch best-fit; do
    line=$(pair_line $policy peak_reserved_bytes)
    ratio=${line##*\"ratio\"}
    check "json_has_pairs_of_$policy" [ "$(value pairs <<<"$line") $(value less <<<"$line") $(value more <<<"$line")" = '9 9 0' ]
    check "json_has_ratios_of_$policy" [ "$(for key in median low high; do value $key <<<"$ratio"; done | awk '{ printf "%s%.3f", sep, $1; sep = " " }')" = \
        "$(pairs $policy peak_reserved_bytes | cut -d ' ' -f 1-3)" ]
    line=${line%%\"ratio\"*}
    check "json_has_differences_of_$policy" [ "$(for key in median low high; do value $key <<<"$line"; done | paste -sd ' ')" = \
        "$(differences $policy peak_reserved_bytes)" ]
    check "file_has_pairs_of_$policy" [ "$(sed 's/"[^"]*"/-/g' "$tmp/nine/data/pairs.csv" |
        awk -F, -v policy=$policy '$1 == policy && $2 == "growth" && $7 == "peak_reserved_bytes" { print $8, $9, $12, $13, $14 }')" = \
        "9 9 $(differences $policy peak_reserved_bytes)" ]
done
check json_says_against_what [ "$(grep -c '"against": "growth"' "$tmp/nine/results.json")" = 2 ]
check level_of_nine [ "$(pair_line torch peak_reserved_bytes | sed 's/.*"ratio"//' | value level | cut -c 1-6)" = 0.9609 ]
check json_has_medians_over_replicates [ "$(awk '/"draws": \[/ { on = 1 } on && /"policy": "torch"/ { here = 1 }
    here && /"peak_physical_bytes": / { print; exit }' "$tmp/nine/results.json" | value median)" = "$(of torch peak_physical_bytes | sort -g | sed -n 5p)" ]

# -- places: by pairs from six replicates on. Ranges of best-fit and torch overlap, as do their intervals.
check pairs_state_a_place grep -qE '^ *1 +best-fit +9 of 9 +median ' "$out"
check ranges_overlap [ "$(of best-fit peak_physical_bytes | sort -g | tail -n 1)" -gt "$(of torch peak_physical_bytes | sort -g | head -n 1)" ]
check pairs_differ [ "$(paste <(of best-fit peak_physical_bytes) <(of torch peak_physical_bytes) | awk '$1 < $2' | wc -l)" -ge 8 ]

# -- the data of figures: the median and its interval
fragmentation() { awk -F, -v policy="$1" -v c="$2" '{ gsub(/"[^"]*"/, "-") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $2 == policy { print $at[c] }' "$tmp/$3/data/fragmentation.csv"; }
for column in overhead:5 overhead_low:2 overhead_high:8; do
    check "figure_has_${column%:*}" [ "$(fragmentation torch "${column%:*}" nine)" = "$(of torch overhead | sort -g | sed -n "${column#*:}p")" ]
done
check series_say_of_how_many [ "$(awk -F, '{ print $NF }' "$tmp"/nine/data/series-random-*.csv | sort -u | paste -sd ' ')" = '9 draws' ]
check figure_says_of_what [ "$(fragmentation torch runs nine),$(fragmentation torch over nine),$(fragmentation torch level nine | cut -c 1-4)" = 9,draws,0.96 ]
"$ALLOCRIG" run -d sim -p growth -p torch -p best-fit -w random:events=2000,seed=7 --replicates 9 --output "$tmp/again" >/dev/null
check pairs_are_the_same_bytes cmp "$tmp/nine/data/pairs.csv" "$tmp/again/data/pairs.csv"
check figures_are_the_same_bytes cmp "$tmp/nine/data/fragmentation.csv" "$tmp/again/data/fragmentation.csv"
check replicates_are_narrow [ "$(awk '!/^wrote / && length > 80' "$out" | wc -l)" = 0 ]
run run -d sim -p torch -p growth -p growth:limit=70GiB -w random:events=2000,seed=7 --replicates 3
check few_replicates_have_no_interval grep -qE '^growth +physical +[0-9.]+ +- +- +0 +0 +3$' "$out"
check few_replicates_have_no_low eval '! grep -qE "^ +(low|high) " "$out"'
run run -d sim -p growth -p growth:limit=70GiB -w random:events=2000,seed=7 --replicates 3
check same_figures_are_equal grep -qE '^growth:limit=70GiB +physical +1\.000 +- +- +0 +3 +0$' "$out"
# lines with the same figures are one: all of them, or the ends of the interval and of the range
run run -d sim:addresses=random -p growth -p direct -p best-fit -w workloads/data/tape_small.default.csv.gz --replicates 6 --latex "$tmp/same.tex"
check equal_lines_are_one [ "$(grep -cE '^ *[0-9]=? +(growth|direct|best-fit) +6 of 6 +all ' "$out")" = 3 -a "$(grep -cE ' (median|low|least|most) +[0-9]' "$out")" = 0 ]
check equal_lines_are_one_in_latex [ "$(grep -c ' & 6 of 6 & all & ' "$tmp/same.tex")" = 3 ]
check a_ratio_that_differs_is_not_1 [ "$(awk '$1 == "slowdown" && NF == 7 && $5 + $7 > 0 { print ($2 == "1.000"), (length($2) > 5) }' "$out" | sort | paste -sd ,)" = '0 1,0 1' ]
check ratios_of_a_table_have_as_many_decimals [ "$(awk '/^Pairs:/ { on = 1 } on && ($1 == "slowdown" || $2 == "physical") { print length($(NF - 3)), length($(NF - 4)), length($(NF - 5)) }' "$out" | tr ' ' '\n' | sort -u | wc -l)" = 1 ]
run run -d sim -p growth -p torch -w random:events=2000,seed=7 --replicates 7
check the_interval_is_the_range [ "$(grep -cE '^ +(low=least|high=most) +[0-9]' "$out")" = 4 ]
run run -d sim -p growth -w random:events=2000,seed=7 --replicates 3
check one_policy_has_no_pairs eval '! grep -q "^Pairs" "$out"'
# of programs with steps their steady ones too, of others not
run run -d sim -p torch -p direct -w gradient_tape:seed=1,steps=4 -w random:events=500,seed=7 --replicates 6 --csv "$tmp/rows.csv"
steady() { of "$1" steady_slowdown | awk 'NF'; }
check pairs_of_steady_steps [ "$(awk '/^direct +physical/ { getline; getline; print $1, $2, $3, $4; exit }' "$out")" = \
    "steady $(paste <(steady direct) <(steady torch) | awk '{ printf "%.3f\n", $1 / $2 }' | sort -g | sed -n '1p;3p;6p' | awk '{ v[NR] = $1 } END { print v[2], v[1], v[3] }')" ]
check pairs_without_steps_have_no_steady [ "$(grep -cE '^ +steady ' "$out")" = 1 ]
check pairs_say_what_is_steady says '`steady`: the slowdown of the second half of the steps'
check steady_pairs_are_narrow [ "$(awk '!/^wrote / && length > 80' "$out" | wc -l)" = 0 ]

# -- a policy that does not finish in each replicate shows in how many it does; repetitions of a replicate are one
run run -d sim:capacity=4550MiB -p best-fit -p torch -w random:events=2000,seed=7 --replicates 9 --csv "$tmp/rows.csv"
passed=$(of torch passed | grep -c true)
check some_replicates_finish [ "$passed" -gt 0 -a "$passed" -lt 9 ]
check who_did_not_finish_says_so says "^- +torch +$passed of 9 passed, first DNF @ [0-9]+: "
check pairs_are_of_finished_replicates [ "$(awk '$1 == "torch" && $2 == "physical" { print $6 + $7 + $8 }' "$out")" = \
    "$(paste -d, <(of best-fit passed) <(of torch passed) | grep -c true,true)" ]
if long repetitions_are_no_replicates repetitions_of_a_replicate_are_one_pair latency_of_repeated_replicates \
        figure_of_repeated_replicates few_replicates_have_a_range repetitions_have_an_interval \
        repetitions_are_no_pairs pairs_of_an_earlier_run_are_gone; then
    run run -d sim -p growth -p torch -w random:events=2000,seed=7 --replicates 3 --reps 2 --time --csv "$tmp/rows.csv" --output "$tmp/nine"
    check repetitions_are_no_replicates grep -qE '^ *[0-9]=? +growth +3 of 3 +median ' "$out"
    check repetitions_of_a_replicate_are_one_pair [ "$(pair_line torch peak_reserved_bytes | value pairs)" = 3 ]
    # of two repetitions the lower, of three replicates the middle one: in the table as in the figure
    latency=$(of torch alloc_ns_p99 | paste - - | awk '{ print $1 < $2 ? $1 : $2 }' | sort -g | sed -n 2p)
    check latency_of_repeated_replicates [ "$(awk '$1 == "torch" && NF == 9 { print $4 }' "$out")" = "$latency" ]
    check figure_of_repeated_replicates [ "$(awk -F, '{ gsub(/"[^"]*"/, "-") } $2 == "torch" { print $5, $10 }' "$tmp/nine/data/latency.csv")" = "$latency 3" ]
    check few_replicates_have_a_range [ "$(for c in runs over level overhead_low overhead_high; do fragmentation torch $c nine; done | paste -sd ,)" = \
        "3,draws,,$(of torch overhead | sort -gu | sed -n '1p;$p' | paste -sd ,)" ]
    run run -d sim -p torch -w random:events=2000,seed=7 --reps 6 --time --csv "$tmp/rows.csv" --output "$tmp/nine"
    check repetitions_have_an_interval [ "$(awk -F, '{ gsub(/"[^"]*"/, "-") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $2 == "torch" { print $at["runs"] "," $at["over"] "," $at["alloc_p99_ns"] "," $at["alloc_p99_ns_low"] "," $at["alloc_p99_ns_high"] }' \
        "$tmp/nine/data/latency.csv")" = "6,repetitions,$(of torch alloc_ns_p99 | sort -g | sed -n '1p;3p;6p' | awk '{ v[NR] = $1 } END { print v[2] "," v[1] "," v[3] }')" ]
    run run -d sim -p growth -p torch -w random:events=2000,seed=7 --reps 6 --output "$tmp/nine"
    check repetitions_are_no_pairs eval '! grep -q draw_pairs "$tmp/nine/results.json"'
    check pairs_of_an_earlier_run_are_gone [ ! -e "$tmp/nine/data/pairs.csv" ]
fi
run run -d sim -p growth -p torch -w random:events=2000,seed=7 --output "$tmp/nine"
check one_run_has_no_interval [ "$(head -n 1 "$tmp/nine/data/fragmentation.csv")" = workload,policy,internal_mean,external_mean,unusable_mean,overhead ]
check one_series_has_no_draws [ "$(head -n 1 "$tmp"/nine/data/series-random-*.csv)" = policy,event,time_s,live_bytes,reserved_bytes,physical_bytes,passed ]
check one_run_has_no_draws eval '! grep -qE "\"(draws|draw_pairs)\"" "$tmp/nine/results.json"'
run run -d sim -p growth -p torch -w random:events=2000,seed=7 --replicates 3 --reps 2
check repetitions_of_a_replicate_have_no_table eval '! grep -q "^Medians over the repetitions" "$out"'

# -- compared with another policy than the first, which then comes first
run run -d sim -p growth -p torch -p best-fit -w random:events=2000,seed=7 --replicates 9 --against torch --output "$tmp/against"
check against_is_taken [ "$(grep -c '"against": "torch"' "$tmp/against/results.json"),$(grep -c '"against": "growth"' "$tmp/against/results.json")" = 2,0 ]
check against_is_in_the_file [ "$(awk -F, '{ gsub(/"[^"]*"/, "-") } NR > 1 { print $1, $2 }' "$tmp/against/data/pairs.csv" | sort -u | paste -sd ' ')" = 'best-fit torch growth torch' ]
check against_is_in_the_heading eval 'tr "\n" " " <"$out" | grep -qE "9 replicates: +compared with torch, frees"'
check against_turns_counts [ "$(awk '$1 == "growth" && $2 == "physical" { print $6, $7, $8 }' "$out")" = '0 0 9' ]
printf '%s\n' '[suite]' 'replicates = 2' 'against = growth' '[policies]' torch growth '[workloads]' random:events=500 '[devices]' sim >"$tmp/against.ini"
run run "$tmp/against.ini" --json "$tmp/against.json"
check a_suite_names_it [ "$(grep -c '"against": "growth"' "$tmp/against.json")" = 1 ]
refuses against_nobody 2 'against "torhc": none of the policies of this run' run -d sim -p growth -p torch -w random:events=500 --replicates 2 --against torhc
refuses against_without_replicates 2 'only replicates are compared in pairs; add --replicates N' run -d sim -p growth -p torch -w random:events=500 --against torch

# a spec that is longer than a name is cut, and its replicates are still told apart
run run -d sim -p growth -p torch -w "random:events=$(printf %0150d 500)" --replicates 3 --output "$tmp/long"
check replicates_of_a_long_spec [ "$(grep -c '3 replicates: 500 events' "$out")" = 2 ]
check replicates_of_a_long_spec_are_medians [ "$(awk -F, 'NR > 1 { print $7, $8 }' "$tmp/long/data/fragmentation.csv" | sort -u)" = '3 draws' ]

# -- the curve: medians over the replicates, each on a card by its own live peak
cat >"$tmp/curve.ini" <<'EOF'
[policies]
torch
vmm
[workloads]
varlen_transformer
[devices]
sim
[slowdown]
at = 1.05 1.1 2
EOF
run run "$tmp/curve.ini" --replicates 3 --csv "$tmp/rows.csv" --output "$tmp/folder"
curve() { # POLICY SHARE: its slowdown on a card of that share of the live peak, in each replicate
    local seed=0 live
    for live in $(of "$1" peak_live_bytes); do
        seed=$((seed + 1))
        "$ALLOCRIG" run -p "$1" -w varlen_transformer:seed=$seed --metrics none --csv - \
            -d "sim:capacity=$(awk -v live="$live" -v share="$2" 'BEGIN {
                page = 2097152; bytes = live * share; pages = int(bytes / page); printf "%.0f\n", (pages + (pages * page < bytes)) * page }')" >"$tmp/one.csv"
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["slowdown"] }' "$tmp/one.csv"
    done
}
check curve_has_medians [ "$(awk '/^Slowdown/ { on = 1 } on && $1 == "vmm" { print $2; exit }' "$out")" = \
    "$(curve vmm 1.05 | sort -g | sed -n 2p | awk '{ printf "%.3f\n", $1 }')" ]
check curve_has_how_many_finish says "^torch +$(curve torch 1.05 | grep -c .) of 3 "
check curve_of_few_replicates_has_a_range [ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $2 == "vmm" && $3 == 1.05 { print $at["runs"], $at["level"], $at["slowdown_low"], $at["slowdown"], $at["slowdown_high"] }' "$tmp/folder/data/slowdown.csv")" = \
    "3  $(curve vmm 1.05 | sort -g | paste -sd ' ')" ]
check curve_has_no_interval_of_what_does_not_finish [ "$(awk -F, '$2 == "torch" && $5 == "false" { print $8 $9 $10 $11 $12 }' "$tmp/folder/data/slowdown.csv" | sort -u)" = '' ]
check json_of_few_replicates_has_no_interval grep -q '"slowdown_low": null' "$tmp/folder/results.json"
check figure_has_medians [ "$(grep -c '^varlen_transformer,' "$tmp/folder/data/slowdown.csv")" = 6 ]
check page_has_medians grep -q '^Medians over the replicates, or in how many a policy finished' "$tmp/folder/summary.md"
# -- the former names, an option and a key, for one release
run run -d sim -p growth -p torch -w random:events=500 --draws 2 --csv "$tmp/former.csv"
check former_option [ "$(wc -l <"$tmp/former.csv")" = 5 ]
refuses former_option_beside 2 '--draws is --replicates: --replicates is given twice' run -d sim -p growth -w random:events=500 --replicates 2 --draws 3
refuses former_option_wrong 2 '--draws is --replicates: replicates: "x"' run -d sim -p growth -w order_flip --draws x
sed 's/^replicates = /draws = /' "$tmp/against.ini" >"$tmp/former.ini"
run run "$tmp/former.ini" --csv "$tmp/former_key.csv"
check former_key [ "$(wc -l <"$tmp/former_key.csv")" = 5 ]
sed 's/^replicates = .*/&\ndraws = 3/' "$tmp/against.ini" >"$tmp/former.ini"
refuses former_key_beside 2 'former.ini:[0-9]*: the key "draws", now "replicates", is given twice' run "$tmp/former.ini"
finish
