#!/bin/bash
# Writes the profile h100-rested, from the calibrations in the folder of this script. Usage, from the root of the
# repository: results/published/h100/make_profile.sh FILE
#
# The profile is the median of ten machines (several calibrations of one machine: their median first), for the median
# clock of the 450 runs of model.md (column clock_ns): 37 ns. Rows that a calibration measured differently from today's
# are left out: calls of the pool one block at a time (before the seventh), rests with cold caches (the second), gathers
# by long rows (the eighth). host_clock_ps is three quarters of event_known in all: some did not state it, some stated
# the mean of all polls (README.md).
set -eu
[ $# = 1 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 2; }
here=$(dirname "$0") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pool='^(busy_)?cost: pool_(alloc|free) '
long_rows='^work: (gather|scatter_add_f32|scatter_add_f16|scatter_add_bf16) '
for file in "$here"/h100-{second,third,fourth,fifth,sixth,seventh-[123],eighth,ninth,tenth-[12],eleventh}.profile; do
    name=$(basename "$file" .profile)
    left_out='^$'
    case $name in
    h100-second) left_out="$pool|^rest_cost: " ;;
    h100-third | h100-fourth | h100-fifth | h100-sixth) left_out=$pool ;;
    h100-eighth) left_out=$long_rows ;;
    esac
    awk '/^cost: event_known / { known_ns = $4 } { line[NR] = $0 }
        END { for (i = 1; i <= NR; i++) print line[i] ~ /^host_clock_ps: / ? "host_clock_ps: " 750 * known_ns : line[i] }' "$file" |
        grep -vE "$left_out" >"$work/${name#h100-}.profile"
done
median() { "${ALLOCRIG:-./allocrig}" calibrate --median "$@"; }
for machine in seventh tenth; do
    median "$work/$machine"-[123].profile -o "$work/$machine.profile" >/dev/null
done
median "$work"/{second,third,fourth,fifth,sixth,seventh,eighth,ninth,tenth,eleventh}.profile --host-clock 37 --name h100-rested -o "$1"
