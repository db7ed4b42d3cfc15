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
# The text of tests/cli/lib.bash, which most tests source, is a third of the work. So they are checked in a copy of the
# tree, made of links, in which that file only sets its variables; it is checked itself as it is.
library=tests/cli/lib.bash copy=$PWD
if [ -e $library ]; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    for folder in . tests tests/cli; do
        rm -f "$copy/$folder" 2>/dev/null
        mkdir -p "$copy/$folder" && find "$PWD/$folder" -mindepth 1 -maxdepth 1 ! -name .git -exec ln -s -t "$copy/$folder" {} +
    done
    rm "$copy/$library"
    # In reverse order, so that what is set to a number or a status comes last.
    grep -oE '^ *[a-z_]+=([0-9]+$|\$\?$)?' $library | sed -e 's/^ *//' -e 's/=$/=$TEST_TMP/' -e 's/\(.*\)=.*/&; : "$\1"/' | sort -ru >"$copy/$library"
fi
# SC2016: dollars in single quotes are awk's.
check=(shellcheck -x -e SC2016 -f gcc)
findings=$([ ${#stale[@]} = 0 ] || printf '%s\n' "${stale[@]}" | grep -vxF "$library" | (cd "$copy" && xargs -r -P 2 -n 15 "${check[@]}") 2>&1
    [[ " ${stale[*]} " != *" $library "* ]] || "${check[@]}" "$library"
    for file in "${files[@]}"; do
        case $file in tests/cli/*.sh | tests/lint/*.sh) [ -x "$file" ] || echo "$file: cannot be run: chmod +x" ;; esac
    done)
[ -n "$findings" ] || lint_clean scripts
lint_verdict scripts ${#files[@]} "$findings"
