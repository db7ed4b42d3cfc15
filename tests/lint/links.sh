#!/bin/bash
# Every relative link in a page leads to a file that is there.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files md)
findings=$(for file in "${files[@]}"; do
    grep -noE '\]\([^)# ]+' "$file" | while IFS= read -r hit; do
        line=${hit%%:*}
        target=${hit#*](}
        case $target in http://* | https://* | mailto:*) continue ;; esac
        [ -e "$(dirname "$file")/$target" ] || echo "$file:$line: leads to $target, which is not there"
    done
done)
lint_verdict links ${#files[@]} "$findings"
