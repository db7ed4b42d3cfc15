#!/usr/bin/env bash
# Instructions per request (callgrind, the whole program) of policies in a program of many streams, as
# a table in Markdown: each stream requests, launches a kernel and frees, twice, while memory is
# short. A policy whose steps look at every stream has figures that grow with the number of streams.
# Usage: bench/micro/streams.sh [PROGRAM [POLICY..]]
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -euo pipefail
program=${1:-./allocrig}
shift || true
policies=("$@")
((${#policies[@]})) || policies=(torch rmm-pool rmm-arena gmlake)
sizes=(1000 4000 16000)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# trace STREAMS
trace() {
    awk -v n="$1" 'BEGIN {
        print "# allocrig-trace 1"
        for (round = 0; round < 2; round++) {
            for (k = 0; k < n; k++)
                printf "a,%d,%d,%d\nk,%d,1000\n", round * n + k, 512 * (1 + k * 7919 % 61 + round), k * 31 % n, k * 31 % n
            for (k = 0; k < n; k++)
                printf "r,%d\n", round * n + k
        }
    }'
}

header='| policy |' line='| --- |'
for size in "${sizes[@]}"; do
    trace "$size" >"$work/$size.trace"
    header+=" $size streams |" line+=' ---: |'
done
printf '%s\n%s\n' "$header" "$line"
for policy in "${policies[@]}"; do
    row="| \`$policy\` |"
    for size in "${sizes[@]}"; do
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" run -p "$policy" -w "$work/$size.trace" \
            -d sim:capacity=2GiB --jobs 1 >/dev/null 2>"$work/log"
        total=$(sed -n 's/.*Collected : //p' "$work/log")
        row+=" $((total / (2 * size))) |"
    done
    printf '%s\n' "$row"
done
