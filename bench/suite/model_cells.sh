#!/bin/bash
# Makes the input of `allocrig model`: each policy and workload once on the card, and once on `sim` with the addresses
# that the card returned. Usage: bench/suite/model_cells.sh FOLDER [card|sim|both]
#     [-p REGEX] [-w REGEX] [-s PROFILE] [-c [-a AGAIN]..]
#
# `card` runs one after the other, so that runs do not disturb each other, and skips existing runs, so that an
# interrupted folder continues. `sim` needs no card and runs on all processors. PROFILE is the simulated card (default h100, or a file of
# `allocrig calibrate`). `plan` and `stalloc`, which need a file of their own for each workload, are left out.
#
# -c tells the simulated device the speed of the host: host_clock_ns is the time of reading the clock, the median of
# clock_ns in the run's card.csv, here and in the folders AGAIN, which have repetitions of the runs on the card (of
# two middle ones the mean, in whole ns). A run is left out if no card.csv has it.
#
# Exit status 1 if a run failed or was left out, 2 if the arguments are wrong.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
refuse() {
    echo "$0: $1" >&2
    exit 2
}
[ $# -ge 1 ] || { usage; exit 2; }
case $1 in '' | -*) refuse "\"$1\" is no folder: FOLDER comes first, then options" ;; esac
folder=$1 where=both policies_like=. workloads_like=. profile=h100 clock='' again=''
shift
case ${1:-} in card | sim | both) where=$1; shift ;; '' | -*) ;; *) refuse "\"$1\" is no place: card, sim or both" ;; esac
while getopts p:w:s:ca: option; do
    case $option in
    p) policies_like=$OPTARG ;;
    w) workloads_like=$OPTARG ;;
    s) profile=$OPTARG ;;
    c) clock=yes ;;
    a) again+=$OPTARG$'\n'
        [ -d "$OPTARG" ] || refuse "$OPTARG is no folder" ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || refuse "\"$1\" is no option; of options only -p, -w, -s and -a take a word"
[ -n "$clock" ] || [ -z "$again" ] || refuse "-a is for -c, which is not given"
for like in "$policies_like" "$workloads_like"; do
    grep -qE -e "$like" </dev/null 2>/dev/null
    [ $? -le 1 ] || refuse "\"$like\" is no regular expression"
done
export ALLOCRIG=${ALLOCRIG:-./allocrig}
export folder profile clock again
export CAPACITY=${CAPACITY:-40GiB} # the same on both: policies go by it

cells() {
    local policy workload
    { "$ALLOCRIG" list policies --names | grep -vxE 'null|plan|stalloc'
        echo torch:expandable_segments=true; } | grep -E -e "$policies_like" | while read -r policy; do
        for workload in embedding gradient_tape; do echo "$policy $workload ordered"; done
        for workload in gpt2_train dlrm_embedding tape_small side_streams; do
            echo "$policy workloads/data/$workload.default.csv.gz recorded"
        done
    done | awk -v like="$workloads_like" '$2 ~ like'
}

# host_clock CELL: the median of clock_ns of its runs on the card; empty if no run has it
host_clock() {
    local cell=$1 at
    while IFS= read -r at; do
        [ -z "$at" ] || [ ! -e "$at/$cell/card.csv" ] || echo "$at/$cell/card.csv"
    done <<<"$folder"$'\n'"$again" | tr '\n' '\0' | xargs -0r "$here/clock_of.sh"
}

# one card|sim POLICY WORKLOAD FREES
one() {
    local place=$1 policy=$2 workload=$3 frees=$4 at cell device ns
    cell=$(tr -c 'a-zA-Z0-9.\n' _ <<<"$(basename "$workload") $policy")
    at=$folder/$cell
    [ ! -e "$at/$place.csv" ] || return 0
    if [ "$place" = card ]; then
        mkdir -p "$at"
        device=cuda:capacity=$CAPACITY,record_addresses=$at/addresses
        rm -f "$at"/addresses*
    else
        [ -e "$at/card.csv" ] || { echo "$at: no run on the card" && return 1; }
        [ -e "$at/addresses" ] || : >"$at/addresses"
        device=sim:profile=$profile,capacity=$CAPACITY,addresses=$at/addresses
        if [ -n "$clock" ]; then
            ns=$(host_clock "$cell")
            [ -n "$ns" ] || { echo "$at: no card.csv has clock_ns: not run on sim" && return 1; }
            device+=,host_clock_ns=$ns
        fi
    fi
    if "$ALLOCRIG" run -p "$policy" -w "$workload" -d "$device" --frees "$frees" --reps 1 --jobs 1 --timeout 120 \
        --calls "$at/$place.calls" --csv "$at/$place.csv" >"$at/$place.out" 2>&1; then
        grep -oE 'DNF( @|:) .*finished|DNF: (timed|crashed|not) .*' "$at/$place.out" | sed "s,^,$at: $place: ,"
    else
        echo "$at: $place: $(tail -n 1 "$at/$place.out")"
        return 1
    fi
    return 0
}
here=$(dirname "$0")
export here
export -f one host_clock

chosen=$(cells)
[ -n "$chosen" ] || refuse "no policy and workload fit -p \"$policies_like\" and -w \"$workloads_like\""
failed=0
if [ "$where" != sim ]; then
    while read -r policy workload frees; do
        one card "$policy" "$workload" "$frees" </dev/null || failed=1
    done <<<"$chosen"
fi
if [ "$where" != card ]; then
    # shellcheck disable=SC2016 # expanded by the shell that xargs starts
    xargs -r -P "$(nproc 2>/dev/null || echo 2)" -L 1 bash -c 'one sim "$@"' _ <<<"$chosen" || failed=1
fi
echo "now: $ALLOCRIG model $folder -o PAGE.md"
exit "$failed"
