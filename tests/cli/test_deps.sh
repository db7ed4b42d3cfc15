#!/bin/bash
# .ci/deps on made-up machines: a PATH with only what is named, and an apt-get that writes down its
# calls in place of installing.
set -u
calls=$TEST_TMP/calls

# machine NAME TOOL...: a folder of programs; prints it
machine() {
    local folder=$TEST_TMP/$1 tool
    shift
    mkdir -p "$folder"
    for tool in bash sh env awk cat find head tail mktemp rm "$@"; do
        ln -sf "$(command -v "$tool")" "$folder/$tool"
    done
    printf '#!/bin/sh\necho "$*" >>"%s"\n' "$calls" >"$folder/apt-get"
    printf '#!/bin/sh\necho 0\n' >"$folder/id"
    # a compiler that finds every header
    printf '#!/bin/sh\ncat >/dev/null\n' >"$folder/cc"
    printf '#!/bin/sh\necho DejaVu Sans\n' >"$folder/fc-list"
    printf '#!/bin/sh\n' >"$folder/gnuplot"
    chmod +x "$folder"/{apt-get,id,cc,fc-list,gnuplot}
    echo "$folder"
}
check() { if "${@:2}"; then echo "ok $1"; else echo "not ok $1"; fi; }
run() { : >"$calls"; output=$(PATH=$1 CC=cc .ci/deps bench 2>&1); status=$?; }

full=$(machine full)
run "$full"
check where_all_is_there_apt_is_not_called [ ! -s "$calls" ]
check where_all_is_there_nothing_is_said [ "$status$output" = 0 ]

bare=$(machine bare)
rm "$bare/gnuplot"
run "$bare"
check what_is_missing_is_said_with_why grep -q 'gnuplot-nox: figures' <<<"$output"
check only_what_is_missing_is_installed grep -q 'install --no-install-recommends -y gnuplot-nox$' "$calls"
check lists_are_brought_up_to_date_first grep -q 'update' <(head -n 1 "$calls")

printf '#!/bin/sh\necho 1000\n' >"$bare/id"
run "$bare"
check not_root_is_a_clear_sentence grep -q 'installing needs root: run as root: apt-get install' <<<"$output"
check not_root_calls_nothing [ ! -s "$calls" ]
check not_root_is_status_1 [ "$status" = 1 ]

printf '#!/bin/sh\necho 0\n' >"$bare/id"
rm "$bare/apt-get"
run "$bare"
check without_apt_it_says_so grep -q 'has no apt-get' <<<"$output"
