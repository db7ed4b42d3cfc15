#!/bin/bash
# `run --draws`: medians in all tables, intervals and pairs, held against the rows of the draws.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP

# of POLICY FIGURE: its value in each draw, in the order of the draws
of() {
    sed 's/"[^"]*"/-/g' "$tmp/draws.csv" | awk -F, -v policy="$1" -v figure="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR > 1 && $at["policy_spec"] == policy { print $at[figure] }'
}
# mib_of_rank POLICY FIGURE N: the N-th least of its values, in MiB as tables have it
mib_of_rank() { of "$1" "$2" | sort -g | sed -n "$3p" | awk '{ printf "%.1f\n", $1 / 1048576 }'; }

# Seven draws: the interval is from the least to the most, 1 - 2 / 2^7 = 98.4 %; nine: from the
# second, 1 - 2 (1 + 9) / 2^9 = 96.1 %.
run run -d sim -p growth -p torch -p best-fit -w random:events=2000,seed=7 --draws 9 --csv "$tmp/draws.csv" --latex "$tmp/draws.tex"
check all_draws_are_rows [ "$(wc -l <"$tmp/draws.csv")" = 28 ]
check first_table_is_of_all_draws says '^Medians over the draws, or in how many a policy finished; places stand below\.$'
check no_table_is_of_one_draw eval '! grep -q "first draw" "$out"'
for policy in growth torch best-fit; do
    check "first_table_has_the_median_of_$policy" [ "$(awk -v policy=$policy '$1 == "-" && $2 == policy { print $4 }' "$out")" = \
        "$(mib_of_rank $policy peak_reserved_bytes 5)" ]
    check "the_median_of_${policy}_has_an_interval" [ "$(awk -v policy=$policy '
        $2 == policy && $6 == "median" { print $7; for (i = 0; i < 4; i++) { getline; print $2 } }' "$out" | paste -sd ' ')" = \
        "$(for rank in 5 2 8 1 9; do mib_of_rank $policy peak_physical_bytes $rank; done | paste -sd ' ')" ]
done
check first_table_in_latex [ "$(grep -c '^torch & ' "$tmp/draws.tex")" = 3 ]
check first_table_in_latex_has_medians grep -qF "torch & $(mib_of_rank torch peak_physical_bytes 5) & " "$tmp/draws.tex"
check latex_says_medians grep -qF '\paragraph{Medians over the draws, or in how many a policy finished}' "$tmp/draws.tex"
check latex_has_pairs grep -qF '\label{tab:pairs-random-events-2000-seed-7-9-draws}' "$tmp/draws.tex"

# -- pairs: draw by draw against the first policy of the command
pairs() {
    paste <(of "$1" peak_reserved_bytes) <(of growth peak_reserved_bytes) |
        awk '{ printf "%.9f %d %d %d\n", $1 / $2, ($1 < $2), ($1 == $2), ($1 > $2) }' | sort -g |
        awk '{ r[NR] = $1; less += $2; equal += $3; more += $4 }
            END { printf "%.3f %.3f %.3f %d %d %d\n", r[5], r[2], r[8], less, equal, more }'
}
for policy in torch best-fit; do
    check "pairs_of_$policy" [ "$(awk -v policy=$policy '$1 == policy && $2 == "reserved" { print $3, $4, $5, $6, $7, $8 }' "$out")" = "$(pairs $policy)" ]
done
check pairs_as_worked_out_torch grep -qE '^torch +reserved +0.583 +0.575 +0.591 +9 +0 +0$' "$out"
check pairs_as_worked_out_best_fit grep -qE '^best-fit +reserved +0.561 +0.554 +0.575 +9 +0 +0$' "$out"
check draws_are_narrow [ "$(awk 'length > 80' "$out" | wc -l)" = 0 ]
run run -d sim -p torch -p growth -p growth:limit=70GiB -w random:events=2000,seed=7 --draws 3
check few_draws_have_no_interval grep -qE '^growth +reserved +[0-9.]+ +- +- +0 +0 +3$' "$out"
check few_draws_have_no_low eval '! grep -qE "^ +(low|high) " "$out"'
run run -d sim -p growth -p growth:limit=70GiB -w random:events=2000,seed=7 --draws 3
check same_figures_are_equal grep -qE '^growth:limit=70GiB +reserved +1\.000 +- +- +0 +3 +0$' "$out"
run run -d sim -p growth -w random:events=2000,seed=7 --draws 3
check one_policy_has_no_pairs eval '! grep -q "^Pairs" "$out"'

# -- what does not finish in each draw says in how many it does; repetitions of draws are one
run run -d sim:capacity=4550MiB -p best-fit -p torch -w random:events=2000,seed=7 --draws 9 --csv "$tmp/draws.csv"
passed=$(of torch passed | grep -c true)
check some_draws_finish [ "$passed" -gt 0 -a "$passed" -lt 9 ]
check who_did_not_finish_says_so says "^- +torch +$passed of 9 passed, first DNF @ [0-9]+: "
check pairs_are_of_finished_draws [ "$(awk '$1 == "torch" && $2 == "reserved" { print $6 + $7 + $8 }' "$out")" = \
    "$(paste -d, <(of best-fit passed) <(of torch passed) | grep -c true,true)" ]
run run -d sim -p growth -p torch -w random:events=2000,seed=7 --draws 3 --reps 2
check repetitions_are_no_draws grep -qE '^ *[0-9]=? +growth +3 of 3 +median ' "$out"
check repetitions_of_a_draw_have_no_table eval '! grep -q "^Medians over the repetitions" "$out"'

# -- the curve: medians over the draws, each on a card by its own live peak
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
run run "$tmp/curve.ini" --draws 3 --csv "$tmp/draws.csv" --output "$tmp/folder"
curve() { # POLICY SHARE: its slowdown on a card of that share of the live peak, in each draw
    local draw=0 live
    for live in $(of "$1" peak_live_bytes); do
        draw=$((draw + 1))
        "$ALLOCRIG" run -p "$1" -w varlen_transformer:seed=$draw --metrics none --csv - \
            -d "sim:capacity=$(awk -v live="$live" -v share="$2" 'BEGIN {
                page = 2097152; bytes = live * share; pages = int(bytes / page); printf "%.0f\n", (pages + (pages * page < bytes)) * page }')" >"$tmp/one.csv"
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at["slowdown"] }' "$tmp/one.csv"
    done
}
check curve_has_medians [ "$(awk '/^Slowdown/ { on = 1 } on && $1 == "vmm" { print $2; exit }' "$out")" = \
    "$(curve vmm 1.05 | sort -g | sed -n 2p | awk '{ printf "%.3f\n", $1 }')" ]
check curve_has_how_many_finish says "^torch +$(curve torch 1.05 | grep -c .) of 3 "
check figure_has_medians [ "$(grep -c '^varlen_transformer,' "$tmp/folder/data/slowdown.csv")" = 6 ]
check page_has_medians grep -q '^Medians over the draws, or in how many a policy finished' "$tmp/folder/summary.md"
finish
