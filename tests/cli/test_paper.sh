#!/bin/bash
# `make paper`: rebuilds from a manifest; refuses where an input changed, is missing or is not listed,
# and runs nothing then. The manifest in the repository is of the files that are there.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
export ALLOCRIG
if [ "$TEST_VARIANT" != release ] && [ "${TEST_SOAK:-0}" != 1 ]; then
    echo "skip paper: a script over ordinary runs; make soak does it in this build too"
    exit 0
fi
tape=workloads/data/tape_small.default.csv.gz
suite=$TEST_TMP/paper.ini
manifest=$TEST_TMP/manifest
paper=$TEST_TMP/paper
printf '%s\n' '[suite]' 'name = paper' '[policies]' growth '[workloads]' "$tape" '[devices]' sim >"$suite"

check committed_manifest_holds quietly sha256sum -c plots/paper.manifest
check committed_manifest_has_a_suite grep -q '\.ini$' plots/paper.manifest
plots/paper.sh --write </dev/null >"$out" 2>"$err"
check no_files_are_no_manifest [ "$?" = 2 -a ! -s "$out" ]
plots/paper.sh --write "$suite" "$tape" workloads/data/gpt2_train.default.csv.gz >"$manifest"
plots/paper.sh "$manifest" "$paper" >"$out" 2>"$err"
check rebuilds [ "$?" = 0 ]
check has_results grep -q '^growth,' "$paper/results.csv"
check sums_are_of_the_files quietly sha256sum -c "$paper/sums"
command -v gnuplot >/dev/null && check has_figures [ -s "$paper/figures/memory-tape_small.pdf" ]

# stops NAME PATTERN: it ends with 1, says why, and writes nothing
stops() {
    rm -rf "$paper"
    plots/paper.sh "$manifest" "$paper" >"$out" 2>"$err"
    check "$1" [ "$?$(ls "$paper" 2>/dev/null)" = 1 ]
    check "$1_is_said" grep -q "$2" "$err"
}
echo '# a comment more' >>"$suite"
stops changed "paper.ini is not what the manifest says"
plots/paper.sh --write "$suite" workloads/data/gpt2_train.default.csv.gz >"$manifest"
stops not_listed "$tape is read, and .* does not list it"
plots/paper.sh --write "$suite" "$tape" workloads/data/gpt2_train.default.csv.gz >"$manifest"
rm "$suite"
stops missing 'paper.ini is not what the manifest says'
finish
