#!/bin/bash
# Each header compiles alone, as C11, without a warning, with gcc and clang.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files h | grep -Ev "$lint_cuda_files")
findings=$(for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for file in "${files[@]}"; do
        # A second include of the same header shows a missing guard.
        # shellcheck disable=SC2086 # flags are words
        printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$file" "$file" |
            $compiler -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
                -Wno-unused-function -I. $lint_cuda_flags -fsyntax-only -x c - 2>&1 |
            sed "s,^,$file alone with $compiler: ," | head -n 4
    done
done)
lint_verdict headers ${#files[@]} "$findings"
