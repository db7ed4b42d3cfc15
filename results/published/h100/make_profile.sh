#!/bin/bash
# The profile h100-rested, from the calibrations that are beside this script. Usage, from the top of the
# repository: results/published/h100/make_profile.sh FILE
#
# The median of six machines (the seventh calibration is of three processes on one: their median first), for the
# median clock of the 450 runs of model.md's cells (column clock_ns): 37 ns. Left out is what a calibration measured otherwise
# than those of today: calls of the pool one block at a time (all but the seventh), rests with cold caches (the second).
set -eu
[ $# = 1 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 2; }
here=$(dirname "$0") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pool='^(busy_)?cost: pool_(alloc|free) '
grep -vE "$pool|^rest_cost: " "$here/h100-second.profile" >"$work/second.profile"
for which in third fourth fifth sixth; do
    grep -vE "$pool" "$here/h100-$which.profile" >"$work/$which.profile"
done
median() { "${ALLOCRIG:-./allocrig}" calibrate --median "$@"; }
median "$here"/h100-seventh-[123].profile -o "$work/seventh.profile" >/dev/null
median "$work"/{second,third,fourth,fifth,sixth,seventh}.profile --host-clock 37 --name h100-rested -o "$1"
