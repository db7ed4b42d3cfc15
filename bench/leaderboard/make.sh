#!/bin/bash
# Checks every submission, makes its row on the test split of results/dataset, and the page of all rows.
# Usage: bench/leaderboard/make.sh [OUT [submit.py's options of run..]]; OUT: results/leaderboard
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
out=${1:-results/leaderboard}
[ $# = 0 ] || shift
[ -f results/dataset/SHA256SUMS ] || workloads/dataset/build.py
mkdir -p "$out"
for folder in bench/leaderboard/submissions/*/; do
    name=$(basename "$folder")
    bench/leaderboard/submit.py check "$folder" || { echo "$name is left out: a check failed" >&2 && continue; }
    bench/leaderboard/submit.py run "$folder" -o "$out/$name.json" "$@"
done
bench/leaderboard/submit.py page "$out"/*.json -o "$out/index.html"
