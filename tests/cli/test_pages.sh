#!/bin/bash
# The pages and the files that commands print for small inputs, byte by byte: tests/golden/data/pages/commands lists
# them. `PAGES=write` writes what is wanted anew, as it is said now; look at the difference before it is committed.
set -u
# shellcheck source=tests/cli/lib.bash
. "$(dirname "$0")/lib.bash"
release_only pages
data=${PAGES_DATA:-tests/golden/data/pages}
tmp=$TEST_TMP
differ=

# page NAME LINES ARGUMENTS..: the command says what NAME.txt holds; called through check
# shellcheck disable=SC2317
page() {
    local name=$1 lines=$2
    shift 2
    run "$@"
    without_context "$out" | grep -v "^wrote $tmp/" >"$tmp/all"
    cat "$tmp"/shown.* "$tmp"/shown.*/data/{pairs,fragmentation,pareto}.csv >>"$tmp/all" 2>/dev/null
    rm -rf "$tmp"/shown.*
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
    failed=0
    # shellcheck disable=SC2046 # the arguments are words, without blanks in them
    check "$name" page "$name" "$lines" $(eval "echo $arguments")
    [ $failed = 0 ] || differ+=" $name"
done <"$data/commands"
[ -z "$differ" ] || {
    echo "These pages differ:$differ"
    echo "If that is intended, for example after a policy was added: PAGES=write tests/run.sh --match test_pages release;"
    echo "git diff $data shows what has changed. (tests/README.md, Pages)"
    failed=1
}
if [ -z "${PAGES_DATA:-}" ]; then # a page that differs
    mkdir "$tmp/planted" "$tmp/within"
    echo 'planted 0 version' >"$tmp/planted/commands"
    echo 'another page' >"$tmp/planted/planted.txt"
    PAGES='' PAGES_DATA=$tmp/planted TEST_TMP=$tmp/within "$0" >"$tmp/differs" && failed=1
    check the_pages_that_differ_are_named [ "$(tail -n 3 "$tmp/differs" | head -n 1)" = 'These pages differ: planted' ]
    check how_to_write_them_is_told eval "tail -n 2 '$tmp/differs' | grep -q 'PAGES=write tests/run.sh --match test_pages release'"
fi
finish
