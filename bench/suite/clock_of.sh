#!/bin/bash
# The speed of the host: the time of reading its clock in whole ns, the median of clock_ns in all rows of files of
# `allocrig run --csv` (for an even number the mean of the middle two). No output if no row has it; values that
# are not positive numbers do not count.
# Usage: bench/suite/clock_of.sh FILE.csv...
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 1 ] || { usage; exit 2; }
for file; do
    if [ -d "$file" ] || [ ! -r "$file" ]; then
        echo "$0: $file cannot be read as a file" >&2
        exit 2
    fi
done
awk -F, '
    { sub(/\r$/, "") }
    { gsub(/"[^"]*"/, "") } # commas in them part no fields
    FNR == 1 { column = 0; for (i = 1; i <= NF; i++) if ($i == "clock_ns") column = i; next }
    column && $column ~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/ && $column + 0 > 0 { print $column }' "$@" | LC_ALL=C sort -n | awk '
    { value[NR] = $1 }
    END { if (NR) print int((value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 + 0.5) }'
