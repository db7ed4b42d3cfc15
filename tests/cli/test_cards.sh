#!/bin/bash
# Cards of any size: capacities above the default card's, profiles of other cards, and the card that a
# recording names.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
gib=1073741824
large=$tmp/large.trace

# 25 blocks of 4 GiB, a step, and once more with one free between them: 100 GiB live.
{
    printf '# allocrig-trace 1\n# name: large\n# recorder: torch 2.9.0\n'
    for i in {0..24}; do echo "a,$i,$((4 * gib))"; done
    echo m,step
    printf 'f,3\na,25,%d\nm,step\n' $((4 * gib))
} >"$large"

sizes='141 192 288'
long 'cards_of_141_and_192_GiB' || sizes=288
for size in $sizes; do
    run run -p torch -p greedy -p vmm -w "$large" -d "sim:capacity=${size}GiB" --require-pass
    check "run_at_$size" says "sim h100, $size\\.0 GiB, costs of h100\$"
    check "all_pass_at_$size" [ "$status" = 0 ]
    run advise "$large" --capacity "${size}GiB" --jobs 2
    check "advise_at_$size" says "^Fits in $size\\.0 GiB as it is"
    check "needs_of_$size" grep -qE '^->1 +102400\.0 +102400\.0 +yes ' "$out"
    check "costs_at_$size" says '^Costs of driver calls: those of the profile h100\.$'
    run explain "$large" -p torch -d "sim:capacity=${size}GiB"
    check "explain_at_$size" says 'every request was served'
done
run capacity -p torch -w "$large" -d sim
check capacity_beyond_the_card grep -qE '^1  torch +102400\.0  102400\.0 +1\.000 ' "$out"
refuses a_capacity_that_is_searched 2 'leave capacity=141GiB out of the device' capacity -p torch -w "$large" -d sim:capacity=141GiB
if long a_limit_above_the_card; then
    run advise "$large" --limit 141GiB --jobs 2
    check a_limit_above_the_card says '^Fits in 141\.0 GiB as it is'
fi
run run -p torch -w "$large" -d sim:profile=h200
check the_card_by_name says 'sim h200, 139\.[0-9] GiB'

awk '{ print } /^a,/ { print "k,0,200000" }' "$large" >"$tmp/kernels.trace"
run capacity -p torch -w "$tmp/kernels.trace" --curve
check the_curve_goes_beyond_the_card grep -qE '^torch +1\.[0-9]+ +1\.[0-9]+ ' "$out"

# Without a size the card is not known, and the page says so.
run advise "$large" --jobs 2
check advise_assumes says '^Card unknown: none is recorded, so the capacity is that of the profile h100'
check advise_finds_what_it_needs grep -qE '^ *1 +102400\.0 +102400\.0 +no ' "$out"
run explain "$large" -p torch
check explain_assumes says '^Card unknown: none is recorded'
check explain_finds_what_it_needs says 'passes with a capacity of 100\.0 GiB and above'

# A recording that says more.
with() { # LINE: the trace with that header
    sed "2i # $1" "$large" >"$tmp/with.trace"
}
with 'card: NVIDIA H200'
run advise "$tmp/with.trace" --jobs 2
check the_recorded_card says '^Capacity: that of NVIDIA H200, the recorded card, by the profile h200\.$'
check fits_the_recorded_card says '^Fits in 139\.[0-9] GiB as it is'
run explain "$tmp/with.trace" -p torch
check explain_takes_it says '^Capacity: that of NVIDIA H200'
run run -p torch -w "$tmp/with.trace"
check run_names_it says '^large was recorded on NVIDIA H200 and runs here on h100: -d sim:profile=h200 is that card\.$'
run run -p torch -w "$tmp/with.trace" -d sim:profile=h200
check run_on_it not says 'was recorded on'
run capacity -p torch -w "$tmp/with.trace"
check capacity_names_it says '^large was recorded on NVIDIA H200, with 139\.[0-9] GiB by the profile h200'
with 'card: Tesla K80'
run explain "$tmp/with.trace" -p torch
check a_card_without_a_profile says '^Card unknown: there is no profile of Tesla K80'
run run -p torch -w "$tmp/with.trace" -d sim
check run_without_a_profile says '^large was recorded on Tesla K80, of which there is no profile, and runs here on h100'
run capacity -p torch -w "$tmp/with.trace"
check capacity_without_a_profile says '^large was recorded on Tesla K80, of which there is no profile\. The capacities do not'
# 96 GiB less the 531 MiB that the profile h100 keeps of its card: 97773 MiB, 95.48 GiB.
with "capacity: $((96 * gib))"
run run -p torch -w "$tmp/with.trace" -d sim
check run_with_a_total says '^large was recorded on a card with 95\.48 GiB for a process and runs here on h100: -d sim:capacity=97773MiB is that'
run explain "$tmp/with.trace" -p torch
check the_recorded_total says '^Capacity: the recorded memory of the recorded card, without the context of a process\.$'
check the_recorded_total_is_it grep -qE '^  capacity +95\.48 GiB' "$out"
run advise "$tmp/with.trace" --jobs 2
check advise_says_the_recorded_total says '^Capacity: the recorded memory of the recorded card, without the context of a process\.$'
for mib in 300 512; do
    with "capacity: $((mib << 20))"
    run explain "$tmp/with.trace" -p torch
    check "a_small_total_$mib" says '^Capacity: the recorded memory of the recorded card, all of it'
    check "a_small_total_is_it_$mib" grep -qE "^  capacity +$mib\.0+ MiB" "$out"
done
# 84 GiB were reserved and 3 free.
{
    cat "$large"
    printf '!,segment_alloc,0,%d\na,26,%d\n!,oom,%d\nr,26\n' $((84 * gib)) $((4 * gib)) $((3 * gib))
} >"$tmp/failed.trace"
run explain "$tmp/failed.trace" -p torch
check what_the_driver_said says '^Capacity: as recorded; the bytes that were reserved when event 30 failed'
check what_the_driver_said_is_it grep -qE '^  capacity +87\.00 GiB' "$out"
run advise "$tmp/failed.trace" --jobs 2 --json -
check the_driver_in_json grep -q '"capacity_from": "driver"' "$out"
check the_bytes_in_json grep -q "\"capacity_bytes\": $((87 * gib))," "$out"
sed "s/^!,oom,.*/!,oom,$((90 * gib))/" "$tmp/failed.trace" >"$tmp/limited.trace"
run explain "$tmp/limited.trace" -p torch
check free_bytes_were_enough says 'They were enough for the request: it failed because of a limit of the program'
finish
