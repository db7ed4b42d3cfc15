#!/usr/bin/env bash
# Instructions per operation of every policy against the number of live blocks, free blocks, streams, pools and
# segments, counted by callgrind, as a table in Markdown. An operation is one alloc or one free. Exit status 1 if
# a policy grows by more than GROWTH (3) from the least size to the greatest: log n grows twofold from 10^3 to 10^6.
# Usage: bench/micro/sizes.sh [-o FILE] BUILD_FOLDER [POLICY..]
# -o FILE: the table goes there when all is measured; until then the file stays as it is.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -euo pipefail
output=
if [ "${1:-}" = -o ]; then output=$(realpath -m -- "$2") && shift 2; fi
cd "$(dirname "$0")/../.."
program=$1/bench/micro/instructions
shift
[ -x "$program" ] || { echo "sizes: $program is not built: make sizes builds it" >&2; exit 2; }
command -v valgrind >/dev/null || { echo 'sizes: valgrind is not installed ("make deps")' >&2; exit 2; }
policies=("$@")
((${#policies[@]})) || mapfile -t policies < <("$program" policies | cut -d' ' -f1)
kinds=(live free streams pools segments)
sizes=(1000 10000 100000 1000000)
growth=${GROWTH:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The limit is above what the blocks take. rmm-arena takes at most 1 TiB at once; ggml's pool has 256 buffers.
spec_of() {
    local limit=4TiB blocks=1048576
    [ "$2" -le 100000 ] || limit=32TiB blocks=4194304
    case $1 in
    null | ggml) echo "$1" ;;
    rmm-arena) echo "$1:limit=1TiB" ;;
    offset) echo "$1:limit=$limit,max_allocs=$blocks" ;;
    *:*) echo "$1,limit=$limit" ;;
    *) echo "$1:limit=$limit" ;;
    esac
}

# counted FILE COMMAND..: the instructions per operation. Callgrind starts where the program says so; if it was built
# without valgrind's header, at once.
counted() {
    local file=$1 start
    shift
    for start in no yes; do
        valgrind --tool=callgrind --instr-atstart=$start --callgrind-out-file="$file.out" --toggle-collect='measured_*' \
            "$@" >"$file.log" 2>/dev/null || return 1
        awk 'NR == FNR { if ($1 == "operations") n = $2; next }
            /^(summary|totals):/ { if ($2) printf "%.0f\n", $2 / n; exit }' "$file.log" "$file.out" >"$file"
        [ ! -s "$file" ] || return 0
    done
    return 1
}

# count SPEC KIND SIZE FILE: the instructions per operation, or -
count() {
    local size=$3
    if [ "$2" = streams ] && [ "$size" -gt 100000 ]; then : >"$4"; return 0; fi
    [ "$2$3" != streams100000 ] || size=60000 # a simulated device has 65,536 streams
    counted "$4" "$program" size "$1" "$2" "$size" || echo - >"$4"
    rm -f "$4.out" "$4.log"
}
export -f counted
export -f count
export program

for policy in "${policies[@]}"; do
    for kind in "${kinds[@]}"; do
        for size in "${sizes[@]}"; do
            printf '%s\0%s\0%s\0%s\0' "$(spec_of "$policy" "$size")" "$kind" "$size" "$work/$policy.$kind.$size"
        done
    done
done | xargs -0 -n 4 -P "${JOBS:-2}" bash -c 'count "$@"' count

[ -z "$output" ] || exec >"$work/page"
header='| policy |' line='| --- |' missed=0
for kind in "${kinds[@]}"; do
    header+=" $kind |" line+=' ---: |'
done
cat <<'TEXT'
# Cost with size

`make sizes` writes this table: instructions per operation (one alloc or one free, callgrind) with 10^3, 10^4, 10^5 and
10^6 live blocks, free blocks, pools and segments, and with 10^3, 10^4 and 60,000 streams. The policy is warm, and pairs
take turns on the streams and pools; a pair among live blocks frees one of them and requests it again. `-`: the policy
cannot have so many. **Bold**: more than three times as many at the greatest size as at the least; log n: twice as much.

TEXT
printf '%s\n%s\n' "$header" "$line"
for policy in "${policies[@]}"; do
    row="| \`$policy\` |"
    for kind in "${kinds[@]}"; do
        cell=
        for size in "${sizes[@]}"; do cell+=" $(cat "$work/$policy.$kind.$size")"; done
        read -ra figures <<<"${cell//-/}"
        if ((${#figures[@]} > 1)) && ((figures[-1] > growth * figures[0])); then
            missed=$((missed + 1)) cell=" **${cell# }**"
        fi
        row+="$cell |"
    done
    printf '%s\n' "$row"
done
[ -z "$output" ] || cat "$work/page" >"$output"
((missed == 0)) || { echo "sizes: $missed figures grow by more than $growth" >&2; exit 1; }
