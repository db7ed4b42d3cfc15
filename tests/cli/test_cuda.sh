#!/bin/bash
# The real device without a card: the program on a stand-in for the driver
# (tests/support/cuda_stand_in). What it says where there is none; that it does what the simulated
# device does; that whatever call fails, the run ends as a run and nothing stays behind.
set -u
# shellcheck source=tests/cli/lib.bash
. tests/cli/lib.bash

stand_in=$PWD/.build/$TEST_VARIANT/tests/cuda_stand_in
report=$TEST_TMP/report cards=0
if [ ! -f "$stand_in/libcuda.so.1" ]; then
    echo "skip cuda: the stand-in was not built, since cuda.h was not found"
    exit 0
fi
if "$ALLOCRIG" list devices cuda | grep -q 'without nvcc'; then
    echo "skip cuda: the program has no kernels, since nvcc was not found"
    exit 0
fi
export LD_LIBRARY_PATH=$stand_in STAND_IN_REPORT=$report

# A program with everything that reaches the device: streams, events, kernels, waits, steps,
# memory beside the pool, caches given back.
trace=$TEST_TMP/all.trace
cat >"$trace" <<'END'
# allocrig-trace 1
a,0,4000000
a,1,700
k,0,20000
a,2,30000000,1
k,1,15000
u,0,1
f,1
e,1,0
w,1,1
f,0
a,3,9000000,1
o,50000000
k,1,5000
f,2
m,step
a,4,600000
a,5,25000000
s,1
f,3
k,0,3000
f,4
c
a,6,64000000
o,20000000
f,5
f,6
s
m,step
END

