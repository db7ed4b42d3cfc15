#!/bin/bash
# `calibrate`: a profile is written whole or not at all, says where it comes from, and is read by `sim`.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
card=tests/support/card.profile
export CUDA_VISIBLE_DEVICES= # without a card, also where there is one

refuses no_card 3 'calibrate: it measures a real card, .*; run it on the machine with the card' calibrate -o "$tmp/none.profile"
check no_card_leaves_nothing [ -z "$(find "$tmp" -name 'none*')" ]
refuses no_file 2 'no output file is given.*calibrate -o FILE' calibrate
refuses file_without_option 2 'x.profile.*belongs to no option' calibrate x.profile
refuses file_twice 2 '--output is given twice' calibrate -o a -o b
refuses no_place 2 'no/such/x: cannot be written' calibrate -d sim -o "$tmp/no/such/x"
refuses no_pages 2 'nothing to measure' calibrate -d sim:profile=bump -o "$tmp/none.profile"
refuses too_small 2 'calibrating needs 256 MiB' calibrate -d sim:capacity=64MiB -o "$tmp/none.profile"
refuses bad_name 2 'is not a valid name for a profile' calibrate -d sim -o "$tmp/a b.profile"
refuses long_name 2 '1 to 63 characters' calibrate -d sim -o "$tmp/x" --name "$(printf 'x%.0s' {1..64})"
refuses disk_full 2 '/dev/full: cannot be written' calibrate -d sim -o /dev/full
check nothing_is_left [ -z "$(find "$tmp" -type f ! -name 'std*')" ]

run calibrate -d "sim:profile=$card" -o "$tmp/one.profile"
[ "$status" = 0 ] && [ ! -s "$err" ]
verdict measures $?
check says_where grep -qx "wrote $tmp/one.profile" "$out"
check says_how_to_use_it grep -qx "use it with -d sim:profile=$tmp/one.profile" "$out"
check says_how_well grep -qE '^alloc +[0-9]+ .* 1\.00 +100$' "$out"
check has_a_name grep -qx 'name: one' "$tmp/one.profile"
check has_a_source grep -qE '^source: allocrig [0-9.]+ calibrate of device sim, profile card' "$tmp/one.profile"
check has_known_costs grep -qx 'cost: alloc_held 67108864 94440' "$tmp/one.profile"
check has_busy_costs grep -qx 'busy_cost: alloc 2097152 159117' "$tmp/one.profile"
run calibrate -d "sim:profile=$card" -o "$tmp/two.profile" --name one
check is_the_same cmp "$tmp/one.profile" "$tmp/two.profile"
run calibrate -d "sim:profile=$card" -o - --name one
check to_standard_output cmp "$tmp/one.profile" "$out"
run run -p direct -p torch -w gradient_tape -d "sim:profile=$tmp/one.profile" --json "$tmp/new.json"
check is_read [ "$status" = 0 ]
run run -p direct -p torch -w gradient_tape -d "sim:profile=$card" --json "$tmp/old.json"
# Between the sizes that were measured both lie on lines of their own.
ratio() { sed -n 's/.*"driver_time_ns": \([0-9]*\).*/\1/p' "$1" | head -n 1; }
awk -v a="$(ratio "$tmp/old.json")" -v b="$(ratio "$tmp/new.json")" 'BEGIN { exit !(a > 0 && b > 0.97 * a && b < 1.03 * a) }'
verdict tells_what_the_card_does $?

# Launches that wait for room in a full queue never get a card further ahead.
check short_queue_ends quietly "$ALLOCRIG" calibrate -d "sim:profile=$card,launch_queue=16" -o "$tmp/queue.profile"
# 0 is an address as any other, and where a profile begins that does not say.
grep -v '^first_address' "$card" >"$tmp/zero-card.profile"
check from_address_0 quietly "$ALLOCRIG" calibrate -d "sim:profile=$tmp/zero-card.profile" -o "$tmp/zero.profile"
check from_address_0_is_the_same cmp <(grep cost "$tmp/zero.profile") <(grep cost "$tmp/one.profile")

