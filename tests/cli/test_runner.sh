#!/bin/bash
# The test runner itself: what crashes, hangs, says nothing or fails must be counted as failed, and what is
# slow must not. Runs a copy of it in a small tree with made-up programs.
set -u
if [ "$TEST_VARIANT" != release ]; then
    echo "skip runner: it runs nothing of the build"
    exit 0
fi
tree=$TEST_TMP/tree
mkdir -p "$tree/tests/unit" "$tree/tests/cli" "$tree/.build/fake/tests/unit"
cp tests/run.sh "$tree/tests/run.sh"

# program NAME TEXT: a test program that is a script
program() {
    touch "$tree/tests/unit/test_$1.c"
    printf '#!/bin/bash\n%s\n' "$2" >"$tree/.build/fake/tests/unit/test_$1"
    chmod +x "$tree/.build/fake/tests/unit/test_$1"
}
expect() { # NAME LAST_LINE STATUS
    local status
    output=$(cd "$tree" && tests/run.sh fake 2>/dev/null)
    status=$?
    if [ "$(tail -n 1 <<<"$output")" = "$2" ] && [ $status = "$3" ]; then
        echo "ok $1"
    else
        printf 'not ok %s\nwanted "%s", status %s; got status %s and:\n%s\n' "$1" "$2" "$3" $status "$output" | sed '2,$s/^/  /'
    fi
}
shows() { # NAME REGEX: the last output has such a line
    if grep -qE -e "$2" <<<"$output"; then echo "ok $1"; else printf 'not ok %s\nwanted %s in:\n%s\n' "$1" "$2" "$output" | sed '2,$s/^/  /'; fi
}

program good 'echo "[ RUN      ] a"; echo "[       OK ] a"; echo "[ RUN      ] b"; echo "[  SKIPPED ] b"
echo "[  SKIPPED ] 1 test(s), listed below:"; echo "[  SKIPPED ] b"'
expect counts_each_case_once "1 passed, 0 failed, 1 skipped" 0
program silent 'true'
expect silence_has_failed "1 passed, 1 failed, 1 skipped" 1
program silent 'echo "[ RUN      ] a"; echo "[       OK ] a"; echo "[ RUN      ] b"; kill -SEGV $$'
expect a_crash_has_failed "2 passed, 1 failed, 1 skipped" 1
program silent 'echo "[ RUN      ] a"; echo "[       OK ] a"; exit 3'
expect a_bad_status_has_failed "2 passed, 1 failed, 1 skipped" 1
program silent 'echo "not ok early"; seq -f "ok %g" 100; echo "not ok late"'
expect a_long_log_is_counted "101 passed, 2 failed, 1 skipped" 1
shows an_early_failure_is_printed '^    not ok early$'
check_once() { if [ "$(grep -c 'not ok late' <<<"$output")" = 1 ]; then echo "ok $1"; else echo "not ok $1"; fi; }
check_once a_late_failure_is_printed_once
program silent 'echo "ok 1"'
expect a_mended_test_passes "2 passed, 0 failed, 1 skipped" 0
if grep -qx 'not ok early' "$tree/.build/failed-logs/fake-unit-test_silent.log"; then echo "ok the_log_of_a_failure_is_kept"; else echo "not ok the_log_of_a_failure_is_kept"; fi
rm "$tree/.build/fake/tests/unit/test_silent"
program good 'echo "ok a"; echo "not ok b"; echo "skip c: no card"'
printf '#!/bin/bash\necho "ok cli"\n' >"$tree/tests/cli/x.sh"
chmod +x "$tree/tests/cli/x.sh"
rm "$tree/tests/unit/test_silent.c"
expect scripts_are_counted_by_line "2 passed, 1 failed, 1 skipped" 1
rm "$tree/tests/cli/x.sh"

# ---- hangs. All limits are short here; a test that makes progress passes them by.
export TEST_IDLE=6 TEST_POLL=0.25
program good 'echo "ok a"; sleep 1000 & wait'
expect a_hang_has_failed "1 passed, 1 failed, 0 skipped" 1
shows a_hang_is_named 'run.sh: hangs: no processor time and no output in 6 looks'
shows a_hang_names_its_processes 'run.sh:   [0-9]+ S [0-9]+ sleep$'
program good 'trap "" TERM; echo "ok a"; (trap "" TERM; while :; do sleep 1000; done) & wait'
expect a_hang_that_ignores_signals_is_ended "1 passed, 1 failed, 0 skipped" 1
program good 'for i in 1 2 3 4 5 6; do sleep 0.6; echo "ok $i"; done'
expect output_is_progress "6 passed, 0 failed, 0 skipped" 0
program good 'for i in 1 2 3 4 5 6; do sleep 0.6; for ((j = 0; j < 20000; j++)); do :; done; done; echo "ok a"'
expect processor_time_is_progress "1 passed, 0 failed, 0 skipped" 0
# Some seconds of work in a child that gets the processor last.
program good 'nice -n 19 bash -c "for ((i = 0; i < 500000; i++)); do :; done"; echo "ok a"'
expect a_starved_test_is_not_a_hang "1 passed, 0 failed, 0 skipped" 0
program good 'echo "ok a"; while :; do :; done'
TEST_CPU=1 expect an_endless_loop_is_ended "1 passed, 1 failed, 0 skipped" 1
shows an_endless_loop_is_named 'ended, since it used 1 s of processor time'
program good 'sleep 1000 & echo $! >"$TEST_TMP/../left"; echo "ok a"'
expect a_process_left_running_fails_nothing "1 passed, 0 failed, 0 skipped" 0
case $(ps -o state= -p "$(cat "$tree/.build/test-tmp/left")") in
"" | Z*) echo "ok what_is_left_running_is_ended" ;;
*) echo "not ok what_is_left_running_is_ended" ;;
esac

# ---- weights and parts
parted='for i in 1 2 3 4 5; do
    [ -z "${TEST_PART:-}" ] || [ $(((i - 1) % ${TEST_PART#*/} + 1)) = ${TEST_PART%/*} ] || continue
    echo "[ RUN      ] $i"; echo "[       OK ] $i"; ran=$((ran + 1)); done'
program good "$parted"
program other 'echo "ok a"'
printf '# SET NAME SECONDS PARTS\nfake unit/test_other 2\nfake unit/test_gone 9 4\n' >"$tree/tests/weights"
expect stale_weights_change_no_count "6 passed, 0 failed, 0 skipped" 0
if [ "$(head -n 1 "$tree/.build/test-logs/plan")" = "fake .build/fake/tests/unit/test_other -" ]; then echo "ok the_longest_starts_first"; else echo "not ok the_longest_starts_first"; fi
printf 'fake unit/test_good 9 3\n' >"$tree/tests/weights"
expect a_program_that_takes_no_parts_has_failed "6 passed, 3 failed, 0 skipped" 1
program good "ran=0; $parted"'; [ -z "${TEST_PART:-}" ] || echo "[  PART    ] $TEST_PART: $ran cases"'
expect parts_are_counted_together "6 passed, 0 failed, 0 skipped" 0
printf 'fake unit/test_good 9 7\n' >"$tree/tests/weights"
expect a_part_without_a_case_is_no_fault "6 passed, 0 failed, 0 skipped" 0

rm -r "$tree/tests/unit" "$tree/tests/cli"
expect nothing_to_run_has_failed "0 passed, 1 failed, 0 skipped" 1
