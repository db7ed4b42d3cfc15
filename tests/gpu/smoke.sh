#!/bin/bash
# The first thing to run on a card: builds, and in about two minutes tells whether the device works
# at all. Prints a line for each step (`ok NAME: figures` or `not ok NAME: why`); the last line is
# `N passed, N failed, N skipped`. SKIP_BUILD=1: takes ./allocrig as it is.
set -u
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
capacity=8GiB

# verdict NAME STATUS TEXT
verdict() {
    if [ "$2" = 0 ]; then
        echo "ok $1: $3"
        passed=$((passed + 1))
    else
        echo "not ok $1: $3"
        failed=$((failed + 1))
    fi
}

# The last words of the last run, in one line.
said() { tr -s ' \n' ' ' <"$work/out" | tail -c 400; }

# figure NAME: of the one run in $work/json
figure() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*$/\1/p" "$work/json" | head -n 1; }

# card NAME ARGUMENTS...: a run that must finish; its figures are in $work/json.
card() {
    local name=$1
    shift
    "./allocrig" run --reps 1 "$@" --json "$work/json" >"$work/out" 2>&1
    local status=$?
    if [ $status != 0 ] || grep -q 'DNF @' "$work/out"; then
        verdict "$name" 1 "status $status, $(said)"
        return 1
    fi
}

# within VALUE LEAST MOST
within() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(v != "" && v >= a && v <= b) }'; }

began=$SECONDS
if [ -z "${SKIP_BUILD:-}" ]; then
    make >"$work/build" 2>&1
    verdict build $? "$((SECONDS - began)) s; $(tail -n 1 "$work/build")"
fi
text=$(./allocrig list devices cuda | sed -n '2,/^$/p' | tr '\n' ' ')
case $text in
Available*) verdict device 0 "$text" ;;
*)
    echo "$text"
    echo "$passed passed, $failed failed, 1 skipped"
    exit 0
    ;;
esac
held() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1; }
before=$(held)

# 1000 kernels of 100 us in a row, in four steps: the marks and the timed kernels together.
awk 'BEGIN { print "# allocrig-trace 1"; for (i = 0; i < 1000; i++) {
    print "k,0,100000"; if (i % 250 == 249) print "m,step" } }' >"$work/kernels.trace"
if card timed_kernels -d "cuda:capacity=$capacity" -p direct -w "$work/kernels.trace"; then
    ns=$(figure device_time_ns) step=$(figure steady_step_ns)
    within "$step" 24750000 25250000
    verdict timed_kernels $? "1000 x 100 us took $ns ns, a step of 250 took $step ns (25,000,000 wanted, within 1 %)"
fi

# Every kind of memory, with every byte checked.
for policy in direct best-fit torch torch:expandable_segments=true vmm gmlake slab:virtual=true rmm-pool async; do
    for workload in order_flip random:events=4000 workloads/data/side_streams.default.csv.gz; do
        name="$policy $(basename "$workload")"
        card "$name" -d "cuda:capacity=$capacity" -p "$policy" -w "$workload" --verify --timeout 60 &&
            verdict "$name" 0 "$(figure driver_calls) calls, $(figure driver_time_ns) ns, stall $(figure stall_ns) ns, physical $(figure peak_physical_bytes), slowdown $(figure slowdown)"
    done
done
if card card_bytes -d "cuda:capacity=$capacity" -p direct -w order_flip; then
    outside=$(figure peak_outside_bytes)
    within "$outside" 100000000 1500000000
    verdict card_bytes $? "context and kernels take $outside bytes"
fi

# Recorded host times: the steps are as long as the recorded ones.
if card host_recorded -d cuda -p torch -w workloads/data/tape_small.default.csv.gz --host recorded --frees recorded; then
    verdict host_recorded 0 "step $(figure steady_step_ns) ns, slowdown $(figure slowdown)"
fi

# The same as the simulated device, for the policies of each kind.
for policy in direct torch vmm gmlake slab; do
    TEST_TMP=$(mktemp -d -p "$work") tests/gpu/equal.sh -j 2 -p "^$policy\$" -w 'random|linear_ramp|side_streams' >"$work/out" 2>&1
    verdict "same as sim: $policy" $? "$(tail -n 1 "$work/out"); $(grep '^not ok' "$work/out" | head -n 3 | tr '\n' ';')"
done

./allocrig run -d cuda:capacity=10TiB -p direct -w order_flip >"$work/out" 2>&1
[ $? = 2 ]
verdict beyond_the_card $? "$(said)"
./allocrig run -d cuda -p 'fault(n=3)+direct' -w order_flip >"$work/out" 2>&1 && grep -q 'DNF @' "$work/out"
verdict a_call_that_fails $? "$(grep -o 'DNF @.*' "$work/out" | head -n 1)"
after=$(held)
[ -z "$before" ] || [ "$after" -le "$((before + 8))" ]
verdict nothing_stays_behind $? "card holds ${before:-?} MiB before, ${after:-?} MiB after"
echo "took $((SECONDS - began)) s"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
