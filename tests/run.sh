#!/bin/bash
# Runs tests and counts them. Usage: tests/run.sh [--quick] [--match REGEX] lint|VARIANT...
#
# Each word is a set: `lint` is tests/lint/*.sh; a variant (release, san, ...) is every program
# under .build/VARIANT/tests/{unit,golden,property,fuzz} and every script tests/cli/*.sh.
# --quick leaves out the scripts that tests/weights lists, and makes a quarter of the random operations.
# Rules:
#  1. A program's cases are counted from cmocka's output; a script's from its lines `ok NAME`,
#     `not ok NAME` and `skip NAME: reason`.
#  2. One that crashes, hangs or shows no case at all counts as failed.
#  3. TEST_JOBS run at a time (two more than there are processors, because some tests wait), each in a
#     session of its own, with an empty folder in TEST_TMP and the program under test in ALLOCRIG.
#     TEST_VARIANT names the build.
#  4. tests/weights has the processor seconds of the long tests. The longest start first, and a C
#     program with a number of parts there runs as so many tests, each with a share of the cases.
#     The order changes no result: a test that is missing from the file has the weight 1.
#  5. The runner looks at a test every TEST_POLL seconds (5). A test hangs when, for TEST_IDLE looks
#     in a row (60), none of its processes uses or wants the processor or a disk and nothing is
#     printed. An endless loop ends after TEST_CPU seconds (3600) of processor time. There is no
#     limit on wall time, so a slow or busy machine fails no test.
#  6. The output of each is kept in .build/test-logs, until the next run. Of a failed one the names of
#     the failed cases and the end are printed, and .build/failed-logs keeps its output until it fails
#     again. The file `weights` in test-logs has the processor seconds of this run, in the form of
#     tests/weights.
#  7. The last line is `N passed, N failed, N skipped`. Exit status 1 when one failed.
set -u
[ "${1:-}" = --one ] || cd "$(dirname "$0")/.." || exit 2

poll=${TEST_POLL:-5}
idle_limit=${TEST_IDLE:-60}
cpu_limit=${TEST_CPU:-3600}
logs=.build/test-logs
failed_logs=.build/failed-logs
kinds="property golden unit fuzz"
# What a sanitizer finds ends a program with a status that no test expects, and says where it was.
export ASAN_OPTIONS=handle_sigill=1:exitcode=99${ASAN_OPTIONS:+:$ASAN_OPTIONS}
# Freed memory is used again after 32 MiB (256 MiB with TEST_SOAK=1): fewer pages have to be cleared.
[ "${TEST_SOAK:-0}" = 1 ] || ASAN_OPTIONS=quarantine_size_mb=32:malloc_context_size=10:$ASAN_OPTIONS

# count_cases LOG PART: reads a test's output and prints "passed failed skipped" and the number of cases that the
# part has, or - if the output does not name the part.
count_cases() {
    awk -v part="[  PART    ] $2: " '
        BEGIN { cases = "-" }
        index($0, part) == 1 { cases = substr($0, length(part) + 1) + 0; next }
        /^\[ RUN      \]/ { if (open != "") { failed++ } open = substr($0, 14); next }
        /^\[       OK \]/ { if (open != "") { passed++; open = "" } next }
        /^\[  FAILED  \]/ { if (open != "") { failed++; open = "" } next }
        /^\[  SKIPPED \]/ { if (open != "") { skipped++; open = "" } next }
        /^ok / { passed++ }
        /^not ok / { failed++ }
        /^skip / { skipped++ }
        END { if (open != "") failed++; print passed + 0, failed + 0, skipped + 0, cases }' "$1"
}

# session_processes SESSION [STATE]: "PID STATE TICKS COMMAND" for each process of a session, but not those in
# that state; TICKS of processor time are its own and those of its children that ended.
session_processes() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v session="$1" -v not="${2:-}" '
        { pid = $1; name = $0; sub(/^[^(]*\(/, "", name); sub(/\)[^)]*$/, "", name); sub(/^.*\) /, "")
          if ($4 == session && $1 != not) print pid, $1, $12 + $13 + $14 + $15, name }'
}

