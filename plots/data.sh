#!/bin/bash
# Adds data that need runs of their own to DATA, the folder of a run's data: the placements of one run,
# and a frontier. Usage: plots/data.sh DATA
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/.."
"${ALLOCRIG:-./allocrig}" run -p torch -w workloads/data/gpt2_train.default.csv.gz -d sim --metrics none \
    --placements "$1/placements-gpt2_train-torch.csv" >"$1/placements-gpt2_train-torch.txt"
bench/suite/frontier.sh -p best-fit -p torch -p torch:expandable_segments=true -p growth -p bfc -p rmm-pool \
    -w varlen_transformer --vary batch=1,2,4,8,12,16 --capacity "$(seq -s, -f %gGiB 4 2 24)" \
    --csv "$1/frontier-varlen_transformer.csv" >/dev/null
