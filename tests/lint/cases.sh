#!/bin/bash
# A section of a table of cases is read by a test that names it: rows that nothing reads assert nothing. Those of
# format_* are cases of their own (tests/unit/test_formats.c).
set -u
export LC_ALL=C
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(find tests/unit/cases -type f ! -name 'format_*' | sort)
named=$(find tests -name '*.[ch]' -exec grep -ohE '\w+' {} + | sort -u)
findings=$(for file in "${files[@]}"; do
    sed -n 's/^== \([^ ]*\).*/\1/p' "$file" | sort | comm -23 - <(echo "$named") |
        sed "s|.*|$file: no test reads the section \"&\"|"
done)
lint_verdict cases ${#files[@]} "$findings"