# A card whose second call after a rest pays a part of it again.
(cat "$card" && printf '%s\n' 'rest_cost: alloc 10000 0' 'rest_cost: alloc 30000 3000' 'rest_again_percent: alloc 10' \
    'rest_cost: pool_alloc 700000 0' 'rest_cost: pool_alloc 2000000 250' 'rest_again_percent: pool_alloc 28') >"$tmp/again-card.profile"
run calibrate -d "sim:profile=$tmp/again-card.profile" -o "$tmp/again.profile"
check again_is_given_back [ "$(grep '^rest_again' "$tmp/again.profile")" = "$(grep '^rest_again' "$tmp/again-card.profile")" ]
check again_is_taken_out grep -qx 'cost: alloc_held 67108864 94440' "$tmp/again.profile"

# A card that says how long works take.
(cat "$card" && printf 'work: %s\n' 'set 4096 1700' 'set 268435456 95000' 'reduce 131072 2400') >"$tmp/works-card.profile"
run calibrate -d "sim:profile=$tmp/works-card.profile" -o "$tmp/works.profile"
check works_are_given_back grep -qx 'work: set 4096 1700' "$tmp/works.profile"
check works_are_given_back_at_the_end grep -qx 'work: set 268435456 95000' "$tmp/works.profile"
check works_of_several_sizes [ "$(grep -c '^work: set ' "$tmp/works.profile")" = 9 -a "$(grep -c '^work: ' "$tmp/works.profile")" = 9 ]
check none_where_the_card_has_none [ "$(grep -c '^work: ' "$tmp/one.profile")" = 0 ]
check none_again_without_rests [ "$(grep -c '^rest_' "$tmp/one.profile")" = 0 ]

# -- the median of several, which are there
for made in a:100:1:580.1 b:300:2:580.1 c:201:9:570.2; do
    IFS=: read -r name cost rest driver <<<"$made"
    printf '%s\n' '# allocrig-profile 1' "name: $name" 'card: A card' "driver: $driver" "source: of 2026-11-2$rest" \
        'total_bytes: 85017493504' 'usable_bytes: 84460699648' 'page_bytes: 2097152' 'granule_bytes: 512' \
        "cost: create 2097152 $cost" 'cost: access 2097152 70' 'rest_cost: create 10000 0' "rest_cost: create 10000$rest 5$rest" \
        "rest_again_percent: create 2$rest" >"$tmp/$name.profile"
done
median=(calibrate --median "$tmp/a.profile" "$tmp/b.profile" "$tmp/c.profile")
run "${median[@]}" -o "$tmp/m.profile"
[ "$status" = 0 ] && [ "$(grep -c '^note: .*does not have the clock of its host' "$err")" = 3 ] && grep -qx "wrote $tmp/m.profile, the median of 3 calibrations" "$out"
verdict median_is_made $?
check median_of_costs grep -qx 'cost: create 2097152 201' "$tmp/m.profile"
check median_of_rests grep -qx 'rest_cost: create 100002 52' "$tmp/m.profile"
check median_of_what_is_paid_again grep -qx 'rest_again_percent: create 22' "$tmp/m.profile"
check median_has_a_name grep -qx 'name: m' "$tmp/m.profile"
check median_has_all_drivers grep -qx 'driver: 580.1, 570.2' "$tmp/m.profile"
check median_has_its_sources grep -qE '^source: allocrig [0-9.]+ calibrate: median of 3 calibrations: a.profile \(2026-11-21\), b.profile \(2026-11-22\), c.profile \(2026-11-29\)$' "$tmp/m.profile"
run "${median[@]}" -o - --name m
check median_to_standard_output cmp "$tmp/m.profile" "$out"
check median_is_read quietly "$ALLOCRIG" run -p vmm -w gradient_tape -d "sim:profile=$tmp/m.profile"
run calibrate --median sim/profiles/h100.profile sim/profiles/h100.profile -o "$tmp/twice.profile"
constants() { grep -vE '^(#|name:|source:)' "$1"; }
check one_twice_is_itself cmp <(constants sim/profiles/h100.profile) <(constants "$tmp/twice.profile")

