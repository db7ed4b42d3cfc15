#!/bin/bash
# Rebuilds a paper's results and figures from the files of a manifest alone, as
# `make paper`. Usage:
#   plots/paper.sh [MANIFEST [OUT]]      (plots/paper.manifest, results/paper)
#   plots/paper.sh --write FILE..        prints a manifest of the files
# A manifest is the output of sha256sum: checksums and files, relative to the
# root of the repository. The first file that ends in .ini is the suite to run.
# Every file that the suite reads must be listed. If a file is missing, has
# changed, or is read and not listed, the script ends with status 1 before any
# run.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -u
cd "$(dirname "$0")/.." || exit 2
if [ "${1:-}" = --write ]; then
    shift
    [ $# -ge 1 ] || { echo "paper: --write wants the files of the manifest: those of an old one are its second column" >&2; exit 2; }
    exec sha256sum -- "$@"
fi
manifest=${1:-plots/paper.manifest}
out=${2:-results/paper}
program=${ALLOCRIG:-./allocrig}
[ -r "$manifest" ] || { echo "paper: no manifest $manifest; plots/paper.sh --write FILE.. prints one" >&2; exit 2; }
if ! sha256sum --strict --quiet -c "$manifest" >/dev/null 2>&1; then
    sha256sum -c "$manifest" 2>/dev/null | sed -n 's/^\(.*\): FAILED.*/paper: \1 is not what the manifest says it was/p' >&2
    echo "paper: nothing was rebuilt; if the change is meant, write $manifest anew with plots/paper.sh --write" >&2
    exit 1
fi
suite=$(awk '$2 ~ /\.ini$/ { print $2; exit }' "$manifest")
[ -n "$suite" ] || { echo "paper: $manifest lists no suite (a file that ends in .ini)" >&2; exit 2; }
# Files that the suite and plots/data.sh name.
for file in $(grep -hoE '^[A-Za-z0-9_./-]+\.(csv|trace|json)(\.gz|\.zst)?$' "$suite") \
    $(grep -oE 'workloads/data/[A-Za-z0-9_.]+' plots/data.sh); do
    awk -v file="$file" '$2 == file { found = 1 } END { exit !found }' "$manifest" ||
        { echo "paper: $file is read, and $manifest does not list it" >&2; exit 1; }
done
"$program" run "$suite" --output "$out" || exit
plots/data.sh "$out/data" || exit
plots/render.sh "$out/data" "$out/figures" || exit
sha256sum -- "$out/results.csv" "$out"/data/*.csv >"$out/sums" || exit
echo "paper: results and figures in $out"
echo "paper: of $(wc -l <"$manifest") files that are what $manifest says"
