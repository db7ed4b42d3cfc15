#!/bin/bash
# `run --latex`, `--junit`, `--openmetrics`: well-formed, whatever the names and outcomes.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP

"$ALLOCRIG" gen order_flip -o "$tmp/a_<b>&\"50%\".txt" >/dev/null
run run -d sim:capacity=160MiB -p torch -p async -p 'torch:conf="roundup_power2_divisions:[256:1,>:8]"' \
    -w "$tmp/a_<b>&\"50%\".txt" -w gradient_tape:steps=3 --time --latex "$tmp/r.tex" --junit "$tmp/r.xml" --openmetrics "$tmp/r.txt"
check all_three_are_written [ "$status" = 0 ]
check there_are_failures grep -q 'DNF' "$out"

well_formed() { # NAME FILE
    if command -v xmllint >/dev/null; then
        check "$1" xmllint --noout "$2"
    elif command -v python3 >/dev/null; then
        check "$1" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$2"
    fi
}
well_formed xml_is_well_formed "$tmp/r.xml"
check a_case_for_each_run [ "$(grep -c '<testcase ' "$tmp/r.xml")" = 6 ]
failures=$(grep -c '<failure ' "$tmp/r.xml")
check failures_are_counted grep -q "<testsuites name=\"allocrig\" tests=\"6\" failures=\"$failures\" errors=\"0\"" "$tmp/r.xml"
check there_is_a_failure [ "$failures" -gt 0 ]

