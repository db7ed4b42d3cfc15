#!/bin/bash
# cppcheck finds nothing. What it is told to pass over stands, with the reason, in cppcheck.txt.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

if ! command -v cppcheck >/dev/null; then
    echo "skip cppcheck: cppcheck is not installed"
    exit 0
fi
mapfile -t files < <(lint_files c | grep -v '^tests/')
cache=$lint_home/.build/cppcheck/$(printf '%s' "$lint_root" | cksum | cut -d ' ' -f 1)
mkdir -p "$cache"
suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
sed -e '/^#/d' -e '/^$/d' "$lint_home/tests/lint/cppcheck.txt" >"$suppressions"
findings=$(cppcheck -j 2 --quiet --std=c11 --language=c --enable=warning,performance,portability --inline-suppr \
    --suppressions-list="$suppressions" --cppcheck-build-dir="$cache" --template='{file}:{line}: {id}: {message}' \
    -D__GNUC__ -I. "${files[@]}" 2>&1)
lint_verdict cppcheck ${#files[@]} "$findings"
