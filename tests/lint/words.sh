#!/bin/bash
# No file names a path of the machine that it was written on: the tree must mean the same anywhere.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(find . \( -path ./.build -o -path ./.git -o -path ./results/latest -o -path ./allocrig \
    -o -path ./tests/lint/fixtures -o -path ./tests/lint/words.sh \) -prune -o -type f -print | sed 's,^\./,,' | sort)
# A word boundary before, so that `network/` and `unshared/` pass.
findings=$(printf '%s\0' "${files[@]}" | xargs -0 grep -nIE \
    '(^|[^A-Za-z0-9_.])(/work/|(\.\./)?shared/|/home/[a-z]|/root/)' /dev/null |
    cut -c 1-160 | sed 's,$,   <- a path of one machine,')
lint_verdict words ${#files[@]} "$findings"
