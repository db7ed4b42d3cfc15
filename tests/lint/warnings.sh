#!/bin/bash
# Every C file compiles without a warning, with gcc and with clang. A file that was clean is compiled
# again when it, a header that it includes, or the compiler changes.
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c | grep -Ev "$lint_cuda_files")
findings=
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    key="$($compiler --version | head -n 1) $lint_cuda_flags $(cat "$lint_home/tests/lint/"{warnings.sh,lib.bash} | cksum)"
    mapfile -t stale < <(lint_stale warnings-$compiler "$key" "${files[@]}")
    [ ${#stale[@]} -gt 0 ] || continue
    mapfile -t product < <(printf '%s\n' "${stale[@]}" | grep -v '^tests/')
    mapfile -t tests < <(printf '%s\n' "${stale[@]}" | grep '^tests/')
    # cmocka passes a state to every test
    found=$(lint_compile $compiler '' "${product[@]}"; lint_compile $compiler -Wno-unused-parameter "${tests[@]}")
    [ -n "$found" ] || lint_clean warnings-$compiler
    [ -z "$found" ] || findings+="$compiler: ${found//$'\n'/$'\n'$compiler: }"$'\n'
done
lint_verdict warnings ${#files[@]} "$findings"
