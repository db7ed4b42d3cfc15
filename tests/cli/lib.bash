# Sourced by the scripts here. They set `failed` through it and end with `finish`.
# ALLOCRIG is the program under test, TEST_TMP an empty folder.
failed=0
out=$TEST_TMP/stdout
err=$TEST_TMP/stderr

# verdict NAME STATUS: prints the line that the runner counts
verdict() {
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        failed=1
    fi
}

# check NAME COMMAND...: the command succeeds
check() {
    local name=$1
    shift
    "$@"
    verdict "$name" $?
}

# run ARGUMENTS...: runs the program; its output is in $out and $err, its status in $status
run() {
    "$ALLOCRIG" "$@" >"$out" 2>"$err" </dev/null
    status=$?
}

# bounded KIB ARGUMENTS...: like run, within so much address space (sanitizers need more of it) and
# 600 s of processor time
bounded() {
    local kib=$1
    shift
    [ "${TEST_VARIANT:-release}" = release ] || kib=unlimited
    (ulimit -v "$kib" -t 600 && exec "$ALLOCRIG" "$@") >"$out" 2>"$err" </dev/null
    status=$?
}

# long NAME...: whether to make these checks, which take long in a sanitizer's build. They are made in
# the release build and with TEST_SOAK=1 (make soak), else skipped.
long() {
    if [ "${TEST_VARIANT:-release}" = release ] || [ "${TEST_SOAK:-0}" = 1 ]; then return 0; fi
    printf 'skip %s: takes long in this build; make soak does it\n' "$@"
    return 1
}

# release_only NAME [REASON]: ends a script that is about texts, over code that other tests run under sanitizers
release_only() {
    if [ "${TEST_VARIANT:-release}" != release ] && [ "${TEST_SOAK:-0}" != 1 ]; then
        echo "skip $1: ${2:-about texts of commands that other tests run in this build}; make soak does it"
        exit 0
    fi
}

# not COMMAND...: the command fails
not() {
    ! "$@"
}

# says PATTERN: it is in the output (grep -E), where a line that was broken to fit is one line
says() {
    sed -e ':more' -e 'N;$!b more' -e 's/\n  */ /g' "$out" | grep -qE -e "$1"
}

# quietly COMMAND...: without its standard output
quietly() {
    "$@" >/dev/null
}

# refuses NAME STATUS REGEX ARGUMENTS...: the program ends with that status, says nothing but one
# line on standard error, and that line matches
refuses() {
    local name=$1 wanted=$2 pattern=$3 bad=0
    shift 3
    run "$@"
    [ "$status" = "$wanted" ] || { echo "  status $status, wanted $wanted" && bad=1; }
    [ ! -s "$out" ] || { echo "  said on standard output: $(head -n 1 "$out")" && bad=1; }
    [ "$(wc -l <"$err")" = 1 ] || { echo "  said $(wc -l <"$err") lines" && bad=1; }
    grep -qE -e "$pattern" "$err" || { echo "  wanted /$pattern/, said: $(cat "$err")" && bad=1; }
    verdict "$name" $bad
}

# run_full ARGUMENTS...: like run, where no file can get a byte, as on a full disk; no output is kept
run_full() {
    local pipe
    pipe=$( (trap '' XFSZ; ulimit -f 0; "$ALLOCRIG" "$@" 2>&1 >/dev/null </dev/null; echo "$?"))
    status=${pipe##*$'\n'}
    printf '%s\n' "${pipe%$'\n'*}" >"$err"
}

# members COUNT [LEVEL]: standard input so many times, packed once: each a member of a gzip file
members() {
    gzip "${2:--1}" >"$TEST_TMP/member"
    yes "$TEST_TMP/member" | head -n "$1" | xargs cat
}

# without_context FILE: a result without the part that tells of the machine and the version
without_context() {
    awk '/^% allocrig [0-9]/ { next } /^  "context": \{/ { inside = 1 } !inside { print } /^  \},/ { inside = 0 }' "$1"
}

finish() {
    exit $failed
}
