#!/bin/bash
# A file of code stays under 1,000 lines: one concept per file.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

limit=1000
mapfile -t files < <(lint_files c h cc cu sh gp py)
findings=$(wc -l "${files[@]}" | awk -v limit=$limit '$2 != "total" && $1 > limit {
    printf "%s: %d lines, more than %d: divide it by concept\n", $2, $1, limit }')
lint_verdict length ${#files[@]} "$findings"
