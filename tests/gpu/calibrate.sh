#!/bin/bash
# `allocrig calibrate` on a card: done in under two minutes, every kind of call measured, and nothing left on the
# card. The table that holds the profile against the card is printed; how near it must come is not judged here.
set -u
cd "$(dirname "$0")/../.." || exit 2
ALLOCRIG=${ALLOCRIG:-./allocrig}
TEST_TMP=${TEST_TMP:-$(mktemp -d)}
passed=0 failed=0

judge() { # NAME STATUS
    if [ "$2" = 0 ]; then
        echo "ok $1" && passed=$((passed + 1))
    else
        echo "not ok $1" && failed=$((failed + 1))
    fi
}

profile=$TEST_TMP/card.profile
began=$SECONDS
"$ALLOCRIG" calibrate -o "$profile"
judge calibrates $?
took=$((SECONDS - began))
echo "took $took s"
[ "$took" -lt 120 ]
judge in_two_minutes $?
for kind in alloc alloc_held alloc_shared free free_held free_shared reserve release create destroy map map_again \
    access access_more unmap unmap_more event event_poll launch pool_alloc pool_grow pool_pending pool_free pool_trim; do
    grep -qE "^cost: $kind [0-9]+ [1-9]" "$profile" && grep -qE "^busy_cost: $kind [0-9]+ [1-9]" "$profile"
    judge "measures_$kind" $?
done
for kind in event_known pool_first; do
    grep -qE "^cost: $kind [0-9]+ [1-9]" "$profile"
    judge "measures_$kind" $?
done
for kind in alloc alloc_shared free create map access reserve; do
    grep -qE "^rest_cost: $kind [0-9]+ [1-9]" "$profile"
    judge "measures_rests_of_$kind" $?
done
for work in matmul_{f32,tf32,f16,bf16} thin_{f32,tf32,f16,bf16} elementwise copy set reduce strip_{32,16} gather gather_rows \
    scatter_add_{f32,f16,bf16} scatter_rows; do
    [ "$(grep -cE "^work: $work [0-9]+ [1-9]" "$profile")" -ge 5 ]
    judge "measures_work_$work" $?
done
for key in card driver hypervisor host_clock_ps total_bytes usable_bytes context_bytes; do
    grep -qE "^$key: [^0]" "$profile"
    judge "says_$key" $?
done
grep -qE '^waits: .*free' "$profile"
judge a_free_waits $?
"$ALLOCRIG" run -p torch -w gradient_tape -d "sim:profile=$profile" >/dev/null
judge the_profile_is_read $?
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