for host in a:30000 b:60000; do
    sed "s/^granule_bytes.*/&\nhost_clock_ps: ${host#*:}/" "$tmp/${host%%:*}.profile" >"$tmp/host_${host%%:*}.profile"
done
run calibrate --median "$tmp/host_a.profile" "$tmp/host_b.profile" --host-clock 37.5 -o "$tmp/host.profile"
[ ! -s "$err" ]
verdict no_note_where_all_state_it $?
check median_for_a_host grep -qx 'host_clock_ps: 37500' "$tmp/host.profile"
driver_ns() {
    "$ALLOCRIG" run -p vmm -w gradient_tape:steps=2 -d "sim:profile=$tmp/host.profile$1" --json - 2>/dev/null |
        sed -n 's/^ *"driver_time_ns": \([0-9]*\).*/\1/p'
}
slow=$(driver_ns ,host_clock_ns=75) usual=$(driver_ns '')
check a_slow_host_takes_longer [ $((100 * slow)) -ge $((199 * usual)) -a $((100 * slow)) -le $((201 * usual)) -a "$usual" -gt 10000 ]
# The built-in profile that is one is what its script makes of the published calibrations.
quietly env ALLOCRIG="$ALLOCRIG" results/published/h100/make_profile.sh "$tmp/rested.profile"
check h100_rested_is_made_so cmp "$tmp/rested.profile" sim/profiles/h100-rested.profile
refuses a_host_of_which_nothing_is_known 2 'option host_clock_ns: the profile h100 has no line host_clock_ps' run -p growth -w order_flip -d sim:host_clock_ns=30
refuses host_clock_of_nothing 2 'host-clock is "1e-9"; it must be a number from 0.001' calibrate --median "$tmp/host_a.profile" "$tmp/host_b.profile" --host-clock 1e-9 -o "$tmp/none.profile"
sed 's/^host_clock_ps.*/host_clock_ps: 1/; s/^cost: create 2097152 .*/cost: create 2097152 1152921504606846975/' "$tmp/host_a.profile" >"$tmp/host_odd.profile"
refuses median_of_costs_beyond_all 2 'calibrate: .*/host_odd.profile: its costs are of a host with host_clock_ps 1, .* above 2\^60 ns' calibrate --median "$tmp/host_odd.profile" "$tmp/host_b.profile" -o "$tmp/none.profile"
refuses device_of_costs_beyond_all 2 'option host_clock_ns: .* above 2\^60 ns' run -p growth -w order_flip -d "sim:profile=$tmp/host_odd.profile,host_clock_ns=30"
refuses host_clock_alone 2 '--host-clock needs --median' calibrate --host-clock 30 -d sim -o "$tmp/none.profile"
refuses median_for_a_host_it_does_not_know 2 'has no line host_clock_ps, so it cannot be brought to another host' "${median[@]}" --host-clock 30 -o "$tmp/none.profile"
check measures_a_card quietly sim/profiles/measure.sh other "$tmp/other.profile" -d sim:profile=h200
check a_measured_card_has_its_costs grep -q '^cost: alloc ' "$tmp/other.profile"
check a_measured_card_has_its_own not grep -qE '^(costs_of|memory):' "$tmp/other.profile"
refuses median_of_none 2 'two or more profiles; write calibrate --median PROFILE PROFILE.. -o FILE' calibrate --median -o "$tmp/none.profile"
refuses median_of_costs_of_another_card 2 'l4.profile has the costs of h100, which is no measurement' \
    calibrate --median sim/profiles/l4.profile sim/profiles/l4.profile -o "$tmp/none.profile"
