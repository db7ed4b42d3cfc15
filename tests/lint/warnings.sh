#!/bin/bash
# Every C file compiles without a warning, with gcc and with clang. A file that was clean is compiled
# again when it, a header that it includes, or the compiler changes. With gcc the release build has
# compiled most of them, and kept its warnings in NAME.o.warnings (an empty file: none).
set -u
# shellcheck source=tests/lint/lib.bash
. "$(dirname "$0")/lib.bash"

mapfile -t files < <(lint_files c | grep -Ev "$lint_cuda_files")
# built FILE...: those that .build/release has an object of, made by gcc after the last change of a header
built() {
    local file at header
    [ "$lint_root" = "$lint_home" ] && grep -qs '^gcc ' .build/release/flags || return
    header=$(lint_files h | tr '\n' '\0' | xargs -0 ls -t | sed -n 1p)
    for file in "$@"; do
        at=.build/release/${file%.c}.o
        [ ! -e "$at.warnings" ] || [ ! "$at" -nt "$file" ] || [ ! "$at" -nt "$header" ] || echo "$file"
    done
}

# What most files include is read once for clang. (A file that includes too little is found with gcc.)
common=$(mktemp -d)
trap 'rm -rf "$common"' EXIT
printf '#include <%s.h>\n' ctype errno inttypes limits math setjmp stdarg stdbool stddef stdint stdio stdlib string time >"$common/c.h"

findings=
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    key="$($compiler --version | head -n 1) $lint_cuda_flags $(cat "$lint_home/tests/lint/"{warnings.sh,lib.bash} | cksum)"
    mapfile -t stale < <(lint_stale warnings-$compiler "$key" "${files[@]}")
    [ ${#stale[@]} -gt 0 ] || continue
    found=
    if [ $compiler = gcc ]; then
        mapfile -t built < <(built "${stale[@]}")
        [ ${#built[@]} = 0 ] || found=$(printf '%s\n' "${built[@]}" | sed 's,.*,.build/release/&,; s,\.c$,.o.warnings,' | xargs cat)
        mapfile -t stale < <(printf '%s\n' "${stale[@]}" | grep -vxFf <(printf '%s\n' "${built[@]}"))
    fi
    mapfile -t product < <(printf '%s\n' "${stale[@]}" | grep -v -e '^tests/' -e '^$')
    mapfile -t tests < <(printf '%s\n' "${stale[@]}" | grep '^tests/')
    once=
    [ $compiler = gcc ] || ! clang -std=c11 -D_GNU_SOURCE -x c-header "$common/c.h" -o "$common/c.pch" || once="-include-pch $common/c.pch"
    # cmocka passes a state to every test
    found+=$(lint_compile $compiler "$once" "${product[@]}"; lint_compile $compiler "$once -Wno-unused-parameter" "${tests[@]}")
    [ -n "$found" ] || lint_clean warnings-$compiler
    [ -z "$found" ] || findings+="$compiler: ${found//$'\n'/$'\n'$compiler: }"$'\n'
done
lint_verdict warnings ${#files[@]} "$findings"
