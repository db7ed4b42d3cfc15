#!/bin/bash
# The shell scripts are clean by the shellcheck program, and the tests among them can be run.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

if ! command -v shellcheck >/dev/null; then
    echo "skip scripts: shellcheck is not installed"
    exit 0
fi
mapfile -t files < <({ lint_files sh bash; [ ! -d .ci ] || find .ci -type f; } | sed 's,^\./,,' | sort)
# SC2016: dollars in single quotes are awk's.
findings=$(shellcheck -x -e SC2016 -f gcc "${files[@]}" 2>&1
    for file in "${files[@]}"; do
        case $file in tests/cli/*.sh | tests/lint/*.sh) [ -x "$file" ] || echo "$file: cannot be run: chmod +x" ;; esac
    done)
lint_verdict scripts ${#files[@]} "$findings"
