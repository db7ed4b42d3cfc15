#!/bin/bash
# Predicts each recorded setting of a program from its other recordings, and writes the table into
# results/what-if.md. Usage: bench/suite/whatif.sh [FOLDER]
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-workloads/data}
table=$(mktemp)
trap 'rm -f "$table" "$table".*' EXIT
./allocrig advise -d sim --what-if "$folder"/*.csv.gz >"$table"

{
    printf '%s\n\n' '# Predicted against recorded' \
        '`make whatif` writes this page. Each row is a program that was recorded under one setting of its allocator and replayed
under another, compared with the recording under that other setting. The column "only in one" counts, by size, the
requests that only one of the two recordings has: libraries try other workspaces there (autotuning), which no replay can
predict. Sizes are bytes; retries and passes are predicted, then recorded.'
    cat "$table"
} >"$table.page"
mv "$table.page" results/what-if.md
chmod 644 results/what-if.md
