#!/bin/bash
# Many processes on a few cards, barriered and free: the time of the simulation, and whether a repetition gives the
# same bytes. Usage: bench/suite/many_tenants.sh [PROCESSES [CARDS [EVENTS]]]     (64 8 1000000: at least so many
# events each) Exit status 1 if two runs differ, a process does not end, or one of the default size takes 120 s or
# more.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
processes=${1:-64} cards=${2:-8} events=${3:-1000000}
for number in "$processes" "$cards" "$events"; do
    case $number in
    '' | 0* | *[!0-9]*)
        echo "many_tenants: \"$number\" is no number; write many_tenants.sh [PROCESSES [CARDS [EVENTS]]]" >&2
        exit 2
        ;;
    esac
done
cd "$(dirname "$0")/../.." || exit 2
rig=${ALLOCRIG:-./allocrig}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
policies=(growth torch vmm cupy greedy:limit=16GiB tlsf rmm-pool best-fit)
# Each with the parameter that makes it longer, and the minimum number of events for each unit of it.
workloads=(gradient_tape:steps= "embedding:first=0,every=1,rows=10000-1000000,steps=" varlen_transformer:steps= matmul_cache:repeat=)
each=(500 700 1150 185)

bad=0
{
    printf '[machine]\n'
    for ((i = 0; i < cards; i++)); do echo 'card = sim:profile=h100,capacity=79GiB'; done
    printf '\n[run]\nturn_events = 1000\n'
    for ((i = 0; i < processes; i++)); do
        kind=$((i / cards % 4)) # a card has all of them
        printf '\n[tenant p%02d]\npolicy = %s\ncard = %d\ncontext = 500MiB\nworkload = %s%d,seed=%d\n' \
            $i "${policies[$(((i + i / cards) % 8))]}" $((i % cards)) "${workloads[kind]}" $((events / each[kind] + 1)) $((i + 1))
    done
} >"$work/suite.ini"
# The minimum number of events of a process, among the first one of each kind.
least=
for kind in 0 1 2 3; do
    [ $((kind * cards)) -lt "$processes" ] || break
    "$rig" gen "${workloads[kind]}$((events / each[kind] + 1)),seed=$((kind * cards + 1))" -o "$work/trace.txt" >/dev/null || exit 2
    count=$(grep -vc '^#' "$work/trace.txt")
    [ -n "$least" ] && [ "$least" -le "$count" ] || least=$count
done
[ "$least" -ge "$events" ] || { echo "many_tenants: a process has $least events only" >&2; bad=1; }
for mode in barriered free; do
    begun=$(date +%s%N)
    "$rig" tenants "$work/suite.ini" --mode $mode --no-alone --csv "$work/first.csv" >/dev/null || exit 2
    took_ms=$((($(date +%s%N) - begun) / 1000000))
    "$rig" tenants "$work/suite.ini" --mode $mode --no-alone --csv "$work/second.csv" >/dev/null || exit 2
    same='the same bytes again'
    cmp -s "$work/first.csv" "$work/second.csv" || { same='OTHER BYTES the second time'; bad=1; }
    passed=$(grep -c ',passed,' "$work/first.csv")
    [ "$passed" = "$processes" ] || bad=1
    [ "$processes,$cards,$events" != 64,8,1000000 ] || [ $took_ms -lt 120000 ] || bad=1
    echo "$mode: $processes processes on $cards cards, $least events each or more, $passed passed:"
    echo "  $((took_ms / 1000)).$((took_ms / 100 % 10)) s on one core, $same"
done
exit $bad
