#!/bin/bash
# Draws the figures of the last run, as `make draw`. Usage: plots/draw.sh [RESULTS]
# RESULTS is results/latest by default. If ./allocrig exists, plots/data.sh completes RESULTS/data. The
# figures go to RESULTS/figures.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/.."
results=${1:-results/latest}
if [ -x allocrig ] && [ -d "$results/data" ]; then plots/data.sh "$results/data"; fi
plots/render.sh "$results/data" "$results/figures"
