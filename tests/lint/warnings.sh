#!/bin/bash
# Every C file compiles without a warning, with gcc and with clang.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c | grep -Ev "$lint_cuda_files")
check_one() {
    local relaxed=
    [[ $2 != tests/* ]] || relaxed=-Wno-unused-parameter # cmocka passes a state to every test
    # shellcheck disable=SC2086 # flags are words
    "$1" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow \
        -Wconversion $relaxed -Werror -I. -Ibench/library $lint_cuda_flags -fsyntax-only "$2" 2>&1 | sed "s,^,$1: ,"
}
export -f check_one
findings=$(for compiler in gcc clang; do
    ! command -v $compiler >/dev/null || printf '%s\n' "${files[@]}" | sed "s,^,$compiler ,"
done | xargs -P 2 -L 1 bash -c 'check_one "$@"' _)
lint_verdict warnings ${#files[@]} "$findings"
