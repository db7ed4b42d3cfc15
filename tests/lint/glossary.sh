#!/bin/bash
# The project's terms: words out of use (glossary.txt) are refused in comments, strings and documents,
# and lines that are too long to read: comments over 100 columns, documents over 120 (tables, links
# and code apart).
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

terms=$lint_home/tests/lint/glossary.txt
mapfile -t code < <(lint_files c h cc cu cuh def)
mapfile -t documents < <(lint_files md | grep -vE '^(CHANGELOG\.md|tests/golden/data/|workloads/data/.*/)')
findings=$({ printf '%s\n' "${code[@]}" | sed 's/^/code /'; printf '%s\n' "${documents[@]}" | sed 's/^/text /'; } |
    python3 "$lint_home/tests/lint/glossary.py" "$terms")
lint_verdict glossary $((${#code[@]} + ${#documents[@]})) "$findings"
