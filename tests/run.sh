#!/bin/bash
# Runs tests and counts them. Usage: tests/run.sh [--quick] [--match REGEX] lint|VARIANT...
#
# Each word is a set: `lint` is tests/lint/*.sh; a variant (release, san, ...) is every program
# under .build/VARIANT/tests/{unit,golden,property,fuzz} and every script tests/cli/*.sh.
# Rules:
#  1. A program's cases are counted from cmocka's output; a script's from its lines `ok NAME`,
#     `not ok NAME` and `skip NAME: reason`.
#  2. One that crashes, times out or shows no case at all counts as failed.
#  3. Two run at a time, each with an empty folder of its own in TEST_TMP and the program under
#     test in ALLOCRIG. TEST_VARIANT names the build.
#  4. The output of each is kept in .build/test-logs; that of a failed one is printed too.
#  5. The last line is `N passed, N failed, N skipped`. Exit status 1 when one failed.
set -u
cd "$(dirname "$0")/.." || exit 2

jobs=${TEST_JOBS:-2}
limit=${TEST_TIMEOUT:-600}
logs=.build/test-logs

# Reads a test's output, prints "passed failed skipped" and writes failed and skipped names.
count_cases() {
    awk '
        /^\[ RUN      \]/ { if (open != "") { failed++ } open = substr($0, 14); next }
        /^\[       OK \]/ { if (open != "") { passed++; open = "" } next }
        /^\[  FAILED  \]/ { if (open != "") { failed++; open = "" } next }
        /^\[  SKIPPED \]/ { if (open != "") { skipped++; open = "" } next }
        /^ok / { passed++ }
        /^not ok / { failed++ }
        /^skip / { skipped++ }
        END { if (open != "") failed++; print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# run_one SET PATH: runs it, writes LOG and LOG.count, prints its line.
run_one() {
    local set=$1 path=$2 name log start status seconds passed failed skipped
    name=$(printf '%s' "$path" | sed -e 's,^\.build/[a-z]*/,,' -e 's,^tests/,,' -e 's,\.sh$,,')
    log=$logs/$set-$(printf '%s' "$name" | tr '/' '-').log
    mkdir -p "$logs"
    TEST_TMP=$PWD/.build/test-tmp/$set-$(printf '%s' "$name" | tr '/' '-')
    rm -rf "$TEST_TMP" && mkdir -p "$TEST_TMP"
    export TEST_TMP
    local -a arguments=()
    case $path in
    */tests/fuzz/*) arguments=("tests/fuzz/corpus/${name##*/fuzz_}") ;;
    esac
    start=$(date +%s%N)
    ALLOCRIG=$PWD/.build/$set/allocrig TEST_VARIANT=$set timeout -k 10 "$limit" \
        "./$path" "${arguments[@]}" >"$log" 2>&1 </dev/null
    status=$?
    seconds=$(awk -v a="$start" -v b="$(date +%s%N)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
    read -r passed failed skipped < <(count_cases "$log")
    if [ $((passed + failed + skipped)) = 0 ]; then
        failed=1
        echo "run.sh: showed no test case" >>"$log"
    fi
    if [ "$status" != 0 ]; then
        [ "$failed" != 0 ] || failed=1
        [ "$status" != 124 ] || echo "run.sh: stopped after $limit s" >>"$log"
        echo "run.sh: ended with status $status" >>"$log"
    fi
    echo "$passed $failed $skipped" >"$log.count"
    rm -rf "$TEST_TMP"
    local verdict=ok
    [ "$failed" = 0 ] || verdict=FAILED
    if [ "$failed" != 0 ]; then
        printf '%-7s %-8s %-36s %6s s  %s passed, %s failed, %s skipped\n%s\n' "$verdict" "$set" "$name" \
            "$seconds" "$passed" "$failed" "$skipped" "$(tail -n 60 "$log" | sed 's/^/    /')"
    else
        printf '%-7s %-8s %-36s %6s s  %s passed%s\n' "$verdict" "$set" "$name" "$seconds" "$passed" \
            "$([ "$skipped" = 0 ] || echo ", $skipped skipped: $(grep -m 1 '^skip ' "$log")")"
    fi
}

if [ "${1:-}" = --one ]; then
    shift
    run_one "$@"
    exit 0
fi

quick=0
match=.
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --match) match=$2; shift ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || { echo "usage: tests/run.sh [--quick] [--match REGEX] lint|VARIANT..." >&2; exit 2; }

# Prints "SET PATH" lines. A program whose source is gone does not count.
list_set() {
    local set=$1 kind source path
    if [ "$set" = lint ]; then
        for path in tests/lint/*.sh; do echo "lint $path"; done
        return
    fi
    [ -d ".build/$set" ] || { echo "run.sh: .build/$set is not there: make VARIANT=$set tests" >&2; return; }
    local kinds="property golden unit fuzz"
    [ $quick = 0 ] || kinds="golden unit fuzz"
    for kind in $kinds; do
        for source in tests/"$kind"/test_*.c tests/"$kind"/fuzz_*.c; do
            [ -e "$source" ] || continue
            path=.build/$set/${source%.c}
            if [ -x "$path" ] || have_cmocka; then echo "$set $path"; else echo "$set $path" >>"$logs/left_out"; fi
        done
    done
    [ $quick = 0 ] || return
    for path in tests/cli/*.sh; do [ ! -e "$path" ] || echo "$set $path"; done
}

have_cmocka() {
    printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n' |
        cc -E -x c - >/dev/null 2>&1
}

rm -rf "$logs" .build/test-tmp
mkdir -p "$logs"
plan=$logs/plan
for set in "$@"; do list_set "$set"; done | grep -E "$match" >"$plan" ||
    echo "run.sh: no test of $* matches $match, or none is built" >&2
xargs -r -a "$plan" -P "$jobs" -L 1 "$0" --one

expected=$(wc -l <"$plan")
left_out=0
[ ! -e "$logs/left_out" ] || left_out=$(wc -l <"$logs/left_out")
total=$(cat "$logs"/*.count 2>/dev/null | awk -v expected="$expected" -v skipped="$left_out" '
    { passed += $1; failed += $2; skipped += $3 }
    END { if (NR < expected || expected == 0) failed += (expected > NR ? expected - NR : 1)
          printf "%d passed, %d failed, %d skipped", passed, failed, skipped }')
[ ! -e "$logs/left_out" ] || echo "skipped: $left_out test programs, since cmocka is not installed (make deps)"
echo "logs: $logs"
echo "$total"
case $total in *" 0 failed,"*) exit 0 ;; *) exit 1 ;; esac
