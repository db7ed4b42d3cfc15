#!/bin/bash
# The capacity at which a policy passes, its cost slightly above, and whether it settles there: a Markdown table, a row
# for each workload. Usage: bench/suite/settled.sh [-p SPEC] [-r SPEC] [-w WORKLOAD]..
#
# -p is the policy (default vmm), -r another one with which its slowdown is compared (default PyTorch's with growing
# segments); without -w every recording and generator is taken. `safe` and `bound` are in MiB: the policy's safe
# capacity, and the peak + 2 % + one page for each range it reserved. The peak is that of live bytes; if only a
# recording knows when freed blocks complete, of live and pending bytes: no policy may give these to other requests.
# If the bound is missed, `with a page each` is the bound for blocks smaller than a page, scattered one to a page:
# one page more for each that is live at the peak. All that follows is at 1.05 x safe. `calls` are those to the
# driver except events; `late` those after the second step, and `moved` the number of unmaps among them, and of
# these after the live peak: if it is 0, memory was reserved for the first time, because the live peak had not been
# reached. `repeated` are the calls after the second pass of the whole workload, run four times, at 1.05 x the safe
# capacity of that. Frees complete at once for calls; safe and slowdown are the worse of ordered and at once.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${ALLOCRIG:-$root/allocrig}
policy=vmm rival=torch:expandable_segments=true
workloads=()
while getopts p:r:w: option; do
    case $option in
    p) policy=$OPTARG ;;
    r) rival=$OPTARG ;;
    w) workloads+=("$OPTARG") ;;
    *) sed -n '3s/^.*\(Usage\)/\1/p' "$0" >&2; exit 2 ;;
    esac
done
cd "$root" || exit 2
if [ ${#workloads[@]} = 0 ]; then
    workloads=(workloads/data/*.csv.gz)
    # The requests of robson depend on the addresses of its blocks: it cannot be a trace.
    mapfile -t -O ${#workloads[@]} workloads < <("$program" list workloads --names | grep -vxE 'robson|learned')
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Of a text trace: the number of blocks smaller than a page that are live at the peak, the peak of live and pending
# bytes together, and the event of the live peak.
peaks() {
    grep -v '^#' "$1" | awk -F, '
        $1 == "a" && $3 > 0 { bytes[$2] = $3; live += $3; held += $3; small += $3 < 2097152 }
        ($1 == "r" || $1 == "f") && $2 in bytes && !($2 in gone) { gone[$2] = 1; live -= bytes[$2]; small -= bytes[$2] < 2097152 }
        $1 == "f" && $2 in bytes { held -= bytes[$2]; delete bytes[$2]; delete gone[$2] }
        live > most { most = live; blocks = small; event = NR - 1 }
        held > greatest { greatest = held }
        END { printf "%d %d %d\n", blocks, greatest, event }'
}

# The live peak, the greatest safe capacity of the modes, and whether that is of frees as recorded.
capacity() {
    local mode
    for mode in ordered at-once; do
        "$program" capacity -p "$policy" -w "$1" --frees $mode --jobs 1 -d sim:profile=h100 --json - || return 1
    done | awk -F'[:, ]+' '/"frees"/ { recorded = $3 ~ /recorded/ } /"live_peak_bytes"/ { live = $3 }
                           /"safe_bytes"/ { if ($3 == "null" || $3 + 0 > safe + 0) { safe = $3; mode = recorded } }
                           END { print live, safe, mode + 0 }'
}

# The maximum slowdown of a policy at a capacity; - without kernels.
slowdown() {
    local mode
    for mode in ordered at-once; do
        "$program" run -p "$1" -w "$2" -d "sim:profile=h100,capacity=$3" --frees $mode --jobs 1 --csv -
    done | awk -f plots/clean.awk | awk -F, '$1 == "policy" { for (i = 1; i <= NF; i++) column[$i] = i; next }
        $column["passed"] != "true" { failed = 1 }
        $column["slowdown"] > most { most = $column["slowdown"] }
        END { if (failed) print "fails"; else if (most == "") print "-"; else printf "%.6f\n", most }'
}

calls() {
    "$program" run -p "$policy" -w "$1" -d "sim:profile=h100,capacity=$2" --frees at-once --jobs 1 --calls -
}

echo '| workload | live | safe | above | bound | slowdown | of the other | calls | late | moved | repeated |'
echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
for workload in "${workloads[@]}"; do
    trace=$work/once.trace many=$work/many.bin
    if [ -e "$workload" ]; then "$program" convert "$workload" "$trace"; else "$program" gen "$workload" -o "$trace"; fi >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 2; }
    "$program" convert "$trace" "$many" --repeat 4 >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 2; }
    read -r small held peak < <(peaks "$trace")
    read -r live safe recorded < <(capacity "$trace")
    read -r _ many_safe _ < <(capacity "$many")
    case $live,$safe,$many_safe in *null* | ,* | *,) echo "| ${workload##*/} | no capacity up to 4 x the live peak | | | | | | | | | |"; continue ;; esac
    room=$((safe * 21 / 20))
    calls "$trace" $room >"$work/once.csv"
    calls "$many" $((many_safe * 21 / 20)) >"$work/many.csv"
    second=$(grep -v '^#' "$trace" | awk '/^m,step$/ && ++steps == 2 { print NR - 1 } END { if (steps < 3) print "none" }' | tail -n 1)
    events=$("$program" inspect "$many" | awk '$1 == "events" { print $2 + 0 }')
    repeated=$(awk -F, -v half=$((events / 2)) 'NR > 1 && $2 != "event" && $1 >= half { n++ } END { print n + 0 }' "$work/many.csv")
    name=${workload##*/}
    name=${name%.csv.gz}
    [ "$recorded" = 0 ] || live=$held name="$name, as recorded"
    awk -F, -v name="$name" -v live="$live" -v small="$small" -v safe="$safe" -v own="$(slowdown "$policy" "$trace" $room)" \
        -v other="$(slowdown "$rival" "$trace" $room)" -v second="$second" -v peak="$peak" -v repeated="$repeated" '
        NR > 1 && $2 != "event" { calls++; ranges += $2 == "reserve"
            if (second != "none" && $1 > second) { late++; moved += $2 == "unmap"; again += $2 == "unmap" && $1 > peak } }
        END { mib = 1048576; bound = 1.02 * live + 2 * mib * ranges; far = bound + 2 * mib * small
              if (safe > bound) note = ", missed"
              if (safe > bound && small) note = sprintf("%s; %.1f with a page each%s", note, far / mib, safe > far ? ", missed" : "")
              if (second == "none") late = moved = "-"
              else if (moved) moved = moved ", " again + 0 " after the peak"
              printf "| %s | %.1f | %.0f | %.2f %% | %.1f%s | %s | %s | %d | %s | %s | %d |\n", name, live / mib, safe / mib,
                  100 * (safe / live - 1), bound / mib, note, own, other, calls, (late == "" ? 0 : late),
                  (moved == "" ? 0 : moved), repeated }' "$work/once.csv"
done
