#!/bin/bash
# A request of the program for host memory fails, each of the last ones in turn: the command says so
# with status 4, or its page is the same. Pages may be folded otherwise.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
tmp=$TEST_TMP
cc=${CC:-cc}
release_only host_memory "a sanitizer has a malloc of its own"
if ! command -v "$cc" >/dev/null; then
    echo "skip host_memory: no C compiler"
    finish
fi
check builds "$cc" -std=gnu11 -Wall -Wextra -Werror -O1 -shared -fPIC -o "$tmp/no_memory.so" tests/cli/no_memory.c

# fail_at N ARGUMENTS...: like run; false where the program makes fewer requests
fail_at() {
    local at=$1
    shift
    rm -f "$tmp/told"
    LD_PRELOAD=$tmp/no_memory.so NO_MEMORY_AT=$at NO_MEMORY_TOLD=$tmp/told "$ALLOCRIG" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    [ -e "$tmp/told" ]
}

words() {
    tr -s ' \n' '  ' <"$1"
}

# is_told COUNT ARGUMENTS...: prints what is wrong with one of the last COUNT requests. jansson takes a lack of memory
# for a wrong token.
is_told() {
    local count=$1 low=1 high=1048576 at expected normal
    shift
    run "$@"
    normal=$status
    expected=$(words "$out")
    while [ $((high - low)) -gt 1 ]; do
        at=$(((low + high) / 2))
        if fail_at $at "$@"; then low=$at; else high=$at; fi
    done
    for ((at = low > count ? low - count : 1; at <= low; at++)); do
        fail_at $at "$@"
        if [ $status = "$normal" ] && [ "$(words "$out")" = "$expected" ]; then continue; fi
        if [ $status = 4 ] && grep -q 'memory' "$err"; then continue; fi
        if [ $status = 2 ] && grep -q 'not JSON' "$err"; then continue; fi
        echo "request $at of $low: status $status, $(cat "$err" "$out" | head -c 300)"
    done
}

# nothing_wrong NAME COUNT ARGUMENTS...
nothing_wrong() {
    local name=$1 wrong
    shift
    wrong=$(is_told "$@")
    [ -z "$wrong" ] || printf '%s\n' "$wrong"
    check "$name" [ -z "$wrong" ]
}

printf '# allocrig-trace 1\na,0,1048576\na,1,3145728\nf,0\na,2,4194304\n' >"$tmp/t.trace"
"$ALLOCRIG" run -p torch -p growth -w "$tmp/t.trace" -d sim:capacity=64MiB --json "$tmp/old.json" >/dev/null
"$ALLOCRIG" run -p torch -p tlsf -w "$tmp/t.trace" -d sim:capacity=64MiB --json "$tmp/new.json" >/dev/null
nothing_wrong compare 150 compare "$tmp/old.json" "$tmp/new.json"
# Other settings pass, which the page lists.
printf '# allocrig-trace 1\na,0,9437184\na,1,9437184\nf,0\na,2,12582912\n' >"$tmp/pieces.trace"
nothing_wrong explain 200 explain "$tmp/pieces.trace" -p torch --capacity 31MiB
finish