# end_session SESSION: ends its processes, at first with a signal that they can handle.
end_session() {
    local signal wait
    for signal in TERM KILL; do
        for ((wait = 0; wait < 12; wait++)); do
            mapfile -t left < <(session_processes "$1" Z)
            [ ${#left[@]} -gt 0 ] || return
            [ $wait != 0 ] || kill -$signal "${left[@]%% *}" 2>/dev/null
            sleep 0.25
        done
    done
}

# watch SESSION FD LOG: waits until the test's status can be read from FD and sets `status`; ends a
# test that hangs. Looks are counted, not seconds: a machine that sleeps does not end a test.
watch() {
    local session=$1 fd=$2 log=$3 idle=0 before="" now line=""
    while true; do
        read -r -t "$poll" -u "$fd" status
        case $? in
        0) status=$line$status; return ;;
        1) status=137; return ;; # the session ended without a status
        *) line=$line$status ;;  # the time is up, if need be in the middle of the line
        esac
        # A process that runs, waits for the processor or for a disk makes progress, however slow.
        now=$(session_processes "$session" | awk '{ ticks += $3 } $2 == "R" || $2 == "D" { busy = 1 }
            END { print ticks + 0, busy + 0 }')
        if [ $((${now% *} / $(getconf CLK_TCK))) -ge "$cpu_limit" ]; then
            echo "run.sh: ended, since it used $cpu_limit s of processor time" >>"$log"
            break
        fi
        [ "${now#* }" = 1 ] || now="$now $(stat -c %s "$log")"
        if [ "${now#* }" != 1 ] && [ "$now" = "$before" ]; then idle=$((idle + 1)); else idle=0; fi
        before=$now
        if [ $idle -ge "$idle_limit" ]; then
            echo "run.sh: hangs: no processor time and no output in $idle_limit looks, $poll s apart; its processes:" >>"$log"
            session_processes "$session" | sed 's/^/run.sh:   /' >>"$log"
            break
        fi
    done
    end_session "$session"
    status=hung
}

# show_failure LOG: the end of a log, after the failed cases that are before it
show_failure() {
    local lines end=60
    lines=$(wc -l <"$1")
    if [ "$lines" -gt $end ]; then
        head -n $((lines - end)) "$1" | grep -aE '^(not ok |\[  FAILED  \])'
        echo "... the last $end of $lines lines; all of them: $failed_logs/${1##*/}"
    fi
    tail -n $end "$1"
}

