#!/bin/bash
# The test runner itself: what crashes, says nothing or fails must be counted as failed. Runs a copy
# of it in a small tree with made-up programs.
set -u
tree=$TEST_TMP
mkdir -p "$tree/tests/unit" "$tree/tests/cli" "$tree/.build/fake/tests/unit"
cp tests/run.sh "$tree/tests/run.sh"

# program NAME TEXT: a test program that is a script
program() {
    touch "$tree/tests/unit/test_$1.c"
    printf '#!/bin/bash\n%s\n' "$2" >"$tree/.build/fake/tests/unit/test_$1"
    chmod +x "$tree/.build/fake/tests/unit/test_$1"
}
expect() { # NAME LAST_LINE STATUS
    local output status
    output=$(cd "$tree" && tests/run.sh fake 2>/dev/null)
    status=$?
    if [ "$(tail -n 1 <<<"$output")" = "$2" ] && [ $status = "$3" ]; then
        echo "ok $1"
    else
        printf 'not ok %s\nwanted "%s", status %s; got status %s and:\n%s\n' "$1" "$2" "$3" $status "$output" | sed '2,$s/^/  /'
    fi
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
rm "$tree/.build/fake/tests/unit/test_silent"
program good 'echo "ok a"; echo "not ok b"; echo "skip c: no card"'
printf '#!/bin/bash\necho "ok cli"\n' >"$tree/tests/cli/x.sh"
chmod +x "$tree/tests/cli/x.sh"
rm "$tree/tests/unit/test_silent.c"
expect scripts_are_counted_by_line "2 passed, 1 failed, 1 skipped" 1
rm -r "$tree/tests/unit" "$tree/tests/cli"
expect nothing_to_run_has_failed "0 passed, 1 failed, 0 skipped" 1
