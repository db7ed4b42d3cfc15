#!/bin/bash
# The memory of a pool at the end of each phase of a long program, and its growth: a table in Markdown.
# Usage: bench/suite/phases.sh [-p SPEC].. [-o FILE] [WORKLOAD]..
# Without workloads: 20 cycles of training, evaluation, offload, sleep and wake, and 10,000 steps of random lengths;
# without policies: seven of them. Takes any workload with marks (m events); its simulated card is an H100. With -o
# the tables go to FILE and to standard output when all of them are done.
#
# residue: reserved minus live bytes. drift: the slope of reserved bytes, by least squares over the last three
# quarters of the ends of that phase, which leaves out what is reserved once at the start. If a program has phases,
# its steps have no row; if it has none, drift is that of 1000 steps.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
policies=() workloads=() output=
while [ $# -gt 0 ]; do
    case $1 in
    -p) [ $# -ge 2 ] || { echo "phases: -p wants a policy" >&2; exit 2; }
        policies+=("$2") && shift ;;
    -o) [ $# -ge 2 ] || { echo "phases: -o wants a file" >&2; exit 2; }
        output=$2 && shift ;;
    -*) usage; exit 2 ;;
    *) workloads+=("$1") ;;
    esac
    shift
done
cd "$(dirname "$0")/../.." || exit 2
[ ${#policies[@]} -gt 0 ] || policies=(greedy growth torch torch:expandable_segments=true vmm async direct)
long='varlen_transformer:steps=10000,layers=2,hidden=256,vocabulary=4000'
[ ${#workloads[@]} -gt 0 ] || workloads=(phases phases:trim=no phases:leak=1 "$long")
rig=${ALLOCRIG:-./allocrig}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for workload in "${workloads[@]}"; do
    # A recording or a file is read directly, a generator is written as text, because its marks are needed.
    if ! "$rig" convert "$workload" "$work/trace.txt" >"$work/out" 2>"$work/err" </dev/null &&
        { [ -e "$workload" ] || ! "$rig" gen "$workload" -o "$work/trace.txt" >"$work/out" 2>"$work/err" </dev/null; }; then
        echo "phases: $(tail -n 1 "$work/err")" >&2
        exit 2
    fi
    grep -v '^#' "$work/trace.txt" | awk -F, '/^m,/ { print NR - 1 "," $2 }' >"$work/marks.csv"
    [ -s "$work/marks.csv" ] || { echo "phases: $workload has no marks, so no phase ends" >&2; exit 2; }
    # A table is printed for a whole workload or not at all, so that a wrong policy leaves no partial table.
    exec 3>"$work/section"
    printf >&3 '\n## `%s`\n\n| policy | end of | times | live MiB, mean | reserved MiB, first | last | residue MiB, mean | drift KiB |\n' "$workload"
    echo >&3 '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |'
    for policy in "${policies[@]}"; do
        "$rig" run -p "$policy" -w "$work/trace.txt" -d sim --reps 1 --jobs 1 --require-pass --series "$work/series.csv" \
            >"$work/out" 2>"$work/err" </dev/null
        case $? in
        0) ;;
        1) echo >&3 "| \`$policy\` | did not finish | | | | | | |" && continue ;;
        *) echo "phases: $(tail -n 1 "$work/err")" >&2 && exit 2 ;;
        esac
        # Reserved bytes after the event before each mark: the mark itself does not change them.
        awk -F, -v policy="$policy" '
            FNR == NR { event[++marks] = $1 + 0; label[marks] = $2; next }
            BEGIN { at = 1 }
            FNR > 1 && at <= marks && $1 + 0 > event[at] {
                while (at <= marks && event[at] < $1 + 0) take()
            }
            { live = $4; reserved = $6 }
            END { while (at <= marks) take(); for (i = 1; i <= labels; i++) if (order[i] != "step" || labels == 1) show(order[i]) }
            function take(    name) {
                name = label[at++]
                if (!(name in times)) order[++labels] = name
                n = ++times[name]; held[name, n] = reserved; lives[name] += live; kept[name] += reserved - live
            }
            function show(name,    n, i, from, count, x, y, xx, xy, slope) {
                n = times[name]; from = int(n / 4) + 1
                for (i = from; i <= n; i++) { count++; x += i; y += held[name, i] / 1024 }
                x /= count; y /= count
                for (i = from; i <= n; i++) { xx += (i - x) ^ 2; xy += (i - x) * (held[name, i] / 1024 - y) }
                slope = xx > 0 ? xy / xx * (name == "step" ? 1000 : 1) : 0
                printf "| `%s` | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", policy, name, n, lives[name] / n / 2 ^ 20, \
                    held[name, 1] / 2 ^ 20, held[name, n] / 2 ^ 20, kept[name] / n / 2 ^ 20, slope == 0 ? 0 : slope
            }' "$work/marks.csv" "$work/series.csv" >&3
    done
    cat "$work/section" >>"$work/page"
    [ -n "$output" ] || cat "$work/section"
done
[ -z "$output" ] || { mkdir -p "$(dirname "$output")" && cp "$work/page" "$output" && cat "$output"; }