# run_one SET PATH PART: runs it, writes LOG and LOG.count, prints its line. PART is K/N or -.
run_one() {
    local set=$1 path=$2 part=$3 name log status times seconds user system cpu_ms passed failed skipped cases fd session
    name=${path#.build/*/} name=${name#tests/} name=${name%.sh}
    local label=$name
    [ "$part" = - ] || label="$name.${part/\//of}"
    log=$logs/$set-${label//\//-}.log
    TEST_TMP=$PWD/.build/test-tmp/$set-${label//\//-}
    mkdir -p "$TEST_TMP"
    export TEST_TMP
    local -a arguments=()
    case $path in
    */tests/fuzz/*) arguments=("tests/fuzz/corpus/${name##*/fuzz_}") ;;
    esac
    unset TEST_PART
    [ "$part" = - ] || export TEST_PART=$part
    # What the session prints on the descriptor is its last word: the times, then the status.
    exec {fd}< <(ALLOCRIG=$PWD/.build/$set/allocrig TEST_VARIANT=$set exec setsid bash -c '
        exec 3>&1 >"$1" 2>&1 </dev/null
        TIMEFORMAT="%R %U %S"
        { time "${@:3}" 2>&4 3>&- 4>&-; } 4>&2 2>"$2"
        echo $? >&3' "$path" "$log" "$log.time" "./$path" "${arguments[@]}")
    session=$!
    trap 'end_session "$session"; exit 130' INT TERM
    watch "$session" "$fd" "$log"
    exec {fd}<&-
    end_session "$session" # what the test left running
    trap - INT TERM
    # Of a test that crashed, the shell says so before the times.
    times=$(tail -n 1 "$log.time" 2>/dev/null)
    [[ $times =~ ^[0-9]+[.,][0-9]{3}\ [0-9]+[.,][0-9]{3}\ [0-9]+[.,][0-9]{3}$ ]] || times='0 0 0'
    read -r seconds user system <<<"$times"
    cpu_ms=$((10#${user/[.,]/} + 10#${system/[.,]/})) # times have three decimals
    read -r passed failed skipped cases < <(count_cases "$log" "$part")
    if [ "$part" != - ] && [ "$cases" = - ]; then
        failed=$((failed + 1))
        echo "run.sh: did not run part $part of its cases (see tests/weights)" >>"$log"
    elif [ $((passed + failed + skipped)) = 0 ] && [ "$cases" != 0 ]; then
        failed=1
        echo "run.sh: showed no test case" >>"$log"
    fi
    if [ "$status" != 0 ]; then
        [ "$failed" != 0 ] || failed=1
        echo "run.sh: ended with status $status" >>"$log"
    fi
    echo "$passed $failed $skipped" >"$log.count"
    printf '%s %s %d.%03d\n' "$set" "$name" $((cpu_ms / 1000)) $((cpu_ms % 1000)) >"$log.time"
    rm -rf "$TEST_TMP"
    local verdict=ok
    [ "$failed" = 0 ] || verdict=FAILED
    if [ "$failed" != 0 ]; then
        mkdir -p "$failed_logs" && cp "$log" "$failed_logs/"
        printf '%-7s %-8s %-36s %6.1f s  %s passed, %s failed, %s skipped\n%s\n' "$verdict" "$set" "$label" \
            "$seconds" "$passed" "$failed" "$skipped" "$(show_failure "$log" | sed 's/^/    /')"
    else
        printf '%-7s %-8s %-36s %6.1f s  %s passed%s\n' "$verdict" "$set" "$label" "$seconds" "$passed" \
            "$([ "$skipped" = 0 ] || echo ", $skipped skipped: $(grep -m 1 '^skip ' "$log")")"
    fi
}

if [ "${1:-}" = --one ]; then
    run_one "${@:2}"
    exit 0
fi
[ "${1:-}" != --one ] || exit 2 # an error in run_one does not come here, or each test would run all tests

quick=0
match=.
usage() {
    echo 'usage: tests/run.sh [--quick] [--match REGEX] lint|VARIANT...'
    echo 'Runs the lints, or the tests of a build: release, san. Build it first:'
    echo 'make tests, make VARIANT=san program tests.'
    echo '  --quick        without the long scripts, a quarter of the random operations'
    echo '  --match REGEX  only the tests whose path matches, such as cli/test_pages;'
    echo '                 paths are as .build/release/tests/unit/test_size,'
    echo '                 tests/cli/test_pages.sh, tests/lint/format.sh'
}
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --quick) quick=1 ;;
    --match) match=${2:?needs a REGEX}; shift ;;
    -*) usage >&2; exit 2 ;;
    *) break ;;
    esac
    shift
done
[ $quick = 0 ] || export TEST_QUICK=1
[ $# -gt 0 ] || { usage >&2; exit 2; }

# Prints "SET PATH" lines. A program whose source is gone does not count.
list_set() {
    local set=$1 kind source path name
    if [ "$set" = lint ]; then
        for path in tests/lint/*.sh; do echo "lint $path"; done
        return
    fi
    [ -d ".build/$set" ] || { echo "run.sh: .build/$set is not there: make VARIANT=$set tests" >&2; return; }
    for kind in $kinds; do
        for source in tests/"$kind"/test_*.c tests/"$kind"/fuzz_*.c; do
            [ -e "$source" ] || continue
            path=.build/$set/${source%.c}
            if [ -x "$path" ] || have_cmocka; then echo "$set $path"; else echo "$set $path" >>"$logs/left_out"; fi
        done
    done
    for path in tests/cli/*.sh; do
        name=${path#tests/} name=${name%.sh}
        [ ! -e "$path" ] || { [ $quick = 1 ] && grep -qs "^$set $name " tests/weights; } || echo "$set $path"
    done
}

have_cmocka() {
    printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\n' |
        cc -E -x c - >/dev/null 2>&1
}

# Reads "SET PATH" lines and prints "SET PATH PART" lines, the longest first.
order() {
    local weights=tests/weights
    [ -e $weights ] || weights=/dev/null
    awk -v weights=$weights 'FILENAME == weights { if ($1 !~ /^#/) { weight[$1, $2] = $3; parts[$1, $2] = $4 } next }
        { name = $2; sub(/^\.build\/[a-z]*\//, "", name); sub(/^tests\//, "", name); sub(/\.sh$/, "", name)
          count = name ~ /^(unit|golden|property)\// && parts[$1, name] > 1 ? parts[$1, name] : 1
          each = (($1, name) in weight ? weight[$1, name] : 1) / count
          for (part = 1; part <= count; part++)
              printf "%.2f %d %s %s %s\n", each, NR, $1, $2, (count > 1 ? part "/" count : "-") }' $weights - |
        sort -k1,1nr -k2,2n | cut -d ' ' -f 3-
}

rm -rf "$logs" .build/test-tmp
mkdir -p "$logs"
jobs=${TEST_JOBS:-$(($(nproc 2>/dev/null || echo 2) + 2))}
# A python3 that is a script of pyenv or asdf asks for the version at each start, which takes longer than the start.
python=$(command -v python3)
if [ -n "$python" ] && [ "$(head -c 2 "$python")" = '#!' ]; then
    python=$(python3 -c 'import sys; print(sys.executable)') && export PATH="${python%/*}:$PATH"
fi
plan=$logs/plan
for set in "$@"; do list_set "$set"; done | grep -E "$match" | order >"$plan"
[ -s "$plan" ] || echo "run.sh: no test of $* has a path that matches $match (tests/run.sh --help: what paths are), or none is built" >&2
xargs -r -a "$plan" -P "$jobs" -L 1 "$0" --one

expected=$(wc -l <"$plan")
left_out=0
[ ! -e "$logs/left_out" ] || left_out=$(wc -l <"$logs/left_out")
cat "$logs"/*.time 2>/dev/null | awk '{ seconds[$1 " " $2] += $3 } END { for (name in seconds) if (seconds[name] >= 2)
    printf "%s %.0f\n", name, seconds[name] }' | sort -k3,3nr -k1,2 >"$logs/weights"
total=$(cat "$logs"/*.count 2>/dev/null | awk -v expected="$expected" -v skipped="$left_out" '
    { passed += $1; failed += $2; skipped += $3 }
    END { if (NR < expected || expected == 0) failed += (expected > NR ? expected - NR : 1)
          printf "%d passed, %d failed, %d skipped", passed, failed, skipped }')
[ ! -e "$logs/left_out" ] || echo "skipped: $left_out test programs, since cmocka is not installed (make deps)"
echo "logs: $logs"
echo "$total"
case $total in *" 0 failed,"*) exit 0 ;; *) exit 1 ;; esac
