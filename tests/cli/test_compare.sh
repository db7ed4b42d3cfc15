#!/bin/bash
# `compare`: planted regressions are detected, unchanged runs raise no alarm, missing data is reported.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cc=${CC:-cc}
so=${tmp#"$PWD"/}/planted.so # of one length, wherever the tree is

# build FLAGS...: builds the policy, always under one name, as a change to a program would
build() {
    # shellcheck disable=SC2086 # CFLAGS is a list of flags
    $cc -std=c11 -O1 ${CFLAGS:-} -D_GNU_SOURCE -shared -fPIC -I. "$@" tests/cli/planted.c -o "$so" || exit 1
}
# results FILE: runs that policy
results() {
    "$ALLOCRIG" run -d sim:capacity=24GiB -p "$so" -w random:events=2000 -w order_flip --json "$1" >"$tmp/table" || exit 1
}
# unbroken: the output, where a row that was broken over several lines, as by a long path, is one
unbroken() {
    awk '/^ / { printf " %s", $0; next } { printf "\n%s", $0 } END { print "" }' "$out" | tr -s ' '
}
# said NAME REGEX: a row of the table matches
said() {
    unbroken | grep -qE -e "$2"
    verdict "$1" $?
}
build
results "$tmp/old.json"
for i in 1 2 3; do
    results "$tmp/same.json"
    run compare "$tmp/old.json" "$tmp/same.json"
    check "unchanged_is_the_same_$i" [ "$status" = 0 ]
done
said unchanged_is_counted '^[0-9]+ figures SAME, 0 BETTER, 0 WORSE, 0 AMBIGUOUS, 0 NO-DATA, of 2 runs'
check smallest_effect_is_said grep -q '^Smallest change that is detected: exact figures any; instructions 1 %' "$out"

# A device is what its spec stands for.
i=0
for device in sim sim:profile=h100 sim:capacity=1GiB sim:profile=h100,capacity=1024MiB sim:addresses=random; do
    "$ALLOCRIG" run -p vmm -w order_flip -d "$device" --json "$tmp/device$((i++)).json" >/dev/null
done
for pair in "0 1" "2 3"; do
    run compare "$tmp/device${pair% *}.json" "$tmp/device${pair#* }.json"
    check "one_device_${pair% *}" [ "$status" = 0 ]
done
refuses an_option_is_another_device 2 'no run in common.* differ in the device' compare "$tmp/device0.json" "$tmp/device4.json"
run compare "$tmp/device0.json" "$tmp/device2.json"
check two_devices [ "$status" = 2 ]

build -DPLANT_WASTE=3
results "$tmp/waste.json"
run compare "$tmp/old.json" "$tmp/waste.json" --markdown "$tmp/waste.md" --junit "$tmp/waste.xml" --json "$tmp/waste-verdicts.json" --annotations --all
check waste_is_caught [ "$status" = 1 ]
said waste_is_told '^WORSE peak_granted_bytes [0-9]+ [0-9]+ [0-9.]+ % worse'
check waste_ends_with_a_sentence grep -q 'allocrig: compare: [0-9]* figures are worse, first ' "$err"
check waste_is_annotated grep -q '^::error title=peak_granted_bytes is worse::random' "$out"
check waste_in_markdown grep -q "^| WORSE | peak_granted_bytes" "$tmp/waste.md"
check waste_in_junit grep -q '<failure type="regression" message="WORSE: ' "$tmp/waste.xml"
check waste_in_json grep -qE '^    \{"verdict": "WORSE", "policy": ".*planted.so", "workload": "random:.*", "frees": "ordered", "host": "none", "seed": 1, "metric": "peak_granted_bytes", "old": [0-9]+, "new": [0-9]+, "change": 0\.0' "$tmp/waste-verdicts.json"
check json_counts_regressions [ "$(grep -c '"verdict": "WORSE"' "$tmp/waste-verdicts.json")" = "$(sed -n 's/^  "regressions": \([0-9]*\),/\1/p' "$tmp/waste-verdicts.json")" ]
run compare "$tmp/old.json" "$tmp/waste.json" --json - --annotations
check annotations_are_not_in_the_json eval 'cmp -s "$out" "$tmp/waste-verdicts.json" && grep -q "^::error title=peak_granted" "$err"'
run compare "$tmp/old.json" "$tmp/waste.json"
check one_policy_is_one_row [ "$(grep -c '^WORSE' "$out")" = 1 ]
said how_many_and_the_largest '^WORSE [0-9]+ policy .*planted.so, [0-9]+ figures in 2 workloads; first: '
check a_line_for_the_policy says '^- .*planted\.so: .*other figures [0-9]+ worse'
check the_page_is_narrow [ "$(awk 'length > 80' "$out" | grep -cv planted)" = 0 ]
run compare "$tmp/waste.json" "$tmp/old.json" --all
said the_other_way_is_better '^BETTER peak_granted_bytes '

build -DPLANT_END=101
results "$tmp/later.json"
build -DPLANT_END=100
results "$tmp/earlier.json"
run compare "$tmp/old.json" "$tmp/earlier.json"
check no_longer_finishing_is_caught [ "$status" = 1 ]
said no_longer_finishing_is_told '^WORSE 1 outcome of random.* with policy .*: passed before, DNF @ [0-9]+ .*finished before'
run compare "$tmp/later.json" "$tmp/earlier.json" --json -
check an_event_earlier_in_json grep -qE '"metric": "outcome", "old": "DNF @ [0-9]+ .capacity.", "new": "DNF @ [0-9]+ .capacity.", "change": null' "$out"
run compare "$tmp/later.json" "$tmp/earlier.json"
check an_event_earlier_is_caught [ "$status" = 1 ]
said an_event_earlier_is_told '^WORSE 1 outcome of random.*: DNF @ [0-9]+ .*fails earlier'
run compare "$tmp/earlier.json" "$tmp/later.json"
check an_event_later_is_no_alarm [ "$status" = 0 ]

# ---- what matters comes first: memory before a share of it, whatever its size
sed -E 's/("peak_physical_bytes": )([0-9]+)/\1\27/; s/("internal_fragmentation_at_peak": )[0-9.e-]+/\10.0000017/' "$tmp/old.json" >"$tmp/memory.json"
sed -E 's/("internal_fragmentation_at_peak": )[0-9.e-]+/\10.00000019/' "$tmp/old.json" >"$tmp/little.json"
run compare "$tmp/little.json" "$tmp/memory.json"
check any_change_is_worse [ "$status" = 1 ]
said memory_is_first '^WORSE 4 policy .*planted.so, 2 figures in 2 workloads; first: peak_physical_bytes of '
first=$(sed -E 's/.*, first ([a-z_]+ of [^ ]+) .*/\1/' "$err")
check the_last_line_names_the_first_of_the_table says "; first: $first: "
check bytes_are_in_mib grep -qE 'random.*: [0-9]{7,} \([0-9.]+ MiB\) before, [0-9]+ \([0-9.]+ MiB\) now$|order_flip.*: [0-9]{7,} \([0-9.]+ MiB\) before, [0-9]+ \([0-9.]+ MiB\) now$' "$err"
said in_one_line_of_the_policy '^- .*planted\.so: peak_physical_bytes 2 worse \((random|order_flip).* \+[0-9.e+]+ % and others\); other figures 2 worse\.'
run compare "$tmp/little.json" "$tmp/memory.json" --all
said a_share_has_points '^WORSE internal_fragmentation_at_peak 1\.9e-07 1\.7e-06 0\.000151 percentage points worse'

# ---- waivers
cat >"$tmp/waivers.ini" <<'EOF'
[waiver planted]
policy = *planted.so
reason = it is planted
until = 2027-01-31
EOF
run compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/waivers.ini" --today 2027-01-31 --annotations
check waived_passes [ "$status" = 0 ]
said waived_is_said '^waived [0-9]+ policy .*planted.so.* waived until 2027-01-31 planted: it is planted'
check waived_is_a_warning grep -q '^::warning ' "$out"
long='it is planted, and the reason of this waiver is longer than a hundred and twenty bytes, since it tells what was tried and what was found, and who decided that it stays, until when'
sed "s/^reason.*/reason = $long/" "$tmp/waivers.ini" >"$tmp/long.ini"
run compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/long.ini" --today 2027-01-31 --junit "$tmp/long.xml" --annotations
said a_reason_is_whole "^waived .* waived until 2027-01-31 planted: $long"
check a_reason_is_whole_in_junit grep -q "waived until 2027-01-31 planted: $long" "$tmp/long.xml"
check a_reason_is_whole_in_annotations grep -q "^::warning .*planted: $long" "$out"
run compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/waivers.ini" --today 2027-02-01
check expired_fails [ "$status" = 1 ]
check expired_is_said grep -q '^Waiver planted expired on 2027-01-31 and does not count' "$out"
sed -i 's/^until.*/&\nat-most = 0.001%/' "$tmp/waivers.ini"
run compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/waivers.ini" --today 2027-01-31
check over_the_limit_fails [ "$status" = 1 ]
check over_the_limit_is_said grep -q '^Waiver planted is for at most 0.001 %; what is above that is not waived' "$out"
sed 's/planted\]/wider]/; /^at-most/d' "$tmp/waivers.ini" | cat "$tmp/waivers.ini" - >"$tmp/wider.ini"
run compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/wider.ini" --today 2027-01-31
check a_wider_waiver_covers_it [ "$status" = 0 ]
check then_no_limit_is_said not grep -q 'not waived' "$out"
mkdir -p "$tmp/beside" && cp "$tmp/old.json" "$tmp/waivers.ini" "$tmp/beside/"
run compare "$tmp/beside" "$tmp/waste.json"
check waivers_beside_the_results_are_said_not_to_be_read grep -q "beside/waivers.ini is not read: add --waivers .*beside/waivers.ini" "$err"
sed -i '/^reason/d' "$tmp/waivers.ini"
refuses waiver_without_reason 2 'waiver planted has no reason' compare "$tmp/old.json" "$tmp/waste.json" --waivers "$tmp/waivers.ini" --today 2027-01-31

# ---- instructions
counts() { # FILE COUNT COMPILER
    printf '{"schema": "allocrig.instructions/1", "compiler": "%s", "rows": [{"policy": "p", "trace": "t", "kind": "operations", "measure": "none", "instructions": %s}]}' "$3" "$2" >"$1"
}
counts "$tmp/count-old.json" 200 gcc
counts "$tmp/count-same.json" 201.9 gcc
counts "$tmp/count-more.json" 210 gcc
counts "$tmp/count-other.json" 210 clang
run compare "$tmp/count-old.json" "$tmp/count-same.json"
check one_percent_more_instructions_is_the_same [ "$status" = 0 ]
run compare "$tmp/count-old.json" "$tmp/count-more.json"
check five_percent_more_instructions_is_caught [ "$status" = 1 ]
run compare "$tmp/count-old.json" "$tmp/count-more.json" --json -
check a_count_has_no_seed says '"frees": null, "host": null, "seed": null, "metric": "instructions", "old": 200(\.0)?, "new": 210(\.0)?, '
run compare "$tmp/count-old.json" "$tmp/count-other.json"
check another_compiler_is_no_data [ "$status" = 0 ]
said another_compiler_is_said '^NO-DATA .*made by gcc before, now by clang'

sed 's/\(.*\)\[\({.*}\)\]}/\1[\2, \2]}/; s/200}\]/230}]/' "$tmp/count-old.json" >"$tmp/count-twice.json"
run compare "$tmp/count-twice.json" "$tmp/count-same.json"
said two_counts_of_the_same '^NO-DATA .*: 200.0 and 230.0 before, - now; the results of OLD contradict each other: rows 1 and 2 of count-twice.json'

# ---- contradictions: figures that are not timed must be the same in all repetitions
sed 's/"peak_reserved_bytes": \([0-9]*\)/"peak_reserved_bytes": 1\1/' "$tmp/old.json" >"$tmp/high.json"
mkdir "$tmp/both"
cp "$tmp/old.json" "$tmp/both/1.json"
cp "$tmp/high.json" "$tmp/both/2.json"
run compare "$tmp/both" "$tmp/old.json"
check a_contradiction_is_no_alarm [ "$status" = 0 ]
said a_contradiction_names_two_runs '^NO-DATA 1 peak_reserved_bytes of .*: [0-9]+ and 1[0-9]+ before, [0-9]+ .[0-9.]+ MiB. now; the results of OLD contradict each other: run 1 of 1.json and 1 of 2.json'
run compare "$tmp/old.json" "$tmp/both" --all
said the_new_result_set_is_named '^NO-DATA peak_reserved_bytes .*the results of NEW contradict each other: run 2 of 1.json and 2 of 2.json'
sed -E 's/("internal_fragmentation_at_peak": )[0-9.e-]+/\13.2345678901234567e-05/' "$tmp/old.json" >"$tmp/both/1.json"
sed -E 's/("internal_fragmentation_at_peak": )[0-9.e-]+/\1null/' "$tmp/old.json" >"$tmp/null.json"
cp "$tmp/null.json" "$tmp/both/2.json"
run compare "$tmp/both" "$tmp/old.json" --json -
check two_values_are_whole says '"metric": "internal_fragmentation_at_peak", "old": "3\.23456789012345[0-9]*e-05 and null", '
run compare "$tmp/null.json" "$tmp/old.json" --json -
check no_value_is_null says '"metric": "internal_fragmentation_at_peak", "old": null, "new": [0-9.e-]+, '
cp "$tmp/old.json" "$tmp/both/1.json"
cp "$tmp/earlier.json" "$tmp/both/2.json"
run compare "$tmp/both" "$tmp/old.json"
said ends_that_contradict '^NO-DATA .*all others of .*: the results of OLD contradict each other: run [12] of 1.json and [12] of 2.json'

# ---- times: only from repetitions
mkdir "$tmp/few" "$tmp/many" "$tmp/slow" "$tmp/slower"
for i in 1 2 3 4 5 6 7 8 9; do
    sed 's/"alloc_ns_p50": [a-z0-9]*/"alloc_ns_p50": '"$((1000 + i))/" "$tmp/old.json" >"$tmp/many/$i.json"
    sed 's/"alloc_ns_p50": [a-z0-9]*/"alloc_ns_p50": '"$((1100 + i))/" "$tmp/old.json" >"$tmp/slow/$i.json"
done
for i in 1 2 3 4 5 6 7 8 9; do sed 's/"alloc_ns_p50": [0-9]*/"alloc_ns_p50": '"$((1040 + i))/" "$tmp/many/$i.json" >"$tmp/slower/$i.json"; done
cp "$tmp"/slow/[1-8].json "$tmp/few"
run compare "$tmp/many" "$tmp/slow"
check slower_is_caught [ "$status" = 1 ]
said slower_is_told '^WORSE 1 alloc_ns_p50 of .* with policy .*x 1\.10'
p=$(unbroken | sed -nE 's/.*; p ([^ ]+) of all tests.*/\1/p' | head -n 1)
run compare "$tmp/many" "$tmp/slow" --json "$tmp/slow.verdicts"
json_p=$(sed -nE 's/.*"WORSE".*"old": null, "new": null, "change": 0\.09.*, "ratio": 1\.09[0-9]*, "low": 1\.0[0-9]*, "high": 1\.1[0-9]*, "p": ([^,]+),.*/\1/p' "$tmp/slow.verdicts" | head -n 1)
check json_has_the_ratio_and_the_corrected_p [ "$p" = "$(printf %.2g "$json_p")" ]
run compare "$tmp/many" "$tmp/many"
check the_same_times_are_no_alarm [ "$status" = 0 ]
run compare "$tmp/many" "$tmp/slower"
check four_percent_are_no_alarm [ "$status" = 0 ]
run compare "$tmp/many" "$tmp/slower" --effect 3
check unless_three_are_asked_for [ "$status" = 1 ]
run compare "$tmp/many" "$tmp/few"
said too_few_is_no_data '9 and 8 repetitions; each needs at least 9'
sed -i 's/^    "host": "[^"]*",$/    "host": "elsewhere",/' "$tmp"/slow/*.json
run compare "$tmp/many" "$tmp/slow"
check another_host_is_no_data [ "$status" = 0 ]

# ---- results that cannot be compared
"$ALLOCRIG" run -d sim -p growth -w order_flip --json "$tmp/other.json" >"$out"
"$ALLOCRIG" run -d sim:profile=h200 -p growth -w order_flip --json "$tmp/other_device.json" >"$out"
refuses another_device 2 'no run in common.* differ in the device: sim:profile=h100 in OLD, sim:profile=h200 in NEW; make both runs with the same$' compare "$tmp/other.json" "$tmp/other_device.json"
refuses nothing_in_common 2 'no run in common.* differ in the ' compare "$tmp/old.json" "$tmp/other.json"
"$ALLOCRIG" run -d sim -p growth -p bfc:framework=jax -w order_flip --json "$tmp/option.json" >"$out"
"$ALLOCRIG" run -d sim -p growth -p bfc -w order_flip --json "$tmp/two.json" >"$out"
sed '100,$s/"seed": 1/"seed": 7/' "$tmp/two.json" >"$tmp/seed.json"
run compare "$tmp/two.json" "$tmp/seed.json"
check another_seed_is_explained says '^order_flip with policy bfc is in both with another seed, and not compared\.$'
sed 's/"spec": "sim"/"spec": "sim:profile=h100"/' "$tmp/seed.json" >"$tmp/spec.json"
run compare "$tmp/two.json" "$tmp/spec.json"
check another_spec_of_the_device_is_not_the_reason says 'is in both with another seed, and not compared\.$'
run compare "$tmp/two.json" "$tmp/option.json"
check another_option_is_no_alarm [ "$status" = 0 ]
check another_option_is_explained says '^bfc and bfc:framework=jax are two policies here, and not compared: `run -p bfc -p bfc:framework=jax` shows both in one table\.$'
run compare "$tmp/two.json" "$tmp/other.json"
said a_missing_run_is_said '^NO-DATA 1 all of order_flip with policy bfc: missing'
check a_missing_run_is_no_alarm [ "$status" = 0 ]
check the_last_line_counts_it says '^1 run of OLD is missing in NEW: order_flip with policy bfc\. `--require-all` makes that a failure\.$'
run compare "$tmp/two.json" "$tmp/other.json" --require-all
check unless_all_are_required [ "$status" = 1 ]
check and_then_says_which_result_sets grep -q "allocrig: compare: 1 run of $tmp/two.json is missing in $tmp/other.json" "$err"
run compare "$tmp/two.json" "$tmp/other.json" --require-all --junit "$tmp/missing.xml" --annotations
check junit_agrees_on_the_missing_run grep -q '<testsuite name="compare" .* failures="1" ' "$tmp/missing.xml"
check and_has_it_as_a_failure grep -q '<failure type="missing" message="NO-DATA: .* missing: NEW has no such run' "$tmp/missing.xml"
check so_do_annotations says '^::error title=all is missing::order_flip with policy bfc'
check and_the_last_line_asks_for_nothing not says 'makes that a failure'
run compare "$tmp/two.json" "$tmp/other.json" --junit "$tmp/missing.xml"
check without_it_junit_skips_it grep -q '<testsuite name="compare" .* failures="0" ' "$tmp/missing.xml"
run compare "$tmp/other.json" "$tmp/two.json" --require-all
check a_new_run_is_none_of_them [ "$status" = 0 ]
check nothing_is_said_to_be_missing not says 'missing in NEW'
"$ALLOCRIG" run -d sim -p growth -p bfc -p best-fit -p first-fit -w order_flip -w random:events=500 --json "$tmp/eight.json" >"$out"
run compare "$tmp/eight.json" "$tmp/other.json" --require-all
check many_are_counted says '^7 runs of OLD are missing in NEW: .*, and 2 more\.$'
# A figure that is not there, is null, or is there with two values cannot have become worse.
for loss in gone null twice; do
    python3 - "$tmp/two.json" "$tmp/$loss.json" $loss <<'END'
import copy, json, sys
result = json.load(open(sys.argv[1]))
run = result["runs"][-1]
if sys.argv[3] == "twice":
    result["runs"].append(copy.deepcopy(run))
    run["metrics"]["peak_reserved_bytes"] += 1
elif sys.argv[3] == "null":
    run["metrics"]["peak_reserved_bytes"] = None
else:
    del run["metrics"]["peak_reserved_bytes"]
json.dump(result, open(sys.argv[2], "w"))
END
    run compare "$tmp/two.json" "$tmp/$loss.json"
    check "a_figure_that_is_${loss}_is_no_alarm" [ "$status" = 0 ]
    run compare "$tmp/two.json" "$tmp/$loss.json" --require-all --junit "$tmp/lost.xml"
    check "junit_too_$loss" grep -q '<testsuite name="compare" .* failures="1" ' "$tmp/lost.xml"
    check "but_is_with_require_all_$loss" [ "$status" = 1 ]
    check "and_is_named_$loss" grep -qE "1 figure of .*two.json has no single value in .*$loss.json, first peak_reserved_bytes of order_flip with policy bfc: " "$err"
done
run compare "$tmp/null.json" "$tmp/two.json" --require-all
check a_figure_that_was_not_there_is_none_of_them [ "$status" = 0 ]
run compare "$tmp/old.json" "$tmp/waste.json" --require-all
check worse_is_said_first grep -q 'figures are worse' "$err"
echo '{' >"$tmp/bad.json"
refuses no_json 2 'bad.json:' compare "$tmp/old.json" "$tmp/bad.json"
echo '{"schema": "x"}' >"$tmp/bad.json"
refuses another_schema 2 'not a result: its schema is x' compare "$tmp/old.json" "$tmp/bad.json"
: >"$tmp/empty.json"
printf '{"schema": [' >"$tmp/cut.json"
refuses an_empty_file 2 'empty.json:1: the file is empty; what wrote or copied it did not finish' compare "$tmp/old.json" "$tmp/empty.json"
refuses a_cut_file 2 'cut.json:1: the file ends in the middle' compare "$tmp/old.json" "$tmp/cut.json"
sed 's/"time": "20[0-9-]*/"time": "2020-01-01/' "$tmp/old.json" >"$tmp/before.json"
run compare "$tmp/old.json" "$tmp/before.json"
check swapped_sets_are_suspected says '^NEW was measured before OLD: are the two swapped\?$'
run compare "$tmp/before.json" "$tmp/old.json"
check sets_in_order_are_not eval '! grep -q swapped "$out"'
refuses no_file 2 'cannot be read' compare "$tmp/old.json" "$tmp/none.json"
refuses one_result_set 2 'name two result sets' compare "$tmp/old.json"
finish
