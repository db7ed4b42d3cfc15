#!/bin/bash
# Draws the five figures of claims about GPU memory, as SVG, PNG and PDF (8.5 cm wide).
# Usage: plots/claims.sh FOLDER OUT    (FOLDER: written by bench/suite/claims_card.sh)
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# = 2 ] || { usage; exit 2; }
[ -e "$1/numbers.csv" ] || { echo "claims: $1/numbers.csv is not there: bench/suite/claims_card.sh writes it" >&2; exit 2; }
folder=$(cd "$1" && pwd)
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in greedy growth embedding tape kept; do
    for form in svg png pdf; do
        if ! gnuplot -e "IN='$folder'; OUT='$work/figure.$form'; TERM='$form'; NAME='$name'" \
            plots/claims.gp 2>"$work/log" || [ ! -s "$work/figure.$form" ]; then
            echo "claims: plots/claims.gp failed on $name:" >&2
            cat "$work/log" >&2
            exit 1
        fi
        mv "$work/figure.$form" "$out/claim-$name.$form"
    done
done