check tex_uses_booktabs [ "$(grep -c '^.toprule$' "$tmp/r.tex")" = "$(grep -c '^.bottomrule$' "$tmp/r.tex")" ]
check tex_groups_are_closed [ "$(grep -c '^.begin{table}$' "$tmp/r.tex")" = "$(grep -c '^.end{table}$' "$tmp/r.tex")" ]
# each _ % & # of a text has its backslash: none is left once those are gone, but between columns
check tex_is_escaped [ "$(grep -v '^%' "$tmp/r.tex" | sed 's/\\[_%&#{}$]//g; s/ & / /g' | grep -c '[_%#]')" = 0 ]
check tex_says_that_times_are_modelled [ "$(grep -c "^.caption{.*sim h100.*; times are modelled" "$tmp/r.tex")" -gt 0 -a "$(grep -c "^.caption{.*; times of the host" "$tmp/r.tex")" -gt 0 ]
for option in --reps --replicates; do "$ALLOCRIG" run -d sim -p growth -p torch -w order_flip $option 2 --latex - 2>/dev/null; done >"$tmp/pairs.tex"
check tex_says_it_of_repetitions_and_pairs [ "$(grep -cE "^.caption{.*(slowdown of|compared with) .*; times are modelled" "$tmp/pairs.tex")" = 2 ]
check tex_has_labels [ "$(grep -c '^.label{tab:[a-z]*-[a-z0-9-]*}$' "$tmp/r.tex")" = "$(grep -c '^.caption{' "$tmp/r.tex")" ]
check tex_labels_differ [ "$(grep '^.label{' "$tmp/r.tex" | sort | uniq -d | wc -l)" = 0 ]
check tex_begins_with_the_version [ "$(head -n 1 "$tmp/r.tex" | grep -cE '^% allocrig [0-9.]+, commit ([0-9a-f]{12}|unknown)')" = 1 ]
check tex_has_live_and_reserved grep -q '^.# & policy & live & reserved & physical & overhead & ext.frag & slowdown ' "$tmp/r.tex"
check tex_fits_a_column [ "$(grep -A1 '^.scriptsize' "$tmp/r.tex" | grep -c '^.begin{tabular}{@{}rlrrrrrr@{}}$')" -gt 0 ]
check tex_says_what_is_short grep -q '^.caption{.*ext.frag: mean of 1 - largest servable / free bytes; DNF: did not finish.}$' "$tmp/r.tex"
check tex_has_a_long_name_above_its_row grep -q '& .multicolumn{7}{l}{torch:conf' "$tmp/r.tex"
check tex_wide quietly "$ALLOCRIG" run -d sim -p torch -w order_flip --wide --latex "$tmp/wide.tex"
"$ALLOCRIG" run -d sim -p torch -w order_flip --json "$tmp/build.json" >/dev/null
changes=$(grep -q '"dirty": true' "$tmp/build.json" && echo ' with changes')
check tex_says_whether_files_were_changed grep -qE "^% allocrig .*, commit [^ ]+$changes$" "$tmp/wide.tex"
check tex_wide_has_all grep -q '^.begin{tabular}{@{}rlrrrrrrrrr@{}}$' "$tmp/wide.tex"
check tex_wide_is_as_small grep -q '^.scriptsize.setlength{.tabcolsep}{1.2pt}$' "$tmp/wide.tex"
"$ALLOCRIG" run -d sim -p torch -w random:events=200,seed=123456789012 --latex "$tmp/long.tex" >/dev/null
check tex_breaks_long_words grep -qF '\caption{random:\allowbreak{}events=\allowbreak{}200,\allowbreak{}seed=\allowbreak{}123456789012: 200 events, frees' "$tmp/long.tex"
check tex_leaves_short_ones [ "$(grep 'caption{gradient' "$tmp/r.tex" | grep -c allowbreak)" = 0 ]
check tex_latencies_are_narrow grep -qF ' & p50 & p90 & p99 & p99.9 & max & p50 & p99 & Mops/s ' "$tmp/r.tex"
check tex_says_in_ns grep -q '^.caption{.*Host time of each call in ns, clock cost subtracted; rate: throughput\.}$' "$tmp/r.tex"
check tex_defines_steady grep -q '^.caption{.*compared with .* at 95 .% or more (low, high), .* steady: the slowdown of the second half of the steps\.}$' "$tmp/pairs.tex"
check tex_has_no_straight_quote_of_its_own [ "$(grep -c textquotesingle "$tmp/pairs.tex")" = 0 ]
check tex_has_the_latencies grep -q '^.caption{.*times of the host. Host time of each call' "$tmp/r.tex"
printf '%s\n' '[policies]' growth torch '[workloads]' gradient_tape:steps=2 '[devices]' sim:addresses=random '[slowdown]' 'at = 1 2' >"$tmp/curve.ini"
run run "$tmp/curve.ini" --replicates 2 --latex "$tmp/curve.tex"
check tex_says_the_conditions_of_slowdown grep -q '^.caption{gradient._tape:steps=2, 2 replicates: slowdown, frees ordered, host none, sim h100 addresses=random; times are modelled. Slowdown (time / time' "$tmp/curve.tex"
check tex_says_them_above_all_policies [ "$(sed '1,/^.caption{.*: slowdown, /d' "$tmp/curve.tex" | grep -cE '^(growth|torch) & [0-9D]')" = 2 ]
run run "$tmp/curve.ini" --latex "$tmp/curve.tex"
check tex_says_no_replicates_of_one grep -q '^.caption{gradient._tape:steps=2: slowdown, ' "$tmp/curve.tex"

run run -d sim -p growth -p torch -w order_flip --time --replicates 2
check latencies_have_the_ends_of_intervals [ "$(grep -cE '^  (low|high) +[0-9]' "$out")" = 4 ]
check and_the_heading_says_so says '^Host time .* throughput: medians, and$'

check metrics_end [ "$(tail -n 1 "$tmp/r.txt")" = '# EOF' ]
check metrics_have_help [ "$(grep -c '^# TYPE' "$tmp/r.txt")" = "$(grep -c '^# HELP' "$tmp/r.txt")" ]
families() { # in the order of the samples, one for each stretch
    grep -v '^#' "$tmp/r.txt" | sed 's/{.*//' | uniq
}
check metrics_families_are_whole [ "$(families | wc -l)" = "$(families | sort -u | wc -l)" ]
check metrics_lines_are_samples [ "$(grep -v '^#' "$tmp/r.txt" | grep -cvE '^allocrig_[a-z0-9_]+\{([a-z]+="([^"\\]|\\["\\n])*",?)+\} [0-9.e+-]+$')" = 0 ]
check metrics_tell_who_failed grep -qE '^allocrig_passed\{policy="async",.*\} [01]$' "$tmp/r.txt"

if long suites_write_them_too suite_xml_is_well_formed suite_has_its_name; then
    policies=(-p growth -p bfc)
    [ "${TEST_SOAK:-0}" != 1 ] || policies=() # all of them
    check suites_write_them_too quietly "$ALLOCRIG" run workloads/suites/quick.ini -d sim "${policies[@]}" --output "$tmp/quick" --junit "$tmp/s.xml" --jobs 2
    well_formed suite_xml_is_well_formed "$tmp/s.xml"
    check suite_has_its_name grep -q '<testsuites name="quick"' "$tmp/s.xml"
fi
refuses twice 2 'junit is given twice' run -p torch -w order_flip --junit "$tmp/x" --junit "$tmp/y"
refuses one_place_for_two 2 'named for two outputs' run -p torch -w order_flip --junit "$tmp/x" --latex "$tmp/x"
refuses nowhere 2 "$tmp/no/x" run -d sim -p torch -w order_flip --openmetrics "$tmp/no/x"
check refused_leaves_nothing [ -z "$(find "$tmp" -name '[xy]*')" ]
finish
