#!/bin/bash
# The shell scripts are clean by the shellcheck program, and the tests among them can be run. One that was
# clean is checked again when it, what it sources or the program changes.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

if ! command -v shellcheck >/dev/null; then
    echo "skip scripts: shellcheck is not installed"
    exit 0
fi
mapfile -t files < <({ lint_files sh bash; [ ! -d .ci ] || find .ci -type f; } | sed 's,^\./,,' | sort)
key="$(shellcheck --version | tr '\n' ' ') $(cat "$lint_home/tests/lint/"{scripts.sh,lib.bash} | cksum)"
mapfile -t stale < <(lint_stale scripts "$key" "${files[@]}")
# SC2016: dollars in single quotes are awk's.
findings=$([ ${#stale[@]} = 0 ] || printf '%s\0' "${stale[@]}" | xargs -0 -P 2 -n 15 shellcheck -x -e SC2016 -f gcc 2>&1
    for file in "${files[@]}"; do
        case $file in tests/cli/*.sh | tests/lint/*.sh) [ -x "$file" ] || echo "$file: cannot be run: chmod +x" ;; esac
    done)
[ -n "$findings" ] || lint_clean scripts
lint_verdict scripts ${#files[@]} "$findings"