# What the processes of the last run held and called.
reports() { cat "$report".* 2>/dev/null; }
# reported: the same in `said`, behind a line's end
reported() {
    local file text
    said=$'\n'
    for file in "$report".*; do
        [ -f "$file" ] || continue
        IFS= read -r -d '' text <"$file"
        said+=$text
    done
}
# on_card ARGUMENTS...: one repetition, whose calls can be told
on_card() {
    report=$TEST_TMP/report$((++cards))
    export STAND_IN_REPORT=$report
    "$ALLOCRIG" run --reps 1 "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# ---- no device ----------------------------------------------------------------------------------

none=$TEST_TMP/none
mkdir -p "$none"
: >"$none/libcuda.so.1"
without_driver() { (export LD_LIBRARY_PATH=$none && "$@"); }
without_driver refuses no_driver 3 'there is no NVIDIA driver on this machine' run -p direct -w "$trace" -d cuda
without_driver "$ALLOCRIG" list devices cuda >"$out"
check list_says_that_there_is_no_driver grep -q '^Not available: there is no NVIDIA driver' "$out"

export STAND_IN_CARDS=0
refuses no_card_visible 3 'the NVIDIA driver sees no card.*CUDA_VISIBLE_DEVICES' run -p direct -w "$trace" -d cuda
"$ALLOCRIG" list devices cuda >"$out"
check list_says_that_no_card_is_visible grep -q '^Not available: the NVIDIA driver sees no card' "$out"
unset STAND_IN_CARDS

export STAND_IN_VERSION=11040
refuses too_old_a_driver 3 'offers CUDA 11\.4, which has no cuGetProcAddress.*CUDA 12\.0 or later' \
    run -p direct -w "$trace" -d cuda
unset STAND_IN_VERSION
export STAND_IN_WITHOUT=cuEventQuery
refuses a_driver_that_lacks_a_function 3 'lacks the function cuEventQuery.*from CUDA 2\.0' \
    run -p direct -w "$trace" -d cuda
export STAND_IN_WITHOUT="cuMemMap cuMemFreeAsync"
run run -p torch -w "$trace" -d cuda:capacity=1GiB
check optional_functions_are_optional test "$status" = 0
refuses no_virtual_memory 3 'virtual memory' run -p vmm -w "$trace" -d cuda
unset STAND_IN_WITHOUT

refuses no_such_card 3 'there is no card 1; 1 is visible' run -p direct -w "$trace" -d cuda:ordinal=1
refuses capacity_beyond_the_card 2 'capacity=858993459200 is more than the 85017493504 bytes that the card Stand-in 0 has' \
    run -p direct -w "$trace" -d cuda:capacity=800GiB
refuses capacity_below_a_page 2 'less than one page' run -p direct -w "$trace" -d cuda:capacity=1MiB
refuses unknown_option 2 'capcity.*capacity' run -p direct -w "$trace" -d cuda:capcity=1GiB
"$ALLOCRIG" list devices cuda >"$out"
check list_names_the_card grep -q '^Available: 1 card, the first: Stand-in 0; driver for CUDA 13.0' "$out"

# ---- a full card --------------------------------------------------------------------------------

export STAND_IN_OTHERS=$((85017493504 - (500 << 20)))
run run -p torch -w "$trace" -d cuda
check a_full_card_is_an_outcome test "$status" = 0
check a_full_card_does_not_finish grep -q 'DNF @ 0: capacity' "$out"
run run -p torch -w "$trace" -d cuda:capacity=1GiB
check others_that_hold_the_card_are_the_cause grep -q 'DNF @ 0: tenant' "$out"
# Who holds it, only the management library tells.
if "${CC:-cc}" -std=c11 -shared -fPIC -o "$TEST_TMP/libnvidia-ml.so.1" tests/cli/nvml_stand_in.c; then
    LD_LIBRARY_PATH=$TEST_TMP:$stand_in run run -p torch -w "$trace" -d cuda
    check others_are_the_cause_without_a_capacity_too grep -q 'DNF @ 0: tenant' "$out"
fi
export STAND_IN_OTHERS=$((85017493504 - (499 << 20)))
refuses no_room_for_a_context 3 'other processes hold so much of the card' \
    run -p torch -w "$trace" -d cuda
unset STAND_IN_OTHERS

# ---- files of what was called and where it lies -------------------------------------------------

# rows FILE: how many there are below a header; "cut" where the last line is
rows() { [ -z "$(tail -c 1 "$1")" ] && echo $(($(wc -l <"$1") - 1)) || echo cut; }
driver_calls() { sed -n 's/.*"driver_calls": \([0-9]*\).*/\1/p' "$1"; }
# files_of NAME ARGUMENTS...: both files of a run, which must hold all of its calls
files_of() {
    local name=$1 at=$TEST_TMP/files-$1
    shift
    mkdir -p "$at"
    run run -p direct "$@" --calls "$at/calls" --json "$at/json"
    check "files_of_$name" [ "$status" = 0 ]
    check "files_of_${name}_hold_every_call" [ "$(rows "$at/calls")" = "$(driver_calls "$at/json")" ]
    check "files_of_${name}_hold_every_address" \
        [ "$(rows "$at/addresses")" = "$(grep -c ',alloc,.*,0$' "$at/calls")" ]
}
files_of whole -w "$trace" -d "cuda:record_addresses=$TEST_TMP/files-whole/addresses"
check files_have_some_rows [ "$(rows "$TEST_TMP/files-whole/addresses")" = 7 ]
files_of refused -w "$trace" -d "cuda:capacity=32MiB,record_addresses=$TEST_TMP/files-refused/addresses"
check it_was_refused grep -q 'DNF @ 3: ' "$out"
export STAND_IN_FAIL=cuMemAlloc:3:999
files_of failed -w "$trace" -d "cuda:record_addresses=$TEST_TMP/files-failed/addresses"
check the_driver_failed grep -q 'DNF @ 3: .*driver' "$out"
unset STAND_IN_FAIL

run run -p direct -w "$trace" -d "cuda:record_addresses=$TEST_TMP"
check addresses_into_a_folder [ "$status" = 2 -a ! -e "$TEST_TMP.1" ]
check that_is_said grep -q 'it is a folder; name a file' "$err"

# Addresses that have no room are told, whenever they are written.
no_room() {
    trap '' XFSZ
    ulimit -f 1
    "$ALLOCRIG" run -p direct -w gradient_tape -d "cuda:record_addresses=$TEST_TMP/no-room" >/dev/null 2>"$err"
}
(no_room)
status=$?
check no_room_for_addresses [ $status = 2 ]
check no_room_for_addresses_is_told grep -q 'the addresses cannot be written to .*no-room: File too large' "$err"

# ---- the same as the simulated device -----------------------------------------------------------

# figures NAME.json..: what of a result both devices know, outcome and every figure that no time is in, to NAME
figures() {
    awk 'FNR == 1 { inside = 0; name = FILENAME; sub(/\.json$/, "", name) }
        /^  "context": \{/ { inside = 1 }
        !inside && /"(passed|first_failed_event|cause|events|allocs|frees|[a-z_]*_(allocs|probes|bytes|calls)|retries|flushes|overhead|failed_by_[a-z]*)":/ &&
            !/"(peak_card_bytes|peak_outside_bytes)"/ { print >name }
        /^  \},/ { inside = 0 }' "$@"
}
# longer LINES FILE: whether it has more lines
longer() {
    local -a lines
    mapfile -n $(($1 + 1)) -t lines <"$2"
    [ ${#lines[@]} -gt "$1" ]
}

# same POLICY WORKLOAD CAPACITY ARGUMENTS...: reports only what differs; sets `differing`.
same() {
    local policy=$1 workload=$2 capacity=$3 where=$TEST_TMP/same
    shift 3
    rm -f "$where"/*
    on_card -p "$policy" -w "$workload" "$@" --placements "$where/card.csv" --json "$where/card.json" \
        -d "cuda:capacity=$capacity,record_addresses=$where/a.csv,record_ranges=$where/r.csv"
    [ $status = 0 ] || { differing="$differing $policy:$workload:card($(cat "$err"))"; return; }
    reported
    [[ $said != *$'\n'held* && $said != *$'\n'at_release* ]] || differing="$differing $policy:$workload:leaves(${said//$'\n'/ })"
    [ -f "$where/a.csv" ] || echo 'ordinal,bytes,address' >"$where/a.csv"
    [ -f "$where/r.csv" ] || echo 'ordinal,bytes,address' >"$where/r.csv"
    "$ALLOCRIG" run -p "$policy" -w "$workload" "$@" --placements "$where/sim.csv" --json "$where/sim.json" \
        -d "sim:capacity=$capacity,addresses=$where/a.csv,ranges=$where/r.csv" >/dev/null 2>"$err" ||
        { differing="$differing $policy:$workload:sim($(cat "$err"))"; return; }
    longer 10 "$where/card.csv" && cmp -s "$where/card.csv" "$where/sim.csv" ||
        differing="$differing $policy:$workload:placements"
    figures "$where/card.json" "$where/sim.json"
    longer 20 "$where/card" && cmp -s "$where/card" "$where/sim" ||
        differing="$differing $policy:$workload:figures"
}

# Each policy in a few processes, which compare every driver call too (tests/gpu/cells.c); some by the command itself.
mkdir "$TEST_TMP/same"
mapfile -t policies < <("$ALLOCRIG" list policies --names | grep -vx async) # a model on sim: what it reserves is its own
policies+=(torch:expandable_segments=true slab:virtual=true)
# equal CAPACITY WORKLOAD POLICY..: in $TEST_TMP/equal
equal() {
    local cells=(".build/$TEST_VARIANT/tests/gpu/cells" equal --capacity "$1" --workload "$2") policy
    for policy in "${@:3}"; do cells+=(--policy "$policy"); done
    LIMIT=86400 TMPDIR=$TEST_TMP "${cells[@]}" >>"$TEST_TMP/equal"
}
mapfile -t most < <(printf '%s\n' "${policies[@]}" | grep -vx plan) # it takes long over a plan
for capacity in 16GiB 2GiB; do
    equal $capacity random:events=2000 "${most[@]}"
    equal $capacity random:events=500 plan
done
mapfile -t most < <(printf '%s\n' "${policies[@]}" | grep -vx vmm)
# Where memory is short, what vmm unmaps depends on what is done by then.
equal 5GiB varlen_transformer:steps=3 "${most[@]}"
equal 20GiB varlen_transformer:steps=3 vmm
equal 3GiB workloads/data/side_streams.default.csv.gz "${policies[@]}"
grep '^not ok' "$TEST_TMP/equal" | sed 's/^/  /'
for policy in "${policies[@]}"; do
    check "same_as_sim_${policy//[:=]/_}" [ "$(grep -cE "^ok $policy .*: [0-9]{2,} placements" "$TEST_TMP/equal")" = 4 ]
done
for policy in direct torch torch:expandable_segments=true vmm; do
    differing=
    same "$policy" random:events=2000 2GiB
    same "$policy" workloads/data/side_streams.default.csv.gz 3GiB --frees recorded
    [ -z "$differing" ] || echo "  $differing"
    check "same_by_the_command_${policy//[:=]/_}" test -z "$differing"
done

# Blocks that live to the end are freed with the policy, in the pool's order: gone when it says so.
for workload in gradient_tape workloads/data/dlrm_embedding.default.csv.gz; do
    on_card -d cuda -p async -w "$workload"
    check "the_pool_keeps_nothing_of_$(basename "$workload" .csv.gz)" test "$status$(cat "$err")" = 0
done

# ---- whatever fails -----------------------------------------------------------------------------

# One call that fails: sets `wrong` if the run does not end as it should.
one_fails() {
    local policy=$1 code=$2 name=$3 n=$4
    STAND_IN_FAIL=$name:$n:$code on_card -d cuda -p "$policy" -w "$trace"
    runs=$((runs + 1))
    case $status in
    0) [[ $(<"$out") != *DNF* ]] || unfinished=$((unfinished + 1)) ;;
    3) grep -qE 'cannot be (opened|made ready|used)|NVIDIA driver' "$err" || wrong="$wrong $name:$n($(cat "$err"))" ;;
    *) wrong="$wrong $name:$n=$status($(head -c 300 "$err"))" ;;
    esac
    reported
    [[ $said = *$'\n'failed* ]] || [ "$status" = 3 ] || wrong="$wrong $name:$n(did not fail)"
    [[ $said != *$'\n'held* ]] || wrong="$wrong $name:$n(leaves $(grep '^held' <<<"$said" | tr '\n' ' '))"
}

# fails POLICY CODE: of each function that a run calls, the first calls fail, those that come after
# the device was opened, and the last ones; one at a time, and under a sanitizer a third of them. A probe
# opens the device before the run: its calls are the fewest of both processes.
first='1 2' offsets='1 2 3 6 12' last='1 0'
[ "$TEST_VARIANT" = release ] || [ "${TEST_SOAK:-0}" = 1 ] || first=1 offsets='1 6' last=0
fails() {
    local policy=$1 code=$2 name least most n wrong='' runs=0 unfinished=0
    local -a tried
    on_card -d cuda -p "$policy" -w "$trace"
    [ $status = 0 ] || wrong=" (a good run)"
    reports | grep -qE '^(held|at_release)' && wrong="$wrong (a good run leaves something)"
    reports | awk '$1 == "calls" { n = $3; seen[$2]++; if (n > most[$2]) most[$2] = n
                                   if (!($2 in least) || n < least[$2]) least[$2] = n }
                   END { for (i in most) print i, (seen[i] > 1 ? least[i] : 0), most[i] }' >"$TEST_TMP/calls"
    while read -r name least most; do
        # What is not given back, since giving back fails, only the end of the process frees.
        [ "$name" != cuDevicePrimaryCtxRelease ] || continue
        tried=()
        for n in $first $(for offset in $offsets; do echo $((least + offset)); done; for offset in $last; do echo $((most - offset)); done); do
            [ -n "${tried[$n]:-}" ] || [ "$n" -lt 1 ] || [ "$n" -gt "$most" ] || one_fails "$policy" "$code" "$name" "$n"
            tried[n]=1
        done
    done <"$TEST_TMP/calls"
    [ -z "$wrong" ] || echo "  $wrong" | head -c 3000
    if [ "$runs" -le 60 ] || [ "$unfinished" -le 10 ]; then
        echo "  only $runs runs, $unfinished of them unfinished"
        wrong="$wrong few"
    fi
    check "whatever_fails_${policy//[:=]/_}_$code" test -z "$wrong"
}
fails torch 2
fails vmm 999
if long whatever_fails_direct_999 whatever_fails_async_700; then
    fails direct 999
    fails async 700
fi

# The sentence names the call, its size and the error.
STAND_IN_FAIL=cuMemAlloc:2:999 run run -p direct -w "$trace" -d cuda --json "$TEST_TMP/failed.json"
check a_failed_driver_is_a_cause grep -q '"cause": "driver"' "$TEST_TMP/failed.json"
check a_failed_driver_is_told grep -qE 'DNF @ 1: .*driver' "$out"

finish
