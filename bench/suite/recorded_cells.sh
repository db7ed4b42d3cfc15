#!/bin/bash
# Replays each recording that has kernels under the policy and settings that recorded it, with host
# times as recorded and without. Usage: bench/suite/recorded_cells.sh FOLDER [card|sim|both] [PROFILE]
#
# FOLDER/RECORDING/{card,sim}.{recorded,none}.csv: a row each, as `allocrig run --csv` writes it.
# What is there is left alone. PROFILE is the simulated card (default h100).
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 1 ] || { usage; exit 2; }
folder=$1 where=${2:-both} profile=${3:-h100}
rig=${ALLOCRIG:-./allocrig}
failed=0

# one card|sim TRACE POLICY recorded|none
one() {
    local place=$1 trace=$2 policy=$3 host=$4 at device=cuda
    at=$folder/$(basename "$trace" .csv.gz)
    [ "$place" = card ] || device=sim:profile=$profile
    mkdir -p "$at"
    [ ! -e "$at/$place.$host.csv" ] || return 0
    if ! "$rig" run -p "$policy" -w "$trace" -d "$device" --host "$host" --frees recorded --reps 1 \
        --jobs 1 --timeout 60 --csv "$at/$place.$host.csv" >"$at/$place.$host.out" 2>&1; then
        echo "$at: $place: $host: $(tail -n 1 "$at/$place.$host.out")"
        failed=1
    fi
}

for trace in workloads/data/*.csv.gz; do
    [ "$(zcat "$trace" | grep -c '^kernel,')" -gt 0 ] || continue
    # The second line of the page names the policy that answers to the recorder.
    policy=$("$rig" fidelity "$trace" | sed -n 2p)
    for host in recorded none; do
        [ "$where" = sim ] || one card "$trace" "$policy" "$host" </dev/null
        [ "$where" = card ] || one sim "$trace" "$policy" "$host" </dev/null
    done
done
exit "$failed"
