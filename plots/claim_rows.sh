#!/bin/bash
# Draws a figure for each row of the table of claims, as SVG, PNG and PDF (8.5 cm wide).
# Usage: plots/claim_rows.sh FOLDER OUT [FORM]..    (FOLDER: written by bench/suite/claims.sh; FORM: as in render.sh)
# A row that was not measured gets no figure; figures of an earlier run are removed.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80; }
case ${1:-} in -h | --help) usage && exit 0 ;; esac
set -u
[ $# -ge 2 ] || { usage; exit 2; }
[ -e "$1/claims.tsv" ] || { echo "claims: $1/claims.tsv is not there: bench/suite/claims.sh writes it" >&2; exit 2; }
command -v gnuplot >/dev/null || { echo 'skipped: figures, since gnuplot is not installed ("make deps")'; exit 0; }
folder=$(cd "$1" && pwd)
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
shift 2
forms=("$@")
[ $# -gt 0 ] || forms=(svg png pdf)
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$out"/claim-*.{svg,png,pdf}
# The texts, quoted for single quotes of gnuplot.
text() {
    echo "${1//"'"/"''"}"
}
while IFS=$'\t' read -r row verdict _ value control_value bound experiment control told control_told measure says; do
    [ "$value" != - ] || continue
    # The first number of "0.98 (76.9 GiB / 78.7 GiB)".
    set="IN='$folder/data'; SAYS='$(text "$says")'; VERDICT='$(text "$verdict")'; MEASURE='$measure'; BOUND='$bound'; EXPERIMENT='$experiment'; CONTROL='$control'; VALUE='$value'; CONTROL_VALUE='$control_value'; TOLD='${told%% (*}'; CONTROL_TOLD='${control_told%% (*}'"
    for form in "${forms[@]}"; do
        if ! gnuplot -e "$set; OUT='$work/figure.$form'; TERM='$form'" plots/claim_rows.gp 2>"$work/log" ||
            [ ! -s "$work/figure.$form" ]; then
            echo "claims: plots/claim_rows.gp failed on $row:" >&2
            cat "$work/log" >&2
            exit 1
        fi
        file=claim-$row.${form%-column}
        [ "$form" = "${form%-column}" ] || file=claim-$row-column.${form%-column}
        mv "$work/figure.$form" "$out/$file"
    done
done < <(tail -n +2 "$folder/claims.tsv")
