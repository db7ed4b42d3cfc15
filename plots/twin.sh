#!/bin/bash
# Draws the bytes by owner of a scenario over its phases. Usage: plots/twin.sh SERIES.csv FIGURE [TITLE]
# (SERIES.csv: from allocrig twin --series; FIGURE: its name ends with .svg, .png or .pdf). Shows the card on which most
# is used; of more than 64 phases the start, the first two cycles and the last one. Exit status 3: gnuplot is missing.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 2 ] || { usage; exit 2; }
command -v gnuplot >/dev/null || exit 3
series=$(realpath "$1")
figure=$(realpath -m "$2")
[ -d "${figure%/*}" ] || exit 2
title=${3:-$(basename "${1%.csv}")}
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -F, -v table="$work/table" -v owners="$work/owners" -v steps="$work/steps" -f plots/twin.awk "$series" ||
    { echo "figures: $1 is not a series of allocrig twin" >&2; exit 2; }
form=${figure##*.}
if ! gnuplot -e "IN='$work/table'; OWNERS='$work/owners'; STEPS='$work/steps'; OUT='$work/figure.$form'; TERM='$form'; TITLE='${title//"'"/"''"}'" \
    plots/twin.gp 2>"$work/log" || [ ! -s "$work/figure.$form" ]; then
    echo "figures: plots/twin.gp failed on $1:" >&2
    cat "$work/log" >&2
    exit 1
fi
mv "$work/figure.$form" "$figure"
