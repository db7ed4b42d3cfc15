#!/bin/bash
# Writes the C source of build_info() (environment.h). Usage:
#   bench/machine/build_info.sh OUT VERSION VARIANT COMPILER FLAGS
# OUT keeps its time if its text does not change, so that make compiles nothing.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | fold -sw 80 && exit 0 ;; esac
set -eu
out=$1 version=$2 variant=$3 compiler=$4 flags=$5
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
dirty=false
# The history of results changes with each commit that is measured; it is no source.
[ -z "$(git status --porcelain --untracked-files=no -- . ':!results/history.jsonl' 2>/dev/null)" ] || dirty=true
cat >"$out.new" <<END
#include "bench/machine/environment.h"
const struct build_info *build_info(void)
{
    static const struct build_info info = {
        "$version", "$commit", $dirty, "$variant",
        "$($compiler --version | head -n 1)",
        "$flags"};
    return &info;
}
END
if cmp -s "$out.new" "$out"; then rm "$out.new"; else mv "$out.new" "$out"; fi
