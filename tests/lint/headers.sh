#!/bin/bash
# Each header compiles alone, as C11, without a warning, with clang, which takes half of the time, or gcc if there is
# no clang. (Where it is included the warnings lint compiles it with both.) A header that was clean is compiled again
# when it, a header that it includes, or the compiler changes.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files h | grep -Ev "$lint_cuda_files")
compiler=clang
command -v $compiler >/dev/null || compiler=gcc
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
key="$($compiler --version | head -n 1) $lint_cuda_flags $(cat "$lint_home/tests/lint/"{headers.sh,lib.bash} | cksum)"
mapfile -t stale < <(lint_stale headers "$key" "${files[@]}")
all=()
for file in "${stale[@]}"; do
    stub=$stubs/${file//\//,}.c
    # A second include of the same header shows a missing guard.
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$file" "$file" >"$stub"
    all+=("$stub")
done
findings=$(lint_compile $compiler -Wno-unused-function "${all[@]}" | grep -o "$stubs/[^:]*\.c" | sort -u |
    while read -r stub; do
        file=$(basename "$stub" .c)
        lint_compile $compiler -Wno-unused-function "$stub" | head -n 4 | sed "s,^,${file//,//} alone: ,"
    done)
[ -n "$findings" ] || lint_clean headers
lint_verdict headers ${#files[@]} "$findings"
