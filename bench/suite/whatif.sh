#!/bin/bash
# Predicts each recorded setting of a program from its other recordings, and writes the table into
# results/what-if.md and between the marks in README.md. Usage: bench/suite/whatif.sh [FOLDER]
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-workloads/data}
table=$(mktemp)
trap 'rm -f "$table" "$table".*' EXIT
./allocrig advise -d sim --what-if "$folder"/*.csv.gz >"$table"

{
    printf '%s\n\n' '# Predicted against recorded' \
        'Made by `make whatif`. Each row: a program recorded under one setting, replayed under another, held against the recording
under that one. Requests are those of the first recording; those that only one of both holds were counted by size: libraries
try other workspaces (autotuning), and no replay can know. Bytes; retries and passes: predicted, then recorded.'
    cat "$table"
} >"$table.page"
mv "$table.page" results/what-if.md
chmod 644 results/what-if.md

begin='<!-- what-if: begin -->'
end='<!-- what-if: end -->'
if ! grep -qF "$begin" README.md || ! grep -qF "$end" README.md; then
    echo "whatif.sh: README.md has no place for the table: $begin .. $end" >&2
    exit 1
fi
awk -v begin="$begin" -v end="$end" -v table="$table" '
    $0 == begin { print; while ((getline line < table) > 0) print line; skip = 1 }
    $0 == end { skip = 0 }
    !skip && $0 != begin { print }' README.md >"$table.readme"
cmp -s "$table.readme" README.md || cat "$table.readme" >README.md
