#!/bin/bash
# Step and kernel times of recordings beside those of a replay, as a Markdown table.
# Usage: bench/suite/recorded_page.sh RESULTS.csv...
#
# RESULTS hold rows as `allocrig run --csv` writes them, such as recorded_cells.sh leaves. Both sides are
# the metric steady_step_ns: of N steps the first N / 2 are left out, and of the rest the median is taken,
# of two middle ones the shorter. A step of a recording goes from mark to mark, the first from the start;
# its kernel time is the sum of the kernels between. `--host recorded` is held against the former,
# `--host none`, where a device does nothing but kernels, against the latter. A program that does not
# wait for its device before a mark runs kernels of one step in the next: those that overlap are said so.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -eu
[ $# -ge 1 ] || { usage; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The lower median of the steady ones among the numbers of standard input, one a line.
steady() {
    tail -n "+$(($(wc -l <"$1") / 2 + 1))" "$1" | sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "%.0f", v[int((NR + 1) / 2)] }'
}

# WORKLOAD HOST STEADY_STEP_NS of every row that is there.
awk -F, 'FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    $column["steady_step_ns"] != "" { print $column["workload_spec"], $column["host"], $column["steady_step_ns"] }' "$@" |
    sort -u >"$tmp/rows"

echo '| recording | step recorded, ms | replayed | | kernels recorded, ms | replayed | |'
echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: |'
cut -d' ' -f1 "$tmp/rows" | sort -u | while read -r trace; do
    zcat "$trace" | awk -F, -v steps="$tmp/steps" -v kernels="$tmp/kernels" '
        BEGIN { printf "" >steps; printf "" >kernels }
        NR == 2 { at = $5 }
        $1 == "kernel" { busy += $3 }
        $1 == "mark" { print 1000 * ($5 - at) >steps; print busy + 0 >kernels; at = $5; busy = 0 }'
    awk -v trace="$trace" -v step="$(steady "$tmp/steps")" -v kernel="$(steady "$tmp/kernels")" '
        function side(recorded, replayed) {
            if (replayed == "") return sprintf("%.3f | not run | ", recorded / 1e6)
            return sprintf("%.3f | %.3f | %+.1f %%", recorded / 1e6, replayed / 1e6, 100 * (replayed / recorded - 1))
        }
        $1 == trace { replayed[$2] = $3 }
        END { name = trace; sub(/.*\//, "", name); sub(/\.csv\.gz$/, "", name)
              note = kernel > step ? " (overlap)" : ""
              printf "| %s%s | %s | %s |\n", name, note, side(step, replayed["recorded"]), side(kernel, replayed["none"]) }' "$tmp/rows"
done
