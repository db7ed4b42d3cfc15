#!/bin/bash
# The pages and the files that commands print for small inputs, byte by byte: tests/golden/data/pages/commands lists
# them. `PAGES=write` writes what is wanted anew, as it is said now; look at the difference before it is committed.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only pages
data=tests/golden/data/pages
tmp=$TEST_TMP

# page NAME LINES ARGUMENTS..: the command says what NAME.txt holds; called through check
# shellcheck disable=SC2317
page() {
    local name=$1 lines=$2
    shift 2
    run "$@"
    without_context "$out" | grep -v "^wrote $tmp/" >"$tmp/all"
    cat "$tmp"/shown.* >>"$tmp/all" 2>/dev/null && rm "$tmp"/shown.*
    {
        case $lines in
        0) cat "$tmp/all" ;;
        -*) tail -n "${lines#-}" "$tmp/all" ;;
        *) head -n "$lines" "$tmp/all" ;;
        esac
        cat "$err"
        echo "-- exit status $status"
    } >"$tmp/page"
    [ "${PAGES:-}" = write ] && cp "$tmp/page" "$data/$name.txt"
    cmp -s "$tmp/page" "$data/$name.txt" && return 0
    diff "$data/$name.txt" "$tmp/page" | head -n 20
    return 1
}

while read -r name lines arguments; do
    case $name in '' | '#'*) continue ;; esac
    # shellcheck disable=SC2046 # the arguments are words, without blanks in them
    check "$name" page "$name" "$lines" $(eval "echo $arguments")
done <"$data/commands"
finish
