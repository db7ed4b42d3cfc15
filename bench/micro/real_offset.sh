#!/usr/bin/env bash
# Counts the instructions of the real OffsetAllocator and of the policy `offset`
# on the same requests and frees, with callgrind, and compares all placements. An
# operation is one alloc or one free; the second of two passes is counted. `own`:
# in the functions of the allocator. `all`: with the loop around it, here a few
# instructions of a C++ program, there the engine, as `make instructions` counts.
# Usage: bench/micro/real_offset.sh BUILD_FOLDER CHECKOUT [RECORDING..]
# CHECKOUT is a folder with the sources of sebbbi/OffsetAllocator, which are
# compiled with FLAGS (-O2). Exit status 1 if a placement differs.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -euo pipefail
fail() { echo "real_offset: $1" >&2; exit 2; }
[ -e "${2:-}/offsetAllocator.cpp" ] || fail 'give a build folder and a folder with offsetAllocator.cpp (--help)'
checkout=$(realpath -- "$2")
cd "$(dirname "$0")/../.."
build=$1
recordings=("${@:3}")
((${#recordings[@]})) || recordings=(gpt2_train lora_recompute resnet50_train)
[ -x "$build/bench/micro/instructions" ] || fail "$build/bench/micro/instructions is not built: make instructions builds it"
command -v valgrind >/dev/null || fail 'valgrind is not installed ("make deps")'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With this limit the policy takes 2^31 units of 32 bytes.
spec=offset:limit=64GiB,max_allocs=1048576

cat >"$work/loop.cc" <<'CODE'
#include <cstdio>
#include <vector>
#include "offsetAllocator.hpp"
using namespace OffsetAllocator;
struct operation { unsigned block, units; }; // units 0: a free
static void replay(Allocator &allocator, const operation &next, Allocation *blocks)
{
    if (next.units)
        blocks[next.block] = allocator.allocate(next.units);
    else
        allocator.free(blocks[next.block]);
}
__attribute__((noinline)) static void measured_loop(Allocator &allocator, const std::vector<operation> &all, Allocation *blocks)
{
    for (const operation *next = all.data(), *end = next + all.size(); next != end; next++)
        replay(allocator, *next, blocks);
}
int main()
{
    std::vector<operation> all;
    unsigned block, most = 0;
    unsigned long bytes;
    for (char kind; scanf(" %c,%u,%lu", &kind, &block, &bytes) == 3; most = block > most ? block : most)
        all.push_back({block, kind == 'a' ? unsigned((bytes + 31) / 32) : 0});
    std::vector<Allocation> blocks(most + 1);
    Allocator allocator(1u << 31, 1048576);
    for (const operation &next : all) {
        replay(allocator, next, blocks.data());
        if (next.units)
            printf("%lu\n", blocks[next.block].offset * 32ul);
    }
    measured_loop(allocator, all, blocks.data());
}
CODE
# shellcheck disable=SC2086 # FLAGS is a list
"${CXX:-g++}" -std=c++20 -g1 ${FLAGS:--O2} -I"$checkout" "$work/loop.cc" "$checkout/offsetAllocator.cpp" -o "$work/loop"

# counted FUNCTIONS OPERATIONS COMMAND..: instructions per operation in functions that match, and in all
counted() {
    local functions=$1 operations=$2
    valgrind --tool=callgrind --toggle-collect='measured_*' --callgrind-out-file="$work/out" "${@:3}" 2>"$work/log" ||
        { cat "$work/log" >&2; return 1; }
    callgrind_annotate --threshold=100 --auto=no "$work/out" | awk -v functions="$functions" -v n="$operations" '
        { gsub(",", "", $1) }
        /PROGRAM TOTALS/ { all = $1 }
        $1 ~ /^[0-9]+$/ && $0 ~ ":(" functions ")" { own += $1 }
        END { printf "%.1f %.1f\n", own / n, all / n }'
}

status=0
printf '%-15s %10s %10s %9s %9s %9s %9s\n' recording operations placements real_own real_all own all
for name in "${recordings[@]}"; do
    file=$(find workloads/data -name "$name.default.csv*" -o -name "$name.csv*" | sort | head -n 1)
    [ -n "$file" ] || fail "no recording of $name under workloads/data"
    "$build/bench/micro/instructions" prepare "$file" "$work/trace.bin" operations
    "$build/allocrig" run -p "$spec" -w "$work/trace.bin" -d sim:profile=bump --placements "$work/ours.csv" >"$work/log"
    awk -F, 'NR > 1 { print $2 "," $3 "," $4 }' "$work/ours.csv" >"$work/operations"
    operations=$(wc -l <"$work/operations")
    real=$(counted 'OffsetAllocator::' "$operations" "$work/loop" <"$work/operations" >"$work/real" && tail -n 1 "$work/real")
    sed -i '$d' "$work/real"
    ours=$(counted 'offset_(alloc|free)' "$operations" "$build/bench/micro/instructions" replay "$spec" "$work/trace.bin" none | tail -n 1)
    placements=equal
    awk -F, '$2 == "a" { print $7 }' "$work/ours.csv" | cmp -s - "$work/real" || { placements=differ; status=1; }
    # shellcheck disable=SC2086 # two numbers each
    printf '%-15s %10s %10s %9s %9s %9s %9s\n' "$name" "$operations" $placements $real $ours
done
exit $status
