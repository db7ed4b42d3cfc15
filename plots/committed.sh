#!/bin/bash
# Redraws every figure of plots/figures, and the table of capacities in README.md, as `make figures`.
# Usage: plots/committed.sh [WORK]    (WORK: the folder of the run and its data; default .build/figures)
# They are drawn from a run of the default suite on the simulated card, without host times, from the data
# that plots/data.sh adds to it, and from results/history.jsonl. The same tree and the same gnuplot give
# the same bytes. All are drawn before the first is replaced.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
cd "$(dirname "$0")/.."
command -v gnuplot >/dev/null || { echo 'skipped: figures, since gnuplot is not installed ("make deps")'; exit 0; }
work=${1:-.build/figures}
program=${ALLOCRIG:-./allocrig}
suite=workloads/suites/default.ini
rm -rf "$work"
mkdir -p "$work"
sed 's/^time = yes/time = no/' "$suite" >"$work/default.ini"
"$program" run "$work/default.ini" -d sim:profile=h100 --output "$work/run" >"$work/table.txt"
data=$work/run/data
plots/data.sh "$data"
# Status 1 means that a figure has become worse, which does not matter here.
"$program" history results/history.jsonl --csv "$data/history.csv" >"$work/history.txt" 2>"$work/history.err" || [ $? = 1 ] ||
    { cat "$work/history.err" >&2; exit 2; }

for committed in plots/figures/*; do
    name=$(basename "$committed")
    case $name in
    twin-*)
        mkdir -p "$work/drawn"
        scenario=${name%.*}
        "$program" twin "workloads/scenarios/${scenario#twin-}.ini" --what-if no --figure "$work/drawn/$name" >/dev/null
        continue
        ;;
    esac
    FIGURES=${name%.*} plots/render.sh "$data" "$work/drawn" "${name##*.}" | grep -v '^figures: no ' || true
    [ -s "$work/drawn/$name" ] || { echo "figures: nothing draws $committed: plots/README.md says what does" >&2; exit 1; }
done

begin='<!-- capacities: begin -->'
end='<!-- capacities: end -->'
if ! grep -qF "$begin" README.md || ! grep -qF "$end" README.md; then
    echo "figures: README.md has no place for the table: $begin .. $end" >&2
    exit 1
fi
awk -f plots/clean.awk "$data/slowdown.csv" | awk -f plots/capacity_table.awk >"$work/capacities.md"
awk -v begin="$begin" -v end="$end" -v table="$work/capacities.md" '
    $0 == begin { print; while ((getline line < table) > 0) print line; skip = 1 }
    $0 == end { skip = 0 }
    !skip && $0 != begin { print }' README.md >"$work/README.md"

changed=0
replace() { # NEW OLD
    cmp -s "$1" "$2" || { cat "$1" >"$2" && echo "  $2" && changed=$((changed + 1)); }
}
echo 'figures that changed:'
rm -f "$work/drawn/captions.txt"
for drawn in "$work"/drawn/*; do replace "$drawn" "plots/figures/$(basename "$drawn")"; done
replace "$work/README.md" README.md
[ $changed != 0 ] || echo '  none'
