#!/bin/bash
# A section of a table of cases is read by a test: rows that nothing reads assert nothing. The section of FILE is named
# in test_FILE.c or in a source that names FILE, as a test, a SECTION or a text. Those of format_* are cases of their own
# (tests/unit/test_formats.c).
set -u
export LC_ALL=C
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(find tests/unit/cases -type f ! -name 'format_*' | sort)
mapfile -t sources < <(find tests -path tests/lint/fixtures -prune -o -name '*.[ch]' -print | sort)
findings=$(for file in "${files[@]}"; do
    table=${file##*/}
    mapfile -t readers < <(printf '%s\n' "${sources[@]}" | grep "/test_$table\.c$"
        grep -lE "\"(tests/unit/cases/)?$table\"" "${sources[@]}")
    named=$(grep -ohE '(SECTION|TEST)\(\w+|"\w+"' /dev/null "${readers[@]}" | sed -E 's/^(SECTION|TEST)\(//; s/"//g' | sort -u)
    sed -n 's/^== \([^ ]*\).*/\1/p' "$file" | sort | comm -23 - <(echo "$named") |
        sed "s|.*|$file: no test reads the section \"&\"|"
done)
lint_verdict cases ${#files[@]} "$findings"
