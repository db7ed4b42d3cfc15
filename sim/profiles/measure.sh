#!/bin/bash
# Measures the card of this machine and writes its profile, in place of one with another card's costs. Usage, from the
# root of the repository, after make:
#
#   sim/profiles/measure.sh NAME FILE [OPTIONS of calibrate]
#
# NAME is the profile, such as h200. The line of the card's other names (also:) is taken from sim/profiles/NAME.profile if
# it is there. Then: cp FILE sim/profiles/NAME.profile && make. `allocrig list devices sim` says "measured" after that.
set -eu
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
[ $# -ge 2 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 2; }
name=$1 file=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${ALLOCRIG:-./allocrig}" calibrate --name "$name" -o "$work/measured.profile" "$@"
also=$(grep '^also: ' "sim/profiles/$name.profile" || true)
awk -v also="$also" '!/^also: / { print } /^card: / && also { print also }' "$work/measured.profile" >"$file"
