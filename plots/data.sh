#!/bin/bash
# Adds to DATA, the folder of a run's figures, what comes of runs of their own: the placements of one
# run. Usage: plots/data.sh DATA
set -eu
cd "$(dirname "$0")/.."
./allocrig run -p torch -w workloads/data/gpt2_train.default.csv.gz -d sim --metrics none \
    --placements "$1/placements-gpt2_train-torch.csv" >/dev/null
