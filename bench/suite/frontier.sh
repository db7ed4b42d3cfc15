#!/bin/bash
# Which capacities serve a workload as one of its parameters grows: runs every policy x value x capacity, and
# writes whether each passes to a table and a CSV file, from which plots/frontier.gp draws. Usage:
#   bench/suite/frontier.sh -p SPEC [-p SPEC].. -w GENERATOR --vary KEY=A,B,C.. --capacity C1,C2,..
#                           [--csv FILE] [--draw FOLDER]
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
usage() {
    echo "frontier: $1; write frontier.sh -p SPEC.. -w GENERATOR --vary KEY=A,B,C --capacity C1,C2 [--csv FILE] [--draw FOLDER]" >&2
    exit 2
}
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${ALLOCRIG:-$root/allocrig}
policies=()
workload='' vary='' capacities='' csv='' draw=''
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage "$1 needs a value"
    case $1 in
    -p) policies+=(-p "$2") ;;
    -w) workload=$2 ;;
    --vary) vary=$2 ;;
    --capacity) capacities=$2 ;;
    --csv) csv=$2 ;;
    --draw) draw=$2 ;;
    *) usage "there is no option $1" ;;
    esac
    shift 2
done
[ ${#policies[@]} -gt 0 ] || usage 'no policy given'
[ -n "$workload" ] || usage 'no workload given'
case $vary in ?*=?*) ;; *) usage 'no parameter to vary' ;; esac
[ -n "$capacities" ] || usage 'no capacity given'
key=${vary%%=*}
IFS=, read -ra values <<<"${vary#*=}"
IFS=, read -ra sizes <<<"$capacities"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
devices=()
for size in "${sizes[@]}"; do devices+=(-d "sim:capacity=$size"); done
joint=:
case $workload in *:*) joint=, ;; esac
echo 'policy,parameter,value,capacity_bytes,passed,live_peak_bytes' >"$work/frontier.csv"
for value in "${values[@]}"; do
    varied=$workload$joint$key=$value
    "$program" run "${policies[@]}" -w "$varied" "${devices[@]}" --metrics none --on-fail stop \
        --csv "$work/runs.csv" >/dev/null || exit
    # The requests of the program do not depend on the card.
    "$program" capacity -p null -w "$varied" --json "$work/peak.json" >/dev/null || exit
    peak=$(sed -n 's/.*"live_peak_bytes": \([0-9]*\).*/\1/p' "$work/peak.json")
    awk -f "$root/plots/clean.awk" "$work/runs.csv" | awk -F, -v key="$key" -v value="$value" -v peak="$peak" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["policy_spec"] "," key "," value "," $at["capacity_bytes"] "," $at["passed"] "," peak }' >>"$work/frontier.csv"
done

# The table: for each policy and value, the smallest capacity from which on all pass.
awk -F, -v key="$key" 'NR > 1 {
        if (!($1 in known)) { known[$1] = 1; policy[++n] = $1 }
        if (!($3 in peak)) { value[++m] = $3; peak[$3] = $6 }
        c = $4 + 0
        if ($5 == "true") { passed[$1, $3, c] = 1 } else if (c > worst[$1, $3]) { worst[$1, $3] = c }
        if (!(c in seen)) { seen[c] = 1; size[++s] = c }
    }
    END {
        printf "%-32s", "MiB from which on all pass; " key; for (j = 1; j <= m; j++) printf " %10s", value[j]; print ""
        printf "%-32s", "live peak"; for (j = 1; j <= m; j++) printf " %10.1f", peak[value[j]] / 1048576; print ""
        for (i = 1; i <= n; i++) {
            printf "%-32s", policy[i]
            for (j = 1; j <= m; j++) {
                least = 0
                for (k = 1; k <= s; k++)
                    if (size[k] > worst[policy[i], value[j]] && (!least || size[k] < least)) least = size[k]
                printf " %10s", least ? sprintf("%.1f", least / 1048576) : "none"
            }
            print ""
        }
    }' "$work/frontier.csv"
if [ -n "$draw" ]; then
    mkdir -p "$work/data"
    cp "$work/frontier.csv" "$work/data/frontier-${workload%%:*}.csv"
    "$root/plots/render.sh" "$work/data" "$draw" | grep -v '^figures: no ' # the others have no data here
fi
[ -z "$csv" ] || { cp "$work/frontier.csv" "$csv.new" && mv "$csv.new" "$csv"; }
