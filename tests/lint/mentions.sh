#!/bin/bash
# A file that a comment or a document names is there: names go stale when files are joined or moved.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c h cc cu cuh def md sh)
findings=$(printf '%s\n' "${files[@]}" | python3 "$lint_home/tests/lint/mentions.py")
lint_verdict mentions ${#files[@]} "$findings"
