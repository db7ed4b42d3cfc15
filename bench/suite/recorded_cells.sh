#!/bin/bash
# Replays each recording that has kernels under the policy and settings that recorded it, with host times as recorded
# and without.
# Usage: bench/suite/recorded_cells.sh FOLDER [card|sim|both [PROFILE]] [-w REGEX] [-H HOST] [-n RUNS] [-c]
#
# FOLDER/RECORDING/{card,sim}.{recorded,none}.csv: a row for each run, as `allocrig run --csv` writes it. Existing files
# are kept. PROFILE is the simulated card (default h100). -w: only recordings whose name matches; -H: only host times
# recorded or none; -n: the number of runs on the card (default 1).
#
# -c tells the simulated device the speed of the host: host_clock_ns is the time of reading the clock, the median of
# clock_ns in the recording's card.HOST.csv. The profile must state the time of its own host (h100-rested).
#
# Exit status 1 if a run failed or is missing, 2 if the arguments are wrong.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
refuse() {
    echo "$0: $1" >&2
    exit 2
}
[ $# -ge 1 ] || { usage; exit 2; }
case $1 in '' | -*) refuse "\"$1\" is no folder: FOLDER comes first, then options" ;; esac
folder=$1 where=both profile=h100 like=. hosts='recorded none' runs=1 clock='' named=''
shift
case ${1:-} in card | sim | both) where=$1 named=yes; shift ;; esac
case ${1:-} in
'' | -*) ;;
*) # A word that is neither place nor profile would otherwise be missed by each run on sim.
    [ -n "$named" ] || refuse "\"$1\" is no place: card, sim or both, then PROFILE"
    profile=$1
    shift ;;
esac
while getopts w:H:n:c option; do
    case $option in
    w) like=$OPTARG ;;
    H) hosts=$OPTARG ;;
    n) runs=$OPTARG ;;
    c) clock=yes ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || refuse "\"$1\" is no option; of options only -w, -H and -n take a word"
[[ '' =~ $like ]] 2>/dev/null
[ $? -le 1 ] || refuse "\"$like\" is no regular expression"
case $hosts in recorded | none | 'recorded none') ;; *) refuse "\"$hosts\" is no host time: recorded or none" ;; esac
[[ $runs =~ ^([1-9][0-9]{0,2}|1000)$ ]] || refuse "\"$runs\" is no number of runs: a whole number from 1 to 1000"
here=$(dirname "$0")
rig=${ALLOCRIG:-./allocrig}
failed=0 fitting=0

# one card|sim TRACE POLICY recorded|none
one() {
    local place=$1 trace=$2 policy=$3 host=$4 at device=cuda reps=$runs ns
    at=$folder/$(basename "$trace" .csv.gz)
    mkdir -p "$at"
    [ ! -e "$at/$place.$host.csv" ] || return 0
    if [ "$place" = sim ]; then
        device=sim:profile=$profile reps=1
        if [ -n "$clock" ]; then
            ns=$([ ! -e "$at/card.$host.csv" ] || "$here/clock_of.sh" "$at/card.$host.csv")
            [ -n "$ns" ] || { echo "$at: no card.$host.csv tells clock_ns: not run on sim" && failed=1 && return; }
            device+=,host_clock_ns=$ns
        fi
    fi
    if ! "$rig" run -p "$policy" -w "$trace" -d "$device" --host "$host" --frees recorded --reps "$reps" \
        --jobs 1 --timeout 60 --csv "$at/$place.$host.csv" >"$at/$place.$host.out" 2>&1; then
        echo "$at: $place: $host: $(tail -n 1 "$at/$place.$host.out")"
        failed=1
    fi
}

for trace in workloads/data/*.csv.gz; do
    [[ $(basename "$trace") =~ $like ]] || continue
    [ "$(zcat "$trace" | grep -c '^kernel,')" -gt 0 ] || continue
    fitting=1
    # The second line of the page names the policy that matches the recorder.
    policy=$("$rig" fidelity "$trace" | sed -n 2p)
    for host in $hosts; do
        [ "$where" = sim ] || one card "$trace" "$policy" "$host" </dev/null
        [ "$where" = card ] || one sim "$trace" "$policy" "$host" </dev/null
    done
done
[ "$fitting" = 1 ] || refuse "no recording with kernels fits -w \"$like\""
exit "$failed"
