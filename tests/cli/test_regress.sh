#!/bin/bash
# `make regress` from end to end, with a policy in a shared object (planted.c): a regression planted in its
# code is detected, in exact figures and in counts of instructions, and an unchanged policy raises no
# alarm. Release only, because callgrind counts the instructions of a plain build. Nothing is timed.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
if [ "$TEST_VARIANT" != release ]; then
    echo "skip regress: callgrind counts the release build only"
    exit 0
fi
flock .build make -s .build/release/bench/micro/instructions || exit 1
counting=yes
command -v valgrind >/dev/null || counting=no
so=$tmp/planted.so
plant() { # FLAGS...: builds the policy, always under one name, as a change to a program would
    "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -shared -fPIC -I. "$@" tests/cli/planted.c -o "$so" || exit 1
}
# gate MODE: its status is in $status, the table in $out
gate() {
    ALL=1 REGRESS_WORK=$tmp/work BASELINE=$tmp/base POLICIES=$so bench/regress/regress.sh "$1" .build/release >"$out" 2>"$err"
    status=$?
}
# said NAME REGEX: a row of the table matches; it may be broken over several lines
said() {
    awk '/^ / { printf " %s", $0; next } { printf "\n%s", $0 } END { print "" }' "$out" | tr -s ' ' | grep -qE -e "$2"
    verdict "$1" $?
}
refused() { # NAME REGEX
    [ "$status" = 2 ] && grep -qE "$2" "$err"
    verdict "$1" $?
}

gate regress
refused no_baseline_is_said 'no baseline in .*: make baseline writes it'
plant
gate baseline
check baseline_is_written [ "$status" = 0 -a -s "$tmp/base/results.json" ]
rounds=1 # one figure that is not the same each time would be among three hundred
[ "${TEST_SOAK:-0}" != 1 ] || rounds=2
for ((i = 1; i <= rounds; i++)); do
    gate regress
    check "unchanged_raises_no_alarm_$i" [ "$status" = 0 ]
    said "unchanged_is_all_the_same_$i" '^[0-9]{3,} figures SAME, 0 BETTER, 0 WORSE, 0 AMBIGUOUS, 0 NO-DATA'
done

# What follows needs no more than two workloads.
printf '%s\n' '[suite]' 'name = small' 'metrics = exact' '[policies]' all '[workloads]' random:events=20000,seed=2 \
    gradient_tape:steps=4 '[devices]' sim:profile=h100 >"$tmp/small.ini"
export SUITE=$tmp/small.ini
gate baseline
check another_suite_is_run grep -q 'gradient_tape' "$tmp/base/results.json"

# About 5 % more instructions: the number of turns of a loop is computed from a first measurement.
if [ $counting = yes ]; then
    count() { awk -F'"instructions": ' '/"measure": "none"/ { print $2 + 0 }' "$1"; }
    before=$(count "$tmp/base/instructions.json")
    plant -DPLANT_WORK=10
    gate regress
    ten=$(count "$tmp/work/now/instructions.json")
    turns=$(awk -v a="$before" -v b="$ten" 'BEGIN { n = int(0.05 * a / ((b - a) / 10) + 0.5); print n ? n : 1 }')
    plant -DPLANT_WORK="$turns"
    gate regress
    five=$(count "$tmp/work/now/instructions.json")
    echo "  $before instructions an operation, with $turns turns of a loop $five"
    check five_percent_are_planted awk -v a="$before" -v b="$five" 'BEGIN { exit !(b / a > 1.02 && b / a < 1.08) }'
    check five_percent_more_instructions_fail [ "$status" = 1 ]
    said five_percent_more_instructions_are_told '^WORSE instructions [0-9.]+ [0-9.]+ [2-7]\.[0-9]+ % worse'
    check nothing_else_is_told [ "$(grep -c '^WORSE' "$out")" -le 2 ]
else
    echo "skip regress_instructions: valgrind is not installed"
fi

