#!/bin/bash
# Checks every submission, makes its row on the test split of results/dataset, and the page of all rows.
# Usage: bench/leaderboard/make.sh [OUT [options of `submit run`..]]; OUT: results/leaderboard
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
out=${1:-results/leaderboard}
[ $# = 0 ] || shift
[ -f results/dataset/v1.tsv ] || workloads/dataset/build.py
mkdir -p "$out"
for folder in bench/leaderboard/submissions/*/; do
    name=$(basename "$folder")
    ./allocrig submit check "$folder" || { echo "$name is left out: a check failed" >&2 && continue; }
    ./allocrig submit run "$folder" -o "$out/$name.json" "$@"
done
./allocrig submit page "$out"/*.json -o "$out/index.html"
