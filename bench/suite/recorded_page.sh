#!/bin/bash
# Step and kernel times of recordings compared with those of a replay, as a Markdown table.
# Usage: bench/suite/recorded_page.sh RESULTS.csv...
#
# RESULTS have rows of `allocrig run --csv`, such as those of recorded_cells.sh. Several rows of a recording and
# host are repetitions, of which the median is used (for an even number the mean of the middle two). The replay is
# that of the card, or, without rows of the card, that of sim. With both, a second table compares the simulated step
# with the card's.
#
# Both times are the metric steady_step_ns: of N steps the first N / 2 are left out; it is the median of the rest
# (for an even number the shorter of the middle two). A step of a recording goes from mark to mark, the first from the start; its
# kernel time is the sum of the kernels between. The whole run goes from the first event to the last, or to the end
# of the last kernel if that is later: a kernel of a stream begins when it is launched, or when the one before has
# ended. `--host recorded` is compared with the former, `--host none`, where a device does nothing but kernels, with
# the latter. A program that does not wait for its device before a mark runs kernels of one step in the next: the
# table marks those that overlap, and for them the whole run tells more than a step.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -eu
[ $# -ge 1 ] || { usage; exit 2; }
refuse() {
    echo "$0: $1" >&2
    exit 2
}
for file; do
    if [ -d "$file" ] || [ ! -r "$file" ]; then refuse "$file: no such file; give files of allocrig run --csv"; fi
    head -n 1 "$file" | grep -q '\bsteady_step_ns\b' ||
        refuse "$file: the first line has no column steady_step_ns; give a file of allocrig run --csv"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The lower median of the steady ones among the numbers of standard input, one a line.
steady() {
    tail -n "+$(($(wc -l <"$1") / 2 + 1))" "$1" | sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "%.0f", v[int((NR + 1) / 2)] }'
}

# medians COLUMN FILE..: PLACE WORKLOAD HOST VALUE RUNS LEAST MOST of every recording, host time and place
# (card, sim) that has rows; the value is their median.
medians() {
    local wanted=$1
    shift
    awk -F, -v wanted="$wanted" '
        { gsub(/"[^"]*"/, "") } # commas in quotes separate no fields
        FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["steady_step_ns"] != "" {
            place = $column["device"] == "cuda" ? "card" : "sim"
            print place, $column["workload_spec"], $column["host"], $column[wanted] }' "$@" |
        LC_ALL=C sort -k1,3 -k4,4n | awk '
        function out() {
            if (n) printf "%s %.0f %d %d %d\n", key, (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2, n, value[1], value[n]
            n = 0 }
        { new = $1 " " $2 " " $3; if (new != key) out(); key = new; value[++n] = $4 }
        END { out() }'
}
medians steady_step_ns "$@" >"$tmp/all"
[ -s "$tmp/all" ] || refuse "no run in $* has steady steps: the page would be empty"
cut -d' ' -f2 "$tmp/all" | sort -u >"$tmp/traces"
while read -r trace; do
    [ -f "$trace" ] || refuse "$trace: no such recording here; run it from the folder in which the runs were made"
done <"$tmp/traces"
place=$(awk '{ print $1 }' "$tmp/all" | sort -u | head -n 1)
{ grep "^$place " "$tmp/all" | cut -d' ' -f2-4
    medians device_time_ns "$@" | awk -v place="$place" '$1 == place && $3 == "recorded" { print $2, "whole", $4 }'; } >"$tmp/rows"

echo '| recording | step recorded, ms | replayed | | kernels recorded, ms | replayed | | whole run recorded, ms | replayed | |'
echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
cut -d' ' -f1 "$tmp/rows" | sort -u | while read -r trace; do
    zcat "$trace" | awk -F, -v steps="$tmp/steps" -v kernels="$tmp/kernels" '
        BEGIN { printf "" >steps; printf "" >kernels }
        NR == 2 { at = first = $5 }
        NR > 1 && $5 > last { last = $5 }
        $1 == "kernel" { if (tail[$4] < $5) tail[$4] = $5; tail[$4] += $3 / 1000; if (tail[$4] > last) last = tail[$4] }
        $1 == "kernel" { busy += $3 }
        $1 == "mark" { print 1000 * ($5 - at) >steps; print busy + 0 >kernels; at = $5; busy = 0 }
        END { printf "%.0f\n", 1000 * (last - first) }' >"$tmp/whole"
    awk -v trace="$trace" -v step="$(steady "$tmp/steps")" -v kernel="$(steady "$tmp/kernels")" -v whole="$(cat "$tmp/whole")" '
        function side(recorded, replayed) {
            if (replayed == "") return sprintf("%.3f | not run | ", recorded / 1e6)
            return sprintf("%.3f | %.3f | %+.1f %%", recorded / 1e6, replayed / 1e6, 100 * (replayed / recorded - 1))
        }
        $1 == trace { replayed[$2] = $3 }
        END { name = trace; sub(/.*\//, "", name); sub(/\.csv\.gz$/, "", name)
              note = kernel > step ? " (overlap)" : ""
              printf "| %s%s | %s | %s | %s |\n", name, note, side(step, replayed["recorded"]), side(kernel, replayed["none"]),
                  side(whole, replayed["whole"]) }' "$tmp/rows"
done

[ "$(cut -d' ' -f1 "$tmp/all" | sort -u | wc -l)" = 2 ] || exit 0
printf '\n| recording | host | runs | step on the card, ms | least to most | sim, ms | sim - card |\n'
echo '| --- | --- | ---: | ---: | ---: | ---: | ---: |'
awk '{ key = $2 " " $3 }
    $1 == "card" { step[key] = $4; runs[key] = $5; least[key] = $6; most[key] = $7; order[++n] = key }
    $1 == "sim" { sim[key] = $4 }
    END { for (i = 1; i <= n; i++) {
        key = order[i]
        if (!(key in sim)) continue
        split(key, part, " "); name = part[1]; sub(/.*\//, "", name); sub(/\.csv\.gz$/, "", name)
        printf "| %s | %s | %d | %.4f | %.4f to %.4f | %.4f | %+.1f %% |\n", name, part[2], runs[key], step[key] / 1e6,
            least[key] / 1e6, most[key] / 1e6, sim[key] / 1e6, 100 * (sim[key] / step[key] - 1) } }' "$tmp/all"
