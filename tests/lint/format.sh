#!/bin/bash
# All C and C++ files are laid out as .clang-format says. `format.sh --fix` lays them out.
set -u
fix=0
[ "${1:-}" != --fix ] || { fix=1; shift; }
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

if ! command -v clang-format >/dev/null; then
    echo "skip format: clang-format is not installed"
    exit 0
fi
mapfile -t files < <(lint_files c h cc cu)
style=file:$lint_home/.clang-format
if [ $fix = 1 ]; then
    mapfile -t changed < <(clang-format --dry-run -Werror --style="$style" "${files[@]}" 2>&1 |
        sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: \(error\|warning\):.*/\1/p' | sort -u)
    [ ${#changed[@]} = 0 ] || clang-format -i --style="$style" "${changed[@]}"
    echo "laid out ${#changed[@]} of ${#files[@]} files"
    [ ${#changed[@]} = 0 ] || printf '  %s\n' "${changed[@]}"
    exit 0
fi
findings=$(clang-format --dry-run -Werror --style="$style" "${files[@]}" 2>&1 | grep -E '(error|warning):' |
    awk -F : '{ count[$1]++; if (!($1 in first)) first[$1] = $2 }
              END { for (file in count) printf "%s:%s: %d places are not laid out as .clang-format says: make format\n", \
                    file, first[file], count[file] }' | sort)
lint_verdict format ${#files[@]} "$findings"