export NOINSTRUCTIONS=1 # exact figures
plant -DPLANT_WASTE=3
gate regress
check waste_fails [ "$status" = 1 ]
check the_baseline_is_named grep -qx "Compared with $tmp/base:" "$out"
check a_failure_says_what_to_do grep -qx "make baseline POLICIES=$so SUITE=$SUITE BASELINE=$tmp/base NOINSTRUCTIONS=1" "$out"
sed -n '/^cat >>/,/^END$/p' "$out" | bash # the waiver, as it is to be typed
gate regress
check with_the_waiver_it_is_green [ "$status" = 0 ]
check the_file_of_waivers_is_named grep -qx "Compared with $tmp/base, with the waivers of $tmp/base/waivers.ini:" "$out"
# The example of the manual, for this policy.
sed -n '/^      \[waiver/,/^      until/s/^      //p' bench/regress/README.md | sed "s,best-fit,$so,; s/2027-01-31/2999-12-31/" >"$tmp/base/waivers.ini"
gate regress
check the_waiver_of_the_manual_is_green [ "$status" = 0 -a "$(grep -c ^policy "$tmp/base/waivers.ini")" = 1 ]
sed -i 's/^policy.*/&\nmetric = peak_*/' "$tmp/base/waivers.ini"
gate regress
check a_waiver_of_some_figures_is_not [ "$status" = 1 ]
said and_the_others_are_named '^Worse and without a waiver: .*overhead, .* \([0-9]+ rows\)\.'
rm "$tmp/base/waivers.ini"
gate regress
said waste_is_told '^WORSE peak_granted_bytes [0-9]+ [0-9]+ 2\.[0-9]+ % worse|^WORSE peak_granted_bytes [0-9]+ [0-9]+ 3\.0* % worse'
plant -DPLANT_END=3000
gate baseline
plant -DPLANT_END=2999
gate regress
check an_event_earlier_fails [ "$status" = 1 ]
said an_event_earlier_is_told '^WORSE outcome DNF @ [0-9]+ .* ?DNF @ [0-9]+ .*fails earlier'

unset NOINSTRUCTIONS

# Two programs in turn: too few pairs for times is reported; without times, only figures and counts are compared.
plant
times() { # PAIRS
    PAIRS=$1 BASE_PROGRAM=.build/release/allocrig REGRESS_WORK=$tmp/work POLICIES=$so NOINSTRUCTIONS=${2:-1} bench/regress/regress.sh times .build/release >"$out" 2>"$err"
    status=$?
}
printf '%s\n' '[suite]' 'metrics = exact' '[policies]' all '[workloads]' order_flip '[devices]' sim >"$tmp/tiny.ini"
SUITE=$tmp/tiny.ini times 2
check two_pairs_are_no_data [ "$status" = 0 ]
said two_pairs_are_said '^NO-DATA .* 2 and 2 repetitions; each needs at least 9'
check both_programs_were_measured [ "$(find "$tmp/work/times" -name '00[12].json' | wc -l)" = 4 ]
times 0 0
check the_program_is_named grep -qx 'Compared with .build/release/allocrig, built and run here (no times):' "$out"
check its_files_are_of_the_base [ -s "$tmp/work/base.md" -a -s "$tmp/work/base.xml" -a ! -e "$tmp/work/times.xml" ]
check without_times_nothing_is_missing grep -qE '^[0-9]{3,} figures SAME, 0 BETTER, 0 WORSE, 0 AMBIGUOUS, 0 NO-DATA' "$out"
[ $counting = no ] || check counts_of_both_are_there [ -s "$tmp/work/times/old/instructions.json" -a -s "$tmp/work/times/new/instructions.json" ]
PAIRS=many times many
refused no_number_of_pairs 'PAIRS=many is no number'
BASE=nothing REGRESS_WORK=$tmp/work bench/regress/regress.sh times .build/release >"$out" 2>"$err"
status=$?
refused no_commit 'BASE=nothing is no commit'
BASE=nothing gate regress
refused no_commit_is_told_at_once 'BASE=nothing is no commit'
check nothing_was_measured_then [ ! -s "$out" ]

# On a card, with a stand-in for the driver: the same without counts; times need two programs.
stand_in=$PWD/.build/release/tests/cuda_stand_in
if [ -e "$stand_in/libcuda.so.1" ]; then
    export LD_LIBRARY_PATH=$stand_in STAND_IN_REPORT=$tmp/left DEVICE=cuda
    gate baseline
    check a_card_has_a_baseline [ "$status" = 0 -a -s "$tmp/base/results.json" ]
    gate regress
    check a_card_raises_no_alarm [ "$status" = 0 ]
    said a_card_is_compared '^[0-9]{2,} figures SAME, 0 BETTER, 0 WORSE'
    plant -DPLANT_WASTE=3
    gate regress
    check waste_on_a_card_fails [ "$status" = 1 ]
    plant
    times 1
    check programs_in_turn_on_a_card [ "$status" = 0 ]
else
    echo "skip regress_on_a_card: the stand-in for the driver is not built"
fi
finish