refuses median_of_one 2 'two or more profiles' calibrate --median "$card" -o "$tmp/none.profile"
refuses median_into_nothing 2 'no output file is given.*--median PROFILE PROFILE.. -o FILE' "${median[@]}"
refuses median_of_a_device 2 '--median measures nothing, so --device has' "${median[@]}" -d sim -o "$tmp/none.profile"
refuses median_cold 2 '--median measures nothing, so --cold has' "${median[@]}" --cold -o "$tmp/none.profile"
refuses median_of_no_file 2 'no/such.profile cannot be read' "${median[@]}" no/such.profile -o "$tmp/none.profile"
refuses median_of_no_profile 2 'README.md, line 1: a profile starts with' "${median[@]}" README.md -o "$tmp/none.profile"
refuses median_of_two_cards 2 "$tmp/a.profile is of A card and $card of NVIDIA H100 80GB HBM3.* one kind of card" "${median[@]}" "$card" -o "$tmp/none.profile"
sed 's/^page_bytes: .*/page_bytes: 65536/' "$tmp/b.profile" >"$tmp/pages.profile"
refuses median_of_other_pages 2 "page_bytes is 2097152 in $tmp/a.profile and 65536 in $tmp/pages.profile" "${median[@]}" "$tmp/pages.profile" -o "$tmp/none.profile"
(cat "$tmp/b.profile" && echo 'waits: none') >"$tmp/waits.profile"
refuses median_of_other_waits 2 "a.profile and $tmp/waits.profile do not say that the same calls wait" "${median[@]}" "$tmp/waits.profile" -o "$tmp/none.profile"
refuses median_over_an_input 2 'would overwrite' "${median[@]}" -o "$tmp/b.profile"
refuses median_disk_full 2 '/dev/full: cannot be written' "${median[@]}" -o /dev/full
check refused_medians_leave_nothing [ -z "$(find "$tmp" -name 'none*')" ]

# -- the real device, over a stand-in for the driver
stand_in=.build/$TEST_VARIANT/tests/cuda_stand_in
if [ ! -e "$stand_in/libcuda.so.1" ]; then
    echo 'skip on_the_stand_in: it was not built, since no CUDA toolkit is here'
    finish
fi
export LD_LIBRARY_PATH=$stand_in STAND_IN_BYTES=1610612736 STAND_IN_REPORT=$tmp/report
# It rests for half a minute between calls; with a clock of its own no time passes.
if "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -o "$tmp/virtual_clock.so" tests/cli/virtual_clock.c; then
    printf '#!/bin/sh\nLD_PRELOAD=%s exec "%s" "$@"\n' "$tmp/virtual_clock.so" "$ALLOCRIG" >"$tmp/rig"
    chmod +x "$tmp/rig"
    ALLOCRIG=$tmp/rig
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
fi
STAND_IN_TIME=1 run calibrate -o "$tmp/card.profile"
[ "$status" = 0 ] && [ ! -s "$err" ]
verdict on_the_stand_in $?
check card_that_waits grep -qx 'waits: free' "$tmp/card.profile"
check card_in_the_header grep -q '^card: ' "$tmp/card.profile"
check card_is_dated grep -qE "^source: allocrig [0-9.]+ calibrate of device cuda, 20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]+Z; means" "$tmp/card.profile"
check context_in_the_header grep -qE '^context_bytes: [1-9][0-9]{7,}$' "$tmp/card.profile"
check card_of_a_few_points [ "$(grep -c '^cost: alloc ' "$tmp/card.profile")" -gt 10 ]
check card_is_read quietly "$ALLOCRIG" run -p torch -w gradient_tape -d "sim:profile=$tmp/card.profile"
# A report for each process, with its number at the end of the name.
check nothing_left_on_the_card awk '$1 != "calls" { bad = 1 } END { exit bad || !NR }' "$tmp"/report.*
if long cold_caches; then
    VIRTUAL_CLOCK_NS=400000 run calibrate --cold -o "$tmp/cold.profile"
    [ "$status" = 0 ] && grep -qE '^source: allocrig [0-9.]+ calibrate --cold of device cuda' "$tmp/cold.profile"
    verdict cold_caches $?
fi
STAND_IN_FAIL=cuMemMap:40:700 refuses driver_fails 3 'calibrating: map failed: .*cuMemMap' calibrate -o "$tmp/failed.profile"
check failed_leaves_nothing [ -z "$(find "$tmp" -name 'failed*')" ]
STAND_IN_FAIL=cuMemAlloc:700 run calibrate -o "$tmp/refused.profile"
check a_refused_allocation_is_left_out [ "$status" = 0 ]
finish
